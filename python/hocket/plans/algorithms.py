"""The algorithms by name: those of the core, the synthesizers that Python adds, and those of one's own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hocket import _core
from hocket.errors import SpecError
from hocket.files.complaint import did_you_mean
from hocket.plans.registry import find, own_algorithms
from hocket.plans.synthesis.options import SYNTHESIZERS, PlanOptions
from hocket.units import shown


@dataclass(frozen=True)
class Algorithm:
    """An algorithm: what it is called, what it does, which collectives it implements."""

    name: str
    summary: str
    kinds: tuple[str, ...]


def algorithms() -> list[Algorithm]:
    """Every algorithm that :func:`hocket.plan` takes."""
    known = [Algorithm(each.name, each.summary, tuple(each.kinds)) for each in _core.algorithms()]
    names = {each.name for each in known}
    kinds = next(each.kinds for each in known if each.name == "greedy")
    added = (name for name in SYNTHESIZERS if name not in names)
    known += [Algorithm(name, SYNTHESIZERS[name], kinds) for name in added]
    return known + [Algorithm(each.name, each.summary, each.kinds) for each in own_algorithms()]


def compared() -> list[str]:
    """Names of those that plan in no more than a few seconds, which all leave out exact, blind and auto."""
    return [*(each.name for each in _core.algorithms()), *(each.name for each in own_algorithms())]


def chunk_ladder(
    topology: _core.Topology, collective: _core.Collective, name: str
) -> list[int | None]:
    """Numbers of chunks worth trying with an algorithm; ``None`` leaves it to one of your own.

    Raises
    ------
    InfeasibleError
        If it cannot run here.
    """
    if find(name) is not None:
        return [None]
    return list(_core.chunk_ladder(topology, collective, name))


def check_name(name: str) -> None:
    """Refuse what is the name of no algorithm.

    Raises
    ------
    SpecError
        With the names that there are.
    """
    known = [each.name for each in algorithms()]
    if not isinstance(name, str):
        raise SpecError("algorithm", f"{shown(name)} is no name", "give one, such as ring")
    if name not in known and find(name) is None:
        raise SpecError(
            None,
            f"there is no algorithm {name!r}",
            did_you_mean(name, known, f"algorithms are {', '.join(known)}"),
        )


_OPTIONS = {
    "seed": tuple(SYNTHESIZERS),
    "unwind": tuple(SYNTHESIZERS),
    "trials": ("greedy", "exact", "auto"),
    "slot": ("exact", "auto"),
    "cluster": ("exact", "auto"),
}


def check_options(algorithm: object, options: PlanOptions) -> None:
    """Refuse an option that an algorithm does not heed, rather than leave it out silently.

    Raises
    ------
    SpecError
        With the algorithms that heed it.
    """
    if find(algorithm) is not None:
        return  # it gets them all
    for option, heed in _OPTIONS.items():
        if getattr(options, option) != getattr(PlanOptions, option) and algorithm not in heed:
            name = algorithm if isinstance(algorithm, str) else "a schedule"
            raise SpecError(
                option,
                f"{name} does not heed it",
                f"it is for {', '.join(heed[:-1])} and {heed[-1]}",
            )


def heeded(algorithm: str, options: PlanOptions) -> PlanOptions:
    """Give the options without those that an algorithm does not heed."""
    if find(algorithm) is not None:
        return options
    own = [option for option, heed in _OPTIONS.items() if algorithm not in heed]
    return replace(options, **{option: getattr(PlanOptions, option) for option in own})
