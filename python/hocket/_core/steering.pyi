"""Hashes of switches, as the Rust core models them."""

from collections.abc import Callable
from typing import TypeAlias

from hocket._core.routing import Fabric

__all__ = [
    "find_label",
    "find_port",
    "hashed",
    "identify",
    "queue_pair_port",
    "switch_seed",
    "ways",
]

_Header: TypeAlias = tuple[str, str, int, int, int, int]
"""Source, destination, protocol, source port, destination port, flow label."""
_Hash: TypeAlias = tuple[str, int, int, int]
"""Algorithm, fields, seed, offset."""
_Stage: TypeAlias = tuple[_Hash, int, int]
"""Hash, ways, the way that is wanted."""

def ways(hash: _Hash, headers: list[_Header], ways: int) -> list[int]:
    """Return the way of each header, of so many."""

def find_port(
    header: _Header,
    forth: list[_Stage],
    back: list[_Stage],
    ports: tuple[int, int],
    first: int,
    taken: list[int],
) -> int:
    """Return the first source port of a range, from one on and around, that leads through all stages."""

def find_label(header: _Header, forth: list[_Stage], back: list[_Stage], first: int) -> int:
    """Return the first flow label, from one on and around, that leads through all stages."""

def identify(
    headers: list[_Header],
    hops: list[int],
    ways: int,
    algorithms: list[tuple[str, int]],
    seeds: tuple[int, int],
    most: int,
    progress: Callable[[str, int, int], object] | None,
) -> list[tuple[int, int, list[int | None]]]:
    """Return the hashes that explain which hop each header took: algorithm, seed, hop of each way."""

def hashed(
    fabric: Fabric,
    flows: list[tuple[int, int, int]],
    headers: list[_Header],
    hashes: list[_Hash],
) -> list[int]:
    """Return the choices that ToRs with these hashes, by number, make of flows with these headers."""

def queue_pair_port(queue_pairs: tuple[int, int], label: int) -> int:
    """Return the UDP source port of a queue pair of RoCEv2."""

def switch_seed(seed: int, level: int, number: int) -> int:
    """Return the seed of a switch of ecmp, drawn from that of the scheme."""
