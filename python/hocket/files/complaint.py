"""Faults of values in files, in plain words and with the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hocket._checks import hint_of
from hocket.errors import SpecError
from hocket.units import shown

NAME = r"^[^\s,]+$"
"""What a name is: text without spaces and commas."""


class Located:
    """Positions of errors in a file.

    Parameters
    ----------
    lines
        Line of each value by its place, as :func:`hocket.files.yaml_tree.read_yaml` gives them.
    name
        The file, for messages.
    """

    def __init__(self, lines: Mapping[tuple[str | int, ...], int], name: str) -> None:
        self._lines = lines
        self._name = name

    def wrong(
        self,
        place: tuple[str | int, ...],
        why: str,
        remedy: str | None = None,
        *,
        line_of: tuple[str | int, ...] = (),
    ) -> SpecError:
        """Make an error about a place; the line may be that of something within it."""
        at = line_of or place
        while at and at not in self._lines:
            at = at[:-1]
        origin = f"{self._name}, line {self._lines[at]}" if at else self._name
        path = ""
        for part in place:
            path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
        return SpecError(path or None, why, remedy, origin)


def shown_path(path: Path) -> str:
    """Return a path for a message: in one line."""
    text = str(path)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= 300 else text[:300] + "..."


def complaint(kind: str, given: object, context: Mapping[str, Any], words: tuple[str, ...]) -> str:
    """Describe what is wrong with a value.

    Parameters
    ----------
    kind, context
        Type of a pydantic error, and what it says besides.
    given
        The value.
    words
        Keys that lead to it, from the outside in.
    """
    form = _LISTS.get(words, "[...]")
    if given is None:
        return "has no value; give it one or remove the key"
    limit = {name: context.get(name) for name in ("ge", "le", "lt", "min_length", "max_length")}
    texts = {
        "list_type": f"{shown(given)} is not a list; write it as {form}",
        "bool_type": f"{shown(given)} is neither true nor false; write one of them",
        "int_type": f"{shown(given)} is not a whole number; give one such as 4",
        "int_from_float": f"{shown(given)} is not a whole number; give one such as 4",
        "float_type": f"{shown(given)} is not a number; give one such as 2.5",
        "float_parsing": f"{shown(given)} is not a number; give one such as 2.5",
        "finite_number": f"{shown(given)} is not finite; give a number such as 2.5",
        "string_type": f"{shown(given)} is not text; quote it if it is a name",
        "model_type": f"{shown(given)} is not a mapping; write it as key: value",
        "dict_type": f"{shown(given)} is not a mapping; write it as key: value",
        "greater_than_equal": f"{shown(given)} is too small; give at least {limit['ge']}",
        "less_than_equal": f"{shown(given)} is too large; give at most {limit['le']}",
        "less_than": f"{shown(given)} is too large; give less than {limit['lt']}",
        "string_too_short": "is empty; give it a text",
        "string_too_long": f"is longer than {limit['max_length']} characters; shorten it",
    }
    if kind == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        if pattern == NAME:
            return f"{shown(given)}: a name has no spaces or commas; leave them out"
        return f"{shown(given)} is not valid; write it as {pattern.strip('^$')}"
    if kind in ("too_short", "too_long"):
        return f"{shown(given)} has {context.get('actual_length')} entries; write it as {form}"
    if kind == "literal_error":
        allowed = [word.strip("'") for word in _split(str(context.get("expected", "")))]
        return f"there is no {shown(given)}; {hint_of(given, allowed)}"
    return texts.get(kind, f"{shown(given)} is not valid")


def _split(expected: str) -> list[str]:
    return expected.replace(" or ", ", ").split(", ")


_LISTS = {
    ("size",): "[4, 4], 1 to 32 sizes",
    ("dims",): "1 to 32 lines of - {kind: Ring, size: 4, bandwidth: ..., latency: ...}",
    ("links",): "[a, b, kind] or [a, b, bandwidth, latency]",
    ("failed", "links"): "pairs, [[a, b], [c, d]]",
    ("failed", "nodes"): "names, [a, b]",
    ("switches",): "names, [s0, s1]",
    ("offload",): "mappings, as - {switches: [s0], operations: [sum, multicast]}",
    ("offload", "operations"): "[sum, multicast]",
    ("notes",): "texts, one a line after -",
    ("source",): "mappings, as - {repo: ...}",
}
