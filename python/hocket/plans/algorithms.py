"""The algorithms by name: those of hocket, as the core's table has them, and those of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hocket import _core
from hocket._checks import did_you_mean
from hocket._results import Column, Result, said
from hocket.errors import Error, SpecError
from hocket.plans.registry import Own, find, own_algorithms
from hocket.plans.synthesis.options import PlanOptions
from hocket.units import shown

PREFIX = "schedule:"
"""What stands before the name of a saved schedule where an algorithm's name may stand."""


@dataclass(frozen=True)
class Algorithm(Result):
    """An algorithm: what it is called, what it does, which collectives it implements."""

    name: str = field(metadata=said(column=Column("algorithm")))
    summary: str = field(metadata=said(column=Column("what it does", is_prose=True, after="kinds")))
    kinds: tuple[str, ...] = field(metadata=said(column=Column("collectives", is_prose=True)))


BUILTIN = {each.name: each for each in _core.registry.entries()}
"""What the core's table says of each algorithm of hocket, by name."""

SCHEDULERS = tuple(each.name for each in BUILTIN.values() if each.has_schedule)
"""Algorithms that schedule dimensions."""

_OPTIONS = tuple(dict.fromkeys(option for each in BUILTIN.values() for option in each.uses))
"""Options that not all algorithms use."""


def algorithms() -> list[Algorithm]:
    """Every algorithm that :func:`hocket.plan` takes."""
    known: list[_core.registry.Entry | Own] = [*BUILTIN.values(), *own_algorithms()]
    return [Algorithm(each.name, each.summary, tuple(each.kinds)) for each in known]


def quick(kind: str) -> list[str]:
    """Names of those of hocket that do a kind and plan in no more than a few seconds."""
    return [each.name for each in BUILTIN.values() if each.is_compared and kind in each.kinds]


def compared() -> list[str]:
    """Names of those that comparisons have by default: the quick ones of hocket, and those of one's own."""
    own = [each.name for each in own_algorithms()]
    return [each.name for each in BUILTIN.values() if each.is_compared] + own


def is_synthesized(algorithm: str) -> bool:
    """Return whether an algorithm's plan is searched for, transfer by transfer."""
    return algorithm in BUILTIN and BUILTIN[algorithm].making in ("synthesis", "solver", "choice")


def promise(name: str) -> int:
    """Return what an algorithm promises: ``auto`` tries those first that promise more, those of 0 last."""
    return BUILTIN[name].promise if name in BUILTIN else 50


def by_promise(names: Sequence[str]) -> list[str]:
    """Return names of algorithms in the order in which they are tried; the first of equals is chosen."""
    return sorted(names, key=promise, reverse=True)


def is_scheduled(algorithm: str) -> bool:
    """Return whether an algorithm's plan is made of a schedule; hierarchical has a plan of its own."""
    if algorithm in BUILTIN:
        return BUILTIN[algorithm].making == "schedule"
    return algorithm.startswith(PREFIX)


def chunk_ladder(
    topology: _core.Topology, collective: _core.Collective, name: str
) -> list[int | None]:
    """Numbers of chunks worth trying; ``None`` leaves it to the algorithm, where it chooses itself.

    Raises
    ------
    InfeasibleError
        If it cannot run here.
    """
    if name not in BUILTIN:
        return [None]
    return list(_core.registry.chunk_ladder(topology, collective, name)) or [None]


def check_name(name: str) -> None:
    """Refuse what is the name of no algorithm.

    Raises
    ------
    SpecError
        With the names that there are.
    """
    known = [each.name for each in algorithms()]
    if not isinstance(name, str):
        raise SpecError("algorithm", f"{shown(name)} is not a name", "give one, such as ring")
    if name not in known and find(name) is None:
        raise SpecError(
            None,
            f"there is no algorithm {name!r}",
            did_you_mean(name, known, f"algorithms are {', '.join(known)}"),
        )


def check_options(algorithm: object, options: PlanOptions) -> None:
    """Refuse an option that an algorithm does not use, rather than leave it out silently.

    Raises
    ------
    SpecError
        With the algorithms that use it.
    """
    if find(algorithm) is not None:
        return  # it gets them all
    for option in _OPTIONS:
        use = [each.name for each in BUILTIN.values() if option in each.uses]
        if getattr(options, option) != getattr(PlanOptions, option) and algorithm not in use:
            name = algorithm if isinstance(algorithm, str) else "a schedule"
            raise SpecError(
                option,
                f"{name} does not use it",
                f"it is for {_listed(use)}",
            )


def _listed(names: Sequence[str]) -> str:
    """Return names as they stand in a sentence."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def unheeded(names: Sequence[str], options: PlanOptions) -> dict[str, list[str]]:
    """Return which of several algorithms do not use each option that is not at its default."""
    kept = {name: heeded(name, options) for name in names}
    found: dict[str, list[str]] = {}
    for option in ("chunks", "chunk_size", *_OPTIONS):
        value = getattr(options, option)
        not_used = [name for name, each in kept.items() if getattr(each, option) != value]
        if not_used:
            found[option] = not_used
    return found


def reasons(refused: Mapping[str, Error]) -> dict[str, str]:
    """Return why each algorithm made no plan, without its name."""
    return {
        name: str(error.but(origin=None) if error.origin == name else error)
        for name, error in refused.items()
    }


def check_any_uses(names: Sequence[str], options: PlanOptions, *, is_named: bool) -> None:
    """Refuse an option that none of several algorithms uses: no result would show it.

    Parameters
    ----------
    is_named
        Whether somebody named the algorithms; else they are those of every comparison.

    Raises
    ------
    SpecError
        With the algorithms that use it.
    """
    for option, not_used in unheeded(names, options).items():
        if len(not_used) < len(set(names)):
            continue
        listed = ", ".join(not_used)
        why = f"{listed} does not use it" if len(not_used) == 1 else f"none of {listed} uses it"
        use = [each.name for each in BUILTIN.values() if option in each.uses]
        right = f"it is for {_listed(use)}" if use else "leave it out"
        raise SpecError(
            option, why if is_named else "no algorithm that is compared by default uses it", right
        )


def heeded_by_any(names: Sequence[str], options: PlanOptions) -> PlanOptions:
    """Return the options without those that none of several algorithms uses."""
    unused = [
        option
        for option, not_used in unheeded(names, options).items()
        if len(not_used) == len(set(names))
    ]
    return replace(options, **{option: getattr(PlanOptions, option) for option in unused})


def heeded(algorithm: str, options: PlanOptions) -> PlanOptions:
    """Return the options without those that an algorithm does not use, as a saved schedule its chunks."""
    if find(algorithm) is not None:
        return options
    if algorithm.startswith(PREFIX):
        options = replace(options, chunks=None, chunk_size=None)
    uses = BUILTIN[algorithm].uses if algorithm in BUILTIN else ()
    own = [option for option in _OPTIONS if option not in uses]
    return replace(options, **{option: getattr(PlanOptions, option) for option in own})
