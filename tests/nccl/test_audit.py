"""What NCCL runs, by its dumps: six kinds of machines, real dumps where there are some, and bad input."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

import hocket as hk
from hocket.cli import run

from . import dumps

REAL = Path(os.environ.get("HOCKET_NCCL_DUMPS", "/nonexistent"))
"""A folder with dumps that may not be copied, such as those of Azure/azhpc-images and ROCm/rccl."""


def files(folder: Path, machine: dumps.Made, graphs: str | None = None) -> tuple[str, str]:
    topology, graph = folder / "topo.xml", folder / "graph.xml"
    topology.write_text(machine.topology())
    graph.write_text(dumps.rings_of(machine) if graphs is None else graphs)
    return str(topology), str(graph)


@pytest.mark.parametrize(
    ("machine", "graphs", "gap"),
    [
        # Rings that use every link reach the bound; of switches that sum, NVLS is the pick.
        (dumps.DGX1, {"ring": 6, "tree": 6}, (0.0, 0.001)),
        (dumps.DGX_A100, {"ring": 12, "tree": 12}, (0.0, 0.001)),
        pytest.param(
            dumps.DGX_H100,
            {"ring": 12, "tree": 12, "nvls": 8},
            (0.0, 0.05),
            marks=pytest.mark.slow,
        ),
        # Its rings pass two processors, trees with several ways do better.
        (dumps.PCI_T4, {"ring": 2, "tree": 2}, (0.3, 0.7)),
        (dumps.MI300X, {"ring": 7, "tree": 7}, (0.0, 0.001)),
        # Of four GPUs NCCL would take sums in switches only from 2.27 on: its model picks rings here.
        (dumps.GB200, {"ring": 24, "tree": 24, "nvls": 4}, (0.0, 1.0)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_machines(
    tmp_path: Path, machine: dumps.Made, graphs: dict[str, int], gap: tuple[float, float]
) -> None:
    found = hk.nccl.audit(*files(tmp_path, machine), size="64 MiB")
    assert {each.algorithm: each.channels for each in found.entries} == graphs
    assert all(each.run is not None and each.run.plan.is_verified for each in found.entries)
    times = [each.run.time_ps for each in found.entries if each.run is not None]
    assert found.bound.time_ps <= found.best.time_ps <= min(times)
    assert found.gap is not None
    assert gap[0] <= found.gap <= gap[1]
    assert found.library == ("RCCL" if machine.arch else "NCCL")
    assert found.to_frame().num_rows == len(found)


def test_rings_of_a_dgx1_by_hand(tmp_path: Path) -> None:
    """Six rings of 25 GB/s carry 2 x 7 / 8 of the data: 64 MiB in 783 us, and little more."""
    found = hk.nccl.audit(*files(tmp_path, dumps.DGX1), size="64 MiB")
    exact = (64 << 20) * 2 * 7 / 8 / (6 * 25e9)
    ring = found.entries[0].run
    assert ring is not None
    assert exact <= ring.time_ps * 1e-12 <= 1.02 * exact


def test_all_plans_are_timed_under_the_model_of_latency_that_is_asked_for(tmp_path: Path) -> None:
    given = files(tmp_path, dumps.DGX1)
    options = hk.PlanOptions(latency_model="occupying", time_limit="200 ms")
    found = hk.nccl.audit(*given, size="1 MiB", options=options)
    runs = [found.best, *(each.run for each in found.entries if each.run is not None)]
    times = [run.time_ps for run in runs]
    assert times == [hk.simulate(run.plan, latency_model="occupying").time_ps for run in runs]
    assert times != [hk.simulate(run.plan).time_ps for run in runs]


@pytest.mark.slow
def test_two_boxes_by_rails(tmp_path: Path) -> None:
    """Eight NICs of 25 GB/s carry 2 x 15 / 16 of the data."""
    graphs = dumps.rails_of(dumps.DGX_A100, range(8), speed=24)
    found = hk.nccl.audit(*files(tmp_path, dumps.DGX_A100, graphs), nodes=2)
    exact = (256 << 20) * 2 * 15 / 16 / (8 * 25e9)
    ring, tree = found.entries
    assert ring.run is not None
    assert exact <= ring.run.time_ps * 1e-12 <= 1.1 * exact
    # Data of a node's trees goes up and down by the same NIC, all of it.
    assert tree.run is not None
    assert tree.run.time_ps * 1e-12 >= (256 << 20) / (8 * 25e9)
    assert not found.findings
    assert any("one switch joins all NICs" in note for note in found.notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vendors", "step"),
    # With Simple a step is 3.4 us over NVLink, or thrice what posting to a NIC takes: 1 us, AMD's 2.
    [
        (("GenuineIntel",) * 2, 3.4),
        (("AuthenticAMD",) * 2, 6.0),
        (("GenuineIntel", "AuthenticAMD"), 3.4),
    ],
)
def test_processors_are_those_of_the_dumps(
    tmp_path: Path, vendors: tuple[str, str], step: float
) -> None:
    topologies, graphs = [], []
    for number, vendor in enumerate(vendors):
        machine = replace(dumps.DGX_A100, cpu=f'arch="x86_64" vendor="{vendor}" familyid="6"')
        (tmp_path / str(number)).mkdir()
        rails = dumps.rails_of(machine, range(8), speed=24)
        topology, graph = files(tmp_path / str(number), machine, rails)
        topologies.append(topology)
        graphs.append(graph)
    found = hk.nccl.audit(topologies, graphs, size="1 GiB").entries[0].predicted
    assert found is not None
    assert (found.algorithm, found.protocol) == ("ring", "Simple")
    assert found.latency == pytest.approx((8.4 + 28 * step + 2 * 14) * 1.4)


@pytest.mark.slow
def test_what_is_found(tmp_path: Path) -> None:
    """Of two boxes the second has a dead NVLink, and fewer channels, which all nodes then have."""
    whole = dumps.switched(12)
    broken = replace(
        dumps.DGX_A100, links=lambda gpu: dumps.switched(11)(gpu) if gpu == 5 else whole(gpu)
    )
    topologies, graphs = [], []
    for number, (machine, rails) in enumerate([(dumps.DGX_A100, 8), (broken, 4)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = dumps.rails_of(machine, range(rails), speed=24)
        topology, graph = files(folder, machine, text)
        topologies.append(topology)
        graphs.append(graph)
    found = hk.nccl.audit(topologies, graphs)
    said = "\n".join(found.findings)
    assert "node 1: gpu5 has 11 NVLinks, others 12: some may be down" in said
    assert "node 0: of 8 channels of the ring graph 4 are used" in said
    assert "node 0: no ring uses mlx5_4, mlx5_5, mlx5_6, mlx5_7 of 8 NICs" in said
    assert "rings are counted at 96 GB/s, NICs carry 200" in said
    assert found.entries[0].channels == 4
    assert found.gap is not None
    assert found.gap > 0.5


def test_other_collectives(tmp_path: Path) -> None:
    given = files(tmp_path, dumps.DGX_A100)
    found = hk.nccl.audit(*given, kind="all-gather", size="8 MiB")
    assert [each.run is None for each in found.entries] == [False, True]
    assert "all-gather" in str(found.entries[1].why)
    with pytest.raises(hk.SpecError, match="NCCL's graphs serve no 'all-to-all'"):
        hk.nccl.audit(*given, kind="all-to-all")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = files(tmp_path, dumps.PCI_T4)
    assert run(["nccl", "audit", *given]) == 0
    printed = capsys.readouterr().out
    assert "NCCL picks ring, which takes" in printed
    assert "rings pass between GPUs by way of two processors (SYS)" in printed
    assert run(["nccl", "audit", *given, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["format"], value["pick"]) == ("hocket.nccl-audit", "ring")


def test_a_dump_is_a_topology(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology, _ = files(tmp_path, dumps.DGX_H100)
    network = hk.topology.load(topology)
    assert (network.npu_count, network.device_names[-1]) == (8, "nvs")
    assert network.switch_offloads
    assert run(["bound", "all-reduce", "--topology", topology, "--size", "1GiB"]) in (0, 2)
    capsys.readouterr()
    matrix = tmp_path / "matrix.txt"
    matrix.write_text("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n")
    assert hk.topology.load(matrix).link_bandwidth.tolist() == [100_000_000_000] * 2


def matrix_of(links: int, gpus: int = 8) -> str:
    """What ``nvidia-smi topo -m`` prints where an NVSwitch joins all GPUs."""
    names = [f"GPU{gpu}" for gpu in range(gpus)]
    cells = [["X" if a == b else f"NV{links}" for b in range(gpus)] for a in range(gpus)]
    rows = ["\t".join([name, *row]) for name, row in zip(names, cells, strict=True)]
    return "\n".join(["\t" + "\t".join(names), *rows, ""])


@pytest.mark.parametrize(("links", "sums"), [(6, False), (12, False), (17, True), (18, True)])
def test_switches_of_a_matrix_sum_where_gpus_are_of_hopper(
    tmp_path: Path, links: int, sums: bool
) -> None:
    """A healthy H100 is above what rings can have, and no matrix says that it is one."""
    matrix = tmp_path / "machine.txt"
    matrix.write_text(matrix_of(links))
    network = hk.topology.load(matrix)
    assert bool(network.switch_offloads) == sums
    if links == 18:
        pick = hk.nccl.predict("all-reduce", matrix, size="1 GiB")
        bound = hk.bound(network, hk.collective_on("all-reduce", network, "1 GiB"))
        assert pick.algorithm == "nvls"
        assert bound.time_ps < 2 * (1 << 30) * 7 / 8 / 480e9 * 1e12


@pytest.mark.parametrize("name", ["machine", "machine.topo", "machine.log"])
def test_a_machine_is_known_by_what_is_in_its_file(tmp_path: Path, name: str) -> None:
    for text in (matrix_of(18), "\x1b[4m" + matrix_of(18), dumps.DGX_H100.topology()):
        file = tmp_path / name
        file.write_text(text)
        assert hk.topology.load(file).npu_count == 8


def test_one_channel_is_no_several(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = tmp_path / "pairs.txt"
    matrix.write_text(
        "\tGPU0\tGPU1\tGPU2\tGPU3\n"
        "GPU0\t X \tNV12\tSYS\tSYS\nGPU1\tNV12\t X \tSYS\tSYS\n"
        "GPU2\tSYS\tSYS\t X \tNV12\nGPU3\tSYS\tSYS\tNV12\t X \n"
    )
    assert run(["compare", "all-reduce", "-t", str(matrix), "-s", "1MB"]) == 0
    printed = capsys.readouterr()
    assert "on 1 channel and predicts this" in printed.out
    assert "hocket: pairs: the matrix does not say what an NVLink carries" in printed.err
    given = ["predict", "--nccl", "-t", str(matrix), "-s", "1MB"]
    for more, is_said in (["--json"], True), (["--quiet"], False):
        assert run([*given, *more]) == 0
        assert ("25 GB/s each way is assumed" in capsys.readouterr().err) == is_said
    assert run(["check", str(matrix)]) == 0
    # A matrix may have NICs, which are not read.
    assert "of a machine: 4 GPUs with 12 links each\n" in capsys.readouterr().out


def test_bridged_pairs_share_the_link_between_processors(tmp_path: Path) -> None:
    """All that one pair has goes to the other over one link of 16 GB/s, whatever the plan."""
    matrix = tmp_path / "pairs.txt"
    matrix.write_text(
        "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tNV4\tSYS\tSYS\t0-15\t0\t\tN/A\n"
        "GPU1\tNV4\t X \tSYS\tSYS\t0-15\t0\t\tN/A\n"
        "GPU2\tSYS\tSYS\t X \tNV4\t16-31\t1\t\tN/A\n"
        "GPU3\tSYS\tSYS\tNV4\t X \t16-31\t1\t\tN/A\n"
    )
    network = hk.topology.load(matrix)
    assert sum(name.startswith("cpu") for name in network.device_names) == 2
    size = 256 << 20
    bound = hk.bound(network, hk.collective_on("all-reduce", network, size))
    assert bound.time_ps >= size / 16e9 * 1e12


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["nccl", "audit", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1, said.err
    return said.err


@pytest.mark.parametrize(
    ("which", "change", "why"),
    [
        (0, ("</system>", ""), "line 1: <system> is never closed"),
        (0, ('version="1"', 'version="9"'), "line 1: it is of version 9"),
        (0, ("<system", "<!DOCTYPE s [<!ENTITY a 'b'>]>\n<system"), "line 1: it declares a document type"),
        (0, ('busid="0000:f0:00.0"', 'busid="&a;"'), "line 3: <\"pci\">"),
        (0, ('link_width="16"', 'link_width="wide"'), "line 3: link_width of <pci>"),
        (0, (' rank="0"', ' was="0"'), "a channel has GPU 0x0, which"),
        (1, ("</graphs>", ""), "line 1: <graphs> is never closed"),
        (1, ('version="1"', 'version="2"'), "line 1: it is of version 2"),
        (1, ('id="1"', 'id="0"'), "there are two graphs of id 0"),
        (1, ('dev="0x3"', 'dev="0x13"'), "a channel has GPU 0x13, which"),
        (1, ('dev="0x3"', 'dev="x"'), 'line 7: dev of <gpu> is "x"'),
        (1, ('nchannels="2"', 'nchannels="99"'), 'nchannels of <graph> is "99"'),
        (1, ('speedintra="5"', 'speedintra="nan"'), 'speedintra of <graph> is "nan"'),
        (1, ('      <gpu dev="0x3" rank="3"/>\n', ""), "a channel has 3 of the 4 GPUs"),
    ],
)  # fmt: skip
def test_bad_files(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    which: int,
    change: tuple[str, str],
    why: str,
) -> None:
    given = files(tmp_path, dumps.PCI_T4)
    file = Path(given[which])
    text = file.read_text()
    assert change[0] in text
    file.write_text(text.replace(*change, 1))
    said = refused(list(given), capsys)
    assert why in said
    assert file.name in said or "graph.xml" in said


def test_other_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology, graph = files(tmp_path, dumps.PCI_T4)
    assert "3 files cannot be topologies and graphs in pairs" in refused(
        [topology, graph, topology], capsys
    )
    assert "that is a file of graphs" in refused([graph, topology], capsys)
    assert "no such file" in refused([topology, str(tmp_path / "none.xml")], capsys).lower()
    assert "nodes: 0 is no number of nodes" in refused([topology, graph, "--nodes", "0"], capsys)
    # The graphs of eight GPUs on a machine of four.
    eight = tmp_path / "eight.xml"
    eight.write_text(dumps.rings_of(dumps.DGX_A100))
    assert "which" in refused([topology, str(eight)], capsys)
    nothing = tmp_path / "nothing.xml"
    nothing.write_text(dumps.graphs(dumps.graph(2, 3, [range(4)], 5)))
    assert "no graph of rings, trees or NVLS has channels" in refused(
        [topology, str(nothing)], capsys
    )
    large = tmp_path / "large.xml"
    with large.open("wb") as file:
        file.truncate(2 << 30)  # a hole: takes no room
    assert "is larger than 64 MiB" in refused([str(large), graph], capsys)


@pytest.mark.skipif(not REAL.is_dir(), reason="HOCKET_NCCL_DUMPS names no folder of dumps")
def test_real_dumps(tmp_path: Path) -> None:
    """Every dump that can be had is read; those for NCCL_TOPO_FILE are refused as such."""
    read = 0
    for file in sorted(REAL.glob("*topo*.xml")):
        if " rank=" not in file.read_text():
            with pytest.raises(hk.SpecError, match="NCCL_TOPO_DUMP_FILE"):
                hk.topology.load(file)
            continue
        network = hk.topology.load(file)
        read += 1
        assert network.npu_count in (4, 8, 16), file
    assert read >= 4
    graph = REAL / "azure-ncv4-graph.xml"
    topology = REAL / "azure-ncv4-topo.xml"
    found = hk.nccl.audit(topology, graph)
    assert {each.algorithm: each.channels for each in found.entries} == {"ring": 2, "tree": 2}
    assert any("lead to the GPU itself" in note for note in found.notes)
