"""``hocket deploy``: a folder with plans for the groups of a job."""

from __future__ import annotations

from typing import Annotated

from hocket.cli import options
from hocket.cli.command import Option, Panel
from hocket.cli.groups import Nodes
from hocket.cli.table import table_of
from hocket.formats.deployed import deploy as write_folder
from hocket.formats.deployed import machine_of
from hocket.formats.deployed_rows import DeployOptions
from hocket.nccl.gpus import check_gpu
from hocket.topology.build import build_topology


def deploy(
    *,
    network: Nodes,
    folder: Annotated[
        str,
        Option("--output", "-o", metavar="FOLDER", help="The folder to write, such as deploy/."),
    ],
    given: Annotated[DeployOptions, Panel("Deployment", rare=("launch", "copy_rate", "tolerance"))],
    json: options.Json = False,
) -> None:
    """Write plans for all sizes, collectives and groups of a job.

    For example: hocket deploy -t topo.xml --process-groups world,dp=2,tp=4 -o deploy/
    """
    spec = network.spec()
    topology, gpu = build_topology(spec), check_gpu(spec, None)
    with options.watching() as watch:
        made = write_folder(
            topology, folder, options=given, gpu=gpu, machine=machine_of(spec), progress=watch
        )
    if json:
        options.print_result("deployed", dict(made.to_dict()))
        return
    console = options.output()
    console.print(table_of(made, title=f"{made.folder} for {made.topology}"))
    for note in made.notes:
        console.print(note)
