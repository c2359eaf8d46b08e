"""Files of runtimes read as plans: what was written comes back, and what does not fit is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.nccl import dumps

import hocket as hk
from hocket.cli.app import run
from hocket.formats import ExportOptions, ImportOptions, export_plan, import_plan

RATE = {"bandwidth": "50 GB/s", "latency": "500 ns"}


def moved(plan: hk.Plan) -> int:
    """Bytes that all transfers of a plan move."""
    return int(np.asarray(plan.core.size_bytes, dtype=np.uint64).sum())


@pytest.mark.parametrize("to", ["msccl", "mscclpp"])
@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        ("all-reduce", 2 * 3),
        ("reduce-scatter", 3),
        ("all-gather", 3),
        ("all-to-all", 3),
    ],
)
def test_a_plan_that_is_written_comes_back(to: str, kind: str, factor: int, tmp_path: Path) -> None:
    topology = hk.topology.fully_connected(4, **RATE)
    plan = hk.plan(kind, topology, size="4 MiB", algorithm="direct", chunks=1)
    export_plan(plan, tmp_path / "file", to=to)
    again = import_plan(tmp_path / "file", topology, options=ImportOptions(size="4 MiB"))
    assert again.is_verified
    assert again.collective.kind == kind
    # Of every byte, three quarters must reach three others, or come from them: no plan moves less.
    assert moved(again) == moved(plan) == factor * (4 << 20)
    assert hk.simulate(again).time_ps == hk.simulate(plan).time_ps


def test_a_ring_takes_as_long_as_before(tmp_path: Path) -> None:
    topology = hk.topology.ring(5, **RATE)
    plan = hk.plan("all-reduce", topology, size="5 MB", algorithm="ring", chunks=1)
    export_plan(plan, tmp_path / "ring.xml", to="msccl")
    again = hk.import_plan(tmp_path / "ring.xml", topology, options=ImportOptions(size="5 MB"))
    assert again.algorithm == "ring"
    assert hk.simulate(again).time_ps == hk.simulate(plan).time_ps


def test_sizes_are_those_that_the_file_is_for(tmp_path: Path) -> None:
    topology = hk.topology.ring(4, **RATE)
    plan = hk.plan("all-reduce", topology, size="4 MB", algorithm="ring", chunks=1)
    path = tmp_path / "ring.xml"
    for least, most, size in ((0, 4096, 4096), (1 << 30, 1 << 31, 1 << 30), (0, None, 64 << 20)):
        options = ExportOptions(min_size=least, max_size=most)
        export_plan(plan, path, to="msccl", options=options)
        assert import_plan(path, topology).collective.size == size


def test_ranks_may_be_npus_of_a_larger_network(tmp_path: Path) -> None:
    small, large = hk.topology.ring(4, **RATE), hk.topology.switch(8, **RATE)
    plan = hk.plan("all-gather", small, size="4 MB", algorithm="ring", chunks=1)
    path = tmp_path / "ring.json"
    export_plan(plan, path, to="mscclpp")
    with pytest.raises(hk.SpecError, match=r"for 4 ranks, 'switch 8' has 8 NPUs; .* by npus"):
        import_plan(path, large)
    again = import_plan(path, large, options=ImportOptions(npus="7,5,3,1"))
    assert again.collective.npus == [7, 5, 3, 1]
    pairs = set(zip(again.transfers.src.tolist(), again.transfers.dst.tolist(), strict=True))
    assert pairs == {(7, 5), (5, 3), (3, 1), (1, 7)}
    with pytest.raises(hk.SpecError, match="3 NPUs for the 4 ranks"):
        import_plan(path, large, options=ImportOptions(npus="0-2"))


def test_links_that_are_not_there_are_named(tmp_path: Path) -> None:
    full, ring = hk.topology.fully_connected(4, **RATE), hk.topology.ring(4, **RATE)
    plan = hk.plan("all-to-all", full, size="4 MB", algorithm="direct", chunks=1)
    path = tmp_path / "direct.xml"
    export_plan(plan, path, to="msccl")
    with pytest.raises(hk.InfeasibleError) as caught:
        import_plan(path, ring)
    said = str(caught.value)
    assert "rank 0 (npu0) sends to rank 2 (npu2), and 'ring 4' has no link between them" in said
    assert "3 other pairs" in said
    assert import_plan(path, ring, options=ImportOptions(through_npus=True)).is_verified


def written(folder: Path, machine: dumps.Made) -> tuple[Path, Path]:
    """Dump and graphs of a machine."""
    topo, graph = folder / "topo.xml", folder / "graph.xml"
    topo.write_text(machine.topology())
    graph.write_text(dumps.rings_of(machine))
    return topo, graph


@pytest.mark.parametrize("machine", [dumps.DGX1, dumps.PCI_T4], ids=lambda each: each.name)
def test_graphs_are_the_plans_that_the_audit_judges(machine: dumps.Made, tmp_path: Path) -> None:
    topo, graph = written(tmp_path, machine)
    found = hk.nccl.audit(topo, graph, size="64 MiB")
    for entry in found.entries:
        assert entry.run is not None
        options = ImportOptions(graph=entry.algorithm)
        plan = import_plan(graph, topo, options=options)
        assert plan.is_verified
        assert hk.simulate(plan).time_ps == entry.run.time_ps
    assert found.pick is not None
    assert import_plan(graph, topo).algorithm == f"nccl-{found.pick.algorithm}"


def test_graphs_need_the_dump_and_have_no_others(tmp_path: Path) -> None:
    topo, graph = written(tmp_path, dumps.PCI_T4)
    with pytest.raises(hk.SpecError, match="'dgx1_v100' is not the dump of a machine"):
        import_plan(graph, "dgx1_v100")
    with pytest.raises(hk.SpecError, match="no graph 'nvls'; it has ring, tree"):
        import_plan(graph, topo, options=ImportOptions(graph="nvls"))
    with pytest.raises(hk.SpecError, match="npus: is not an option of NCCL's graphs"):
        import_plan(graph, topo, options=ImportOptions(npus="0-3"))
    with pytest.raises(hk.SpecError, match="a machine's dump says no plan"):
        import_plan(topo, topo)


def test_the_command_writes_a_plan_or_says_what_a_file_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topology = hk.topology.ring(4, **RATE)
    plan = hk.plan("all-reduce", topology, size="4 MB", algorithm="ring", chunks=1)
    path, out = tmp_path / "ring.xml", tmp_path / "ring.parquet"
    export_plan(plan, path, to="msccl")
    network = "ring:4@50GB/s,500ns"
    assert run(["import", str(path), "-t", network, "-o", str(out), "-s", "4MB", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["format"], made["verified"], made["transfers"]) == ("hocket.plan", True, 24)
    assert hk.Plan.load(out).verify().collective == plan.collective
    assert run(["import", str(path)]) == 0
    assert "MSCCL's XML: ring, allreduce among 4 ranks" in capsys.readouterr().out
    out.unlink()
    for arguments, said in (
        (["-o", str(out)], "a plan is of a network"),
        (["-t", network], "there is no plan to write"),
        (["-t", "line:4@50GB/s,500ns", "-o", str(out)], "has no link between them"),
        (["-t", network, "-o", str(out), "--nodes", "2"], "--nodes: is not an option of MSCCL"),
    ):
        assert run(["import", str(path), *arguments]) == 2
        printed = capsys.readouterr()
        assert said in printed.err
        assert printed.err.count("\n") == 1
        assert not out.exists()
