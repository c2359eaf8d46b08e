"""Algorithms and schedules of one's own, wherever an algorithm's name may stand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.plans import registry

LINK = {"bandwidth": "25 GB/s", "latency": "700 ns"}
RING = hk.topology.ring(4, **LINK)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_OWN", {})
    registry._installed.cache_clear()
    yield
    registry._installed.cache_clear()


def star(
    topology: hk.Topology, collective: hk.Collective, options: hk.PlanOptions
) -> hk.PlanBuilder:
    """Everything to one NPU and back.

    Slow.
    """
    builder = hk.PlanBuilder(topology, collective, chunks=options.chunks or 1)
    first, *others = collective.npus
    for chunk in range(builder.chunks):
        for npu in others:
            builder.reduce(chunk, npu, first)
        for npu in others:
            builder.copy(chunk, first, npu)
    return builder


def test_everything_knows_it() -> None:
    hk.algorithm("star", kinds="allreduce")(star)
    known = hk.algorithms()[-1]
    assert (known.name, known.summary) == ("star", "Everything to one NPU and back")
    assert known.kinds == ("all-reduce",)
    plan = hk.plan("all-reduce", RING, size="1 MB", algorithm="star", chunks=3)
    assert (plan.algorithm, plan.chunks, plan.is_verified) == ("star", 3, True)
    comparison = hk.compare("all-reduce", RING, size="1 MB")
    assert "star" in [entry.algorithm for entry in comparison]
    assert hk.compare("all-reduce", RING, size="1 MB", algorithms=["star"]).best.chunks == 1
    gather = hk.compare("all-gather", RING, size="1 MB")
    assert gather.refused["star"] == "it does all-reduce, not all-gather"
    run = hk.train("resnet50", RING, algorithm="star")
    assert run.total_ps > hk.train("resnet50", RING, algorithm="ring").total_ps
    table = hk.training.compare_training("resnet50", [RING], ["star", "ring"])
    assert {row.algorithm for row in table.rows} >= {"star", "ring"}


def test_auto_takes_it_where_it_is_best() -> None:
    def best(
        topology: hk.Topology, collective: hk.Collective, options: hk.PlanOptions
    ) -> hk.PlanBuilder:
        builder = hk.PlanBuilder(topology, collective)
        builder.copy(0, 0, 1)
        return builder

    hk.algorithm("straight", kinds="custom")(best)
    one = hk.Collective.custom([0, 1], [(1_000_000, False, [0], [1])])
    assert hk.plan(one, RING, algorithm="auto", time_limit=1).algorithm in ("flows", "straight")
    hk.algorithm("broken", kinds="all-reduce")(lambda *_: None)
    made = hk.plan("all-reduce", RING, size="1 MB", algorithm="auto", time_limit=1)
    assert made.algorithm != "broken"


def test_plans_and_schedules_are_taken_too() -> None:
    torus = hk.topology.torus(3, 3, **LINK)

    def both(topology: hk.Topology, collective: hk.Collective, options: Any) -> hk.Schedule:
        half = collective.size // 2
        rows = [(half, (0, 1), (1, 0)), (collective.size - half, (1, 0), (0, 1))]
        return hk.Schedule.from_chunks(rows, topology, collective)

    hk.algorithm("both")(both)
    plan = hk.plan("all-reduce", torus, size=999_999, algorithm="both")
    assert plan.schedule is not None
    assert plan.schedule.algorithm == "schedule"
    assert hk.simulate(plan, fidelity="dimension").time_ps > 0

    def wrapped(topology: hk.Topology, collective: hk.Collective, options: Any) -> hk.Plan:
        return hk.plan(collective, topology, algorithm="ring", options=options)

    hk.algorithm("wrapped")(wrapped)
    assert len(hk.plan("all-reduce", RING, size="1 MB", algorithm="wrapped")) > 0


def raises(*_: object) -> None:
    raise KeyError("gone")


def ends(*_: object) -> None:
    raise SystemExit(0)


def stops(*_: object) -> None:
    raise BaseException("base")


def mute(*_: object) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    raise MuteError


def other_collective(topology: hk.Topology, *_: object) -> hk.Plan:
    return hk.plan("broadcast", topology, size="3 MB", algorithm="chain")


def other_network(topology: hk.Topology, collective: hk.Collective, *_: object) -> hk.Plan:
    return hk.plan(collective, hk.topology.ring(4, bandwidth="1 GB/s", latency=0), algorithm="ring")


def unfinished(topology: hk.Topology, collective: hk.Collective, *_: object) -> hk.PlanBuilder:
    return hk.PlanBuilder(topology, collective)


def stray(topology: hk.Topology, collective: hk.Collective, *_: object) -> hk.PlanBuilder:
    builder = hk.PlanBuilder(topology, collective)
    builder.copy(3, 0, 1)
    return builder


def early(topology: hk.Topology, collective: hk.Collective, *_: object) -> hk.PlanBuilder:
    builder = hk.PlanBuilder(topology, collective)
    builder.extend("reduce", 0, [0], [1])
    builder.reduce(0, 1, 2, after=())  # it does not wait for what it passes on
    return builder


EARLY = early.__code__.co_firstlineno + 3
"""The line that sends the transfer that is wrong."""
WRONG: dict[str, tuple[Callable[..., Any], type[hk.Error], str]] = {
    "raises": (raises, hk.SpecError, "raised KeyError: 'gone' (test_own_algorithms.py, line "),
    "ends": (ends, hk.SpecError, "raised SystemExit: 0 (test_own_algorithms.py, line "),
    "stops": (stops, hk.SpecError, "raised BaseException: base"),
    "mute": (mute, hk.SpecError, "raised MuteError: its text cannot be read"),
    "nothing": (lambda *_: None, hk.SpecError, "gave nothing; return a Plan, a PlanBuilder or"),
    "number": (lambda *_: 3, hk.SpecError, "gave 3; return a Plan"),
    "arguments": (lambda: None, hk.SpecError, "raised TypeError: "),
    "collective": (other_collective, hk.SpecError, "gave a plan for another collective"),
    "network": (other_network, hk.SpecError, "gave a plan for another topology"),
    "stray": (stray, hk.SpecError, "transfer 0: chunk: there is no chunk 3"),
    "early": (early, hk.VerificationError, f" (test_own_algorithms.py, line {EARLY})"),
    "unfinished": (unfinished, hk.VerificationError, "the first: missing, chunk 0, NPU 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused_by_name(case: str) -> None:
    function, kind, text = WRONG[case]
    hk.algorithm(case)(function)
    for call in (hk.plan, hk.compare):
        keywords = {"algorithm": case} if call is hk.plan else {"algorithms": [case]}
        with pytest.raises(hk.Error) as caught:
            call("all-reduce", RING, size="1 MB", **keywords)  # type: ignore[operator]
        assert str(caught.value).startswith(f"algorithm '{case}': ")
        assert text in str(caught.value)
        assert "\n" not in str(caught.value)
        if call is hk.plan:
            assert type(caught.value) is kind
    if kind is hk.VerificationError:
        assert caught.value.violations  # type: ignore[attr-defined]
    assert text in hk.compare("all-reduce", RING, size="1 MB").refused[case]


@pytest.mark.parametrize("name", ["ring", "auto", "exact", "themis", "none", "ideal"])
def test_names_that_clash_are_refused(name: str) -> None:
    with pytest.raises(hk.SpecError, match="is an algorithm of hocket; choose another name"):
        hk.algorithm(name)(star)


def test_a_name_is_taken_once() -> None:
    hk.algorithm("mine")(star)
    hk.algorithm("mine")(star)  # the same again, as a cell of a notebook
    with pytest.raises(hk.SpecError, match=r"'mine' is taken by .*\.star; choose another name"):
        hk.algorithm("mine")(raises)


@pytest.mark.parametrize(
    ("name", "keywords", "text"),
    [
        ("", {}, "name: '' is not a name"),
        ("a b", {}, "name: 'a b' is not a name"),
        (3, {}, "name: 3 is not a name"),
        ("schedule:x", {}, "name: 'schedule:x' is not a name"),
        ("x", {"kinds": "sum"}, "kinds: there is no collective 'sum'"),
        ("x", {"kinds": ()}, "kinds: () is not a list of kinds"),
        ("x", {"kinds": [3]}, "kinds: there is no collective 3"),
    ],
)
def test_bad_registrations_are_refused(name: Any, keywords: Any, text: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.algorithm(name, **keywords)(star)
    assert str(caught.value).startswith(text)


FILE = '''
import hocket as hk

LEADER = 0


@hk.algorithm("from-file", kinds=["broadcast"])
def decorated(topology, collective, options):
    """One after the other."""
    return plain(topology, collective, options)


def plain(topology, collective, options):
    builder = hk.PlanBuilder(topology, collective)
    for npu in collective.npus[1:]:
        builder.copy(0, collective.npus[LEADER], npu)
    return builder


def broken(topology, collective, options):
    return topology.nothing


number = 3
'''


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path / "mine.py"


def test_a_function_of_a_file(file: Path) -> None:
    plan = hk.plan("broadcast", RING, size="1 MB", algorithm="mine.py:plain")
    assert (plan.algorithm, len(plan)) == ("mine.py:plain", 3)
    plan = hk.plan("broadcast", RING, size="1 MB", algorithm=f"{file}:decorated")
    assert plan.algorithm == "from-file"
    assert hk.compare("broadcast", RING, size="1 MB", algorithms=["mine.py:plain", "chain"])
    with pytest.raises(hk.SpecError, match=r"raised AttributeError: .* \(mine\.py, line 21\)"):
        hk.plan("broadcast", RING, size="1 MB", algorithm="mine.py:broken")
    file.write_text(FILE.replace("LEADER = 0", "LEADER = 1"))
    os.utime(file, ns=(1, 1))
    with pytest.raises(hk.Error, match=r"algorithm 'mine\.py:plain': "):
        hk.plan("broadcast", RING, size="1 MB", algorithm="mine.py:plain")


def test_files_that_are_none(file: Path) -> None:
    (file.parent / "typo.py").write_text("def plan(:\n")
    (file.parent / "fails.py").write_text("\nimport nothing_of_that_name\n")
    (file.parent / "empty.py").touch()
    (file.parent / "ends.py").write_text("raise SystemExit(0)\n")
    for text, why in (
        ("gone.py:plan", "gone.py: algorithm: there is no such file"),
        ("mine.py:gone", "mine.py: algorithm: has no function 'gone'; write mine.py:"),
        ("mine.py:number", "mine.py: algorithm: has no function 'number'; write mine.py:"),
        ("mine.py:plan", "mine.py: algorithm: has no function 'plan'; did you mean 'plain'?"),
        ("mine.py", "mine.py: algorithm: no function of it is named; write mine.py:"),
        ("empty.py", "empty.py: algorithm: no function of it is named; define one in it"),
        ("typo.py:plan", "typo.py: algorithm: cannot be run: SyntaxError: "),
        ("fails.py:plan", "cannot be run: ModuleNotFoundError: No module named 'nothing_of_that"),
        ("ends.py:plan", "ends.py: algorithm: cannot be run: SystemExit: 0"),
        (".:plan", "there is no algorithm '.:plan'"),
    ):
        with pytest.raises(hk.SpecError) as caught:
            hk.plan("broadcast", RING, size="1 MB", algorithm=text)
        assert why in str(caught.value)
        assert "\n" not in str(caught.value)


def test_the_command_line_takes_a_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hocket.cli import run

    network = ["--topology", "ring:4", "--bandwidth", "25 GB/s", "--latency", "1 us", "-s", "1MB"]
    assert run(["plan", "broadcast", *network, "-a", "mine.py:plain"]) == 0
    assert "mine.py:plain broadcast" in capsys.readouterr().out
    assert run(["compare", "broadcast", *network, "-a", "mine.py:plain", "-a", "chain"]) == 0
    assert "mine.py:plain" in capsys.readouterr().out
    assert run(["plan", "broadcast", *network, "-a", "mine.py:broken"]) == 2
    assert "algorithm 'mine.py:broken': raised AttributeError" in capsys.readouterr().err


def test_packages_bring_algorithms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brought.py").write_text(FILE)
    info = tmp_path / "brought-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[hocket.algorithms]\nplainly = brought:plain\nfrom-file = brought:decorated\n"
        "lost = brought:lost\nring = brought:plain\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    names = [each.name for each in hk.algorithms()]
    assert names[-3:] == ["plainly", "from-file", "lost"] or set(names[-3:]) == {
        "plainly",
        "from-file",
        "lost",
    }
    assert len(hk.plan("broadcast", RING, size="1 MB", algorithm="plainly")) == 3
    with pytest.raises(hk.SpecError, match=r"'lost': cannot be loaded from brought:lost: Attribut"):
        hk.plan("broadcast", RING, size="1 MB", algorithm="lost")
    assert hk.plan("all-reduce", RING, size="1 MB", algorithm="ring").algorithm == "ring"
    sys.modules.pop("brought", None)


def test_schedules_of_ones_own() -> None:
    torus = hk.topology.torus(3, 3, **LINK)
    both = hk.collective_on("all-reduce", torus, "2 MB")
    given = hk.schedule("all-reduce", torus, size="2 MB", algorithm="themis", chunks=4)
    again = hk.Schedule.from_chunks(given.lanes, torus, both, policy=given.policy)
    assert again.lanes == given.lanes
    assert again.simulate().time_ps == given.simulate().time_ps
    assert hk.plan(both, torus, algorithm=again).verify().schedule is not None


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "there is no lane"),
        ([3], "chunk 0: 3 is not a chunk; give its bytes and two lists of dimensions"),
        ([("2 MB", 0, 1)], "chunk 0: ('2 MB', 0, 1) is not a chunk"),
        ([("2 parsec", [0, 1], [1, 0])], "chunk 0: bytes: "),
        ([("1 MB", [0, 1], [1, 0])], "chunks: they have 1000000 B together, and the collective 20"),
        ([("2 MB", [0, 0], [1, 0])], "lane 0: reduce_scatter is [0, 0]"),
        ([("2 MB", ["x"], [1, 0])], "chunks: a dimension is not a number"),
    ],
)
def test_bad_schedules_are_refused(rows: Any, text: str) -> None:
    torus = hk.topology.torus(3, 3, **LINK)
    both = hk.collective_on("all-reduce", torus, "2 MB")
    with pytest.raises(hk.SpecError) as caught:
        hk.Schedule.from_chunks(rows, torus, both)
    assert str(caught.value).startswith(text)
