"""What each rank knows when a group is made, and the verdict that all reach from it alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from hocket.deployment.manifest import MARGIN, Deployment, load_deployment
from hocket.deployment.route import STAGE, PlannedGroup
from hocket.errors import SpecError
from hocket.units import format_size, parse_size


@dataclass(frozen=True)
class Facts:
    """What a rank knows.

    Attributes
    ----------
    npu
        Its NPU in the machine of the manifest: its rank in the job, unless its bus id says another.
    host, device
        Where it runs: the host, and the GPU by its UUID; on CPUs the process.
    manifest
        Hash of the manifest that it read; empty if it read none.
    wrong
        What was wrong when it read the folder or loaded the engine; empty if nothing.
    engine
        What runs plans, with its version: ``"cpu"``, ``"mscclpp 0.9.0"``, or hocket's own interpreter,
        ``"hocket 0.1.0"``.
    processors, capability
        Of its GPU; 0 and empty on CPUs.
    groups
        Groups of this process that used the engine before.
    stage
        Bytes of each buffer of a stage.
    bus
        PCI bus id of its GPU, as ``"0000:1a:00.0"``; empty if it is not known, and on CPUs.
    multicast
        Whether its GPU makes memory to which switches multicast.
    one_gpu
        Whether ranks may share a GPU, as only tests do.
    debug
        Whether it compares each call with those of the others.
    """

    npu: int
    host: str
    device: str
    manifest: str = ""
    wrong: str = ""
    engine: str = "cpu"
    processors: int = 0
    capability: str = ""
    groups: int = 0
    stage: int = STAGE
    bus: str = ""
    multicast: bool = False
    one_gpu: bool = False
    debug: bool = False

    def to_text(self) -> str:
        """Return it as text for a store."""
        return json.dumps(asdict(self))

    @staticmethod
    def of_text(text: str | bytes) -> Facts:
        """Return what a rank put into a store."""
        return Facts(**json.loads(text))


def verdict(facts: Sequence[Facts], deployment: Deployment | None) -> PlannedGroup:
    """Return what is planned for a group: the same at all ranks, as it needs what all know alone.

    Parameters
    ----------
    facts
        Of all ranks, in their order.
    deployment
        The folder, or None if this rank read none; then the facts say so.

    Returns
    -------
    PlannedGroup
        With the reason, if NCCL does everything.
    """
    count = len(facts)
    reason = _reason(facts)
    if reason or deployment is None:
        return PlannedGroup("", count, reason=reason or "no folder is deployed")
    try:
        npus = _npus(facts, deployment)
    except SpecError as error:
        return PlannedGroup("", count, reason=error.why)
    group = deployment.group_of(npus)
    if group is None:
        reason = f"the folder has no group of NPUs {_listed(npus)}"
        other = deployment.in_another_order(npus)
        right = "deploy with --process-groups that have it"
        if other is not None:
            right = f"it has them as {_listed(other)}: start ranks in this order"
        reason += f"; {right}"
        return PlannedGroup("", count, reason=reason)
    entries = tuple(deployment.entries[each] for each in group.entries)
    if not facts[0].engine.startswith(deployment.manifest.made_for.runtime):
        # Other engines run the plans: there are no packets.
        entries = tuple(each.model_copy(update={"protocol": "Simple"}) for each in entries)
    reason = _misfit(facts, deployment, max((each.blocks for each in entries), default=0))
    packets = all(each.groups == 0 for each in facts) and _is_sole(deployment, npus)
    switches = all(each.multicast or each.engine == "cpu" for each in facts)
    stage = facts[0].stage
    return PlannedGroup(group.name, count, entries, reason, packets, stage, switches=switches)


def _listed(npus: Sequence[int]) -> str:
    return ", ".join(map(str, npus[:8])) + ("..." if len(npus) > 8 else "")


def _npus(facts: Sequence[Facts], deployment: Deployment) -> tuple[int, ...]:
    """Return the NPU of each rank: that of its bus id, or of its rank in the job.

    Raises
    ------
    SpecError
        If the machine of the folder has no such NPU.
    """
    found = []
    for rank, each in enumerate(facts):
        npu = deployment.npu_of(each.npu, "" if each.one_gpu else each.bus)
        if npu is None:
            count = len(deployment.manifest.machine.npus)
            why = (
                f"rank {rank} has the GPU {each.bus}, and the machine of the folder has none there"
            )
            if each.npu >= count:
                why = f"rank {rank} has NPU {each.npu}, and the folder is for a machine of {count}"
            raise SpecError(None, why)
        found.append(npu)
    return tuple(found)


def _reason(facts: Sequence[Facts]) -> str:
    """Return why a group has no plans, whatever the folder says; empty if it may have."""
    if len(facts) < 2:
        return "the group has one rank"
    for rank, each in enumerate(facts):
        if each.wrong:
            return f"rank {rank}: {each.wrong}"
        if not each.manifest:
            return f"rank {rank} has no deployed folder"
    first = facts[0]
    for rank, each in enumerate(facts[1:], 1):
        for what, text in _ALIKE.items():
            if getattr(each, what) != getattr(first, what):
                return f"ranks 0 and {rank} differ: {text}"
    for what, text in (("npu", "NPU"), ("device", "GPU")):
        values = [getattr(each, what) for each in facts]
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None and not (what == "device" and first.one_gpu):
            return f"two ranks have {text} {twice}"
    return ""


def _is_sole(deployment: Deployment, npus: Sequence[int]) -> bool:
    """Return whether the folder has no other group for any of these NPUs, who would make other launches.

    The number of a process's launches is in its packets. Ranks outside a group do not see it being made, so
    only the folder can say to all ranks that there will be one.
    """
    every = [each for group in deployment.manifest.groups if group.entries for each in group.npus]
    return sum(not set(npus).isdisjoint(each) for each in every) == 1


_ALIKE = {
    "manifest": "their folders are not the same",
    "engine": "their engines are not the same",
    "host": "plans are for one node, and they are on several",
    "capability": "their GPUs are not of one kind",
    "stage": "HOCKET_STAGE is not the same",
    "one_gpu": "HOCKET_TEST_ONE_GPU is not the same",
    "debug": "HOCKET_DEBUG is not the same",
}
"""What all ranks of a group need alike, and what is wrong if they do not have it."""


def _misfit(facts: Sequence[Facts], deployment: Deployment, blocks: int) -> str:
    """Return why the GPUs do not fit the folder; empty if they do, and on CPUs."""
    made, engine = deployment.manifest.made_for, facts[0].engine
    if engine == "cpu":
        return ""
    if not engine.startswith("hocket ") and engine != f"{made.runtime} {made.version}":
        return f"the folder is for {made.runtime} {made.version}, and here is {engine}"
    capability = deployment.manifest.machine.capability
    if capability is not None and facts[0].capability != capability:
        return f"the folder is for GPUs of capability {capability}, not {facts[0].capability}"
    ctas = deployment.manifest.fallback.max_ctas
    fewest = min(each.processors for each in facts)
    if blocks + ctas + MARGIN > fewest:
        need = f"{blocks} blocks, {ctas} CTAs of NCCL and {MARGIN} spare"
        return f"{need} are more than the {fewest} processors of a GPU"
    return ""


def read_folder(folder: str | None) -> tuple[Deployment | None, str, str]:
    """Read a folder that all ranks should have, and each of its files.

    Returns
    -------
    tuple
        The folder, or None if there is none; the hash of its manifest; and what is wrong, in words. Of a
        folder that is wrong, the hash is empty.
    """
    if not folder:
        return None, "", ""
    try:
        found = load_deployment(folder)
        for each in found.files:
            found.read(each)
    except SpecError as error:
        return None, "", str(error)
    return found, found.manifest.sha256, ""


def stage_of(text: str | None) -> int:
    """Return the bytes of a stage's buffer that a setting says, or the usual ones.

    Raises
    ------
    SpecError
        If it is no size, or the executor's 32-bit counts do not hold it.
    """
    if not text:
        return STAGE
    size = parse_size(text, field="HOCKET_STAGE")
    if not 1 << 12 <= size < 1 << 32:
        right = "give 4 KiB to 4 GiB, such as 64MiB"
        raise SpecError("HOCKET_STAGE", f"{format_size(size)} is no size of a stage", right)
    return size


def is_on(name: str, text: str | None) -> bool:
    """Return whether a setting is on.

    Raises
    ------
    SpecError
        If it is neither 0 nor 1.
    """
    if text not in (None, "", "0", "1"):
        raise SpecError(name, f"{text!r} is neither 0 nor 1", "give 1, or unset it")
    return text == "1"
