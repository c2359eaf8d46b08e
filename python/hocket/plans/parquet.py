"""Plans as Parquet files: a transfer a row, everything else in the schema's metadata.

Columns: ``chunk``, ``chunk_count``, ``src``, ``dst`` (NPU numbers), ``op`` (``copy`` or ``reduce``),
``size_bytes``, ``wait`` (row of the transfer that must end first, or null), ``wait_group`` (the group
whose members must all end first, or null), ``path`` (explicit path, or null for the default route).
The metadata holds the topology, the collective, the chunks, the groups and the paths under keys that
begin with ``hocket.`` (and how the plan was spread over equal paths, behind how many of the algorithm's
own), so that a file is all that verifying and simulating need.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hocket import _core
from hocket.errors import Error, SpecError
from hocket.files.atomic import replacing
from hocket.files.blob import pack, unpack
from hocket.topology.json import topology_from_json, topology_to_json
from hocket.units import shown

if TYPE_CHECKING:
    from hocket.plans.plan import Plan

_FORMAT = 1
_ROWS = 1 << 20
_GROUP = np.uint32(1 << 31)
_OPS = ("copy", "reduce")
_NONE = 2**32 - 1
"""What stands for an empty row: no wait, or the default route."""
_MOST_POSITION = 2**31 - 2
"""The last transfer or group that a wait can name; with the bit of a group, the next is ``_NONE``."""

_SCHEMA = pa.schema(
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
    ]
)


def save_plan(plan: Plan, path: Path) -> None:
    """Write a plan.

    Raises
    ------
    SpecError
        If the file cannot be written.
    """
    from hocket.plans.schedule_file import schedule_to_json

    core = plan.core
    head = {
        "format": _FORMAT,
        "hocket": _core.__version__,
        "algorithm": core.algorithm,
        "collective": collective_to_json(core.collective),
        "link_order": core.link_order,
        "routing": core.routing,
        "own_paths": core.own_paths,
    }
    metadata = {
        "hocket.plan": json.dumps(head),
        "hocket.topology": json.dumps(topology_to_json(core.topology)),
        "hocket.chunk_offsets": pack(core.chunk_offsets),
        "hocket.chunk_demand": pack(core.chunk_demand),
        "hocket.group_offsets": pack(core.group_offsets),
        "hocket.group_items": pack(core.group_items),
        "hocket.path_offsets": pack(core.path_offsets),
        "hocket.path_items": pack(core.path_items),
    }
    if plan.own_schedule is not None:
        metadata["hocket.schedule"] = json.dumps(schedule_to_json(plan.own_schedule))
    schema = _SCHEMA.with_metadata(metadata)
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        size = core.size_bytes
        for start in range(0, max(len(core), 1), _ROWS):
            writer.write_batch(_rows(plan, size, slice(start, start + _ROWS), schema))


def _rows(plan: Plan, size: NDArray[np.uint64], rows: slice, schema: pa.Schema) -> pa.RecordBatch:
    core = plan.core
    wait, path = core.wait[rows], core.path[rows]
    nothing = wait == core.NO_WAIT
    group = (wait & _GROUP) != 0
    op = pa.DictionaryArray.from_arrays(pa.array(core.op[rows].astype(np.int8)), pa.array(_OPS))
    columns = [
        pa.array(core.chunk[rows]),
        pa.array(core.chunk_count[rows]),
        pa.array(core.src[rows]),
        pa.array(core.dst[rows]),
        op,
        pa.array(size[rows]),
        pa.array(wait, mask=group),
        pa.array(wait & ~_GROUP, mask=nothing | ~group),
        pa.array(path, mask=path == core.DEFAULT_ROUTE),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def load_plan(path: Path) -> Plan:
    """Read a plan that :func:`save_plan` wrote.

    Raises
    ------
    SpecError
        If the file is missing, truncated, or no plan.
    """
    if path.is_dir():
        raise SpecError(
            None, "is a folder", "name the file that `hocket plan -o` wrote", origin=str(path)
        )
    if not path.is_file():
        if path.exists():
            raise SpecError(
                None, "is a pipe or a device", "plans are read from files only", origin=str(path)
            )
        raise SpecError(
            None,
            "there is no such file",
            f"make one with `hocket plan ... -o {path}`",
            origin=str(path),
        )
    try:
        with pq.ParquetFile(path) as file:
            return _read(file)
    except Error as error:
        raise error.but(origin=str(path)) from None
    except KeyError as error:
        raise _no_plan(path, f"it has no {error.args[0]}") from None
    except RecursionError:
        raise _no_plan(path, "its metadata is too deep") from None
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
    ) as error:
        raise _no_plan(path, " ".join(str(error).split())) from None


def _no_plan(path: Path, reason: str) -> SpecError:
    return SpecError(
        None,
        f"is not a plan, or not a whole one ({reason})",
        "plans are what `hocket plan -o` writes",
        origin=str(path),
    )


def _read(file: pq.ParquetFile) -> Plan:
    from hocket.plans.plan import Plan
    from hocket.plans.schedule_file import schedule_from_json

    metadata = {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in (file.schema_arrow.metadata or {}).items()
    }
    if "hocket.plan" not in metadata:
        raise ValueError("it has no hocket.plan metadata")
    head = json.loads(metadata["hocket.plan"])
    if head["format"] != _FORMAT:
        raise ValueError(f"its format is {shown(head['format'])}, this version reads {_FORMAT}")
    topology = topology_from_json(json.loads(metadata["hocket.topology"]))
    collective = collective_from_json(head["collective"])
    if max(collective.npus, default=0) >= topology.npu_count:
        raise ValueError(
            f"NPU {max(collective.npus)} takes part; NPUs are 0 to {topology.npu_count - 1}"
        )
    table = file.read(columns=[name for name in _SCHEMA.names if name != "size_bytes"])
    core = _core.Plan.from_columns(
        topology,
        collective,
        str(head["algorithm"]),
        chunk_offsets=unpack(metadata["hocket.chunk_offsets"], "uint64"),
        chunk_demand=unpack(metadata["hocket.chunk_demand"], "uint32"),
        chunk=_integers(table, "chunk"),
        chunk_count=_integers(table, "chunk_count"),
        src=_integers(table, "src"),
        dst=_integers(table, "dst"),
        op=_op(table),
        wait=_wait(table),
        path=_positions(table, "path"),
        group_offsets=unpack(metadata["hocket.group_offsets"], "uint32"),
        group_items=unpack(metadata["hocket.group_items"], "uint32"),
        path_offsets=unpack(metadata["hocket.path_offsets"], "uint32"),
        path_items=unpack(metadata["hocket.path_items"], "uint32"),
        link_order=str(head.get("link_order", "ready")),
        routing=str(head.get("routing", "single")),
        own_paths=head.get("own_paths"),
    )
    if "hocket.schedule" not in metadata:
        return Plan(core)
    return Plan(core, schedule_from_json(metadata["hocket.schedule"], topology, collective))


def _integers(table: pa.Table, name: str) -> NDArray[np.uint32]:
    column = table.column(name)
    if column.null_count:
        raise ValueError(f"column {name} has empty rows")
    return np.ascontiguousarray(column.cast(pa.uint32()).to_numpy())


def _positions(table: pa.Table, name: str) -> NDArray[np.uint32]:
    """Give a column of positions, where an empty row becomes 2^32 - 1."""
    column = table.column(name)
    given = pc.is_valid(column).to_numpy().astype(bool)
    positions = np.ascontiguousarray(column.fill_null(_NONE).cast(pa.uint32()).to_numpy())
    stray = given & (positions > _MOST_POSITION)
    if stray.any():
        row = int(np.argmax(stray))
        raise ValueError(
            f"column {name} has {positions[row]} in row {row}; the most is {_MOST_POSITION}"
        )
    return positions


def _op(table: pa.Table) -> NDArray[np.uint8]:
    op = table.column("op").cast(pa.string())
    is_copy, is_reduce = (pc.equal(op, name).to_numpy() for name in _OPS)
    if op.null_count or not np.all(is_copy.astype(bool) | is_reduce.astype(bool)):
        raise ValueError("column op holds something else than copy and reduce")
    reduces: NDArray[np.uint8] = is_reduce.astype(np.uint8)
    return reduces


def _wait(table: pa.Table) -> NDArray[np.uint32]:
    wait, group = _positions(table, "wait"), _positions(table, "wait_group")
    both = (wait != _core.Plan.NO_WAIT) & (group != _core.Plan.NO_WAIT)
    if both.any():
        raise ValueError(f"row {int(np.argmax(both))} waits for a transfer and for a group")
    return np.where(group == _core.Plan.NO_WAIT, wait, group | _GROUP)


def collective_to_json(collective: _core.Collective) -> dict[str, Any]:
    """Give a collective as JSON values."""
    fields: dict[str, Any] = {
        "kind": collective.kind,
        "npus": collective.npus,
        "size_bytes": collective.size,
        "root": collective.root,
        "in_place": collective.in_place,
    }
    if collective.kind == "custom":
        fields["demands"] = collective.demands()
    return fields


def collective_from_json(fields: dict[str, Any]) -> _core.Collective:
    """Give back what :func:`collective_to_json` was given."""
    if fields["kind"] == "custom":
        demands = [tuple(demand) for demand in fields["demands"]]
        return _core.Collective.custom(fields["npus"], demands, fields["in_place"])
    return _core.Collective(
        fields["kind"], fields["npus"], fields["size_bytes"], fields["root"], fields["in_place"]
    )
