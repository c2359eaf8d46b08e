"""Deployed folders, made of the fastest plans that a runtime executes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from hocket._checks import check_function, instance_of, path_of
from hocket._options import options_of
from hocket._results import HIDDEN, Column, ListResult, Result, said
from hocket.collectives.collective import Progress
from hocket.deployment.groups import labels
from hocket.deployment.manifest import Deployment, load_deployment
from hocket.errors import Error, InfeasibleError, SpecError
from hocket.files.atomic import check_folder, replacing_folder
from hocket.formats.deployed_folder import write_folder
from hocket.formats.deployed_rows import APART, DeployOptions, group_classes
from hocket.nccl.gpus import gpu_named
from hocket.nccl.machine import Machine, load_machine
from hocket.nccl.prediction import library_on, network_and_gpu
from hocket.topology.text import from_text
from hocket.units import counted

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    from hocket.topology.sources import TopologyLike
    from hocket.topology.spec import TopologySpec

    class DeployKeywords(TypedDict, total=False):
        """Keywords of :func:`deploy`: those of :class:`DeployOptions`."""

        process_groups: str
        collectives: str
        sizes: str
        processors: int
        max_ctas: int
        packets: int | str | None
        launch: str | float
        copy_rate: str | float
        tolerance: float
        share: bool


_FEW = 8
"""Groups that a note lists."""


@dataclass(frozen=True)
class DeployedRange(Result):
    """Sizes of a collective of a group, and what does them.

    Attributes
    ----------
    group
        Name of the groups.
    groups
        How many of them share the plan.
    collective
        What is done.
    from_bytes, to_bytes, last_bytes
        From which size of the whole vector on, and below which; and the last below that.
    planned_bytes
        The largest size that was planned.
    runs
        The algorithm of the plan; ``NCCL`` if it is left to NCCL.
    predicted_ps, nccl_ps
        What the plan takes with launch and copies, and what NCCL is predicted to take, at the size that
        was planned. None if unknown.
    why
        Why it is left to NCCL; empty for a plan.
    """

    group: str = field(metadata=said(column=Column("group", leaves=0)))
    groups: int = field(metadata=said(column=Column("groups", leaves=4)))
    collective: str = field(metadata=said(column=Column("collective", leaves=0)))
    from_bytes: int = field(metadata=said(column=Column("from", leaves=0, is_given=True)))
    to_bytes: int
    last_bytes: int = field(metadata=said(column=Column("to", leaves=0, is_given=True)))
    planned_bytes: int = field(metadata=said(column=Column("timed at", leaves=5, is_given=True)))
    runs: str = field(metadata=said(column=Column("runs", leaves=0)))
    predicted_ps: int | None = field(metadata=said(column=Column("plan", leaves=1)))
    nccl_ps: int | None = field(metadata=said(column=Column("NCCL", leaves=2)))
    why: str = field(metadata=said(column=Column("why", leaves=3, is_prose=True)))


@dataclass(frozen=True, repr=False)
class Deployed(ListResult[DeployedRange]):
    """A folder that was written.

    Attributes
    ----------
    folder
        Where it is.
    topology
        The network for which it was made.
    files
        Names of the files in it.
    ranges
        What does which sizes.
    deployment
        What was written.
    notes
        What is to be known of it.
    """

    _table = "ranges"

    folder: str
    topology: str
    files: tuple[str, ...]
    ranges: tuple[DeployedRange, ...]
    deployment: Deployment = field(metadata=HIDDEN)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Deployed: {len(self)} ranges in {self.folder}>"


def deploy(
    topology: TopologyLike,
    folder: str | PathLike[str],
    *,
    options: DeployOptions | None = None,
    gpu: str | None = None,
    machine: Machine | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[DeployKeywords],
) -> Deployed:
    """Write a folder with plans for all sizes, collectives and groups of a job.

    Each plan is proved and fits the runtime. With its launch and the copies of its stage it is predicted to
    be faster than NCCL. Groups that are alike in the network share plans.

    Parameters
    ----------
    topology
        A network, or text as of :func:`hocket.topology.load`. Rank i of the job is its NPU i.
    folder
        The folder to write; one that is there is replaced if it was deployed before.
    options
        What it has.
    gpu
        As for :func:`hocket.nccl.predict`; by default that of a dump.
    machine
        As of :func:`hocket.nccl.load_machine`, for bus ids of GPUs and graphs of NCCL; by default that
        of the dumps which `topology` names.
    progress
        Called as ``progress(stage, done, total)``.
    keywords
        Any option of :class:`DeployOptions` by its name, in place of the one in `options`.

    Raises
    ------
    SpecError
        For input that makes no sense, or a folder that has other files.
    InfeasibleError
        If no group has any plan.
    """
    given = options_of(DeployOptions, options, keywords)
    check_function("progress", progress)
    target = path_of("folder", folder)
    if machine is not None:
        instance_of(Machine, "machine", machine, "make one by hk.nccl.load_machine(...)")
    network, gpu = network_and_gpu(topology, gpu)
    if machine is None and isinstance(topology, str | PathLike):
        machine = machine_of(from_text(str(topology), bandwidth=None, latency=None))
    if gpu is None:
        with suppress(Error):  # a part of the network, with fewer links, would tell another GPU
            gpu = library_on(network).known.name
    else:
        with suppress(InfeasibleError):  # of a GPU that no model knows, nothing is predicted
            gpu_named(gpu)
    is_own = _files_of(target).__contains__
    check_folder(target, is_own)  # so that nobody plans for a folder that cannot be written
    made = list(group_classes(network, gpu, given, progress))
    if not any(row.program for each in made for row in each.rows):
        whys = dict.fromkeys(row.why for each in made for row in each.rows)
        why = "; ".join([*whys][:3])
        right, nodes = "use NCCL alone", len(network.groups)
        if APART in whys and network.npu_count > nodes:
            inside = f"dp={nodes},tp={network.npu_count // nodes}"
            right = f"name groups within nodes, such as process_groups {inside}"
        raise InfeasibleError(None, f"all is left to NCCL: {why}", right)
    with replacing_folder(target, is_own) as at:
        manifest = write_folder(at, network, gpu, machine, given, made)
    ranges = tuple(
        DeployedRange(
            each.name,
            len(each.npus),
            row.kind,
            row.from_bytes,
            row.to_bytes,
            row.to_bytes - 1,
            row.planned_bytes,
            "NCCL" if row.program is None else row.program.plan.algorithm,
            row.staged_ps,
            row.nccl_ps,
            row.why,
        )
        for each in made
        for row in each.rows
    )
    notes = [
        f"{counted(len(manifest.entries), 'plan')} for "
        f"{counted(sum(len(each.npus) for each in made), 'group')}; each was proved"
    ]
    names = labels([(each.name, each.npus) for each in made])
    unlike = [name for name, each in zip(names, made, strict=True) if name != each.name]
    if unlike:
        more = f"; and {len(unlike) - _FEW} more" if len(unlike) > _FEW else ""
        listed = "; ".join(unlike[:_FEW]) + more
        notes.append(f"groups of one name with unlike plans, in this order: {listed}")
    if all(row.nccl_ps is None for each in made for row in each.rows):
        notes.append("NCCL's model says nothing of this network, so all plans that fit are kept")
    deployment = Deployment(target, manifest)
    return Deployed(str(target), network.name, deployment.names, ranges, deployment, tuple(notes))


def machine_of(spec: TopologySpec) -> Machine | None:
    """Return the machine of the dumps that a network was made of, or None if it was made of none."""
    files = [(dump, None) for dump in spec.dumps]
    return load_machine(files, slow=spec.slow) if files else None


def _files_of(folder: Path) -> set[str]:
    """Return the names of the files of a folder that was deployed before; none of any other."""
    try:
        return set(load_deployment(folder).names)
    except SpecError:
        return set()
