"""Networks from elsewhere: shipped machines, files, graphs."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from hocket._core import Topology
from hocket.errors import SpecError
from hocket.topology import machines
from hocket.topology.build import build_topology
from hocket.topology.networkx import from_networkx as _spec_from_networkx
from hocket.topology.text import from_text
from hocket.units import shown

__all__ = ["from_networkx", "load", "names"]


def load(name_or_path: str | PathLike[str]) -> Topology:
    """Give a shipped machine by name, or a network from a file.

    Files are hocket's own YAML or ASTRA-sim's network ``.yml``.
    """
    text = str(name_or_path)
    if ":" in text and "/" not in text and Path(text).suffix not in (".yml", ".yaml"):
        raise SpecError(
            "name_or_path",
            f"{shown(text)} is no machine or file",
            "for a builder call its function, such as hocket.topology.mesh",
        )
    return build_topology(from_text(text, bandwidth=None, latency=None, option="name_or_path"))


def names() -> list[str]:
    """Names of the shipped machines."""
    return machines.names()


def from_networkx(
    graph: Any, *, bandwidth: str = "bandwidth", latency: str = "latency", kind: str = "kind"
) -> Topology:
    """Give a network from a networkx graph, directed or not, with or without parallel edges.

    Parameters
    ----------
    graph
        Nodes are NPUs unless their attribute ``kind`` is ``"switch"``; edges of an undirected graph go
        both ways.
    bandwidth, latency, kind
        Names of the attributes that hold these.
    """
    return build_topology(
        _spec_from_networkx(graph, bandwidth=bandwidth, latency=latency, kind=kind)
    )
