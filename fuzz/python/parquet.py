"""Doors that take binary files: plans, and execution traces with their groups."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import texts
from draw import ODD, Draw

import hocket as hk
from hocket.files.blob import pack
from hocket.plans.parquet import load_plan
from hocket.traces import files as traces

RING = hk.topology.ring(4, bandwidth="25 GB/s", latency="700 ns")
_PRODUCT = hk.topology.product("Ring_SW", [2, 2], bandwidth=["1 GB/s"] * 2, latency=["1 us"] * 2)
_BINARY = {"uint32": np.uint32, "uint64": np.uint64}


def _saved(plan: hk.Plan) -> tuple[pa.Table, bytes]:
    path = texts.written(b"", "seed.parquet")
    plan.save(path)
    return pq.read_table(path), path.read_bytes()


PLANS = [
    hk.plan("all-reduce", RING, size="1 MB", algorithm="ring"),
    hk.plan("all-to-all", RING, size="1 MB", algorithm="greedy"),
    hk.plan("all-gather", _PRODUCT, size="1 MB", algorithm="themis", chunks=4),
]
_SEEDS = [_saved(plan) for plan in PLANS]

KINDS = (
    pa.uint32(), pa.int64(), pa.uint8(), pa.float64(), pa.string(), pa.binary(), pa.bool_(),
    pa.list_(pa.uint32()), pa.null(), pa.date32(), pa.dictionary(pa.int32(), pa.string()),
)  # fmt: skip


def plan(data: bytes) -> None:
    """A plan's file: other values, columns, types and metadata, or other bytes."""
    draw = Draw(data)
    table, whole = draw.one_of(_SEEDS)
    if draw.below(8) == 0:
        return _read(_other_bytes(whole, draw))
    for _ in range(1 + draw.below(3)):
        table = draw.one_of(CHANGES)(table, draw)
    path = texts.written(b"", "plan.parquet")
    pq.write_table(table, path)
    _judge(path)
    return None


def _other_bytes(whole: bytes, draw: Draw) -> bytes:
    changed = bytearray(whole)
    for _ in range(draw.below(5)):
        place = draw.word() % len(changed)
        length = draw.below(9)
        changed[place : place + length] = draw.take(draw.below(9))
    return bytes(changed[: draw.word() % len(changed)] if draw.below(4) == 0 else changed)


def _read(data: bytes) -> None:
    _judge(texts.written(data, "plan.parquet"))


def _judge(path: Any) -> None:
    made = load_plan(path)
    repr(made)
    made.verify()
    assert hk.simulate(made).time_ps >= 0


def _value(draw: Draw) -> Any:
    return draw.one_of((0, 1, 2, 3, None, -1, 2**31, 2**32 - 1, 2**32, 1.5, "x", b"x", [1], True))


def _one_value(table: pa.Table, draw: Draw) -> pa.Table:
    place = draw.below(table.num_columns) if table.num_columns else 0
    if not table.num_columns or not table.num_rows:
        return table
    field = table.schema.field(place)
    values = table.column(place).to_pylist()
    values[draw.below(len(values))] = _value(draw)
    kind = field.type if draw.below(4) else draw.one_of(KINDS)
    try:
        column = pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        return table
    return table.set_column(place, field.name, column)


def _other_rows(table: pa.Table, draw: Draw) -> pa.Table:
    first = draw.below(8)
    return table.slice(first, draw.below(32))


def _other_columns(table: pa.Table, draw: Draw) -> pa.Table:
    names = table.column_names
    if not names:
        return table
    place = draw.below(len(names))
    match draw.below(4):
        case 0:
            return table.remove_column(place)
        case 1:
            return table.append_column(names[place], table.column(place))
        case 2:
            return table.rename_columns([*names[:place], draw.text(), *names[place + 1 :]])
        case _:
            return table.select(sorted(range(len(names)), key=names.__getitem__))


def _head(table: pa.Table, draw: Draw) -> pa.Table:
    metadata = dict(table.schema.metadata or {})
    if not metadata:
        return table
    key = draw.one_of(sorted(metadata))
    match draw.below(4):
        case 0:
            del metadata[key]
        case 1:
            metadata[key] = draw.take(draw.below(64))
        case 2 if b"offsets" in key or b"items" in key or b"demand" in key:
            kind = _BINARY[draw.one_of(("uint32", "uint64"))]
            numbers = [
                draw.one_of((0, 1, 2, 3, 250_000, 2**31, 2**32 - 1)) for _ in range(draw.below(9))
            ]
            metadata[key] = pack(np.array(numbers, kind)).encode()
        case _:
            metadata[key] = _other_json(metadata[key], draw)
    return table.replace_schema_metadata(metadata)


def _other_json(text: bytes, draw: Draw) -> bytes:
    try:
        tree = json.loads(text)
    except ValueError:
        return text
    node: Any = tree
    for _ in range(4):
        if not isinstance(node, dict | list) or not node:
            break
        keys = sorted(node) if isinstance(node, dict) else list(range(len(node)))
        key = draw.one_of(keys[:256])
        if draw.below(2) and isinstance(node[key], dict | list):
            node = node[key]
            continue
        if draw.below(4) == 0:
            del node[key]
        else:
            value = draw.one_of(ODD)
            node[key] = value if not isinstance(value, bytes) else "bytes"
        break
    return json.dumps(tree).encode("utf-8", "surrogatepass")


CHANGES: tuple[Callable[[pa.Table, Draw], pa.Table], ...] = (
    _one_value,
    _one_value,
    _other_rows,
    _other_columns,
    _head,
    _head,
)


def trace(data: bytes) -> None:
    """Files of a trace, and its groups: in a file of their own, or in metadata nodes."""
    draw = Draw(data)
    ranks = 1 + draw.below(3)
    how = draw.below(3)
    dependencies = draw.one_of(traces.DEPENDENCIES)
    rest = draw.rest()
    groups = None
    if how == 0:
        given, _, rest = rest.partition(b"\0\0")
        groups = texts.written(given, "groups.json")
    if how == 1:
        rest = _frame(b"") + _frame(_number(1, 1) + _number(3, 1) + _field(8, _field(1, rest)))
    size = len(rest) if how == 1 else -(-len(rest) // ranks)
    for rank in range(3):
        path = texts.written(
            rest[rank * size : (rank + 1) * size] if how != 1 else rest, f"t.{rank}.et"
        )
        if rank >= ranks:
            path.unlink()
    made = traces.load(path.with_name("t"), groups, dependencies=dependencies)
    traces.summarize(made)
    traces.groups_of(made)


def _varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _frame(message: bytes) -> bytes:
    return _varint(len(message)) + message
