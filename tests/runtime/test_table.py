"""Tables of plans: what a call runs by one, what files may hold, and ranks with different ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runtime.ranks import Ranks

import hocket as hk
from hocket import runtime
from hocket.runtime.table import table_of

Row = runtime.PlanRow
MESH = "mesh:2x2@1GB/s,10us"


def small_table(**more: Any) -> runtime.PlanTable:
    return runtime.PlanTable(
        [
            Row(collective="all-reduce", ranks=4, algorithm="shared-memory", transport="shared"),
            Row(collective="all-gather", ranks=4, algorithm="ring", **more),
        ]
    )


def test_a_row_holds_for_its_kind_ranks_and_sizes() -> None:
    rows = [
        Row(collective="all-reduce", ranks=4, from_bytes=100, to_bytes=200, algorithm="ring"),
        Row(
            collective="all-reduce", ranks=4, from_bytes=200, algorithm="direct", transport="shared"
        ),
        Row(collective="all-reduce", ranks=3, algorithm="ring", chunks=2),
    ]
    table = runtime.PlanTable(reversed(rows))
    for size, found in (
        (99, None),
        (100, "ring"),
        (199, "ring"),
        (200, "direct"),
        (1 << 40, "direct"),
    ):
        row = table.row("all-reduce", 4, size)
        assert (None if row is None else row.algorithm) == found
    assert table.row("all-gather", 4, 100) is None
    assert table.row("all-reduce", 2, 100) is None
    choice = table.choice("all-reduce", 4, 0, 150)
    assert choice is not None
    assert choice.program is not None
    assert (choice.program.kind, choice.program.ranks, choice.transport) == ("all-reduce", 4, "tcp")
    assert table.choice("all-reduce", 4, 0, 150).program is choice.program  # type: ignore[union-attr]


def test_equal_tables_have_equal_hashes_and_others_have_not(tmp_path: Path) -> None:
    first, again = small_table(), small_table()
    assert first.hash == again.hash != 0
    assert small_table(chunks=2).hash != first.hash
    first.save(tmp_path / "table.json")
    read = runtime.PlanTable.load(tmp_path / "table.json")
    assert (read.rows, read.hash) == (first.rows, first.hash)
    # The bytes of a plan file count, and not its name alone.
    hashes = set()
    for algorithm in ("ring", "greedy"):
        hk.plan("all-reduce", MESH, size=4096, algorithm=algorithm).save(tmp_path / "p.parquet")
        row = Row(collective="all-reduce", ranks=4, plan="p.parquet")
        hashes.add(runtime.PlanTable([row], tmp_path).hash)
    assert len(hashes) == 2


def sums(comm: runtime.Communicator) -> list[Any]:
    numbers = np.arange(3000, dtype=np.int64) * (comm.rank + 1)
    total = comm.all_reduce(numbers)
    assert (total == np.arange(3000) * 10).all()
    parts = comm.all_gather(np.array([comm.rank]))
    root = comm.broadcast(np.full(5, comm.rank), 2)
    assert comm.table is not None
    made = comm.table._made
    return [parts.tolist(), root.tolist(), sorted(row.collective for row, _ in made)]


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_calls_run_what_the_table_says(transport: str, tmp_path: Path) -> None:
    hk.plan("all-reduce", MESH, size=4096, algorithm="greedy").save(tmp_path / "plan.parquet")
    rows = [
        Row(collective="all-reduce", ranks=4, plan="plan.parquet", transport="shared"),
        Row(collective="all-gather", ranks=4, algorithm="ring", topology=MESH),
    ]
    table = runtime.PlanTable(rows, tmp_path)
    table.save(tmp_path / "table.json")
    with Ranks(4, sums, transport=transport, table=tmp_path / "table.json") as ranks:
        found = ranks.results()
    assert found == [[[0, 1, 2, 3], [2] * 5, ["all-gather", "all-reduce"]]] * 4


def test_ranks_with_different_tables_are_all_refused(tmp_path: Path) -> None:
    small_table().save(tmp_path / "one.json")
    store = runtime.serve(secret="test")
    from concurrent.futures import ThreadPoolExecutor

    def join(rank: int) -> str:
        table = tmp_path / "one.json" if rank < 2 else small_table(chunks=2)
        with pytest.raises(hk.TransportError) as caught:
            runtime.connect(
                store.address, rank=rank, size=3, serves=False, secret="test", table=table
            )
        assert caught.value.code == "mismatch"
        return str(caught.value)

    with ThreadPoolExecutor() as threads:
        said = list(threads.map(join, range(3)))
    assert len(set(said)) == 1
    assert said[0].startswith("rank 2 has the table of plans ")


GOOD = {"collective": "all-reduce", "ranks": 4, "algorithm": "ring"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{**GOOD, "ranks": 0}], "rows[0].ranks: "),
        ([{**GOOD, "algorithm": "rings"}], "rows[0].algorithm: there is no algorithm 'rings'"),
        ([{**GOOD, "plan": "a.parquet"}], "rows[0]: give algorithm or plan, and not both"),
        ([{"collective": "all-reduce", "ranks": 4}], "rows[0]: give algorithm or plan"),
        ([{**GOOD, "to_bytes": 1, "from_bytes": 1}], "rows[0]: to_bytes is not above from_bytes"),
        ([{**GOOD, "colour": 1}], "rows[0].colour: "),
        ([{**GOOD, "collective": "sum"}], "rows[0].collective: "),
        ([{**GOOD, "algorithm": "shared-memory"}], "shared-memory goes through shared memory"),
        ([GOOD, {**GOOD, "from_bytes": 5}], "rows: two of all-reduce among 4 hold for 5 B"),
        ([{"collective": "all-reduce", "ranks": 4, "plan": "no.parquet"}], "there is no such file"),
    ],
)
def test_files_that_make_no_sense_are_refused(rows: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"format": "hocket.plan-table", "version": 1, "rows": rows}))
    with pytest.raises(hk.SpecError) as caught:
        runtime.PlanTable.load(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON, and so no table of plans"),
        ("[]", "table.json"),
        ('{"format": "hocket.run", "version": 1, "rows": []}', "format: is 'hocket.run'"),
        (
            '{"format": "hocket.plan-table", "version": 2, "rows": []}',
            "version: is 2; this version",
        ),
        ('{"version": 1, "rows": []}', "format: is missing; this version reads"),
    ],
)
def test_files_that_are_no_table_are_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(hk.SpecError) as caught:
        runtime.PlanTable.load(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_environment_and_the_users_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOCKET_CACHE", str(tmp_path))
    monkeypatch.delenv("HOCKET_TABLE", raising=False)
    assert table_of(None) is None
    with pytest.raises(
        hk.SpecError, match="none is kept yet; make one by `hocket compare --table`"
    ):
        table_of("tuned")
    with pytest.raises(hk.SpecError, match="there is no such file"):
        table_of(tmp_path / "none.json")
    with pytest.raises(hk.SpecError, match="table: int is no table"):
        table_of(3)  # type: ignore[arg-type]
    (tmp_path / "tables").mkdir()
    small_table().save(tmp_path / "tables" / "tuned.json")
    monkeypatch.setenv("HOCKET_TABLE", "tuned")
    found = table_of(None)
    assert found is not None
    assert found.hash == small_table().hash
    monkeypatch.setenv("HOCKET_CACHE", "off")
    with pytest.raises(hk.SpecError, match="there is no cache folder"):
        table_of("tuned")


def test_new_rows_replace_those_for_the_same_and_leave_others() -> None:
    table = small_table()
    new = Row(collective="all-gather", ranks=4, from_bytes=10, algorithm="direct")
    both = table.with_rows([new])
    assert len(both) == 2
    assert both.row("all-gather", 4, 5) is None
    assert both.row("all-gather", 4, 10) == new
    assert both.row("all-reduce", 4, 10) == table.row("all-reduce", 4, 10)
