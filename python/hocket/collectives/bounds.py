"""Lower bounds on the time of any plan."""

from __future__ import annotations

from typing import Literal, cast

from hocket import _core
from hocket._checks import instance_of, one_of, whole
from hocket.topology.sources import TopologyLike, as_topology

_Fidelity = Literal["link", "flow", "packet", "dimension"]
_FIDELITIES = ("link", "flow", "packet", "dimension")


def bound(
    topology: TopologyLike,
    collective: _core.Collective,
    fidelity: str = "link",
    flit_bytes: int = 512,
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

    Raises
    ------
    SpecError
        If an argument makes no sense, or the collective is of another network.
    """
    one_of("fidelity", fidelity, _FIDELITIES)
    instance_of(_core.Collective, "collective", collective, "make one by hk.collective_on(...)")
    flits = whole("flit_bytes", flit_bytes, 1, 1 << 32)
    return _core.bound(as_topology(topology), collective, cast(_Fidelity, fidelity), flits)
