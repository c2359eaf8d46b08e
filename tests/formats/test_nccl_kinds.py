"""Files of NCCL among the kinds: graphs, tables for tuners and dumps are judged and written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nccl import dumps
from tests.nccl.reader import connect, load_graph

import hocket as hk
from hocket import _core
from hocket.cli.app import run
from hocket.formats import CheckOptions, ExportOptions, check_file, export_plan

TABLE = (
    "# by hand\n"
    "allreduce,0,65536,tree,ll,2,1,8,-1,-1\n"
    "allreduce,65537,18446744073709551615,ring,simple,8,1,8,-1,-1\n"
)
Change = Callable[[str], str]


def swap(old: str, new: str, count: int = 1) -> Change:
    """Replace what must be there."""

    def change(text: str) -> str:
        assert old in text, old
        return text.replace(old, new, count)

    return change


def judged(tmp_path: Path, text: str, **options: object) -> hk.CheckedFile:
    path = tmp_path / "file"
    path.write_text(text)
    return check_file(path, options=CheckOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("machine", dumps.ALL, ids=lambda machine: machine.name)
def test_files_of_all_machines_are_known_and_right(machine: dumps.Made, tmp_path: Path) -> None:
    topo = tmp_path / "topo.xml"
    topo.write_text(machine.topology())
    found = check_file(topo)
    assert found.kind.name == "nccl-topology"
    assert found.is_right
    assert f"{machine.gpus} GPUs" in found.judgement.summary
    graphs = judged(tmp_path, dumps.rings_of(machine), topology=topo)
    assert graphs.kind.name == "nccl-graph"
    assert graphs.is_right, graphs.judgement.faults[0].text
    assert any("every communicator of a process" in each for each in graphs.judgement.warnings)


def test_graphs_of_a_part_of_a_node_are_warned_of(tmp_path: Path) -> None:
    one = dumps.graph(0, 4, [[1, 3]], 20) + dumps.graph(1, 3, [[1, 3]], 20)
    text = dumps.graphs(one)
    first, second, *_ = judged(tmp_path, text).judgement.warnings
    assert first.startswith("the file is of a communicator of some GPUs alone, those with dev 1, 3")
    assert "names GPUs by rank" in second
    topo = tmp_path / "topo.xml"
    topo.write_text(dumps.PCI_T4.topology())
    faults = judged(tmp_path, text, topology=topo).judgement.faults
    assert {fault.code for fault in faults} == {"machine"}
    assert "2 of the 4 GPUs" in faults[0].detail
    without = re.sub(r' rank="\d"', "", text)
    assert len(judged(tmp_path, without).judgement.warnings) == 2


GRAPH_FAULTS: dict[str, tuple[Change, str, int | None]] = {
    "prolog": (lambda text: '<?xml version="1.0"?>' + text, "prolog", 1),
    "tab": (swap("    <channel>", "\t<channel>"), "tab", 3),
    "lines": (swap('id="0" ', 'id="0"\n'), "line_break", 2),
    "tab within": (swap('id="0" ', 'id="0"\t'), "tab_within", 2),
    "spaces": (swap('id="0"', 'id = "0"'), "spaces", 2),
    "long": (swap('dev="0x0"', f'name="{"x" * 255}" dev="0x0"'), "long", 4),
    "attributes": (
        swap('dev="0x0"', " ".join(f'a{i}="0"' for i in range(16)) + ' dev="0x0"'),
        "attributes",
        4,
    ),
    "pattern": (swap('pattern="4"', 'pattern="3"'), "pattern", 2),
    "type": (swap('typeintra="SYS"', 'typeintra="C2C"'), "type", 2),
    "speed": (swap('speedintra="5"', 'speedintra="0"'), "speed", 2),
    "twice": (swap('dev="0x1"', 'dev="0x0"'), "twice", 3),
    "other": (swap('<gpu dev="0x1" rank="1"/>', '<gpu dev="0x7" rank="7"/>', 1), "other_gpus", 9),
    "nics": (swap("<channel>", '<channel>\n<net dev="0x0"/>'), "nics", 3),
    "channels": (
        lambda text: dumps.alike(range(4), 33, 5),
        "channels",
        2,
    ),
    "crossing": (
        lambda text: dumps.alike(range(4), 1, 5, nets=[(0, 1)]),  # type: ignore[arg-type]
        "crossing",
        3,
    ),
}


@pytest.mark.parametrize("name", GRAPH_FAULTS)
def test_wrong_graphs_are_each_wrong_for_their_own_reason(name: str, tmp_path: Path) -> None:
    change, code, line = GRAPH_FAULTS[name]
    found = judged(tmp_path, change(dumps.rings_of(dumps.PCI_T4)))
    first = found.judgement.faults[0]
    assert (first.code, first.line) == (code, line), first.text


UNREADABLE: dict[str, tuple[str, Change, str]] = {
    "graph: cut": ("graph", lambda text: text[:200], "it is no XML"),
    "graph: bomb": (
        "graph",
        lambda text: '<!DOCTYPE graphs [<!ENTITY a "aa">]>' + text,
        "document type",
    ),
    "graph: version": ("graph", swap('graphs version="1"', 'graphs version="2"'), "of version 2"),
    "graph: twice": ("graph", swap('id="1"', 'id="0"'), "two graphs of id 0"),
    "graph: count": ("graph", swap('nchannels="2"', 'nchannels="3"'), "nchannels is 3"),
    "graph: dev": ("graph", swap('dev="0x0"', 'dev="0xg"'), "dev of <gpu>"),
    "graph: no id": ("graph", swap('id="0" ', ""), "<graph> has no id"),
    "graph: type": ("graph", swap('typeintra="SYS"', 'typeintra="FAR"'), "there is no type"),
    "table: collective": ("table", swap("allreduce", "allshuffle"), 'no "allshuffle"'),
    "table: algorithm": ("table", swap("tree", "bush"), 'no "bush"'),
    "table: protocol": ("table", swap(",ll,", ",ll256,"), 'no "ll256"'),
    "table: bytes": ("table", swap("allreduce,0", "allreduce,-4"), "no number of bytes"),
    "table: fields": ("table", swap(",-1,-1\n", ",-1,-1,-1\n"), "has 11 fields"),
    "table: long": ("table", swap("# by", "# " + "x" * 300), "characters"),
    "dump: cut": ("dump", lambda text: text[:300], "it is no XML"),
    "dump: sm": ("dump", swap('sm="75"', 'sm="many"'), "sm of <gpu>"),
    "dump: no GPU": ("dump", lambda text: re.sub(r"<gpu [^>]*>\s*</gpu>", "", text), "GPU"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_files_are_refused_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    which, change, said = UNREADABLE[name]
    whole = {
        "graph": dumps.rings_of(dumps.PCI_T4),
        "table": TABLE,
        "dump": dumps.PCI_T4.topology(),
    }
    path = tmp_path / "broken"
    path.write_text(change(whole[which]))
    assert run(["check", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert said in printed.err
    assert "broken" in printed.err


def test_tables_answer_for_every_size(tmp_path: Path) -> None:
    assert judged(tmp_path, TABLE).is_right
    holed = judged(tmp_path, TABLE.replace("65537", "65538")).judgement
    assert holed.faults[0].code == "hole"
    assert "allreduce of 65537 bytes" in holed.faults[0].detail
    hidden = judged(tmp_path, TABLE + "allreduce,5,6,ring,ll,1,1,8,-1,-1\n").judgement
    assert hidden.notes == ("row 3 never answers: row 1 comes before it for the same sizes",)
    unsaid = judged(tmp_path, TABLE.replace("tree,ll,2", "tree,ll,-1")).judgement
    assert "sets one channel" in unsaid.warnings[0]


@pytest.mark.parametrize("machine", [dumps.DGX1, dumps.DGX_A100], ids=lambda each: each.name)
@pytest.mark.parametrize("nodes", [1, 2])
def test_rings_of_a_plan_are_the_rings_that_nccl_loads(
    machine: dumps.Made, nodes: int, tmp_path: Path
) -> None:
    topo, out = tmp_path / "topo.xml", tmp_path / "graph.xml"
    topo.write_text(machine.topology())
    like = hk.nccl.load_machine([(topo, None)], nodes)
    plan = hk.plan("all-reduce", like.topology, size="16 MiB", algorithm="nccl-ring", chunks=1)
    made = export_plan(
        plan, out, to="nccl-graph", options=ExportOptions(topology=topo, nodes=nodes)
    )
    assert any("every communicator" in each for each in made.written.warnings)
    texts = [each.read_text() for each in made.written.files]
    assert len(texts) in (1, nodes)
    texts *= nodes // len(texts)
    nets = set(range(len(machine.nics)))
    graphs = [
        [
            load_graph(
                texts[n], number, {dev: n * machine.gpus + dev for dev in range(machine.gpus)}, nets
            )
            for n in range(nodes)
        ]
        for number in (0, 1)
    ]
    orders, _ = connect(*graphs)
    columns = plan.transfers
    pairs = set(zip(columns.src.tolist(), columns.dst.tolist(), strict=True))
    used = {pair for order in orders for pair in zip(order, [*order[1:], order[0]], strict=True)}
    assert used == pairs


def test_what_graphs_cannot_say_is_refused(tmp_path: Path) -> None:
    topo, out = tmp_path / "topo.xml", tmp_path / "graph.xml"
    topo.write_text(dumps.DGX1.topology())
    network = hk.topology.load(str(topo))
    options = ExportOptions(topology=topo)

    def refused(plan: hk.Plan, kind: type[hk.Error], said: str, given: ExportOptions) -> None:
        with pytest.raises(kind, match=said):
            export_plan(plan, out, to="nccl-graph", options=given)
        assert not out.exists()

    ring = hk.plan("all-reduce", network, size="16 MiB", algorithm="ring", chunks=1)
    refused(ring, hk.SpecError, "numbers of GPUs and NICs are not known", ExportOptions())
    trees = hk.plan("all-reduce", network, size="16 MiB", algorithm="double-binary-tree", chunks=1)
    refused(trees, hk.InfeasibleError, "goes round no ring of all 8 NPUs", options)
    few = hk.plan("all-reduce", network, size="16 MiB", algorithm="ring", chunks=1, npus="0-3")
    refused(few, hk.InfeasibleError, "leaves out .*every communicator of a process", options)
    other = hk.topology.ring(8, bandwidth="50 GB/s", latency="500 ns")
    foreign = hk.plan("all-reduce", other, size="16 MiB", algorithm="ring", chunks=1)
    refused(foreign, hk.SpecError, "the plan is of 8 NPUs of 'ring 8'", options)


def test_tables_and_timelines_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = hk.topology.load("dgx1_v100")
    plan = hk.plan("all-reduce", network, size="16 MiB", algorithm="ring", chunks=1)
    saved = tmp_path / "ring.parquet"
    plan.save(saved)
    table, trace = tmp_path / "tuner.csv", tmp_path / "ring.pftrace"
    assert run(["export", str(saved), "--to", "nccl-tuner", "-o", str(table), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["program"] is None
    assert check_file(table).is_right
    assert table.read_text() == hk.nccl.tuner_table(network).text
    assert run(["export", str(saved), "--to", "perfetto", "-o", str(trace)]) == 0
    assert trace.stat().st_size > 0
    assert run(["export", str(saved), "--to", "perfetto", "-o", str(tmp_path / "x.txt")]) == 2
    assert "has no ending that fits" in capsys.readouterr().err
    assert run(["export", str(saved), "--to", "perfetto", "-o", str(trace), "--channels", "2"]) == 2
    assert "--channels: is not an option of a timeline" in capsys.readouterr().err
    assert run(["check", str(table), "--run"]) == 2
    assert "--run: is not an option of a table" in capsys.readouterr().err


def channels(gpus: int) -> st.SearchStrategy[list[tuple[list[int], list[tuple[int, None]]]]]:
    orders = st.lists(st.permutations(range(gpus)), min_size=1, max_size=32)
    return orders.map(lambda each: [([], [(dev, None) for dev in order]) for order in each])


@st.composite
def drawn_graphs(draw: st.DrawFn) -> list[hk.nccl.Graph]:
    rows = draw(st.integers(1, 12).flatmap(channels))
    speeds = st.integers(1, 100_000_000).map(lambda value: value / 10_000)
    types = st.sampled_from(["LOC", "NVL", "NVB", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"])
    return [
        hk.nccl.Graph(
            number,
            pattern,
            cross_nic=draw(st.integers(0, 2)),
            speed_intra=draw(speeds),
            speed_inter=draw(speeds),
            latency_inter=draw(st.integers(0, 1000)) / 8,
            type_intra=draw(types),
            type_inter=draw(types),
            same_channels=draw(st.integers(0, 1)),
            channels=rows,
        )
        for number, pattern in ((0, 4), (1, draw(st.integers(1, 3))))
    ]


@settings(max_examples=60, deadline=None)
@given(drawn_graphs())
def test_graphs_that_are_written_read_and_written_are_the_same(graphs: list[hk.nccl.Graph]) -> None:
    text = _core.nccl.write_graphs(graphs)
    again = _core.nccl.parse_graphs(text.encode())
    assert _core.nccl.write_graphs(again) == text
    for made, read in zip(graphs, again, strict=True):
        assert [each[:2] for each in read.channels] == [each[:2] for each in made.channels]
        assert (read.speed_intra, read.speed_inter) == (made.speed_intra, made.speed_inter)
        assert (read.type_intra, read.pattern) == (made.type_intra, made.pattern)


@st.composite
def drawn_rows(draw: st.DrawFn) -> list[tuple[object, ...]]:
    borders = sorted(draw(st.sets(st.integers(1, 2**64 - 1), max_size=8)))
    rows = []
    for least, end in zip([0, *borders], [*borders, 2**64], strict=True):
        rows.append(
            (
                "allreduce",
                least,
                end - 1,
                draw(st.sampled_from(["tree", "ring", "nvls", "nvls_tree", "pat"])),
                draw(st.sampled_from(["ll", "ll128", "simple"])),
                draw(st.none() | st.integers(1, 64)),
                2,
                16,
            )
        )
    return draw(st.permutations(rows))


@settings(max_examples=60, deadline=None)
@given(drawn_rows(), st.lists(st.from_regex(r"[a-z][a-z ]{0,60}[a-z]", fullmatch=True), max_size=3))
def test_tables_that_are_written_read_and_written_are_the_same(
    rows: list[tuple[object, ...]], comments: list[str]
) -> None:
    text = _core.nccl.write_tuner(rows, comments)  # type: ignore[arg-type]
    read, said = _core.nccl.parse_tuner(text.encode())
    assert (read, said) == (rows, comments)
    assert _core.nccl.write_tuner(read, said) == text


def test_forty_mutations_have_forty_reasons() -> None:
    from tests.formats import test_formats as programs

    reasons = {("xml", said) for _, said in programs.UNREADABLE.values()}
    reasons |= {("xml", code) for _, code in programs.WRONG.values()}
    reasons |= {("graph", code) for _, code, _ in GRAPH_FAULTS.values()}
    reasons |= {(which, said) for which, _, said in UNREADABLE.values()}
    assert len(reasons) >= 60
