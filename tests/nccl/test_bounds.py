"""No prediction stands below the proved bound of its network without saying why.

Boxes by chance (``boxes.py``), dumps and shipped machines: what NCCL's search finds is compared with the
bound, and with the cut that holds it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import hocket as hk
from hocket._core import Topology
from hocket.cli import run
from hocket.collectives.bounds import bound
from hocket.collectives.collective import collective_on
from hocket.explorer.sizes import sweep_page
from hocket.nccl.machine import load_machine
from hocket.nccl.model import KINDS
from hocket.nccl.prediction import NcclPrediction, library_on, network_and_gpu, prediction_on
from hocket.topology.build import build_topology

from . import boxes, dumps

DATA = Path(__file__).parent.parent / "data" / "nccl"
SIZES = (1 << 10, 1 << 20, 1 << 26, 1 << 30)
TREES = "NCCL counts trees of two nodes at up to twice what NICs carry"
PAIRS = """<system version="1">
{sockets}
</system>
"""


def pairs(sm: int = 80, links: int = 12) -> str:
    """Two processors of AMD, two GPUs at each, NVLinks between these alone; PCIe 4.0 x16."""

    def gpu(dev: int) -> str:
        return (
            f'<pci busid="000{dev}:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">'
            f'<gpu dev="{dev}" sm="{sm}" rank="{dev}"><nvlink target="000{dev ^ 1}:00:00.0" '
            f'count="{links}" tclass="0x030200"/></gpu></pci>'
        )

    sockets = [
        f'<cpu numaid="{socket}" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">'
        f"{gpu(2 * socket)}{gpu(2 * socket + 1)}</cpu>"
        for socket in (0, 1)
    ]
    return PAIRS.format(sockets="\n".join(sockets))


def predictions(
    topology: Topology, *gpus: str | None
) -> Iterator[tuple[str | None, NcclPrediction]]:
    """Give the prediction of every collective and size, for each of the GPUs of which a model fits."""
    libraries = {}
    for gpu in gpus:
        with contextlib.suppress(hk.Error):
            libraries[gpu] = library_on(topology, gpu)
    for kind, size in itertools.product(KINDS, SIZES if libraries else ()):
        limit = bound(topology, collective_on(kind, topology, size))
        for gpu, library in libraries.items():
            yield gpu, prediction_on(library, kind, size, limit)


def below(found: NcclPrediction) -> list[tuple[str, str, float]]:
    """Give what stands below the bound: algorithm, reason and share; each must have a reason, no other."""
    limit = found.bound.time_ps
    low = []
    for each, reason in zip(found.choices, found.reasons, strict=True):
        assert (reason is not None) == (each.seconds * 1e12 < limit), (found, each)
        if reason is not None:
            low.append((each.algorithm, reason, each.seconds * 1e12 / limit))
    assert found.below_bound == found.reasons[0]
    return low


def check_boxes(seeds: range) -> int:
    """Check boxes: rings, and trees inside nodes, are never below; give how many have a prediction."""
    told = 0
    for seed in seeds:
        spec = boxes.box(seed)
        topology = build_topology(spec)
        for _, found in predictions(topology, spec.gpu):
            told += 1
            for algorithm, reason, share in below(found):
                assert (algorithm, reason) == ("nvls-tree", TREES), (seed, found)
                assert share > 0.9
    return told


def test_boxes_by_chance() -> None:
    assert check_boxes(range(1000, 1040)) > 40 * 10


def test_dumps_and_shipped_machines_of_a_few_boxes() -> None:
    specs = [boxes.spec_of(made.topology(), made.name) for made in dumps.ALL]
    specs += [boxes.spec_of(path.read_text(), path.parent.name) for path in DATA.glob("*/topo.xml")]
    machines = [(build_topology(spec), spec.gpu) for spec in specs]
    assert len(machines) >= 8
    small = (name for name in hk.topology.names() if "themis" not in name and "72" not in name)
    machines += [network_and_gpu(name, None) for name in small]
    for topology, gpu in machines:
        for _, found in predictions(topology, gpu):
            assert not below(found), topology.name


@pytest.mark.long
def test_two_hundred_boxes_and_every_machine() -> None:
    assert check_boxes(range(200)) > 200 * 10
    for name in hk.topology.names():
        topology, own = network_and_gpu(name, None)
        for gpu, found in predictions(topology, own, "mi250", "mi300x"):
            assert not below(found) or gpu != own, name


@pytest.mark.parametrize(("sm", "links"), [(80, 12), (90, 12), (90, 18), (86, 4)])
def test_pairs_that_pcie_joins_have_the_channels_that_a_search_finds(
    tmp_path: Path, sm: int, links: int
) -> None:
    """16 GB/s between processors: one channel of 15, or slow ones of a designed graph; PCI's latencies."""
    file = tmp_path / "pairs.xml"
    file.write_text(pairs(sm, links))
    found = hk.nccl.predict("all-reduce", file, size="256 MiB")
    assert (found.algorithm, found.protocol, found.channels) == ("ring", "Simple", 1)
    assert found.choices[0].latency == pytest.approx(8.4 + 6 * 5.7)
    assert found.choices[0].bandwidth == pytest.approx(15 * 4 / 6)
    assert "LL128" not in {each.protocol for each in found.choices}
    graphs = hk.nccl.design_graphs(load_machine([(file, None)])).graphs[0]
    ring = next(graph for graph in graphs if graph.id == 0)
    assert 15 <= len(ring.channels) * ring.speed_intra <= 16
    network, gpu = (file, None) if sm == 80 else (hk.topology.load(file), f"sm{sm}")
    compared = hk.compare("all-reduce", network, size="256 MiB", time_limit="1 s", gpu=gpu)
    assert compared.nccl is not None
    assert compared.nccl.choices == found.choices


@pytest.mark.parametrize(
    ("speed", "model", "rate"), [("8", 85, 10), ("16", 85, 10), ("8", 207, 12), ("16", 207, 24)]
)
def test_of_pci_alone_a_share_is_counted(
    tmp_path: Path, speed: str, model: int, rate: float
) -> None:
    """NCCL counts 12 GB/s of PCIe 3.0 x16, and 10 or 40 between processors of Intel."""
    file = tmp_path / "topo.xml"
    text = dumps.PCI_T4.topology().replace('modelid="85"', f'modelid="{model}"')
    file.write_text(text.replace("8 GT/s", f"{speed} GT/s"))
    found = hk.nccl.predict("all-gather", file, size="1 GiB").choices[0]
    assert (found.algorithm, found.protocol) == ("ring", "Simple")
    assert found.bandwidth == pytest.approx(rate * 4 / 3)
    graphs = hk.nccl.design_graphs(load_machine([(file, None)])).graphs[0]
    ring = next(graph for graph in graphs if graph.id == 0)
    assert len(ring.channels) * ring.speed_intra == pytest.approx(rate)


def test_a_network_without_its_dump_is_told_by_its_links(tmp_path: Path) -> None:
    """Read as a network, the same machine has GPUs by the most that one of them sends."""
    file = tmp_path / "pairs.xml"
    file.write_text(pairs())
    read = hk.nccl.predict("all-reduce", hk.topology.load(file), size="256 MiB")
    assert read.choices == hk.nccl.predict("all-reduce", file, size="256 MiB").choices


@pytest.mark.parametrize(
    ("sm", "gpu"), [(60, "volta"), (75, "volta"), (89, "ampere"), (120, "blackwell")]
)
def test_gpus_are_those_that_the_dump_states(tmp_path: Path, sm: int, gpu: str) -> None:
    """GPUs on PCIe 3.0 alone, of which no bandwidth tells what they are."""
    file = tmp_path / "topo.xml"
    text = dumps.PCI_T4.topology().replace('sm="75"', f'sm="{sm}"')
    file.write_text(text)
    found = hk.nccl.predict("all-reduce", file, size="64 MiB")
    assert (found.library, found.gpu) == ("NCCL", gpu)
    with pytest.raises(
        hk.InfeasibleError, match=r"its links, 1[05][.\d]* GB/s from a GPU, do not tell"
    ):
        hk.nccl.predict("all-reduce", hk.topology.load(file), size="64 MiB")
    named = hk.nccl.predict("all-reduce", hk.topology.load(file), size="64 MiB", gpu=f"sm{sm}")
    assert named.choices == found.choices


def test_nvlinks_count_as_their_capability_has_them(tmp_path: Path) -> None:
    """Of 4 links NCCL counts 48 GB/s of GA102, 72 of P100 and 80 of A100: channels of 40, 18 and 40."""
    for sm, rate in ((86, 40.0), (60, 4 * 18.0), (80, 2 * 40.0)):
        file = tmp_path / f"sm{sm}.xml"
        text = pairs(sm, 4)
        file.write_text(text[: text.index('<cpu numaid="1"')] + "</system>")
        found = hk.nccl.predict("all-reduce", file, size="1 GiB")
        assert found.choices[0].bandwidth == pytest.approx(rate), sm


def test_dumps_of_amd_ask_rccl(tmp_path: Path) -> None:
    file = tmp_path / "mi300x.xml"
    file.write_text(dumps.MI300X.topology())
    found = hk.nccl.predict("all-reduce", file, size="64 MiB")
    assert (found.library, found.gpu) == ("RCCL", "mi300x")
    assert (
        found.choices
        == hk.nccl.predict("all-reduce", "mi300x_8gpu", size="64 MiB", gpu="gfx942").choices
    )
    file.write_text(dumps.MI300X.topology().replace("gfx942", "gfx908"))
    with pytest.raises(hk.InfeasibleError, match="RCCL's model of gfx908 is not known"):
        hk.nccl.predict("all-reduce", file, size="64 MiB")
    file.write_text(dumps.DGX_H100.topology())
    with pytest.raises(hk.SpecError, match=r"has GPUs of hopper by its dump \(sm90\), not ampere"):
        hk.nccl.predict("all-reduce", file, size="64 MiB", gpu="ampere")


def test_latencies_that_no_constant_knows_are_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ["predict", "--nccl", "all-reduce", "-t", "switch:8@300GB/s,1ms", "-s", "1KiB"]
    assert run(argv) == 0
    out = capsys.readouterr().out
    assert "bound 2 ms: " in out
    assert "below the bound: ring with LL, " in out
    assert "the latencies stated here come to 2 ms" in out.replace("\n", " ")


def test_what_is_below_says_so_wherever_it_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """RCCL's tables ask no network: a box of V100 over one NIC is said to be ten times as fast."""
    argv = ["predict", "--nccl", "all-reduce", "-t", "ndv2_2box", "-s", "1GiB", "--gpu", "mi250"]
    assert run(argv) == 0
    assert "RCCL has tables of its own machines" in capsys.readouterr().out
    assert run([*argv, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["time_s"] * 1e12 < data["bound_ps"]
    assert data["below_bound"].startswith("RCCL has tables")
    assert data["choices"][-1]["below_bound"] is None
    assert run(["compare", "all-reduce", "-t", "switch:8@300GB/s,1ms", "-s", "1KiB"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "it stands below the bound: NCCL counts steps by constants of its own" in said


def test_a_graph_file_that_counts_more_than_there_is_is_found(tmp_path: Path) -> None:
    topology, graph = tmp_path / "pairs.xml", tmp_path / "graph.xml"
    topology.write_text(pairs())
    graph.write_text(dumps.alike(range(4), 12, 20))
    found = hk.nccl.audit(topology, graph, size="256 MiB", options=hk.PlanOptions(time_limit="1 s"))
    ring = next(each for each in found if each.algorithm == "ring")
    assert ring.predicted is not None
    assert ring.predicted.seconds * 1e12 < found.bound.time_ps
    said = (
        "ring is predicted below the bound: the graph file counts 12 channels of 20 GB/s, more than"
    )
    assert any(each.startswith(said) for each in found.findings)
    assert any("cut {gpu0, gpu1, cpu0}" in each for each in found.findings)


def test_pages_and_judgements_have_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = "switch:8@450GB/s,1ms"
    page = sweep_page([hk.compare("all-reduce", slow, size="1 KiB", time_limit="1 s").to_dict()])
    assert page["note"].startswith("at 1 KiB NCCL's prediction is below the bound: NCCL counts")
    table = tmp_path / "table.csv"
    table.write_text("collective,gpus,nodes,bytes,time_us\nall_reduce,8,1,1024,5000\n")
    argv = ["measured", str(table), "-t", slow, "--profile", "h100", "--no-plans"]
    assert run(argv) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "predicted below the bound: all-reduce of 1 KiB: profile h100 was fitted" in said


def test_profiles_of_other_machines_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["predict", "all-reduce", "-t", "switch:8@450GB/s,1ms", "--profile", "h100"]
    assert run([*argv, "--size", "1KiB", "--size", "1GiB"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "below the bound on any plan: 1 KiB" in said
    assert "profile h100 was fitted to machines that are quicker" in said


def test_all_to_all_is_held_to_the_cut_that_all_cross() -> None:
    """In a DGX-1, 4 x 4 of 8 x 8 parts cross the middle, where 150 GB/s pass, as from a single GPU."""
    found = hk.predict("all-to-all", "dgx1_v100", sizes=["64 MiB", "1 GiB"])
    for each in found.times:
        limit = bound(
            "dgx1_v100", collective_on("all-to-all", hk.topology.load("dgx1_v100"), each.size)
        )
        assert each.seconds * 1e12 > limit.time_ps
        assert each.below_bound is None
