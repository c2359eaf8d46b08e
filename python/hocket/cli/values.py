"""Reads the texts of options without pydantic, which Typer would import for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args, get_origin

from hocket.errors import SpecError
from hocket.units import shown


def read_plainly(command: Any) -> None:
    """Have a command, or the commands of a group, read texts and numbers here; Typer reads the rest."""
    for param in command.params:
        _read(param)
    option_of = command.get_help_option

    def help_option(ctx: Any) -> Any:
        option = option_of(ctx)
        if option is not None:
            _read(option)
        return option

    command.get_help_option = help_option
    for under in getattr(command, "commands", {}).values():
        read_plainly(under)


def _read(param: Any) -> None:
    param.display_type_rich = lambda ctx: _word(param)
    descriptor = getattr(param, "type_descriptor", None)
    if descriptor is None:  # an older Typer, which needs no pydantic
        return
    kind = descriptor.annotation
    if get_origin(kind) is list:
        (kind,) = get_args(kind)
    if kind in _READERS:
        param.get_runtime_param = _Reader(*_READERS[kind]).itself


class _Reader:
    """Makes the value of an option of its text, or a list of its texts."""

    def __init__(self, read: Callable[[str], Any], what: str) -> None:
        self._read, self._what = read, what

    def itself(self) -> _Reader:
        """Give what reads."""
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Give the value; a default is one already."""
        if param.multiple or param.nargs == -1:
            return [self._one(each, param) for each in value or ()]
        return value if value is None else self._one(value, param)

    def _one(self, text: Any, param: Any) -> Any:
        try:
            return self._read(text) if isinstance(text, str) else text
        except ValueError:
            option = max(param.opts, key=len)
            raise SpecError(option, f"{shown(text)} is not {self._what}") from None


_READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    str: (str, "text"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    bool: (bool, "yes or no"),  # of flags, which have no text
}

_WORDS = {
    "RATE": ["bandwidth", "host_bandwidth", "flow_rate", "reduction_rate", "clock"],
    "TIME": ["latency", "time_limit", "slot", "answer"],
    "SIZE": ["size", "chunk_size", "packet_size", "flit_size", "bucket"],
    "NAME": ["algorithm", "scheme", "preset", "fidelity", "npu", "phase", "part"],
    "HOW": [
        "routing",
        "unwind",
        "order",
        "switching",
        "latency_model",
        "hash",
        "weights",
        "dependencies",
    ],
    "FILE": ["output", "file", "plot", "timeline", "perfetto", "heat", "save", "groups"],
    "A,B": ["failed"],
    "LIST": ["npus", "map", "places", "inputs"],
    "SIZES": ["parallel"],
    "NPU": ["root"],
}
"""What stands in help for the value of an option, by the parameters that set it."""


def _word(param: Any) -> str | None:
    """Say in help what kind of value an option has; nothing of flags and arguments."""
    if param.param_type_name == "argument" or getattr(param, "is_flag", False) or param.count:
        return None
    if param.metavar is not None:
        return str(param.metavar)
    named = next((word for word, names in _WORDS.items() if param.name in names), None)
    kind = getattr(getattr(param, "type_descriptor", None), "annotation", str)
    return named or {int: "N", float: "X"}.get(kind, "TEXT")
