"""Clusters: hosts with GPUs and NICs below the ToRs of a Clos or fat tree."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Annotated

from hocket._checks import list_of, whole
from hocket._core import Topology
from hocket._core import routing as core_routing
from hocket._options import options_of
from hocket.cluster.seeded_random import SeededRandom
from hocket.errors import SpecError
from hocket.topology.build import build_topology
from hocket.topology.slow import Slow, read_slow, slowed
from hocket.topology.spec import BuilderSpec, TopologySpec
from hocket.topology.text import from_text, is_builder, read_failures
from hocket.units import Duration, Quantity, parse_bandwidth, parse_time, shown

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class HostKeywords(TypedDict, total=False):
        """The fields of :class:`HostOptions` as keywords of a call."""

        gpus_per_host: int
        nics_per_host: int
        hosts_per_tor: int | None
        oversubscription: float | None
        bandwidth: Quantity | None
        host_bandwidth: Quantity | None
        latency: Duration | None


_MAX_GPUS = 1 << 20
MAX_SEED = (1 << 64) - 1
"""Of seeds."""
_TOR = re.compile(r"(tor|edge)([0-9]+)")
_SPINE = re.compile(r"(spine|core)([0-9]+)")


@dataclass(frozen=True, repr=False)
class Cluster:
    """Hosts on a fabric; made by :func:`cluster`.

    GPUs are numbered host by host: GPU ``g`` is in ``hosts[g // gpus_per_host]``.

    Attributes
    ----------
    topology
        A Clos or fat tree, less what failed; its NPUs are the ports of NICs.
    gpus_per_host, nics_per_host
        Of every host.
    hosts
        Names of those that have all their NICs; the number in a name counts failed hosts as well.
    nics
        NPUs of the topology that are each host's NICs.
    tors
        Number of the ToR, as in its name, that each host is below.
    """

    topology: Topology
    gpus_per_host: int
    nics_per_host: int
    hosts: tuple[str, ...]
    nics: tuple[tuple[int, ...], ...]
    tors: tuple[int, ...]

    @property
    def gpu_count(self) -> int:
        """GPUs of all hosts."""
        return len(self.hosts) * self.gpus_per_host

    def host_of(self, gpu: int) -> str:
        """Name of the host that a GPU is in."""
        return self.hosts[self._gpu(gpu) // self.gpus_per_host]

    def nic_of(self, gpu: int) -> int:
        """NPU of the topology by which a GPU sends.

        GPUs share the NICs of their host evenly, in order.
        """
        host, within = divmod(self._gpu(gpu), self.gpus_per_host)
        return self.nics[host][within * self.nics_per_host // self.gpus_per_host]

    def tor_of(self, host: str) -> int:
        """Return the number of the ToR that a host is below."""
        return self.tors[self.index_of(host)]

    def gpus_of(self, host: str) -> range:
        """GPUs of a host."""
        first = self.index_of(host) * self.gpus_per_host
        return range(first, first + self.gpus_per_host)

    def index_of(self, host: str) -> int:
        """Position of a host in ``hosts``.

        Raises
        ------
        SpecError
            If there is no such host, or it failed.
        """
        given: object = host
        index = self._positions.get(given) if isinstance(given, str) else None
        if index is None:
            known = f"hosts are {self.hosts[0]} to {self.hosts[-1]}, less those that failed"
            raise SpecError(None, f"there is no host {shown(host)}", str(known))
        return index

    def _gpu(self, gpu: int) -> int:
        return whole("GPU", gpu, 0, self.gpu_count - 1)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {host: i for i, host in enumerate(self.hosts)}

    def __repr__(self) -> str:
        """Fabric and size."""
        return (
            f"<Cluster on {self.topology.name}: {len(self.hosts)} hosts of "
            f"{self.gpus_per_host} GPUs and {self.nics_per_host} NICs>"
        )


@dataclass(frozen=True, kw_only=True)
class HostOptions:
    """Hosts below a fabric, and what its links are where it is given in words.

    Attributes
    ----------
    gpus_per_host
        Number of GPUs of a host.
    nics_per_host
        Number of NICs of a host, with one port each.
    hosts_per_tor
        Number of hosts below a ToR, for clos:SPINESxTORS.
    oversubscription
        Ports below a ToR for each port above it. Default: 1.
    bandwidth
        Bandwidth of each link. Default: ``"100 Gb/s"``.
    host_bandwidth
        Bandwidth of the links between NICs and ToRs. Default: `bandwidth`.
    latency
        Latency of each link. Default: ``"0 ns"``.

    GPU ``g`` of a host sends by its NIC ``g * nics_per_host // gpus_per_host``.
    """

    gpus_per_host: int = 8
    nics_per_host: int = 8
    hosts_per_tor: int | None = None
    oversubscription: float | None = None
    bandwidth: Annotated[Quantity, "RATE"] | None = None
    host_bandwidth: Annotated[Quantity, "RATE"] | None = None
    latency: Annotated[Duration, "TIME"] | None = None

    def __post_init__(self) -> None:
        for name in ("gpus_per_host", "nics_per_host"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1, _MAX_GPUS))

    def check_unused(self, what: str, *, but: Sequence[str] = ()) -> None:
        """Refuse what a fabric has no use for."""
        for field in ("hosts_per_tor", "oversubscription", "host_bandwidth"):
            if field not in but and getattr(self, field) is not None:
                right = "leave it out, or give the fabric as 'clos:SPINESxTORS'"
                raise SpecError(field, f"{what} has its own", right)

    def ports(self, spines: int) -> int:
        """Ports of NICs below each ToR."""
        if self.hosts_per_tor is not None:
            if self.oversubscription is not None:
                raise SpecError("oversubscription", "hosts_per_tor says as much", "leave one out")
            return (
                whole("hosts_per_tor", self.hosts_per_tor, 1, _MAX_GPUS // self.nics_per_host)
                * self.nics_per_host
            )
        ratio = _ratio(1 if self.oversubscription is None else self.oversubscription)
        ports = spines * ratio
        if ports > _MAX_GPUS:
            raise SpecError(
                "oversubscription",
                f"{float(ports):g} NIC ports below a ToR are too many",
                f"make it or the fabric smaller, to at most {_MAX_GPUS}",
            )
        if ports.denominator != 1 or ports % self.nics_per_host:
            raise SpecError(
                "hosts_per_tor",
                f"{float(ports):g} NIC ports below a ToR of {spines} spines are no whole "
                f"number of hosts of {self.nics_per_host} NICs",
                instead=[{"hosts_per_tor": 1}, {"nics_per_host": 1}],
            )
        return int(ports)


def cluster(
    fabric: str | PathLike[str] | Topology,
    *,
    failed: Iterable[str] = (),
    failed_spines: int = 0,
    slow: Iterable[str] = (),
    seed: int | None = None,
    options: HostOptions | None = None,
    **keywords: Unpack[HostKeywords],
) -> Cluster:
    """Return the hosts of a fabric.

    Consecutive NPUs below a ToR are the NICs of a host: host 0 has the first ``nics_per_host``. A
    host that lost a NIC, its ToR or the link between them is left out.

    Parameters
    ----------
    fabric : str, path or Topology
        ``"clos:32x64"`` (spines x ToRs, and below each ToR as many NIC ports as it has spines),
        ``"clos:4x8x16"`` (16 ports below each ToR), ``"fat-tree:16"`` (switches of 16 ports), a
        topology file, or a topology that ``hk.topology.clos`` or ``fat_tree`` made.
    failed : iterable of str
        ``"spine3"`` or another device, and links such as ``"tor0,spine1"``.
    failed_spines : int
        How many more spines (of a fat tree: core switches) failed.
    slow : iterable of str
        Devices and links that carry less, such as ``"spine3=50Gb/s"`` and ``"tor0,spine1=50Gb/s"``.
    seed : int, optional
        Takes ``failed_spines`` at random; without it they are the highest-numbered ones.
    options, keywords
        What hosts and links are: a :class:`HostOptions`, or its fields by name.

    Raises
    ------
    SpecError
        When there is no such fabric, the NPUs below a ToR are no whole number of hosts, or something
        failed or is slow that is not there.
    """
    shape = options_of(HostOptions, options, keywords)
    nodes, links = read_failures(list_of("failed", failed), option="failed")
    parts = read_slow(list_of("slow", slow), option="slow")
    if isinstance(fabric, Topology):
        for field in ("bandwidth", "latency"):
            if getattr(shape, field) is not None:
                raise SpecError(field, "a Topology has its own", "leave it out")
        shape.check_unused(f"the topology {fabric.name!r}")
        whole_fabric, where = fabric, f"fabric {fabric.name}"
    else:
        spec = _spec(str(fabric), shape)
        nodes, links = [*spec.failed_nodes, *nodes], [*spec.failed_links, *links]
        whole_fabric = build_topology(replace(spec, failed_nodes=(), failed_links=()))
        where = f"fabric {fabric}"
    nodes += _lost_spines(whole_fabric, nodes, failed_spines, seed)
    topology = _slowed(_without(whole_fabric, nodes, links), parts)
    return _cluster(whole_fabric, topology, shape, where)


def _ratio(value: object) -> Fraction:
    right = "give a number above 0, such as 2"
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise SpecError("oversubscription", f"{shown(value)} is not a number", right)
    if not 0 < value <= _MAX_GPUS:
        raise SpecError("oversubscription", f"{shown(value)} is not valid", right)
    return Fraction(str(value))


def _spec(text: str, shape: HostOptions) -> TopologySpec:
    """Read a fabric given in words or as a file."""
    bandwidth, latency = shape.bandwidth, shape.latency
    builder = is_builder(text)
    bare = builder and "@" not in text
    rate = "100 Gb/s" if bandwidth is None and bare else bandwidth
    delay = "0 ns" if latency is None and bare else latency
    if rate is not None:
        parse_bandwidth(rate, field="bandwidth")
    if delay is not None:
        parse_time(delay, field="latency")
    spec = from_text(
        text,
        bandwidth=None if rate is None else [rate],
        latency=None if delay is None else [delay],
        option="fabric",
    )
    spec = replace(spec, failed_from="failed")
    if spec.builder is None or spec.builder.family != "clos" or not builder:
        shape.check_unused(text)
        return spec
    arguments = dict(spec.builder.arguments)
    if "hosts_per_tor" in arguments:
        shape.check_unused(text, but=["host_bandwidth"])
    else:
        spines = whole("spines", arguments["spines"], 1, (1 << 32) - 1)
        arguments["hosts_per_tor"] = shape.ports(spines)
    if shape.host_bandwidth is not None:
        rate = parse_bandwidth(shape.host_bandwidth, field="host_bandwidth")
        arguments["host_bandwidth"] = rate
    return replace(spec, builder=BuilderSpec("clos", arguments))


def _without(topology: Topology, nodes: list[str], links: list[tuple[str, str]]) -> Topology:
    if not nodes and not links:
        return topology
    try:
        return topology.without(nodes, links)
    except SpecError as error:
        raise SpecError("failed", str(error)) from None


def _slowed(topology: Topology, parts: Sequence[Slow]) -> Topology:
    try:
        return slowed(topology, parts) if parts else topology
    except SpecError as error:
        raise SpecError("slow", str(error)) from None


def _lost_spines(topology: Topology, but: Sequence[str], count: int, seed: int | None) -> list[str]:
    left = (name for name in topology.device_names if name not in but)
    found = [match for match in map(_SPINE.fullmatch, left) if match]
    spines = [match.group() for match in sorted(found, key=lambda match: int(match.group(2)))]
    lost = whole("failed_spines", count, 0, max(0, len(spines) - 1))
    if seed is None:
        return spines[len(spines) - lost :]
    return SeededRandom(whole("seed", seed, 0, MAX_SEED)).some(spines, lost)


def _cluster(before: Topology, after: Topology, shape: HostOptions, where: str) -> Cluster:
    """Find the hosts before anything failed, and keep those that are whole after it."""
    below = _below(before, where)
    tors = {tor: _TOR.fullmatch(tor) for tor in below if tor is not None}
    numbers = {tor: int(match.group(2)) for tor, match in tors.items() if match}
    if not numbers or len(numbers) < len(tors):
        raise SpecError(
            None,
            "is neither a Clos nor a fat tree",
            "NPUs are joined to switches tor0, ... or edge0, ..., as hk.topology.clos "
            "and fat_tree make them",
            origin=str(where),
        )
    position = {name: i for i, name in enumerate(before.device_names)}
    hosts = sorted(_hosts(below, shape.nics_per_host, where), key=lambda host: position[host[0][0]])
    now = {port: tor for tor, ports in _below(after, where).items() for port in ports}
    position = {name: i for i, name in enumerate(after.device_names)}
    kept = [
        (f"host{i}", tuple(position[port] for port in ports), numbers[tor])
        for i, (ports, tor) in enumerate(hosts)
        if tor is not None and all(now.get(port) == tor for port in ports)
    ]
    if not kept:
        raise SpecError(None, "no host is left", "let less fail", origin=str(where))
    if any(tor.startswith("tor") for tor in numbers):
        core_routing.Fabric(after)  # says what of a Clos is missing
    return Cluster(after, shape.gpus_per_host, shape.nics_per_host, *zip(*kept, strict=True))


def _hosts(
    below: Mapping[str | None, list[str]], nics: int, where: str
) -> Iterator[tuple[list[str], str | None]]:
    """Return the NPUs of each host, and its ToR."""
    for tor, ports in below.items():
        if len(ports) % nics:
            what = "without a ToR" if tor is None else f"below {tor}"
            raise SpecError(
                None,
                f"{len(ports)} NIC ports {what} are no whole number of hosts of {nics} NICs",
                "give another nics_per_host, and name what failed as failed",
                origin=str(where),
            )
        for i in range(0, len(ports), nics):
            yield ports[i : i + nics], tor


def _below(topology: Topology, where: str) -> dict[str | None, list[str]]:
    """NPUs below each ToR, and under None those that no ToR is joined to any more."""
    names, count = topology.device_names, topology.npu_count
    ends = set(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
    above: dict[int, list[str]] = defaultdict(list)
    for src, dst in sorted(ends):
        if src < count <= dst and (dst, src) in ends:
            above[src].append(names[dst])
    below: dict[str | None, list[str]] = defaultdict(list)
    for npu in range(count):
        if len(above[npu]) > 1:
            both = " and ".join(above[npu][:2])
            raise SpecError(
                None,
                f"{names[npu]} is joined to {both}",
                "join each NIC to one ToR",
                origin=str(where),
            )
        below[above[npu][0] if above[npu] else None].append(names[npu])
    return below
