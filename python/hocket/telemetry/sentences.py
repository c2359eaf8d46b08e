"""The verdict on a range of sizes, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hocket.errors import listed
from hocket.telemetry.verdict import GAIN, NEAR, MeasuredSize
from hocket.units import format_size


def sentence_of(sizes: Sequence[MeasuredSize], library: str | None) -> str:
    """Describe what is slow at sizes that have one verdict, and by how much.

    Parameters
    ----------
    sizes
        Of one collective, timed in one way, the least first.
    library
        ``"NCCL"`` or ``"RCCL"``; ``None`` where no model of it is known here.
    """
    first, last = sizes[0], sizes[-1]
    span = format_size(first.size)
    if last.size > first.size:
        span = f"{span} to {format_size(last.size)}"
    alone = ", kernels alone" if first.timing == "kernel" else ""
    return f"{first.kind} of {span}{alone}: {_WHAT[first.verdict](sizes, library)}"


def _neither(sizes: Sequence[MeasuredSize], library: str | None) -> str:
    if all(each.bound is not None and each.seconds <= each.bound * (1 + NEAR) for each in sizes):
        return "neither is slow: no plan could be 5% faster than what was measured"
    what = f"neither is slow: it takes {_compared(sizes)}{_picked(sizes, library)}"
    if all(each.ratio is not None and each.ratio < 0.7 for each in sizes):
        return f"{what}; the profile is that of a slower machine"
    saved = [_saved(each) for each in sizes if each.best is not None]
    if saved and max(saved) < GAIN:
        return f"{what}, and no plan of hocket's would save a tenth"
    return what


def _algorithm(sizes: Sequence[MeasuredSize], library: str | None) -> str:
    what = f"the algorithm is slow: it takes {_compared(sizes)}{_picked(sizes, library)}"
    instead = dict.fromkeys(each.instead for each in sizes if each.instead)
    if instead:
        names = listed(list(instead))
        return f"{what}, as long as {names} takes: the library does not use what is fastest here"
    if sizes[0].is_over:
        return f"{what}, though the fabric carries larger sizes as predicted"
    names = listed(list(dict.fromkeys(each.algorithm or "" for each in sizes)))
    saved = _span(map(_saved, sizes), _percent)
    return f"{what}, and the best plan ({names}) would take {saved} less"


def _fabric(sizes: Sequence[MeasuredSize], library: str | None) -> str:
    what = f"the fabric is slow: it takes {_compared(sizes)}{_picked(sizes, library)}"
    gains = [
        1 - each.best / each.predicted
        for each in sizes
        if each.best is not None and each.predicted is not None
    ]
    if gains and min(gains) >= GAIN:
        return f"{what}; on a healthy one the best plan would save {_span(gains, _percent)} more"
    return what


def _start(sizes: Sequence[MeasuredSize], library: str | None) -> str:
    return (
        f"the start is slow, launching or the fabric's latency: it takes {_compared(sizes)}"
        f"{_picked(sizes, library)}, and hardly more for more bytes"
    )


def _faster(sizes: Sequence[MeasuredSize], library: str | None) -> str:
    return (
        "faster than any plan can be on this topology: links have more bandwidth than it states, or "
        "another machine was measured"
    )


def _not_told(sizes: Sequence[MeasuredSize], library: str | None) -> str:
    bounds = [each.seconds / each.bound for each in sizes if each.bound]
    beside = f", {_span(bounds, _ratio)} times the bound" if bounds else ""
    return f"measured{beside}; nothing predicts it here, so what is slow cannot be told"


_WHAT = {
    "neither": _neither,
    "algorithm": _algorithm,
    "fabric": _fabric,
    "start": _start,
    "faster than the bound": _faster,
    "not told": _not_told,
}


def _compared(sizes: Sequence[MeasuredSize]) -> str:
    return f"{_span((each.ratio or 0.0 for each in sizes), _ratio)} times what is predicted"


def _picked(sizes: Sequence[MeasuredSize], library: str | None) -> str:
    """Name what is predicted to take so long, and what the library's own model picks if that differs."""
    ways = dict.fromkeys(" with ".join(each.way) for each in sizes if each.way)
    picks = dict.fromkeys(
        f"{each.pick.algorithm} with {each.pick.protocol}" for each in sizes if each.pick
    )
    told = [f"for {listed(list(ways))}"] if ways else []
    if library is not None and picks and {*map(str.lower, picks)} != {*map(str.lower, ways)}:
        told.append(f"({library}'s own model picks {listed(list(picks))})")
    return "".join(f" {each}" for each in told)


def _saved(each: MeasuredSize) -> float:
    return 0.0 if each.best is None else 1 - each.best / each.seconds


def _span(values: Iterable[float], write: Callable[[float], str]) -> str:
    found = sorted(values)
    texts = [write(each) for each in (found[0], found[-1])]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} to {texts[1]}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
