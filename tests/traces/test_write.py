"""Traces that are written here are read as what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.traces import CALLS, KINDS, Call, Compute, Receive, Send


def test_what_is_written_is_read(tmp_path: Path) -> None:
    first = [
        Compute("a", "5 us"),
        Send("to 1", 1, "2 KiB", tag=7),
        Call("sum", "allreduce", 4096, group=3, after=[0]),
        Call("end", "barrier", after=(1, 2)),
    ]
    second = [
        Receive("from 0", 0, 2048, tag=7, after=()),
        Call("sum", "all-reduce", 4096, group=3),
        Call("end", "barrier"),
    ]
    paths = hk.traces.write(tmp_path / "both", [first, second])
    assert [path.name for path in paths] == ["both.0.et", "both.1.et"]
    trace = hk.traces.load(tmp_path / "both", groups={3: [0, 1]})
    kinds = ["compute", "send", "collective", "collective", "receive", "collective", "collective"]
    assert [KINDS[kind] for kind in trace.kind] == kinds
    assert [CALLS[kind] for kind in trace.calls_kind] == ["barrier", "all-reduce"]
    assert trace.calls_size.tolist() == [0, 4096]
    assert trace.duration_ps[0] == 5_000_000
    assert (trace.bytes[1], trace.tag[1], trace.peer[1], trace.partner[1]) == (2048, 7, 1, 4)
    assert trace.dependency_first.tolist() == [0, 0, 1, 2, 4, 4, 5, 6]
    assert trace.dependencies.tolist() == [0, 0, 1, 2, 4, 5]
    ring = hk.topology.ring(2, bandwidth="1 GB/s", latency="1 us")
    assert hk.traces.replay(trace, ring, algorithm="ring").time_ps > 5_000_000


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (3, "rank 1, step 1: 3 is not a step"),
        (Compute("", 1), "rank 1, step 1: name: "),
        (Compute("x", "1 ns"), "rank 1, step 1: time: '1 ns' is not a whole number of micro"),
        (Compute("x", "1 m"), "rank 1, step 1: time: "),
        (Call("x", "sum", 1), "rank 1, step 1: kind: there is no collective 'sum'; kinds are"),
        (Call("x", "all-reduce", -1), "rank 1, step 1: size: "),
        (Call("x", "all-reduce", 1, group=-1), "rank 1, step 1: group: -1 "),
        (Send("x", -1, 1), "rank 1, step 1: to: -1 "),
        (Receive("x", "0", 1), "rank 1, step 1: source: '0' "),  # type: ignore[arg-type]
        (Compute("x", 1, after=[1]), "rank 1, step 1: after: 1 is not an earlier step"),
    ],
)
def test_bad_steps_are_refused_in_a_line(tmp_path: Path, step: Any, text: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.traces.write(tmp_path / "x", [[], [Compute("a", "1 us"), step]])
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_trace_of_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hk.SpecError, match="ranks: there is none"):
        hk.traces.write(tmp_path / "x", [])
