"""Tables of Parquet files: what they say on the disk may be a thousandth of what they take in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hocket._memory import check_fits

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_WIDEST = 16


def check_rows(
    found: pq.FileMetaData,
    columns: Collection[str] | None = None,
    *,
    row: int = 0,
    what: str = "rows",
    origin: str | None = None,
) -> None:
    """Refuse a table that does not fit in memory, by what its file says of itself.

    Parameters
    ----------
    columns
        Those that are read; by default all.
    row
        Bytes that each row takes besides its columns.
    what
        What rows are, for the message.

    Raises
    ------
    SpecError
        With what it would take, and what it may.
    """
    size = _decoded(found, columns) + row * found.num_rows
    check_fits(size, f"its {found.num_rows:,} {what}", origin=origin)


def open_table(path: Path) -> pq.ParquetFile:
    """Open a file whose texts are read as places in a list: one of a megabyte may stand in every row.

    Raises
    ------
    OSError, pyarrow.ArrowException
        If it is none.
    """
    return _open(path, pq.read_metadata(path))


def _open(path: Path, found: pq.FileMetaData) -> pq.ParquetFile:
    columns = map(found.schema.column, range(len(found.schema)))
    texts = [each.path for each in columns if each.physical_type == "BYTE_ARRAY"]
    return pq.ParquetFile(path, metadata=found, read_dictionary=texts)


def read_tables(paths: Sequence[Path], columns: Sequence[str] | None = None) -> pa.Table:
    """Read files with the same columns, one behind the other.

    Raises
    ------
    SpecError
        Where they do not fit in memory.
    OSError, pyarrow.ArrowException
        For what is no such file, or damaged; for columns that differ.
    """
    for each in paths:
        if not each.is_file():  # a pipe would be waited for
            raise OSError(f"{each} is no file")
    found = [pq.read_metadata(path) for path in paths]
    rows = sum(each.num_rows for each in found)
    check_fits(sum(_decoded(each, columns) for each in found), f"{rows:,} rows")
    return pa.concat_tables([_read(*each, columns) for each in zip(paths, found, strict=True)])


def _decoded(found: pq.FileMetaData, columns: Collection[str] | None) -> int:
    """Bytes that columns take: each value by its width, or what the file says where that is more."""
    size = 0
    for group in range(found.num_row_groups):
        rows = found.row_group(group)
        for column in map(rows.column, range(rows.num_columns)):
            if columns is None or column.path_in_schema.split(".")[0] in columns:
                values = column.num_values * _WIDTHS.get(column.physical_type, _WIDEST)
                size += max(values, column.total_uncompressed_size)
    return size


def _read(path: Path, found: pq.FileMetaData, columns: Sequence[str] | None) -> pa.Table:
    schema = found.schema.to_arrow_schema()
    wanted = list(schema.names if columns is None else columns)
    with _open(path, found) as file:
        table = file.read(columns=wanted).select(wanted)
    size = sum(map(_letters, table.columns))
    check_fits(size, f"the texts of its {len(table):,} rows", origin=str(path))
    return table.cast(pa.schema([schema.field(name) for name in wanted], schema.metadata))


def _letters(column: pa.ChunkedArray) -> int:
    """Bytes of a column's texts, each counted as often as it stands there."""
    chunks = [each for each in column.chunks if pa.types.is_dictionary(each.type)]
    lengths = [pc.sum(pc.binary_length(each.dictionary).take(each.indices)) for each in chunks]
    return sum(each.cast(pa.int64()).as_py() or 0 for each in lengths)
