"""Switches that do more than forward: which sum and multicast, at what rate, for how many trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from hocket._checks import did_you_mean, instance_of, whole
from hocket._core import Topology
from hocket.errors import SpecError
from hocket.units import Quantity, parse_bandwidth, shown

Operation: TypeAlias = Literal["sum", "multicast", "all-reduce"]
OPERATIONS: tuple[Operation, ...] = ("sum", "multicast", "all-reduce")


def offloaded(
    topology: Topology,
    switches: Sequence[int | str] | Literal["all"] = "all",
    operations: Sequence[Operation] = ("sum", "multicast"),
    *,
    rate: Quantity | None = None,
    trees: int | None = None,
) -> Topology:
    """Return the same network with switches that sum and multicast: in-network collective offload.

    Parameters
    ----------
    topology
        The network.
    switches
        Which of its switches can, by number (of the device) or name; all by default.
    operations
        ``"sum"``: what comes from several devices may leave as one sum, to one device. ``"multicast"``:
        what comes from one may leave to several. ``"all-reduce"``: a sum may leave to several at once; it
        includes both. None at all makes switches that only forward.
    rate
        Bandwidth at which each takes in what it sums and multicasts, all that comes together; by default
        only its links limit it.
    trees
        How many trees each can be set up for, a tree being a set of devices with which it exchanges one
        chunk; any number by default.

    Raises
    ------
    SpecError
        If there is no such switch or operation, or a rate or number makes no sense.

    Examples
    --------
    >>> import hocket as hk
    >>> box = hk.topology.switch(8, bandwidth="450 GB/s", latency="350 ns")
    >>> sums = hk.topology.offloaded(box, ["sw0"], ["sum", "multicast"])
    >>> plan = hk.plan("all-reduce", sums, size="1 MiB", algorithm="in-network")
    """
    instance_of(Topology, "topology", topology, "make one, as by hk.topology.load(...)")
    given = [operations] if isinstance(operations, str) else operations
    if not isinstance(given, Sequence):
        raise SpecError("operations", f"{shown(given)} is not a list", 'give it as ["sum"]')
    for operation in given:
        if operation not in OPERATIONS:
            right = did_you_mean(
                str(operation), OPERATIONS, f"operations are {', '.join(OPERATIONS)}"
            )
            raise SpecError("operations", f"there is no {shown(operation)}", right)
    number = None if trees is None else whole("trees", trees, 1, (1 << 32) - 1)
    bandwidth = None if rate is None else parse_bandwidth(rate, field="rate")
    offload = (list(given), bandwidth, number) if given else None
    return topology.with_offload(_numbers(topology, switches), offload)


def _numbers(topology: Topology, switches: object) -> list[int]:
    """Return the device numbers of switches that are given by number or name."""
    first, count = topology.npu_count, topology.device_count
    if isinstance(switches, str) and switches == "all":
        if first == count:
            raise SpecError(
                "switches", f"{topology.name!r} has none", "name a network with switches"
            )
        return list(range(first, count))
    if isinstance(switches, str) or not isinstance(switches, Sequence):
        right = 'give names, as ["sw0"], or "all"'
        raise SpecError("switches", f"{shown(switches)} is not a list", right)
    names = {name: i for i, name in enumerate(topology.device_names)}
    numbers = []
    for i, switch in enumerate(switches):
        number = names.get(switch, -1) if isinstance(switch, str) else switch
        is_number = isinstance(number, int) and not isinstance(number, bool)
        if not is_number or not first <= number < count:
            wrong = f"there is no switch {shown(switch)}"
            if is_number and 0 <= number < first:
                wrong = f"{shown(switch)} is an NPU, which needs no offload"
            near = [name for name, device in names.items() if device >= first]
            listed = ", ".join(near[:8]) + (", ..." if len(near) > 8 else "")
            hint = f"switches are {listed}" if near else "the network has none"
            raise SpecError(f"switches[{i}]", wrong, did_you_mean(str(switch), near, hint))
        numbers.append(number)
    return numbers
