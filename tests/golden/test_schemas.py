"""The names and types of every schema, an object a line: what readers of hocket's files rely on.

``make accept`` writes it anew, where another schema is meant.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hocket.cli.schema import KINDS, schema_text

FILE = Path(__file__).with_name("schemas.txt")


def summary() -> str:
    """Return the objects of all schemas."""
    lines = []
    for kind in KINDS:
        schema = json.loads(schema_text(kind))
        named = {each["title"]: each for each in schema.get("oneOf", []) if "title" in each}
        for name, each in {"": schema, **named, **schema.get("$defs", {})}.items():
            if "properties" in each:
                lines.append(f"{kind} {name or '(file)'}: {_keys(each)}")
    return "\n".join(lines) + "\n"


def _keys(each: dict[str, Any]) -> str:
    needed = each.get("required", [])
    return ", ".join(
        f"{name}{'' if name in needed else '?'} {_type(value)}"
        for name, value in sorted(each["properties"].items())
    )


def _type(value: Any) -> str:
    if not isinstance(value, dict):
        return "anything"
    if "$ref" in value:
        return value["$ref"].rpartition("/")[2]
    for several in ("anyOf", "oneOf"):
        if several in value:
            return "|".join(map(_type, value[several]))
    if "const" in value or "enum" in value:
        return json.dumps(value.get("const", value.get("enum")), separators=(",", ":"))
    kind = str(value.get("type", "anything"))
    inner = value.get("items") or value.get("additionalProperties")
    return f"{kind}<{_type(inner)}>" if inner else kind


def test_schemas_change_only_when_that_is_meant(accept: bool) -> None:
    if accept:
        FILE.write_text(summary(), encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == summary()
