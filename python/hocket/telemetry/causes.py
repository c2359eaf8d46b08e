"""Causes of what is slow: which part, or which path of NCCL's, and what to try.

docs/measured.md states the rules. What times alone single out comes first, then what NCCL says of itself.
What is only deduced from rates comes last, if nothing else is found.

References
----------
NCCL user guide 2.30, Environment variables and Troubleshooting (GPU-to-NIC communication, PCI access
control services, RDMA). NVIDIA/nccl 2.30.7, src/graph/tuning.cc: what protocols and algorithms cost.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median_low
from typing import Literal, TypeAlias

from hocket._results import Result, said
from hocket.collectives.collective import ROOTED
from hocket.telemetry.calls import KERNEL, Call, Recording
from hocket.telemetry.expected import Expectation
from hocket.telemetry.library_log import LibraryLog, merged
from hocket.telemetry.verdict import GAIN, MeasuredSize, tolerance_at
from hocket.units import counted, format_size

CauseName = Literal[
    "node",
    "pair",
    "NIC",
    "rank",
    "sockets",
    "no NVLink",
    "no GPUDirect RDMA",
    "NIC list",
    "far NIC",
    "algorithm told",
    "protocol told",
    "pick",
    "no LL128",
    "no NVLS",
    "few channels",
    "rail told",
    "PXN off",
    "queue pairs",
    "packet loss",
    "PCIe",
    "shared paths",
    "unknown",
]
_TOLD = 1 << 20
"""Size from which rates tell more than latencies [bytes]."""
_SLOWER = 0.8
"""Share of the rate of its like below which a NIC is slow: rates come in steps of 2 or more."""
_TWICE = (1.4, 4.0)
"""How many times as long data take that pass PCI Express twice: the uplink of a PCIe switch carries both
directions of it, so half of its rate is left, and processors forward it at less than that."""
_FALL = 2.0
"""How many times less a larger size reaches if packets are lost: links
without loss carry larger ones as well or better."""
_PLAIN = {"DEBUG", "DEBUG_SUBSYS", "DEBUG_FILE", "SOCKET_IFNAME", "IB_GID_INDEX", "TOPO_DUMP_FILE"}
"""Settings that make nothing slow: what is printed, and addresses."""
_MIDDLE = 4 << 20
"""Size up to which LL128 is faster than the protocol of large data [bytes]."""
_ALL = {"ALGO": ("ring", "tree"), "PROTO": ("ll", "ll128", "simple")}
"""What a setting may rule out."""
_BETWEEN = ("CUMEM_ENABLE", "MNNVL_ENABLE")
"""Settings that, if 0, turn off NVLinks between hosts (src/mnnvl.cc)."""
_LIMITS = ("MAX_NCHANNELS", "MAX_CTAS")
"""Settings that limit the channels of rings and trees."""
_UNSET = -2
"""The number that stands for no limit of channels."""
_HALF, _PXN, _RAIL = 2.0, 1.25, 1.3
"""How many times as long calls take at most if half of a path is lost, if small parts are not joined
(nccl-tests#187: 12 GB/s became 10), or if rings may not choose NICs (docs/measured.md:
92 became 72)."""
_PER_CHANNEL = 14e9
"""What a channel of a send to another node carries [bytes/s], as NCCL counts (P2P_PER_CHANNEL_NET_BW)."""
_FEW = 8
"""Names that a line lists; of more, it says how many."""
_PCIE = 64e9
"""What PCI Express 5 carries each way [bytes/s]."""
_BY_PROCESSOR = _PCIE / 2
"""What data between GPUs of a node reach at most by way of the processor, passing PCIe twice [bytes/s]."""
_NONE_LEFT = 4.0
"""How many times as long calls take at least if no NVLink is used: GPUs have four or more, so one that is
down costs less."""
_FAR = 3.0
"""How many times as long as the bound sizes from 64 MiB on take, if nothing predicts them and something is
slow: in published sweeps of healthy machines none takes more than 2.6."""
_LARGE = 64 << 20
_IN_HOST_MEMORY = re.compile(r"\b(?:GB10|Thor|Orin)\b")
"""GPUs that have no memory but the processor's: NICs reach it without GPUDirect RDMA."""
_WITHOUT_PEERS = re.compile(r"\bGeForce RTX [45]0")
"""GPUs that reach each other by way of host memory only: they have no NVLink, and their driver no P2P."""
_MOST_CALLS = 0.5
"""Share of calls that one rank delays above which it is no chance."""


_Way: TypeAlias = tuple[str, str]
"""An algorithm and a protocol, in small letters."""


@dataclass(frozen=True)
class Cause(Result):
    """A cause of what is slow, as far as recordings tell.

    Attributes
    ----------
    name
        What kind it is, such as ``"no GPUDirect RDMA"``; ``"unknown"`` if nothing tells.
    parts
        Hosts, NICs or ranks that it is about; empty for all.
    evidence
        What tells it, in words.
    action
        What to try, or what to measure, in this order.
    is_sure
        Whether runs or words of NCCL show it, and times that something is slow. If not, it is deduced from
        rates alone, or nothing predicts the sizes: then it is what to look at first.
    effect
        How many times as long calls take by it at most; ``None`` if nothing bounds it.
    """

    name: CauseName = field(metadata=said("cause"))
    parts: tuple[str, ...]
    evidence: str
    action: str
    is_sure: bool = True
    effect: float | None = None


@dataclass(frozen=True)
class _Case:
    """All that is known of some runs: the sizes that are slow, what NCCL says, and where they ran."""

    files: tuple[str, ...]
    sizes: Sequence[MeasuredSize]
    slow: Sequence[MeasuredSize]
    log: LibraryLog
    expectation: Expectation
    devices: frozenset[str]

    @property
    def is_between(self) -> bool:
        """Whether data pass between nodes."""
        return self.expectation.nodes > 1

    @property
    def ratio(self) -> float | None:
        """How many times as long as predicted large sizes take; None if that is not known."""
        known = [each.ratio for each in self.slow if each.ratio and each.size >= _TOLD]
        return median_low(known) if known else None

    def told(self, *names: str) -> Iterator[str]:
        """Yield those settings of some names that are there, as ``NCCL_ALGO=Tree``."""
        for name in names:
            if name in self.log.settings:
                yield f"NCCL_{name}={self.log.settings[name]}"

    def turned_on(self, name: str) -> list[str]:
        """Return a setting, as :meth:`told`, if it is there, and not 0."""
        return [*self.told(name)] if self.log.number(name) else []

    def is_off(self, name: str) -> bool:
        """Whether a setting is 0."""
        return self.log.number(name) == 0

    @property
    def flows(self) -> float:
        """NICs of all nodes, which send to one node each; infinite if that is not known."""
        hardware = self.expectation.hardware
        return math.inf if hardware is None else hardware.nics * self.expectation.nodes or math.inf

    @property
    def ranks(self) -> int:
        """Ranks of a node."""
        return self.expectation.network.npu_count // max(self.expectation.nodes, 1)

    def picks(self, each: MeasuredSize) -> set[_Way]:
        """Return the ways in which NCCL says that it runs a size; none if it does not say."""
        picks = self.log.picks.get(each.size, ())
        return {(name, protocol) for kind, name, protocol in picks if kind in ("", _plain(each))}

    def slower(self, each: MeasuredSize, is_left: Callable[[_Way], bool]) -> float | None:
        """Return how many times as long a size takes by the ways that are left, or None if none is."""
        ways = self.expectation.ways(each.kind, each.size)
        left = [took for way, took in ways.items() if is_left(way)]
        return min(left) / min(ways.values()) if left else None


def causes_of(
    sizes: Sequence[MeasuredSize],
    recordings: Sequence[Recording],
    judged: Sequence[tuple[Recording, Sequence[Call]]],
    expectation: Expectation,
) -> tuple[Cause, ...]:
    """Return the causes of what is slow: first what runs single out, then the greatest effect.

    Parameters
    ----------
    sizes
        As they were judged.
    recordings
        Each file, for what its runs have apart; those on fewer nodes than the topology has count too.
    judged
        Of each file the calls among all NPUs. What NCCL says of runs that are quick, or are not judged, is
        no cause.
    """
    odd, is_rest_slow = _odd_runs(recordings, _expected(sizes, expectation))
    found = [*odd, *_late_ranks(judged)]
    slow = [each for each in sizes if each.is_over and each.verdict != "start"]
    is_sure = bool(slow)
    if not slow:
        slow = [each for each in sizes if each.verdict == "not told" and each.size >= _TOLD]
    bare = [each.library for each in recordings if each.library]
    cases = _cases(sizes, slow, judged, bare, expectation)
    said = _told(_said, cases)
    said.sort(key=lambda each: (not each.is_sure, -(each.effect or math.inf)))
    fabric = [each for each in cases if any(size.verdict == "fabric" for size in each.slow)]
    is_open = not any(each.is_sure for each in said)
    if fabric and is_open and (is_rest_slow or not found):
        alone = [
            replace(each, slow=[size for size in each.slow if size.verdict == "fabric"])
            for each in fabric
        ]
        most = max((each.ratio or 1.0 for each in alone), default=1.0)
        small = [each for each in said if not _explains([each], most)]
        said = [each for each in said if each not in small]
        said += [each for rule in _DEDUCED for each in _told(rule, alone)]
        said = [*(said or _told(_unknown, alone)), *small]
    elif not said and not found:
        far = [each for each in cases if any(map(_is_far, each.slow))]
        said = _told(_slow_peers, far) or _told(_unknown, far)
    return (*found, *(replace(each, is_sure=each.is_sure and is_sure) for each in said))


def _is_far(each: MeasuredSize) -> bool:
    """Return whether a size that nothing predicts takes much longer than links need for it."""
    is_open = each.verdict == "not told" and each.size >= _LARGE and each.bound is not None
    return is_open and each.seconds > _FAR * (each.bound or 0.0)


def _cases(
    sizes: Sequence[MeasuredSize],
    slow: Sequence[MeasuredSize],
    judged: Sequence[tuple[Recording, Sequence[Call]]],
    bare: Sequence[LibraryLog],
    expectation: Expectation,
) -> list[_Case]:
    """Return runs with the sizes at which they are slow; those of which NCCL says nothing are one.

    A run is slow at a slow size if its time is nearer to what was measured than to what is predicted.
    """
    over = {(each.timing, each.kind, each.size): each for each in slow}
    devices = frozenset(each.device for each, _ in judged if each.device)
    runs: dict[int | None, tuple[LibraryLog, dict[str, None], dict[int, MeasuredSize]]] = {}
    for recording, calls in judged:
        for call in calls:
            each = over.get((recording.timing, call.kind, call.size))
            if each is not None and call.seconds >= math.sqrt((each.predicted or 0) * each.seconds):
                own = call.library
                key = id(own) if own or own.settings else None
                run = runs.setdefault(key, (own, {}, {}))
                run[1][recording.name] = None
                run[2][each.size] = each
    found = []
    for own, files, at in runs.values():
        others = [log for log in bare if not own.ranks or own.ranks.keys() & log.ranks.keys()]
        log = merged([own, *others])
        found.append(_Case(tuple(files), sizes, [*at.values()], log, expectation, devices))
    return found


def _told(rule: _Rule, cases: Sequence[_Case]) -> list[Cause]:
    """Return what a rule finds in some runs, each once; if it is not in all, it says in which."""
    found: dict[Cause, list[str]] = {}
    for case in cases:
        for cause in rule(case):
            found.setdefault(cause, []).extend(case.files)
    every = {file for case in cases for file in case.files}
    return [
        cause
        if {*files} == every
        else replace(cause, evidence=f"in {_all(dict.fromkeys(files))}: {cause.evidence}")
        for cause, files in found.items()
    ]


def _explains(causes: Iterable[Cause], ratio: float) -> bool:
    """Return whether causes together can be the greater part of calls that take so many times as long."""
    return ratio <= math.prod(each.effect or math.inf for each in causes) ** 2


def _plain(each: MeasuredSize) -> str:
    """Return the name of a collective as NCCL has it, in small letters."""
    return each.kind.replace("-", "")


def _all(names: Iterable[str]) -> str:
    """List names; of many, the first and how many there are."""
    every = [*names]
    more = f" and {len(every) - _FEW:,} more" if len(every) > _FEW + 1 else ""
    return ", ".join(every[:_FEW] if more else every) + more


def _unset(told: Iterable[str]) -> str:
    return f"unset {_all(each.partition('=')[0] for each in told)}"


# ---- what times single out ----


def _expected(
    sizes: Sequence[MeasuredSize], expectation: Expectation
) -> dict[tuple[str, int, int], float]:
    """Return what is predicted for each collective and size among all NPUs [s]."""
    npus = expectation.network.npu_count
    return {(each.kind, each.size, npus): each.predicted for each in sizes if each.predicted}


def _odd_runs(
    recordings: Sequence[Recording], expected: Mapping[tuple[str, int, int], float]
) -> tuple[list[Cause], bool]:
    """Find nodes, pairs and NICs of runs that are slower than others, and than predicted.

    Whatever took part in a quick run is no cause by itself. Of a slow run that leaves one part, several
    of which it is one, or none: then it is what lies between them. The flag is whether quick runs take
    longer than predicted too, so that something else is slow as well.
    """
    runs = _runs(recordings)
    shared = Counter(key for times in runs.values() for key in times)
    best: dict[_Key, float] = {}
    for times in runs.values():
        for key, seconds in times.items():
            best[key] = min(seconds, best.get(key, seconds))
    # What is predicted is over all NICs.
    healthy = {key: 0.0 if key[-1] else expected.get(key[:3], 0.0) for key in best}
    excess: dict[frozenset[str], float] = {}
    for parts, times in runs.items():
        large = {key for key in times if shared[key] > 1 and key[1] >= _TOLD}
        if large:
            share = median_low(times[key] / max(best[key], healthy[key]) for key in large)
            allowed = tolerance_at(max(size for _, size, *_ in large))
            excess[parts] = share if share > 1 + allowed else 1.0
    quick = [parts for parts, share in excess.items() if share == 1.0]
    innocent = frozenset().union(*quick)
    told: dict[frozenset[str], list[frozenset[str]]] = {}
    for parts, share in excess.items():
        if share > 1 and quick:
            told.setdefault(parts - innocent or parts, []).append(parts)
    over = [best[key] / healthy[key] for key in best if healthy[key] and key[1] >= _TOLD]
    is_over = bool(over) and median_low(over) > 1 + tolerance_at(_TOLD)
    order = sorted(told.items(), key=lambda each: (len(each[0]), sorted(each[0])))
    causes = [_odd(parts, slow, excess, innocent) for parts, slow in order]
    if is_over:
        more = (
            f"; the others take {median_low(over):.2f} times what is predicted, by something else"
        )
        causes = [replace(each, evidence=each.evidence + more) for each in causes]
    return causes, is_over


def _odd(
    parts: frozenset[str],
    slow: Sequence[frozenset[str]],
    excess: Mapping[frozenset[str], float],
    innocent: frozenset[str],
) -> Cause:
    names = tuple(sorted(parts))
    who, share = _all(names), max(excess[each] for each in slow)
    runs = f"{counted(len(slow), 'run')} with {who} took up to {share:.2f} times as long as others"
    if parts <= innocent:
        evidence = f"{runs}, and each of them is quick with others"
        action = "look at what lies between them: cables, ports and switches of this path"
        return Cause("pair", names, evidence, action)
    if len(names) == 1:
        is_nic = ":" in names[0] or names[0].startswith(("mlx", "bnxt", "irdma", "efa", "rdma"))
        action = (
            "look at its port and cable (ibstat, error counters), or leave it out of NCCL_IB_HCA"
            if is_nic
            else "run it alone (all_reduce_perf on one node), compare ib_write_bw of each of its NICs, "
            "ACS, clocks and NVLinks with those of a quick node"
        )
        evidence = f"{runs}, and runs without it are quick"
        # Of a node that is in one slow run only, the path to the other one may be slow.
        is_sure = is_nic or len(slow) > 1 or slow[0] == parts
        if not is_sure:
            action = f"measure it with another that is quick: if that is quick, look at the path; {action}"
        return Cause("NIC" if is_nic else "node", names, evidence, action, is_sure)
    action = f"measure each of them with one that is quick: {_all(sorted(innocent)[:3])}"
    return Cause("unknown", names, f"{runs}; it is one of them, or their path", action)


_Key: TypeAlias = tuple[str, int, int, int | None, int]
"""What runs have in common that can be compared: collective, size, NPUs, nodes, and NICs if told which."""


def _runs(recordings: Sequence[Recording]) -> dict[frozenset[str], dict[_Key, float]]:
    """Return the times of each run by what took part: its hosts, and the NICs that it was told to use."""
    found: dict[frozenset[str], dict[_Key, float]] = {}
    for call in (call for recording in recordings for call in recording.calls):
        if call.hosts:
            nics = call.library.hcas
            times = found.setdefault(frozenset(call.hosts) | nics, {})
            key = call.kind, call.size, call.npus, call.nodes, len(nics)
            times[key] = min(call.seconds, times.get(key, call.seconds))
    return found


def _late_ranks(judged: Sequence[tuple[Recording, Sequence[Call]]]) -> Iterator[Cause]:
    """Find a rank that comes late to most calls: its kernel is the shortest, as all others wait for it."""
    by_call: dict[tuple[object, ...], dict[str, float]] = {}
    for recording, call in ((recording, call) for recording, calls in judged for call in calls):
        # The root of a broadcast ends first, and leaves of a reduce do, though nobody waits for them.
        if recording.timing == KERNEL and call.sequence is not None and call.kind not in ROOTED:
            key = call.kind, call.size, call.group, call.ranks, call.sequence
            by_call.setdefault(key, {})[call.recorder] = call.seconds
    late: Counter[str] = Counter()
    waits: list[float] = []
    whole = [took for took in by_call.values() if len(took) > 2]
    for took in whole:
        last = min(took, key=took.__getitem__)
        wait = median_low(seconds for rank, seconds in took.items() if rank != last) - took[last]
        if wait > GAIN * took[last]:
            late[last] += 1
            waits.append(wait)
    for rank, count in late.most_common(1):
        if count > 1 and count > _MOST_CALLS * len(whole):
            evidence = (
                f"others wait for {rank} in {count} of {len(whole)} calls, "
                f"{median_low(waits) * 1e6:,.0f} us at the median"
            )
            action = (
                "look for what this rank does longer before its calls: more work, lower clocks, a "
                "busy processor; the network is not the cause"
            )
            yield Cause("rank", (rank,), evidence, action)


# ---- what NCCL says of itself ----


def _said(case: _Case) -> Iterator[Cause]:
    """Find what NCCL says; if it explains the smaller part of what is slow, it is only possible."""
    found = [each for rule in _SAID for each in rule(case)]
    is_whole = _explains((each for each in found if each.is_sure), case.ratio or 1.0)
    yield from (replace(each, is_sure=each.is_sure and is_whole) for each in found)


def _sockets(case: _Case) -> Iterator[Cause]:
    if case.is_between and case.log.networks == {"Socket"}:
        off = [*case.turned_on("IB_DISABLE"), *case.told("NET")]
        named = [*case.told("IB_HCA")]
        evidence = f"NCCL sends over TCP sockets{f', as {_all(off)} says' if off else ''}"
        action = f"{_unset(off)}; " if off else ""
        action += f"let {_all(named)} name NICs that ibv_devinfo shows there; " if named else ""
        action += (
            "install libibverbs where the job runs, or the plugin of the network (EFA, Slingshot, TCPX), "
            "and give a container /dev/infiniband; then the log has 'NET/IB : Using' or the plugin's name. "
            "If the network has TCP only, set NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4"
        )
        if any(len(numbers) > 1 for numbers in case.log.interfaces.values()):
            action += (
                ", and give each interface a subnet of its own: those of one subnet send by one"
            )
        yield Cause("sockets", (), evidence, action)


def _few_interfaces(case: _Case) -> Iterator[Cause]:
    """Find TCP over fewer interfaces than NCCL names and a node has."""
    hardware, log = case.expectation.hardware, case.log
    if not case.is_between or hardware is None:
        return
    whole = [host for host, ranks in log.ranks.items() if len(ranks) >= case.ranks]
    shares = [
        (len(log.used[host]), min(len(log.interfaces[host]), hardware.nics))
        for host in whole
        if host in log.used and host in log.interfaces
    ]
    used, there = min(shares, key=lambda each: each[0] / max(each[1], 1), default=(1, 1))
    if used < there:
        evidence = f"channels use {used} of {there} interfaces that NCCL names for TCP"
        action = (
            "name in NCCL_SOCKET_IFNAME those that lead to the other nodes, use a newer NCCL, or set "
            f"NCCL_MIN_NCHANNELS={2 * there}"
        )
        yield Cause("NIC list", (), evidence, action, effect=math.ceil(there / used))


_JOINED = (
    "let each process see all GPUs of its node: one container per node, CUDA_VISIBLE_DEVICES, Slurm's "
    "--gpus-per-task; check nvidia-smi topo -m and nvlink -s, and with NVSwitches that "
    "nvidia-fabricmanager runs"
)
"""What to try if GPUs of a node do not use their NVLinks."""


def _no_nvlink(case: _Case) -> Iterator[Cause]:
    hardware = case.expectation.hardware
    if hardware is None or hardware.is_on_pci or _are_without_peers(case):
        return
    # Within a node no data need a NIC.
    wrong = {"SHM"} if case.is_between else {"SHM", "NET", "GDRDMA"}
    hosts = tuple(host for host, ways in case.log.ways.items() if ways & wrong)
    level = case.log.settings.get("P2P_LEVEL", "").upper()
    off = case.turned_on("P2P_DISABLE")
    if hosts or off or level in ("0", "LOC"):
        told = [*off, *case.told("P2P_LEVEL")]
        told += [each for name in _BETWEEN if case.is_off(name) for each in case.told(name)]
        way = {"SHM": "through host memory (SHM)"}.get(
            "".join(case.log.all_ways & wrong), "over the network"
        )
        where = (
            f" of {_all(hosts)} pass data {way}" if hosts else " do not reach each other's memory"
        )
        action = f"{f'{_unset(told)}; ' if told else ''}{_JOINED}"
        joins = "NVLinks"
        if hardware.bandwidth <= _PCIE:
            joins = f"links of {hardware.bandwidth * 1e-9:g} GB/s"
            action += "; with PCIe alone turn off IOMMU and ACS, or try NCCL_P2P_LEVEL=SYS"
        yield Cause("no NVLink", hosts, f"GPUs{where}, though {joins} join them", action)


def _are_without_peers(case: _Case) -> bool:
    """Whether host memory is the only way between GPUs of a node."""
    return bool(case.devices) and all(map(_WITHOUT_PEERS.search, case.devices))


def _no_gdr(case: _Case) -> Iterator[Cause]:
    log = case.log
    if not case.is_between or "Socket" in log.networks:
        return
    if any(_IN_HOST_MEMORY.search(each) for each in case.devices):
        return
    hosts = sorted(host for host in log.ways.keys() | log.no_gdr.keys() if _lacks_gdr(log, host))
    level = log.settings.get("NET_GDR_LEVEL", "").upper()
    off = case.turned_on("NET_GDR_DISABLE")
    if not hosts and not off and level not in ("0", "LOC"):
        return
    told = [*case.told(*(["NET_GDR_LEVEL"] if level not in ("SYS", "5") else []))]
    told += off
    is_half = any({"NET", "GDRDMA"} <= log.ways.get(host, set()) for host in hosts)
    where = f" on {_all(hosts)}" if hosts else ""
    evidence = (
        f"NICs reach the memory of GPUs{where} on some channels only"
        if is_half
        else f"NICs do not reach the memory of GPUs{where}: GPUDirect RDMA is off"
    )
    first = f"{_unset(told)}; " if told else ""
    first += "set NCCL_NET_GDR_READ=1; " if is_half else ""
    action = (
        f"{first}load nvidia-peermem there (NCCL before 2.23 may not see it), or use a kernel and driver "
        "with DMA-BUF; then channels read NET/IB/0/GDRDMA; if NICs are far from GPUs, try "
        "NCCL_NET_GDR_LEVEL=SYS"
    )
    yield Cause("no GPUDirect RDMA", tuple(hosts), evidence, action)


def _lacks_gdr(log: LibraryLog, host: str) -> bool:
    """Return whether a host passes data without GPUDirect RDMA: its channels say so, or else all NICs."""
    ways = log.ways.get(host, set()) & {"NET", "GDRDMA"}
    off, there = log.no_gdr.get(host, set()), log.nics.get(host, {}).keys()
    return "NET" in ways or (not ways and bool(off) and there <= off)


def _slow_nic(case: _Case) -> Iterator[Cause]:
    """Find NICs that are slower than those of the same name elsewhere, or than the topology states.

    If a host shows more NICs than the topology has, each is a port of one: its rate is a share.
    """
    log, hardware = case.log, case.expectation.hardware
    slow: list[tuple[str, int, float]] = []
    for (host, nic), rate in log.rates.items():
        used = log.used_ports(host, case.ranks)
        if used is not None and nic not in used:
            continue
        alike = [other for (_, name), other in log.rates.items() if name == nic]
        stated = 0.0
        if used is not None and hardware is not None and hardware.nics:
            ports = max(len(log.ports(host)), hardware.nics)
            stated = hardware.nic_bandwidth / ports * 8e-6
        best = max(*alike, stated, rate)
        if rate < _SLOWER * best:
            slow.append((f"{nic} of {host}", rate, best))
    if slow and case.is_between:
        names = [name for name, *_ in slow]
        _, rate, best = min(slow, key=lambda each: each[1])
        evidence = f"{_all(names)}: {rate / 8000:g} GB/s, not {best / 8000:g}"
        action = (
            "look at port and cable (ibstat, ibdiagnet): its rate was negotiated down; or leave it "
            "out of NCCL_IB_HCA on all nodes"
        )
        yield Cause("NIC", tuple(names), evidence, action, effect=best / rate)


def _nic_list(case: _Case) -> Iterator[Cause]:
    """Find fewer NICs than the topology has; what all ranks of a node say tells which are used."""
    hardware, log = case.expectation.hardware, case.log
    if not case.is_between or hardware is None or not hardware.nics or "Socket" in log.networks:
        return
    whole = [host for host, ranks in log.ranks.items() if len(ranks) >= case.ranks]
    used = [ports for host in whole if (ports := log.used_ports(host, case.ranks)) is not None]
    seen = [ports for host in whole if (ports := log.ports(host))]
    there = min(map(len, seen), default=0)
    if not log.ranks and log.hcas:
        there = len(log.hcas)
    least = min([*([there] if there else []), *map(len, used)], default=0)
    if not 0 < least < hardware.nics:
        return
    told = [*case.told("IB_HCA")] if log.hcas else []
    evidence = f"NCCL uses {least} of {hardware.nics} NICs of a node"
    evidence += f", as {_all(told)} says" if told else ""
    if told:
        action = f"{_unset(told)}, or name all NICs that lead to the network of the GPUs"
    elif 0 < there < hardware.nics:
        action = "bring up the other NICs: ibv_devinfo shows which ports are down"
    else:
        action = (
            "compare nvidia-smi topo -m with the NICs of the log: NCCL takes those nearest to GPUs; in a "
            "virtual machine or with a plugin give it the real topology (NCCL_TOPO_FILE)"
        )
    yield Cause("NIC list", (), evidence, action, effect=math.ceil(hardware.nics / least))


def _far_nic(case: _Case) -> Iterator[Cause]:
    far = sorted(case.log.nic_paths & {"PHB", "SYS"})
    gdr = "GDRDMA" in case.log.all_ways
    if case.is_between and far and gdr:
        evidence = f"between GPUs and NICs data pass a processor ({_all(far)})"
        action = (
            "let each GPU use a NIC at its own PCIe switch (NCCL_IB_HCA, slots); in a virtual "
            "machine give NCCL the real topology (NCCL_TOPO_FILE)"
        )
        # Below some processors data pass at full rate.
        yield Cause("far NIC", (), evidence, action, "SYS" in far, effect=_HALF)


def _algorithm_told(case: _Case) -> Iterator[Cause]:
    return _ruled_out(case, "algorithm told", "ALGO", 0)


def _protocol_told(case: _Case) -> Iterator[Cause]:
    return _ruled_out(case, "protocol told", "PROTO", 1)


def _ruled_out(case: _Case, name: CauseName, setting: str, place: int) -> Iterator[Cause]:
    """Find a setting that rules out what is predicted to be the fastest, or anything if that is unknown."""
    for told in case.told(setting):
        wanted = {(each.kind, each.way[place].lower()) for each in case.slow if each.way}
        either = wanted or {
            (each.kind, one)
            for each in case.slow
            for one in _ALL[setting]
            if one != "tree" or each.kind == "all-reduce"
        }
        value = case.log.settings[setting]
        out = _all(sorted({one for kind, one in either if not _is_allowed(kind, one, value)}))
        if out and wanted:
            evidence = f"{told}, and {out} is predicted to be the fastest"
        else:
            evidence = f"{told} rules out {out}, and nothing predicts what is the fastest here"
        if out:
            needed = ", unless the plugin of the network needs it, as older ones of EFA do"
            action = f"{_unset([told])}{needed if setting == 'PROTO' else ''}"
            effects = [
                case.slower(each, partial(_is_left, each.kind, place, value)) for each in case.slow
            ]
            effect = max((each for each in effects if each), default=None)
            yield Cause(name, (), evidence, action, effect is not None, effect)


def _is_allowed(kind: str, name: str, told: str) -> bool:
    """Return whether NCCL_ALGO or NCCL_PROTO leaves a collective a name, as in ``ring;allreduce:^tree``."""
    parts = [part.rpartition(":")[::2] for part in told.lower().split(";")]
    general = [names for before, names in parts if not before]
    own = [names for before, names in parts if before == kind.replace("-", "")]
    for names in (own or general)[-1:]:
        is_ruled_out = names.startswith("^")
        return (name.replace("-", "") in names.lstrip("^").split(",")) is not is_ruled_out
    return True


def _slow_pick(case: _Case) -> Iterator[Cause]:
    """Find sizes that NCCL runs by another way than the fastest, though no setting asks it to."""
    for each, fastest, picks in _other_picks(case):
        effect = case.slower(each, picks.__contains__)
        if effect is not None and effect > 1 + GAIN and not fastest.startswith("nvls"):
            faster = f"{fastest} is predicted to be {effect:.2f} times as fast"
            evidence = f"NCCL runs {_picked(each, picks)}; {faster}"
            yield Cause("pick", (), evidence, _told_to(fastest), effect=effect)
            return


def _other_picks(case: _Case) -> Iterator[tuple[MeasuredSize, str, set[_Way]]]:
    """Yield sizes, large ones first, that NCCL runs otherwise than is predicted to be the fastest."""
    if any(case.told("ALGO", "PROTO")):
        return
    for each in sorted(case.slow, key=lambda each: -each.size):
        way = each.way and (each.way[0].lower(), each.way[1].lower())
        picks = case.picks(each)
        if way and picks and way not in picks:
            yield each, " and ".join(way), picks


def _picked(each: MeasuredSize, picks: set[_Way]) -> str:
    return f"{format_size(each.size)} with {_all(sorted(map(' and '.join, picks)))}"


def _told_to(fastest: str) -> str:
    """Return how to try the way that is predicted to be the fastest."""
    algorithm, protocol = fastest.split(" and ")
    return (
        f"set NCCL_ALGO={algorithm} NCCL_PROTO={protocol} for this size alone; if it is faster, give "
        "NCCL a table that says so (hocket nccl tuner write)"
    )


def _is_left(kind: str, place: int, told: str, way: _Way) -> bool:
    return _is_allowed(kind, way[place], told)


def _no_ll128(case: _Case) -> Iterator[Cause]:
    """Find sizes between those of latency and those of bandwidth, for which NCCL has no LL128."""
    ways = {each.way[1].lower() for each in case.slow if each.way}
    sizes = [each for each in case.slow if each.size <= _MIDDLE]
    if (
        case.log.ll128 == {False}
        and "PROTO" not in case.log.settings
        and ("ll128" in ways or (sizes and not ways))
    ):
        evidence = "NCCL's own table has no bandwidth for LL128, which is the fastest at such sizes"
        action = (
            "try a newer NCCL, which turns LL128 on where it is safe: NVLinks between all GPUs of a node, "
            "and no processor between GPU and NIC; if told by NCCL_PROTO it may corrupt data"
        )
        slower = (case.slower(each, lambda way: way[1] != "ll128") for each in sizes)
        effect = max((each for each in slower if each), default=_HALF)
        yield Cause("no LL128", (), evidence, action, effect=effect)


def _no_nvls(case: _Case) -> Iterator[Cause]:
    expected = [each for each in case.slow if each.way and each.way[0].startswith("nvls")]
    picks = {algorithm for each in expected for algorithm, _ in case.picks(each)}
    is_off = case.is_off("NVLS_ENABLE") or case.log.nvls == {0}
    is_off = is_off or any(not each.startswith("nvls") for each in picks)
    is_on = any(case.log.nvls)
    if expected and (is_off or (not is_on and any(each.instead for each in expected))):
        sizes = f"{expected[0].kind} of {format_size(expected[0].size)} and more"
        instead = _all(dict.fromkeys(each.instead for each in expected if each.instead))
        told = _all(case.told("NVLS_ENABLE")) if case.is_off("NVLS_ENABLE") else ""
        why = told or f"it takes as long as {instead}"
        if is_off and not told:
            why = f"NCCL runs {_all(sorted(picks))}" if picks else "NCCL has 0 nvls channels"
        action = (
            f"{'unset NCCL_NVLS_ENABLE; ' if told else ''}check that nvidia-fabricmanager runs, that "
            "all GPUs of a node take part, and that the log has 'NVLS multicast support is available'"
        )
        slower = (case.slower(each, lambda way: not way[0].startswith("nvls")) for each in expected)
        effect = max((each for each in slower if each), default=None)
        evidence = f"NVLink SHARP is not used for {sizes}: {why}"
        # Links that are slow by as much look the same.
        yield Cause("no NVLS", (), evidence, action, is_off, effect)


def _few_channels(case: _Case) -> Iterator[Cause]:
    """Find a limit below the channels that NCCL makes of its graph, twice as many (src/graph/connect.cc).

    Without a limit, fewer than those of the graph are too few, or than the NICs of a node.
    """
    graph = max((each.pick.channels for each in case.slow if each.pick), default=0)
    hardware = case.expectation.hardware
    nics = hardware.nics if hardware is not None and case.is_between else 0
    limits = [*case.told(*_LIMITS)]
    told = [
        max(number, 1)  # as NCCL does
        for name in _LIMITS
        if (number := case.log.number(name)) not in (None, _UNSET)
    ]
    least = min([*told, *case.log.channels], default=0)
    if told and min(told) == least < 2 * graph:
        evidence = f"{_all(limits)}, and NCCL would use up to {2 * graph} channels"
        yield Cause("few channels", (), evidence, _unset(limits), effect=2 * graph / least)
    elif 0 < least < max(graph, nics):
        most = max(graph, nics)
        evidence = f"NCCL has {least} channels, and needs {most}, for " + (
            f"{nics} NICs of a node" if nics == most else "the links of a node"
        )
        action = (
            "look at NCCL's graph (NCCL_GRAPH_DUMP_FILE, hocket nccl audit); in a virtual machine give it "
            f"the real topology (NCCL_TOPO_FILE); then set NCCL_MIN_NCHANNELS={most}"
        )
        yield Cause("few channels", (), evidence, action, effect=most / least)


def _few_channels_of_sends(case: _Case) -> Iterator[Cause]:
    """Find sends to other nodes with fewer channels than fill the NICs of a GPU."""
    hardware = case.expectation.hardware
    sends = [each for each in case.slow if each.kind == "send-receive" and each.size >= _TOLD]
    least = min(case.log.per_peer, default=0)
    if not case.is_between or hardware is None or not hardware.nics or not sends or not least:
        return
    full = hardware.nic_bandwidth / min(hardware.nics, hardware.npus)
    best = max(each.size / each.seconds for each in sends)
    needed = math.ceil(full / _PER_CHANNEL)
    if least < needed and best < _SLOWER * full:
        told = [*case.told("P2P_PER_CHANNEL_NET_BW", "NCHANNELS_PER_NET_PEER", "MAX_P2P_NCHANNELS")]
        evidence = (
            f"{least} p2p channels per peer{f', as {_all(told)} says' if told else ''}, and {needed} fill "
            f"the NICs of a GPU: sends reach {best * 1e-9:.4g} of {full * 1e-9:.4g} GB/s"
        )
        action = f"{f'{_unset(told)}; ' if told else ''}set NCCL_NCHANNELS_PER_NET_PEER={needed}"
        yield Cause("few channels", (), evidence, action, effect=needed / least)


def _rail_told(case: _Case) -> Iterator[Cause]:
    """Find a setting that keeps each ring on one NIC of all nodes, or lets it change NICs."""
    hardware = case.expectation.hardware
    if case.log.number("CROSS_NIC") not in (0, 1) or hardware is None or hardware.nics < 2:
        return
    if case.is_between and any(each.verdict == "fabric" for each in case.slow):
        told = [*case.told("CROSS_NIC")]
        what = "must" if case.is_off("CROSS_NIC") else "need not"
        evidence = f"{_all(told)}: a ring {what} keep to one NIC number on all nodes"
        action = f"{_unset(told)}: then NCCL takes the faster; or try the other value"
        yield Cause("rail told", (), evidence, action, is_sure=False, effect=_RAIL)


def _pxn_off(case: _Case) -> Iterator[Cause]:
    is_all_to_all = any(each.kind == "all-to-all" for each in case.slow)
    told = case.turned_on("PXN_DISABLE")
    told += case.told("P2P_PXN_LEVEL") if case.is_off("P2P_PXN_LEVEL") else []
    if case.is_between and is_all_to_all and told:
        evidence = f"{_all(told)}, so each GPU sends small parts to all GPUs of other nodes"
        yield Cause("PXN off", (), evidence, _unset(told), effect=_PXN)


def _queue_pairs(case: _Case) -> Iterator[Cause]:
    """Find bonds with one queue pair a connection, which sends over one of their ports."""
    names = {port for host in case.log.nics for port in case.log.ports(host)}
    bonds = sorted(name for name in names if "bond" in name)
    pairs = case.log.number("IB_QPS_PER_CONNECTION") or 1
    if case.is_between and bonds and pairs <= 1:
        evidence = f"NICs are bonds ({_all(bonds[:4])}), and a connection has one queue pair"
        action = "set NCCL_IB_QPS_PER_CONNECTION=2 or 4, with NCCL_IB_SPLIT_DATA_ON_QPS=0 and 1"
        yield Cause("queue pairs", (), evidence, action, is_sure=False, effect=_HALF)


# ---- what is deduced from rates ----


def _unpredicted_pick(case: _Case) -> Iterator[Cause]:
    """Find sizes that NCCL runs by a way for which nothing predicts a time here."""
    for each, fastest, picks in _other_picks(case):
        if case.slower(each, picks.__contains__) is None and each.ratio:
            evidence = (
                f"NCCL runs {_picked(each, picks)}, which nothing predicts here, and takes "
                f"{each.ratio:.2f} times what is predicted for {fastest}"
            )
            yield Cause("pick", (), evidence, _told_to(fastest), is_sure=False)
            return


def _as_without_nvlink(case: _Case) -> Iterator[Cause]:
    """Find nodes with NVLinks that are as slow as if data passed the processor."""
    hardware, ratio = case.expectation.hardware, case.ratio
    if case.is_between or hardware is None or hardware.is_on_pci or ratio is None:
        return
    best = max(each.busbw for each in case.slow if each.size >= _TOLD)
    if ratio >= _NONE_LEFT and best <= _BY_PROCESSOR < hardware.bandwidth:
        evidence = (
            f"large sizes take {ratio:.1f} times what is predicted{_busbw(case)}: no faster than data by "
            "way of the processor, as if no NVLink was used"
        )
        action = f"{_JOINED}; NCCL_DEBUG=INFO shows how channels pass data: P2P, SHM or NET"
        yield Cause("no NVLink", (), evidence, action, is_sure=False)


def _slow_peers(case: _Case) -> Iterator[Cause]:
    """Find GPUs of a node that reach each other over PCI Express alone, and slowly."""
    hardware = case.expectation.hardware
    if case.is_between or hardware is None or "P2P" not in case.log.all_ways:
        return
    if hardware.is_on_pci or hardware.bandwidth <= _PCIE:
        last = max(case.slow, key=lambda each: each.size)
        evidence = (
            f"GPUs reach each other's memory over PCIe, and {format_size(last.size)} has a busbw of "
            f"{last.busbw * 1e-9:.4g} GB/s: as if data passed PCIe twice, or between processors"
        )
        action = (
            "disable ACS of PCIe switches (lspci -vvv: ACSCtl with SrcValid+) and IOMMU; then measure "
            "pairs of GPUs with P2P and without (NCCL_P2P_DISABLE=1), and keep P2P below one processor "
            "(NCCL_P2P_LEVEL=PHB) if that is faster"
        )
        yield Cause("PCIe", (), evidence, action, is_sure=False)


def _packet_loss(case: _Case) -> Iterator[Cause]:
    """Find RoCE that carries large sizes worse than small ones: lost packets are sent again."""
    kind = case.slow[0].kind
    rates = {
        each.size: each.busbw for each in case.sizes if each.kind == kind and each.size >= _TOLD
    }
    last = max(rates, default=0)
    best = max(rates, key=rates.__getitem__, default=0)
    if not case.is_between or "RoCE" not in case.log.networks or not rates:
        return
    evidence = ""
    if rates[best] > _FALL * rates[last]:
        evidence = (
            f"busbw falls from {rates[best] * 1e-9:.4g} GB/s at {format_size(best)} to "
            f"{rates[last] * 1e-9:.4g} at {format_size(last)} over RoCE"
        )
    elif (case.ratio or 0) > max(case.flows, _TWICE[1]) and "GDRDMA" in case.log.all_ways:
        evidence = (
            f"large sizes take {case.ratio:.0f} times what is predicted{_busbw(case)} over RoCE, more "
            f"than if all {case.flows} NICs sent over one link"
        )
    if evidence:
        action = (
            "compare counters of NICs before and after a run (ethtool -S: rx_discards_phy, rx_prio*_pause; "
            "rdma statistic: out_of_sequence, packet_seq_err) and drops of switches; then set up PFC and "
            "ECN for the priority of NCCL_IB_TC on NICs and switches"
        )
        evidence += ": packets may be lost and sent again"
        yield Cause("packet loss", (), evidence, action, is_sure=False)


def _pcie(case: _Case) -> Iterator[Cause]:
    """Find two nodes with GPUDirect RDMA that are as slow as if data passed PCI Express twice."""
    ratio = case.ratio
    is_half = ratio is not None and _TWICE[0] <= ratio <= _TWICE[1]
    if case.expectation.nodes == 2 and is_half and "GDRDMA" in case.log.all_ways:
        evidence = (
            f"GPUDirect RDMA is on, and large sizes take {ratio:.2f} times what is predicted"
            f"{_busbw(case)}: as if data passed PCIe twice, by way of the processor"
        )
        action = (
            f"{_partial(case)}disable ACS of PCIe switches (lspci -vvv: ACSCtl with SrcValid+), in a "
            "virtual machine enable ATS; then ib_write_bw --use_cuda of each NIC, alone: if it is full, "
            "look at the network"
        )
        if "RoCE" in case.log.networks:
            action += (
                "; over RoCE try NCCL_IB_ECE_ENABLE=0, and NCCL_IB_QPS_PER_CONNECTION=4 with "
                "NCCL_IB_SPLIT_DATA_ON_QPS=1"
            )
        yield Cause("PCIe", (), evidence, action, is_sure=False)


def _shared_paths(case: _Case) -> Iterator[Cause]:
    """Find more than two nodes whose flows may share links while others are idle."""
    ratio = case.ratio
    if ratio is None or case.expectation.nodes < 3 or "GDRDMA" not in case.log.all_ways:
        return
    if ratio > case.flows:  # no sharing of links explains that
        return
    is_hashed = "RoCE" in case.log.networks
    evidence = (
        f"GPUDirect RDMA is on, and large sizes take {ratio:.2f} times what is predicted{_busbw(case)} "
        f"on {case.expectation.nodes} nodes: flows may share links"
        f"{', as ECMP places them by a hash' if is_hashed else ''}"
    )
    action = (
        f"{_partial(case)}measure pairs of nodes, below one leaf and across leaves, and give all logs; "
        "then adaptive routing (NCCL_IB_ADAPTIVE_ROUTING=1) and NCCL_IB_QPS_PER_CONNECTION=4 with "
        "NCCL_IB_SPLIT_DATA_ON_QPS=1; pairs that are slow below one leaf: ACS and NICs of these nodes"
    )
    yield Cause("shared paths", (), evidence, action, is_sure=False)


def _partial(case: _Case) -> str:
    """Ask for the rest of a log that does not tell which NICs are used."""
    if any(len(ranks) >= case.ranks for ranks in case.log.ranks.values()):
        return ""
    return "give the logs of all ranks of a node, which tell the NICs that they use; then "


def _unknown(case: _Case) -> Iterator[Cause]:
    missing = (
        ""
        if case.log
        else "run again with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING; "
    )
    if any(each.timing == KERNEL for each in case.slow):
        missing = f"give the files of all ranks, as waiting may be in kernels; {missing}"
    if case.is_between:
        action = (
            f"{missing}measure each pair of nodes, and each NIC alone (NCCL_IB_HCA), and give all "
            "logs: parts of slow runs that are in no quick run are the cause"
        )
    else:
        action = (
            f"{missing}nvidia-smi nvlink -s and -e for links that are down or have errors, and "
            "clocks (nvidia-smi -q -d CLOCK,PERFORMANCE)"
        )
        if _are_without_peers(case):
            action = (
                f"{missing}set NCCL_BUFFSIZE=1048576, which caches of processors hold; and see that all "
                "lanes of GPUs are up (nvidia-smi -q -d PCIE)"
            )
    if settings := [*case.told(*sorted(case.log.settings.keys() - _PLAIN))]:
        action = f"run again without {_all(settings)}; {action}"
    yield Cause("unknown", (), f"nothing in the files tells why{_busbw(case)}", action)


def _busbw(case: _Case) -> str:
    """Write what the largest size reaches and what is predicted, in GB/s as nccl-tests prints it."""
    known = [each for each in case.slow if each.ratio]
    if not known:
        return ""
    last = max(known, key=lambda each: each.size)
    rate = last.busbw * 1e-9
    return f" (busbw {rate:.4g} of {rate * (last.ratio or 1):.4g} GB/s)"


_Rule: TypeAlias = Callable[[_Case], Iterator[Cause]]
_SAID: tuple[_Rule, ...] = (
    _sockets,
    _few_interfaces,
    _no_nvlink,
    _slow_nic,
    _no_gdr,
    _nic_list,
    _far_nic,
    _algorithm_told,
    _protocol_told,
    _slow_pick,
    _no_ll128,
    _no_nvls,
    _few_channels,
    _few_channels_of_sends,
    _rail_told,
    _pxn_off,
    _queue_pairs,
)
_DEDUCED: tuple[_Rule, ...] = (
    _unpredicted_pick,
    _as_without_nvlink,
    _slow_peers,
    _packet_loss,
    _pcie,
    _shared_paths,
)
