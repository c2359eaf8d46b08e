"""Published times of MoE dispatch and combine, predicted from the rates of links alone.

A library that sends a token once to each node is a dispatch or a combine by ``steiner``; one that sends a
copy for each expert is a direct all-to-all. Nothing is fitted: links have their published rates, and
kernels take no time. So what is predicted is the part of the network; the error says what software adds.

References
----------
``moe_measured/README.md`` says whose times they are, and how bandwidths count bytes.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import comb
from statistics import median

import hocket as hk
from hocket_studies.machines import OnCase

NODE = 8
"""GPUs of a node, each with a NIC."""
NUMBERS, TOP = 7168, 8
"""Numbers of a token, and its experts."""
RATES = {
    "h800": ("160 GB/s", "50 GB/s"),
    "h200-cx7": ("450 GB/s", "50 GB/s"),
    "h200-efa": ("450 GB/s", "50 GB/s"),
    "b200-efa": ("900 GB/s", "50 GB/s"),
}
"""NVLink of a GPU, one way, as DeepEP states it for the H800 and NVIDIA for others; and a GPU's NICs."""
_LATENCIES = ("350 ns", "1.3 us")
"""As of the shipped machine ``hgx-h100-2box-rails``."""
_MOST = 1024
"""Tokens of all NPUs that are planned, about; each stands for several."""


@dataclass(frozen=True)
class Published:
    """A published time.

    Attributes
    ----------
    source, library, machine
        Who published it, and what ran on what.
    sends
        ``once`` to each node, or ``copies`` for each expert.
    phase
        ``dispatch`` or ``combine``.
    npus, tokens, experts, nodes, token_bytes
        GPUs; tokens per GPU; experts, nodes that those of a token may be in, None: any; bytes of a token.
    time_us, bandwidth
        What was published: the time [us], or a bandwidth [GB/s].
    """

    source: str
    library: str
    machine: str
    sends: str
    phase: str
    npus: int
    tokens: int
    experts: int
    nodes: int | None
    token_bytes: int
    time_us: float | None
    bandwidth: float | None

    @property
    def topology(self) -> hk.Topology:
        """The network: GPU i of every node on rail i."""
        inside, outside = RATES[self.machine]
        near, far = _LATENCIES
        nodes = -(-self.npus // NODE)
        return hk.topology.rail(
            nodes, NODE, bandwidth=outside, latency=far, node_bandwidth=inside, node_latency=near
        )

    @property
    def limit(self) -> int | None:
        """The limit of nodes, if it is one."""
        return None if self.nodes is None or self.nodes * NODE >= self.npus else self.nodes

    @property
    def counted_bytes(self) -> float:
        """What a benchmark counts for a GPU: a token once for each node, in one node for each GPU."""
        is_one = self.npus <= NODE
        places = self.npus if is_one else (self.limit or self.npus // NODE)
        each = self.experts // (self.npus if is_one else self.npus // NODE)
        missed = comb((places - 1) * each, TOP) / comb(places * each, TOP)
        return self.tokens * self.token_bytes * places * (1 - missed)

    @property
    def measured_us(self) -> float:
        """The published time, or the counted bytes over the published bandwidth [us]."""
        if self.time_us is not None:
            return self.time_us
        assert self.bandwidth is not None, "one of them is published"
        return self.counted_bytes / self.bandwidth / 1e3

    def planned(self) -> hk.Plan:
        """Return the plan that the library's way to send is."""
        if self.sends == "copies":
            size = self.tokens * TOP * self.token_bytes
            return hk.plan("all-to-all", self.topology, size=size, algorithm="direct", chunks=1)
        tokens = min(self.tokens, _MOST // self.npus)
        words = {
            "experts": self.experts,
            "top": TOP,
            "tokens": tokens,
            "size": self.tokens * self.token_bytes // tokens,
            **({} if self.limit is None else {"nodes": self.limit}),
        }
        text = ",".join(f"{key}={value}" for key, value in words.items())
        layer = hk.load_collective(f"{self.phase}:{text}", self.topology)
        return hk.plan(layer, self.topology, algorithm="steiner", chunks=1)


@dataclass(frozen=True)
class Predicted:
    """A published time and what is predicted [us]."""

    published: Published
    time_us: float

    @property
    def error(self) -> float:
        """Predicted over published time, less one."""
        return self.time_us / self.published.measured_us - 1


@dataclass(frozen=True)
class MoeResult:
    """All that was predicted."""

    rows: list[Predicted]

    def groups(self) -> dict[tuple[str, str, str], list[Predicted]]:
        """Return the rows of each source, library and way to send, and of all for each way."""
        found: dict[tuple[str, str, str], list[Predicted]] = {}
        for row in self.rows:
            of = row.published
            found.setdefault((of.source, of.library, of.sends), []).append(row)
        for row in self.rows:
            found.setdefault(("all", "", row.published.sends), []).append(row)
        found["all", "", ""] = self.rows
        return found


def middle(rows: Sequence[Predicted]) -> tuple[float, float]:
    """Return the median of the absolute errors, and that of the errors."""
    return median(abs(row.error) for row in rows), median(row.error for row in rows)


def published() -> list[Published]:
    """Return all published times."""
    text = (files("hocket_studies") / "moe_measured" / "times.csv").read_text(encoding="utf-8")
    return [_read(row) for row in csv.DictReader(text.splitlines())]


def _read(row: Mapping[str, str]) -> Published:
    return Published(
        source=row["source"],
        library=row["library"],
        machine=row["machine"],
        sends=row["sends"],
        phase=row["phase"],
        npus=int(row["npus"]),
        tokens=int(row["tokens"]),
        experts=int(row["experts"]),
        nodes=int(row["nodes"]) if row["nodes"] else None,
        token_bytes=int(row["token_bytes"]),
        time_us=float(row["time_us"]) if row["time_us"] else None,
        bandwidth=float(row["bandwidth_gbps"]) if row["bandwidth_gbps"] else None,
    )


def reproduce_moe(
    sources: Sequence[str] | None = None, *, on_case: OnCase | None = None
) -> MoeResult:
    """Predict published times of MoE dispatch and combine.

    Parameters
    ----------
    sources
        Only of these; by default of all.
    on_case
        Called as ``on_case(what, done, total)`` after each prediction.
    """
    given = [each for each in published() if sources is None or each.source in sources]
    times: dict[object, float] = {}
    rows = []
    for number, each in enumerate(given):
        if on_case is not None:
            on_case(f"{each.library}: {each.phase} of {each.npus}", number, len(given))
        phase = each.phase if each.sends == "once" else ""
        what = (each.npus, each.tokens, each.experts, each.limit, each.token_bytes)
        key = (RATES[each.machine], each.sends, phase, what)
        if key not in times:
            times[key] = hk.simulate(each.planned()).time * 1e6
        rows.append(Predicted(each, times[key]))
    return MoeResult(rows)
