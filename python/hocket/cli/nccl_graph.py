"""``hocket nccl graph``: a file by which NCCL runs the rings and trees that hocket finds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hocket.cli import options
from hocket.cli.command import Argument, Option
from hocket.cli.nccl_audit import LikeNodes
from hocket.cli.numbers import percent
from hocket.errors import SpecError
from hocket.nccl.design import GraphDesign, design_graphs
from hocket.nccl.machine import load_machine
from hocket.topology.slow import read_slow
from hocket.units import counted, format_time_ps


def graph(
    topologies: Annotated[
        list[str],
        Argument(
            metavar="TOPOLOGY",
            help="File from NCCL_TOPO_DUMP_FILE. If nodes differ: one file of each, in the order "
            "of nodes.",
        ),
    ],
    *,
    output: Annotated[
        str, Option("--output", "-o", help="The file to write. If nodes differ: one per node.")
    ],
    nodes: LikeNodes = 1,
    slow: options.SlowParts = None,
    gpus: Annotated[
        str | None,
        Option(
            "--gpus",
            metavar="0-3",
            help="Numbers of the GPUs of each node in the group that the file is for. Default: all.",
        ),
    ] = None,
    hosts: Annotated[
        str | None,
        Option(
            "--hosts",
            metavar="A,B",
            help="Names of the nodes, in their order; also writes the files of hosts and ranks.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write a file for NCCL_GRAPH_FILE: rings and trees that avoid links and NICs that are down or slow.

    For example: hocket nccl graph topo.xml -o graph.xml
    """
    if nodes < 1 or nodes > 4096:
        raise SpecError("--nodes", f"{nodes} is no number of nodes", "give 1 to 4096")
    files = [(Path(each), None) for each in topologies]
    parts = read_slow(slow or [])
    machine = load_machine(files, nodes, slow=parts, gpus=() if gpus is None else gpus)
    design = design_graphs(machine)
    written = design.write(output, hosts=[] if hosts is None else hosts.split(","))
    if json:
        options.print_result(
            "nccl-graph", {"files": [str(file) for file in written], **design.to_dict()}
        )
        return
    _print(design, written)


def _print(design: GraphDesign, written: tuple[Path, ...]) -> None:
    console = options.output()
    console.print(f"written to {', '.join(str(file) for file in written)}")
    ring = design.graphs[0][0]
    near = f"GPUs {ring.type_intra}"
    if len(design.machine.nodes) > 1:
        near += f", NICs {ring.type_inter}"
    console.print(
        f"{counted(len(ring.channels), 'channel')} of {ring.speed_intra:.4g} GB/s; {near}"
    )
    time, bound = design.run.time_ps, design.run.lower_bound.time_ps
    over = percent(time / bound - 1)
    what = "an all-reduce of 1 GiB along the rings"
    console.print(f"{what}: {format_time_ps(time)}, {over}% above the lower bound")
    for line in design.left_out:
        console.print(line)
    for warning in design.warnings:
        console.print(f"WARNING: {warning}")
