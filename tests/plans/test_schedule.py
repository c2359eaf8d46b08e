"""Schedules: lanes, dimension fidelity, plans made of them, files that keep them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hocket as hk

KINDS = ("all-reduce", "reduce-scatter", "all-gather")
MULTIRAIL = ("hierarchical", "themis-fifo", "themis", "multirail-optimal")
RATES = ["40 GB/s", "10 GB/s", "5 GB/s"]
DELAYS = ["100 ns", "700 ns", "1 us"]
SIZE = 3_000_000
FAST = "30 ms"


def product(kinds: str, *sizes: int, **more: Any) -> hk.Topology:
    count = len(sizes)
    given = {"bandwidth": RATES[:count], "latency": DELAYS[:count]} | more
    return hk.topology.product(kinds, list(sizes), **given)


def over(offload: bool = False) -> hk.Topology:
    """Two dimensions of equal bandwidth: the fixed order leaves the second idle."""
    return product("Ring_SW", 4, 8, bandwidth=["10 GB/s"] * 2, offload=[False, offload])


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOCKET_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


@pytest.mark.parametrize("algorithm", MULTIRAIL)
@pytest.mark.parametrize("kind", KINDS)
def test_lanes_carry_everything_once(kind: str, algorithm: str) -> None:
    topology = product("Ring_FC_SW", 3, 1, 4, latency=DELAYS)
    made = hk.schedule(
        kind, topology, size=SIZE + 1, algorithm=algorithm, chunks=7, time_limit=FAST
    )
    assert (made.collective.kind, made.topology) == (kind, topology)
    assert len(made) == len(made.lanes) == 7
    assert sum(lane.bytes for lane in made.lanes) == SIZE + 1
    for lane in made.lanes:
        assert lane.bytes > 0
        assert sorted(lane.reduce_scatter) == ([] if kind == "all-gather" else [0, 1])
        assert sorted(lane.all_gather) == ([] if kind == "reduce-scatter" else [0, 1])
    assert repr(made) == f"<Schedule {made.algorithm} {kind} on {topology.name!r}: 7 chunks>"
    assert made.policy == {"themis": "smallest-first"}.get(algorithm, made.policy)
    if algorithm != "multirail-optimal":
        assert made.algorithm == algorithm
    if algorithm in ("hierarchical", "themis-fifo"):
        assert made.policy == "first-come"


def test_hierarchical_takes_the_fixed_order() -> None:
    made = hk.schedule("all-reduce", over(), size=SIZE, algorithm="hierarchical")
    assert {lane[1:] for lane in made.lanes} == {((0, 1), (1, 0))}


@pytest.mark.parametrize(("size", "count"), [(SIZE, 64), (32 * 2 * 2 * 10, 20)])
def test_all_take_as_many_chunks_by_default(size: int, count: int) -> None:
    """A speed-up over the fixed order is one of orders, not of chunks."""
    for algorithm in MULTIRAIL:
        made = hk.schedule("all-reduce", over(), size=size, algorithm=algorithm, time_limit=FAST)
        assert len(made) == count, algorithm
    assert (
        len(hk.schedule("all-reduce", over(), size=size, algorithm="hierarchical", chunks=4)) == 4
    )


def test_all_gather_goes_back_the_way_of_reduce_scatter() -> None:
    made = hk.schedule("all-reduce", over(), size=SIZE, algorithm="themis")
    assert len(made) == 64
    assert {lane.reduce_scatter for lane in made.lanes} == {(0, 1), (1, 0)}
    assert all(lane.all_gather == lane.reduce_scatter[::-1] for lane in made.lanes)


@pytest.mark.parametrize("algorithm", ["themis", "hierarchical"])
@pytest.mark.parametrize("kind", KINDS)
def test_tasks_follow_their_lanes(kind: str, algorithm: str) -> None:
    made = hk.schedule(
        kind, product("Ring_FC_SW", 3, 3, 4), size=SIZE, algorithm=algorithm, chunks=5
    )
    run = made.simulate()
    tasks = run.tasks
    stages = len(made.lanes[0].reduce_scatter + made.lanes[0].all_gather)
    assert {len(column) for column in tasks.values()} == {5 * 2 * stages}
    rows = list(zip(*(tasks[name].tolist() for name in tasks), strict=True))
    assert [row[:3] for row in rows] == [
        (lane, part, stage) for lane in range(5) for part in range(2) for stage in range(stages)
    ]
    arrived: dict[tuple[int, int], int] = {}
    for lane, part, _, dimension, start, end in rows:
        assert arrived.get((lane, part), 0) <= start < end <= run.time_ps
        arrived[lane, part] = end
        assert 0 <= dimension < 3
    for lane in range(5):
        along = tuple(row[3] for row in rows if row[:2] == (lane, 0))
        assert along == made.lanes[lane].reduce_scatter + made.lanes[lane].all_gather
    assert max(row[5] for row in rows) == run.time_ps


def test_a_run_says_what_it_is() -> None:
    made = hk.schedule("all-reduce", over(), size=SIZE, algorithm="themis", chunks=8)
    run = made.simulate()
    assert (run.switching, run.latency_model) == ("cut-through", "overlapped")
    assert run.switching == made.switching
    assert run.schedule is made
    assert run.time == run.time_ps * 1e-12
    assert run.algbw == pytest.approx(SIZE / run.time)
    assert run.busbw == pytest.approx(run.algbw * 2 * 31 / 32)
    assert run.gap == pytest.approx(run.time / run.bound - 1)
    assert run.gap >= 0
    assert "us" in repr(run)
    flat = product("Ring_FC", 4, 3)
    ring = hk.schedule("all-reduce", flat, size=SIZE, algorithm="themis")
    assert ring.simulate().switching == "store-and-forward"


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
def test_shares_of_sizes_that_do_not_divide_are_equal(kind: str) -> None:
    """Of 5 B one of three NPUs has 1 B in a plan, and 5/3 B in a schedule: it lacks 10/3 B over 2 GB/s."""
    full = hk.topology.fully_connected(3, bandwidth="1 GB/s", latency="0 ns")
    run = hk.schedule(kind, full, size="5 B", algorithm="hierarchical", chunks=1).simulate()
    assert run.lower_bound.time_ps == 1666
    assert run.gap >= 0
    assert (
        hk.simulate(hk.plan(kind, full, size="5 B", algorithm="direct")).lower_bound.time_ps == 2000
    )


@pytest.mark.parametrize("kind", KINDS)
def test_utilization_is_that_of_the_formula(kind: str) -> None:
    """2 S (1 - 1/n) / (sum of bandwidth x time), and half of it for the other two."""
    topology = product("Ring_FC_SW", 4, 3, 2)
    run = hk.schedule(kind, topology, size=SIZE, algorithm="themis", chunks=6).simulate()
    must = (2 if kind == "all-reduce" else 1) * SIZE * (1 - 1 / 24)
    bandwidth = 2 * 40e9 + 2 * 10e9 + 5e9
    assert [use.bandwidth for use in run.dimensions] == [80e9, 20e9, 5e9]
    assert run.utilization == run.weighted_utilization
    assert run.utilization == pytest.approx(must / (bandwidth * run.time), rel=1e-4)
    assert run.ideal == pytest.approx(must / bandwidth)
    for use in run.dimensions:
        assert use.utilization == pytest.approx(use.bytes / (use.bandwidth * 24 * run.time))


def test_one_dimension_at_full_rate() -> None:
    """Direct among 5: S / 5 over each of 4 links, twice, each in two parts."""
    topology = hk.topology.fully_connected(5, bandwidth="1 GB/s", latency="1 us")
    made = hk.schedule("all-reduce", topology, size=50_000, algorithm="hierarchical", chunks=1)
    assert made.simulate(latency_model="occupying").time_ps == 24_000_000
    # One part is sent while the other's latency passes: the last one's alone counts.
    assert made.simulate().time_ps == 21_000_000


@pytest.mark.parametrize("algorithm", MULTIRAIL)
def test_occupying_and_whole_messages_take_longer(algorithm: str) -> None:
    made = hk.schedule(
        "all-reduce", over(), size=SIZE, algorithm=algorithm, chunks=8, time_limit=FAST
    )
    plain = made.simulate()
    occupying = made.simulate(latency_model="occupying")
    whole = made.simulate(switching="store-and-forward")
    assert (occupying.latency_model, whole.switching) == ("occupying", "store-and-forward")
    assert occupying.time_ps > plain.time_ps
    # Where the ring alone limits, what a switch does takes no longer.
    assert (whole.time_ps == plain.time_ps) == (algorithm == "hierarchical")
    assert whole.time_ps >= plain.time_ps
    assert made.simulate().time_ps == plain.time_ps


def test_activity() -> None:
    made = hk.schedule("all-reduce", over(), size=SIZE, algorithm="themis", chunks=8)
    run = made.simulate()
    for bins in (1, 7, 100):
        activity = run.activity(bins)
        assert activity.shape == (2, bins)
        assert activity.dtype == np.float32
        assert (activity >= 0).all()
        assert (activity <= 1).all()
    assert run.activity(period="10 us").shape == (2, -(-run.time_ps // 10_000_000))
    whole, tasks = run.activity(1)[:, 0], run.tasks
    for dimension in range(2):
        of = tasks["dimension"] == dimension
        spans = sorted(zip(tasks["start_ps"][of].tolist(), tasks["end_ps"][of].tolist()))  # noqa: B905
        covered, upto = 0, 0
        for start, end in spans:
            covered += max(end - max(start, upto), 0)
            upto = max(upto, end)
        assert whole[dimension] == pytest.approx(covered / run.time_ps, rel=1e-5)
    for bad in ({"bins": 0}, {"bins": 1 << 40}, {"bins": 2.5}, {"period": "1 ps"}):
        with pytest.raises(hk.SpecError, match=r"bins|period"):
            run.activity(**bad)


# Plans


def test_a_plan_of_a_schedule_or_of_its_name() -> None:
    topology = over()
    made = hk.schedule("all-reduce", topology, size=SIZE, algorithm="themis", chunks=8)
    made.save("mine")
    times = set()
    for algorithm in ("themis", made, "schedule:mine"):
        chunks = 8 if algorithm == "themis" else None
        plan = hk.plan("all-reduce", topology, size=SIZE, algorithm=algorithm, chunks=chunks)
        assert plan.algorithm == "themis"
        assert plan.schedule is not None
        assert plan.schedule.lanes == made.lanes
        times.add(hk.simulate(plan).time_ps)
    assert len(times) == 1


def test_hierarchical_has_a_schedule_and_ring_has_none() -> None:
    topology = over()
    plan = hk.plan("all-reduce", topology, size=SIZE, algorithm="hierarchical", chunks=8)
    assert plan.link_order == "ready"
    assert plan.schedule is not None
    assert len(plan.schedule) == 8
    assert isinstance(plan.schedule.simulate(), hk.DimensionRun)
    with pytest.raises(
        hk.SpecError,
        match=r"^fidelity: the plan of hierarchical keeps to no schedule: .* use link, or",
    ):
        hk.simulate(plan, fidelity="dimension")
    kept = hk.plan("all-reduce", topology, size=SIZE, algorithm=plan.schedule)
    on_rails = hk.simulate(kept, fidelity="dimension")
    assert on_rails.time_ps == plan.schedule.simulate().time_ps
    assert on_rails.time_ps == pytest.approx(hk.simulate(kept).time_ps, rel=1e-3)
    ring = hk.plan("all-reduce", topology, size=SIZE, algorithm="ring")
    assert ring.schedule is None
    with pytest.raises(hk.SpecError, match=r"fidelity: ring schedules no dimensions; hierarchical"):
        hk.simulate(ring, fidelity="dimension")
    with pytest.raises(hk.SpecError, match=r"^fidelity: .*'cell'"):
        hk.simulate(plan, fidelity="cell")
    for option in ({"order": "plan"}, {"keep_services": True}):
        with pytest.raises(hk.SpecError, match=f"^{next(iter(option))}: dimension fidelity"):
            hk.simulate(plan, fidelity="dimension", **option)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "sizes"), [("Ring_SW", (4, 4)), ("FC_SW", (3, 4)), ("Ring_FC_SW", (3, 2, 2))]
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_search_is_never_worse(kinds: str, sizes: tuple[int, ...], kind: str) -> None:
    topology = product(kinds, *sizes, bandwidth=["10 GB/s"] * len(sizes))
    times = {}
    for algorithm in MULTIRAIL:
        limit = None if kind == "all-gather" else "50 ms"
        made = hk.schedule(
            kind, topology, size=SIZE, algorithm=algorithm, chunks=12, time_limit=limit
        )
        times[algorithm] = made.simulate().time_ps
    assert times["multirail-optimal"] == min(times.values())


@pytest.mark.slow
def test_the_search_ends_the_same_each_time() -> None:
    topology = over()
    first, second = (
        hk.schedule("reduce-scatter", topology, size=SIZE, chunks=16) for _ in range(2)
    )
    assert first.lanes == second.lanes
    assert first.simulate().time_ps == second.simulate().time_ps
    assert first.policy == "smallest-first"


@pytest.mark.parametrize("algorithm", [*MULTIRAIL, "ring"])
def test_a_time_limit_is_in_seconds_or_has_a_unit(algorithm: str) -> None:
    def plan(limit: Any) -> hk.Plan:
        return hk.plan(
            "all-reduce", over(), size=SIZE, algorithm=algorithm, chunks=4, time_limit=limit
        )

    assert len(plan("50 ms")) > 0
    assert len(plan(0.05)) > 0
    for wrong in ("5", 0, -1.0, "soon", ""):
        with pytest.raises(hk.SpecError, match="time_limit"):
            plan(wrong)


def test_switches_that_sum() -> None:
    """Offload has a schedule, which is faster; no plan of transfers does it."""
    sums = hk.schedule("all-reduce", over(offload=True), size=SIZE, algorithm="themis", chunks=16)
    passes = hk.schedule("all-reduce", over(), size=SIZE, algorithm="themis", chunks=16)
    assert sums.simulate().time_ps < passes.simulate().time_ps
    assert sums.simulate().ideal is None
    bound = sums.simulate().lower_bound
    assert dict(bound.components).keys() == {"latency", "ingress", "egress"}
    assert 0 < bound.time_ps <= sums.simulate().time_ps
    for algorithm in ("themis", "themis-fifo", "multirail-optimal", sums):
        with pytest.raises(hk.InfeasibleError, match="switches of dimension 2 sum") as caught:
            hk.plan(
                "all-reduce", over(offload=True), size=SIZE, algorithm=algorithm, time_limit=FAST
            )
        assert "\n" not in str(caught.value)
    plan = hk.plan("all-reduce", over(offload=True), size=SIZE, algorithm="hierarchical")
    with pytest.raises(hk.SpecError, match="offload"):
        hk.simulate(plan, fidelity="dimension")
    assert hk.simulate(plan).time_ps > 0


def test_npus_that_differ_have_no_rails() -> None:
    topology = over().without(links=[("npu0", "npu1")])
    for algorithm in MULTIRAIL[1:]:
        with pytest.raises(hk.InfeasibleError, match="are missing"):
            hk.plan("all-reduce", topology, size=SIZE, algorithm=algorithm)
    plan = hk.plan("all-reduce", topology, size=SIZE, algorithm="hierarchical").verify()
    assert hk.simulate(plan).gap > 0
    with pytest.raises(hk.SpecError, match=r"links of topology .* have failed"):
        hk.simulate(plan, fidelity="dimension")
    with pytest.raises(hk.SpecError, match="have failed"):
        hk.advise_dimensions(topology)
    limited = hk.topology.switch(4, bandwidth="1 GB/s", latency="1 us", limit="1 GB/s")
    made = hk.schedule("all-reduce", limited, size=SIZE, algorithm="themis")
    with pytest.raises(hk.SpecError, match="limit of its own"):
        made.simulate()
    healthy = [
        hk.topology.mesh(2, 3, 1, bandwidth="1 GB/s", latency="1 us"),
        hk.topology.torus(2, 3, 4, bandwidth="1 GB/s", latency="1 us"),
        hk.topology.hypercube(3, bandwidth="1 GB/s", latency="1 us"),
        product("Ring_FC_SW", 2, 5, 3),
        product("Line_FC_SW", 4, 2, 1),
    ]
    for topology in healthy:
        made = hk.schedule("all-reduce", topology, size=SIZE, algorithm="themis", chunks=2)
        assert made.simulate().gap > 0


def test_what_makes_no_sense() -> None:
    topology = over()
    for changes, words in [
        ({"algorithm": "frob"}, "frob"),
        ({"algorithm": "ring"}, "schedules no dimensions"),
        ({"kind": "broadcast"}, "not broadcast"),
        ({"kind": "all-frob"}, "all-frob"),
        ({"size": 100}, "100 B cannot be cut"),
        ({"size": "3"}, "size"),
        ({"chunks": 0}, "chunks: 0"),
        ({"topology": hk.topology.load("dgx1_v100")}, "no dimensions"),
        ({"topology": "themis-2e"}, "topology"),
    ]:
        arguments = {"kind": "all-reduce", "topology": topology, "size": SIZE, "chunks": 64}
        with pytest.raises(hk.Error, match=words) as caught:
            hk.schedule(**{**arguments, **changes})
        assert "\n" not in str(caught.value)


# Files


def made() -> hk.Schedule:
    return hk.schedule("all-reduce", over(), size=SIZE, chunks=8, time_limit=FAST)


def collective(size: int = SIZE, kind: str = "all-reduce") -> hk.Collective:
    return hk.collective_on(kind, over(), size)


def test_by_name_and_by_file(data: Path) -> None:
    ours = made()
    ours.save("mine_1.2-x")
    ours.save("here.json")
    assert [path.name for path in data.rglob("*.json")] == ["mine_1.2-x.json"]
    for name in ("mine_1.2-x", "here.json", Path("here.json")):
        loaded = hk.Schedule.load(name, over(), collective())
        assert loaded.lanes == ours.lanes
        assert (loaded.algorithm, loaded.policy) == (ours.algorithm, ours.policy)
        assert loaded.switching == ours.switching
        assert loaded.simulate().time_ps == ours.simulate().time_ps
    assert set(json.loads(Path("here.json").read_text())) == {
        "format",
        "algorithm",
        "collective",
        "dimensions",
        "policy",
        "switching",
        "lanes",
    }


def test_another_size_keeps_the_shares() -> None:
    ours = made()
    ours.save("mine")
    for size in (SIZE * 1000 + 7, SIZE // 2):
        other = hk.Schedule.load("mine", over(), collective(size))
        assert sum(lane.bytes for lane in other.lanes) == size
        for mine, theirs in zip(ours.lanes, other.lanes, strict=True):
            assert theirs[1:] == mine[1:]
            assert theirs.bytes == pytest.approx(mine.bytes * size / SIZE, abs=1)
    plan = hk.plan("all-reduce", over(), size=SIZE * 2, algorithm=ours)
    assert plan.collective.size == SIZE * 2
    plan.verify()
    with pytest.raises(hk.SpecError, match="0 bytes"):
        hk.Schedule.load("mine", over(), collective(3))


def test_other_bandwidths_are_another_run_of_the_same_lanes() -> None:
    ours = made()
    faster = product("Ring_SW", 4, 8, bandwidth=["20 GB/s"] * 2)
    again = hk.schedule("all-reduce", faster, size=SIZE, algorithm=ours)
    assert again.lanes == ours.lanes
    assert again.simulate().time_ps < ours.simulate().time_ps


def test_what_it_is_not_for() -> None:
    ours = made()
    ours.save("mine")
    for algorithm in ("schedule:mine", ours):
        for kind, topology, words in [
            ("all-gather", over(), "it schedules all-reduce, not all-gather"),
            ("all-reduce", product("Ring_SW", 8, 4), "Ring 4 x Switch 8.*Ring 8 x Switch 4"),
            ("all-reduce", product("Ring_FC", 4, 8), "Ring 4 x FullyConnected 8"),
            ("all-reduce", product("Ring_SW_FC", 4, 8, 2), "it is for Ring 4 x Switch 8"),
            ("all-reduce", hk.topology.load("dgx1_v100"), "dimensions"),
        ]:
            with pytest.raises(hk.Error, match=words) as caught:
                hk.plan(kind, topology, size=SIZE, algorithm=algorithm)
            assert "\n" not in str(caught.value)
        with pytest.raises(hk.SpecError, match="chunks"):
            hk.plan("all-reduce", over(), size=SIZE, algorithm=algorithm, chunks=3)


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".x", "x" * 101, "a b", "a\0b", "a\n", "é"])
def test_names_that_are_none(name: str, data: Path) -> None:
    for call in (lambda: made().save(name), lambda: hk.Schedule.load(name, over(), collective())):
        with pytest.raises(hk.SpecError, match=r"nor a \.json file"):
            call()
    assert not data.exists()


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for name in ("nothing", "nothing.json", "no/where.json", f"{'x' * 300}.json", "a\0.json"):
        with pytest.raises(hk.SpecError, match="schedule"):
            hk.Schedule.load(name, over(), collective())
    with pytest.raises(hk.SpecError, match="no folder"):
        made().save("no/where.json")
    with pytest.raises(hk.SpecError):
        made().save(f"{'x' * 300}.json")
    with pytest.raises(hk.SpecError):
        made().save("a\0.json")
    (tmp_path / "dir.json").mkdir()
    with pytest.raises(hk.SpecError, match="folder"):
        made().save("dir.json")
    with pytest.raises(hk.SpecError):
        hk.Schedule.load("dir.json", over(), collective())
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(hk.SpecError):
        made().save("mine")


def lanes(*rows: tuple[Any, Any, Any]) -> dict[str, Any]:
    names = ("bytes", "reduce_scatter", "all_gather")
    return {"lanes": [dict(zip(names, row, strict=True)) for row in rows]}


BROKEN: dict[str, dict[str, Any]] = {
    "no lane": {"lanes": []},
    "no bytes": lanes((0, [1, 2], [2, 1])),
    "bytes below 0": lanes((-5, [1, 2], [2, 1])),
    "more bytes than can be": lanes((1 << 63, [1, 2], [2, 1])),
    "a sum of bytes that no integer holds": lanes(*[((1 << 63) - 1, [1, 2], [2, 1])] * 9),
    "bytes of a fraction": lanes((1.5, [1, 2], [2, 1])),
    "bytes as text": lanes(("5", [1, 2], [2, 1])),
    "an order too short": lanes((5, [1], [2, 1])),
    "an order too long": lanes((5, [1, 2, 3], [3, 2, 1])),
    "a dimension twice": lanes((5, [1, 1], [2, 1])),
    "dimension 0": lanes((5, [0, 1], [2, 1])),
    "a dimension beyond all": lanes((5, [1, 2**40], [2, 1])),
    "no way back": lanes((5, [1, 2], [])),
    "lanes of unequal length": lanes((5, [1, 2], [2, 1]), (5, [1, 2], [])),
    "a future format": {"format": 2},
    "an unknown key": {"colour": "red"},
    "an unknown policy": {"policy": "largest-first"},
    "an unknown switching": {"switching": "wormhole"},
    "another collective": {"collective": "broadcast"},
    "other dimensions": {"dimensions": []},
    "a size that is huge": {"dimensions": [{"kind": "Ring", "size": 1 << 80}]},
    "an algorithm that is a number": {"algorithm": 3},
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(name: str) -> None:
    made().save("good.json")
    text = json.dumps(json.loads(Path("good.json").read_text()) | BROKEN[name])
    Path("bad.json").write_text(text)
    if "sum of bytes" in name:
        hk.Schedule.load("bad.json", over(), collective())  # shares, all alike
        return
    with pytest.raises(hk.SpecError, match=r"schedule 'bad.json': \S") as caught:
        hk.Schedule.load("bad.json", over(), collective())
    assert "\n" not in str(caught.value)


FUZZ = settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def check_loads_or_is_refused(name: str) -> None:
    try:
        loaded = hk.Schedule.load(name, over(), collective())
    except hk.SpecError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert name in str(error)  # noqa: PT017
    else:
        assert sum(lane.bytes for lane in loaded.lanes) == SIZE
        assert loaded.simulate().time_ps > 0


@FUZZ
@given(text=st.text() | st.binary() | JSON.map(json.dumps))
def test_any_text_is_refused(text: str | bytes) -> None:
    raw = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    Path("odd.json").write_bytes(raw)
    check_loads_or_is_refused("odd.json")


@FUZZ
@given(data=st.data())
def test_changed_files_are_refused(data: st.DataObject) -> None:
    if not Path("good.json").exists():
        hk.schedule("all-reduce", over(), size=SIZE, algorithm="themis", chunks=4).save("good.json")

    def changed(value: Any) -> Any:
        if isinstance(value, dict) and value and data.draw(st.integers(0, 3)):
            key = data.draw(st.sampled_from(sorted(value)))
            return value | {key: changed(value[key])}
        if isinstance(value, list) and value and data.draw(st.integers(0, 3)):
            place = data.draw(st.integers(0, len(value) - 1))
            return [*value[:place], changed(value[place]), *value[place + 1 :]]
        return data.draw(st.integers(-2, 9) | JSON)

    text = json.dumps(changed(json.loads(Path("good.json").read_text())))
    Path("odd.json").write_text(text)
    check_loads_or_is_refused("odd.json")


def test_a_file_too_deep_or_too_large() -> None:
    Path("deep.json").write_text("[" * 1_000_000)
    check_loads_or_is_refused("deep.json")
    with Path("huge.json").open("wb") as file:
        file.truncate((1 << 28) + 1)
    with pytest.raises(hk.SpecError, match=r"huge\.json: is larger than 256 MiB; give a schedule"):
        hk.Schedule.load("huge.json", over(), collective())


def test_too_many_lanes_are_refused(tmp_path: Path) -> None:
    small = hk.topology.ring(4, bandwidth="10 GB/s", latency="1 us")
    product = hk.topology.product("Ring", [2000], bandwidth=["10 GB/s"], latency=["1 us"])
    hk.schedule("all-reduce", product, size="1 GB", algorithm="themis", chunks=2).save(
        tmp_path / "s.json"
    )
    kept = json.loads((tmp_path / "s.json").read_text())
    kept["lanes"] = [{"bytes": 10, "reduce_scatter": [1], "all_gather": [1]}] * 10_000
    (tmp_path / "s.json").write_text(json.dumps(kept))
    name = f"schedule:{tmp_path / 's.json'}"
    with pytest.raises(hk.SpecError, match="too many"):
        hk.schedule("all-reduce", product, size="1 GB", algorithm=name)
    with pytest.raises(hk.SpecError, match="there is none"):
        hk.compare("all-reduce", small, size="1 MB", algorithms=["ring", "schedule:nowhere"])


def test_a_plan_must_carry_its_schedule_out() -> None:
    product = hk.topology.product("Ring", [4], bandwidth=["10 GB/s"], latency=["1 us"])
    few, many = (
        hk.plan("all-reduce", product, size="1 MB", algorithm="themis", chunks=n) for n in (2, 3)
    )
    strange = hk.Plan(few.core, many.schedule)
    with pytest.raises(hk.SpecError, match="does not carry its schedule out"):
        hk.simulate(strange, fidelity="dimension")


def test_without_all_links_a_plan_has_no_schedule() -> None:
    whole = hk.topology.mesh(3, 3, bandwidth="1 GB/s", latency="1 us")
    less = whole.without(links=[("npu0", "npu1")])
    assert hk.plan("all-reduce", whole, size="1 MB", algorithm="hierarchical").schedule is not None
    assert hk.plan("all-reduce", less, size="1 MB", algorithm="hierarchical").schedule is None
