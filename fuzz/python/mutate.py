"""Mutations that keep the form of what is mutated: trees of YAML and JSON, and lists of arguments."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import command
import yaml
from draw import ODD

Mutator = Callable[[bytes, random.Random], bytes]

_SCALARS = [
    value for value in ODD if not isinstance(value, bytes | list | dict) and value != "\ud800"
]
_SCALARS += [
    "200 Gb/s",
    "700 ns",
    "64 KiB",
    "13e9",
    "1.2 s",
    "paper",
    "mesh",
    "torus",
    "clos",
    "Ring",
    "Switch",
]


def argument(data: bytes, draw: random.Random) -> bytes:
    """Another list of arguments."""
    words = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(words) + 1)
        new = draw.choice(command.WORDS)
        kind = draw.randrange(4)
        if kind == 0 or place == len(words):
            words.insert(place, new)
        elif kind == 1 and len(words) > 1:
            del words[place]
        else:
            words[place] = new
    return "\n".join(words).encode("utf-8", "surrogateescape")


def _tree(tree: Any, draw: random.Random) -> Any:
    """A tree with one node that is another."""
    places: list[tuple[Any, Any]] = []
    keys: list[str] = []
    _walk(tree, places, keys)
    if not places:
        return draw.choice(_SCALARS)
    node, key = draw.choice(places)
    kind = draw.randrange(8)
    if kind == 0:
        del node[key]
    elif kind == 1:
        other, its = draw.choice(places)
        node[key] = json.loads(json.dumps(other[its], default=str))
    elif kind == 2 and isinstance(node, dict):
        node[draw.choice([*keys, "x", 1, None])] = node.pop(key)
    elif kind == 3 and isinstance(node, list):
        node.insert(key, node[key])
    elif kind == 4:
        node[key] = [node[key]]
    elif kind == 5 and isinstance(node, dict):
        node[draw.choice([*keys, "x"])] = draw.choice(_SCALARS)
    elif isinstance(node[key], int) and draw.random() < 0.5:
        node[key] = draw.choice(
            [node[key] + 1, node[key] - 1, node[key] * 2, 0, -node[key], 1 << 20]
        )
    else:
        node[key] = draw.choice(_SCALARS)
    return tree


def _walk(node: Any, places: list[tuple[Any, Any]], keys: list[str], depth: int = 0) -> None:
    if depth > 20 or len(places) > 2_000:
        return
    pairs = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    for key, value in list(pairs):
        places.append((node, key))
        if isinstance(key, str):
            keys.append(key)
        _walk(value, places, keys, depth + 1)


def yaml_tree(data: bytes, draw: random.Random) -> bytes:
    """Another YAML file."""
    try:
        tree = yaml.load(data, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for _ in range(draw.randint(1, 3)):
            tree = _tree(tree, draw)
        flow = draw.choice([True, False, None])
        return yaml.safe_dump(tree, default_flow_style=flow, allow_unicode=True).encode()
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return data


def json_tree(data: bytes, draw: random.Random) -> bytes:
    """Another JSON file."""
    try:
        tree = json.loads(data)
        for _ in range(draw.randint(1, 3)):
            tree = _tree(tree, draw)
        return json.dumps(tree).encode()
    except (ValueError, RecursionError, TypeError):
        return data


MUTATORS: dict[str, Mutator] = {
    "topology_file": yaml_tree,
    "jobs_file": yaml_tree,
    "workload_file": yaml_tree,
    "collective_file": yaml_tree,
    "schedule_file": json_tree,
    "command": argument,
}
