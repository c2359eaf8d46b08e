"""Files for NCCL_GRAPH_FILE: NCCL's own rules take them, and they avoid what is down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import hocket as hk
from hocket.cli import run
from hocket.nccl.design import EVERY_COMMUNICATOR

from . import dumps
from .reader import Graph, Reader, RefusedError, connect, load_graph


def written(folder: Path, machines: Sequence[dumps.Made], nodes: int = 1) -> hk.nccl.GraphDesign:
    files = []
    for number, machine in enumerate(machines):
        file = folder / f"topo{number}.xml"
        file.write_text(machine.topology())
        files.append((file, None))
    design = hk.nccl.design_graphs(hk.nccl.load_machine(files, nodes))
    design.write(folder / "graph.xml")
    return design


def loaded(
    folder: Path, machines: Sequence[dumps.Made], is_one_file: bool
) -> tuple[list[Graph], list[Graph]]:
    """Rings and trees of every node, as NCCL's rules load them on its ranks."""
    rings, trees = [], []
    for number, machine in enumerate(machines):
        name = "graph.xml" if is_one_file else f"graph.node{number}.xml"
        text = (folder / name).read_text()
        ranks = {dev: number * machine.gpus + dev for dev in range(machine.gpus)}
        nets = set(range(len(machine.nics) - len(machine.down)))
        rings.append(load_graph(text, 0, ranks, nets))
        trees.append(load_graph(text, 1, ranks, nets))
    return rings, trees


@pytest.mark.parametrize("machine", dumps.ALL, ids=lambda machine: machine.name)
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_files_of_all_machines_are_taken(tmp_path: Path, machine: dumps.Made, nodes: int) -> None:
    design = written(tmp_path, [machine], nodes)
    assert design.are_alike
    rings, trees = loaded(tmp_path, [machine] * nodes, is_one_file=True)
    orders, channels = connect(rings, trees)
    assert all(len(order) == nodes * machine.gpus for order in orders)
    assert channels <= 64
    assert {graph.pattern for graph in rings} == {4}
    assert {graph.pattern for graph in trees} == {3 if nodes > 1 else 1}
    if nodes > 1:
        # Every NIC is used, and equally often.
        used = [ports[0] for ports in rings[0].inter]
        assert {used.count(nic) for nic in range(len(machine.nics))} == {
            len(used) // len(machine.nics)
        }
        # Rings fill the NICs, but where other links are narrower.
        total = len(machine.nics) * machine.mbps * 125_000
        npus = nodes * machine.gpus
        exact = (1 << 30) * 2 * (npus - 1) / npus / total
        time = design.run.time_ps * 1e-12
        assert exact < time
        if machine.name == "mi300x":
            # A channel takes a link of 48 GB/s at each step, and every link is taken once; NICs carry 50.
            exact *= 50 / 48
        if machine.name != "pci_4gpu":
            assert time < 1.05 * exact
    elif machine.name not in ("dgx_h100", "gb200_nvl4", "pci_4gpu"):
        # There switches that sum, or trees, do better than any ring.
        assert design.run.time_ps <= 1.01 * design.run.lower_bound.time_ps


def test_rings_of_a_dgx_a100_with_a_dead_nvlink(tmp_path: Path) -> None:
    """One of 12 links of GPU 3 is down: 11 channels of 20 GB/s, not 12."""
    whole = dumps.switched(12)
    machine = replace(
        dumps.DGX_A100, links=lambda gpu: dumps.switched(11)(gpu) if gpu == 3 else whole(gpu)
    )
    design = written(tmp_path, [machine])
    rings, trees = loaded(tmp_path, [machine], is_one_file=True)
    orders, channels = connect(rings, trees)
    assert (len(orders), channels) == (11, 22)
    ring = design.graphs[0][0]
    assert ring.speed_intra == pytest.approx(20.0)
    # 11 of 12 links: the rings take what the links of that GPU carry, 275 GB/s.
    exact = (1 << 30) * 2 * 7 / 8 / 275e9
    assert exact < design.run.time_ps * 1e-12 < 1.01 * exact
    healthy = written(tmp_path, [dumps.DGX_A100])
    assert len(healthy.graphs[0][0].channels) == 12


def test_two_boxes_with_one_nic_down(tmp_path: Path) -> None:
    """The second box has lost NIC 3: seven channels on the seven rails that both have."""
    boxes = [dumps.DGX_A100, replace(dumps.DGX_A100, down=frozenset({3}))]
    design = written(tmp_path, boxes)
    assert not design.are_alike
    rings, trees = loaded(tmp_path, boxes, is_one_file=False)
    orders, channels = connect(rings, trees)
    assert (len(orders), channels) == (7, 14)
    # Of the first box mlx5_3 is idle; of the second, dev 3 and up are mlx5_4 and up.
    assert [ports[0] for ports in rings[0].inter] == [0, 1, 2, 4, 5, 6, 7]
    assert [ports[0] for ports in rings[1].inter] == [0, 1, 2, 3, 4, 5, 6]
    # 7 NICs of 25 GB/s carry 2 x 15 / 16 of 1 GiB, but for a pipeline's filling.
    exact = (1 << 30) * 2 * 15 / 16 / (7 * 25e9)
    assert exact < design.run.time_ps * 1e-12 < 1.05 * exact


def test_a_channel_enters_and_leaves_by_gpus_at_its_nic(tmp_path: Path) -> None:
    written(tmp_path, [dumps.DGX_A100], 2)
    rings, _ = loaded(tmp_path, [dumps.DGX_A100] * 2, is_one_file=True)
    for order, (nic, _) in zip(rings[0].intra, rings[0].inter, strict=True):
        at = dumps.DGX_A100.nics[nic]
        assert {dumps.DGX_A100.at(gpu) for gpu in (order[0], order[-1])} == {at}


def test_hosts_and_ranks(tmp_path: Path) -> None:
    file = tmp_path / "topo.xml"
    file.write_text(dumps.PCI_T4.topology())
    design = hk.nccl.design_graphs(hk.nccl.load_machine([(file, None)], 2))
    paths = design.write(tmp_path / "graph.xml", hosts=["b", "a"])
    assert [path.name for path in paths] == ["graph.xml", "graph.hosts", "graph.ranks"]
    assert paths[1].read_text() == "b slots=4\na slots=4\n"
    assert paths[2].read_text().splitlines()[4] == "rank 4=a slot=0"
    with pytest.raises(hk.SpecError, match="1 names for 2 nodes"):
        design.write(tmp_path / "other.xml", hosts=["a"])
    for name in ("graph.hosts", "graph.ranks"):
        with pytest.raises(hk.SpecError, match="also the name of a file of hosts or ranks"):
            design.write(tmp_path / name, hosts=["b", "a"])
    with pytest.raises(hk.SpecError, match="given twice"):
        design.write(tmp_path / "other.xml", hosts=["a", "a"])
    assert not (tmp_path / "other.xml").exists()


def test_the_warning_of_other_communicators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is always said; of a dump of some GPUs alone, that the file is for those."""
    some = dumps.DGX_A100.topology().replace('dev="3"', 'dev="7"', 1)
    # GPU 3 of the dump is called 7, as that of a communicator of GPUs 0, 1, 2 and 7.
    four = replace(dumps.DGX_A100, gpus=4).topology().replace('gpu dev="3"', 'gpu dev="7"')
    assert some != four
    (tmp_path / "topo.xml").write_text(four)
    output = tmp_path / "graph.xml"
    assert run(["nccl", "graph", str(tmp_path / "topo.xml"), "-o", str(output)]) == 0
    printed = capsys.readouterr().out
    said = " ".join(printed.split())
    assert "WARNING: every communicator of a process reads NCCL_GRAPH_FILE" in said
    assert "some GPUs alone, those with dev 0, 1, 2, 7" in said
    ranks = {0: 0, 1: 1, 2: 2, 7: 3}
    assert len(load_graph(output.read_text(), 0, ranks, set()).intra[0]) == 4
    # A group of two of them fails in NCCL, as the warning says.
    with pytest.raises(RefusedError, match="not found"):
        load_graph(output.read_text(), 0, {0: 0, 1: 1}, set())
    assert "dev N not found" in EVERY_COMMUNICATOR


def test_nothing_is_half_written(tmp_path: Path) -> None:
    boxes = [dumps.DGX_A100, replace(dumps.DGX_A100, down=frozenset({3}))]
    design = written(tmp_path, boxes)
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / "graph.node1.xml").mkdir()
    with pytest.raises(hk.SpecError, match="is a folder"):
        design.write(folder / "graph.xml")
    assert [path.name for path in folder.iterdir()] == ["graph.node1.xml"]


def test_the_rules_refuse_what_nccl_does() -> None:
    """The reader of the tests is one that can fail."""
    text = dumps.rings_of(dumps.DGX_A100).replace(' rank="', ' was="')
    ranks = {dev: dev for dev in range(8)}
    assert load_graph(text, 0, ranks, set()).channels == 12
    wrong = {
        "a tab": text.replace("    <channel>", "\t<channel>", 1),
        "a prolog": '<?xml version="1.0"?>\n' + text,
        "a line break": text.replace('" pattern', '"\npattern', 1),
        "a word": text.replace("<channel>", "<channel>here", 1),
        "a count": text.replace('nchannels="12"', 'nchannels="13"', 1),
        "a version": text.replace('version="1"', 'version="2"', 1),
        "a GPU": text.replace('dev="0x7"', 'dev="0x8"', 1),
        "an end": text[:-12],
        "33 channels": dumps.alike(range(8), 33, 20).replace(' rank="', ' was="'),
    }
    for each in wrong.values():
        with pytest.raises(RefusedError):
            load_graph(each, 0, ranks, set())
    assert Reader("<!-- a > b -->\n<a/>").load(None)[0].name == "a"
