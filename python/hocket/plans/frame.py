"""Plans as tables, a transfer a row: what Parquet files and data frames hold.

=================  =========================================================================
column             what it holds
=================  =========================================================================
``chunk``          first chunk carried
``chunk_count``    how many consecutive chunks; 1 where there is no such column
``src``, ``dst``   sending and receiving NPU: numbers, or (read, never written) names
``op``             ``copy`` or ``reduce``
``size_bytes``     bytes carried; written, never read
``wait``           row of the transfer that must end first, or empty
``wait_group``     the group of transfers that must all end first, or empty
``path``           the explicit path, or empty for the default route
``chunk_sizes``    bytes of all chunks, in order: a list, on the first row
``chunk_demands``  the demand of the collective that each chunk belongs to: a list, on the first row
``groups``         members of each group: a list of lists, on the first row; a member is a row, or
                   2^31 + an earlier group
``paths``          links of each path: a list of lists, on the first row
=================  =========================================================================

Rows are numbered from 0. Lists may be spread over rows: they are read one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hocket import _core
from hocket.plans.builder import OPS
from hocket.units import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

_GROUP = np.uint32(_core.Plan.GROUP)
_NONE = 2**32 - 1
"""What stands for an empty row: no wait, or the default route."""
_MAX_POSITION = 2**31 - 2
"""The last transfer or group that a wait can name; with the bit of a group, the next is ``_NONE``."""

SCHEMA = pa.schema(
    [
        ("chunk", pa.uint32()),
        ("chunk_count", pa.uint32()),
        ("src", pa.uint32()),
        ("dst", pa.uint32()),
        ("op", pa.dictionary(pa.int8(), pa.string())),
        ("size_bytes", pa.uint64()),
        ("wait", pa.uint32()),
        ("wait_group", pa.uint32()),
        ("path", pa.uint32()),
        ("chunk_sizes", pa.list_(pa.uint64())),
        ("chunk_demands", pa.list_(pa.uint32())),
        ("groups", pa.list_(pa.list_(pa.uint32()))),
        ("paths", pa.list_(pa.list_(pa.uint32()))),
    ]
)
"""The columns that are written."""

_NEEDED = ("chunk", "src", "dst", "op")
_WAITS = ("wait", "wait_group", "groups")


def rows_of(core: _core.Plan, rows: slice, schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """Return some rows of a plan's table."""
    size = core.size_bytes[rows]
    wait, path = core.wait[rows], core.path[rows]
    nothing = wait == core.NO_WAIT
    group = (wait & _GROUP) != 0
    op = pa.DictionaryArray.from_arrays(pa.array(core.op[rows].astype(np.int8)), pa.array(OPS))
    count = len(wait)
    is_first = rows.start == 0
    columns = [
        pa.array(core.chunk[rows]),
        pa.array(core.chunk_count[rows]),
        pa.array(core.src[rows]),
        pa.array(core.dst[rows]),
        op,
        pa.array(size),
        pa.array(wait, mask=group),
        pa.array(wait & ~_GROUP, mask=nothing | ~group),
        pa.array(path, mask=path == core.DEFAULT_ROUTE),
        _on_first_row(pa.array(np.diff(core.chunk_offsets)), count, is_first),
        _on_first_row(pa.array(core.chunk_demand), count, is_first),
        _on_first_row(_lists(core.group_offsets, core.group_items), count, is_first),
        _on_first_row(_lists(core.path_offsets, core.path_items), count, is_first),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _lists(offsets: NDArray[np.uint32], items: NDArray[np.uint32]) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(items))


def _on_first_row(values: pa.Array, count: int, is_first: bool) -> pa.Array:
    """Return a column that has all values in its first row, and nothing in the others."""
    if not count or not is_first:
        return pa.nulls(count, pa.list_(values.type))
    offsets = np.full(count + 1, len(values), np.int32)
    offsets[0] = 0
    mask = np.arange(count) > 0
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(mask))


def as_table(frame: object) -> pa.Table:
    """Return a data frame, or a dict of columns, as an Arrow table.

    Raises
    ------
    ValueError
        If it is none, or has a column of no type.
    """
    if isinstance(frame, pa.Table):
        return frame
    is_frame = isinstance(frame, dict) or any(
        hasattr(frame, name)
        for name in ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__")
    )
    if not is_frame:
        raise ValueError(
            f"{shown(frame)} is not a table; give a frame of polars, pandas or Arrow, or a dict of columns"
        )
    try:
        return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"cannot be read as a table: {' '.join(str(error).split())}") from None


def core_of(
    table: pa.Table,
    topology: _core.Topology,
    collective: _core.Collective,
    *,
    chunks: int | None = None,
    **facts: Any,
) -> _core.Plan:
    """Return the plan that a table holds.

    Without a column of waits, transfers wait as those of a :class:`hocket.PlanBuilder` do; without
    `chunk_sizes`, every demand is cut into `chunks` even pieces, or as few as the rows name.

    Parameters
    ----------
    facts
        Arguments of the core's plan that no column holds.

    Raises
    ------
    ValueError
        Naming the column that is missing or wrong; of pyarrow's errors some are of this class as well.
    """
    for name in _NEEDED:
        if name not in table.column_names:
            raise ValueError(f"there is no column {name}; a plan needs {', '.join(_NEEDED)}")
    columns: dict[str, Any] = {
        "chunk": _integers(table, "chunk"),
        "src": _npus(table, "src", topology),
        "dst": _npus(table, "dst", topology),
        "op": _op(table),
        "path": _positions(table, "path"),
    }
    count = len(columns["chunk"])
    has_counts = "chunk_count" in table.column_names
    counts = _integers(table, "chunk_count") if has_counts else np.ones(count, np.uint32)
    columns["chunk_count"] = counts
    if "chunk_sizes" in table.column_names and count:
        offsets, demand = _given_chunks(table)
    else:
        offsets, demand = _core.even_chunks(collective, chunks or _pieces(columns, collective))
    columns |= {"chunk_offsets": offsets, "chunk_demand": demand}
    columns["path_offsets"], columns["path_items"] = _list_column(table, "paths")
    if any(name in table.column_names for name in _WAITS):
        columns["wait"] = _wait(table)
        columns["group_offsets"], columns["group_items"] = _list_column(table, "groups")
    return _core.Plan.from_columns(topology, collective, **columns, **facts)


def _pieces(columns: dict[str, Any], collective: _core.Collective) -> int:
    """Return the fewest pieces of each demand that have every chunk that is named."""
    ends = columns["chunk"].astype(np.int64) + columns["chunk_count"]
    return max(1, -(-int(ends.max(initial=0)) // len(collective.demands())))


def _given_chunks(table: pa.Table) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    if "chunk_demands" not in table.column_names:
        raise ValueError("there is no column chunk_demands; chunk_sizes needs it")
    sizes = _numbers(_flat(table, "chunk_sizes", 1), pa.uint64()).to_numpy()
    demands = _numbers(_flat(table, "chunk_demands", 1), pa.uint32()).to_numpy()
    if len(sizes) != len(demands):
        raise ValueError(
            f"column chunk_sizes has {len(sizes)} chunks, column chunk_demands {len(demands)}"
        )
    offsets = np.concatenate([np.zeros(1, np.uint64), np.cumsum(sizes, dtype=np.uint64)])
    return offsets, np.ascontiguousarray(demands)


def _integers(table: pa.Table, name: str) -> NDArray[np.uint32]:
    column = table.column(name)
    if column.null_count:
        raise ValueError(f"column {name} has empty rows")
    return np.ascontiguousarray(_cast(column, name).to_numpy())


def _cast(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    try:
        return pa.chunked_array(
            [_numbers(each, pa.uint32()) for each in column.chunks], pa.uint32()
        )
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"column {name} holds something else than whole numbers from 0 to 2^32 - 1 ({reason})"
        ) from None


def _numbers(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values as numbers; indices into a list are looked up there, and the list is cast."""
    if pa.types.is_dictionary(values.type):
        return values.dictionary.cast(kind).take(values.indices)
    return values.cast(kind)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in text)


def _places(column: pa.ChunkedArray, names: pa.Array) -> pa.ChunkedArray:
    """Return the place of each text among names, empty where it is none."""
    chunks = [
        pc.index_in(each.dictionary.cast(pa.string()), names).take(each.indices)
        if pa.types.is_dictionary(each.type)
        else pc.index_in(each.cast(pa.string()), names)
        for each in column.chunks
    ]
    return pa.chunked_array(chunks, pa.int32())


def _npus(table: pa.Table, name: str, topology: _core.Topology) -> NDArray[np.uint32]:
    """Return a column of NPUs, or of switches that sum or multicast, which may be named."""
    column = table.column(name)
    if not _is_text(column.type):
        return _integers(table, name)
    if column.null_count:
        raise ValueError(f"column {name} has empty rows")
    # With switches that sum, every name: what a plain switch is asked, the proof refuses with the reason.
    names = topology.device_names[: None if topology.switch_offloads else topology.npu_count]
    numbers = _places(column, pa.array(names, pa.string()))
    if numbers.null_count:
        row = pc.is_null(numbers).to_pylist().index(True)
        raise ValueError(
            f"column {name} has {shown(column[row].as_py())} in row {row}, which is not an NPU"
        )
    return np.ascontiguousarray(numbers.cast(pa.uint32()).to_numpy())


def _positions(table: pa.Table, name: str) -> NDArray[np.uint32]:
    """Return a column of positions, where an empty row becomes 2^32 - 1; without the column, all do."""
    if name not in table.column_names:
        return np.full(len(table), _NONE, np.uint32)
    column = table.column(name)
    if pa.types.is_floating(column.type):  # as pandas has whole numbers beside empty rows
        column = pc.if_else(pc.is_nan(column), None, column)
    given = pc.is_valid(column).to_numpy().astype(bool)
    positions = np.ascontiguousarray(_cast(column, name).fill_null(_NONE).to_numpy())
    stray = given & (positions > _MAX_POSITION)
    if stray.any():
        row = int(np.argmax(stray))
        raise ValueError(
            f"column {name} has {positions[row]} in row {row}; the most is {_MAX_POSITION}"
        )
    return positions


def _op(table: pa.Table) -> NDArray[np.uint8]:
    op = table.column("op")
    if not _is_text(op.type):
        raise ValueError(f"column op holds {op.type}, not copy and reduce")
    places = _places(op, pa.array(OPS))
    if places.null_count:
        raise ValueError("column op holds something else than copy and reduce")
    reduces: NDArray[np.uint8] = places.to_numpy().astype(np.uint8)
    return reduces


def _wait(table: pa.Table) -> NDArray[np.uint32]:
    wait, group = _positions(table, "wait"), _positions(table, "wait_group")
    both = (wait != _core.Plan.NO_WAIT) & (group != _core.Plan.NO_WAIT)
    if both.any():
        raise ValueError(f"row {int(np.argmax(both))} waits for a transfer and for a group")
    return np.where(group == _core.Plan.NO_WAIT, wait, group | _GROUP)


def _flat(table: pa.Table, name: str, depth: int) -> pa.Array:
    """Return the values of a column of lists, which are `depth` deep, one after the other."""
    column = table.column(name).combine_chunks()
    values = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    for _ in range(depth):
        if pa.types.is_null(values.type):
            return pa.array([], pa.uint32())
        lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
        if not any(check(values.type) for check in lists):
            raise ValueError(f"column {name} holds {values.type}, not lists")
        values = values.flatten()
        if values.null_count:
            raise ValueError(f"column {name} has a list with an empty place")
    return values


def _list_column(table: pa.Table, name: str) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return a column of lists of lists as offsets and items; no list without the column."""
    if name not in table.column_names or not len(table):
        return np.zeros(1, np.uint32), np.zeros(0, np.uint32)
    lists = _flat(table, name, 1)
    if not len(lists):
        return np.zeros(1, np.uint32), np.zeros(0, np.uint32)
    inner = pa.table({name: pa.chunked_array([lists])})
    items = _numbers(_flat(inner, name, 1), pa.uint32()).to_numpy()
    lengths: Sequence[int] = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([np.zeros(1, np.uint32), np.cumsum(lengths, dtype=np.uint32)])
    return offsets, np.ascontiguousarray(items)
