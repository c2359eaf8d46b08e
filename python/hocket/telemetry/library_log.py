"""What NCCL says of itself in a log, with ``NCCL_DEBUG=INFO``.

References
----------
NVIDIA/nccl 2.30.7: src/misc/param.cc (settings), src/transport/net_ib (NICs, their rates, GPUDirect RDMA),
src/transport/{net,p2p,shm}.cc (channels), src/init.cc (numbers of channels), src/graph/search.cc (graphs),
src/enqueue.cc (picks).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

_MARK = re.compile(r" NCCL (?:INFO|WARN) ")
_HOST = re.compile(r"[\w.-]+$")
_FARTHEST = 600
"""Characters before the mark among which the host is: longer ones are no name."""
_SET = re.compile(r"NCCL_([A-Z0-9_]+) set (?:by environment )?to (\S+?)\.?$")
_GIVEN = re.compile(r"\bNCCL_([A-Z0-9_]+)=([^\s'\"]+)")
_COMMAND = re.compile(
    r"\s*(?:\+ )?(?:export |env |NCCL_|mpirun |srun |torchrun |-x )|.* (?:-x|-e|--env) NCCL_"
)
"""How a line that sets variables begins, or what is in it: prose that names them sets nothing."""
_USING = re.compile(r"\[(\d{1,9})\](?:([\w.-]+):\d+/(IB|RoCE)|=\{([^}]*)\})")
"""A NIC with its number; some versions write several that they fuse as ``[0]={[0] a:1/IB, [1] b:1/IB}``."""
_FUSED = re.compile(r"NET/IB : Made virtual device \[(\d{1,9})\] name=([\w.+-]+) ")
_PART = re.compile(r"([\w.-]+):\d+/(IB|RoCE)")
_RATE = re.compile(r"NET/IB ?: \[(\d+)\] ([\w.-]+):\S*?/(IB|RoCE) .*?\bspeed=(\d{1,9})\b")
_SOCKETS = re.compile(r"NET/Socket ?: Using \[|Using network Socket")
_INTERFACE = re.compile(r"\[(\d{1,2})\][\w.-]+:")
"""An interface with its number, by which NCCL sends over TCP."""
_PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is (?:(tcp|udp|sockets)\b|\w)")
"""What libfabric uses."""
_NO_GDR = re.compile(r"GPU Direct RDMA Disabled for HCA (\d{1,9})\b")
_WAY = re.compile(
    r"(?:Channel|Ring) \d{1,3}(?:/\d+)? : \d+(?:\[\w+\])? -> \d+(?:\[\w+\])?(?: \[\w+\])? via "
    r"(?:(P2P|SHM)|NET/([\w ]{1,40})/(\d{1,2})(?!\d)(\S*))"
)
"""How a channel passes data; NCCL has less than 1,000 channels and 100 NICs of a node."""
_TABLE = re.compile(r"\s*AllReduce \|" + r" *[\d.]{1,9}/ *([\d.]{1,9}) \|" * 6)
"""Latency and bandwidth of trees and rings, each with LL, LL128 and Simple (``TUNING``)."""
_CHANNELS = re.compile(r"([1-9]\d{0,2}) coll channels, (?:.*? (\d{1,3}) nvls channels)?")
_PER_PEER = re.compile(r"\d+ coll channels, .*?([1-9]\d{0,2}) p2p channels per peer")
_PICK = re.compile(r"(?:(\w+): +)?(\d{1,18}) Bytes -> Algo (\w+) proto (\w+)")
_ALGORITHMS = ("tree", "ring", "collnet-direct", "collnet-chain", "nvls", "nvls-tree", "pat")
_PROTOCOLS = ("ll", "ll128", "simple")
"""By their numbers, which versions before 2.24 print instead of names."""
_RINGS = re.compile(r"Pattern 4, .* type \w+/(\w+)")
_OVER = "# Avg bus bandwidth"
"""With what a run of nccl-tests ends; NCCL's next words are of the next run."""
_WHOLE = re.compile(r"\s*([+-]?)(?:0[xX]([0-9a-fA-F]{1,15})|0([0-7]{0,20})|([1-9]\d{0,17}))")
"""A number as C reads it with base 0: in base 16 after ``0x``, in base 8 after ``0``."""
_LONGEST = 4096
"""Characters of a line; those that are longer are none of NCCL."""


@dataclass(frozen=True)
class LibraryLog:
    """What NCCL says of itself, by host where that matters.

    Attributes
    ----------
    settings
        Variables without ``NCCL_``, as NCCL read them or as they stand on a command line.
    networks
        ``"IB"``, ``"RoCE"``, ``"libfabric"`` (over no sockets) or ``"Socket"``.
    ranks
        By host: the ranks that say something, each as its process and GPU.
    nics
        By host: the name of each NIC by its number; those that NCCL fuses are ``"mlx5_0+mlx5_1"``.
    rates
        By host and name: the rate of a NIC [Mb/s].
    interfaces
        By host: the numbers of the interfaces that NCCL names for TCP.
    used
        By host: the numbers of the NICs that channels use, or of the interfaces.
    ways
        By host: how channels pass data: ``"P2P"``, ``"SHM"``, ``"GDRDMA"`` for NICs that read and write the
        memory of GPUs, ``"NET"`` for those that do not.
    no_gdr
        By host: the numbers of the NICs for which it says that GPUDirect RDMA is off.
    channels
        How many channels collectives have, as each communicator says.
    nvls
        How many channels use NVLink SHARP, as each communicator says.
    per_peer
        How many channels lead to each other rank in sends and receives, as each communicator says.
    picks
        By size: algorithm and protocol that NCCL picks, such as ``("ring", "simple")``, with the collective
        as it writes it, such as ``"allreduce"``, or empty (``TUNING``).
    ll128
        Whether LL128 has bandwidth, as each communicator's table says.
    nic_paths
        The longest paths between GPUs and NICs of rings: ``"PIX"`` to ``"SYS"``.
    """

    settings: dict[str, str] = field(default_factory=dict)
    networks: set[str] = field(default_factory=set)
    ranks: dict[str, set[str]] = field(default_factory=dict)
    nics: dict[str, dict[int, str]] = field(default_factory=dict)
    rates: dict[tuple[str, str], int] = field(default_factory=dict)
    interfaces: dict[str, set[int]] = field(default_factory=dict)
    used: dict[str, set[int]] = field(default_factory=dict)
    ways: dict[str, set[str]] = field(default_factory=dict)
    no_gdr: dict[str, set[int]] = field(default_factory=dict)
    channels: set[int] = field(default_factory=set)
    nvls: set[int] = field(default_factory=set)
    per_peer: set[int] = field(default_factory=set)
    picks: dict[int, set[tuple[str, str, str]]] = field(default_factory=dict)
    ll128: set[bool] = field(default_factory=set)
    nic_paths: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        """Whether NCCL says anything itself; settings alone may be anybody's words."""
        return any(value for name, value in vars(self).items() if name not in ("settings", "ranks"))

    def with_other(self, other: LibraryLog) -> LibraryLog:
        """Return what both say."""
        both = LibraryLog()
        for one in (self, other):
            for name, value in vars(one).items():
                mine = getattr(both, name)
                if name in _BY_HOST:
                    for host, own in value.items():
                        mine.setdefault(host, type(own)()).update(own)
                else:
                    mine.update(value)
        return both

    @property
    def all_ways(self) -> set[str]:
        """How channels pass data on any host."""
        return set().union(*self.ways.values())

    @property
    def hcas(self) -> frozenset[str]:
        """The NICs that ``NCCL_IB_HCA`` names; none if it names those to leave out, or a driver's all."""
        told = self.settings.get("IB_HCA", "")
        names = [] if told.startswith("^") else told.lstrip("=").split(",")
        return frozenset(name.partition(":")[0] for name in names if _NIC.match(name))

    def number(self, name: str) -> int | None:
        """Return a setting as NCCL reads numbers; ``None`` if nobody set it."""
        value = self.settings.get(name)
        if value is None:
            return None
        found = _WHOLE.match(value)
        if found is None:
            return 0
        sign, *digits = found.groups()
        bases = zip(digits, (16, 8, 10), strict=True)
        whole = next((int(text, base) for text, base in bases if text), 0)
        return -whole if sign == "-" else whole

    def ports(self, host: str) -> set[str]:
        """Return the names of the NICs of a host, those that are fused each."""
        return {part for name in self.nics.get(host, {}).values() for part in name.split("+")}

    def used_ports(self, host: str, ranks: int) -> set[str] | None:
        """Return the NICs that channels of a host use; ``None`` if fewer of its ranks say which."""
        if host not in self.used or len(self.ranks.get(host, ())) < ranks:
            return None
        names = self.nics.get(host, {})
        used = (names.get(number, str(number)) for number in self.used[host])
        return {part for name in used for part in name.split("+")}


def merged(logs: Iterable[LibraryLog]) -> LibraryLog:
    """Return what several logs say together."""
    return reduce(LibraryLog.with_other, logs, LibraryLog())


_NIC = re.compile(r"(?!(?:mlx|hfi|cxgb)\d$)[\w.-]*\d(?::\d+)?$")
"""The name of a NIC, perhaps with a port, and not that of a driver."""
_BY_HOST = ("ranks", "nics", "interfaces", "used", "ways", "no_gdr", "picks")


def read_library_log(text: str) -> LibraryLog:
    """Read what NCCL says of itself among the lines of a log; a log without such lines says nothing."""
    return merged(log for _, log in read_library_logs(text))


def read_library_logs(text: str) -> list[tuple[int, LibraryLog]]:
    """Read what NCCL says of itself in each run of a log, with the number of the run's last line.

    Variables that a shell exports hold for the runs after it too.
    """
    found, exported, given = LibraryLog(), dict[str, str](), dict[str, str]()
    runs: list[tuple[int, LibraryLog]] = []
    lines = text.splitlines() if "NCCL" in text else []
    is_over = False
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST:
            continue
        if _OVER in line:
            is_over = True
        if "NCCL" not in line:
            continue
        mark = _MARK.search(line)
        who = _who(line[max(mark.start() - _FARTHEST, 0) : mark.start()]) if mark else None
        if who is None and _COMMAND.match(line) is None:
            continue
        if is_over:
            runs.append((number - 1, _with_settings(found, exported | given)))
            found, given, is_over = LibraryLog(), {}, False
        if mark is None or who is None:
            (exported if "export " in line else given).update(_GIVEN.findall(line))
        else:
            host, rank = who
            found.ranks.setdefault(host, set()).add(rank)
            _take(found, host, line[mark.end() :].strip())
    return [*runs, (len(lines), _with_settings(found, exported | given))]


def _with_settings(found: LibraryLog, given: dict[str, str]) -> LibraryLog:
    """Return what NCCL says, with settings that stand on command lines; its own words count most."""
    found.settings.update(given | found.settings)
    return found


def _who(head: str) -> tuple[str, str] | None:
    """Return the host and the rank of ``host:process:thread [GPU]``, and perhaps a file, before words."""
    words = head.split()[-3:]
    for place, word in reversed([*enumerate(words)]):
        before, *numbers = word.rsplit(":", 2)
        if len(numbers) == 2 and all(each.isdecimal() for each in numbers):
            host = _HOST.search(before[-253:])
            gpu = words[place + 1] if place + 1 < len(words) else ""
            return None if host is None else (host[0], f"{numbers[0]} {gpu}")
    return None


def _named(word: str, names: tuple[str, ...]) -> str:
    """Return what a word names, which may be a number."""
    if not word.isdecimal():
        return word.lower().replace("_", "-")
    return dict(enumerate(names)).get(int(word[:2]), word)


def _take(found: LibraryLog, host: str, words: str) -> None:
    """Read what a host says."""
    way = _WAY.match(words)
    if way is not None:
        kind, network, number, rest = way.groups()
        if network == "Socket":
            found.networks.add(network)
        if number is not None:
            found.used.setdefault(host, set()).add(int(number))
        found.ways.setdefault(host, set()).add(kind or ("GDRDMA" if "GDRDMA" in rest else "NET"))
        return
    setting = _SET.match(words)
    if setting is not None:
        found.settings[setting[1]] = setting[2]
    rate = _RATE.match(words)
    if rate is not None:
        found.nics.setdefault(host, {})[int(rate[1])] = rate[2]
        found.rates[host, rate[2]] = int(rate[4])
        found.networks.add(rate[3])
    if "NET/IB" in words and "Using [" in words:
        for number, name, network, parts in _USING.findall(words):
            fused = _PART.findall(parts) or [(name, network)]
            found.nics.setdefault(host, {})[int(number)] = "+".join(part for part, _ in fused)
            found.networks.update(kind for _, kind in fused)
    provider = _PROVIDER.match(words)
    if provider is not None:
        found.networks.add("Socket" if provider[1] else "libfabric")
    if _SOCKETS.search(words) is not None:
        found.networks.add("Socket")
        numbers = {int(number) for number in _INTERFACE.findall(words)}
        found.interfaces.setdefault(host, set()).update(numbers)
    off, virtual = _NO_GDR.search(words), _FUSED.match(words)
    if off is not None:
        found.no_gdr.setdefault(host, set()).add(int(off[1]))
    if virtual is not None:
        found.nics.setdefault(host, {})[int(virtual[1])] = virtual[2]
    table = _TABLE.match(words)
    if table is not None:
        found.ll128.add(any(each.strip("0.") for each in (table[2], table[5])))
    channels, rings, pick = _CHANNELS.match(words), _RINGS.match(words), _PICK.match(words)
    if channels is not None:
        found.channels.add(int(channels[1]))
        found.nvls.update(int(count) for count in channels.groups()[1:] if count)
    per_peer = _PER_PEER.match(words)
    if per_peer is not None:
        found.per_peer.add(int(per_peer[1]))
    if pick is not None:
        algorithm, protocol = (
            _named(word, names) for word, names in ((pick[3], _ALGORITHMS), (pick[4], _PROTOCOLS))
        )
        kind = (pick[1] or "").lower()
        if not algorithm.isdecimal() and not protocol.isdecimal():  # a number that stands for none
            found.picks.setdefault(int(pick[2]), set()).add((kind, algorithm, protocol))
    if rings is not None:
        found.nic_paths.add(rings[1])
