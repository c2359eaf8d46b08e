"""A real NCCL takes hocket's files, follows its tables, and predicts what hocket says that it predicts.

One GPU is enough: processes on it stand for the GPUs of machines (``real.py``). Where there is none all is
skipped. HOCKET_LIBNCCL names a libnccl.so.2; by default that of PyTorch is taken. HOCKET_LIBTUNER names
hocket's plugin; by default cargo builds it.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import which

import pytest
from tests.built import built_library

import hocket as hk
from hocket.nccl.report import choices_of

from . import dumps, real
from .reader import RefusedError, load_graph

ROOT = Path(__file__).parents[2]
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce")
ALL_KINDS = [(kind, size) for kind in KINDS for size in (1 << 10, 1 << 16)] + [
    ("all-reduce", 1 << 18)
]
QUAD = dumps.Made(
    "quad",
    4,
    80,
    dumps.switched(12),
    lambda gpu: gpu // 2,
    nics=[0, 0, 1, 1],
    switches=2,
)
"""Half of a DGX A100."""

See = Callable[[real.Job], real.Seen]


def library() -> str | None:
    """Where libnccl is."""
    given = os.environ.get("HOCKET_LIBNCCL")
    if given:
        return given
    found = importlib.util.find_spec("nvidia")
    places = [] if found is None else list(found.submodule_search_locations or [])
    files = [Path(place) / "nccl" / "lib" / "libnccl.so.2" for place in places]
    return next((str(file) for file in files if file.exists()), None)


@pytest.fixture(scope="module")
def see(tmp_path_factory: pytest.TempPathFactory) -> See:
    """Runs jobs, each in a folder of its own."""
    nccl, why = library(), real.absent()
    if why is not None or nccl is None:
        pytest.skip(why or "no libnccl")
    folder = tmp_path_factory.mktemp("real")
    built, numbers = real.build(folder), itertools.count()

    def run(job: real.Job) -> real.Seen:
        seen = real.see(folder / str(next(numbers)), built, nccl, job)
        assert not seen.errors, seen.errors
        return seen

    return run


def broken(machine: dumps.Made, gpu: int) -> dumps.Made:
    """One of the 12 NVLinks of a GPU is dead."""
    whole, fewer = dumps.switched(12), dumps.switched(11)
    return replace(machine, links=lambda each: fewer(each) if each == gpu else whole(each))


def written(folder: Path, machines: Sequence[dumps.Made]) -> list[Path]:
    """Topologies of nodes, at addresses that no device here has."""
    files = []
    for number, machine in enumerate(machines):
        files.append(folder / f"topo{number}.xml")
        files[-1].write_text(machine.topology().replace('"0000:', '"0010:'))
    return files


def designed(folder: Path, machines: Sequence[dumps.Made]) -> list[real.Node]:
    """Nodes with hocket's graphs."""
    topologies = written(folder, machines)
    design = hk.nccl.design_graphs(hk.nccl.load_machine([(file, None) for file in topologies]))
    graphs = [path for path in design.write(folder / "graph.xml") if path.suffix == ".xml"]
    graphs *= len(machines) // len(graphs)
    return [real.Node(*files) for files in zip(topologies, graphs, strict=True)]


def orders(file: Path, number: int) -> list[list[int]]:
    """Channels of a graph in a file."""
    (graph,) = (each for each in hk.nccl.read_graph(file) if each.id == number)
    return [[dev for dev, _ in listed] for _, listed, _ in graph.channels]


@pytest.mark.parametrize(
    ("machines", "channels"),
    [
        ([broken(QUAD, 3)], 11),
        ([QUAD, replace(QUAD, down=frozenset({1}))], 3),
        ([dumps.PCI_T4], 1),
        ([broken(dumps.DGX_A100, 3)], 11),
        ([dumps.DGX_A100, replace(dumps.DGX_A100, down=frozenset({3}))], 7),
    ],
    ids=["dead-nvlink", "nic-down", "pci", "dgx-a100-dead-nvlink", "dgx-a100-nic-down"],
)
def test_graphs_are_taken(
    tmp_path: Path, see: See, machines: Sequence[dumps.Made], channels: int
) -> None:
    nodes = designed(tmp_path, machines)
    seen = see(real.Job(nodes, run=ALL_KINDS))
    first = 0
    for number, node in enumerate(nodes):
        assert seen.loaded(first) == {0: channels, 1: channels}
        first += len(node.buses)
        dump = seen.folder / f"dump{number}.xml"
        assert node.graph is not None
        for graph in (0, 1):
            assert orders(dump, graph) == orders(node.graph, graph)
    assert all(right for rank in seen.ranks for _, _, right, _ in rank["right"])


@pytest.mark.skipif(which("gcc") is None, reason="no gcc")
def test_the_libraries_are_built_and_change_nothing(tmp_path: Path) -> None:
    built = real.build(tmp_path, ["-Wall", "-Wextra", "-Werror"])
    asked = hk.nccl.ask_tuner(built["says_costs"], "dgx_a100_1box", sizes=[1 << 10, 1 << 30])
    assert all(pick.is_own and pick.channels is None for pick in asked.picks)


def test_predictions_are_those_of_the_model(tmp_path: Path, see: See) -> None:
    (topology,) = written(tmp_path, [QUAD])
    sizes = [1 << power for power in range(10, 31)]
    seen = see(real.Job([real.Node(topology)], predict=[(k, s) for k in KINDS for s in sizes]))
    machine = hk.nccl.load_machine([(topology, seen.folder / "dump0.xml")])
    assert len(seen.costs()) == len(KINDS) * len(sizes)
    for number, size, *costs in seen.costs():
        kind = ("broadcast", "reduce", "all-gather", "reduce-scatter", "all-reduce")[int(number)]
        for each in choices_of(machine, kind, int(size)):
            place = ("tree", "ring").index(each.algorithm) * 3
            place += ("LL", "LL128", "Simple").index(each.protocol)
            assert each.seconds * 1e6 == pytest.approx(costs[place], rel=1e-3), (kind, size)


def test_a_group_of_some_gpus_is_refused(tmp_path: Path, see: See) -> None:
    """As docs/nccl.md warns: the file is of four GPUs, the communicator of two."""
    (node,) = designed(tmp_path, [QUAD])
    with pytest.raises(AssertionError, match="rank 0"):
        see(real.Job([replace(node, ranks=2)]))


@pytest.mark.parametrize("what", ["prolog", "tab", "word", "line break", "stranger", "comment"])
def test_the_rules_of_the_reader(tmp_path: Path, see: See, what: str) -> None:
    """The rules by which other tests read files are NCCL's."""
    (node,) = designed(tmp_path, [QUAD])
    assert node.graph is not None
    text = node.graph.read_text()
    changed = {
        "prolog": '<?xml version="1.0"?>\n' + text,
        "tab": text.replace("    <channel>", "\t<channel>", 1),
        "word": text.replace("<channel>", "<channel>one", 1),
        "line break": text.replace(" nchannels", "\nnchannels", 1),
        "stranger": text.replace('dev="0x3"', 'dev="0x9"', 1),
        "comment": "<!-- rings -->\n" + text,
    }[what]
    assert changed != text
    node.graph.write_text(changed)
    job = real.Job([node])
    try:
        load_graph(changed, 0, {dev: dev for dev in range(4)}, set())
    except RefusedError:
        with pytest.raises(AssertionError, match="rank 0"):
            see(job)
    else:
        see(job)


@pytest.fixture(scope="module")
def tuner() -> Path:
    """hocket's plugin."""
    given = os.environ.get("HOCKET_LIBTUNER")
    if given:
        return Path(given)
    found = built_library("hocket-nccl-tuner")
    if found is None:
        pytest.skip("the library is of Linux and built by cargo")
    return found


def test_a_table_is_followed(tmp_path: Path, see: See, tuner: Path) -> None:
    table = tmp_path / "tuner.csv"
    table.write_text(
        "allreduce,0,65535,tree,ll,3,-1,-1\n"
        "allreduce,65536,1048575,ring,ll128,2,-1,-1\n"
        f"allreduce,1048576,{(1 << 64) - 1},tree,simple,5,1,4\n"
        f"allgather,0,{(1 << 64) - 1},ring,simple,7,-1,-1\n"
    )
    sizes = [1 << 20, 1 << 24, 1 << 28]
    plan = [("all-reduce", 1 << 14), ("all-reduce", 1 << 18)]
    plan += [(kind, size) for kind in ("all-reduce", "all-gather") for size in sizes]
    environment = {"NCCL_TUNER_PLUGIN": str(tuner), "HOCKET_NCCL_TUNER": str(table)}
    node = real.Node(*written(tmp_path, [QUAD]))
    seen = see(real.Job([node], plan=plan, environment=environment))
    picks = [(algorithm, protocol) for _, _, algorithm, protocol, _ in seen.picks()]
    assert picks == [
        ("TREE", "LL"),
        ("RING", "LL128"),
        *[("TREE", "SIMPLE")] * 3,
        *[("RING", "SIMPLE")] * 3,
    ]
    # Of small data fewer channels have work.
    channels = [pick[4] for pick in seen.picks()]
    assert channels[2:] == [5, 5, 5, 7, 7, 7]
    assert channels[0] <= 3
    assert channels[1] <= 2
