"""The JSON Schema of sweep files, for editors: made of the keys that each command has."""

from __future__ import annotations

from typing import Any

from hocket.sweeps.commands import NAMES, command_named
from hocket.sweeps.keys import Key

_TYPES = {
    "text": ["string"],
    "whole": ["integer", "string"],
    "number": ["number", "string"],
    "truth": ["boolean"],
}
"""What a value may be by its column: quantities may be written with a unit, and several as a range."""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of sweep files; only reading tells whether values make sense."""
    from hocket.topology.cost_model import Costs

    costs = Costs.model_json_schema()
    definitions = costs.pop("$defs")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hocket sweep",
        "description": "A command, and a grid or a list of what it is given.",
        "type": "object",
        "additionalProperties": False,
        "required": ["command"],
        "properties": {
            "command": {"enum": list(NAMES), "description": "What runs at each point."},
            "set": {"type": "object", "description": "What all points share."},
            "grid": {"type": "object", "description": "Every combination of these."},
            "list": {"type": "array", "minItems": 1, "description": "Points, a mapping each."},
            "costs": {
                "description": "What links and switches cost, or a file that says so.",
                "anyOf": [{"type": "string"}, costs],
            },
        },
        "allOf": [_when(name) for name in NAMES],
        "$defs": definitions,
    }


def _when(name: str) -> dict[str, Any]:
    """Return which keys a command has."""
    keys = command_named(name).keys
    point = {
        "additionalProperties": False,
        "properties": {key: _one(each) for key, each in keys.items()},
    }
    grid = {
        "additionalProperties": False,
        "properties": {key: _several(each) for key, each in keys.items()},
    }
    return {
        "if": {"required": ["command"], "properties": {"command": {"const": name}}},
        "then": {"properties": {"set": point, "list": {"items": point}, "grid": grid}},
    }


def _one(key: Key) -> dict[str, Any]:
    if key.is_list:
        return {"type": "array", "items": {"type": "string"}}
    types = _TYPES[key.column]
    return {"type": types[0] if len(types) == 1 else types}


def _several(key: Key) -> dict[str, Any]:
    """Return what stands in a grid: a list of values, or one of them, or a range."""
    one = _one(key)
    return {"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]}
