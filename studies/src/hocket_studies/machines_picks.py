"""What NCCL's logs state, beside its model: the algorithm and protocol of a size, and how many channels."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hocket.nccl.constants import GENERATIONS, VERSION
from hocket.nccl.model import choices, communicator_channels
from hocket.profiles.hardware import Hardware
from hocket.units import format_size

__all__ = ["WHATS", "Logged", "logged_picks"]

_FILE = Path(__file__).parent / "machines_measured" / "picks.csv"
_G = 1e9
WHATS = ("algorithm", "protocol", "coll channels", "nvls channels")
"""What logs state."""


@dataclass(frozen=True)
class Logged:
    """A fact of a log, and what NCCL's model says.

    Attributes
    ----------
    owner
        Who published the log.
    where
        On which machine, and of which collective and size.
    nodes
        Of the communicator.
    what
        One of :data:`WHATS`.
    stated, modelled
        By the log, and by the model of the log's version.
    """

    owner: str
    where: str
    nodes: int
    what: str
    stated: str
    modelled: str

    @property
    def is_right(self) -> bool:
        """Whether the model says what the log states."""
        return self.stated == self.modelled


def logged_picks() -> list[Logged]:
    """Read what published logs of NCCL state, and ask its model the same.

    Of a log that does not say its version the model of the newest that is known is asked.
    """
    with _FILE.open(encoding="utf-8", newline="") as file:
        return [fact for line in csv.DictReader(file) for fact in _facts(line)]


def _facts(line: Mapping[str, str]) -> Iterator[Logged]:
    gpu, near, nodes = GENERATIONS[line["gpu"]], int(line["gpus"]), int(line["nodes"])
    nics = int(line["nics"])
    hardware = Hardware(
        float(line["inside_GBps"]) * _G,
        nics * float(line["nic_Gbps"]) / 8 * _G,
        sums=gpu.nvls > 0 and near > 1,
        npus=near,
        nics=nics,
        is_switched=line["links"] == "switch",
    )
    version = line["version"] or VERSION
    counts = map(str, communicator_channels(gpu, hardware, nodes, version))
    modelled = dict(zip(WHATS[2:], counts, strict=True))
    where = f"{nodes} x {near} {line['machine']}"
    if line["collective"]:
        kind, size = line["collective"], int(line["bytes"])
        ways = choices(kind, size, near * nodes, nodes, hardware, gpu, version=version)
        best = min(ways, key=lambda way: way.seconds)
        modelled |= {"algorithm": best.algorithm, "protocol": best.protocol}
        where += f", {kind} of {format_size(size)}"
    columns = ("algorithm", "protocol", "channels", "nvls_channels")
    for what, column in zip(WHATS, columns, strict=True):
        if line[column]:
            yield Logged(line["owner"], where, nodes, what, line[column], modelled[what])
