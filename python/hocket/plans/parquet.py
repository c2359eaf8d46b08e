"""Plans as Parquet files: the table of :mod:`hocket.plans.frame`, and in its metadata what no column holds.

The metadata holds the topology, the collective, the name of the algorithm and the order of links (and how
the plan was spread over equal paths, behind how many of the algorithm's own) under keys that begin with
``hocket.``, so that a file is all that verifying and simulating need. :mod:`hocket.plans.claims` adds how
the plan was made.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from hocket import _core
from hocket.errors import Error, SpecError
from hocket.files.atomic import replacing
from hocket.files.parquet import check_rows, open_table
from hocket.files.raw import check_json
from hocket.plans.claims import claims_from_json, claims_to_json
from hocket.plans.frame import SCHEMA, as_table, core_of, rows_of
from hocket.topology.json import topology_from_json, topology_to_json
from hocket.units import shown

if TYPE_CHECKING:
    from hocket.plans.plan import Plan

_FORMAT = 2
_ROWS = 1 << 20
_ROW_BYTES = 150
"""That a transfer takes besides its columns: as the core has it, and when it is proved and simulated."""
_UNREAD = ("size_bytes",)


def to_table(plan: Plan) -> pa.Table:
    """Return a plan as a table, with all that a file of it has."""
    schema = SCHEMA.with_metadata(_metadata(plan))
    rows = (slice(at, at + _ROWS) for at in range(0, max(len(plan), 1), _ROWS))
    return pa.Table.from_batches([rows_of(plan.core, each) for each in rows]).cast(schema)


def from_table(
    frame: object,
    topology: _core.Topology,
    collective: _core.Collective,
    *,
    name: str | None,
    chunks: int | None,
    link_order: str | None,
) -> Plan:
    """Return the plan that a frame holds; see :meth:`hocket.Plan.from_frame`."""
    from hocket.plans.plan import Plan

    try:
        table = as_table(frame)
        head = json.loads(_texts(table.schema).get("hocket.plan", "{}"))
        core = core_of(
            table,
            topology,
            collective,
            chunks=chunks,
            algorithm=str(head.get("algorithm", "own")) if name is None else name,
            link_order=link_order or str(head.get("link_order", "ready")),
            routing=str(head.get("routing", "single")),
            own_paths=head.get("own_paths"),
        )
    except Error as error:
        raise error.within("frame") from None
    except (pa.ArrowException, ValueError, TypeError, KeyError, OverflowError) as error:
        raise SpecError("frame", " ".join(str(error).split())) from None
    return Plan(core)


def save_plan(plan: Plan, path: Path) -> None:
    """Write a plan.

    Raises
    ------
    SpecError
        If the file cannot be written.
    """
    schema = SCHEMA.with_metadata(_metadata(plan))
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        for start in range(0, max(len(plan), 1), _ROWS):
            writer.write_batch(rows_of(plan.core, slice(start, start + _ROWS), schema))


def _metadata(plan: Plan) -> dict[str, str]:
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
    if plan.network is not None:
        head["network"] = plan.network
    metadata = {
        "hocket.plan": json.dumps(head),
        "hocket.topology": json.dumps(topology_to_json(core.topology)),
    }
    if plan.own_schedule is not None:
        metadata["hocket.schedule"] = json.dumps(schedule_to_json(plan.own_schedule))
    claims = claims_to_json(plan, _about(metadata))
    if claims is not None:
        metadata["hocket.claims"] = claims
    return metadata


def _about(metadata: dict[str, str]) -> list[str]:
    """Return the metadata that claims are about."""
    names = ("hocket.plan", "hocket.topology", "hocket.schedule")
    return [metadata[name] for name in names if name in metadata]


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
        with open_table(path) as file:
            return _read(file)
    except Error as error:
        raise error.within(str(path)) from None
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

    metadata = _texts(file.schema_arrow)
    if "hocket.plan" not in metadata:
        raise _no_metadata(file)
    for each in metadata.values():
        check_json(each.encode(), None)
    head = json.loads(metadata["hocket.plan"])
    found = head["format"]
    if type(found) is int and found != _FORMAT:
        when = "a later" if found > _FORMAT else "an earlier"
        why = f"is of {when} version of hocket: format {shown(found)}, and this one reads {_FORMAT}"
        raise SpecError(None, why, "use that version, or plan again with `hocket plan -o`")
    if found != _FORMAT:
        raise ValueError(f"its format is {shown(found)}, this version reads {_FORMAT}")
    topology = topology_from_json(json.loads(metadata["hocket.topology"]))
    collective = collective_from_json(head["collective"])
    if max(collective.npus, default=0) >= topology.npu_count:
        raise ValueError(
            f"NPU {max(collective.npus)} takes part; NPUs are 0 to {topology.npu_count - 1}"
        )
    columns = [name for name in SCHEMA.names if name in file.schema_arrow.names]
    columns = [name for name in columns if name not in _UNREAD]
    check_rows(file.metadata, columns, row=_ROW_BYTES, what="transfers")
    core = core_of(
        file.read(columns=columns),
        topology,
        collective,
        algorithm=str(head["algorithm"]),
        link_order=str(head.get("link_order", "ready")),
        routing=str(head.get("routing", "single")),
        own_paths=head.get("own_paths"),
    )
    schedule = claims = None
    if "hocket.schedule" in metadata:
        schedule = schedule_from_json(metadata["hocket.schedule"], topology, collective)
    if "hocket.claims" in metadata:
        claims = claims_from_json(metadata["hocket.claims"], core, _about(metadata))
    plan = Plan(core, schedule, *(claims or ()))
    given = head.get("network")
    plan.network = given if isinstance(given, str) and given.isprintable() else None
    return plan


def _texts(schema: pa.Schema) -> dict[str, str]:
    """Return a schema's metadata as text."""
    return {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in (schema.metadata or {}).items()
    }


def _no_metadata(file: pq.ParquetFile) -> SpecError:
    """Explain how to read a plan whose metadata another tool has dropped, or that it is not a plan."""
    if not {"chunk", "src", "dst", "op"} <= set(file.schema_arrow.names):
        raise ValueError("it has no hocket.plan metadata")
    return SpecError(
        None,
        "is not a plan, or not a whole one (it has no hocket.plan metadata: the tool that wrote it again "
        "dropped the topology and the collective)",
        "give them: hk.Plan.from_frame(polars.read_parquet(path), topology, collective)",
    )


def collective_to_json(collective: _core.Collective) -> dict[str, Any]:
    """Return a collective as JSON values."""
    fields: dict[str, Any] = {
        "kind": collective.kind,
        "npus": collective.npus,
        "size_bytes": collective.size,
        "root": collective.root,
        "in_place": collective.in_place,
    }
    if collective.kind == "custom":
        fields["demands"] = collective.demands()
        fields["name"] = collective.name
    return fields


def collective_from_json(fields: dict[str, Any]) -> _core.Collective:
    """Return what :func:`collective_to_json` was given."""
    if fields["kind"] == "custom":
        demands = [tuple(demand) for demand in fields["demands"]]
        return _core.Collective.custom(
            fields["npus"], demands, fields["in_place"], fields.get("name")
        )
    return _core.Collective(
        fields["kind"], fields["npus"], fields["size_bytes"], fields["root"], fields["in_place"]
    )
