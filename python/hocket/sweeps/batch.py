"""Runs the points of a part and writes their rows; the same bytes wherever that happens."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any

from hocket.errors import Error
from hocket.sweeps.inputs import SweepInputs
from hocket.sweeps.sweep import Sweep
from hocket.units import printable

if TYPE_CHECKING:
    import pyarrow as pa

KILLED = "the process that ran it was ended twice; it may take more memory than there is"
"""What is said of a point that ends whatever process runs it."""
_LONGEST = 2_000


def schema_of(sweep: Sweep) -> pa.Schema:
    """Return the columns of a sweep: what points say, what they come to, and what went wrong."""
    import pyarrow as pa

    kinds = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    command = sweep.swept
    fields = [pa.field("point", pa.int64(), nullable=False)]
    fields += [pa.field(key, kinds[command.keys[key].column]) for key in sweep.keys]
    fields += [pa.field(name, kinds[column]) for name, column in command.columns.items()]
    fields += [pa.field("error_kind", pa.string()), pa.field("error", pa.string())]
    return pa.schema(fields)


def run_point(sweep: Sweep, number: int, inputs: SweepInputs) -> list[dict[str, Any]]:
    """Run a point; whatever fails is a row too."""
    point = sweep.point(number)
    try:
        return sweep.swept.run(point, inputs)
    except Error as error:
        return [_failed(type(error).__name__, str(error))]
    except MemoryError:
        return [_failed("MemoryError", "not enough memory; use fewer NPUs or chunks")]
    except Exception as error:  # of one point: the others are worth having
        return [_failed(type(error).__name__, str(error))]


def _failed(kind: str, message: str) -> dict[str, Any]:
    return {"error_kind": kind, "error": printable(" ".join(message.split()))[:_LONGEST]}


def run_batch(
    sweep: Sweep, part: int, inputs: SweepInputs, killers: Collection[int] = ()
) -> tuple[bytes, int]:
    """Run the points of a part.

    Points of one network are run one after the other, so that it is made once; rows are in the order of
    points.

    Parameters
    ----------
    killers
        Points that are not run, since they end the process.

    Returns
    -------
    file, failed
        A Parquet file, and how many points failed.
    """
    numbers = sweep.numbers(part)
    places = ("topology", "fabric", "bandwidth", "latency", "failed", "slow", "groups")
    points = {number: sweep.point(number) for number in numbers}
    order = sorted(
        numbers, key=lambda number: tuple(str(points[number].get(name)) for name in places)
    )
    rows: dict[int, list[dict[str, Any]]] = {}
    for number in order:
        if number in killers:
            rows[number] = [_failed("ProcessEnded", KILLED)]
        else:
            rows[number] = run_point(sweep, number, inputs)
    failed = sum(rows[number][0].get("error") is not None for number in numbers)
    keys = sweep.swept.keys
    cells = {
        number: {key: keys[key].cell(value) for key, value in points[number].items()}
        for number in numbers
    }
    made = ({"point": number, **cells[number], **row} for number in numbers for row in rows[number])
    return _written(sweep, made), failed


def _written(sweep: Sweep, rows: Iterable[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = schema_of(sweep)
    all_rows = list(rows)
    columns = [
        pa.array([row.get(field.name) for row in all_rows], type=field.type) for field in schema
    ]
    buffer = BytesIO()
    table = pa.Table.from_arrays(columns, schema=schema)
    pq.write_table(table, buffer, compression="zstd", store_schema=False)
    return buffer.getvalue()
