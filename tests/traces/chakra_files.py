"""Writes Chakra execution traces, byte by byte, for tests: good ones and bad ones."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

METADATA, MEMORY_LOAD, MEMORY_STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(1, 8)
ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, SCATTER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER = range(8)
BARRIER = 9

VARINTS = {"int32": 7, "int64": 9, "uint32": 11, "uint64": 13, "bool": 27}
ZIGZAGS = {"sint32": 15, "sint64": 17}
FIXED = {
    "double": (3, "<d"),
    "float": (5, "<f"),
    "fixed32": (19, "<I"),
    "fixed64": (21, "<Q"),
    "sfixed32": (23, "<i"),
    "sfixed64": (25, "<q"),
}
INTEGERS = (*VARINTS, *ZIGZAGS, "fixed32", "fixed64", "sfixed32", "sfixed64")

Value = int | float | bool | str | Sequence[bool] | tuple[str, int | float]


@dataclass
class Node:
    """A node as it will be written; attributes are numbers, texts, truths or (kind, number)."""

    id: int
    kind: int = COMPUTE
    name: str = "node"
    control: Sequence[int] = ()
    data: Sequence[int] = ()
    micros: int = 0
    inputs: str | None = None
    attributes: dict[str, Value] = field(default_factory=dict)
    packed: bool = True

    def encode(self) -> bytes:
        parts = [number(1, self.id), text(2, self.name), number(3, self.kind)]
        for tag, ids in ((4, self.control), (5, self.data)):
            if self.packed and ids:
                parts.append(chunk(tag, b"".join(map(varint, ids))))
            else:
                parts += [number(tag, each) for each in ids]
        parts.append(number(7, self.micros))
        if self.inputs is not None:
            parts.append(chunk(8, text(1, self.inputs)))
        parts += [chunk(10, attribute(*each)) for each in self.attributes.items()]
        return b"".join(parts)


def collective(
    id: int, call: int | str, size: int, group: str | None = None, **keys: object
) -> Node:
    """A collective node."""
    attributes: dict[str, Value] = {"comm_type": call, "comm_size": size}
    if group is not None:
        attributes["pg_name"] = group
    return Node(id, COLLECTIVE, attributes=attributes, **keys)  # type: ignore[arg-type]


def send(id: int, to: int, size: int, tag: int = 0, **keys: object) -> Node:
    """A send node."""
    attributes: dict[str, Value] = {"comm_dst": to, "comm_size": size, "comm_tag": tag}
    return Node(id, SEND, attributes=attributes, **keys)  # type: ignore[arg-type]


def receive(id: int, source: int, size: int, tag: int = 0, **keys: object) -> Node:
    """A receive node."""
    attributes: dict[str, Value] = {"comm_src": source, "comm_size": size, "comm_tag": tag}
    return Node(id, RECEIVE, attributes=attributes, **keys)  # type: ignore[arg-type]


def trace_bytes(nodes: Iterable[Node], version: str = "0.0.4") -> bytes:
    """A file: its metadata, then the nodes."""
    messages = [text(1, version), *(node.encode() for node in nodes)]
    return b"".join(varint(len(message)) + message for message in messages)


def write(prefix: Path, ranks: Sequence[Iterable[Node]]) -> Path:
    """Write a file for each rank, and give back the prefix."""
    for rank, nodes in enumerate(ranks):
        prefix.with_name(f"{prefix.name}.{rank}.et").write_bytes(trace_bytes(nodes))
    return prefix


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag: int, value: int) -> bytes:
    return varint(tag << 3) + varint(value)


def chunk(tag: int, content: bytes) -> bytes:
    return varint(tag << 3 | 2) + varint(len(content)) + content


def text(tag: int, content: str) -> bytes:
    return chunk(tag, content.encode())


def attribute(name: str, value: Value) -> bytes:
    return text(1, name) + _value(value)


def _value(value: Value) -> bytes:
    if isinstance(value, bool):
        return number(27, value)
    if isinstance(value, int):
        return number(9, value)
    if isinstance(value, float):
        return _value(("double", value))
    if isinstance(value, str):
        return text(29, value)
    if isinstance(value, tuple) and isinstance(value[0], str):
        kind, of = value
        if kind in VARINTS:
            return number(VARINTS[kind], int(of))
        if kind in ZIGZAGS:
            return number(ZIGZAGS[kind], int(of) << 1 if of >= 0 else (-int(of) << 1) - 1)
        tag, form = FIXED[kind]
        wire = 1 if form[1] in "dqQ" else 5
        return varint(tag << 3 | wire) + struct.pack(form, of)
    return chunk(28, chunk(1, bytes(map(int, value))))
