"""Time-lines: rows, trace events and pictures say what the run did, and its sums hold."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

import hocket as hk
from hocket.training import TrainingRun
from hocket.training.parallel import CAUSES
from hocket.training.timeline import COMPUTE, Span, timeline

from .small_models import network, trained, transformer

RUNS = {
    "replicas": lambda: trained(transformer(), network(4, 4), "dp=16", bucket=1 << 17),
    "all of one": lambda: trained(
        transformer(), network(4, 4), "dp=4,tp=2,pp=2", samples=16, iterations=3
    ),
    "experts": lambda: trained(
        transformer(experts=4), network(4, 4), "dp=8,tp=2,ep=4,zero=1", recompute=True
    ),
    "weights in shards": lambda: trained(transformer(), network(4, 4), "dp=16,zero=3"),
    "tables": lambda: trained(transformer(table=True), network(4, 4), "dp=16", iterations=2),
    "plans": lambda: trained(
        transformer(), network(4, 4), "dp=4,pp=4", samples=16, algorithm="ring"
    ),
    "no time to send": lambda: trained(
        transformer(), network(4), "dp=2,pp=2", samples=8, algorithm="none"
    ),
    "one replica": lambda: trained(transformer(), network(2, 1), "tp=2"),
    "chiplets": lambda: hk.train("ncf", network(4), npu=hk.Chiplet()),
}


@pytest.fixture(params=RUNS, name="run", scope="module")
def _run(request: pytest.FixtureRequest) -> TrainingRun:
    made = RUNS[request.param]()
    assert isinstance(made, TrainingRun)
    return made


def test_parts_of_the_time_add_up_to_it(run: TrainingRun) -> None:
    for part in (run.breakdown, *run.stage_breakdowns):
        times = (part.forward, part.backward, part.update, *part.exposed.values(), part.waiting)
        assert min(times) >= 0
        assert sum(times) == pytest.approx(run.total_ps, rel=1e-12)
        assert part.total == pytest.approx(run.total_ps, rel=1e-12)
        assert set(part.exposed) == set(CAUSES)
    stages = run.stage_breakdowns
    assert run.breakdown.forward == pytest.approx(sum(s.forward for s in stages) / len(stages))
    assert run.breakdown.over(4).total == pytest.approx(run.total_ps / 4)
    assert 0 <= run.hidden <= 1


def test_iterations_end_one_after_the_other(run: TrainingRun) -> None:
    ends = run.iteration_ps
    assert len(ends) == run.options.iterations
    assert ends == sorted(ends)
    assert ends[-1] == run.total_ps
    for i, end in enumerate(ends):
        assert end == max(span.end_ps for span in run.timeline() if span.iteration == i)


def test_rows_add_up_to_the_breakdown(run: TrainingRun) -> None:
    """What a reader of the rows counts is what the run says of itself."""
    rows = run.timeline()
    assert rows == timeline(run)
    for stage, part in enumerate(run.stage_breakdowns):
        own = [row for row in rows if row.stage == stage]

        def of(*passes: str, own: list[Span] = own) -> int:
            spans = [row for row in own if row.track == COMPUTE and row.does in passes]
            return sum(row.end_ps - row.start_ps for row in spans)

        assert of("forward", "recompute") == part.forward
        assert of("input gradient", "weight gradient") == part.backward
        assert of("update") == part.update
        for cause in CAUSES:
            assert sum(row.exposed_ps for row in own if row.track == cause) == part.exposed[cause]


def test_compute_waits_in_the_exposed_parts(run: TrainingRun) -> None:
    """Exposed parts are the ends of spans; nothing is computed in them and no two meet."""
    for stage in range(len(run.stages)):
        own = [row for row in run.timeline() if row.stage == stage]
        busy = [(row.start_ps, row.end_ps) for row in own if row.track == COMPUTE]
        waits = [(row.end_ps - row.exposed_ps, row.end_ps) for row in own if row.exposed_ps]
        for row in own:
            assert 0 <= row.exposed_ps <= row.end_ps - row.start_ps
        taken = sorted(each for each in busy + waits if each[0] < each[1])
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(taken))


def test_rows_name_what_they_are() -> None:
    run = trained(transformer(1), network(4, 2), "dp=2,tp=2,pp=2", samples=8)
    rows = run.timeline()
    assert {row.track for row in rows} == {COMPUTE, "data", "tensor", "pipeline"}
    names = {row.name for row in rows if row.stage == 1}
    first, last = run.stages[1][0].name, run.stages[1][-1].name
    assert f"forward {first}" in names
    assert f"weight gradient {last}" in names
    assert "update" in names
    assert {f"receive {first}", f"send {first}"} <= names
    sent = [row for row in rows if row.name.startswith("send")]
    got = [row for row in rows if row.name.startswith("receive")]
    assert len(sent) == len(got) == 2 * run.parallel.parts
    # Stages are cut between two layers of which each NPU has half.
    assert {row.size for row in sent} == {256 * 128 * 2 // 2}
    sums = [row for row in rows if row.track == "data"]
    assert [row.name.split()[0] for row in sums] == ["all-reduce"] * 2
    held = sum(block.parameters for blocks in run.stages for block in blocks)
    assert sum(row.size for row in sums) == 2 * held // 2  # 16 bits, cut over two NPUs


def test_trace_events(run: TrainingRun, tmp_path: Path) -> None:
    run.save_perfetto(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    rows = run.timeline()
    assert len(spans) == len(rows)
    assert sum(e["dur"] for e in spans) * 1e6 == pytest.approx(
        sum(row.end_ps - row.start_ps for row in rows)
    )
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in spans} == named
    processes = [e for e in events if e["name"] == "process_name"]
    assert [e["pid"] for e in processes] == list(range(len(run.stages)))
    # Events of one thread never overlap.
    for thread in named:
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if (e["pid"], e["tid"]) == thread)
        assert all(a[1] <= b[0] + 1e-6 for a, b in itertools.pairwise(own))
    for event in spans:
        if event["cat"] != COMPUTE:
            assert event["args"]["bytes"] > 0
            assert event["args"]["exposed_us"] <= event["dur"] + 1e-9


def test_a_trace_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(transformer(1), network(2), "dp=2")
    target = tmp_path / "trace.json"
    target.write_text("older")
    monkeypatch.setattr(json, "dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run.save_perfetto(target)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
    assert target.read_text() == "older"
    with pytest.raises(hk.SpecError, match="no folder"):
        run.save_perfetto(tmp_path / "nowhere" / "trace.json")
