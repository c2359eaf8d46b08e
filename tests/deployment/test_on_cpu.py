"""Deployed plans between processes on CPUs, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runtime.ranks import Ranks

import hocket as hk
from hocket.deployment.facts import Facts, read_folder, verdict
from hocket.deployment.manifest import load_deployment
from hocket.deployment.on_cpu import DeployedCalls
from hocket.runtime import Communicator

KINDS = "all-reduce,all-gather,reduce-scatter,broadcast,all-to-all"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("deployed") / "deploy"
    hk.deploy("fc:3@10GB/s,1us", made, collectives=KINDS, sizes="64B:64K:x1024")
    return made


def calls(folder: Path, is_large: bool) -> Callable[[Communicator], Any]:
    """Return a rank's work: calls by plans, in pieces and with padding, and calls without."""

    def work(comm: Communicator) -> Any:
        deployment, manifest, wrong = read_folder(str(folder))
        assert deployment is not None, wrong
        units = max(each.unit_bytes for each in deployment.manifest.entries)
        stage = 1 << 16 if is_large else units
        every = [Facts(npu, "host", str(npu), manifest, stage=stage) for npu in range(comm.size)]
        group = verdict(every, deployment)
        DeployedCalls(comm, group, deployment)
        mine = np.arange(5001, dtype=np.int32) + 1000 * comm.rank
        floats = mine.astype(np.float32)
        sent = np.arange(9999).astype(np.uint8) + np.uint8(comm.rank)
        place = floats.copy()
        comm.broadcast(place)
        wide = np.arange(3 * 1000, dtype=np.int32).reshape(3, 1000) + comm.rank
        found = {
            "sum": comm.all_reduce(mine),
            "average": comm.all_reduce(floats, "average"),
            "max": comm.all_reduce(mine, "max"),
            "gathered": comm.all_gather(sent),
            "scattered": comm.reduce_scatter(mine),
            "broadcast": place,
            "swapped": comm.all_to_all(wide),
            "large": comm.all_reduce(np.ones(1 << 16, np.float32)),
        }
        return {name: each.tolist() for name, each in found.items()}, dict(group.taken)

    return work


@pytest.mark.parametrize("transport", ["tcp", "auto"])
@pytest.mark.parametrize("is_large", [True, False])
def test_calls_give_what_numpy_gives(folder: Path, transport: str, is_large: bool) -> None:
    with Ranks(3, calls(folder, is_large), transport=transport) as ranks:
        ended = [ranks.ended(rank) for rank in range(3)]
    given = [np.arange(5001, dtype=np.int64) + 1000 * rank for rank in range(3)]
    wide = np.stack([np.arange(3000).reshape(3, 1000) + rank for rank in range(3)])
    for rank, each in enumerate(ended):
        assert each.error is None, each.error
        found, taken = each.value
        assert found["sum"] == sum(given).tolist()
        assert found["average"] == (sum(given) / 3).tolist()
        assert found["max"] == given[2].tolist()
        sent = [(np.arange(9999).astype(np.uint8) + np.uint8(r)).tolist() for r in range(3)]
        assert found["gathered"] == [number for part in sent for number in part]
        assert found["scattered"] == np.split(sum(given), 3)[rank].tolist()
        assert found["broadcast"] == given[0].tolist()
        assert found["swapped"] == wide[:, rank].tolist()
        assert found["large"] == [3.0] * (1 << 16)
        assert sum(taken.values()) == 8
        assert taken.pop("plans have no max") == 1
        assert taken.pop("no plan for 256 KiB") == 1
        assert set(taken) == {f"{kind}-3-0-65535" for kind in KINDS.split(",")}


def test_a_plan_for_switches_runs_on_cpus_as_the_same_sum(tmp_path: Path) -> None:
    made = tmp_path / "deploy"
    hk.deploy("hgx_h100_8gpu_validated", made, collectives="all-reduce", sizes="4M:4M")
    entry = load_deployment(made).manifest.entries[0]
    assert entry.switches

    def work(comm: Communicator) -> Any:
        deployment, manifest, wrong = read_folder(str(made))
        assert deployment is not None, wrong
        every = [Facts(npu, "host", str(npu), manifest, stage=1 << 20) for npu in range(comm.size)]
        group = verdict(every, deployment)
        DeployedCalls(comm, group, deployment)
        found = comm.all_reduce(np.full(1 << 20, comm.rank + 1, np.int32))
        return int(found.min()), int(found.max()), dict(group.taken)

    with Ranks(8, work) as ranks:
        ended = [ranks.ended(rank) for rank in range(8)]
    assert [each.value for each in ended] == [(36, 36, {entry.id: 1})] * 8
