"""Lower bounds on the time of any plan."""

from __future__ import annotations

from typing import Literal, cast

from hocket import _core
from hocket._checks import instance_of, one_of, whole
from hocket.errors import InfeasibleError
from hocket.topology.sources import TopologyLike, as_topology

_Fidelity = Literal["link", "flow", "packet", "dimension"]
_FIDELITIES = ("link", "flow", "packet", "dimension")
RELAYS = {
    "none": "no relays",
    "forward": "relays may only forward",
    "sum": "relays may sum and copy",
}
"""What NPUs may do with data that they neither hold nor want, in words."""
_NEVER = (1 << 64) - 1
"""The time of what cannot be done [ps]."""


def bound(
    topology: TopologyLike,
    collective: _core.Collective,
    fidelity: str = "link",
    flit_bytes: int = 512,
    relays: str = "sum",
) -> _core.Bound:
    """Bound the time of any plan from below, with a witness: why nothing is faster.

    Parameters
    ----------
    topology, collective
        What is to be done where.
    fidelity
        ``"link"``, ``"flow"``, ``"packet"`` or ``"dimension"``: of the simulations that it bounds.
    flit_bytes
        Size of a flit at packet fidelity.
    relays
        What NPUs do that take no part, in the plans that it bounds: ``"none"``, ``"forward"`` or ``"sum"``.

    Returns
    -------
    Bound
        Its `relays` is ``None`` if nobody is left who could sum or copy.

    Raises
    ------
    SpecError
        If an argument makes no sense, or the collective is of another network.
    InfeasibleError
        If no links that relays leave lead from an NPU that has data to one that wants them.
    """
    one_of("fidelity", fidelity, _FIDELITIES)
    instance_of(_core.Collective, "collective", collective, "make one by hk.collective_on(...)")
    flits = whole("flit_bytes", flit_bytes, 1, 1 << 32)
    one_of("relays", relays, tuple(RELAYS))
    on = as_topology(topology)
    found = _core.bound(on, collective, cast(_Fidelity, fidelity), flits, relays)
    if found.time_ps == _NEVER:
        why = f"{found.witness}, and no plan can do the {collective.name} without one"
        right = "join them or leave one out"
        if relays == "none":
            right = f"let relays forward, {right}"
        raise InfeasibleError("collective", why, right, "bound")
    return found


def assumed(bound: _core.Bound, collective: _core.Collective, topology: _core.Topology) -> str:
    """Return what follows the printed bound of a group or of several: what it lets relays do."""
    is_some = len(collective.npus) < topology.npu_count or " x " in collective.name
    return f"; {RELAYS[bound.relays]}" if bound.relays is not None and is_some else ""
