"""Deployed folders, judged without a GPU: hashes, proofs, rules of the runtime, figures of the manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hocket._core import formats as core
from hocket.collectives.collective import Progress
from hocket.deployment.manifest import (
    ALIGNMENT,
    RUNTIME,
    Deployment,
    Entry,
    HashedFile,
    load_deployment,
)
from hocket.errors import SpecError, VerificationError
from hocket.files.raw import read_text
from hocket.formats.judgement import Fault, Judgement, faults_of, line_in
from hocket.formats.nccl_files import judge_graphs, judge_table
from hocket.nccl.tuner import read_tuner
from hocket.plans.plan import Plan
from hocket.units import counted, format_size


def judge_deployed(
    _text: str, path: Path, said: Mapping[str, Any], progress: Progress | None
) -> Judgement:
    """Judge a deployed folder by its manifest: hashes, proofs, and the runtime's rules for programs."""
    deployment = load_deployment(path)
    manifest = deployment.manifest
    faults: list[Fault] = []
    for done, entry in enumerate(manifest.entries):
        if progress is not None:
            progress("check", done, len(manifest.entries))
        faults += _faults_of(entry, deployment, runs=bool(said.get("run")))
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
    ran = ", and runs rightly on integers" if said.get("run") else ""
    right = f"every file is as the manifest says, every plan is proved, every program is right{ran}"
    notes = [
        f"{group.name}, {each.collective}, {format_size(each.from_bytes)} to "
        f"{format_size(each.to_bytes - 1)}: left to NCCL: {each.reason}"
        for group in manifest.groups
        for each in group.left_to_nccl
    ]
    return Judgement(summary, right, tuple(faults), len(faults), tuple(notes))


def _faults_of(entry: Entry, deployment: Deployment, *, runs: bool) -> Iterator[Fault]:
    """Yield what is wrong with a plan and its program."""
    other = [*_other_file(deployment, entry.plan), *_other_file(deployment, entry.program)]
    yield from other
    if other:
        return
    try:
        plan = Plan.load(deployment.folder / entry.plan.file).verify()
    except VerificationError as error:
        yield Fault("plan", None, entry.plan.file, error.why)
        return
    try:
        checked = core.check_mscclpp(deployment.read(entry.program).decode(), runs=runs)
    except UnicodeDecodeError:
        yield Fault("unreadable", None, entry.program.file, "is no text")
        return
    except SpecError as error:
        yield Fault("unreadable", None, entry.program.file, error.why)
        return
    for fault in faults_of(checked.findings):
        yield Fault(
            fault.code, fault.line, f"{entry.program.file} {fault.place}".strip(), fault.detail
        )
    collective, network = plan.collective, plan.topology
    machine = deployment.manifest.machine
    facts = {
        "the plan's network": (network.name, machine.topology),
        "the plan's algorithm": (plan.algorithm, entry.algorithm),
        "the plan's collective": (collective.kind, entry.collective),
        "the plan's number of ranks": (len(collective.npus), entry.ranks),
        "the plan's use of switches": (uses_switches(plan), entry.switches),
        "the plan's size": (collective.size, entry.planned_bytes),
        "the program's collective": (checked.collective, entry.collective.replace("-", "")),
        "the program's number of ranks": (checked.ranks, entry.ranks),
        "the program's name": (checked.name, entry.name),
        "the program's protocol": (checked.protocol, entry.protocol),
        "the program's unit": (ALIGNMENT * checked.chunks, entry.unit_bytes),
        "the program's number of blocks": (checked.blocks, entry.blocks),
        "the program's largest size": (checked.max_bytes, entry.max_bytes),
    }
    for what, (has, told) in facts.items():
        if has != told:
            yield Fault("manifest", None, entry.id, f"{what} is {has}, the manifest says {told}")
    if list(network.device_names[: network.npu_count]) != [each.name for each in machine.npus]:
        yield Fault("manifest", None, entry.id, "the plan's NPUs are not those of the machine")
    if not checked.out_of_place:
        yield Fault("place", None, entry.id, "the program does not take separate buffers")


def uses_switches(plan: Plan) -> bool:
    """Return whether switches sum or multicast in a plan."""
    ends, npus = plan.transfers, plan.topology.npu_count
    return bool((ends.src >= npus).any() or (ends.dst >= npus).any())


def _of_nccl(deployment: Deployment) -> Iterator[Fault]:
    """Yield what is wrong with the files for NCCL: its table for tuners, and its graphs."""
    fallback = deployment.manifest.fallback
    for graphs in fallback.graphs:
        yield from _judged(deployment, graphs, judge_graphs)
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
    for fault in found.faults:
        yield Fault(fault.code, fault.line, f"{file.file} {fault.place}".strip(), fault.detail)


def _other_file(deployment: Deployment, file: HashedFile) -> list[Fault]:
    try:
        deployment.read(file)
    except SpecError as error:
        return [Fault("file", None, file.file, error.why)]
    return []
