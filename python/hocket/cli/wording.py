"""Errors in the words of the command line: the option that set a field, and those that would do instead."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence, Set
from contextvars import ContextVar

from hocket.cli.command import Call
from hocket.errors import Error, listed

COMMAND: ContextVar[Call | None] = ContextVar("COMMAND", default=None)
"""The command that runs."""


def of_options(error: Error) -> Error:
    """Name the option of the command that set the field, where there is one, and those to give instead."""
    known = _known()
    if error.instead:
        error = error.but(remedy=pasted(error.instead) or error.remedy)
    if error.remedy:
        error = error.but(remedy=_PYTHON_NAME.sub(_as_option, error.remedy))
    field = error.field
    if error.origin is not None or field is None or field.startswith("-"):
        return error
    field, colon, rest = field.partition(": ")
    option = option_of(field)
    name = option if option in known else _names().get(field, field)
    return error.but(field=name + colon + rest)


_PYTHON_NAME = re.compile(r"\b(give )?([a-z]+(?:_[a-z]+)*)\b")
"""A word that may be an option as Python has it."""


def _as_option(word: re.Match[str]) -> str:
    """Write an option's name in Python as the option: one of several words, or of one after *give*."""
    before, name = word[1] or "", word[2]
    is_meant = "_" in name or before
    return before + option_of(name) if is_meant and option_of(name) in _known() else word[0]


def _names() -> dict[str, str]:
    """Return the names of the command's parameters, as help writes them, by the fields that they set."""
    call = COMMAND.get()
    return {each.field: each.name for each in call.params} if call else {}


def option_of(field: str) -> str:
    """Return the option that sets a field."""
    return _names().get(field, f"--{field.replace('_', '-')}")


def pasted(ways: Sequence[Mapping[str, object]]) -> str:
    """Write ways out as options to paste, those that the command has; empty where it has none."""
    known = _known()
    texts = []
    for way in ways:
        if all(option_of(name) in known for name in way):
            texts.append(" ".join(typed(name, value) for name, value in way.items()))
    return f"give {listed(texts)}" if texts else ""


def _known() -> Set[str]:
    call = COMMAND.get()
    return call.options.keys() if call else set()


def typed(name: str, value: object) -> str:
    """Return a field and its value as the option that sets it."""
    option = option_of(name)
    if value is True:
        return option
    if value is False:
        return f"--no-{option.removeprefix('--')}"
    return f"{option} {shlex.quote(str(value))}"
