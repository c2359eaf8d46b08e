"""Slow NICs: left out, or beside several channels of each fast one, and never slower than without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import hocket as hk
from hocket.cli import run
from hocket.nccl.design import design_along
from hocket.nccl.machine import Machine

from . import dumps
from .reader import RefusedError, load_graph

MESH4 = replace(
    dumps.MI300X,
    name="mesh4",
    gpus=4,
    links=lambda gpu: [
        (dumps.bus(other), 1, dumps.GPU_CLASS) for other in range(4) if other != gpu
    ],
    nics=range(4),
)
SMALL = (dumps.GB200, MESH4, replace(dumps.DGX_A100, gpus=4, nics=(0, 0, 1, 1)), dumps.DGX1)
SHARES = (1.0, 1.0, 1.0, 0.9, 0.75, 0.5, 0.4, 0.25, 0.1)


def load(folder: Path, nodes: Sequence[tuple[dumps.Made, Sequence[int]]]) -> Machine:
    """Read nodes whose NICs have these rates [Mb/s]."""
    files = []
    for number, (made, rates) in enumerate(nodes):
        text = made.topology()
        for rate in (rate for nic, rate in enumerate(rates) if nic not in made.down):
            text = text.replace(f'speed="{made.mbps}" port', f'speed="{rate}"  port', 1)
        (folder / f"{number}.xml").write_text(text)
        files.append((folder / f"{number}.xml", None))
    return hk.nccl.load_machine(files)


def one_slow(folder: Path, share: float) -> hk.nccl.GraphDesign:
    """Four DGX A100, of which one NIC of the last is slow."""
    rates = [dumps.DGX_A100.mbps] * 8
    slow = [*rates[:2], int(rates[2] * share), *rates[3:]]
    nodes = [(dumps.DGX_A100, rates)] * 3 + [(dumps.DGX_A100, slow)]
    return hk.nccl.design_graphs(load(folder, nodes))


@pytest.mark.parametrize(
    ("share", "channels", "most_ms", "said"),
    [
        (1.0, 8, 10.42, ()),
        (0.5, 15, 11.2, ()),
        (0.25, 7, 11.95, ("mlx5_2 of node 3 left out: 6.25 GB/s beside 25",)),
    ],
)
def test_one_slow_nic_of_four_boxes(
    tmp_path: Path, share: float, channels: int, most_ms: float, said: tuple[str, ...]
) -> None:
    design = one_slow(tmp_path, share)
    assert (design.nodes[0].channels, design.left_out) == (channels, said)
    assert design.time_ps < most_ms * 1e9
    # Each NIC carries what its channels carry together, and no more than it can.
    used = [into for into, _ in design.nodes[3].nics]
    each = design.nodes[0].speed_bytes_per_s
    for nic in range(8):
        rate = dumps.DGX_A100.mbps * 125e3 * (share if nic == 2 else 1)
        assert used.count(nic) * each <= 1.001 * rate


def never_slower(folder: Path, seed: int) -> None:
    """Compare with the machine without its slow rails, the rest at the rate of the slowest left."""
    chance = Random(seed)
    made = chance.choice(SMALL)
    count = chance.choice((2, 2, 3, 4))
    few = chance.sample(SHARES, 3)
    rates = [[int(made.mbps * chance.choice(few)) for _ in made.nics] for _ in range(count)]
    found = hk.nccl.design_graphs(load(folder, [(made, each) for each in rates]))
    rails = [min(each) for each in zip(*rates, strict=True)]
    for least in set(rails):
        down = frozenset(nic for nic, rate in enumerate(rails) if rate < least)
        kept = (replace(made, down=down), [least] * len(rails))
        other = hk.nccl.design_graphs(load(folder, [kept] * count))
        assert not other.left_out
        assert found.time_ps <= other.time_ps, (seed, made.name, rates, least)


def never_slower_unlike(folder: Path, seed: int) -> None:
    """Of nodes of which some lack a NIC: compare with those whose NICs below a rate carry next to nothing.

    They are not left out of the dump: a PCIe switch that they leave with a GPU alone would be none.
    """
    chance = Random(seed)
    made = chance.choice(SMALL)
    few = chance.sample(SHARES, 3)
    nodes = []
    for _ in range(chance.choice((2, 2, 3))):
        gone = chance.sample(range(len(made.nics)), chance.choice((0, 0, 1)))
        rates = [int(made.mbps * chance.choice(few)) for _ in made.nics]
        nodes.append((replace(made, down=frozenset(gone)), rates))
    found = hk.nccl.design_graphs(load(folder, nodes))
    there = [
        {rate for nic, rate in enumerate(rates) if nic not in node.down} for node, rates in nodes
    ]
    for least in sorted(set().union(*there))[1:]:
        if all(least <= max(each, default=0) for each in there):
            kept = [
                (node, [rate if rate >= least else 1 for rate in rates]) for node, rates in nodes
            ]
            other = hk.nccl.design_graphs(load(folder, kept))
            assert found.time_ps <= other.time_ps, (seed, made.name, nodes, least)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("check", [never_slower, never_slower_unlike])
def test_never_slower_than_without_slow_nics(
    tmp_path: Path, check: Callable[[Path, int], None], seed: int
) -> None:
    check(tmp_path, seed)


@pytest.mark.long
def test_thousand_machines_are_never_slower(tmp_path: Path) -> None:
    for seed in range(8, 1000):
        never_slower(tmp_path, seed)
        never_slower_unlike(tmp_path, seed)


def test_what_no_dump_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "topo.xml"
    file.write_text(dumps.DGX_A100.topology())
    graph = ["nccl", "graph", str(file), "--nodes", "2", "-o", str(tmp_path / "graph.xml")]
    assert run([*graph, "--slow", "n1.net2=50Gb/s"]) == 0
    printed = capsys.readouterr().out
    assert "mlx5_2 of node 1 left out: 6.25 GB/s beside 25" in printed
    assert "7 channels of 24.9" in printed
    (tmp_path / "graph.xml").unlink()
    assert run([*graph, "--slow", "n9.net2=50Gb/s"]) == 2
    assert '--slow: no device is called "n9.net2"' in capsys.readouterr().err
    assert not (tmp_path / "graph.xml").exists()


def test_a_group_of_gpus_has_a_file_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """GPUs keep the numbers of the dump, and no rank stands beside them."""
    file, output = tmp_path / "topo.xml", tmp_path / "graph.xml"
    file.write_text(dumps.DGX_A100.topology())
    graph = ["nccl", "graph", str(file), "-o", str(output), "--gpus"]
    assert run([*graph, "4-6,1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "WARNING: the file is of a communicator of some GPUs alone, those with dev 1, 4, 5, 6;"
        in printed
    )
    assert "rank" not in output.read_text()
    ranks = {1: 0, 4: 1, 5: 2, 6: 3}
    loaded = load_graph(output.read_text(), 0, ranks, set())
    assert all(sorted(order) == [0, 1, 2, 3] for order in loaded.intra)
    assert loaded.channels == 12
    with pytest.raises(RefusedError, match="not found"):
        load_graph(output.read_text(), 0, {0: 0, 1: 1}, set())
    output.unlink()
    for wrong, why in (  # one line each, and nothing is written
        ("7-8", "topo.xml: there is no GPU 8; its GPUs are 0, 1, 2, 3, 4, 5, 6, 7"),
        ("3-1", "--gpus: '3-1' are no GPUs; give numbers, such as 0-3,6"),
        ("a", "--gpus: 'a' are no GPUs"),
        ("", "--gpus: '' is empty; give a value"),
        ("5", "it has one GPU"),
        ("1,0-2", "--gpus: GPU 1 is given twice; give each once"),
    ):
        assert run([*graph, wrong]) == 2
        assert why in capsys.readouterr().err
        assert not output.exists()


@pytest.mark.parametrize("nodes", [1, 2])
def test_orders_avoid_a_slow_nvlink(tmp_path: Path, nodes: int) -> None:
    """Of eight GPUs that are all linked, one pair is slow: six channels take the other links."""
    file = tmp_path / "topo.xml"
    file.write_text(dumps.MI300X.topology())
    pair = "gpu0,gpu3" if nodes == 1 else "n0.gpu0,n0.gpu3"
    slow = hk.topology.slow.read_slow([f"{pair}=12GB/s"])
    design = hk.nccl.design_graphs(hk.nccl.load_machine([(file, None)], nodes, slow=slow))
    assert design.nodes[0].channels == 6
    npus = 8 * nodes
    exact = (1 << 30) * 2 * (npus - 1) / npus / (6 * 48e9)
    assert exact < design.run.time_ps * 1e-12 < 1.01 * exact
    pairs = {tuple(order[k : k + 2]) for order in design.nodes[0].orders for k in range(7)}
    assert not pairs & {(0, 3), (3, 0)}


@pytest.mark.parametrize("share", [0.99, 0.8, 0.6, 0.3])
def test_a_slow_nvlink_costs_no_more_than_its_neglect(tmp_path: Path, share: float) -> None:
    """The channels of the machine without slow links are tried too, so those that are found are as fast."""
    file = tmp_path / "topo.xml"
    file.write_text(dumps.DGX1.topology())
    (a, b), count = Random(share).choice(sorted(dumps.DGX1_PAIRS.items()))
    rate = round(count * 20 * share, 3)
    slow = hk.topology.slow.read_slow([f"gpu{a},gpu{b}={rate}GB/s"])
    machine = hk.nccl.load_machine([(file, None)], slow=slow)
    nominal = hk.nccl.design_graphs(hk.nccl.load_machine([(file, None)]))
    graphs = zip(machine.nodes, nominal.machine.nodes, strict=True)
    nodes = tuple(replace(node, graphs=other.graphs) for node, other in graphs)
    _, channels = replace(machine, nodes=nodes).channels("ring")
    assert hk.nccl.design_graphs(machine).time_ps <= design_along(machine, channels).time_ps


def test_a_group_takes_the_nics_near_to_it(tmp_path: Path) -> None:
    """Four of eight GPUs: NICs of the other processor would share one link between processors."""
    file = tmp_path / "topo.xml"
    file.write_text(dumps.DGX_A100.topology())
    design = hk.nccl.design_graphs(hk.nccl.load_machine([(file, None)], 2, gpus="0-3"))
    assert {nic for node in design.nodes for pair in node.nics for nic in pair} == {0, 1, 2, 3}
    assert design.left_out == tuple(
        f"mlx5_{nic} of 2 nodes left out: farther from the GPUs than the others"
        for nic in range(4, 8)
    )
    exact = (1 << 30) * 2 * 7 / 8 / 100e9
    assert exact < design.run.time_ps * 1e-12 < 1.02 * exact


def test_slow_nics_are_told_where_numbers_differ(tmp_path: Path) -> None:
    mbps = dumps.DGX_A100.mbps
    few = replace(dumps.DGX_A100, down=frozenset({5, 6, 7}))
    slow = [mbps] * 5 + [mbps // 8, mbps, mbps]
    design = hk.nccl.design_graphs(load(tmp_path, [(few, [mbps] * 8), (dumps.DGX_A100, slow)]))
    assert design.left_out == ("mlx5_5 of node 1 left out: 3.125 GB/s beside 25",)


def test_what_is_read_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "topo.xml"
    file.write_text(dumps.DGX_A100.topology())
    beside = tmp_path / "." / "topo.xml"
    assert run(["nccl", "graph", str(file), "-o", str(beside)]) == 2
    assert "topo.xml is a dump that is read; name another file" in capsys.readouterr().err
    assert file.read_text() == dumps.DGX_A100.topology()
    assert run(["nccl", "graph", str(file), "--nodes", "4096", "-o", str(tmp_path / "g.xml")]) == 2
    assert "rings over 32,768 GPUs are too long to simulate" in capsys.readouterr().err


def test_the_file_without_nics_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = {"a": dumps.DGX_A100, "b": replace(dumps.DGX_A100, nics=())}
    for name, each in made.items():
        (tmp_path / f"{name}.xml").write_text(each.topology())
    files = [str(tmp_path / f"{name}.xml") for name in made]
    for words in (
        ["nccl", "graph", *files, "-o", str(tmp_path / "graph.xml")],
        ["predict", "-t", f"dump:{files[0]},{files[1]}"],
    ):
        assert run(words) == 2
        assert "b.xml: node 1 has no NIC that the file tells of" in capsys.readouterr().err
