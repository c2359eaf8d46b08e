"""Traces of Perfetto, read by what its own project publishes for Python.

``HOCKET_TRACE_PROCESSOR`` is the path of its ``trace_processor_shell``, which answers SQL about a trace.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket.files.perfetto import Span, write_spans

PROCESSES = {0: "rank 0", 3: "rank 3"}
TRACKS = {(0, 0): "NPU", (0, 2): "calls", (3, 0): "NPU"}
ABOUT = {"bytes": 1 << 40, "share": 0.5, "last": True, "layer": "fc", "odd": None, "huge": 1 << 70}
SPANS = [
    Span(0, 0, "forward", 0, 5_000, "compute", ABOUT),
    Span(0, 0, "forward", 5_000, 5_999, "compute"),
    Span(0, 2, "sum é", 1_500, 9_000, "all-reduce", {"bytes": 3}),
    Span(0, 2, "inner", 1_500, 9_000, ""),
    Span(3, 0, "forward", 2_000_000_000_000, 1 << 62, "compute"),
]


def decoded(path: Path) -> list[Any]:
    trace = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    read = trace.Trace.FromString(path.read_bytes())
    return list(read.packet)


Row = tuple[str, str, str, str, int, int, dict[str, Any]]


def rows(path: Path) -> list[Row]:
    """Process, track, name, category, start, end [ns] and annotations of each slice, by start."""
    packets = decoded(path)
    names: dict[str, dict[int, Any]] = defaultdict(dict)
    processes, tracks, parents = {}, {}, {}
    events = []
    for packet in packets:
        assert packet.trusted_packet_sequence_id == 1
        data = packet.interned_data
        for field in (
            "event_categories",
            "event_names",
            "debug_annotation_names",
            "debug_annotation_string_values",
        ):
            for entry in getattr(data, field):
                assert entry.iid not in names[field]
                names[field][entry.iid] = getattr(entry, "name", None) or entry.str.decode()
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.HasField("process"):
                processes[track.uuid] = track.process.process_name
            else:
                tracks[track.uuid], parents[track.uuid] = track.name, track.parent_uuid
        else:
            events.append((packet.timestamp, packet.track_event))
    open_: dict[int, list[int]] = defaultdict(list)
    found: list[list[Any]] = []
    for time_ns, event in sorted(events, key=lambda each: each[0]):  # as the trace processor does
        if event.type == event.TYPE_SLICE_END:
            found[open_[event.track_uuid].pop()][5] = time_ns
            continue
        about = {}
        for each in event.debug_annotations:
            kind = each.WhichOneof("value")
            value = getattr(each, kind)
            if kind == "string_value_iid":
                value = names["debug_annotation_string_values"][value]
            about[names["debug_annotation_names"][each.name_iid]] = value
        category = [names["event_categories"][each] for each in event.category_iids]
        open_[event.track_uuid].append(len(found))
        found.append(
            [
                processes[parents[event.track_uuid]],
                tracks[event.track_uuid],
                names["event_names"][event.name_iid],
                "".join(category),
                time_ns,
                None,
                about,
            ]
        )
    assert not any(open_.values())
    return [tuple(each) for each in found]


@pytest.mark.parametrize("ending", [".pftrace", ".perfetto-trace"])
def test_a_trace_has_every_span(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    write_spans(path, PROCESSES, TRACKS, SPANS)
    about = {**ABOUT, "odd": "None", "huge": str(1 << 70)}
    assert rows(path) == [
        ("rank 0", "NPU", "forward", "compute", 0, 5, about),
        ("rank 0", "calls", "sum é", "all-reduce", 1, 9, {"bytes": 3}),
        ("rank 0", "calls", "inner", "", 1, 9, {}),
        ("rank 0", "NPU", "forward", "compute", 5, 5, {}),
        ("rank 3", "NPU", "forward", "compute", 2_000_000_000, (1 << 62) // 1000, {}),
    ]
    assert path.read_bytes().count(b"forward") == 1


def test_the_first_packet_clears_what_was_before(tmp_path: Path) -> None:
    write_spans(tmp_path / "t.pftrace", {}, {}, SPANS)
    packets = decoded(tmp_path / "t.pftrace")
    assert [packet.sequence_flags for packet in packets] == [3] + [2] * (len(packets) - 1)


@given(st.lists(st.integers(0, 4000), min_size=1, max_size=12))
def test_spans_that_follow_each_other_still_do(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int]
) -> None:
    """Whatever rounding does to their times."""
    path = tmp_path_factory.mktemp("spans") / "t.pftrace"
    spans, at = [], 0
    for number, length in enumerate(lengths):
        spans.append(Span(0, 0, str(number), at, at + length))
        at += length
    write_spans(path, {0: "p"}, {(0, 0): "t"}, spans)
    expected = [(each.name, each.start_ps // 1000, each.end_ps // 1000) for each in spans]
    assert [(row[2], row[4], row[5]) for row in rows(path)] == expected


def test_a_trace_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def broken() -> Iterator[Span]:
        yield SPANS[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_spans(tmp_path / "t.pftrace", PROCESSES, TRACKS, broken())
    with pytest.raises(hk.SpecError, match="there is no folder"):
        write_spans(tmp_path / "none" / "t.pftrace", PROCESSES, TRACKS, SPANS)
    assert list(tmp_path.iterdir()) == []


def test_a_run_has_what_crossed_each_link(tmp_path: Path) -> None:
    network = hk.topology.ring(4, bandwidth="1 GB/s", latency="0 ns")
    plan = hk.plan("all-gather", network, size=4000, algorithm="ring")
    run = hk.simulate(plan, keep_services=True)
    run.save_perfetto(tmp_path / "run.pftrace")
    found = rows(tmp_path / "run.pftrace")
    assert len(found) == len(run.core.service_link)
    assert sum(row[6]["bytes"] for row in found) == int(run.link_bytes.sum())
    assert max(row[5] for row in found) == run.time_ps // 1000
    assert {(row[0], row[3]) for row in found} == {(f"npu{i}", "copy") for i in range(4)}
    with pytest.raises(hk.SpecError, match="kept no services"):
        hk.simulate(plan).save_perfetto(tmp_path / "none.pftrace")


def test_what_shares_a_link_has_a_track_of_its_own(tmp_path: Path) -> None:
    network = hk.topology.switch(4, bandwidth="1 GB/s", latency="0 ns")
    plan = hk.plan("all-to-all", network, size=16_000, algorithm="direct")
    run = hk.simulate(plan, fidelity="flow", keep_services=True)
    run.save_perfetto(tmp_path / "run.pftrace")
    found = rows(tmp_path / "run.pftrace")
    assert {row[1] for row in found if row[0] == "npu0"} == {"to sw0", "to sw0 (2)", "to sw0 (3)"}
    by_track: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in found:
        by_track[row[:2]].append((row[4], row[5]))
    for spans in by_track.values():
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


@pytest.mark.slow
def test_a_million_spans_take_eighty_bytes_each(tmp_path: Path) -> None:
    spans = (
        Span(i % 64, 0, f"layer {i % 500}", i * 1000, i * 1000 + 900, "compute", {"bytes": i})
        for i in range(1_000_000)
    )
    write_spans(
        tmp_path / "t.pftrace",
        {rank: f"rank {rank}" for rank in range(64)},
        {(rank, 0): "NPU" for rank in range(64)},
        spans,
    )
    assert (tmp_path / "t.pftrace").stat().st_size < 80_000_000


@pytest.mark.skipif(
    "HOCKET_TRACE_PROCESSOR" not in os.environ,
    reason="HOCKET_TRACE_PROCESSOR does not name Perfetto's trace_processor_shell",
)
def test_perfettos_own_trace_processor_reads_it(tmp_path: Path) -> None:
    api = pytest.importorskip("perfetto.trace_processor")
    write_spans(tmp_path / "t.pftrace", PROCESSES, TRACKS, SPANS)
    config = api.TraceProcessorConfig(bin_path=os.environ["HOCKET_TRACE_PROCESSOR"])
    with api.TraceProcessor(trace=str(tmp_path / "t.pftrace"), config=config) as processor:
        found = processor.query(
            "select process.name as process, process_track.name as track, slice.name as name, ts, dur "
            "from slice join process_track on track_id = process_track.id join process using (upid) "
            "order by slice.id"
        )
        got = [(row.process, row.track, row.name, row.ts, row.dur) for row in found]
        assert got == [(*row[:3], row[4], row[5] - row[4]) for row in rows(tmp_path / "t.pftrace")]
        errors = processor.query("select sum(value) as n from stats where severity = 'error'")
        assert next(iter(errors)).n == 0
