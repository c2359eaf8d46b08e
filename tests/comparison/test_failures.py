"""What single failures cost, and which of them are alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket.cli import run
from hocket.topology.symmetry import Symmetry

LINK = {"bandwidth": 25e9, "latency": 1e-6}


def test_each_failure_is_that_of_the_network_without_it() -> None:
    topology = hk.topology.box(3, 2, 1, node_bandwidth=100e9, **LINK)
    found = hk.advise_failures("all-reduce", topology, size="1M", algorithms=["greedy"], chunks=4)
    whole = hk.compare("all-reduce", topology, size="1M", algorithms=["greedy"], chunks=4)
    assert (found.algorithm, found.chunks, found.time_ps) == ("greedy", 4, whole.best.run.time_ps)
    assert [len(each.names) for each in found.failures if each.part == "npu"] == [6]
    for each in found.failures:
        name = each.names[0]
        nodes, links = ([], [name]) if each.part == "link" else ([name], [])
        left = topology.without(nodes, links)
        if each.time_ps is None:
            assert not left.inspect().connected
            assert each.why is not None
            assert "no path" in each.why
            continue
        again = hk.compare("all-reduce", left, size="1M", algorithms=["greedy"], chunks=4)
        assert each.time_ps == again.best.run.time_ps
        assert each.slowdown == pytest.approx(each.time_ps / found.time_ps - 1)
    count = topology.device_count + topology.link_count // 2
    assert sum(len(each.names) for each in found.failures) == count
    times = [each.time_ps for each in found.failures]
    assert times == sorted(times, key=lambda time: (time is not None, -(time or 0)))


def test_a_failure_costs_what_the_best_plan_after_it_takes() -> None:
    found = hk.advise_failures("all-reduce", "ring:8@25GB/s,1us", size="64M", parts=["link"])
    left = hk.topology.load("ring:8@25GB/s,1us").without(links=["npu0,npu1"])
    after = hk.compare("all-reduce", left, size="64M", algorithms=["greedy", "trees"])
    (failure,) = found.failures
    assert failure.time_ps is not None
    assert failure.time_ps <= after.best.run.time_ps


def test_kinds_of_failures_of_symmetric_networks() -> None:
    def kinds(text: str, part: str) -> list[int]:
        found = hk.advise_failures(
            "all-gather", text + "@25GB/s,1us", size=4e3, algorithms=["direct"], parts=[part]
        )
        return sorted(len(each.names) for each in found.failures)

    assert kinds("torus:4x4", "link") == [32]
    assert kinds("torus:3x5", "link") == [15, 15]  # rings of 3 and of 5
    assert kinds("mesh:3x3", "npu") == [1, 4, 4]
    assert kinds("mesh:3x3", "link") == [4, 8]
    assert kinds("clos:2x3x2", "switch") == [2, 3]
    assert kinds("rail:3x2", "link") == [6, 6]
    assert kinds("hypercube:3", "npu") == [8]


@st.composite
def small(draw: st.DrawFn) -> hk.Topology:
    count = draw(st.integers(2, 6))
    graph = nx.Graph()
    for i in range(count):
        graph.add_node(i, kind=draw(st.sampled_from(["npu", "npu", "switch"])))
    graph.nodes[0]["kind"] = "npu"
    pairs = [(a, b) for a in range(count) for b in range(a)]
    for a, b in draw(st.lists(st.sampled_from(pairs), unique=True)):
        graph.add_edge(a, b, bandwidth=draw(st.sampled_from([1, 2])))
    return hk.topology.from_networkx(graph, default_latency=1e-9)


@given(topology=small())
@settings(max_examples=60, deadline=None)
def test_alike_is_what_some_symmetry_maps(topology: hk.Topology) -> None:
    count, npus = topology.device_count, topology.npu_count
    columns = (topology.link_src, topology.link_dst, topology.link_bandwidth)
    links = set(zip(*(column.tolist() for column in columns), strict=True))
    symmetries = [
        new
        for new in permutations(range(count))
        if all((old < npus) == (to < npus) for old, to in enumerate(new))
        and {(new[a], new[b], rate) for a, b, rate in links} == links
    ]
    symmetry = Symmetry(topology)
    keys = [symmetry.key([device]) for device in range(count)]
    for a in range(count):
        for b in range(count):
            assert (keys[a] == keys[b]) == any(new[a] == b for new in symmetries)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: hk.advise_failures("all-reduce", "dgx1", size=1), "topology: there is no 'dgx1'"),
        (lambda: advise(size="1"), "size: '1' "),
        (
            lambda: advise(parts=["rack"]),
            "parts: there is no 'rack'; use link, switch or npu",
        ),
        (lambda: advise(parts="link"), "parts: 'link' is not a list"),
        (lambda: advise(parts=[]), "parts: there is none"),
        (lambda: advise(algorithms=["hierarchical"]), "states no"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], object], says: str) -> None:
    with pytest.raises(hk.Error) as error:
        call()
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def advise(**keys: object) -> object:
    given = {"size": "1 MB", "algorithms": ["ring"]} | keys
    return hk.advise_failures("all-reduce", "dgx1_v100", **given)  # type: ignore[arg-type]


def test_the_last_npu() -> None:
    found = hk.advise_failures("broadcast", "line:2@1GB/s,1us", size=100, parts=["npu", "link"])
    assert [each.time_ps for each in found.failures] == [None] * len(found.failures)
    assert "2 failures of" not in repr(found)
    assert repr(found).startswith("<FailureAdvice: 3 failures of ")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "topology",
        "advise",
        "--failures",
        "all-reduce",
        "-t",
        "box:3x2x1@25GB/s,1us",
        "-s",
        "1M",
    ]
    command += ["-a", "greedy", "-c", "4"]
    assert run(command) == 0
    printed = capsys.readouterr().out
    assert "cannot run" in printed
    assert "without failures: " in printed
    assert "npu npu0: " not in printed
    assert run([*command, "--json", "--part", "npu"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert [each["part"] for each in value["failures"]] == ["npu"]
    assert run([*command, "--part", "rack"]) == 2
    assert "--part: there is no 'rack'" in capsys.readouterr().err
