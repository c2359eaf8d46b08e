"""Execution traces: real ones, made-up ones read back, and what is refused."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket import traces
from hocket._core import Plan as CorePlan
from hocket._core.trace import Draft, Trace

from . import chakra_files as chakra
from .chakra_files import Node, collective, receive, send

REAL = Path(__file__).parents[1] / "data" / "chakra"
MB = 1 << 20
NONE = Trace.NONE


def make(
    *ranks: list[Node], groups: dict[int, list[int]] | None = None, follow: str = "all"
) -> Trace:
    files = [(f"t.{rank}.et", chakra.trace_bytes(nodes)) for rank, nodes in enumerate(ranks)]
    return Draft(files, follow).link(list((groups or {}).items()))  # type: ignore[arg-type]


def of(trace: Trace, row: int) -> list[int]:
    first = trace.dependency_first
    return trace.dependencies[first[row] : first[row + 1]].tolist()


def calls(trace: Trace) -> list[tuple[str, int, int, list[int]]]:
    """Kind, group's number, size and nodes of each call."""
    first, nodes = trace.calls_first, trace.calls_nodes
    return [
        (
            traces.CALLS[int(kind)],
            int(trace.group_id[group]),
            int(size),
            nodes[first[i] : first[i + 1]].tolist(),
        )
        for i, (kind, group, size) in enumerate(
            zip(trace.calls_kind, trace.calls_group, trace.calls_size, strict=True)
        )
    ]


# Real traces.


@pytest.mark.parametrize(
    ("name", "kind", "size"),
    [
        ("all_gather", "all-gather", 4 * MB),  # comm_size is a block of it
        ("all_reduce", "all-reduce", MB),
        ("all_to_all", "all-to-all", MB),
        ("reduce_scatter", "reduce-scatter", MB),
    ],
)
def test_microbenchmarks(name: str, kind: str, size: int) -> None:
    trace = traces.load(REAL / name)
    assert calls(trace) == [(kind, 0, size, [0, 1, 2, 3])]
    assert trace.bytes.tolist() == [MB] * 4
    assert trace.names == [f"{name}_4npus_1MB"]
    assert trace.id.tolist() == [0, 1, 2, 3]


def test_a_ring_of_sends_and_receives() -> None:
    trace = traces.load(REAL / "custom_allreduce")
    summary = traces.summarize(trace)
    assert summary.nodes == {"compute": 56, "send": 112, "receive": 112}
    assert (summary.messages, summary.message_bytes) == (112, 14 * MB)  # 2 (n - 1) vectors
    assert summary.compute_ps == 56 * 7 * 10**6
    sends = np.flatnonzero(trace.kind == 5)
    partners = trace.partner[sends]
    assert (trace.partner[partners] == sends).all()
    rank = np.searchsorted(trace.rank_first, np.arange(len(trace)), side="right") - 1
    assert (trace.peer[sends] == rank[partners]).all()
    assert (trace.peer[sends] == (rank[sends] + 1) % 8).all()
    assert (trace.tag[sends] == trace.tag[partners]).all()


def test_a_pytorch_trace(tmp_path: Path) -> None:
    path = tmp_path / "pytorch.0.et"
    path.write_bytes(gzip.decompress((REAL / "pytorch_chakra.0.et.gz").read_bytes()))
    with pytest.raises(hk.SpecError, match=r"node 216 .*: its control dependency 3 is not in the"):
        traces.load(tmp_path)
    trace = traces.load(path, dependencies="data")
    summary = traces.summarize(trace)
    assert summary.nodes == {"compute": 3643, "collective": 21}
    assert summary.unspecified == 14
    assert {name: (each.count, each.size) for name, each in summary.calls.items()} == {
        "all-reduce": (5, 102_228_128),
        "broadcast": (2, 212_904),
    }
    assert len(trace.dependencies) == 181_878
    assert (trace.call_kind == 254).sum() == 14


def test_the_json_form_is_refused() -> None:
    with pytest.raises(
        hk.SpecError, match=r"small_chakra.0.json: the JSON form of traces is not read"
    ):
        traces.load(REAL / "small_chakra.0.json")


# What is written is read.


@st.composite
def graphs(draw: st.DrawFn) -> list[list[Node]]:
    """Ranks with random dependencies, whose ids and places have nothing to do with them."""
    ranks = []
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(0, 12))
        ids = draw(st.lists(st.integers(0, 1 << 63), min_size=count, max_size=count, unique=True))
        nodes = []
        for at, number in enumerate(ids):
            earlier = st.lists(st.sampled_from(ids[:at]), max_size=4) if at else st.just([])
            nodes.append(
                Node(
                    number,
                    draw(st.sampled_from([1, 2, 3, 4])),
                    draw(st.text(max_size=5)),
                    draw(earlier),
                    draw(earlier),
                    draw(st.integers(0, 10**9)),
                    attributes=draw(
                        st.fixed_dictionaries(
                            {},
                            optional={
                                "num_ops": st.integers(0, 1 << 62),
                                "tensor_size": st.integers(0, 1 << 62),
                                "is_cpu_op": st.booleans(),
                                "other": st.text(max_size=3),
                            },
                        )
                    ),
                    packed=draw(st.booleans()),
                )
            )
        ranks.append(draw(st.permutations(nodes)))
    return ranks


@given(graphs())
@settings(deadline=None)
def test_what_is_written_is_read(ranks: list[list[Node]]) -> None:
    trace = make(*ranks)
    nodes = [node for rank in ranks for node in rank]
    counts = np.cumsum([0, *map(len, ranks)])
    assert trace.rank_first.tolist() == counts.tolist()
    assert trace.id.tolist() == [node.id for node in nodes]
    assert trace.kind.tolist() == [node.kind for node in nodes]
    assert [trace.names[row] for row in trace.name_row] == [node.name for node in nodes]
    assert trace.duration_ps.tolist() == [node.micros * 10**6 for node in nodes]
    is_work = [node.kind > 1 for node in nodes]
    for column, attribute in ((trace.operations, "num_ops"), (trace.tensor_bytes, "tensor_size")):
        wanted = [
            node.attributes.get(attribute, 0) * work
            for node, work in zip(nodes, is_work, strict=True)
        ]  # type: ignore[operator]
        assert column.tolist() == wanted
    assert trace.is_cpu.tolist() == [node.attributes.get("is_cpu_op", False) for node in nodes]
    for rank, members in enumerate(ranks):
        start = int(counts[rank])
        row = {node.id: start + at for at, node in enumerate(members)}
        for node in members:
            wanted = sorted({row[on] for on in (*node.control, *node.data)})
            assert of(trace, row[node.id]) == wanted
        assert trace.order[start : counts[rank + 1]].tolist() == slow_order(members, row)


def slow_order(nodes: list[Node], row: dict[int, int]) -> list[int]:
    """Of the nodes whose dependencies are done, the one of the lowest id, again and again."""
    done: list[int] = []
    left = {node.id: {*node.control, *node.data} for node in nodes}
    while left:
        number = min(number for number, on in left.items() if on <= set(done))
        done.append(number)
        del left[number]
    return [row[number] for number in done]


@pytest.mark.parametrize("kind", chakra.INTEGERS)
def test_integers_of_every_kind(kind: str) -> None:
    one = [collective(0, chakra.ALL_REDUCE, 1)]
    one[0].attributes["comm_size"] = (kind, 1)
    one[0].attributes["comm_type"] = (kind, 0)
    assert calls(make(one, one)) == [("all-reduce", 0, 1, [0, 1])]


def test_data_dependencies_alone() -> None:
    nodes = [Node(0, control=[0, 7]), Node(1, control=[0], data=[0])]
    trace = make(nodes, follow="data")
    assert [of(trace, 0), of(trace, 1)] == [[], [0]]


# Collectives.


def test_every_kind_of_collective_and_its_size() -> None:
    kinds = [*range(10)]
    ranks = [[collective(kind, kind, 100) for kind in kinds] for _ in range(3)]
    names = [*traces.CALLS.values()]
    names.insert(8, "reduce-scatter")
    sizes = [300 if name in ("all-gather", "gather") else 100 for name in names]
    sizes[names.index("barrier")] = 0
    made = calls(make(*ranks))
    assert [(kind, size) for kind, _, size, _ in made] == list(zip(names, sizes, strict=True))
    assert [nodes for *_, nodes in made] == [[at, 10 + at, 20 + at] for at in range(10)]


def test_words_name_collectives_too() -> None:
    assert calls(make([collective(0, "all_reduce", 8)])) == [("all-reduce", 0, 8, [0])]
    assert calls(make([collective(0, "ALL-GATHER", 8)])) == [("all-gather", 0, 8, [0])]


def test_groups_have_calls_of_their_own() -> None:
    ranks = [
        [collective(0, 0, 8, group), collective(1, 2, 8, group), collective(2, 0, 16)]
        for group in ("5", "3", "5", "3")
    ]
    trace = make(*ranks, groups={5: [2, 0], 3: [1, 3]})
    assert trace.group_id.tolist() == [0, 3, 5]
    assert trace.group_ranks.tolist() == [0, 1, 2, 3, 1, 3, 2, 0]
    assert calls(trace) == [
        ("all-reduce", 0, 16, [2, 5, 8, 11]),
        ("all-reduce", 3, 8, [3, 9]),
        ("all-gather", 3, 16, [4, 10]),
        ("all-reduce", 5, 8, [6, 0]),
        ("all-gather", 5, 16, [7, 1]),
    ]
    assert trace.call.tolist() == [3, 4, 0, 1, 2, 0, 3, 4, 0, 1, 2, 0]


def test_collectives_are_matched_as_they_are_issued() -> None:
    one = [collective(3, 0, 8), collective(5, 2, 8, data=[3])]
    other = [collective(9, 2, 8, data=[11]), Node(1), collective(11, 0, 8, data=[1])]
    assert [kind for kind, *_ in calls(make(one, other))] == ["all-reduce", "all-gather"]


def test_a_collective_that_does_not_say_what_it_does_is_counted() -> None:
    nodes = [
        Node(0, chakra.COLLECTIVE, micros=5),
        Node(1, chakra.COLLECTIVE, attributes={"comm_type": 0}),
        Node(2, chakra.COLLECTIVE, attributes={"comm_size": 8}),
        Node(3, chakra.COLLECTIVE, attributes={"comm_type": 9}),
    ]
    trace = make(nodes)
    assert trace.unspecified == 3
    assert calls(trace) == [("barrier", 0, 0, [3])]
    assert trace.duration_ps[0] == 5 * 10**6


def test_messages_of_one_tag_are_matched_in_order() -> None:
    sends = [send(0, 1, 8), send(1, 1, 16), send(2, 1, 4, tag=7)]
    receives = [receive(5, 0, 16), receive(4, 0, 8), receive(9, 0, 4, tag=7)]
    trace = make(sends, receives)
    assert trace.partner.tolist() == [4, 3, 5, 1, 0, 2]
    assert trace.peer.tolist() == [1, 1, 1, 0, 0, 0]


# What is refused.

TWO = [[collective(0, 0, 8)], [collective(0, 0, 8)]]


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        (
            [[Node(1), Node(1, name="again")]],
            't.0.et: node 1 "again": has the id of an earlier node, "node"',
        ),
        ([[Node(1, data=[2])]], "its data dependency 2 is not in the file"),
        ([[Node(1, control=[2])]], "its control dependency 2 is not in the file"),
        ([[Node(1, data=[1])]], 'node 1 "node": waits for itself: it depends on node 1'),
        (
            [[Node(0, data=[1]), Node(1, data=[2]), Node(2, name="b", data=[1])]],
            'waits for itself: it depends on node 2 "b", which depends on node 1 "node"',
        ),
        ([[Node(1, kind=8)]], "there is no node type 8; types are 1 (metadata)"),
        (
            [[collective(0, 10, 8)]],
            "there is no comm_type 10; types are 0 (ALL_REDUCE), 1 (REDUCE)",
        ),
        ([[collective(0, -1, 8)]], "there is no comm_type -1; types are"),
        ([[collective(0, "all_in", 8)]], "there is no comm_type all_in; types are"),
        ([[collective(0, 0, -8)]], "comm_size is -8; give 0 to 4611686018427387904"),
        ([[collective(0, 0, (1 << 62) + 1)]], "comm_size is 4611686018427387905; give 0 to"),
        ([[collective(0, 2, 1 << 62)]] * 2, "comm_size is 4611686018427387904 at each of 2 ranks"),
        ([[collective(0, 0, 8.0)]], "comm_size is a float; write it as a whole number"),  # type: ignore[arg-type]
        ([[Node(1, micros=-1)]], "duration_micros is -1; give 0 to 18446744073709"),
        ([[Node(1, micros=1 << 60)]], "duration_micros is 1152921504606846976; give"),
        ([[collective(0, 0, 8, "4")]], "there is no group 4; groups are 0"),
        ([[collective(0, 0, 8, "pp")]], 'pg_name is "pp"; write a group'),
        (
            [[Node(0, 5, attributes={"comm_dst": 0})]],
            "has no comm_size; a send or a receive needs it",
        ),
        ([[send(0, 1, 8)]], "comm_dst is 1; ranks are 0 to 0"),
        ([[receive(0, 7, 8)]], "comm_src is 7; ranks are 0 to 0"),
        (
            [[send(0, 1, 8)], []],
            "this send from rank 0 to rank 1 with tag 0 has no matching receive",
        ),
        (
            [[], [receive(0, 0, 8, 5)]],
            "receive from rank 0 to rank 1 with tag 5 has no matching send",
        ),
        (
            [[send(0, 1, 8, 1)], [receive(0, 0, 8, 2)]],
            "this send from rank 0 to rank 1 with tag 1 has no matching receive",
        ),
        (
            [[send(0, 1, 8)], [receive(3, 0, 9)]],
            't.0.et: node 0 "node": sends 8 bytes, and node 3 "node" of t.1.et expects 9',
        ),
        (
            [[collective(0, 0, 8)], [collective(3, 0, 9)]],
            'group 0, collective 0: node 0 "node" of t.0.et is all-reduce of 8 bytes, node 3 "node" of '
            "t.1.et is all-reduce of 9 bytes",
        ),
        ([[collective(0, 0, 8)], [collective(3, 2, 8)]], "is all-gather of 8 bytes"),
        (
            [[collective(0, 0, 8), collective(1, 0, 8, name="x")], [collective(3, 0, 8)]],
            'rank 0 issues 2 collectives and rank 1 1; the first without a counterpart is node 1 "x"',
        ),
    ],
)
def test_nodes_that_are_refused(ranks: list[list[Node]], words: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        make(*ranks)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_some_dimensions_are_refused() -> None:
    nodes = [collective(0, 0, 8)]
    nodes[0].attributes["involved_dim"] = [True, True]
    assert len(calls(make(nodes))) == 1
    nodes[0].attributes["involved_dim"] = [True, False]
    with pytest.raises(hk.SpecError, match="involved_dim leaves dimensions out"):
        make(nodes)


def test_ends_that_are_not_the_files_own_are_refused() -> None:
    nodes = [send(0, 1, 8)]
    nodes[0].attributes["comm_src"] = 1
    with pytest.raises(hk.SpecError, match="comm_src is 1, in the file of rank 0; a send is in"):
        make(nodes, [])


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({1: []}, "group 1: has no ranks"),
        ({1: [0, 2]}, "group 1: there is no rank 2; ranks are 0 to 1"),
        ({1: [0, 0]}, "group 1: rank 0 is there twice"),
        ({0: [0]}, "group 0: is the group of all ranks, 0 to 1"),
    ],
)
def test_groups_that_are_refused(groups: dict[int, list[int]], words: str) -> None:
    with pytest.raises(hk.SpecError, match=re.escape(words)):
        make(*TWO, groups=groups)


def test_a_rank_that_is_not_in_its_group_is_refused() -> None:
    ranks = [[collective(0, 0, 8, "1")], [collective(0, 0, 8, "1")]]
    with pytest.raises(hk.SpecError, match=r"t.1.et.*: rank 1 is not in group 1"):
        make(*ranks, groups={1: [0]})


# Files.


def test_whatever_is_cut_off_is_refused_or_read() -> None:
    whole = (REAL / "custom_allreduce.0.et").read_bytes()
    files = [(REAL / f"custom_allreduce.{rank}.et").read_bytes() for rank in range(8)]
    for end in [*range(60), *range(len(whole) - 600, len(whole))]:
        with pytest.raises(hk.SpecError) as caught:
            draft([whole[:end], *files[1:]]).link([])
        assert "\n" not in str(caught.value)
    with pytest.raises(
        hk.SpecError, match=r"r0: the message at byte \d+, after node 33, has \d+ bytes"
    ):
        draft([whole[:-3], *files[1:]])


def test_no_flipped_byte_does_harm() -> None:
    files = [(REAL / f"all_reduce.{rank}.et").read_bytes() for rank in range(4)]
    outcomes = set()
    for at in range(len(files[0])):
        for flip in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            bad = bytearray(files[0])
            bad[at] ^= flip
            outcomes.add(outcome([bytes(bad), *files[1:]]))
    assert outcomes == {"read", "refused"}


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_no_flipped_byte_of_a_ring_does_harm(data: st.DataObject) -> None:
    files = [(REAL / f"custom_allreduce.{rank}.et").read_bytes() for rank in range(8)]
    rank = data.draw(st.integers(0, 7))
    bad = bytearray(files[rank])
    # The first 26 kB are a text that nobody reads.
    at = data.draw(st.integers(0, 60) | st.integers(26_000, len(bad) - 1))
    bad[at] = data.draw(st.integers(0, 255))
    files[rank] = bytes(bad)
    assert outcome(files) in ("read", "refused")


@given(st.binary(max_size=200))
def test_random_bytes_do_no_harm(content: bytes) -> None:
    for each in (content, b"\x00" + content):
        assert outcome([each]) in ("read", "refused")


def draft(files: list[bytes]) -> Draft:
    return Draft([(f"r{rank}", content) for rank, content in enumerate(files)])


def outcome(files: list[bytes]) -> str:
    try:
        draft(files).link([])
    except hk.SpecError as error:
        return "refused" if "\n" not in str(error) else "refused in several lines"
    return "read"


def test_a_set_of_files_is_found(tmp_path: Path) -> None:
    prefix = chakra.write(tmp_path / "job.v1", TWO * 6)
    (tmp_path / "notes.txt").touch()
    by_prefix = traces.load(prefix)
    assert by_prefix.ranks == 12
    assert traces.load(tmp_path).ranks == 12
    assert traces.load(tmp_path / "job.v1.3.et").ranks == 12
    chakra.write(tmp_path / "other", TWO)
    with pytest.raises(hk.SpecError, match=r"has traces job.v1, other; name one, as .*job.v1"):
        traces.load(tmp_path)
    (tmp_path / "job.v1.4.et").unlink()
    (tmp_path / "job.v1.7.et").unlink()
    with pytest.raises(
        hk.SpecError, match=r"no file of ranks 4, 7; there are job.v1.0.et, job.v1.1.et"
    ):
        traces.load(prefix)
    with pytest.raises(hk.SpecError, match=r"there is no nothing.0.et"):
        traces.load(tmp_path / "nothing")
    with pytest.raises(hk.SpecError, match=r"has no files such as NAME.0.et"):
        traces.load(Path(__file__).parents[1] / "data" / "astra")
    with pytest.raises(hk.SpecError, match="is not a path"):
        traces.load("a\0b")


def test_groups_are_read(tmp_path: Path) -> None:
    ranks = [[collective(0, 0, 8, "1")], [], [collective(0, 0, 8, "1")]]
    prefix = chakra.write(tmp_path / "t", ranks)
    file = tmp_path / "groups.json"
    file.write_text(json.dumps({"1": [2, 0]}))
    assert calls(traces.load(prefix, file)) == [("all-reduce", 1, 8, [1, 0])]
    assert calls(traces.load(prefix, {1: [0, 2]})) == [("all-reduce", 1, 8, [0, 1])]
    for text, words in [
        ("[1", "is not JSON"),
        ("[[]]", "is not a mapping"),
        ("3", "is not a mapping"),
        ('{"x": [0]}', "'x' is not a group"),
        ('{"1": [0], "1": [1]}', "group 1 is there twice"),
        ('{"1": [-1]}', r"group 1: \[-1\] "),
        ('{"1": {"a": 1}}', "is not a list of ranks"),
        ('{"1": [true]}', "is not a list of ranks"),
    ]:
        file.write_text(text)
        with pytest.raises(hk.SpecError, match=f"groups.json: .*{words}"):
            traces.load(prefix, file)
    with pytest.raises(hk.SpecError, match="cannot be read"):
        traces.load(prefix, tmp_path / "none.json")


def test_groups_of_pytorch_are_read(tmp_path: Path) -> None:
    listed = [
        {"pg_name": "0", "ranks": []},
        {"pg_name": "1", "ranks": [0, 2]},
        {"pg_name": "2", "ranks": []},
    ]
    about = Node(9, chakra.METADATA, inputs=f"['{json.dumps(listed)}']")
    other = Node(10, chakra.METADATA, inputs="['[{x}]']")
    mixed = Node(11, chakra.METADATA, inputs="[{}, 1, {}]")
    ranks = [
        [about, other, mixed, collective(0, 0, 8, "1"), collective(1, 0, 16, "2")],
        [about, collective(1, 0, 16, "2")],
        [collective(0, 0, 8, "1"), collective(1, 0, 16, "2")],
    ]
    trace = traces.load(chakra.write(tmp_path / "t", ranks))
    assert [(group, size) for _, group, size, _ in calls(trace)] == [(1, 8), (2, 16)]
    wrong = Node(9, chakra.METADATA, inputs='[{"pg_name": "1", "ranks": [1]}]')
    chakra.write(tmp_path / "t", [*ranks[:2], [*ranks[2], wrong]])
    with pytest.raises(hk.SpecError, match="metadata of rank 2: group 1 is 1, and 0, 2 elsewhere"):
        traces.load(tmp_path / "t")


def test_columns_are_views_that_cannot_be_written() -> None:
    trace = traces.load(REAL / "custom_allreduce")
    assert np.shares_memory(trace.bytes, trace.bytes)
    with pytest.raises(ValueError, match="read-only"):
        trace.bytes[0] = 1
    once = draft([chakra.trace_bytes([])])
    once.link([])
    with pytest.raises(hk.SpecError, match="linked already"):
        once.link([])
    with pytest.raises(hk.SpecError, match="dependencies: there is no 'some'; use all or data"):
        traces.load(REAL / "all_reduce", dependencies="some")  # type: ignore[arg-type]


def test_kinds_are_those_of_the_core_with_the_numbers_of_chakra() -> None:
    """The numbers are those of `et_def.proto`; the core's names of collectives are those of plans."""
    assert traces.KINDS == {
        1: "metadata",
        2: "memory load",
        3: "memory store",
        4: "compute",
        5: "send",
        6: "receive",
        7: "collective",
    }
    assert traces.KINDS == Trace.KINDS
    assert traces.CALLS == Trace.CALLS
    calls = ["all-reduce", "reduce", "all-gather", "gather", "scatter", "broadcast", "all-to-all"]
    numbered = {**dict(enumerate([*calls, "reduce-scatter"])), 9: "barrier"}
    assert numbered == traces.CALLS
    assert CorePlan.GROUP == 2**31
