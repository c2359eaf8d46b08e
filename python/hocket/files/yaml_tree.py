"""YAML as plain values, with the line of every value; nothing surprising is let through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from hocket.errors import SpecError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LARGEST = 256 << 20

Place = tuple[str | int, ...]


def read_yaml(path: Path) -> tuple[dict[str, Any], dict[Place, int]]:
    """Read a file that holds one mapping.

    Returns
    -------
    values
        The mapping.
    lines
        Line, from 1, of each value by its place: keys and positions from the outside in.

    Raises
    ------
    SpecError
        If the file cannot be read, or is not one plain mapping.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise SpecError(f"{path}: is larger than {_LARGEST >> 20} MiB; use a builder or dims")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SpecError(f"{path}: is not text in UTF-8; a topology file is YAML") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str) -> tuple[dict[str, Any], dict[Place, int]]:
    """Read a text as :func:`read_yaml` reads a file; ``name`` stands for it in messages."""
    try:
        loader = _LOADER(text)
        try:
            root = loader.get_single_node()
            tree = _Tree(loader, name)
            value = None if root is None else tree.value(root, ())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = " ".join(f"{error.problem or error.context}".split())
        raise SpecError(f"{name}{line}: is not YAML: {problem}") from None
    except yaml.YAMLError as error:
        raise SpecError(f"{name}: is not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise SpecError(f"{name}: is nested too deeply; a topology file has four levels") from None
    if not isinstance(value, dict):
        what = "is empty" if value is None else "is not a mapping of keys to values"
        raise SpecError(f"{name}: {what}; begin with npus: and links:, dims:, or builder:")
    return value, tree.lines


class _Tree:
    def __init__(self, loader: Any, name: str) -> None:
        self._loader = loader
        self._name = name
        self._seen: set[int] = set()
        self.lines: dict[Place, int] = {}

    def value(self, node: yaml.Node, place: Place) -> Any:
        line = node.start_mark.line + 1
        self.lines[place] = line
        if id(node) in self._seen:
            raise SpecError(f"{self._name}, line {line}: anchors and aliases are not used here")
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, i)) for i, item in enumerate(node.value)]
        try:
            return self._loader.construct_object(node)
        except (ValueError, OverflowError, TypeError) as error:
            raise SpecError(f"{self._name}, line {line}: {node.value!r}: {error}") from None

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise SpecError(
                    f"{self._name}, line {line}: a key is a list or mapping; use a word"
                )
            key = str(key_node.value)
            if key in values:
                raise SpecError(f"{self._name}, line {line}: key {key!r} stands twice; keep one")
            values[key] = self.value(value_node, (*place, key))
        return values
