"""``hocket nccl``: what NCCL would do."""

from __future__ import annotations

from typing import Annotated

from hocket.cli import options
from hocket.cli.command import Option
from hocket.cli.groups import Nodes
from hocket.cli.table import Table
from hocket.errors import listed
from hocket.nccl.gpus import check_gpu
from hocket.nccl.model import USUAL_CPU
from hocket.nccl.prediction import predict as nccl_predict
from hocket.topology.build import build_topology
from hocket.units import format_size, format_time_ps


def predict(
    kind: options.MeasuredKind = "all-reduce",
    *,
    network: Nodes,
    size: options.Size,
    gpu: Annotated[
        str | None,
        Option(
            "--gpu",
            help="GPU: volta, ampere, hopper, blackwell or a compute capability such as sm86; "
            "mi250 and mi300x ask RCCL. Default: from the dump, profile or NVLinks.",
        ),
    ] = None,
    cpu: Annotated[
        str,
        Option(
            "--cpu",
            help="Processors of the nodes, if there are several: intel, amd (EPYC), other or "
            "mixed.",
        ),
    ] = USUAL_CPU,
    json: options.Json = False,
) -> None:
    """Predict which algorithm, protocol and channels NCCL or RCCL picks.

    For example: hocket predict --nccl all-reduce --topology dgx_a100_2box --size 64MiB
    """
    spec = network.spec()
    named = check_gpu(spec, gpu)
    found = nccl_predict(kind, build_topology(spec), size=size, gpu=named, cpu=cpu)
    if json:
        options.print_result("nccl-prediction", found.to_dict())
        return
    console = options.output()
    on = "" if found.nodes == 1 else f" on {found.nodes} nodes"
    what = f"{found.kind} of {format_size(found.size)} among {found.npus} GPUs{on}"
    table = Table(title=f"{what}, as {found.library} {found.version} weighs it ({found.gpu})")
    table.add_rows(found.choices)
    console.print(table)
    sums = f", {found.nvls_channels} nvls channels" if found.nvls_channels else ""
    log = f"; its log says {found.coll_channels} coll channels{sums}" if found.coll_channels else ""
    console.print(f"{found.library} picks {found.algorithm} with {found.protocol}{log}")
    below: dict[str, list[str]] = {}
    for each, reason in zip(found.choices, found.reasons, strict=True):
        if reason is not None:
            below.setdefault(reason, []).append(f"{each.algorithm} with {each.protocol}")
    if below:
        console.print(f"bound {format_time_ps(found.bound.time_ps)}: {found.bound.witness}")
    for reason, names in below.items():
        console.print(f"below the bound: {listed(names)}: {reason}")
    console.note(
        f"{found.library}'s own prediction ranks algorithms; hocket predict says what is measured"
    )
    for note in found.notes:
        console.note(note)
