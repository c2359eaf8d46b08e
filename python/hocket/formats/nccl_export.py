"""Plans as files for NCCL: the rings of a plan as a file of graphs, and its machine's table for tuners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.collectives.collective import Progress
from hocket.errors import InfeasibleError, SpecError
from hocket.formats.judgement import Written
from hocket.formats.nccl_files import machine_of
from hocket.nccl.design import design_along
from hocket.nccl.machine import Leg, Machine
from hocket.nccl.tuner import tuner_table
from hocket.simulation.run import simulate
from hocket.units import counted

if TYPE_CHECKING:
    from hocket.plans.plan import Plan
    from hocket.simulation.run import Run

_MOST_CHANNELS = 32
_MOST_HOPS = 1 << 26
_ALIKE = 1.05
"""How much more than the least one ring may carry before it is said that NCCL has them all alike."""
_NOT_RINGS = "NCCL's graphs are rings and trees of NVLink order"


def write_graphs(
    plan: Plan, path: Path, said: Mapping[str, Any], progress: Progress | None
) -> Written:
    """Write the rings of a plan as graphs, with trees along the same orders.

    Raises
    ------
    SpecError
        If the dump is not given, or is of another machine.
    InfeasibleError
        If the plan has no rings, or rings that NCCL does not make of a file.
    """
    if "topology" not in said:
        right = "name the dump of the plan's machine (NCCL_TOPO_DUMP_FILE)"
        raise SpecError("topology", "NCCL's numbers of GPUs and NICs are not known", right)
    machine = machine_of(said["topology"], None, said.get("nodes", 1))
    _check_machine(plan, machine)
    run = simulate(plan, keep_services=True, progress=progress)
    rings = _rings(plan)
    legs = list(_legs(run, machine, rings))
    least, most = min(ring.size for ring in rings), max(ring.size for ring in rings)
    notes = []
    if most > _ALIKE * least:
        notes.append(
            f"a ring of the plan carries up to {most / least:.3g} times what another does; NCCL gives all "
            "channels as much"
        )
    design = design_along(machine, legs)
    files = design.write(path)
    ring = design.graphs[0][0]
    time, bound = design.run.time_ps, design.run.lower_bound.time_ps
    notes.append(
        f"an all-reduce of 1 GiB along the rings takes {time / 1e9:.4g} ms, "
        f"{100 * (time / bound - 1):.1f}% above the lower bound"
    )
    summary = (
        f"NCCL's graphs: {counted(len(ring.channels), 'channel')} of {ring.speed_intra:.4g} GB/s, from "
        f"{len(rings)} ring{'s'[: len(rings) != 1]} of the plan; trees along the same orders"
    )
    return Written(files, summary, tuple(notes), design.warnings)


def _check_machine(plan: Plan, machine: Machine) -> None:
    theirs, ours = machine.topology, plan.topology
    names = [each.device_names[: each.npu_count] for each in (theirs, ours)]
    if names[0] != names[1]:
        why = f"the plan is of {ours.npu_count} NPUs of {ours.name!r}, the dump of {theirs.npu_count} GPUs"
        right = "plan with --topology and the same dump"
        raise SpecError("topology", why, right, origin=machine.nodes[0].file)
    lacking = sorted(set(range(ours.npu_count)) - set(plan.collective.npus))
    if lacking:
        why = f"the plan leaves out {ours.device_names[lacking[0]]}"
        right = (
            "NCCL_GRAPH_FILE is of whole nodes: every communicator of a process reads it, and one of "
            "some GPUs alone fails on a file for all, or takes channels that are not its own"
        )
        raise InfeasibleError(None, why, right)


@dataclass(frozen=True)
class _Ring:
    """A cycle through all NPUs, from the lowest on, and the bytes whose chunks take it."""

    order: tuple[int, ...]
    size: int


def _rings(plan: Plan) -> list[_Ring]:
    """Return the different rings of a plan.

    Raises
    ------
    InfeasibleError
        If chunks do not go round rings.
    """
    columns, npus = plan.transfers, plan.topology.npu_count
    first = columns.chunk.astype(np.int64)
    count = columns.chunk_count.astype(np.int64)
    total = int(count.sum())
    if total > _MOST_HOPS:
        why = f"{total:,} transfers of single chunks are too many to find rings in"
        raise InfeasibleError(None, why, "plan with fewer chunks")
    if int(max(columns.src.max(initial=0), columns.dst.max(initial=0))) >= npus:
        right = "sums in switches are a graph that NCCL searches for by itself"
        raise InfeasibleError(None, "switches sum or multicast in this plan", right)
    row = np.repeat(np.arange(len(first)), count)
    before = np.repeat(np.cumsum(count) - count, count)
    chunk = np.repeat(first, count) + np.arange(total) - before
    hops = np.unique(
        np.stack([chunk, columns.src[row].astype(np.int64), columns.dst[row]], axis=1), axis=0
    )
    offsets = plan.core.chunk_offsets
    sizes = np.diff(offsets.astype(np.int64))
    found: dict[tuple[int, ...], int] = {}
    starts = np.flatnonzero(np.diff(hops[:, 0], prepend=-1))
    for rows in np.split(hops, starts[1:]):
        order = _cycle(rows[:, 1].tolist(), rows[:, 2].tolist(), npus)
        if order is None:
            why = f"chunk {int(rows[0, 0])} goes round no ring of all {npus} NPUs"
            right = "plan with ring, nccl-ring or another algorithm of rings"
            raise InfeasibleError(None, f"{_NOT_RINGS}, and {why}", right)
        found[order] = found.get(order, 0) + int(sizes[rows[0, 0]])
    if len(found) > _MOST_CHANNELS:
        why = f"the plan has {len(found)} different rings"
        raise InfeasibleError(None, why, f"NCCL takes {_MOST_CHANNELS} channels at most")
    if not found:
        raise InfeasibleError(None, "the plan has no transfers", "there are no rings")
    return [_Ring(order, size) for order, size in found.items()]


def _cycle(src: Sequence[int], dst: Sequence[int], npus: int) -> tuple[int, ...] | None:
    """Return the ring of hops that lead round it, one of which may be left out, from the lowest NPU on."""
    follows = dict(zip(src, dst, strict=True))
    if len(follows) < len(src) or len(set(dst)) < len(dst) or len(src) < npus - 1:
        return None
    starts = set(range(npus)) - set(dst)
    order = [min(starts, default=0)]
    while len(order) < npus:
        at = follows.get(order[-1])
        if at is None or at == order[0]:
            return None
        order.append(at)
    if follows.get(order[-1], order[0]) != order[0]:
        return None
    lowest = order.index(0)
    return tuple(order[lowest:] + order[:lowest])


def _legs(run: Run, machine: Machine, rings: Sequence[_Ring]) -> Iterator[list[Leg]]:
    """Return what each ring does in each node: its order, and the NICs by which it comes in and goes out.

    Raises
    ------
    InfeasibleError
        If it passes nodes in an order that NCCL does not take.
    """
    nodes = machine.network.nodes
    node_of = {npu: number for number, members in enumerate(nodes) for npu in members}
    nics = _Nics(run, machine) if len(nodes) > 1 else None
    for ring in rings:
        order = list(ring.order)
        if nics is None:
            yield [(order, None, None)]
            continue
        enters = (
            place
            for place, npu in enumerate(order)
            if node_of[npu] == 0 != node_of[order[place - 1]]
        )
        first = next(enters, 0)
        order = order[first:] + order[:first]
        runs: list[list[int]] = []
        for npu in order:
            if runs and node_of[runs[-1][0]] == node_of[npu]:
                runs[-1].append(npu)
            else:
                runs.append([npu])
        passed = [node_of[each[0]] for each in runs]
        if passed != list(range(len(nodes))):
            names = ", ".join(map(str, passed[:8])) + ("..." if len(passed) > 8 else "")
            raise InfeasibleError(
                None,
                f"a ring of the plan passes nodes {names}",
                "NCCL's rings pass every node once, in the order of ranks; number the nodes so",
            )
        legs: list[Leg] = []
        for number, members in enumerate(runs):
            before, after = runs[number - 1][-1], runs[(number + 1) % len(runs)][0]
            into = nics.between(before, members[0], number)
            out = nics.between(members[-1], after, number)
            legs.append((members, into, out))
        yield legs


class _Nics:
    """Return the NICs that messages between nodes pass."""

    def __init__(self, run: Run, machine: Machine) -> None:
        core, topology = run.core, run.topology
        self._nics = [set(each) for each in machine.network.nics]
        self._machine = machine
        columns = run.plan.transfers
        sizes = run.plan.core.size_bytes
        src, dst = topology.link_src, topology.link_dst
        everyone = set().union(*self._nics)
        self._passed: dict[tuple[int, int], Counter[int]] = {}
        for transfer, link in zip(
            core.service_transfer.tolist(), core.service_link.tolist(), strict=True
        ):
            for device in {int(src[link]), int(dst[link])} & everyone:
                key = int(columns.src[transfer]), int(columns.dst[transfer])
                passed = self._passed.setdefault(key, Counter())
                passed[device] += int(sizes[transfer])

    def between(self, a: int, b: int, node: int) -> int:
        """Return the NIC of a node that most from one NPU to another passes, or any where nothing goes."""
        mine = self._nics[node]
        passed = self._passed.get((a, b), Counter())
        used = [(size, -device) for device, size in passed.items() if device in mine]
        return -max(used)[1] if used else min(mine)


def write_table(
    plan: Plan, path: Path, said: Mapping[str, Any], _progress: Progress | None
) -> Written:
    """Write the table for tuners of a plan's network: all collectives, all sizes."""
    table = tuner_table(
        plan.topology, profile=said.get("profile"), measured=said.get("measured") or ()
    )
    table.write(path)
    summary = f"a table for tuners of NCCL: {len(table)} lines"
    picks = [
        f"{row.algorithm}, {row.protocol}"
        for row in table.rows
        if row.kind == plan.collective.kind and row.least <= plan.collective.size <= row.most
    ]
    notes = list(table.comments)
    if picks:
        notes.append(f"of what NCCL has, this plan's collective and size take {picks[0]}")
    return Written((path,), summary, tuple(notes))
