"""Graphs: which channels NCCL has, as it dumps them and as it reads them.

``NCCL_GRAPH_DUMP_FILE`` names a file that NCCL writes, ``NCCL_GRAPH_FILE`` one that it reads instead of
searching for channels. The core reads, checks and writes them (:mod:`hocket._core.nccl`).

References
----------
NVIDIA/nccl 2.30.7, src/graph/xml.cc, search.cc and connect.cc (Apache-2.0), read at commit 5067397.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from hocket import _core
from hocket._checks import instance_of, list_of, path_of
from hocket.errors import SpecError
from hocket.files.atomic import check_target, write_text
from hocket.files.raw import read_bytes
from hocket.topology.dump import place_in

Graph = _core.nccl.Graph

ID = {"ring": 0, "tree": 1, "nvls": 3}
"""Number of each algorithm's graph."""
JOINTS = {1: "balanced-tree", 2: "split-tree", 3: "tree", 4: "ring"}
"""How nodes are joined, by pattern."""
PLAIN_TREE = 3
"""The pattern of trees of which one GPU of a node has all that passes between nodes."""
_WHAT = "what NCCL writes to NCCL_GRAPH_DUMP_FILE"


def read_graph(path: str | PathLike[str]) -> tuple[Graph, ...]:
    """Read a file of graphs.

    Raises
    ------
    SpecError
        With file and line, for what is no such file or contradicts itself.
    """
    file = path_of("path", path)
    raw = read_bytes(file, _WHAT)
    try:
        return tuple(_core.nccl.parse_graphs(raw))
    except SpecError as error:
        raise error.but(origin=place_in(file, error)) from None


def graph_text(graphs: Sequence[Graph]) -> str:
    """Return a file of graphs as NCCL's own reader takes it.

    Raises
    ------
    SpecError
        That says which limit of NCCL is not kept: both rings and trees with as many channels, 32 at most,
        every GPU once in each, two NICs in each channel or in none, speeds above 0.
    """
    right = "give what hk.nccl.read_graph or design_graphs gives"
    each = [instance_of(Graph, "graphs", graph, right) for graph in list_of("graphs", graphs)]
    return _core.nccl.write_graphs(each)


def write_graph(path: str | PathLike[str], graphs: Sequence[Graph]) -> None:
    """Write a file for ``NCCL_GRAPH_FILE``, whole or not at all.

    Raises
    ------
    SpecError
        As :func:`graph_text`, or if the file cannot be written.
    """
    file = path_of("path", path)
    check_target(file)
    write_text(file, graph_text(graphs))
