"""Equal paths: spread, kept, reported, and what failures of them cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import hocket as hk
from hocket.cli import run as command
from hocket.simulation.run import Fidelity
from hocket.topology.build import build_topology
from hocket.topology.text import from_text, read_failures

SIZE = "64MB"


def network(text: str, *failed: str) -> hk.Topology:
    """Give a Clos or fat tree of links of 100 Gb/s and 1 us, less what failed."""
    spec = from_text(text, bandwidth=["100 Gb/s"], latency=["1 us"])
    nodes, links = read_failures(list(failed))
    return build_topology(spec.with_failures(nodes, links))


def by_top(run: hk.Run) -> dict[str, int]:
    """Give the bytes that came to each spine or core."""
    topology, names = run.topology, run.topology.device_names
    sums: dict[str, int] = {}
    for dst, carried in zip(topology.link_dst, run.link_bytes, strict=True):
        if names[dst].startswith(("spine", "core")):
            sums[names[dst]] = sums.get(names[dst], 0) + int(carried)
    return sums


def time_of(text: str, *failed: str, algorithm: str = "direct", **options: object) -> float:
    """Simulate an all-to-all, or an all-reduce by any algorithm but direct."""
    topology = network(text, *failed)
    kind = "all-to-all" if algorithm == "direct" else "all-reduce"
    made = hk.plan(kind, topology, size=SIZE, algorithm=algorithm, **options)  # type: ignore[arg-type]
    return hk.simulate(made).time


NETWORKS = ["clos:4x4x4", "clos:2x4x4", "clos:8x16x8", "clos:4x8x8", "fat_tree:4", "fat_tree:8"]


@pytest.mark.parametrize("text", NETWORKS)
@pytest.mark.parametrize("algorithm", ["direct", "ring", "halving-doubling", "hierarchical"])
def test_every_spine_is_used_alike(text: str, algorithm: str) -> None:
    made = hk.plan("all-reduce", network(text), size=SIZE, algorithm=algorithm, chunks=2)
    run = hk.simulate(made, switching="cut-through")
    used = np.array(list(by_top(run).values()))
    assert used.max() <= 1.05 * used.mean()
    assert used.min() >= 0.95 * used.mean()
    assert run.equal_links[0] > 0


def test_all_to_all_comes_near_its_bound() -> None:
    found = hk.compare("all-to-all", network("clos:4x4x4"), size=SIZE, algorithms=["direct"])
    assert found.bound.time_ps == 4_802_000_000
    assert found.best.run.gap < 0.01
    assert found.best.run.equal_links == (32, 0)


def test_single_is_what_it_costs_to_take_the_first_path_only() -> None:
    topology = network("clos:4x4x4")
    made = hk.plan("all-to-all", topology, size=SIZE, algorithm="direct", routing="single")
    run = hk.simulate(made, fidelity="flow")
    assert run.gap > 2
    assert run.equal_links == (32, 24)
    assert (made.transfers.path == hk.Plan.DEFAULT_ROUTE).all()


def test_a_dead_spine_costs_its_share() -> None:
    # Two NPUs for each uplink, so that the spines are the bottleneck: 3 of 4 take 4/3 of the time.
    whole = time_of("clos:4x8x8", chunks=4)
    assert time_of("clos:4x8x8", "spine1", chunks=4) / whole == pytest.approx(4 / 3, rel=0.03)
    half = time_of("clos:4x8x8", "spine0", "spine3", chunks=4)
    assert half / whole == pytest.approx(2, rel=0.03)


@pytest.mark.parametrize("text", ["clos:4x4x4", "clos:4x8x8"])
@pytest.mark.parametrize("algorithm", ["direct", "halving-doubling"])
def test_a_dead_link_costs_no_more_than_its_switch(text: str, algorithm: str) -> None:
    times = [
        time_of(text, *failed, algorithm=algorithm, chunks=16)
        for failed in ((), ("tor0,spine0",), ("spine0",))
    ]
    assert times[0] <= times[1] <= 1.02 * times[2]
    assert times[2] <= 4 / 3 * 1.02 * times[0]


def test_planes_of_switches_between_npus_are_used_alike() -> None:
    # Each of 8 NPUs has a link to each of 4 switches.
    made = hk.plan(
        "all-to-all",
        build_topology(from_text("hgx_h100_ibm_4nvswitch", bandwidth=None, latency=None)),
        size=SIZE,
        algorithm="direct",
    )
    run = hk.simulate(made)
    used = run.link_bytes[run.link_bytes > 0]
    assert run.equal_links[1] == 0
    assert used.max() <= 1.3 * used.mean()


@pytest.mark.parametrize("routing", ["balanced", "ecmp", "ecmp:7", "spray", "single"])
def test_a_plan_keeps_its_paths_in_a_file(tmp_path: Path, routing: str) -> None:
    topology = network("clos:4x4x4")
    made = hk.plan("all-reduce", topology, size=SIZE, algorithm="halving-doubling", routing=routing)
    made.save(tmp_path / "plan.parquet")
    read = hk.Plan.load(tmp_path / "plan.parquet")
    assert read.routing == made.routing == routing
    assert (read.transfers.path == made.transfers.path).all()
    fidelity = "flow" if routing == "spray" else "link"
    assert hk.simulate(read, fidelity=fidelity).time == hk.simulate(made, fidelity=fidelity).time
    again = read.routed("single")
    assert (again.transfers.path == hk.Plan.DEFAULT_ROUTE).all()
    assert (read.routed("balanced").transfers.path == made.routed("balanced").transfers.path).all()


def test_ecmp_depends_on_its_seed_only() -> None:
    topology = network("clos:4x4x4")

    def paths(routing: str) -> list[int]:
        made = hk.plan("all-to-all", topology, size=SIZE, algorithm="direct", routing=routing)
        offsets, items = made.core.path_offsets, made.core.path_items
        return [items[offsets[path] + 1] for path in made.transfers.path if path < 2**31]

    assert paths("ecmp") == paths("ecmp:0")
    assert paths("ecmp:7") != paths("ecmp:0")
    assert len(set(paths("ecmp:7"))) == 16


def test_a_connection_keeps_its_ecmp_path() -> None:
    topology = network("clos:4x4x4")
    made = hk.plan(
        "all-to-all", topology, size=SIZE, algorithm="direct", chunks=4, routing="ecmp:3"
    )
    taken: dict[tuple[int, int], set[int]] = {}
    columns = made.transfers
    for src, dst, path in zip(columns.src, columns.dst, columns.path, strict=True):
        taken.setdefault((int(src), int(dst)), set()).add(int(path))
    assert all(len(paths) == 1 for paths in taken.values())


@pytest.mark.parametrize("fidelity", get_args(Fidelity)[1:])
def test_spray_splits_a_transfer_over_all_paths(fidelity: Fidelity) -> None:
    topology = network("clos:4x2x1")
    made = hk.plan("broadcast", topology, size="4MB", algorithm="direct", routing="spray")
    run = hk.simulate(made, fidelity=fidelity)
    inner = [int(each) for each in run.link_bytes if 0 < each < 4_000_000]
    assert len(inner) == 8
    assert sum(inner) == 8_000_000
    assert max(inner) - min(inner) <= 8192
    one = hk.simulate(made.routed("single"), fidelity=fidelity)
    assert run.time == pytest.approx(one.time, rel=0.01)
    assert run.time >= run.bound


def test_link_fidelity_refuses_spray() -> None:
    made = hk.plan(
        "all-reduce", network("clos:4x4x4"), size=SIZE, algorithm="ring", routing="spray"
    )
    with pytest.raises(
        hk.SpecError, match="simulate at flow or packet fidelity, or route balanced"
    ):
        hk.simulate(made)


def test_simulate_spreads_anew() -> None:
    made = hk.plan("all-to-all", network("clos:4x4x4"), size=SIZE, algorithm="direct", chunks=8)
    single = hk.simulate(made, routing="single")
    assert single.time > 3 * hk.simulate(made).time
    assert single.plan.routing == "single"
    assert made.routing == "balanced"


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "all-to-all"])
def test_spreading_never_slows_greedy(kind: str) -> None:
    topology = network("clos:4x4x4")
    own = hk.plan(kind, topology, size=SIZE, algorithm="greedy", chunks=2, routing="single")
    spread = hk.plan(kind, topology, size=SIZE, algorithm="greedy", chunks=2)
    assert hk.simulate(spread).time <= hk.simulate(own).time
    assert spread.synthesis is not None
    assert spread.synthesis.time == pytest.approx(hk.simulate(spread).time)


@pytest.mark.parametrize("text", ["mesh:4x4", "torus:4x4", "Ring_FC_SW:2x4x2", "switch:8"])
def test_networks_without_equal_paths_stay_as_they_are(text: str) -> None:
    topology = network(text)
    assert not topology.may_have_equal_paths
    made = hk.plan("all-to-all", topology, size=SIZE, algorithm="direct")
    assert (made.transfers.path == hk.Plan.DEFAULT_ROUTE).all()
    assert hk.simulate(made).equal_links == (0, 0)


@pytest.mark.parametrize("wrong", ["best", "ecmp:", "ecmp:-1", "ecmp:1.5", "", 3, None])
def test_what_is_no_routing_is_refused(wrong: object) -> None:
    with pytest.raises(hk.SpecError, match="routing"):
        hk.plan("all-reduce", network("clos:4x4x4"), size=SIZE, algorithm="ring", routing=wrong)  # type: ignore[arg-type]


def test_dimension_fidelity_has_no_paths() -> None:
    made = hk.plan("all-reduce", network("Ring_FC_SW:2x4x2"), size=SIZE, algorithm="themis")
    with pytest.raises(hk.SpecError, match="routing: dimension fidelity has no links"):
        hk.simulate(made, fidelity="dimension", routing="ecmp")


def test_json_says_how_plans_are_spread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.parquet"
    where = ["-t", "clos:4x4x4", "--bandwidth", "100 Gb/s", "--latency", "1 us", "--size", SIZE]
    arguments = [
        "plan",
        "all-to-all",
        *where,
        "-a",
        "direct",
        "--routing",
        "ecmp:5",
        "-o",
        str(plan),
        "--json",
    ]
    assert command(arguments) == 0
    assert json.loads(capsys.readouterr().out)["routing"] == "ecmp:5"
    assert command(["simulate", str(plan), "--routing", "single", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["routing"] == "single"
    assert figures["equal_links"] == {"links": 32, "idle": 24}
