"""Training iterations written as traces: the same work, calls and messages, and about as long."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import hocket as hk
from hocket.cli.app import run as command
from hocket.traces import CALLS, Trace

RING = hk.topology.ring(8, bandwidth="50 GB/s", latency="500 ns")
GRID = hk.topology.product(
    "Ring_SW", [4, 2], bandwidth=["200 GB/s", "50 GB/s"], latency=["500 ns", "1 us"]
)
CASES = [
    (RING, "dp=8", "ring"),
    (RING, "dp=4,tp=2", "ring"),
    (RING, "dp=2,tp=2,pp=2", "ring"),
    (GRID, "dp=2,tp=4,zero=3", "hierarchical"),
    (GRID, "dp=4,pp=2", "hierarchical"),
]
ASTRA = os.environ.get("HOCKET_ASTRA_SIM")


def trained(topology: hk.Topology, parallel: str, algorithm: str) -> hk.TrainingRun:
    return hk.train(
        "alexnet", topology, parallel=parallel, algorithm=algorithm, samples=32, memory_check=False
    )


def written(run: hk.TrainingRun, folder: Path) -> Trace:
    made = hk.traces.write_training(run, folder)
    trace = hk.traces.load(folder / "workload", folder / "groups.json")
    assert (trace.ranks, len(trace)) == (made.ranks, made.nodes)
    return trace


@pytest.mark.parametrize(("topology", "parallel", "algorithm"), CASES)
def test_the_trace_has_what_the_run_has(
    topology: hk.Topology, parallel: str, algorithm: str, tmp_path: Path
) -> None:
    run = trained(topology, parallel, algorithm)
    trace = written(run, tmp_path / "made")
    stages = [0] * run.parallel.pp
    for actor, time in zip(run.columns.actor, run.columns.time_ps.tolist(), strict=True):
        stages[actor] += time
    # Every NPU computes as long as its stage, less what is cut off once.
    compute = [
        int(trace.duration_ps[low:high].sum())
        for low, high in zip(trace.rank_first[:-1], trace.rank_first[1:], strict=True)
    ]
    lost = Counter(min(s - t for s in stages if s >= t) < 1_000_000 for t in compute)
    assert lost == {True: 8}
    # A call of a stage is made by each group of its NPUs.
    told: Counter[tuple[str, int, int]] = Counter()
    per_stage = 8 // run.parallel.pp
    for place, priority in zip(run.columns.shape, run.columns.priority, strict=True):
        exchange = run.exchanges[place]
        if priority:
            told[exchange.kind, exchange.npus, exchange.size] += per_stage // exchange.npus
    firsts, sizes = trace.calls_first.tolist(), trace.calls_size.tolist()
    found = Counter(
        (CALLS[kind], firsts[i + 1] - firsts[i], sizes[i])
        for i, kind in enumerate(trace.calls_kind.tolist())
    )
    assert found == Counter(
        {
            (kind, npus, -(-size // npus) * npus if kind == "all-gather" else size): count
            for (kind, npus, size), count in told.items()
        }
    )
    messages = sum(1 for priority in run.columns.priority if not priority)
    assert hk.traces.summarize(trace).messages == messages * per_stage


def test_replayed_it_takes_as_long(tmp_path: Path) -> None:
    """Where groups share no links, but for the microsecond that is cut off."""
    run = trained(RING, "dp=8", "ring")
    trace = written(run, tmp_path / "made")
    again = hk.traces.replay(trace, RING, algorithm="ring")
    assert 0 <= run.total_ps - again.time_ps < 1_000_000


def test_files(tmp_path: Path) -> None:
    run = trained(GRID, "dp=2,tp=4", "hierarchical")
    made = hk.traces.write_training(run, tmp_path / "made")
    groups = json.loads((tmp_path / "made" / "groups.json").read_text())
    assert sorted(groups.values()) == sorted(
        [[0, 1, 2, 3], [4, 5, 6, 7], *([i, i + 4] for i in range(4))]
    )
    assert hk.topology.load(tmp_path / "made" / "network.yml").dimensions == GRID.dimensions
    system = json.loads((tmp_path / "made" / "system.json").read_text())
    assert system["all-reduce-implementation"] == ["ring", "halvingDoubling"]
    assert made.notes == ()
    mesh = hk.topology.mesh(4, 2, bandwidth="50 GB/s", latency="500 ns")
    again = hk.traces.write_training(trained(mesh, "dp=8", "ring"), tmp_path / "made")
    assert "no network.yml: ASTRA-sim has no Line" in again.notes[0]
    assert not (tmp_path / "made" / "network.yml").exists()
    with pytest.raises(hk.SpecError, match="run: 3 is not"):
        hk.traces.write_training(3, tmp_path / "made")  # type: ignore[arg-type]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "alexnet", "-t", "ring:4@50GB/s,500ns", "--chakra"]
    assert command([*arguments, str(tmp_path / "made")]) == 0
    assert len(list((tmp_path / "made").glob("workload.*.et"))) == 4
    (tmp_path / "made" / "mine").touch()
    assert command([*arguments, str(tmp_path / "made")]) == 2
    assert "has other files, such as 'mine'" in capsys.readouterr().err


@pytest.mark.skipif(
    ASTRA is None, reason="HOCKET_ASTRA_SIM names no folder of ASTRA-sim's programs"
)
@pytest.mark.parametrize(
    ("topology", "parallel", "algorithm"),
    [case for case in CASES if "tp=2,pp=2" not in case[1]],  # there all three share links
)
def test_astra_sim_runs_it(
    topology: hk.Topology, parallel: str, algorithm: str, tmp_path: Path
) -> None:
    """Its collectives are not quite these, and it has one under way at a time."""
    assert ASTRA is not None
    run = trained(topology, parallel, algorithm)
    hk.traces.write_training(run, tmp_path / "made")
    backend = "Aware" if len(topology.dimensions) == 1 else "Unaware"
    files = {
        "workload": "workload",
        "system": "system.json",
        "remote-memory": "memory.json",
        "network": "network.yml",
        "comm-group": "groups.json",
    }
    done = subprocess.run(
        [
            str(Path(ASTRA) / f"AstraSim_Analytical_Congestion_{backend}"),
            *(f"--{key}-configuration={value}" for key, value in files.items()),
        ],
        cwd=tmp_path / "made",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    ends = [int(each) for each in re.findall(r"finished, (\d+) cycles", done.stdout)]
    assert len(ends) == 8, done.stdout + done.stderr
    assert max(ends) * 1000 == pytest.approx(run.total_ps, rel=0.15)
