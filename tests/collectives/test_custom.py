"""Collectives of one's own: planned, proved against an oracle, bounded, and read from files."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket.cli import run, schema
from hocket.collectives.yaml import CollectiveFile

ROOT = Path(__file__).parents[2]
LINK = {"bandwidth": "25 GB/s", "latency": "700 ns"}
NETWORKS = [
    hk.topology.ring(4, **LINK),
    hk.topology.mesh(2, 3, **LINK),
    hk.topology.switch(5, **LINK),
    hk.topology.clos(2, 2, 2, **LINK),
]


def outcome(plan: hk.Plan) -> list[list[dict[int, int]]]:
    """What every NPU has of every chunk in the end: how often whose contribution, one event at a time.

    A transfer reads when it starts and writes when it ends, as it is simulated; nothing else is used.
    """
    collective, moves = plan.collective, plan.transfers
    demands = collective.demands()
    state: list[list[dict[int, int]]] = []
    for demand in plan.core.chunk_demand.tolist():
        _, is_sum, holders, _ = demands[demand]
        members = collective.npus if holders is None else holders
        row: list[dict[int, int]] = [{} for _ in range(plan.topology.npu_count)]
        for npu in members:
            row[npu] = {npu if is_sum else -1: 1}
        state.append(row)
    result = hk.simulate(plan)
    times = [*zip(result.end_ps.tolist(), [0] * len(plan), range(len(plan)), strict=True)]
    times += [*zip(result.start_ps.tolist(), [1] * len(plan), range(len(plan)), strict=True)]
    loads: dict[int, list[dict[int, int]]] = {}
    for _, is_start, number in sorted(times):
        first, count = int(moves.chunk[number]), int(moves.chunk_count[number])
        src, dst = int(moves.src[number]), int(moves.dst[number])
        chunks = range(first, first + count)
        if is_start:
            loads[number] = [dict(state[chunk][src]) for chunk in chunks]
            continue
        for chunk, load in zip(chunks, loads[number], strict=True):
            if moves.op[number] == 0:
                state[chunk][dst] = load
            else:
                for who, times_in in load.items():
                    state[chunk][dst][who] = state[chunk][dst].get(who, 0) + times_in
    return state


def check_done(plan: hk.Plan) -> None:
    demands = plan.collective.demands()
    state = outcome(plan)
    for chunk, demand in enumerate(plan.core.chunk_demand.tolist()):
        _, is_sum, holders, wanted = demands[demand]
        everyone = plan.collective.npus
        whole = dict.fromkeys(holders or everyone, 1) if is_sum else {-1: 1}
        for npu in wanted or everyone:
            assert state[chunk][npu] == whole, (chunk, npu)


@st.composite
def customs(draw: st.DrawFn) -> tuple[hk.Topology, hk.Collective]:
    topology = draw(st.sampled_from(NETWORKS))
    npus = st.integers(0, topology.npu_count - 1)
    sets = st.none() | npus | st.lists(npus, min_size=1, max_size=4)
    demand = st.builds(hk.Demand, st.integers(100, 100_000), sets, sets, st.booleans())
    demands = draw(st.lists(demand, min_size=1, max_size=5))
    everyone = list(range(topology.npu_count))
    return topology, hk.collective(topology, demands, npus=everyone, name="drawn")


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(case=customs(), algorithm=st.sampled_from(["greedy", "blind"]), chunks=st.integers(1, 3))
def test_any_demands_are_met(
    case: tuple[hk.Topology, hk.Collective], algorithm: str, chunks: int
) -> None:
    topology, collective = case
    plan = hk.plan(collective, topology, algorithm=algorithm, chunks=chunks).verify()
    check_done(plan)
    assert hk.bound(topology, collective).time_ps <= hk.simulate(plan).time_ps
    flow = hk.simulate(plan, fidelity="flow")
    assert hk.bound(topology, collective, "flow").time_ps <= flow.time_ps


@settings(max_examples=4, deadline=None, derandomize=True)
@given(case=customs())
def test_every_searcher_and_comparison_take_them(case: tuple[hk.Topology, hk.Collective]) -> None:
    topology, collective = case
    for algorithm in ("auto", "exact"):
        plan = hk.plan(collective, topology, algorithm=algorithm, chunks=1, time_limit=1)
        check_done(plan.verify())
    comparison = hk.compare(collective, topology, chunks=1)
    names = {entry.algorithm for entry in comparison}
    assert {"greedy"} <= names <= {"flows", "greedy", "steiner"}
    assert "flows" in names or "is not held by one NPU" in comparison.refused["flows"]
    assert comparison.best.run.gap >= 0


def test_all_to_all_v_is_a_matrix() -> None:
    topology = NETWORKS[0]
    sizes = [[9, "1 KB", 0], [3, 9, 5], [0, 0, 9]]
    shuffle = hk.all_to_all_v(topology, sizes, npus=[3, 1, 0], name="moe")
    assert (shuffle.name, shuffle.kind, shuffle.size) == ("moe", "custom", 1008)
    assert shuffle.npus == [3, 1, 0]
    assert shuffle.demands() == [
        (1000, False, [3], [1]),
        (3, False, [1], [3]),
        (5, False, [1], [0]),
    ]
    counted = hk.all_to_all_v(topology, np.array([[0, 7], [8, 0]]))
    assert counted.demands() == [(7, False, [0], [1]), (8, False, [1], [0])]
    even = hk.all_to_all_v(topology, [[1000] * 4] * 4)
    named = hk.collective_on("all-to-all", topology, 4000)
    assert hk.bound(topology, even).time_ps == hk.bound(topology, named).time_ps
    check_done(hk.plan(even, topology, algorithm="greedy").verify())


def test_messages_and_neighbours() -> None:
    topology = NETWORKS[0]
    name = topology.device_names[2]
    sends = hk.send_receive(topology, [(0, 1, "1 MB"), (3, name, 5)])
    assert sends.demands() == [(1_000_000, False, [0], [1]), (5, False, [3], [2])]
    assert sends.npus == [0, 1, 2, 3]
    halo = hk.neighbor_exchange(topology, "1 MB")
    assert len(halo.demands()) == 8
    same = hk.neighbor_exchange(topology, "1 MB", same=True)
    assert [(holders, wanted) for _, _, holders, wanted in same.demands()] == [
        ([0], [1, 3]),
        ([1], [0, 2]),
        ([2], [1, 3]),
        ([3], [0, 2]),
    ]
    given = hk.neighbor_exchange(topology, 8, neighbors={0: [2], name: [0]})
    assert given.demands() == [(8, False, [0], [2]), (8, False, [2], [0])]
    for each in (sends, halo, same, given):
        check_done(hk.plan(each, topology, algorithm="greedy").verify())


def test_its_name_is_printed_and_kept(tmp_path: Path) -> None:
    topology = NETWORKS[0]
    mine = hk.collective(topology, [hk.Demand("1 MB", 0, [1, 2])], name="my own")
    assert repr(mine) == "<Collective my own: 3 NPUs, 1000000 B>"
    plan = hk.plan(mine, topology, algorithm="greedy")
    assert repr(plan).startswith('<Plan greedy my own on "ring 4":')
    plan.save(tmp_path / "plan.parquet")
    assert hk.Plan.load(tmp_path / "plan.parquet").collective == mine
    assert pickle.loads(pickle.dumps(mine)) == mine
    assert pickle.loads(pickle.dumps(plan)).collective.name == "my own"
    assert hk.simulate(plan).to_dict()["collective"] == "my own"


BAD: dict[str, tuple[Callable[[hk.Topology], object], str]] = {
    "none": (lambda t: hk.collective(t, []), "demands: there is none"),
    "number": (lambda t: hk.collective(t, 3), "demands: 3 "),  # type: ignore[arg-type]
    "tuple": (lambda t: hk.collective(t, [(1, 0, 1)]), "demand 0: (1, 0, 1) is not a Demand"),  # type: ignore[list-item]
    "size": (
        lambda t: hk.collective(t, [hk.Demand("1 parsec", 0, 1)]),
        "demand 0: size: '1 parsec'",
    ),
    "zero": (lambda t: hk.collective(t, [hk.Demand(0, 0, 1)]), "demand 0: size: "),
    "npu": (
        lambda t: hk.collective(t, [hk.Demand(1, 0, 9)]),
        "demand 0: wanted: there is no NPU 9",
    ),
    "name": (lambda t: hk.collective(t, [hk.Demand(1, "x", 1)]), "demand 0: holders: "),
    "nobody": (
        lambda t: hk.collective(t, [hk.Demand(1, [], 1)]),
        "demand 0: holders: there is nob",
    ),
    "half": (lambda t: hk.collective(t, [hk.Demand(1, 0.5, 1)]), "demand 0: holders: "),  # type: ignore[arg-type]
    "sum": (lambda t: hk.collective(t, [hk.Demand(1, 0, 1, 3)]), "demand 0: sum: 3 is neither"),  # type: ignore[arg-type]
    "outside": (
        lambda t: hk.collective(t, [hk.Demand(1, 0, 3)], npus=[0, 1]),
        "demand 0: is wanted by NPU 3, which does not take part",
    ),
    "alone": (lambda t: hk.collective(t, [hk.Demand(1, 0, 0)]), "a collective needs at least two"),
    "title": (lambda t: hk.collective(t, [hk.Demand(1, 0, 1)], name="a\nb"), "name: 'a\\nb' is no"),
    "topology": (
        lambda t: hk.collective("ring", []),
        "topology: there is no 'ring'; write it with its size",
    ),  # type: ignore[arg-type]
    "square": (lambda t: hk.all_to_all_v(t, [[1, 2], [1]]), "sizes: row 1 has 1 entries"),
    "entry": (lambda t: hk.all_to_all_v(t, [[0, "x"], [1, 0]]), "sizes[0][1]: 'x'"),
    "below": (lambda t: hk.all_to_all_v(t, [[0, -1], [1, 0]]), "sizes[0][1]: "),
    "none of it": (lambda t: hk.all_to_all_v(t, [[0, None], [1, 0]]), "sizes[0][1]: None is no"),  # type: ignore[list-item]
    "rows": (lambda t: hk.all_to_all_v(t, [[0, 1], [1, 0]], npus=[1]), "sizes: there are 2 rows"),
    "message": (lambda t: hk.send_receive(t, [(0, 1)]), "sends[0]: (0, 1) is not a send"),  # type: ignore[list-item]
    "itself": (lambda t: hk.send_receive(t, [(0, 0, 1)]), "sends[0]: NPU 0 sends to itself"),
    "lonely": (lambda t: hk.neighbor_exchange(t, 1, neighbors={}), "neighbors: nobody has any"),
    "list": (
        lambda t: hk.neighbor_exchange(t, 1, neighbors=[1]),
        "neighbors: [1] is not a mapping",
    ),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", BAD)
def test_bad_ones_are_refused_in_a_line(case: str) -> None:
    call, text = BAD[case]
    with pytest.raises(hk.SpecError) as caught:
        call(NETWORKS[0])
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)


FILES = {
    "demands": (
        "name: mix\ndemands:\n- {size: 1 MB, holders: 0, wanted: [npu1, 2]}\n"
        "- {size: 8, holders: all, wanted: 3, sum: true}\n",
        [(1_000_000, False, [0], [1, 2]), (8, True, None, [3])],
    ),
    "matrix": (
        "npus: [2, 0]\nall_to_all_v:\n- [0, 1 KB]\n- [16, 0]\n",
        [(1000, False, [2], [0]), (16, False, [0], [2])],
    ),
    "sends": ("sends: [{src: 0, dst: npu3, size: 4}]\n", [(4, False, [0], [3])]),
    "neighbours": (
        "neighbors: {size: 4, of: {0: [1], npu2: [0, 1]}, same: true}\n",
        [(4, False, [0], [1]), (4, False, [2], [0, 1])],
    ),
    "json": ('{"sends": [{"src": 1, "dst": 2, "size": "2 KiB"}]}', [(2048, False, [1], [2])]),
}


@pytest.mark.parametrize("case", FILES)
def test_files_say_the_same(tmp_path: Path, case: str) -> None:
    text, demands = FILES[case]
    path = tmp_path / "mine.yml"
    path.write_text(text)
    loaded = hk.load_collective(path, NETWORKS[0])
    assert loaded.demands() == demands
    assert loaded.name == ("mix" if case == "demands" else loaded.name)


WRONG_FILES = {
    "nothing to do": ("name: x\n", "mine.yml: says nothing to do; give one of demands"),
    "two forms": (
        "sends: [{src: 0, dst: 1, size: 4}]\nneighbors: {size: 1}\n",
        "mine.yml: has sends and neighbors; give one of",
    ),
    "a key": (
        "demand: []\n",
        "mine.yml, line 1: there is no key 'demand'; did you mean 'demands'?",
    ),
    "an inner key": (
        "demands:\n- {size: 1, holder: 0, wanted: 1}\n",
        "mine.yml, line 2: demands[0]: there is no key 'holder'; did you mean 'holders'?",
    ),
    "a missing key": (
        "sends:\n- {src: 0, dst: 1}\n",
        "mine.yml, line 2: sends[0]: key 'size' is missing; add it",
    ),
    "a size": (
        "demands:\n\n- {size: 1 parsec, holders: 0, wanted: 1}\n",
        "mine.yml, line 3: demands[0].size: ",
    ),
    "an NPU": (
        "demands:\n- {size: 1, holders: 0, wanted: 1}\n- {size: 1, holders: 0, wanted: gpu9}\n",
        "mine.yml, line 3: demands[1].wanted: ",
    ),
    "an NPU of nothing": (
        "sends: [{src: 1.5, dst: 1, size: 1}]\n",
        "line 1: sends[0].src: 1.5 is no",
    ),
    "a list": ("sends: 3\n", "mine.yml, line 1: sends: 3 "),
    "an empty list": ("demands: []\n", "mine.yml, line 1: demands: has too few entries"),
    "a matrix": ("all_to_all_v: [[0, 1], [1]]\n", "line 1: all_to_all_v: sizes: row 1 has 1 ent"),
    "participants": ("npus: [0, 9]\nall_to_all_v: [[0, 1], [1, 0]]\n", "line 1: npus: there is no"),
    "too much said": ("npus: [0]\nneighbors: {size: 4}\n", "line 1: npus: those who send"),
    "no mapping": ("- 3\n", "mine.yml: is not a mapping of keys to values; begin with name:"),
    "no YAML": ("sends: [\n", "is not YAML"),
    "nothing": ("", "mine.yml: is empty; begin with name:"),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_wrong_files_are_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text, words = WRONG_FILES[case]
    Path("mine.yml").write_text(text)
    with pytest.raises(hk.SpecError) as caught:
        hk.load_collective("mine.yml", NETWORKS[0])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command_line_takes_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yml").write_text(FILES["demands"][0])
    network = ["-t", "ring:4", "--bandwidth", "25 GB/s", "--latency", "1 us"]
    assert run(["plan", "mine.yml", *network, "-a", "greedy", "-o", "mine.parquet"]) == 0
    assert "greedy mix of 1 MB among 4 NPUs of ring 4" in capsys.readouterr().out
    assert run(["simulate", "mine.parquet"]) == 0
    assert "greedy mix of 1 MB" in capsys.readouterr().out
    assert run(["compare", "mine.yml", *network, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["collective"] == "mix"
    for arguments, words in (
        (
            ["plan", "mine.yml", *network, "-s", "1MB"],
            "--size: 'mine.yml' has its own; leave it out",
        ),
        (["plan", "mine.yml", *network, "--npus", "0,1"], "--npus: 'mine.yml' has its own"),
        (["compare", "gone.yml", *network], "gone.yml: cannot be read: No such file"),
        (["plan", "all-reduce", *network], "--size: there is none; give bytes"),
        (["compare", "mine.yml", *network, "--sizes", "1K:2K:x2"], "--sizes: 'mine.yml' has its"),
    ):
        assert run(arguments) == 2
        assert words in capsys.readouterr().err


def test_schema_has_every_field() -> None:
    text = schema.schema_text("collective")
    assert set(json.loads(text)["properties"]) == set(CollectiveFile.model_fields)


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**65) | st.text(max_size=6) | st.just("1 MB"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["size", "holders", "wanted", "src", "dst", "of"]), inner)
    ),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(values=st.dictionaries(st.sampled_from(sorted(CollectiveFile.model_fields)), JSON))
def test_any_file_is_read_or_refused_in_a_line(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, object]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yml"
    path.write_text(json.dumps(values))
    text = ""
    try:
        hk.load_collective(path, NETWORKS[0])
    except hk.SpecError as error:
        text = str(error)
    assert "\n" not in text


def test_what_cannot_be_done_has_no_bound() -> None:
    """A group whose NPUs no links join is refused, not bounded by a time that means never."""
    graph = nx.DiGraph()
    for a, b in ((0, 1), (2, 3)):
        for src, dst in ((a, b), (b, a)):
            graph.add_edge(src, dst, bandwidth=25 * 10**9, latency=0.0)
    parts = hk.topology.from_networkx(graph)
    assert hk.bound(parts, hk.collective_on("all-reduce", parts, "64 MB", npus=[2, 3])).time_ps > 0
    apart = hk.collective_on("all-reduce", parts, "64 MB", npus=[0, 3])
    with pytest.raises(hk.InfeasibleError, match="no way from 3 to 0, and no plan can do"):
        hk.bound(parts, apart)
