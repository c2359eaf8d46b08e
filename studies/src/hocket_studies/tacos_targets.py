"""The subjects of TACOS's tables and figures: networks, collectives and the methods compared.

The paper gives bandwidths; latency (0.5 us) and the bytes of a chunk only for some. Here a link
has 0.5 us and a chunk 1 MB where nothing is said. Of synthesized plans on a network whose links are
alike the ratios do not depend on either: times are whole multiples of one link's latency + bytes /
bandwidth. On Ring_FC_Switch, whose links are not, latency is left out: its slots are then 1, 2 and 4
for a chunk. Ring and Direct cut the data as they would for users, whatever the chunks of the row, and
run on the switches as they are, which are unwound for synthesis only; in table 1 on the network as
unwound, as what was published shows (:mod:`hocket_studies.tacos_published`).

References
----------
Won et al.: TACOS (arXiv 2304.05301), section VII-B, figures 6, 19, 21 and 22, tables I to V.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hocket import topology
from hocket._core import Collective, Topology
from hocket.collectives.collective import collective_on
from hocket.units import parse_bandwidth

LATENCY = "500 ns"
CHUNK_BYTES = 10**6

SYNTHESIZED = ("exact", "early", "cluster", "greedy", "blind")
BASELINES = ("rank-ring", "ring", "direct")


@dataclass(frozen=True)
class Target:
    """One row: a collective on a network, and how it is carried out."""

    name: str
    network: Callable[[], Topology]
    methods: tuple[str, ...]
    long: tuple[str, ...] = ()
    """Methods that are run in full only."""
    kind: str = "all-reduce"
    """``multi-tenant`` is three at once."""
    chunks: int = 1
    """That each NPU starts with."""
    chunk_bytes: int = CHUNK_BYTES
    unwind: str | None = None
    """Degree to which switches are unwound."""
    baselines_on: Callable[[], Topology] | None = None
    """Network of the baselines, where it is another than that of plans."""
    reference: tuple[str, ...] = ("exact", "early", "greedy", "cluster")
    """Times are divided by that of the first of these that there is."""


@dataclass(frozen=True)
class Experiment:
    """A table or figure."""

    title: str
    targets: tuple[Target, ...]


def collectives(target: Target, network: Topology) -> list[Collective]:
    """Return what a target asks: one collective, or several at once."""
    npus = network.npu_count
    each = target.chunk_bytes * target.chunks
    if target.kind == "multi-tenant":
        return [
            collective_on("broadcast", network, each, root="npu1"),  # the paper counts from 1
            collective_on("reduce", network, each, root="npu16"),
            collective_on("all-gather", network, npus * each),
        ]
    rooted = target.kind in ("broadcast", "reduce")
    return [collective_on(target.kind, network, each if rooted else npus * each)]


def _mesh(*sizes: int) -> Callable[[], Topology]:
    return lambda: topology.mesh(*sizes, bandwidth="100 GB/s", latency=LATENCY)


_SWITCH_RATE = "50 GB/s"


def _ring_fc_switch(nodes: int) -> Callable[[], Topology]:
    """Return nodes of 2 x 4 NPUs behind one switch; one node has none."""
    rates = ["200 GB/s", "100 GB/s", _SWITCH_RATE]
    if nodes == 1:
        return lambda: topology.product(
            "Ring_FC", [2, 4], bandwidth=rates[:2], latency=["0 ns"] * 2
        )
    return lambda: topology.product(
        "Ring_FC_SW", [2, 4, nodes], bandwidth=rates, latency=["0 ns"] * 3
    )


def _unwound_ring_fc_switch(nodes: int) -> Callable[[], Topology]:
    """Return the same with the switch unwound by degree 1: each NPU has one link, to the next node."""

    def build() -> Topology:
        import numpy as np

        node = _ring_fc_switch(1)()
        before = np.arange(nodes, dtype=np.uint32)[:, None] * node.npu_count
        npus = np.arange(nodes * node.npu_count, dtype=np.uint32)
        src = np.concatenate([(node.link_src + before).ravel(), npus])
        dst = np.concatenate([(node.link_dst + before).ravel(), np.roll(npus, -node.npu_count)])
        slow = np.full(npus.size, parse_bandwidth(_SWITCH_RATE, field="bandwidth"), dtype=np.uint64)
        return Topology.from_arrays(
            f"Ring_FC_Switch 2x4x{nodes}, unwound",
            [f"npu{npu}" for npu in npus],
            npus.size,
            [],
            src.astype(np.uint32),
            dst.astype(np.uint32),
            np.concatenate([np.tile(node.link_bandwidth, nodes), slow]),
            np.zeros(src.size, dtype=np.uint64),
        )

    return build


def _torus(side: int) -> Callable[[], Topology]:
    return lambda: topology.torus(side, side, bandwidth="100 GB/s", latency=LATENCY)


def _dragonfly() -> Topology:
    """Five groups of four, so that each NPU has a link to one other group."""
    return topology.dragonfly(
        5, 4, bandwidth="400 GB/s", global_bandwidth="200 GB/s", latency=LATENCY
    )


def _switch_switch() -> Topology:
    return topology.product(
        "SW_SW", [8, 4], bandwidth=["300 GB/s", "25 GB/s"], latency=[LATENCY] * 2
    )


def _failed_mesh() -> Topology:
    """NPUs 7 and 9 of 16, which the paper counts from 1, are gone."""
    return _mesh(4, 4)().without(["npu6", "npu8"])


def _scaling(nodes: int) -> Target:
    npus = 8 * nodes
    methods = ("greedy", "blind", *BASELINES) if npus <= 128 else ("greedy", *BASELINES)
    return Target(
        f"{npus} NPUs",
        _ring_fc_switch(nodes),
        ("exact", *methods) if npus <= 64 else methods,
        long=() if npus <= 64 else ("exact",),  # no table has them
        unwind=None if nodes == 1 else "1",
        baselines_on=None if nodes == 1 else _unwound_ring_fc_switch(nodes),
    )


def _clustering(side: int) -> Target:
    methods = ("early", "cluster", "greedy", "blind", *BASELINES)
    return Target(
        f"{side} x {side}",
        _torus(side),
        methods,
        reference=("early", "cluster", "greedy"),
    )


def _large(chunks: int) -> Target:
    size_mb = 25 * chunks
    return Target(
        f"{size_mb} MB",
        _mesh(10, 10),
        ("greedy", *BASELINES),
        chunks=chunks,
        chunk_bytes=250_000,  # 25 MB / 100 NPUs
    )


_ALL = ("exact", "greedy", "blind", *BASELINES)
_NO_RING = ("exact", "greedy", "blind", "direct")

EXPERIMENTS = {
    "table 1": Experiment(
        "all-reduce on Ring_FC_Switch, 2 x 4 NPUs per node, 200_100_50 GB/s",
        tuple(map(_scaling, (1, 2, 4, 8, 16, 32, 64))),
    ),
    "table 2": Experiment(
        "all-reduce on Ring_Ring: search ended early, or in clusters of slots",
        tuple(map(_clustering, (8, 10, 12))),
    ),
    "table 3": Experiment(
        "all-reduce on a 4 x 4 mesh without NPUs 7 and 9",
        (Target("all-reduce", _failed_mesh, _ALL),),
    ),
    "table 4": Experiment(
        "other collectives on a 6 x 6 mesh, root in a corner",
        tuple(
            Target(kind, _mesh(6, 6), _NO_RING, kind=kind)
            for kind in ("broadcast", "reduce", "gather", "scatter")
        ),
    ),
    "table 5": Experiment(
        "broadcast from NPU 2, reduce to NPU 17 and all-gather at once, 6 x 6 mesh",
        (Target("three at once", _mesh(6, 6), _NO_RING, kind="multi-tenant"),),
    ),
    "figure 6": Experiment(
        "all-reduce among 100 NPUs",
        (
            Target(
                "ring",
                lambda: topology.ring(100, bandwidth="100 GB/s", latency=LATENCY),
                BASELINES,
                reference=("ring",),
            ),
            Target(
                "fully connected",
                lambda: topology.fully_connected(100, bandwidth="100 GB/s", latency=LATENCY),
                BASELINES,
                reference=("direct",),
            ),
            Target("mesh", _mesh(10, 10), ("greedy", *BASELINES)),
        ),
    ),
    "figure 19": Experiment(
        "all-reduce on three networks",
        (
            Target("mesh 5 x 5", _mesh(5, 5), _ALL),
            Target("dragonfly 4 x 5", _dragonfly, _ALL),
            Target("switch_switch 8 x 4", _switch_switch, _ALL, unwind="max,1"),
        ),
    ),
    "figure 21": Experiment(
        "all-reduce on a 10 x 10 mesh, 1 to 64 chunks an NPU",
        tuple(map(_large, (1, 2, 4, 8, 16, 32, 64))),
    ),
}
"""In the order in which they are printed."""
