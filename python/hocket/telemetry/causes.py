"""Causes of what is slow: which part, or which path of NCCL's, and what to try.

docs/measured.md states the rules. What times alone single out comes first, then what NCCL says of itself.
What is only deduced from rates comes last, if nothing else is found.

References
----------
NCCL user guide 2.30, Environment variables and Troubleshooting (GPU-to-NIC communication, PCI access
control services, RDMA). NVIDIA/nccl 2.30.7, src/graph/tuning.cc: what protocols and algorithms cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal, TypeAlias

from hocket._results import Result, said
from hocket.collectives.collective import ROOTED
from hocket.nccl.model import NcclChoice
from hocket.telemetry.calls import KERNEL, Call, Recording
from hocket.telemetry.expected import Expectation
from hocket.telemetry.library_log import LibraryLog
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
    "no NVLS",
    "few channels",
    "PXN off",
    "queue pairs",
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
_PLAIN = {"DEBUG", "DEBUG_SUBSYS", "DEBUG_FILE", "SOCKET_IFNAME", "IB_GID_INDEX", "TOPO_DUMP_FILE"}
"""Settings that make nothing slow: what is printed, and addresses."""
_MOST_CALLS = 0.5
"""Share of calls that one rank delays above which it is no chance."""


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
    """

    name: CauseName = field(metadata=said("cause"))
    parts: tuple[str, ...]
    evidence: str
    action: str


@dataclass(frozen=True)
class _Case:
    """All that is known: the sizes that are slow, what NCCL says, and where it ran."""

    slow: Sequence[MeasuredSize]
    log: LibraryLog
    expectation: Expectation

    @property
    def is_between(self) -> bool:
        """Whether data pass between nodes."""
        return self.expectation.nodes > 1

    @property
    def ratio(self) -> float | None:
        """How many times as long as predicted large sizes take; None if that is not known."""
        known = [each.ratio for each in self.slow if each.ratio and each.size >= _TOLD]
        return median(known) if known else None

    def told(self, *names: str) -> Iterator[str]:
        """Yield those settings of some names that are there, as ``NCCL_ALGO=Tree``."""
        for name in names:
            if name in self.log.settings:
                yield f"NCCL_{name}={self.log.settings[name]}"

    @property
    def on(self) -> set[str]:
        """The settings that are not 0."""
        return {name for name, value in self.log.settings.items() if value != "0"}

    def is_off(self, name: str) -> bool:
        """Whether a setting is 0."""
        return self.log.settings.get(name) == "0"


def causes_of(
    sizes: Sequence[MeasuredSize],
    recordings: Sequence[Recording],
    calls: Sequence[tuple[str, Call]],
    expectation: Expectation,
    log: LibraryLog,
) -> tuple[Cause, ...]:
    """Return the causes of what is slow, the likeliest first.

    Parameters
    ----------
    sizes
        As they were judged.
    recordings
        Each file, for what its runs have apart; those on fewer nodes than the topology has count too.
    calls
        What was timed with each call among all NPUs.
    log
        What NCCL says of itself in all files.
    """
    found = [*_odd_runs(recordings), *_late_ranks(calls)]
    slow = [each for each in sizes if each.is_over and each.verdict != "start"]
    if not slow:
        slow = [each for each in sizes if each.verdict == "not told" and each.size >= _TOLD]
        if not log:
            return tuple(found)
    case = _Case(slow, log, expectation)
    if slow:
        found += [cause for rule in _SAID for cause in rule(case)]
    fabric = [each for each in slow if each.verdict == "fabric"]
    if not found and fabric:
        alone = _Case(fabric, log, expectation)
        found += next((list(causes) for rule in _DEDUCED if (causes := [*rule(alone)])), [])
    return tuple(found)


def _all(names: Iterable[str]) -> str:
    return ", ".join(names)


# ---- what times single out ----


def _odd_runs(recordings: Sequence[Recording]) -> Iterator[Cause]:
    """Find nodes, pairs and NICs of runs that are slower than others.

    Whatever took part in a quick run is no cause by itself. Of a slow run that leaves one part, several
    of which it is one, or none: then it is what lies between them.
    """
    runs = _runs(recordings)
    shared = Counter(key for times in runs.values() for key in times)
    best: dict[_Key, float] = {}
    for times in runs.values():
        for key, seconds in times.items():
            best[key] = min(seconds, best.get(key, seconds))
    excess: dict[frozenset[str], float] = {}
    for parts, times in runs.items():
        large = {key for key in times if shared[key] > 1 and key[1] >= _TOLD}
        if large:
            share = median(times[key] / best[key] for key in large)
            allowed = tolerance_at(max(size for _, size, *_ in large))
            excess[parts] = share if share > 1 + allowed else 1.0
    quick = [parts for parts, share in excess.items() if share == 1.0]
    innocent = frozenset().union(*quick)
    told: dict[frozenset[str], list[frozenset[str]]] = {}
    for parts, share in excess.items():
        if share > 1 and quick:
            told.setdefault(parts - innocent or parts, []).append(parts)
    for parts, slow in sorted(told.items(), key=lambda each: (len(each[0]), sorted(each[0]))):
        yield _odd(parts, slow, excess, innocent)


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
        return Cause("NIC" if is_nic else "node", names, evidence, action)
    action = f"measure each of them with one that is quick: {_all(sorted(innocent)[:3])}"
    return Cause("unknown", names, f"{runs}; it is one of them, or their path", action)


_Key: TypeAlias = tuple[str, int, int, int | None]
"""What runs have in common that can be compared: collective, size, NPUs and nodes."""


def _runs(recordings: Sequence[Recording]) -> dict[frozenset[str], dict[_Key, float]]:
    """Return the times of each run by what took part: its hosts, and the NICs that it was told to use."""
    found: dict[frozenset[str], dict[_Key, float]] = {}
    for recording in recordings:
        told = recording.library.settings.get("IB_HCA", "")
        hcas = [] if told.startswith("^") else told.lstrip("=").split(",")  # ^: all but these
        nics = {hca.partition(":")[0] for hca in hcas} - {""}
        for call in recording.calls:
            if call.hosts:
                times = found.setdefault(frozenset(call.hosts) | nics, {})
                key = call.kind, call.size, call.npus, call.nodes
                times[key] = min(call.seconds, times.get(key, call.seconds))
    return found


def _late_ranks(calls: Sequence[tuple[str, Call]]) -> Iterator[Cause]:
    """Find a rank that comes late to most calls: its kernel is the shortest, as all others wait for it."""
    by_call: dict[tuple[object, ...], dict[str, float]] = {}
    for timing, call in calls:
        # The root of a broadcast ends first, and leaves of a reduce do, though nobody waits for them.
        if timing == KERNEL and call.sequence is not None and call.kind not in ROOTED:
            key = call.kind, call.size, call.group, call.ranks, call.sequence
            by_call.setdefault(key, {})[call.recorder] = call.seconds
    late: Counter[str] = Counter()
    waits: list[float] = []
    whole = [took for took in by_call.values() if len(took) > 2]
    for took in whole:
        last = min(took, key=took.__getitem__)
        wait = median(seconds for rank, seconds in took.items() if rank != last) - took[last]
        if wait > GAIN * took[last]:
            late[last] += 1
            waits.append(wait)
    for rank, count in late.most_common(1):
        if count > 1 and count > _MOST_CALLS * len(whole):
            evidence = (
                f"others wait for {rank} in {count} of {len(whole)} calls, "
                f"{median(waits) * 1e6:,.0f} us at the median"
            )
            action = (
                "look for what this rank does longer before its calls: more work, lower clocks, a "
                "busy processor; the network is not the cause"
            )
            yield Cause("rank", (rank,), evidence, action)


# ---- what NCCL says of itself ----


def _sockets(case: _Case) -> Iterator[Cause]:
    if case.is_between and case.log.networks == {"Socket"}:
        told = _all(case.told(*({"IB_DISABLE", "NET"} & case.on)))
        evidence = f"NCCL sends over TCP sockets{f', as {told} says' if told else ''}"
        action = (
            "unset NCCL_IB_DISABLE and NCCL_NET; install libibverbs where the job runs, or the plugin of "
            "the network (EFA, Slingshot, TCPX), and give a container /dev/infiniband; then the log has "
            "'NET/IB : Using' or the plugin's name"
        )
        yield Cause("sockets", (), evidence, action)


def _no_nvlink(case: _Case) -> Iterator[Cause]:
    hosts = tuple(host for host, ways in case.log.ways.items() if "SHM" in ways)
    hardware = case.expectation.hardware
    told = [*case.told(*sorted({"P2P_DISABLE", "P2P_LEVEL"} & (case.on | {"P2P_LEVEL"})))]
    is_off = (
        case.log.settings.get("P2P_LEVEL", "").upper() in ("0", "LOC") or "P2P_DISABLE" in case.on
    )
    if (hosts or is_off) and hardware is not None and not hardware.is_on_pci:
        where = f" of {_all(hosts)}" if hosts else ""
        way = "through host memory (SHM)" if hosts else "not from GPU to GPU"
        evidence = f"GPUs{where} pass data {way}, though NVLinks join them"
        action = (
            f"{f'unset {_all(told)}; ' if told else ''}let each process see all GPUs of its node "
            "(CUDA_VISIBLE_DEVICES, Slurm's --gpus-per-task); check nvidia-smi topo -m and nvlink -s, "
            "and with NVSwitches that nvidia-fabricmanager runs"
        )
        yield Cause("no NVLink", hosts, evidence, action)


def _no_gdr(case: _Case) -> Iterator[Cause]:
    if not case.is_between or "Socket" in case.log.networks:
        return
    hosts = sorted(
        {host for host, ways in case.log.ways.items() if "NET" in ways} | case.log.no_gdr
    )
    level = case.log.settings.get("NET_GDR_LEVEL", "").upper()
    is_told = level in ("0", "LOC") or case.log.settings.get("NET_GDR_DISABLE") == "1"
    if not hosts and not is_told:
        return
    told = _all(case.told("NET_GDR_LEVEL", "NET_GDR_DISABLE")) if is_told else ""
    is_half = any({"NET", "GDRDMA"} <= case.log.ways.get(host, set()) for host in hosts)
    where = f" on {_all(hosts)}" if hosts else ""
    evidence = f"NICs do not reach the memory of GPUs{where}: GPUDirect RDMA is off"
    first = f"unset {told}; " if told else ""
    if is_half:
        first += "set NCCL_NET_GDR_READ=1, as some channels have it; "
    action = (
        f"{first}load nvidia-peermem there, or use a kernel and driver with DMA-BUF; NCCL before "
        "2.23 may not see that module; then channels read NET/IB/0/GDRDMA"
    )
    yield Cause("no GPUDirect RDMA", tuple(hosts), evidence, action)


def _slow_nic(case: _Case) -> Iterator[Cause]:
    """Find NICs that are slower than those of the same name elsewhere, or than the topology states."""
    log, hardware = case.log, case.expectation.hardware
    stated = 0.0
    if hardware is not None and hardware.nics:
        stated = hardware.nic_bandwidth / hardware.nics * 8e-6
    slow: list[tuple[str, int, float]] = []
    for (host, nic), rate in log.rates.items():
        numbers = [number for number, name in log.nics[host].items() if name == nic]
        if host in log.used and not log.used[host] & set(numbers):
            continue
        alike = [other for (_, name), other in log.rates.items() if name == nic]
        best = max(*alike, stated if host in log.used else 0, rate)
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
        yield Cause("NIC", tuple(names), evidence, action)


def _nic_list(case: _Case) -> Iterator[Cause]:
    hardware, log = case.expectation.hardware, case.log
    if not case.is_between or hardware is None or not hardware.nics:
        return
    told = log.settings.get("IB_HCA", "")
    given = [] if told.startswith("^") else told.lstrip("=").split(",")
    named = [name for name in given if name.startswith("mlx5_")]
    there = min(map(len, log.nics.values()), default=len(named))
    used = [len(log.used[host]) for host in log.nics if host in log.used]
    least = min([there, *used])
    if not 0 < least < hardware.nics:
        return
    told = _all(case.told("IB_HCA"))
    evidence = f"NCCL uses {least} of {hardware.nics} NICs of a node"
    if told:
        action = f"unset {told}, or name all NICs that lead to the network of the GPUs"
    elif there < hardware.nics:
        action = "bring up the other NICs: ibv_devinfo shows which ports are down"
    else:
        action = (
            "compare nvidia-smi topo -m with the NICs of the log: NCCL takes those nearest to GPUs"
        )
    yield Cause("NIC list", (), evidence, action)


def _far_nic(case: _Case) -> Iterator[Cause]:
    far = sorted(case.log.nic_paths & {"PHB", "SYS"})
    gdr = "GDRDMA" in case.log.all_ways
    if case.is_between and far and gdr:
        evidence = f"between GPUs and NICs data pass a processor ({_all(far)})"
        action = (
            "let each GPU use a NIC at its own PCIe switch (NCCL_IB_HCA, slots); in a virtual "
            "machine give NCCL the real topology (NCCL_TOPO_FILE)"
        )
        yield Cause("far NIC", (), evidence, action)


def _algorithm_told(case: _Case) -> Iterator[Cause]:
    for told in case.told("ALGO"):
        large = [each for each in case.slow if each.way or each.pick]
        wanted = {
            (each.kind, (each.way[0] if each.way else _name(each.pick)).lower()) for each in large
        }
        value = case.log.settings["ALGO"]
        if wanted and not any(_is_allowed(*each, value) for each in wanted):
            names = _all(sorted({name for _, name in wanted}))
            evidence = f"{told}, and {names} is predicted to be the quickest"
            yield Cause("algorithm told", (), evidence, "unset NCCL_ALGO")


def _is_allowed(kind: str, name: str, told: str) -> bool:
    """Return whether NCCL_ALGO or NCCL_PROTO leaves a collective a name, as in ``ring;allreduce:^tree``."""
    parts = [part.rpartition(":")[::2] for part in told.lower().split(";")]
    general = [names for before, names in parts if not before]
    own = [names for before, names in parts if before == kind.replace("-", "")]
    for names in (own or general)[-1:]:
        is_ruled_out = names.startswith("^")
        return (name.replace("-", "") in names.lstrip("^").split(",")) is not is_ruled_out
    return True


def _name(pick: NcclChoice | None) -> str:
    return "" if pick is None else pick.algorithm


def _protocol_told(case: _Case) -> Iterator[Cause]:
    for told in case.told("PROTO"):
        wanted = {(each.kind, each.way[1].lower()) for each in case.slow if each.way}
        value = case.log.settings["PROTO"]
        names = sorted({name for kind, name in wanted if not _is_allowed(kind, name, value)})
        if names:
            evidence = f"{told}, and {_all(names)} is predicted to be the quickest"
            yield Cause("protocol told", (), evidence, "unset NCCL_PROTO")


def _no_nvls(case: _Case) -> Iterator[Cause]:
    expected = [each for each in case.slow if each.way and each.way[0].startswith("nvls")]
    is_off = case.is_off("NVLS_ENABLE") or case.log.nvls == {0}
    is_on = any(case.log.nvls)
    if expected and (is_off or (not is_on and any(each.instead for each in expected))):
        sizes = f"{expected[0].kind} of {format_size(expected[0].size)} and more"
        instead = _all(dict.fromkeys(each.instead for each in expected if each.instead))
        told = _all(case.told("NVLS_ENABLE")) if case.is_off("NVLS_ENABLE") else ""
        why = told or ("NCCL has 0 nvls channels" if is_off else f"it takes as long as {instead}")
        action = (
            f"{'unset NCCL_NVLS_ENABLE; ' if told else ''}check that nvidia-fabricmanager runs, that "
            "all GPUs of a node take part, and that the log has 'NVLS multicast support is available'"
        )
        yield Cause("no NVLS", (), f"NVLink SHARP is not used for {sizes}: {why}", action)


def _few_channels(case: _Case) -> Iterator[Cause]:
    """Find a limit below the channels of NCCL's graph, which it doubles (src/graph/connect.cc)."""
    limits = [*case.told("MAX_NCHANNELS", "MAX_CTAS")]
    most = max((2 * each.pick.channels for each in case.slow if each.pick), default=0)
    least = min((_whole(limit) for limit in limits), default=0)
    if 0 < least < most:
        evidence = f"{_all(limits)}, and NCCL would use up to {most} channels"
        yield Cause("few channels", (), evidence, f"unset {_all(limits)}")


def _whole(setting: str) -> int:
    value = setting.partition("=")[2]
    return int(value) if value.isdecimal() else 0


def _pxn_off(case: _Case) -> Iterator[Cause]:
    is_all_to_all = any(each.kind == "all-to-all" for each in case.slow)
    told = [*case.told(*({"PXN_DISABLE"} & case.on))]
    told += case.told("P2P_PXN_LEVEL") if case.is_off("P2P_PXN_LEVEL") else []
    if case.is_between and is_all_to_all and told:
        evidence = f"{_all(told)}, so each GPU sends small parts to all GPUs of other nodes"
        yield Cause("PXN off", (), evidence, f"unset {_all(told)}")


def _queue_pairs(case: _Case) -> Iterator[Cause]:
    """Find bonds with one queue pair a connection, which sends over one of their ports."""
    names = {name for nics in case.log.nics.values() for name in nics.values()}
    bonds = sorted(name for name in names if "bond" in name)
    pairs = _whole(next(case.told("IB_QPS_PER_CONNECTION"), ""))
    if case.is_between and bonds and pairs <= 1:
        evidence = f"NICs are bonds ({_all(bonds[:4])}), and a connection has one queue pair"
        action = "set NCCL_IB_QPS_PER_CONNECTION=2 or 4, with NCCL_IB_SPLIT_DATA_ON_QPS=0 and 1"
        yield Cause("queue pairs", (), evidence, action)


# ---- what is deduced from rates ----


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
            "disable ACS of PCIe switches (lspci -vvv: ACSCtl with SrcValid+), in a virtual machine "
            "enable ATS; then ib_write_bw --use_cuda of each NIC, alone: if it is full, look at the network"
        )
        yield Cause("PCIe", (), evidence, action)


def _shared_paths(case: _Case) -> Iterator[Cause]:
    """Find more than two nodes whose flows may share links while others are idle."""
    ratio = case.ratio
    if ratio is None or case.expectation.nodes < 3 or "GDRDMA" not in case.log.all_ways:
        return
    is_hashed = "RoCE" in case.log.networks
    evidence = (
        f"GPUDirect RDMA is on, and large sizes take {ratio:.2f} times what is predicted{_busbw(case)} "
        f"on {case.expectation.nodes} nodes: flows may share links"
        f"{', as ECMP places them by a hash' if is_hashed else ''}"
    )
    action = (
        "measure pairs of nodes, below one leaf and across leaves, and give all logs; then adaptive "
        "routing (NCCL_IB_ADAPTIVE_ROUTING=1) and NCCL_IB_QPS_PER_CONNECTION=4 with "
        "NCCL_IB_SPLIT_DATA_ON_QPS=1; pairs that are slow below one leaf: ACS and NICs of these nodes"
    )
    yield Cause("shared paths", (), evidence, action)


def _unknown(case: _Case) -> Iterator[Cause]:
    missing = (
        "" if case.log else "run again with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH; "
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


_SAID = (
    _sockets,
    _no_nvlink,
    _slow_nic,
    _no_gdr,
    _nic_list,
    _far_nic,
    _algorithm_told,
    _protocol_told,
    _no_nvls,
    _few_channels,
    _pxn_off,
    _queue_pairs,
)
_DEDUCED = (_pcie, _shared_paths, _unknown)
