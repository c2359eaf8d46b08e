"""YAML as plain values, with the line of every value; nothing surprising is let through."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.files.foreign import check_foreign
from hocket.files.raw import read_bytes
from hocket.units import shown

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LARGEST = 8 << 20
"""Bytes; as many take ten seconds to read."""
_DEEPEST = 16
_CONTROL = re.compile(
    "[^\\t\\n\\r\\x20-\\x7e\\x85\\xa0-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]"
)
_EXPONENT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+")
"""Numbers of YAML 1.2 and JSON, such as 1e-7, that YAML 1.1 takes for text."""
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_SHOWN = 60


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes what :func:`read_yaml` would take for a number."""


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(f"(?:{_EXPONENT.pattern})$"), list("-+.0123456789")
)

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class FileKind:
    """The words of messages about a kind of file.

    Attributes
    ----------
    name
        What it is called.
    begin
        The keys that one has.
    shorter
        What makes one shorter that is too large.
    """

    name: str
    begin: str
    shorter: str


TOPOLOGY = FileKind("topology", "npus: and links:, dims:, or builder:", "use a builder or dims")


def read_yaml(path: Path, kind: FileKind = TOPOLOGY) -> tuple[dict[str, Any], dict[Place, int]]:
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
    name = shown_path(path)
    most = f", the most that a {kind.name} file may be"
    raw = read_bytes(path, f"a {kind.name} file", most=_LARGEST, larger=(most, str(kind.shorter)))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise SpecError(
            None, "is not text in UTF-8", "save it as UTF-8", origin=str(name)
        ) from None
    return parse_yaml(text, name, kind)


def dump_yaml(value: object, *, width: int, is_flow: bool = False) -> str:
    """Return a value as YAML that :func:`read_yaml` reads as the same; keys stay in order."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=is_flow,
        sort_keys=False,
        allow_unicode=True,
        width=width,
    )
    return text


def parse_yaml(
    text: str, name: str, kind: FileKind = TOPOLOGY
) -> tuple[dict[str, Any], dict[Place, int]]:
    """Read a text as :func:`read_yaml` reads a file; ``name`` stands for it in messages."""
    check_foreign(text, name)
    tree = _Tree(text.removeprefix("\ufeff"), name, kind)
    try:
        value = tree.root()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = " ".join(f"{error.problem or error.context}".split())
        if "nesting depth" in problem:  # the scanner looks ahead, and has a limit of its own
            deep = f"{name}{line}: is nested too deeply"
            raise SpecError(None, deep, f"a {kind.name} file is flatter") from None
        raise SpecError(None, f"{name}{line}: is not YAML: {problem}", "mend that line") from None
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise SpecError(
            None, f"is not YAML: {problem}", f"a {kind.name} file is plain text", origin=str(name)
        ) from None
    finally:
        tree.close()
    if not isinstance(value, dict):
        what = "is empty" if value is None else "is not a mapping of keys to values"
        raise SpecError(None, str(what), f"begin with {kind.begin}", origin=str(name))
    return value, tree.lines


class _Tree:
    """Values built from the events of the parser: composing nodes would recurse without a limit."""

    def __init__(self, text: str, name: str, kind: FileKind) -> None:
        self._name = name
        self._kind = kind
        self.lines: dict[Place, int] = {}
        control = _CONTROL.search(text)
        if control is not None:
            line = text.count("\n", 0, control.start()) + 1
            code = ord(control.group())
            raise SpecError(
                None, f"{name}, line {line}: character U+{code:04X} is not text", "remove it"
            )
        self._loader = _LOADER(text)

    def close(self) -> None:
        self._loader.dispose()

    def root(self) -> Any:
        """Return the value of the only document, or None if there is none."""
        value, documents = None, 0
        while (event := self._loader.get_event()) is not None:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._wrong(event, "a second document begins here", "keep one")
                value = self._value(self._loader.get_event(), ())
            elif isinstance(event, yaml.StreamEndEvent):
                break
        return value

    @staticmethod
    def _line(event: yaml.Event) -> int:
        return 1 if event.start_mark is None else event.start_mark.line + 1

    def _wrong(self, event: yaml.Event, why: str, remedy: str) -> SpecError:
        return SpecError(None, why, remedy, f"{self._name}, line {self._line(event)}")

    def _value(self, event: Any, place: Place) -> Any:
        self.lines[place] = self._line(event)
        if event.anchor is not None:
            raise self._wrong(event, "anchors and aliases (& and *) are not used", "write it out")
        if event.tag is not None:
            raise self._wrong(event, f"tag {event.tag!r} is not used here", "remove it")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if len(place) == _DEEPEST:
            raise self._wrong(event, "is nested too deeply", f"a {self._kind.name} file is flatter")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(place)
        values: list[Any] = []
        while not isinstance(item := self._loader.get_event(), yaml.SequenceEndEvent):
            values.append(self._value(item, (*place, len(values))))
        return values

    def _mapping(self, place: Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := self._loader.get_event(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self._wrong(event, "a key is not a word", "keys are plain words")
            key = event.value
            self._check_shown(event)
            if key in values:
                text = key if len(key) <= _SHOWN else key[:_SHOWN] + "..."
                raise self._wrong(event, f"key {text!r} stands twice", "keep one")
            inner = (*place, key)
            values[key] = self._value(self._loader.get_event(), inner)
            self.lines[inner] = self._line(event)
        return values

    def _check_shown(self, event: yaml.ScalarEvent) -> None:
        """Refuse a text that, by its escapes, has a character that cannot be shown."""
        text = event.value.replace("\n", " ")
        if not text.isprintable():
            hidden = next(letter for letter in text if not letter.isprintable())
            code = f"U+{ord(hidden):04X}"
            raise self._wrong(
                event, f"{shown(event.value)} has the character {code}, no text", "remove it"
            )

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        """Return a null, truth value, number or text; what looks like a date, or is to base 60, is text."""
        if event.implicit[0] and _EXPONENT.fullmatch(event.value):
            return float(event.value)
        tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        if ":" in event.value or tag.rpartition(":")[2] not in ("null", "bool", "int", "float"):
            self._check_shown(event)
            return event.value
        if _OCTAL.fullmatch(event.value):
            right = "write it without the 0, or quote it if it is text"
            raise self._wrong(event, f"{event.value!r} is octal in YAML", right)
        try:
            return self._loader.construct_object(yaml.ScalarNode(tag, event.value))
        except (ValueError, OverflowError):
            text = event.value if len(event.value) <= _SHOWN else event.value[:_SHOWN] + "..."
            raise self._wrong(
                event, f"{text!r} is not a number", "quote it if it is text"
            ) from None
