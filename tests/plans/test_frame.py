"""Plans as tables: what comes back from any frame is the plan that went in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk

LINK = {"bandwidth": "25 GB/s", "latency": "700 ns"}
RING = hk.topology.ring(4, **LINK)
REDUCE = hk.collective_on("all-reduce", RING, "4 MB")
COLUMNS = (
    "chunk", "chunk_count", "src", "dst", "op", "wait", "path", "group_offsets", "group_items",
    "path_offsets", "path_items", "chunk_offsets", "chunk_demand",
)  # fmt: skip

FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "polars": lambda table: pl.DataFrame(table),
    "pandas": lambda table: table.to_pandas(),
    "dict": lambda table: table.to_pydict(),
    "reader": lambda table: table.to_reader(),
    "row groups": lambda table: pa.Table.from_batches(table.to_batches(max_chunksize=7)),
}


def assert_same(first: hk.Plan, second: hk.Plan) -> None:
    for name in COLUMNS:
        ours, theirs = getattr(first.core, name), getattr(second.core, name)
        assert ours.dtype == theirs.dtype, name
        assert np.array_equal(ours, theirs), name
    assert hk.simulate(first).time_ps == hk.simulate(second.verify()).time_ps


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    algorithm=st.sampled_from(["ring", "direct", "double-binary-tree", "greedy", "themis"]),
    kind=st.sampled_from(["all-reduce", "all-gather", "all-to-all"]),
    shape=st.sampled_from([(2, 2), (3, 2), (2, 3, 2)]),
    chunks=st.integers(1, 4),
    size=st.integers(1000, 1_000_000),
    frame=st.sampled_from(sorted(FRAMES)),
)
def test_a_plan_comes_back_from_its_frame(
    algorithm: str, kind: str, shape: tuple[int, ...], chunks: int, size: int, frame: str
) -> None:
    topology = hk.topology.torus(*shape, **LINK)
    try:
        plan = hk.plan(kind, topology, size=size, algorithm=algorithm, chunks=chunks)
    except hk.InfeasibleError:
        return
    given = FRAMES[frame](plan.to_frame())
    order = plan.link_order
    again = hk.Plan.from_frame(
        given, topology, plan.collective, name=plan.algorithm, link_order=order
    )
    assert_same(plan, again)
    assert again.algorithm == plan.algorithm
    assert again.link_order == order


def test_arrow_keeps_name_order_and_routing() -> None:
    topology = hk.topology.clos(2, 2, 2, **LINK)
    plan = hk.plan(
        "all-to-all", topology, size="1 MB", algorithm="direct", chunks=1, routing="ecmp:3"
    )
    again = hk.Plan.from_frame(plan.to_frame(), topology, plan.collective)
    assert_same(plan, again)
    assert (again.algorithm, again.routing) == ("direct", "ecmp:3")
    assert again.core.own_paths == plan.core.own_paths


def test_a_frame_by_hand() -> None:
    """The waits of a builder, names of NPUs, and as few chunks as there are."""
    line = hk.topology.line(3, **LINK)
    names = line.device_names
    rows = {"chunk": [0, 0, 1, 1], "src": [0, 1, 0, 1], "dst": [1, 2, 1, 2], "op": ["copy"] * 4}
    cast = hk.collective_on("broadcast", line, 1001)
    plan = hk.Plan.from_frame(rows, line, cast, name="mine").verify()
    assert plan.algorithm == "mine"
    assert plan.chunks == 2
    assert plan.transfers.size_bytes.tolist() == [500, 500, 501, 501]
    assert plan.transfers.wait.tolist() == [hk.Plan.NO_WAIT, 0, hk.Plan.NO_WAIT, 2]
    named = rows | {end: [names[npu] for npu in rows[end]] for end in ("src", "dst")}
    assert_same(plan, hk.Plan.from_frame(pl.DataFrame(named), line, cast))
    waits = rows | {"wait": [None, 0, 0, 2]}
    given = hk.Plan.from_frame(pl.DataFrame(waits), line, cast).verify()
    assert given.transfers.wait.tolist() == [hk.Plan.NO_WAIT, 0, 0, 2]
    finer = hk.Plan.from_frame(rows | {"chunk_count": [2] * 4, "chunk": [0, 0, 2, 2]}, line, cast)
    assert finer.verify().chunks == 4


def test_an_edit_in_polars_is_proved_or_refused() -> None:
    plan = hk.plan("all-reduce", RING, size="4 MB", algorithm="ring", chunks=1)
    frame = pl.DataFrame(plan.to_frame()).with_row_index("row")
    wrong = frame.with_columns(
        op=pl.when(pl.col("row") == 5).then(pl.lit("copy")).otherwise(pl.col("op").cast(pl.String))
    )
    with pytest.raises(hk.VerificationError) as caught:
        hk.Plan.from_frame(wrong, RING, plan.collective).verify()
    assert caught.value.violations


def test_a_file_rewritten_by_polars_says_what_it_needs(tmp_path: Path) -> None:
    topology = hk.topology.torus(2, 3, **LINK)
    plan = hk.plan("all-gather", topology, size="1 MB", algorithm="direct", chunks=2)
    plan.save(tmp_path / "plan.parquet")
    frame = pl.read_parquet(tmp_path / "plan.parquet")
    frame.write_parquet(tmp_path / "again.parquet")
    with pytest.raises(hk.SpecError) as caught:
        hk.Plan.load(tmp_path / "again.parquet")
    text = str(caught.value)
    assert "no hocket.plan metadata" in text
    assert text.endswith("hk.Plan.from_frame(polars.read_parquet(path), topology, collective)")
    again = pl.read_parquet(tmp_path / "again.parquet")
    assert_same(plan, hk.Plan.from_frame(again, topology, plan.collective))


GOOD = {"chunk": [0], "src": [0], "dst": [1], "op": ["copy"]}
BAD: dict[str, tuple[Any, str]] = {
    "no table": (3, "3 is not a table"),
    "no column": (
        {"chunk": [0], "src": [0], "op": ["copy"]},
        "there is no column dst; a plan needs",
    ),
    "half a chunk": (GOOD | {"chunk": [0.5]}, "column chunk holds something else than whole"),
    "a missing chunk": (
        GOOD | {"chunk": pa.array([None], pa.uint32())},
        "column chunk has empty rows",
    ),
    "an op of numbers": (GOOD | {"op": [1]}, "column op holds int64, not copy and reduce"),
    "an op that is none": (GOOD | {"op": ["add"]}, "column op holds something else"),
    "a name that is none": (GOOD | {"src": ["gpu9"]}, "column src has 'gpu9' in row 0"),
    "an NPU that is none": (GOOD | {"dst": [7]}, "transfer 0: dst: there is no NPU 7"),
    "a wait as a word": (GOOD | {"wait": ["x"]}, "column wait holds something else"),
    "a wait on nothing": (GOOD | {"wait": [4]}, "transfer 0 waits for transfer 4"),
    "groups of numbers": (GOOD | {"groups": [3]}, "column groups holds int64, not lists"),
    "paths of numbers": (GOOD | {"paths": [[3]]}, "column paths holds int64, not lists"),
    "unequal chunks": (
        GOOD | {"chunk_sizes": [[1, 2]], "chunk_demands": [[0]]},
        "column chunk_sizes has 2 chunks, column chunk_demands 1",
    ),
    "sizes only": (GOOD | {"chunk_sizes": [[1]]}, "there is no column chunk_demands"),
    "unequal columns": (GOOD | {"op": ["copy", "copy"]}, "cannot be read as a table"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_frames_are_refused_in_a_line(case: str) -> None:
    frame, text = BAD[case]
    with pytest.raises(hk.SpecError) as caught:
        hk.Plan.from_frame(frame, RING, REDUCE)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_frame_without_rows_is_an_empty_plan() -> None:
    empty = (
        hk.plan("all-reduce", RING, size="4 MB", algorithm="ring", chunks=1).to_frame().slice(0, 0)
    )
    with pytest.raises(hk.VerificationError, match="missing"):
        hk.Plan.from_frame(empty, RING, REDUCE).verify()
