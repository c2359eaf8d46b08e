"""What NCCL says of itself in a log, with ``NCCL_DEBUG=INFO``.

References
----------
NVIDIA/nccl 2.30.7: src/misc/param.cc (settings), src/transport/net_ib (NICs, their rates, GPUDirect RDMA),
src/transport/{net,p2p,shm}.cc (channels), src/init.cc (numbers of channels), src/graph/search.cc (graphs).
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
_USING = re.compile(r"\[(\d+)\]([\w.-]+):\d+/(IB|RoCE)")
_RATE = re.compile(r"NET/IB ?: \[(\d+)\] ([\w.-]+):\S*?/(IB|RoCE) .*?\bspeed=(\d{1,9})\b")
_SOCKETS = re.compile(r"NET/Socket ?: Using \[|Using network Socket")
_NO_GDR = re.compile(r"GPU Direct RDMA Disabled for HCA")
_WAY = re.compile(
    r"(?:Channel|Ring) \d+(?:/\d+)? : \d+(?:\[\w+\])? -> \d+(?:\[\w+\])?(?: \[\w+\])? via "
    r"(?:(P2P|SHM)|NET/([\w ]{1,40})/(\d+)(\S*))"
)
_NVLS = re.compile(r"\d{1,9} coll channels, .*?(\d+) nvls channels")
_RINGS = re.compile(r"Pattern 4, .* type \w+/(\w+)")
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
        ``"IB"``, ``"RoCE"`` or ``"Socket"``.
    nics
        By host: the name of each NIC by its number.
    rates
        By host and name: the rate of a NIC [Mb/s].
    used
        By host: the numbers of the NICs that channels use.
    ways
        By host: how channels pass data: ``"P2P"``, ``"SHM"``, ``"GDRDMA"`` for NICs that read and write the
        memory of GPUs, ``"NET"`` for those that do not.
    no_gdr
        Hosts that say that GPUDirect RDMA is off.
    nvls
        How many channels use NVLink SHARP, as each communicator says.
    nic_paths
        The longest paths between GPUs and NICs of rings: ``"PIX"`` to ``"SYS"``.
    """

    settings: dict[str, str] = field(default_factory=dict)
    networks: set[str] = field(default_factory=set)
    nics: dict[str, dict[int, str]] = field(default_factory=dict)
    rates: dict[tuple[str, str], int] = field(default_factory=dict)
    used: dict[str, set[int]] = field(default_factory=dict)
    ways: dict[str, set[str]] = field(default_factory=dict)
    no_gdr: set[str] = field(default_factory=set)
    nvls: set[int] = field(default_factory=set)
    nic_paths: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        """Whether NCCL says anything itself; settings alone may be anybody's words."""
        return any(value for name, value in vars(self).items() if name != "settings")

    def with_other(self, other: LibraryLog) -> LibraryLog:
        """Return what both say."""
        both = LibraryLog()
        for one in (self, other):
            for name, value in vars(one).items():
                mine = getattr(both, name)
                if name in ("nics", "used", "ways"):
                    for host, own in value.items():
                        mine.setdefault(host, type(own)()).update(own)
                else:
                    mine.update(value)
        return both

    @property
    def all_ways(self) -> set[str]:
        """How channels pass data on any host."""
        return set().union(*self.ways.values())


def merged(logs: Iterable[LibraryLog]) -> LibraryLog:
    """Return what several logs say together."""
    return reduce(LibraryLog.with_other, logs, LibraryLog())


def read_library_log(text: str) -> LibraryLog:
    """Read what NCCL says of itself among the lines of a log; a log without such lines says nothing."""
    found, given = LibraryLog(), dict[str, str]()
    if "NCCL" not in text:
        return found
    for line in text.splitlines():
        if "NCCL" not in line or len(line) > _LONGEST:
            continue
        mark = _MARK.search(line)
        host = (
            None if mark is None else _host(line[max(mark.start() - _FARTHEST, 0) : mark.start()])
        )
        if mark is None or host is None:
            if _COMMAND.match(line) is not None:
                given.update(_GIVEN.findall(line))
        else:
            _take(found, host, line[mark.end() :].strip())
    given.update(found.settings)  # NCCL's own words count most
    found.settings.update(given)
    return found


def _host(head: str) -> str | None:
    """Return the host of ``host:process:thread [GPU]``, and perhaps a file, with which a line begins."""
    for word in reversed(head.split()[-3:]):
        before, *numbers = word.rsplit(":", 2)
        if len(numbers) == 2 and all(each.isdecimal() for each in numbers):
            found = _HOST.search(before[-253:])
            return None if found is None else found[0]
    return None


def _take(found: LibraryLog, host: str, words: str) -> None:
    """Read what a host says."""
    way = _WAY.match(words)
    if way is not None:
        kind, network, number, rest = way.groups()
        if network == "Socket":
            found.networks.add(network)
        if network == "IB":
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
        for number, name, network in _USING.findall(words):
            found.nics.setdefault(host, {})[int(number)] = name
            found.networks.add(network)
    if _SOCKETS.search(words) is not None:
        found.networks.add("Socket")
    if _NO_GDR.search(words) is not None:
        found.no_gdr.add(host)
    nvls, rings = _NVLS.match(words), _RINGS.match(words)
    if nvls is not None:
        found.nvls.add(int(nvls[1]))
    if rings is not None:
        found.nic_paths.add(rings[1])
