"""Published faults with a known cause, each rebuilt as a log: the facts are those of the thread named.

``faults.yml`` has them, in sets by when they were collected. Rates are busbw [GB/s] as the threads quote
them. What a thread does not quote is assumed, and its note says so. ``says`` has what the log says before
its times. Lines of these forms stand for lines of NCCL in its own format, with addresses made up, and all
others are as they are:

- ``node0[3]: words``: a line of rank 3 of a host; without a rank, of rank 0
- ``node0: words {n} for n in 0-7``: such a line for each number
- ``set NAME=value``: a setting
- ``connected node0 node1``: what every rank of these hosts says when it is ready
- ``nics IB mlx5_0-7``, perhaps with ``on 8 hosts`` and ``without GDR``: as :func:`nics`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.telemetry.recordings import GPU

import hocket as hk

GB, GIB = 10**9, 1 << 30
HDR, NDR = "25GB/s,1.3us", "50GB/s,1.3us"
A100, H100 = "@300GB/s,350ns@", "@450GB/s,350ns@"
_HOST = re.compile(r"([\w.-]+)(?:\[(\d|n)\])?: (.*)")
_EACH = re.compile(r"(.*) for n in (\d)-(\d)")
_NICS = re.compile(r"nics (IB|RoCE) (\S+)(?: on (\d) hosts)?( without GDR)?")


def said(host: str, words: str, rank: int = 0) -> str:
    """A line of NCCL."""
    return f"{host}:{770 + rank}:801 [{rank}] NCCL INFO {words}"


def connected(*hosts: str) -> list[str]:
    """What every rank of a host says."""
    return [said(host, "Connected all rings", rank) for host in hosts for rank in range(8)]


def setting(name: str, value: str) -> str:
    return said("node0", f"NCCL_{name} set by environment to {value}.")


def nics(kind: str, *names: str, hosts: int = 2, gdr: bool = True) -> list[str]:
    """What each host says of its NICs, and of the channels over them."""
    out = []
    for host in (f"node{number}" for number in range(hosts)):
        using = " ".join(f"[{number}]{name}:1/{kind}" for number, name in enumerate(names))
        out.append(said(host, f"NET/IB : Using {using} [RO]; OOB eth0:10.0.0.1<0>"))
        out.append(said(host, "Using network IB"))
        for number in range(len(names)):
            way = f"NET/IB/{number}{'/GDRDMA' if gdr else ''}"
            ends = f"{number}[{number}] -> {8 + number}[{number}]"
            out.append(said(host, f"Channel {number:02d}/0 : {ends} [send] via {way}", number))
        out += connected(host)
    return out


def mlx(*numbers: int) -> list[str]:
    return [f"mlx5_{number}" for number in numbers]


@dataclass(frozen=True)
class Fault:
    """A case: where it is from, what ran, what was measured, what NCCL said, and the cause."""

    source: str
    machine: str
    cause: str
    busbw: float = 0.0
    says: Sequence[str] = ()
    parts: Sequence[str] = ()
    kind: str = "all_reduce"
    size: int = GIB
    runs: Sequence[tuple[Sequence[str], float]] = ()
    """Hosts and busbw of each run, where there are several."""
    device: str = GPU

    @property
    def ranks(self) -> tuple[int, int]:
        """How many ranks ran, and on how many nodes."""
        network = hk.topology.load(self.machine)
        return network.npu_count, len(network.groups) or 1


def _names(text: str) -> list[str]:
    """``mlx5_0-3`` or ``mlx5_0,mlx5_2`` as a list."""
    found = re.fullmatch(r"(.*?)(\d)-(\d)", text)
    if found is None:
        return text.split(",")
    return [f"{found[1]}{number}" for number in range(int(found[2]), int(found[3]) + 1)]


def _lines(line: str) -> Iterator[str]:
    """Write out a line of the file."""
    each, own = _EACH.fullmatch(line), _NICS.fullmatch(line)
    host = _HOST.fullmatch(line)
    if each is not None:
        for number in range(int(each[2]), int(each[3]) + 1):
            yield from _lines(each[1].replace("{n}", str(number)).replace("[n]:", f"[{number}]:"))
    elif own is not None:
        hosts = int(own[3] or 2)
        yield from nics(own[1], *_names(own[2]), hosts=hosts, gdr=own[4] is None)
    elif line.startswith("connected "):
        yield from connected(*line.split()[1:])
    elif line.startswith("set "):
        yield setting(*line.removeprefix("set ").split("=", 1))
    else:
        yield line if host is None else said(host[1], host[3], int(host[2] or 0))


def _fault(mib: int = GIB >> 20, says: str = "", **fields: object) -> Fault:
    lines = [out for line in says.splitlines() for out in _lines(line)]
    return Fault(size=mib << 20, says=lines, **fields)  # type: ignore[arg-type]


FAULTS = {
    name: tuple(_fault(**each) for each in cases)
    for name, cases in yaml.safe_load(Path(__file__).with_suffix(".yml").read_text()).items()
}
"""The cases by their sets."""
