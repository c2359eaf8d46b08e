"""Plans of a deployed folder for a process group, on which its ranks agree through PyTorch's store."""

from __future__ import annotations

import logging
import os
import socket
from typing import Any

from hocket.deployment.facts import Facts, is_on, read_folder, stage_of, verdict
from hocket.deployment.manifest import Deployment
from hocket.deployment.on_cpu import DeployedCalls
from hocket.deployment.route import PlannedGroup
from hocket.errors import SpecError
from hocket.runtime import Communicator

FOLDER, STAGE, ENGINE = "HOCKET_DEPLOY", "HOCKET_STAGE", "HOCKET_ENGINE"
"""Variables: a deployed folder, the bytes of each buffer of a stage, and what runs plans on GPUs."""
_KEY = "hocket: facts of rank"
_log = logging.getLogger("hocket.deployed")


def shares_gpu() -> bool:
    """Return whether the ranks share a GPU, for tests."""
    return is_on("HOCKET_TEST_ONE_GPU", os.environ.get("HOCKET_TEST_ONE_GPU"))


def agree(
    store: Any, facts: Facts, deployment: Deployment | None, rank: int, size: int
) -> PlannedGroup:
    """Return what is planned for a group, as all of its ranks agree.

    Every rank tells its facts. One without a folder waits for nobody.
    """
    store.set(f"{_KEY} {rank}", facts.to_text())
    if not os.environ.get(FOLDER):
        return PlannedGroup("", size, reason="no folder is deployed")
    every = [Facts.of_text(store.get(f"{_KEY} {each}")) for each in range(size)]
    group = verdict(every, deployment)
    first = next(each for each, told in enumerate(every) if told.manifest or told.wrong)
    if rank == first and group.reason:
        _log.warning("a group of %d ranks runs no deployed plans: %s", size, group.reason)
    elif rank == first:
        _log.info("a group of %d ranks runs the plans of group %s", size, group.name)
    return group


def deploy_on_cpu(communicator: Communicator, store: Any, npu: int) -> PlannedGroup:
    """Let a communicator's calls take the plans of the folder that ``HOCKET_DEPLOY`` names.

    Parameters
    ----------
    communicator
        Of the group.
    store
        Of the group.
    npu
        This rank's NPU: its rank in the job.

    Returns
    -------
    PlannedGroup
        What its calls take; if there are no plans for them, the reason.
    """
    deployment, manifest, wrong = read_folder(os.environ.get(FOLDER))
    stage = 0
    if deployment is not None:
        try:
            stage = stage_of(os.environ.get(STAGE))
        except SpecError as error:  # which the others must hear, as they wait for the facts
            wrong = str(error)
    facts = Facts(npu, socket.gethostname(), f"process {os.getpid()}", manifest, wrong, stage=stage)
    group = agree(store, facts, deployment, communicator.rank, communicator.size)
    if deployment is not None and not group.reason:
        DeployedCalls(communicator, group, deployment)
    return group
