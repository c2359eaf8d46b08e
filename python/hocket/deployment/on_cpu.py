"""Deployed plans on CPUs: the folder, routes, stages and pieces of GPUs, over hocket's own runtime."""

from __future__ import annotations

import numpy as np

from hocket.deployment.manifest import Deployment, Entry
from hocket.deployment.route import MOVES, Nccl, PlannedGroup, route
from hocket.deployment.staged import Stage
from hocket.plans.plan import Plan
from hocket.runtime import Communicator
from hocket.runtime.arrays import DTYPES, Bytes
from hocket.runtime.communicator import Call


class DeployedCalls:
    """Lets the calls of a communicator take the plans of a deployed folder; others go on as before.

    Parameters
    ----------
    communicator
        Whose calls.
    group
        What is planned for its ranks.
    deployment
        The folder.
    """

    def __init__(
        self, communicator: Communicator, group: PlannedGroup, deployment: Deployment
    ) -> None:
        self._communicator = communicator
        self._plans = {
            each.id: Plan.load(deployment.folder / each.plan.file)
            for each in group.entries
            if not each.switches  # for which the runtime has no program: its own sums are the same
        }
        send, recv = (np.zeros(group.stage, np.uint8) for _ in range(2))
        self._stage = Stage(group, self, send, recv)
        communicator.run_by(self._run)

    def _run(self, call: Call) -> bool:
        size = call.elements * DTYPES[call.dtype]
        group = self._stage.group
        found = route(call.kind, call.op, call.dtype, size, call.root, group, captured=False)
        if isinstance(found, Nccl):
            group.taken[found.reason] += 1
            return False
        group.taken[found.id] += 1
        source = call.result if call.source is None else call.source
        self._stage.run(found, source, call.result, call.op, call.dtype)
        return True

    def launch(self, entry: Entry, send: Bytes, recv: Bytes, op: str, dtype: str) -> None:
        """Run a plan, as of :meth:`hocket.deployment.staged.Engine.launch`."""
        kind = "uint8" if entry.collective in MOVES else dtype
        source: Bytes | None = send
        if entry.collective == "broadcast":
            recv[:] = send
            source = recv if self._communicator.rank == 0 else None
        elements = max(len(send), len(recv)) // DTYPES[kind]
        plan = self._plans.get(entry.id)
        self._communicator.run_call(
            Call(entry.collective, 0, op, kind, elements, source, recv, plan)
        )
