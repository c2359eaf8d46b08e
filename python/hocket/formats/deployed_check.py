"""Deployed folders, judged without a GPU: hashes, proofs, rules of the runtime, figures of the manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hocket import _core
from hocket._core import Topology
from hocket._core import formats as core
from hocket.collectives.collective import Progress
from hocket.deployment.groups import labels
from hocket.deployment.manifest import (
    RUNTIME,
    Deployment,
    Entry,
    HashedFile,
    load_deployment,
)
from hocket.errors import Error, SpecError
from hocket.files.raw import read_text
from hocket.formats.deployed_figures import (
    PREDICTIONS,
    figures,
    library_among,
    names_and_nodes,
    nccl_ps,
    shared_name,
)
from hocket.formats.judgement import Fault, Judgement, faults_of, line_in
from hocket.formats.nccl_files import judge_graphs, judge_table
from hocket.nccl.graphs import read_graph
from hocket.nccl.tuner import read_tuner
from hocket.plans.plan import Plan
from hocket.simulation.run import Run, simulate
from hocket.topology.symmetry import Symmetry
from hocket.units import counted, format_size, printable, shown


def judge_deployed(
    _text: str, path: Path, said: Mapping[str, Any], progress: Progress | None
) -> Judgement:
    """Judge a deployed folder by its manifest: hashes, proofs, and the runtime's rules for programs."""
    deployment = load_deployment(path)
    manifest = deployment.manifest
    faults: list[Fault] = []
    checker = _Checker(deployment, runs=bool(said.get("run")))
    for done, entry in enumerate(manifest.entries):
        if progress is not None:
            progress("check", done, len(manifest.entries))
        faults += checker.faults_of(entry)
    faults += _of_nccl(deployment)
    made = manifest.made_for
    if made.model_dump() != RUNTIME:
        right = " ".join(RUNTIME.values())
        why = (
            f"the folder is for {made.runtime} {made.version}; its programs are judged for {right}"
        )
        faults.append(Fault("runtime", None, "made_for", why))
    count = sum(len(each.npus) for each in manifest.groups)
    summary = (
        f"a deployed folder for {made.runtime} {made.version} on {manifest.machine.topology}: "
        f"{counted(len(manifest.entries), 'plan')} for {counted(count, 'group')}"
    )
    names = labels([(each.name, each.npus) for each in manifest.groups])
    ran = ", and runs rightly on integers" if said.get("run") else ""
    right = f"every file is as the manifest says, every plan is proved, every program is right{ran}"
    notes = [
        f"{label}, {each.collective}, {format_size(each.from_bytes)} to "
        f"{format_size(each.to_bytes - 1)}: left to NCCL: {each.reason}"
        for label, group in zip(names, manifest.groups, strict=True)
        for each in group.left_to_nccl
    ]
    strange = sorted({each.name for each in deployment.folder.iterdir()} - {*deployment.names})
    if strange:
        notes.append(f"not of the folder, and of no use there: {printable(', '.join(strange))}")
    if manifest.hocket != _core.__version__:
        notes.append(
            f"predicted times are those of hocket {manifest.hocket}: they are not compared"
        )
    return Judgement(summary, right, tuple(faults), len(faults), tuple(notes))


class _Network:
    """A network of plans, with what is looked up for groups there."""

    def __init__(self, topology: Topology, gpu: str | None) -> None:
        self.topology, symmetry = topology, Symmetry(topology)
        self.key = cache(lambda npus: symmetry.key(npus, ordered=True))
        self.library = cache(lambda npus: library_among(topology, gpu, npus))


class _Checker:
    """Judges the entries of a folder, whose plans all have the network of the first.

    Where groups share links, that is the first of the groups of a name.
    """

    def __init__(self, deployment: Deployment, *, runs: bool) -> None:
        self._deployment, self._runs = deployment, runs
        self._networks: dict[str, _Network] = {}
        shares = deployment.manifest.estimates.shares_links
        self._name_of = {
            each: group.name if shares else ""
            for group in deployment.manifest.groups
            for each in group.entries
        }

    def faults_of(self, entry: Entry) -> Iterator[Fault]:
        """Yield what is wrong with a plan, its program, and what the manifest says of them."""
        deployment = self._deployment
        other = [*_other_file(deployment, entry.plan), *_other_file(deployment, entry.program)]
        yield from other
        if other:
            return
        try:
            run = simulate(Plan.load(deployment.folder / entry.plan.file))
        except Error as error:
            yield Fault("plan", None, entry.plan.file, error.why)
            return
        try:
            text = deployment.read(entry.program).decode()
            program = core.check_mscclpp(text, runs=self._runs)
        except UnicodeDecodeError:
            yield Fault("unreadable", None, entry.program.file, "is no text")
            return
        except SpecError as error:
            yield Fault("unreadable", None, entry.program.file, error.why)
            return
        yield from _within(entry.program.file, faults_of(program.findings))
        if not program.out_of_place:
            yield Fault("place", None, entry.id, "the program does not take separate buffers")
        wrong = [*self._of_machine(entry, run.plan)]
        if not wrong:
            wrong += [*self._of_groups(entry, run.plan), *self._of_figures(entry, run, program)]
        for why in wrong:
            yield Fault("manifest", None, entry.id, why)

    def _of_machine(self, entry: Entry, plan: Plan) -> Iterator[str]:
        """Yield how a plan's network is not the machine of the manifest."""
        manifest, network = self._deployment.manifest, plan.topology
        machine = manifest.machine
        name = self._name_of[entry.id]
        if name not in self._networks:
            self._networks[name] = _Network(network, machine.gpu)
        elif network != self._networks[name].topology:
            yield "the plan's network is not that of the first plan"
        groups = [group for group in manifest.groups if group.name == name]
        shared = shared_name(machine.topology, sum(len(group.npus) for group in groups))
        if network.name not in (machine.topology, shared if groups else ""):
            yield f"the plan's network is {network.name}, the manifest says {machine.topology}"
        if names_and_nodes(network) != [(each.name, each.node) for each in machine.npus]:
            yield "the plan's NPUs and nodes are not those of the machine"

    def _of_groups(self, entry: Entry, plan: Plan) -> Iterator[str]:
        """Yield the first group of each name whose NPUs have other links than the plan's."""
        own, key = tuple(plan.collective.npus), self._networks[self._name_of[entry.id]].key
        for group in self._deployment.manifest.groups:
            for npus in group.npus if entry.id in group.entries else ():
                if len(npus) == len(own) and key(tuple(npus)) != key(own):
                    yield (
                        f"the plan is for NPUs {shown(list(own))}, and NPUs {shown(npus)} of group "
                        f"{group.name} have other links"
                    )
                    break

    def _of_figures(self, entry: Entry, run: Run, program: core.Checked) -> Iterator[str]:
        """Yield each figure of the manifest that differs from that of the plan and its program."""
        manifest, collective = self._deployment.manifest, run.plan.collective
        kind, npus = collective.kind, tuple(collective.npus)
        if (program.collective, program.ranks) != (kind.replace("-", ""), len(npus)):
            does = f"{program.collective} of {program.ranks} ranks"
            yield f"the program does {does}, and the plan {kind} of {len(npus)}"
        library = self._networks[self._name_of[entry.id]].library(npus)
        nccl = nccl_ps(library, kind, collective.size)
        is_same = manifest.hocket == _core.__version__
        told = entry.model_dump()
        for key, has in figures(run, program, manifest.estimates, nccl).items():
            if has != told[key] and (is_same or key not in PREDICTIONS):
                yield f"{key} is {has} by the plan and its program, the manifest says {told[key]}"
        if entry.over_best > entry.over_bound:
            yield f"over_best is {entry.over_best}, more than over_bound, {entry.over_bound}"
        if not manifest.estimates.pays(entry.predicted_ps, entry.nccl_ps):
            yield "the plan is not as much faster than NCCL as estimates.tolerance says"


def _of_nccl(deployment: Deployment) -> Iterator[Fault]:
    """Yield what is wrong with the files for NCCL: its table for tuners, and its graphs."""
    fallback = deployment.manifest.fallback
    for graphs in fallback.graphs:
        wrong = list(_judged(deployment, graphs, judge_graphs))
        yield from wrong
        for npus in () if wrong else graphs.npus:
            gpus = len(npus) // len(deployment.manifest.nodes_of(npus))
            every = read_graph(deployment.folder / graphs.file)
            if {len(passed) for graph in every for _, passed, _ in graph.channels} != {gpus}:
                why = f"it has not the {gpus} GPUs that NPUs {shown(npus)} have on a node"
                yield Fault("manifest", None, graphs.file, why)
    if fallback.tuner is None:
        return
    wrong = list(_judged(deployment, fallback.tuner, judge_table))
    yield from wrong
    if not {fault.code for fault in wrong} & {"file", "unreadable"}:
        sizes = {len(npus) for group in deployment.manifest.groups for npus in group.npus}
        rows = read_tuner(deployment.folder / fallback.tuner.file).rows
        for ranks in sorted({row.ranks for row in rows if row.ranks is not None} - sizes):
            why = f"it has lines for {ranks} ranks, and no group has so many"
            yield Fault("manifest", None, fallback.tuner.file, why)


def _judged(
    deployment: Deployment, file: HashedFile, judge: Callable[..., Judgement]
) -> Iterator[Fault]:
    """Yield what is wrong with a file of another kind."""
    other = _other_file(deployment, file)
    yield from other
    if other:
        return
    path = deployment.folder / file.file
    try:
        found = judge(read_text(path, "a file of NCCL"), path, {}, None)
    except SpecError as error:
        yield Fault("unreadable", line_in(error), file.file, error.why)
        return
    yield from _within(file.file, found.faults)


def _within(file: str, faults: Sequence[Fault]) -> Iterator[Fault]:
    """Yield the faults of a file of the folder, whose name leads to each place."""
    for each in faults:
        yield Fault(each.code, each.line, f"{file} {each.place}".strip(), each.detail)


def _other_file(deployment: Deployment, file: HashedFile) -> list[Fault]:
    try:
        deployment.read(file)
    except SpecError as error:
        return [Fault("file", None, file.file, error.why)]
    return []
