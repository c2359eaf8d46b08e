"""Algorithms of one's own: registered by a decorator or by installed packages, or named by their file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from hocket import _core
from hocket._checks import did_you_mean
from hocket.collectives.collective import KINDS as _KINDS
from hocket.collectives.collective import spelled
from hocket.errors import Error, SpecError
from hocket.units import shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from hocket.plans.builder import PlanBuilder
    from hocket.plans.plan import Plan
    from hocket.plans.schedule import Schedule
    from hocket.plans.synthesis import PlanOptions

    Planner = Callable[
        [_core.Topology, _core.Collective, PlanOptions], Plan | PlanBuilder | Schedule
    ]

GROUP = "hocket.algorithms"
"""The group of entry points by which a package brings algorithms."""
_PACKAGE = Path(__file__).parent.parent

KINDS = (*_KINDS, "custom")
"""Kinds of collective that an algorithm may be for."""

_TAKEN = ("none", "ideal", "all", "custom")
"""Names that mean something else where an algorithm's name may stand."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Own:
    """An algorithm of one's own: its name, what it does, for which collectives, and the function."""

    name: str
    summary: str
    kinds: tuple[str, ...]
    function: Planner


_OWN: dict[str, Own] = {}


def algorithm(
    name: str, *, kinds: str | Sequence[str] = KINDS, summary: str | None = None
) -> Callable[[F], F]:
    """Register a function as an algorithm, for everything that takes an algorithm's name.

    The function is called as ``function(topology, collective, options)``, with a
    :class:`hocket.PlanOptions`, and gives a :class:`hocket.Plan`, a :class:`hocket.PlanBuilder` or a
    :class:`hocket.Schedule`. Where it cannot do what is asked it raises :class:`hocket.InfeasibleError`.
    Each plan is proved before it is used. hocket does not stop the function at ``options.time_limit``.

    Parameters
    ----------
    name
        Letters, digits, ``.``, ``_`` and ``-``. A function that is defined again, as in a notebook, takes
        the place of the one before; any other clash is refused.
    kinds
        Kinds of collective that it is for; all, those of your own among them, by default.
    summary
        What it does, in a line; the first line of the function's docstring by default.

    Raises
    ------
    SpecError
        If the name or a kind is none, or the name is taken.

    Examples
    --------
    >>> import hocket as hk
    >>> @hk.algorithm("star", kinds="broadcast", summary="the root sends to each in turn")
    ... def star(topology, collective, options):
    ...     builder = hk.PlanBuilder(topology, collective)
    ...     root = collective.npus[collective.root]
    ...     for npu in collective.npus:
    ...         if npu != root:
    ...             builder.copy(0, root, npu)
    ...     return builder
    >>> topo = hk.topology.ring(4, bandwidth="25 GB/s", latency="1 us")
    >>> hk.plan("broadcast", topo, size="1 MB", algorithm="star")
    <Plan star broadcast on "ring 4": 3 transfers>
    """
    _check_name(name)
    known = _kinds(kinds)

    def register(function: F) -> F:
        add(Own(name, _summary(function, summary), known, function))
        return function

    return register


def add(own: Own) -> None:
    """Register an algorithm.

    Raises
    ------
    SpecError
        If the name is taken by another function.
    """
    builtin = {*(each.name for each in _core.registry.entries()), *_TAKEN}
    if own.name in builtin:
        raise SpecError("name", f"{own.name!r} is an algorithm of hocket", "choose another name")
    other = _OWN.get(own.name)
    if other is not None and _place(other.function) != _place(own.function):
        where = ".".join(_place(other.function))
        raise SpecError("name", f"{own.name!r} is taken by {where}", "choose another name")
    _OWN[own.name] = own


def own_algorithms() -> list[Own]:
    """Return the registered algorithms in order, after those of packages."""
    _installed()
    return list(_OWN.values())


def find(name: object) -> Own | None:
    """Return the algorithm of a name or of ``FILE.py:FUNCTION``, or ``None`` if there is none.

    Raises
    ------
    SpecError
        If there is such a file and it cannot be run, or has no such function.
    """
    if not isinstance(name, str):
        return None
    file, is_file, function = f"{name}:".rpartition(".py:")
    if is_file and name not in _OWN:
        return _in_file(Path(f"{file}.py"), function[:-1], name)
    if name not in _OWN:
        _installed()
    return _OWN.get(name)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        right = "use letters, digits, '.', '_' and '-'"
        raise SpecError("name", f"{shown(name)} is not a name of an algorithm", right)


def _kinds(kinds: object) -> tuple[str, ...]:
    given = (kinds,) if isinstance(kinds, str) else kinds
    if not isinstance(given, Sequence) or not given:
        raise SpecError("kinds", f"{shown(kinds)} is not a list of kinds", "name one or more")
    named = tuple(spelled(each) if isinstance(each, str) else each for each in given)
    for each in named:
        if each not in KINDS:
            raise SpecError(
                "kinds", f"there is no collective {shown(each)}", f"kinds are {', '.join(KINDS)}"
            )
    return named


def _summary(function: object, summary: str | None) -> str:
    if not callable(function):
        raise SpecError(None, f"{shown(function)} is not a function", "decorate one")
    text: object = (function.__doc__ or "an algorithm of your own") if summary is None else summary
    if not isinstance(text, str):
        raise SpecError("summary", f"{shown(text)} is not text", "say in a line what it does")
    return text.strip().partition("\n")[0].rstrip(".")


def _place(function: Any) -> tuple[str, str]:
    """Describe where a function is defined."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return str(module), str(name or shown(function))


@lru_cache(maxsize=1)
def _installed() -> None:
    """Register what packages bring, once; what cannot be loaded says so when it is asked for."""
    if not _any_package():
        return
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        try:
            _load(entry)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            _OWN.setdefault(entry.name, _broken(entry, error))


def _any_package() -> bool:
    """Return whether any package may bring algorithms: importlib.metadata alone takes long to import."""
    mark = f"[{GROUP}]".encode()
    for folder in dict.fromkeys(sys.path):
        for pattern in ("*.dist-info", "*.egg-info"):
            for info in Path(folder or ".").glob(pattern):
                try:
                    if mark in (info / "entry_points.txt").read_bytes():
                        return True
                except OSError:
                    continue
    return False


def _load(entry: EntryPoint) -> None:
    function = entry.load()
    if any(each.function is function for each in _OWN.values()):
        return  # its decorator has registered it
    _check_name(entry.name)
    add(Own(entry.name, _summary(function, None), KINDS, function))


def _broken(entry: EntryPoint, error: BaseException) -> Own:
    reason = f"cannot be loaded from {entry.value}: {raised(error)}"

    def refuse(*_: object) -> Plan:
        raise SpecError(None, reason)

    return Own(entry.name, reason, KINDS, refuse)


def raised(error: BaseException) -> str:
    """Describe in one line what an exception was, and where it was raised outside of hocket."""
    from traceback import walk_tb

    if isinstance(error, Error):
        return str(error)
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "its text cannot be read"
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    place = line_of(walk_tb(error.__traceback__))
    return what if isinstance(error, SyntaxError) else f"{what}{place}"


def line_of(frames: Iterable[tuple[FrameType, int]]) -> str:
    """Return the last place outside of hocket among frames with their lines, or nothing."""
    place = ""
    for frame, line in frames:
        file = Path(frame.f_code.co_filename)
        if not file.is_relative_to(_PACKAGE):
            place = f" ({file.name}, line {line})"
    return place


def _in_file(file: Path, function: str, text: str) -> Own:
    try:
        stamp = file.stat().st_mtime_ns if file.is_file() else None
    except (OSError, ValueError):
        stamp = None
    if stamp is None:
        raise SpecError("algorithm", "there is no such file", "name one", origin=str(file))
    path = file.resolve()
    names = _module(path, stamp)
    found = names.get(function)
    if not callable(found):
        functions = [each for each in names.values() if isinstance(each, FunctionType)]
        own = [each.__name__ for each in functions if each.__code__.co_filename == str(path)]
        why = f"has no function {function!r}" if function else "no function of it is named"
        right = f"write {' or '.join(f'{file}:{each}' for each in own[:4])}"
        right = did_you_mean(function, own, right) if own else "define one in it"
        raise SpecError("algorithm", why, right, origin=str(file))
    for each in _OWN.values():
        if each.function is found:
            return each
    return Own(text, _summary(found, None), KINDS, found)


@lru_cache(maxsize=32)
def _module(file: Path, _stamp: int) -> dict[str, Any]:
    """Run a file of a user's, once for each time that it was written, and give its names."""
    from runpy import run_path

    try:
        return run_path(str(file), run_name=f"hocket_algorithms_{file.stem}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise SpecError("algorithm", f"cannot be run: {raised(error)}", origin=str(file)) from error
