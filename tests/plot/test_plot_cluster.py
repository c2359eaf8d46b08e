"""Pictures of jobs on a cluster: what they show is what the run did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hocket.plot.cluster import draw_links, draw_timeline, failures, job_rates, link_shares
from hocket.routing import ClusterRun, Job, cluster, simulate

PNG = b"\x89PNG\r\n\x1a\n"


def small(*, keep_rates: bool = True, jobs: int = 2, failed: tuple[str, ...] = ()) -> ClusterRun:
    """Jobs of 4 GPUs, each a NIC to itself, on 4 spines and 8 ToRs."""
    fabric = cluster("clos:4x8", gpus_per_host=2, nics_per_host=2, failed=failed)
    listed = [
        Job(
            f"job{i}",
            parameters="1e9",
            data=4,
            iterations=3,
            compute="0.1 s",
            placement="random",
            arrival=f"{50 * i} ms",
        )
        for i in range(jobs)
    ]
    return simulate(fabric, listed, scheme="greedy", seed=1, keep_rates=keep_rates)


def test_rates_add_up_to_the_bytes_that_were_sent() -> None:
    run = small()
    rates = job_rates(run, bins=50)
    assert rates is not None
    assert rates.shape == (2, 50)
    sent = rates.sum(axis=1) * run.time / 50
    # A ring of 4 sends 2 x 3 quarters of 4e9 B by each rank, three times; some of it inside a host.
    assert sent == pytest.approx([3 * 4 * 6 * 1e9] * 2, rel=1e-6)
    before = round(50 * 0.15 / run.time) - 1
    assert not rates[1, : max(before, 0)].any()


def test_a_run_without_rates_or_transfers_has_none() -> None:
    assert job_rates(small(keep_rates=False)) is None
    fabric = cluster("clos:4x8", gpus_per_host=2, nics_per_host=2)
    alone = simulate(fabric, [Job("a", parameters="1e9", compute="1 s")], keep_rates=True)
    assert job_rates(alone) is None


def test_shares_are_of_each_tier() -> None:
    run = small(failed=("spine2", "tor0,spine1"))
    tiers = link_shares(run)
    assert {key: len(links) for key, (links, _) in tiers.items()} == {
        ("npu", "tor"): 32,
        ("tor", "npu"): 32,
        ("tor", "spine"): 23,
        ("spine", "tor"): 23,
    }
    topology = run.cluster.topology
    for links, shares in tiers.values():
        could = topology.link_bandwidth[links].astype(float) * run.time
        assert np.allclose(shares * could, run.link_bytes[links])
        assert 0 <= shares.min() <= shares.max() <= 1
    # What goes up to spines comes down from them.
    up, down = (tiers[key][1].sum() for key in (("tor", "spine"), ("spine", "tor")))
    assert up == pytest.approx(down)
    assert up > 0


def test_failures_that_were_answered_are_marked(tmp_path: Path) -> None:
    fabric = cluster("clos:4x8", gpus_per_host=2, nics_per_host=2)
    job = Job("a", parameters="1e9", data=8, iterations=2, compute="0.1 s")
    run = simulate(fabric, [job], outages=["spine1@150 ms"], answer="10 ms")
    assert failures(run) == [0.15]
    assert not failures(small())
    picture = tmp_path / "a.svg"
    draw_timeline(run, picture)
    draw_timeline(small(), tmp_path / "b.svg")
    dashed = "stroke-dasharray"
    assert dashed in picture.read_text()
    assert dashed not in (tmp_path / "b.svg").read_text()


@pytest.mark.parametrize(
    "run",
    [small(), small(keep_rates=False, jobs=1), small(jobs=8, failed=("spine2", "tor0,spine1"))],
    ids=["two", "no rates", "failures"],
)
@pytest.mark.parametrize("draw", [draw_timeline, draw_links])
def test_pictures_are_drawn(run: ClusterRun, draw: object, tmp_path: Path) -> None:
    assert callable(draw)
    draw(run, tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(PNG)


def test_names_are_no_formulas(tmp_path: Path) -> None:
    fabric = cluster("clos:4x8", gpus_per_host=2, nics_per_host=2)
    listed = [Job(name, parameters=100, compute="1 s") for name in ("$x_{$", "$a$")]
    draw_timeline(simulate(fabric, listed, keep_rates=True), tmp_path / "run.svg")
    assert (tmp_path / "run.svg").stat().st_size > 1000


def test_a_run_of_nothing_is_drawn(tmp_path: Path) -> None:
    fabric = cluster("clos:4x8", gpus_per_host=2, nics_per_host=2)
    job = Job("a", parameters="1e9", compute="0 s")
    run = simulate(fabric, [job], keep_rates=True)
    for name, draw in (("time.png", draw_timeline), ("links.svg", draw_links)):
        draw(run, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
