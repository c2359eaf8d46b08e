"""The backend for GPUs, on a double: real processes and groups of PyTorch, with gloo in NCCL's place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.distributed import test_backend
from tests.distributed.test_backend import OTHER, launched, search_path, torch_version

import hocket as hk

pytestmark = [test_backend.pytestmark, pytest.mark.slow]
KINDS = "all-reduce,all-gather,reduce-scatter,broadcast,all-to-all"


@pytest.fixture(scope="module", autouse=True)
def _new_enough() -> None:
    if torch_version() < (2, 15):
        pytest.skip("this PyTorch has no backends in Python")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("deployed") / "deploy"
    groups = "world,dp=2,tp=2"
    hk.deploy("fc:4@25GB/s,1us", made, process_groups=groups, collectives=KINDS, sizes="1K:1M:x32")
    return made


def run(folder: Path, way: str, **more: str) -> list[Any]:
    """Run one way of ``device_calls.py`` in four processes."""
    given = {"HOCKET_DEPLOY": str(folder), "HOCKET_STAGE": "64K", **more}
    return launched("device_calls.py", way, ranks=4, **given)


def test_calls_give_what_gloo_gives() -> None:
    ours = launched("calls.py", "double", ranks=3)
    assert ours == launched("calls.py", "gloo", ranks=3)


def test_calls_of_all_forms_and_sizes(folder: Path) -> None:
    for told in run(folder, "together"):
        found, taken = told["found"], told["taken"]
        for kind in KINDS.split(","):
            assert any(name.startswith(f"{kind}-4") for name in taken)
        assert taken["plans have no max"] == taken["there are no bytes"] == 1
        assert found["steps"] == ["follow", "enqueue", "keep", "record"]
        contexts, plans, buffers = found["growth"]  # after 500 calls of many sizes
        assert contexts <= 9
        assert plans <= 30
        assert buffers == 2
        assert found["captured"] == ["1 of its launches were never made before capture", True]
        assert found["asked"] == []
        assert found["meshes"] == [[False, 10], [False, 10]]  # no packets, ten calls each


def test_calls_by_the_interpreter(folder: Path) -> None:
    for told in run(folder, "interpreted", HOCKET_ENGINE="hocket"):
        found, taken = told["found"], told["taken"]
        for kind in KINDS.split(","):
            assert any(name.startswith(f"{kind}-4") for name in taken)
        assert found["captured"][1]
        assert [calls for _, calls in found["meshes"]] == [10, 10]


def test_a_launch_of_the_interpreter_that_gives_up_ends_every_process(folder: Path) -> None:
    given = {"HOCKET_DEPLOY": str(folder), "HOCKET_STAGE": "64K", "HOCKET_ENGINE": "hocket"}
    for said in launched("device_calls.py", "left_out", ranks=4, code=87, LIMIT="20", **given):
        assert "hocket: a launch of group world " in said
        assert "waited too long (18 s) for another rank" in said


def test_gpus_are_refused_where_there_are_none() -> None:
    command = """
import torch.distributed as dist
import hocket.distributed
dist.init_process_group(
    "cpu:gloo,cuda:hocket", init_method="tcp://127.0.0.1:0", rank=0, world_size=1
)
"""
    found = subprocess.run(
        [OTHER or sys.executable, "-W", "ignore", "-c", command],
        env={**os.environ, **search_path(), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    said = 'cuda:hocket: there is no GPU of CUDA here; give "hocket", for tensors on CPUs'
    assert said in found.stderr


REASONS = {
    "fallback": "rank 1: fallback: RuntimeError: gloo cannot start",
    "facts": "rank 1: this GPU has no engine",
    "join": "rank 1: join: RuntimeError: no route to host",
    "prepare": "rank 1: prepare: RuntimeError: no such file",
    "numbers": "rank 1: test of [a-z0-9-]+: InfeasibleError: .* gives wrong numbers",
}


def test_if_a_rank_fails_at_the_start_all_fall_back(folder: Path) -> None:
    for told in run(folder, "starts"):
        for step, reason in REASONS.items():
            total, said = told["found"][step]
            assert total == 6
            assert re.fullmatch(reason, said)


FOLDERS = {
    "manifest": r"rank 1: .*deploy\.json: .*",
    "program": r"rank 1: .*\.json: .*copy it again",
    "version": r"rank 1: .*deploy\.json: .*version.*",
    "estimates": "ranks 0 and 1 differ: their folders are not the same",
    "stage": "rank 1: HOCKET_STAGE: .*",
    "none": "rank 1 has no deployed folder|no folder is deployed",
    "same": "",
}


def test_if_the_folder_of_a_rank_is_another_all_fall_back(folder: Path) -> None:
    for told in run(folder, "folders"):
        for fault, reason in FOLDERS.items():
            total, said = told["found"][fault]
            assert total == 6
            assert re.fullmatch(reason, said), said


def test_a_call_that_a_rank_leaves_out_ends_every_process(folder: Path) -> None:
    given = {"HOCKET_DEPLOY": str(folder), "HOCKET_STAGE": "64K"}
    for said in launched("device_calls.py", "left_out", ranks=4, code=87, **given):
        line = next(each for each in said.splitlines() if each.startswith("hocket: a launch"))
        assert "of group world did not end in 3 s" in line
        assert "rank 0: all-reduce sum of float32, call 2, 8000 bytes, by all-reduce-4" in line
        assert "rank 1: nothing after all-reduce sum of float32, call 1, 4000 bytes" in line


def test_a_launch_that_fails_at_a_rank_ends_every_process(folder: Path) -> None:
    given = {"HOCKET_DEPLOY": str(folder), "HOCKET_STAGE": "64K"}
    for said in launched("device_calls.py", "unlaunched", ranks=4, code=87, **given):
        line = next(each for each in said.splitlines() if each.startswith("hocket: a launch"))
        assert "of group world failed; " in line
        assert "rank 1: all-reduce sum of float32, call 2, 8000 bytes, by all-reduce-4" in line
        assert "no such kernel" in line


def test_a_rank_that_does_not_end_its_start_ends_every_process(folder: Path) -> None:
    given = {"HOCKET_DEPLOY": str(folder), "HOCKET_STAGE": "64K", "LIMIT": "20"}
    more = {"HOCKET_DOUBLE": "hang:1"}
    for said in launched("device_calls.py", "starts", ranks=4, code=87, **given, **more):
        line = next(each for each in said.splitlines() if each.startswith("hocket: a launch"))
        assert "of group world did not end in 20 s" in line
        assert "rank 0: the others, after join, at the start; rank 1: join, at the start;" in line


def test_engines_that_are_none_are_told_in_a_line() -> None:
    command = """
import os
from hocket.distributed import cuda
def told(ask):
    ask.cache_clear()
    try:
        ask()
    except Exception as error:
        print(error)
os.environ["HOCKET_ENGINE"] = "nccl"
told(cuda.is_own)
told(cuda.bindings)
for other in ("0.8.0", "0.9.0"):
    cuda.version = lambda name: other
    told(cuda.bindings)
"""
    found = subprocess.run(
        [OTHER or sys.executable, "-W", "ignore", "-c", command],
        env={**os.environ, **search_path()},
        capture_output=True,
        text=True,
        check=True,
    )
    right = "; install 0.9.0, or set HOCKET_ENGINE=hocket"
    assert found.stdout.splitlines() == [
        "HOCKET_ENGINE: 'nccl' is no engine; give mscclpp or hocket",
        f"mscclpp: is not installed{right}",
        f"mscclpp: is 0.8.0, and hocket drives 0.9.0{right}",
        f"mscclpp: has no extension _mscclpp{right}",
    ]


def test_calls_that_differ_are_found_before_they_are_launched(folder: Path) -> None:
    found = run(folder, "compared", HOCKET_DEBUG="1")
    assert found[0]["found"].startswith("rank 1 has all-reduce sum of float32, call 2, 6000 bytes")
    assert all("call 2" in each["found"] for each in found)
