"""Small topology files, and what their readers make of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocket as hk

ROOT = Path(__file__).parents[2]
ASTRA = Path(__file__).parents[1] / "data" / "astra"
GB, GIB = 10**9, 2**30

MESH = "builder: mesh\nsize: [3, 3]\nbandwidth: 25 GB/s\nlatency: 1 us\n"
RING = "builder: ring\nnpus: 4\nbandwidth: 1 GB/s\nlatency: 1 us\n"
DIMS = "dims:\n  - {kind: Ring, size: 4, bandwidth: 1 GB/s, latency: 1 us}\n"
KIND = "npus: [a, b]\nlink_kinds:\n  k: {bandwidth: 1 GB/s, latency: 1 us}\n"
PAIR = KIND + "links:\n"
NETWORK = (
    "topology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 50.0, 25.0 ]\n"
    "latency: [ 500, 20 ]\n"
)
JARGON = ("input should", "valid ", "dictionary", "instance", "validation", "<", "NoneType", "Tag")


def load(folder: Path, text: str | bytes) -> hk.Topology:
    file = folder / "net.yml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return hk.topology.load(file)


def refusal(folder: Path, text: str | bytes) -> str:
    """The message about a wrong file, less the name of the file that it begins with."""
    with pytest.raises(hk.SpecError) as error:
        load(folder, text)
    message = str(error.value)
    file = str(folder / "net.yml")
    assert message.startswith((f"{file}: ", f"{file}, line ")), message
    assert len(message.splitlines()) == 1
    rest = message.removeprefix(file).removeprefix(": ").removeprefix(", ")
    assert len(rest) < 320
    assert not [word for word in JARGON if word in rest]
    assert ";" in rest  # what is wrong; what would be right
    return rest


def links(topology: hk.Topology) -> list[tuple[str, str, int, int]]:
    names = topology.device_names
    columns = (topology.link_src, topology.link_dst)
    values = (topology.link_bandwidth, topology.link_latency_ps)
    return [
        (names[a], names[b], int(rate), int(delay))
        for a, b, rate, delay in zip(*columns, *values, strict=True)
    ]
