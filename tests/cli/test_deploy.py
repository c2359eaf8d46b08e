"""``hocket deploy``: what the command line adds to the function."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.nccl.dumps import DGX_H100, bus

import hocket as hk
from hocket.deployment import MANIFEST
from hocket.deployment.manifest import digest, load_deployment


def test_the_kind_of_gpu_is_that_of_the_dump(hocket: Any, folder: Path) -> None:
    (folder / "topo.xml").write_text(DGX_H100.topology())
    asked = ("--sizes", "8K:8K", "--collectives", "all-reduce")
    hocket("deploy", "-t", "topo.xml", *asked, "-o", "deploy")
    machine = json.loads((folder / "deploy" / MANIFEST).read_text())["machine"]
    assert (machine["gpu"], len(machine["npus"])) == ("sm90", 8)


def test_a_dump_gives_bus_ids_and_graphs(hocket: Any, folder: Path) -> None:
    (folder / "topo.xml").write_text(DGX_H100.topology())
    asked = (
        "--sizes",
        "8K:8K",
        "--collectives",
        "all-reduce",
        "--process-groups",
        "world,dp=2,tp=4",
    )
    made = hocket("deploy", "-t", "dump:topo.xml,nodes=1", *asked, "-o", "deploy")
    assert made.code == 0, made.err
    manifest = json.loads((folder / "deploy" / MANIFEST).read_text())
    npus = manifest["machine"]["npus"]
    assert [(each["node"], each["bus"]) for each in npus] == [(0, bus(gpu)) for gpu in range(8)]
    deployment = load_deployment(folder / "deploy")
    for npus, name in (((0, 1, 2, 3), "tp"), ((4, 5, 6, 7), "tp"), ((1, 5), "dp")):
        file = deployment.graph_of(npus, npus[-1])
        assert file is not None
        assert file.file.startswith(f"graph-{name}-")
        for graph in hk.nccl.read_graph(folder / "deploy" / file.file):
            for _, gpus, _ in graph.channels:
                assert sorted(dev for dev, _ in gpus) == list(npus)
    assert deployment.graph_of((1, 0), 0) is None
    assert hocket("check", "deploy").code == 0
    for change, why in (
        ({"npus": [[0, 1]]}, "NPUs (0, 1) are no group"),
        ({"npus": [[0, 8]]}, "NPUs (0, 8) are no group"),
        ({"npus": [[4, 5, 6, 7]]}, "NPUs (4, 5, 6, 7) have others already"),
        ({"npus": [[0, 1, 2, 3, 4, 5, 6, 7], [0, 4]]}, "NPUs (0, 4) have others already"),
        ({"node": 1}, "a group has no node 1"),
    ):
        copy = json.loads(json.dumps(manifest))
        copy["fallback"]["graphs"][0] |= change
        (folder / "deploy" / MANIFEST).write_text(json.dumps({**copy, "sha256": digest(copy)}))
        assert why in hocket("check", "deploy").err
    graphs = manifest["fallback"]["graphs"]
    graphs[0]["npus"], graphs[1]["npus"] = graphs[1]["npus"], graphs[0]["npus"]
    manifest["sha256"] = digest(manifest)
    (folder / "deploy" / MANIFEST).write_text(json.dumps(manifest))
    assert "it has not the 2 GPUs that NPUs [0, 4] have on a node" in hocket("check", "deploy").out
    wrong = folder / "deploy" / manifest["fallback"]["graphs"][0]["file"]
    wrong.write_text(wrong.read_text().replace("gpu", "gqu", 1))
    assert hocket("check", "deploy").code == 1


def test_graphs_are_left_out_where_something_has_failed(hocket: Any, folder: Path) -> None:
    (folder / "topo.xml").write_text(DGX_H100.topology())
    asked = ("--sizes", "8K:8K", "--collectives", "all-reduce", "--failed", "gpu7")
    hocket("deploy", "-t", "topo.xml", *asked, "-o", "deploy")
    assert load_deployment(folder / "deploy").manifest.fallback.graphs == []


def test_a_folder_without_a_name_is_refused_by_the_option(hocket: Any, folder: Path) -> None:
    made = hocket("deploy", "-t", "ring:4@25GB/s,1us", "-o", "")
    assert (made.code, made.err) == (2, "hocket: --output: '' is empty; give a value\n")


def test_nodes_that_differ_have_graphs_of_their_own(
    hocket: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.xml").write_text(DGX_H100.topology())
    (folder / "b.xml").write_text(replace(DGX_H100, down=frozenset({3})).topology())
    asked = (
        "--sizes",
        "1M:1M",
        "--collectives",
        "all-reduce",
        "--process-groups",
        "world,dp=2,tp=8",
    )
    made = hocket("deploy", "-t", "dump:a.xml,b.xml", *asked, "-o", "deploy")
    assert made.code == 0, made.err
    deployment = load_deployment(folder / "deploy")
    world = tuple(range(16))
    first, second = (deployment.graph_of(world, npu) for npu in (0, 8))
    assert first is not None
    assert second is not None
    assert [first.file, second.file] == ["graph-world-0.node0.xml", "graph-world-0.node1.xml"]
    channels = [
        len(hk.nccl.read_graph(folder / "deploy" / each.file)[0].channels)
        for each in (first, second)
    ]
    assert channels[0] == channels[1]
    assert deployment.graph_of(world, 16) is None
    inside = deployment.graph_of(world[8:], 8)
    assert inside is not None
    assert inside.node is None
    for ranks, rank, file in (
        (None, 9, second.file),
        (range(8, 16), 8, inside.file),
        (range(8), 8, ""),
        ([3, 4], 3, ""),
    ):
        with hk.nccl.graph_file("deploy", ranks, rank):
            assert Path(os.environ.get("NCCL_GRAPH_FILE", "")).name == file
    monkeypatch.setenv("RANK", "15")
    with hk.nccl.graph_file("deploy"):
        assert os.environ["NCCL_GRAPH_FILE"] == str(folder / "deploy" / second.file)
    with pytest.raises(hk.SpecError, match="rank: 16 is"), hk.nccl.graph_file("deploy", rank=16):
        pass
    monkeypatch.delenv("RANK")
    with pytest.raises(hk.SpecError, match="RANK is not set"), hk.nccl.graph_file("deploy"):
        pass
    assert hocket("check", "deploy").code == 0


@pytest.mark.parametrize("kind", ["chakra", "msccl"])
def test_an_export_without_a_name_is_refused_by_the_option(
    hocket: Any, folder: Path, kind: str
) -> None:
    hk.plan("all-reduce", "ring:2@1GB/s,1us", size="1KB", algorithm="ring").save("plan.parquet")
    made = hocket("export", "plan.parquet", "--to", kind, "-o", "")
    assert (made.code, made.err[:25]) == (2, "hocket: --output: '' is e")
    assert [each.name for each in folder.iterdir()] == ["plan.parquet"]
