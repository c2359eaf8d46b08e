"""Recordings of every kind: what is read, and what is refused."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.telemetry.recordings import (
    flight,
    flight_entry,
    inspector_call,
    kernel,
    lines,
    log,
    trace,
)

import hocket as hk
from hocket.telemetry.calls import KERNEL, RUN, Recording, chosen, times_of
from hocket.telemetry.files import read_recording

MIB = 1 << 20


def read(folder: Path, content: str | bytes, name: str = "recording") -> Recording:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_recording(path)


def test_a_log_of_nccl_tests(tmp_path: Path) -> None:
    found = read(tmp_path, log("all_gather", [(MIB, 53e-6), (4 * MIB, 90e-6)], 16, 2))
    assert (found.format, found.timing) == ("nccl-tests", RUN)
    assert [(each.kind, each.size, each.npus, each.nodes) for each in found.calls] == [
        ("all-gather", MIB, 16, 2),
        ("all-gather", 4 * MIB, 16, 2),
    ]
    assert [each.seconds for each in found.calls] == pytest.approx([53e-6, 90e-6])
    assert found.left_out == {"in place": 2}
    other = read_recording(tmp_path / "recording", in_place=True)
    assert [each.seconds for each in other.calls] == pytest.approx([106e-6, 180e-6])


def test_parts_that_are_copied_byte_by_byte_are_left_out(tmp_path: Path) -> None:
    text = "collective,gpus,nodes,bytes,time_us\nalltoall,8,1,1024,30\nalltoall,8,1,64,90\n"
    assert read(tmp_path, text).left_out == {"whose parts are no multiples of 16 bytes": 1}


def test_a_table_leaves_out_algorithms_that_were_told(tmp_path: Path) -> None:
    text = "collective,gpus,nodes,bytes,time_us,algo\nall_reduce,8,1,8,30,auto\nall_reduce,8,1,8,9,ring\n"
    found = read(tmp_path, text)
    assert len(found.calls) == 1
    assert found.left_out == {"whose algorithm was told": 1}


def test_calls_of_inspector(tmp_path: Path) -> None:
    calls = [
        inspector_call("AllReduce", MIB, 60, rank=2, number=7),
        inspector_call("AllGather", MIB, 70),
        inspector_call("ReduceScatter", MIB, 80),
        inspector_call("Broadcast", MIB, 90),
        inspector_call("AllReduce", MIB, 0),
        {**inspector_call("AllReduce", MIB, 1), "coll_perf": None, "p2p_perf": {"p2p": "Send"}},
    ]
    cpu = inspector_call("AllReduce", MIB, 60)
    cpu["coll_perf"]["coll_timing_source"] = "collective_cpu"
    found = read(tmp_path, lines([*calls, cpu]))
    assert (found.format, found.timing) == ("inspector", KERNEL)
    # what one rank hands in of an all-gather is an eighth of its size
    sizes = [(each.kind, each.size) for each in found.calls]
    assert sizes == [
        ("all-reduce", MIB),
        ("all-gather", 8 * MIB),
        ("reduce-scatter", 8 * MIB),
        ("broadcast", MIB),
    ]
    first = found.calls[0]
    assert (first.seconds, first.npus, first.nodes, first.sequence) == (
        pytest.approx(60e-6),
        8,
        1,
        7,
    )
    assert sum(found.left_out.values()) == 3


ENTRIES = [
    flight_entry("all_reduce", MIB, MIB, 0.5),
    flight_entry("_all_gather_base", MIB, 8 * MIB, 0.25, collective_seq_id=2),
    flight_entry("_reduce_scatter_base", 8 * MIB, MIB, 0.75, collective_seq_id=3),
    flight_entry("all_to_all", MIB, MIB, 0.1, collective_seq_id=4),
    flight_entry("all_to_all", MIB, 2 * MIB, 0.1),
    flight_entry("send 0->1", MIB, MIB, 0.1),
    flight_entry("all_reduce", MIB, MIB, None),
    flight_entry("all_reduce", MIB, MIB, 0.5, state="started"),
]


@pytest.mark.parametrize("protocol", [None, 2, 3, 4, 5])
def test_a_dump_of_flight_recorder(tmp_path: Path, protocol: int | None) -> None:
    dump = flight(ENTRIES)
    whole = json.dumps(dump) if protocol is None else pickle.dumps(dump, protocol)
    found = read(tmp_path, whole)
    assert (found.format, found.timing) == ("flight-recorder", KERNEL)
    assert [(each.kind, each.size, each.seconds) for each in found.calls] == [
        ("all-reduce", 4 * MIB, pytest.approx(0.5e-3)),
        ("all-gather", 32 * MIB, pytest.approx(0.25e-3)),
        ("reduce-scatter", 32 * MIB, pytest.approx(0.75e-3)),
        ("all-to-all", 4 * MIB, pytest.approx(0.1e-3)),
    ]
    assert {each.ranks for each in found.calls} == {tuple(range(8))}
    assert sorted(found.left_out.values()) == [1, 1, 1, 1]


def test_a_trace_of_the_profiler(tmp_path: Path) -> None:
    events = [
        kernel("allreduce", MIB, MIB, 61.5),
        kernel("_allgather_base", MIB, 8 * MIB, 70.0, dtype="Float"),
        kernel("all_to_allv", MIB, MIB, 80.0, **{"In split size": "[1, 2]"}),
        kernel("all_to_allv", MIB, MIB, 80.0, **{"In split size": "[2, 2, ...]"}),
        kernel("barrier", 1, 1, 5.0),
        {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce", "ts": 1, "dur": 2, "args": {}},
    ]
    text = json.dumps(trace(events, rank=3))
    found = read(tmp_path, gzip.compress(text.encode()), "trace.json.gz")
    assert found == read(tmp_path, text, "trace.json.gz")
    assert (found.format, found.timing) == ("kineto", KERNEL)
    assert [(each.kind, each.size) for each in found.calls] == [
        ("all-reduce", 2 * MIB),
        ("all-gather", 32 * MIB),
    ]
    assert found.calls[0].seconds == pytest.approx(61.5e-6)
    assert {each.recorder for each in found.calls} == {"rank 3"}
    assert sum(found.left_out.values()) == 4


def test_ranks_that_are_cut_off_go_on(tmp_path: Path) -> None:
    cut = {"Process Group Ranks": "[0, 8, 16, ...]", "Group size": 64}
    (call,) = read(tmp_path, json.dumps(trace([kernel("allreduce", MIB, MIB, 9, **cut)]))).calls
    assert call.ranks == tuple(range(0, 512, 8))


def test_a_call_took_what_its_quickest_rank_says(tmp_path: Path) -> None:
    took = {(0, 1): 90, (1, 1): 60, (0, 2): 64, (1, 2): 200, (0, 3): 70, (1, 3): 71}
    calls = [
        inspector_call("AllReduce", MIB, each, rank=rank, number=number)
        for (rank, number), each in took.items()
    ]
    found = read(tmp_path, lines(calls))
    (times,) = times_of((KERNEL, call) for call in found.calls)
    assert times.calls == 3
    assert times.seconds == pytest.approx(64e-6)  # the median of 60, 64 and 70


def test_calls_that_nobody_counted_stand_for_themselves(tmp_path: Path) -> None:
    events = [kernel("allreduce", MIB, MIB, took, Seq=None) for took in (10, 30, 50)]
    found = read(tmp_path, json.dumps(trace(events)))
    (times,) = times_of((KERNEL, call) for call in found.calls)
    assert (times.calls, times.seconds) == (3, pytest.approx(30e-6))


def test_groups_of_the_topologys_shape_are_chosen(tmp_path: Path) -> None:
    """Of a job of 16 NPUs on two nodes, with groups inside a node and across."""
    dump = flight(
        [
            flight_entry("all_reduce", MIB, MIB, 0.1, process_group=[name, ""])
            for name in ("all", "tp0", "tp1", "dp0")
        ]
    )
    ranks = {
        "all": list(range(16)),
        "tp0": list(range(8)),
        "tp1": list(range(8, 16)),
        "dp0": list(range(0, 16, 2)),
    }
    dump["pg_config"] = {name: {"ranks": str(each)} for name, each in ranks.items()}
    found = read(tmp_path, json.dumps(dump))
    assert [each.group for each in chosen(found, 16, 2)[0]] == ["all"]
    kept, others = chosen(found, 8, 1)
    assert [each.group for each in kept] == ["tp0", "tp1"]
    assert dict(others) == {"among 16 NPUs": 1, "among 8 NPUs on 2 nodes": 1}
    assert [each.group for each in chosen(found, 8, 4)[0]] == ["tp0", "tp1"]  # of two each
    with pytest.raises(hk.SpecError) as caught:
        chosen(found, 4, 1)
    assert "the topology has 4 NPUs on 1 node; give the topology" in str(caught.value)


def changed(value: Any, **more: Any) -> Any:
    return {**value, **more}


CALL = inspector_call("AllReduce", MIB, 60)
DUMP = flight([flight_entry("all_reduce", MIB, MIB, 0.5)])
EVENT = kernel("allreduce", MIB, MIB, 61.5)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "has no measurements"),
        ("nothing\n", "has no measurements"),
        (b"\xff\xfe\x00", "is not text in UTF-8"),
        (b"{\xff", "is not text in UTF-8"),
        (b"\x1f\x8b\x08\x00rubbish", "is no whole gzip file"),
        (gzip.compress(b"{}" * 999, mtime=0)[:-9], "is no whole gzip file"),
        ("{}", "line 1: is JSON of no kind that is known; give a log of nccl-tests"),
        ("[1, 2]", "line 1: is JSON of no kind"),
        ('{"a": 1\n"b"}', "line 2: is no JSON: Expecting ',' delimiter"),
        ("[" * 100_000, "line 1: is nested too deeply"),
        ("[" + "9" * 5000 + "]", "line 1: has a number too long"),
        (lines([CALL]) + "{}\n", "line 2: is no call that NCCL Inspector recorded"),
        (lines([CALL]) + '{"header": {"id', "line 2: is no JSON"),
        (lines([CALL, changed(CALL, header=3)]), "line 2: header: 3 is not a mapping"),
        (lines([changed(CALL, coll_perf={})]), "line 1: coll_perf: there is no 'coll'"),
        (
            lines([inspector_call("AllReduce", MIB, -1)]),
            "coll_perf.coll_exec_time_us: -1 is not a number of 0 or more",
        ),
        (lines([inspector_call("AllReduce", MIB, float("nan"))]), "is not a number of 0 or more"),
        (lines([inspector_call("AllRduce", MIB, 60)]), "there is no collective 'AllRduce'"),
        (
            lines([inspector_call("AllReduce", MIB, 60, n_ranks=True)]),
            "is not a whole number of 1 or more",
        ),
        (
            lines([inspector_call("AllReduce", MIB, 0)]),
            "has no times of collectives: 1 of no size, or less than a microsecond",
        ),
        (json.dumps(DUMP) * 2, "line 1: there is a second JSON value"),
        (json.dumps(changed(DUMP, entries=5)), "entries: 5 is not a list"),
        (json.dumps(changed(DUMP, entries=[7])), "entries[0]: 7 is not a mapping"),
        (json.dumps(flight([])), "has no times of collectives"),
        (
            json.dumps(flight([flight_entry("all_reduce", MIB, MIB, None)])),
            "1 without duration_ms, which TORCH_NCCL_ENABLE_TIMING=1 makes PyTorch write",
        ),
        (
            json.dumps(flight([flight_entry("all_reduce", 4, 4, 1, process_group=["9", ""])])),
            "pg_config: there is no '9'",
        ),
        (
            json.dumps(flight([flight_entry("all_reduce", 4, 4, 1, input_dtypes=["Flat"])])),
            "entries[0].input_dtypes[0]: there is no type 'Flat'",
        ),
        (
            json.dumps(flight([flight_entry("all_reduce", 4, 4, 1, input_dtypes=[])])),
            "entries[0].input_sizes: 1 shapes for 0 types",
        ),
        (
            json.dumps(flight([flight_entry("all_reduce", 4, 4, 1, input_sizes=[[2**70]])])),
            "entries[0].input_sizes[0][0]: ",
        ),
        (
            json.dumps(changed(DUMP, pg_config={"0": {"ranks": "[0, x]"}})),
            "pg_config.0.ranks: '[0, x]' are not ranks",
        ),
        (
            json.dumps(changed(DUMP, pg_config={"0": {"ranks": "[1, 1]"}})),
            "pg_config.0.ranks: 2 different ranks were expected",
        ),
        (json.dumps(trace([changed(EVENT, dur="long")])), "traceEvents[1].dur: 'long' is not a"),
        (
            json.dumps(trace([kernel("allreduce", MIB, MIB, 9, **{"Group size": 7})])),
            "traceEvents[1].args.Process Group Ranks: 8 different ranks were expected",
        ),
        (json.dumps(trace([kernel("allreduce", -1, 1, 9)])), "args.In msg nelems: -1 is not a"),
        (json.dumps(trace([])), "has no times of collectives"),
        (json.dumps({"traceEvents": None}), "there is no 'traceEvents'"),
        (pickle.dumps({"a": 1}), "is a pickle, but not of Flight Recorder"),
        (pickle.dumps(DUMP)[:-40], "is no whole pickle"),
    ],
)
def test_what_is_wrong_is_refused_in_a_line(
    tmp_path: Path, content: str | bytes, words: str
) -> None:
    with pytest.raises(hk.SpecError) as caught:
        read(tmp_path, content)
    assert words in str(caught.value)
    assert "recording" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there_or_too_large(tmp_path: Path, monkeypatch: Any) -> None:
    with pytest.raises(hk.SpecError, match="cannot be read"):
        read_recording(tmp_path / "none")
    with pytest.raises(hk.SpecError, match="cannot be read"):
        read_recording(tmp_path)
    monkeypatch.setattr("hocket.telemetry.files._LARGEST", 1 << 20)
    with pytest.raises(hk.SpecError, match="larger than 1 MiB; give a log"):
        read(tmp_path, b" " * (2 << 20))
    with pytest.raises(hk.SpecError, match="larger than 1 MiB when it is unpacked"):
        read(tmp_path, gzip.compress(b" " * (2 << 20)))
