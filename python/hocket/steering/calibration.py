"""Learn how a fabric that nobody knows spreads flows: which switch each source port leads to.

Probes whose time to live ends at a switch are answered by it (:mod:`hocket.steering.probes`). What they
show holds for the pair and the port of the receiver that were asked about, as long as no next hop comes
or goes. Where a model explains all of it, the hash is identified, and ports of other pairs follow
without a probe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

from hocket._checks import check_function, instance_of, list_of, one_of, whole
from hocket._core import steering as core
from hocket._results import Result, TableResult, figure, said
from hocket.errors import InfeasibleError, SpecError
from hocket.steering.hashes import ALGORITHMS, Header, SwitchHash, port_range
from hocket.steering.probes import probe_each
from hocket.units import shown

if TYPE_CHECKING:
    from hocket.collectives.collective import Progress

_FIELDS = (0x37, 0x33, 0x07, 0x03, 0x30)
"""Fields that are tried where none are named: with and without ports and protocol."""
_OF_LINUX = ("linux-layer3", "linux-layer4")
"""Algorithms whose fields are known."""
_AT_A_TIME = 32
_PORTS = (10_000, 32_767)
"""Below the ports that Linux gives programs."""


@dataclass(frozen=True)
class Identified(Result):
    """A hash that explains all answers.

    Attributes
    ----------
    hash
        The hash.
    switches
        The switch that each way leads to, in the order of the next hops; None where no answer shows it.
    """

    hash: SwitchHash = field(metadata=said(inline=SwitchHash, but=("offset",)))
    switches: tuple[str | None, ...]


@dataclass(frozen=True)
class SwitchPorts(Result):
    """Source ports that led to a switch."""

    switch: str
    protocol: str
    ports: list[int]


@dataclass(frozen=True)
class _Probed(Result):
    """The distance of the switches, and the number of probes that were sent."""

    hops: int
    probes: int


@dataclass(frozen=True)
class Probe(Result):
    """A probe, and the switch that it reached; None without an answer."""

    protocol: str
    src: str
    dst: str
    dport: int
    sport: int
    switch: str | None


class Calibration(TableResult):
    """The switch that each probe reached; made by :func:`calibrate`."""

    def __init__(self, hops: int, headers: Iterable[Header], answers: Iterable[str | None]) -> None:
        self.hops = hops
        self.headers = tuple(headers)
        self.answers = tuple(answers)

    _table = "_probes"

    @property
    def _probes(self) -> list[Probe]:
        each = zip(self.headers, self.answers, strict=True)
        return [Probe.taken_from(header, switch=answer) for header, answer in each]

    @property
    @figure("switches")
    def _switch_ports(self) -> list[SwitchPorts]:
        protocols = sorted({each.protocol for each in self.headers})
        return [
            SwitchPorts(switch, protocol, list(self.ports.get((protocol, switch), ())))
            for switch in self.switches
            for protocol in protocols
        ]

    @property
    @figure(inline=_Probed)
    def _probed(self) -> _Probed:
        return _Probed(self.hops, len(self.headers))

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Addresses of the switches that answered, sorted."""
        return tuple(sorted({each for each in self.answers if each is not None}))

    @property
    @figure()
    def unanswered(self) -> int:
        """Probes without an answer."""
        return self.answers.count(None)

    @cached_property
    def ports(self) -> Mapping[tuple[str, str], tuple[int, ...]]:
        """Source ports that led to a switch, by protocol and the switch's address."""
        found: dict[tuple[str, str], list[int]] = defaultdict(list)
        for header, answer in zip(self.headers, self.answers, strict=True):
            if answer is not None:
                found[header.protocol, answer].append(header.sport)
        return {key: tuple(ports) for key, ports in found.items()}

    def identify(
        self,
        *,
        seeds: Iterable[int] = range(1, 1 << 16),
        algorithms: Iterable[str] = ALGORITHMS,
        fields: Iterable[int] = _FIELDS,
        ways: int | None = None,
        most: int = 8,
        progress: Progress | None = None,
    ) -> list[Identified]:
        """Find the hashes that explain all answers: algorithm, fields, seed and order of next hops.

        Parameters
        ----------
        seeds : range of int
            Seeds that are tried, up to ``range(2**32)``, which takes minutes for each algorithm.
        algorithms, fields
            What is tried with each seed, see :class:`SwitchHash`.
        ways : int, optional
            Next hops; as many as answered, if it is not given.
        most : int
            How many are given at most. Where nothing tells two seeds of an algorithm apart, both are given.
        progress : callable, optional
            Called with (stage, done, total).

        Raises
        ------
        SpecError
            Naming the argument that makes no sense.
        InfeasibleError
            Where fewer than two switches answered, so that nothing is told apart.
        """
        if len(self.switches) < 2:
            raise InfeasibleError(
                None,
                f"{len(self.switches)} switches answered, so that there is no hash to be told",
                "probe a switch that has several next hops, with more ports",
            )
        check_function("progress", progress)
        if not isinstance(seeds, range) or seeds.step != 1:
            raise SpecError("seeds", f"{shown(seeds)} is not a range", "give range(1, 1000)")
        count = len(self.switches) if ways is None else whole("ways", ways, 1, 1 << 16)
        tried = _tried(algorithms, fields)
        of_switch = {switch: i for i, switch in enumerate(self.switches)}
        seen = [
            (header.core, of_switch[answer])
            for header, answer in zip(self.headers, self.answers, strict=True)
            if answer is not None
        ]
        found = core.identify(
            [header for header, _ in seen],
            [hop for _, hop in seen],
            count,
            [(each.algorithm, each.fields) for each in tried],
            (whole("seeds", seeds.start, 0, 1 << 32), whole("seeds", seeds.stop, 0, 1 << 32)),
            whole("most", most, 1, 1 << 20),
            progress,
        )
        return [
            Identified(
                SwitchHash(tried[i].algorithm, seed, tried[i].fields),
                tuple(None if hop is None else self.switches[hop] for hop in hops),
            )
            for i, seed, hops in found
        ]

    def __repr__(self) -> str:
        """Return the numbers of probes and of switches that they reached."""
        answered = len(self.answers) - self.unanswered
        return f"<Calibration: {answered} of {len(self.answers)} probes, {len(self.switches)} switches>"


def _tried(algorithms: Iterable[str], fields: Iterable[int]) -> list[SwitchHash]:
    names = list_of("algorithms", algorithms)
    for name in names:
        one_of("algorithms", name, ALGORITHMS)
    masks = [whole("fields", mask, 0, 63) for mask in list_of("fields", fields)]
    pairs = product([name for name in names if name not in _OF_LINUX], masks)
    known = [SwitchHash(name) for name in names if name in _OF_LINUX]
    return [SwitchHash(name, fields=mask) for name, mask in pairs] + known


def calibrate(
    src: str,
    dst: str,
    dport: int,
    *,
    hops: int = 2,
    protocols: Iterable[str] = ("tcp", "udp"),
    probes: int = 64,
    ports: tuple[int, int] = _PORTS,
) -> Calibration:
    """Learn which switch packets from here to a host reach, by their source ports.

    Parameters
    ----------
    src, dst, dport
        An address of this host, an address of another, and the port there.
    hops : int
        Which switch of the path is asked: 1 is the ToR, 2 the spine that the ToR has chosen.
    protocols : iterable of str
        ``"tcp"``, ``"udp"`` or both; switches hash the protocol too.
    probes : int
        How many ports are tried with each protocol.
    ports : (int, int)
        The range that they are taken from, evenly.

    Raises
    ------
    SpecError
        Naming the argument that makes no sense.
    InfeasibleError
        Where no probe can be sent from `src`.
    """
    count = whole("probes", probes, 1, 1 << 15)
    low, high = port_range(ports, 1)
    if high - low + 1 < count:
        raise SpecError("probes", f"{count} are more than the ports {low} to {high}", "give fewer")
    step = (high - low + 1) // count
    headers = [
        Header(src, dst, dport, low + i * step, protocol)
        for protocol in list_of("protocols", protocols)
        for i in range(count)
    ]
    return Calibration(hops, headers, probe_each(headers, hops))


def probe_port(
    header: Header,
    wanted: Mapping[int, str],
    *,
    ports: tuple[int, int] = _PORTS,
    first: int | None = None,
    taken: Iterable[int] = (),
) -> int:
    """Find by probes alone a source port by which packets cross the wanted switches.

    Parameters
    ----------
    header : Header
        The packets'; its source port does not matter.
    wanted : mapping of int to str
        The address that is to answer after each number of hops.
    ports : (int, int)
        The range that is searched.
    first : int, optional
        The port that is tried first; the others follow in order, around the range.
    taken : iterable of int
        Ports that are in use.

    Raises
    ------
    InfeasibleError
        Where no port of the range leads there.
    """
    low, high = port_range(ports, 1)
    start = low if first is None else whole("first", first, low, high)
    instance_of(Header, "header", header, "make one by hk.steering.Header(...)")
    instance_of(Mapping, "wanted", wanted, 'give one of hops to addresses, such as {2: "10.0.0.1"}')  # type: ignore[type-abstract]
    used = set(list_of("taken", taken))
    left = [port for port in (*range(start, high + 1), *range(low, start)) if port not in used]
    for begin in range(0, len(left), _AT_A_TIME):
        some = [header.by(port) for port in left[begin : begin + _AT_A_TIME]]
        for hops, switch in sorted(wanted.items()):
            answers = probe_each(some, hops)
            some = [each for each, answer in zip(some, answers, strict=True) if answer == switch]
        if some:
            return some[0].sport
    path = ", ".join(f"{switch} after {hops}" for hops, switch in sorted(wanted.items()))
    raise InfeasibleError(
        None, f"none of {len(left)} ports leads through {path}", "take another path or range"
    )
