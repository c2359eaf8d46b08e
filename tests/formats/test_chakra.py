"""Plans as Chakra's traces: every transfer and every wait is in them, and ASTRA-sim takes as long."""

from __future__ import annotations

import json
import os
import re
import subprocess
from itertools import product
from pathlib import Path

import pytest

import hocket as hk
from hocket.cli.app import run
from hocket.formats import export_plan, export_trace

LINK = {"bandwidth": "50 GB/s", "latency": "500 ns"}
NETWORKS = {
    "ring": hk.topology.ring(4, **LINK),
    "full": hk.topology.fully_connected(5, **LINK),
    "switch": hk.topology.switch(4, **LINK),
    "mesh": hk.topology.mesh(3, 2, **LINK),
}
ALGORITHMS = ("ring", "direct", "binomial", "greedy", "trees", "halving-doubling", "flows")
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce")
ASTRA = os.environ.get("HOCKET_ASTRA_SIM")
"""Folder of ASTRA-sim's programs, AstraSim_Analytical_Congestion_Aware and _Unaware."""


def plan_of(collective: str, network: str, algorithm: str, chunks: int = 1) -> hk.Plan | None:
    try:
        return hk.plan(
            collective, NETWORKS[network], size="8 MB", algorithm=algorithm, chunks=chunks
        )
    except hk.Error:
        return None


def awaited(plan: hk.Plan) -> list[set[int]]:
    """Transfers that each waits for, by the plan's own table."""
    table = plan.to_frame()
    groups: list[list[list[int]]] = table["groups"].to_pylist()
    members = next((each for each in groups if each), [])

    def of(bits: int) -> set[int]:
        if bits == hk.Plan.NO_WAIT:
            return set()
        if bits >> 31:
            return set().union(*(of(each) for each in members[bits & (1 << 31) - 1]))
        return {bits}

    return [of(bits) for bits in plan.transfers.wait.tolist()]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_transfers_and_waits_are_in_the_traces(
    network: str, collective: str, tmp_path: Path
) -> None:
    tried = 0
    for algorithm, chunks in product(ALGORITHMS, (1, 2)):
        plan = plan_of(collective, network, algorithm, chunks)
        if plan is None:
            continue
        tried += 1
        made = export_trace(plan, tmp_path / "out")
        trace = hk.traces.load(tmp_path / "out" / "plan")
        assert trace.ranks == made.exported.ranks == plan.topology.npu_count
        assert len(trace) == made.exported.nodes
        sends = [row for row in range(len(trace)) if trace.kind[row] == 5]
        rank_of = [
            rank
            for rank in range(trace.ranks)
            for _ in range(int(trace.rank_first[rank + 1] - trace.rank_first[rank]))
        ]
        told = {}
        for row in sends:
            low, high = trace.dependency_first[row : row + 2].tolist()
            waits = trace.dependencies[low:high].tolist()
            told[int(trace.tag[row])] = (
                rank_of[row],
                int(trace.peer[row]),
                int(trace.bytes[row]),
                {int(trace.id[each]) // 3 for each in waits},
            )
        table, sizes = plan.transfers, plan.transfers.size_bytes.tolist()
        columns = zip(table.src.tolist(), table.dst.tolist(), sizes, awaited(plan), strict=True)
        assert [told[tag] for tag in range(len(plan))] == list(columns)
        # What sums is followed by a computation, for which whoever waits for the sum waits.
        kinds = dict(zip(trace.id.tolist(), trace.kind.tolist(), strict=True))
        sums = {number // 3 for number, kind in kinds.items() if kind == 4 and number % 3 == 2}
        assert sums == {i for i, op in enumerate(table.op.tolist()) if op == 1}
        for row in sends:
            low, high = trace.dependency_first[row : row + 2].tolist()
            for each in trace.dependencies[low:high].tolist():
                number = int(trace.id[each])
                assert number % 3 != 1 or number // 3 not in sums
    assert tried >= 2


def test_a_ring_has_what_a_ring_has(tmp_path: Path) -> None:
    plan = plan_of("all-reduce", "ring", "ring")
    assert plan is not None
    made = export_trace(plan, tmp_path / "ring")
    trace = hk.traces.load(tmp_path / "ring" / "plan")
    counts = {name: trace.kind.tolist().count(kind) for kind, name in hk.traces.KINDS.items()}
    assert (counts["send"], counts["receive"], counts["compute"]) == (4 * 6, 4 * 6, 4 * 3)
    replayed = hk.traces.replay(trace, NETWORKS["ring"], algorithm="ring").time_ps
    # 2 (n - 1) (a + S / (n B))
    assert replayed == hk.simulate(plan).time_ps == 6 * (500_000 + 2_000_000 * 20)
    assert made.files == ("system.json", "memory.json", "network.yml")
    names = {path.name for path in (tmp_path / "ring").iterdir()}
    traces = {f"{what}.{rank}.et" for what in ("plan", "workload") for rank in range(4)}
    assert names == traces | set(made.files)
    system = json.loads((tmp_path / "ring" / "system.json").read_text())
    assert system["all-reduce-implementation-custom"] == ["plan"]
    again = hk.topology.load(tmp_path / "ring" / "network.yml")
    assert again.dimensions == NETWORKS["ring"].dimensions
    workload = hk.traces.load(tmp_path / "ring" / "workload")
    assert workload.calls_size.tolist() == [8_000_000]


def test_many_awaited_transfers_are_a_node(tmp_path: Path) -> None:
    """On a direct all-reduce among 67, each NPU waits for 66 sums before it sends its block 66 times."""
    topo = hk.topology.fully_connected(67, **LINK)
    plan = hk.plan("all-reduce", topo, size="67 KB", algorithm="direct", chunks=1)
    made = export_trace(plan, tmp_path / "out")
    trace = hk.traces.load(tmp_path / "out" / "plan")
    joins = [row for row, number in enumerate(trace.id.tolist()) if number >= 3 * len(plan)]
    assert len(joins) == 67
    assert made.exported.nodes == len(trace) == 2 * len(plan) + len(plan) // 2 + 67
    low, high = trace.dependency_first[joins[0] : joins[0] + 2].tolist()
    awaited = trace.id[trace.dependencies[low:high]]
    assert len(awaited) == 66
    assert set((awaited % 3).tolist()) == {2}
    waiting = [
        row
        for row in range(len(trace))
        if joins[0] in trace.dependencies[slice(*trace.dependency_first[row : row + 2].tolist())]
    ]
    assert len(waiting) == 66
    assert hk.traces.replay(trace, topo).time_ps > 0


def test_a_part_of_the_npus_is_a_group(tmp_path: Path) -> None:
    topo = NETWORKS["full"]
    plan = hk.plan("all-gather", topo, size="9 MB", npus=[1, 2, 4], algorithm="direct")
    made = export_trace(plan, tmp_path / "part")
    assert json.loads((tmp_path / "part" / "groups.json").read_text()) == {"1": [1, 2, 4]}
    trace = hk.traces.load(tmp_path / "part" / "plan")
    assert trace.ranks == made.exported.ranks == 3
    workload = hk.traces.load(tmp_path / "part" / "workload", tmp_path / "part" / "groups.json")
    assert workload.ranks == 5
    assert hk.traces.summarize(workload).nodes == {"compute": 2, "collective": 3}
    assert workload.calls_size.tolist() == [9_000_000]


def test_what_astra_sim_does_not_know_is_said(tmp_path: Path) -> None:
    plan = plan_of("broadcast", "mesh", "binomial")
    assert plan is not None
    made = export_trace(plan, tmp_path / "made")
    assert made.exported.call == "all-gather"
    assert any(note.startswith("no network.yml: ASTRA-sim has no Line") for note in made.notes)
    assert any("calls it all-gather" in note for note in made.notes)
    assert not (tmp_path / "made" / "network.yml").exists()


def test_a_switch_that_sums_is_refused(tmp_path: Path) -> None:
    topo = hk.topology.offloaded(NETWORKS["switch"], "all", ["sum", "multicast"])
    plan = hk.plan("all-reduce", topo, size="8 MB", algorithm="in-network")
    with pytest.raises(hk.InfeasibleError, match=r"transfer 0 starts or ends at switch \S+, and"):
        export_trace(plan, tmp_path / "no")
    assert not list(tmp_path.iterdir())


def test_folders(tmp_path: Path) -> None:
    plan = plan_of("all-gather", "ring", "ring")
    other = plan_of("all-gather", "full", "ring")
    assert plan is not None
    assert other is not None
    made = tmp_path / "made"
    export_trace(other, made)
    export_trace(plan, made)  # replaces it whole
    assert len(list(made.glob("plan.*.et"))) == 4
    (made / "notes.txt").write_text("mine")
    with pytest.raises(hk.SpecError, match=r"has other files, such as 'notes\.txt'"):
        export_trace(plan, made)
    assert (made / "notes.txt").read_text() == "mine"
    with pytest.raises(hk.SpecError, match="is a file"):
        export_trace(plan, made / "notes.txt")
    with pytest.raises(hk.SpecError, match="there is no folder"):
        export_trace(plan, tmp_path / "nowhere" / "made")
    with pytest.raises(hk.SpecError, match=r"has other files, such as 'notes\.txt'"):
        export_plan(plan, made, to="chakra")

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "export":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_trace(plan, tmp_path / "stopped", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_of("all-reduce", "ring", "ring")
    assert plan is not None
    plan.save(tmp_path / "plan.parquet")
    file, folder = str(tmp_path / "plan.parquet"), str(tmp_path / "out")
    assert run(["export", file, "--to", "chakra", "-o", folder]) == 0
    assert "Chakra's traces, 4 ranks, 60 nodes, system.json" in capsys.readouterr().out
    assert run(["export", file, "--to", "chakra", "-o", folder, "--channels", "2"]) == 2
    assert "--channels: is not an option of Chakra's traces" in capsys.readouterr().err
    assert run(["export", file, "--to", "chakra", "-o", file]) == 2
    assert "is the plan" in capsys.readouterr().err


def astra_ns(folder: Path, backend: str) -> int:
    """What ASTRA-sim says that the slowest NPU takes."""
    assert ASTRA is not None
    arguments = {
        "workload-configuration": "workload",
        "system-configuration": "system.json",
        "remote-memory-configuration": "memory.json",
        "network-configuration": "network.yml",
    }
    if (folder / "groups.json").exists():
        arguments["comm-group-configuration"] = "groups.json"
    program = Path(ASTRA) / f"AstraSim_Analytical_Congestion_{backend}"
    command = [str(program), *(f"--{key}={value}" for key, value in arguments.items())]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    ends = re.findall(r"finished, (\d+) cycles", done.stdout)
    assert ends, done.stdout + done.stderr
    return max(map(int, ends))


@pytest.mark.skipif(
    ASTRA is None, reason="HOCKET_ASTRA_SIM names no folder of ASTRA-sim's programs"
)
@pytest.mark.parametrize("network", ["ring", "full", "switch"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_astra_sim_takes_as_long(network: str, collective: str, tmp_path: Path) -> None:
    """Each sum takes it 1 ns; at most as many follow each other as one NPU makes."""
    tried = 0
    for algorithm in ("ring", "binomial", "direct"):
        plan = plan_of(collective, network, algorithm)
        if plan is None or (algorithm == "direct" and network != "full"):
            continue  # messages meet on links, and it is left open who goes first
        tried += 1
        export_trace(plan, tmp_path / "out")
        whole = hk.simulate(plan, switching="store-and-forward").time_ps
        least, most = whole // 1000, -(-whole // 1000) + len(plan)
        assert least <= astra_ns(tmp_path / "out", "Aware") <= most, algorithm
    assert tried or collective == "all-to-all"


@pytest.mark.skipif(
    ASTRA is None, reason="HOCKET_ASTRA_SIM names no folder of ASTRA-sim's programs"
)
def test_astra_sim_runs_a_group(tmp_path: Path) -> None:
    topo = NETWORKS["full"]
    plan = hk.plan("all-gather", topo, size="9 MB", npus=[1, 2, 4], algorithm="direct")
    export_trace(plan, tmp_path / "part")
    assert astra_ns(tmp_path / "part", "Aware") == 500 + 3_000_000 // 50
