"""The time of a collective on a real machine at any size, by its profile, and the fastest way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from hocket._checks import one_of
from hocket._results import Column, Result, TableResult, name_of, said
from hocket.collectives.bounds import bound
from hocket.collectives.collective import KINDS as COLLECTIVES
from hocket.collectives.collective import collective_on
from hocket.collectives.sizes import sizes_of
from hocket.profiles.cost_model import KINDS, bus_factors, cells_of, quickest, ways_of
from hocket.profiles.expected import ExpectedError
from hocket.profiles.hardware import Hardware, hardware_for
from hocket.profiles.measurement import Measurement
from hocket.profiles.profile import Profile, as_profile, profile_for, why_below
from hocket.topology.sources import TopologyLike, as_topology
from hocket.topology.text import from_text
from hocket.units import format_size, format_time_ps

if TYPE_CHECKING:
    from hocket._core import Bound, Topology
    from hocket.units import Quantity


@dataclass(frozen=True)
class PredictedTime(Result):
    """The time of one size.

    Attributes
    ----------
    size
        As nccl-tests states it [bytes].
    seconds
        What the collective takes, launched again and again as nccl-tests does.
    algorithm, protocol
        The fastest way.
    launch_share
        What of it launching alone would take; near 1, the size hardly matters.
    busbw
        By the definitions of nccl-tests [bytes/s].
    factor
        Of 10 machines like this, 9 take at most so many times as long, and at least one of so many.
    below_bound
        Why it stands below the bound on any plan; ``None`` where it does not.
    """

    size: int = field(metadata=said("size_bytes", column=Column("size", leaves=0, is_given=True)))
    seconds: float = field(metadata=said("time_s", column=Column("time", leaves=0)))
    algorithm: str = field(metadata=said(column=Column("algorithm")))
    protocol: str = field(metadata=said(column=Column("protocol")))
    launch_share: float = field(metadata=said(column=Column("launch")))
    busbw: float = field(metadata=said("busbw_bytes_per_s", column=Column("busbw", after="time_s")))
    factor: float = field(metadata=said(column=Column("9 of 10", write="x/÷ {:.2f}", leaves=0)))
    below_bound: str | None = None


@dataclass(frozen=True)
class Prediction(TableResult):
    """The time of a collective at several sizes.

    Attributes
    ----------
    kind, npus, nodes
        Of the collective.
    profile
        Whose constants were used.
    launch
        What launching takes [us].
    times
        One for each size.
    expected
        How far predictions of machines like this were off, small sizes first.
    notes
        What was assumed.
    about
        Why this profile, and what it was fitted to.
    """

    _table = "times"

    kind: str = field(metadata=said("collective"))
    npus: int
    nodes: int
    profile: Profile = field(metadata=said(of=name_of))
    launch: float = field(metadata=said("launch_us"))
    times: tuple[PredictedTime, ...]
    expected: tuple[ExpectedError, ...] = ()
    notes: tuple[str, ...] = ()
    about: tuple[str, ...] = field(default=(), metadata=said("about_profile"))


def predict(
    kind: str,
    topology: TopologyLike,
    *,
    sizes: Quantity | Iterable[Quantity],
    profile: Profile | str | None = None,
    launch: str | None = None,
) -> Prediction:
    """Predict the time of a collective among all NPUs with NCCL or RCCL on the real machine.

    Parameters
    ----------
    kind
        ``"all-reduce"``, ``"all-gather"``, ``"reduce-scatter"``, ``"broadcast"``, ``"reduce"``,
        ``"all-to-all"`` or ``"send-receive"``.
    topology
        A network, or text as of :func:`hocket.topology.load`; its ``groups:`` are the nodes.
    sizes
        As nccl-tests states them: a size, a list of sizes, or text as ``"8K:1G:x4"``.
    profile
        Constants of the machine: a shipped profile, as ``"a100-infiniband"``, a box on a fabric with what
        else is known, as ``"h100+ib,nvls=off"``, or a topology file that has one; by default that of the
        topology, or else of the classes that its links show.
    launch
        Kind of program, of those that the profile has; by default its first.

    Raises
    ------
    SpecError
        If there is no such profile, the profile has no such kind of program, or the law no such collective.
    InfeasibleError
        If an NPU does not reach another, or the only node has a single NPU.

    Examples
    --------
    >>> import hocket as hk
    >>> found = hk.predict("all-reduce", "hgx_h200_8gpu", sizes="1 GiB")
    >>> found.times[0].algorithm
    'nvls'
    """
    network = as_topology(topology)
    if profile is not None:
        used = as_profile(profile)
    elif isinstance(topology, str | PathLike):
        spec = from_text(str(topology), bandwidth=None, latency=None, option="topology")
        used = profile_for(network, spec)
    else:
        used = profile_for(network)
    nodes = max(len(network.groups), 1)
    read = sizes_of(sizes, field="sizes")
    one_of("kind", kind, KINDS)
    hardware = hardware_for(kind, network)
    found = predict_on(kind, hardware, network.npu_count, nodes, read, used, launch)
    if hardware.about_nics is not None and read:
        slow = replace(hardware, nic_bandwidth=hardware.slowest)
        size = max(read)
        (late,) = predict_on(kind, slow, network.npu_count, nodes, [size], used, launch).times
        took = f"{format_size(size)} then takes {format_time_ps(round(late.seconds * 1e12))}"
        found = replace(found, notes=(f"{hardware.about_nics}: {took}",))
    if kind not in COLLECTIVES:
        return found
    limits = dict(_below(kind, network, sorted(found.times, key=lambda each: each.size)))
    times = tuple(
        replace(each, below_bound=why_below(limits[each], each.seconds, used))
        if each in limits
        else each
        for each in found.times
    )
    return replace(found, times=times)


def _below(
    kind: str, network: Topology, times: Sequence[PredictedTime]
) -> Iterator[tuple[PredictedTime, Bound]]:
    """Return times below the bound on any plan, with the bound; of times with small sizes first.

    A bound never falls as data grows, so all times meet one that the least of them meets.
    """
    pending = [times] if times else []
    while pending:
        some = pending.pop()
        limit = _not_met(kind, network, some[-1].size, min(each.seconds for each in some))
        if limit is not None and len(some) == 1:
            yield some[0], limit
        elif limit is not None:
            half = len(some) // 2
            pending += [some[:half], some[half:]]


_MET: deque[tuple[str, Topology, int, int]] = deque(maxlen=256)
"""Bounds that were met last: kind, network, size and bound [ps]; a sweep asks about one network again."""


def _not_met(kind: str, network: Topology, size: int, seconds: float) -> Bound | None:
    """Return the bound on any plan of such a size, or ``None`` if that is less than a time."""
    time = seconds * 1e12
    for of, on, larger, limit in _MET:
        if of == kind and on is network and larger >= size and time >= limit:
            return None
    step = 1 << max(size.bit_length() - 4, 0)
    for larger in dict.fromkeys((size | (step - 1), size)):  # at most an eighth more
        found = bound(network, collective_on(kind, network, larger))
        if time >= found.time_ps:
            _MET.append((kind, network, larger, found.time_ps))
            return None
    return found


def predict_on(
    kind: str,
    hardware: Hardware,
    npus: int,
    nodes: int,
    sizes: Sequence[int],
    profile: Profile,
    launch: str | None = None,
) -> Prediction:
    """Do as :func:`predict`, for a machine by its bandwidths."""
    one_of("kind", kind, KINDS)
    start = profile.launching_all(npus, nodes, launch)
    rows = [Measurement(kind, npus, nodes, size, 1.0) for size in sizes]
    cells = cells_of(rows, profile.hardware(hardware, nodes))
    values = profile.values
    ways = ways_of(cells, values)
    names, each_way = list(ways), np.array(list(ways.values()))
    found = quickest(each_way, np.full(len(rows), start))
    factors = bus_factors(cells.kind, cells.npus)
    made = tuple(
        PredictedTime(
            size,
            float(took) * 1e-6,
            *names[int(way)],
            float(start / took),
            float(size * factor / took) * 1e6,
            profile.expected(hardware, nodes, size).factor,
        )
        for size, took, way, factor in zip(
            sizes, found, each_way.argmin(axis=0), factors, strict=True
        )
    )
    about = (*profile.remarks(hardware, nodes), *profile.source)
    errors = tuple(dict.fromkeys(profile.expected(hardware, nodes, size) for size in sorted(sizes)))
    return Prediction(kind, npus, nodes, profile, start, made, errors, about=about)
