"""Products of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from hocket import _core
from hocket._checks import one_of, truth
from hocket._core import Topology
from hocket.errors import SpecError
from hocket.topology.declared import KINDS, count_of
from hocket.units import Duration, Quantity, parse_bandwidth, parse_time, shown


def product(
    kinds: str,
    sizes: Sequence[int],
    *,
    bandwidth: Sequence[Quantity],
    latency: Sequence[Duration],
    offload: Sequence[bool] | None = None,
    switching: str | None = None,
) -> Topology:
    """Return a product of dimensions, named as ASTRA-sim names them.

    Parameters
    ----------
    kinds
        ``Ring``, ``FullyConnected`` (``FC``), ``Switch`` (``SW``) and ``Line``, joined by ``_``, such
        as ``"Ring_FC_SW"``; NPU numbers vary fastest in the first dimension.
    sizes, bandwidth, latency
        Of each dimension: NPUs, and its links'; one of 1 NPU is skipped.
    offload
        Whether each dimension's switches sum and multicast; only those of a ``Switch`` can.
    switching
        ``"store-and-forward"`` or ``"cut-through"``: how devices pass messages on; by default the
        latter where there is a ``Switch``, so that from NPU to NPU is one step.
    """
    if not isinstance(kinds, str):
        raise SpecError("kinds", f"{shown(kinds)} is not text", "give it as 'Ring_FC_SW'")
    names = kinds.split("_")
    sums = [False] * len(names) if offload is None else offload
    columns: dict[str, object]
    columns = {"sizes": sizes, "bandwidth": bandwidth, "latency": latency, "offload": sums}
    for field, given in columns.items():
        is_text = isinstance(given, str)
        many = len(given) if isinstance(given, Sequence) and not is_text else None
        if many != len(names):
            count = f"only {shown(given)}" if many is None else str(many)
            raise SpecError(
                field,
                f"{count} given for the {len(names)} dimensions of {kinds!r}",
                "give a list with one for each",
            )
    dimensions = []
    for i, name in enumerate(names):
        kind = KINDS.get(name.lower())
        if kind is None:
            raise SpecError(
                "kinds",
                f"{name!r} is not a dimension",
                "use Ring, FullyConnected (FC), Switch (SW) or Line",
            )
        rate = parse_bandwidth(bandwidth[i], field=f"bandwidth[{i}]")
        delay = parse_time(latency[i], field=f"latency[{i}]")
        truth(f"offload[{i}]", sums[i])
        if sums[i] and kind != "Switch":
            raise SpecError(
                f"offload[{i}]", f"a {kind} has no switches that could sum", "leave it to a Switch"
            )
        dimensions.append((kind, count_of(f"sizes[{i}]", sizes[i]), rate, delay, sums[i]))
    made = _core.build_product(dimensions)
    if switching is None:
        return made
    one_of("switching", switching, ("store-and-forward", "cut-through"))
    return made.with_switching(switching)
