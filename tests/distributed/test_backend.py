"""The backend of ``torch.distributed``, beside gloo.

It needs PyTorch in this interpreter, or in the one that ``HOCKET_TORCH_PYTHON`` names, which then
gets hocket and what it needs from this one.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import hocket as hk

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "python"
OTHER = os.environ.get("HOCKET_TORCH_PYTHON")
LIMIT = 1500
"""Seconds after which processes hang: nine that train on two busy cores take several minutes."""

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None and OTHER is None, reason="PyTorch is not installed: make torch"
)


def search_path() -> dict[str, str]:
    """Say where another interpreter finds hocket and what it needs."""
    paths = [str(PACKAGE), str(HERE.parents[1]), sysconfig.get_paths()["purelib"]]
    used = paths[1:2] if OTHER is None else paths
    return {"PYTHONPATH": os.pathsep.join([*used, os.environ.get("PYTHONPATH", "")])}


def launched(script: str, *words: str, ranks: int, code: int = 0, **more: str) -> list[Any]:
    """Run a script in processes, as a launcher does; what each prints, or its errors if it is to fail."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(ranks),
        "OMP_NUM_THREADS": "1",
        **search_path(),
        **more,
    }
    command = [OTHER or sys.executable, "-W", "ignore", str(HERE / script), *words]
    processes = [
        subprocess.Popen(
            command,
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    found = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=LIMIT)
            assert process.returncode == code, err
            found.append(err if code else json.loads(out) if out.strip() else None)
    finally:
        for process in processes:
            process.kill()
            with process:  # closes its pipes, which else the next test is blamed for
                pass
    return found


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_every_collective_gives_what_gloo_gives(transport: str) -> None:
    ours = launched("calls.py", "hocket", ranks=3, HOCKET_TRANSPORT=transport)
    for found in ours:
        assert all(found.pop("more").values())
    assert ours == launched("calls.py", "gloo", ranks=3)


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_whoever_waits_for_a_call_that_fails_is_told(transport: str) -> None:
    found = launched("failing.py", "mismatch", ranks=2, HOCKET_TRANSPORT=transport)
    why = re.compile("rank 1 has 3 numbers, not 2|rank 0 has 2 numbers, not 3")
    assert found[0].pop("unequal").startswith("SpecError: scatter_list: has 2 numbers for rank 1")
    assert found[1].pop("unequal") == "ValueError: left out"
    for said in found:
        assert said.pop("sum") == "[2.0, 2.0]"
        assert said.pop("overlapping").startswith("RuntimeError")
        assert said.pop("sparse").startswith("SpecError: tensor: is sparse")
        assert said.pop("short list") == "SpecError: tensor_list: has 1 tensors; give 2"
        assert said.pop("sizes").startswith("SpecError: tensor_list: has 3 numbers for rank ")
        assert said.pop("splits").startswith(
            "SpecError: input_split_sizes: [2, 2] are not the rows"
        )
        assert said.pop("elsewhere").startswith("SpecError: tensor: is on meta")
        assert (
            said.pop("root") == "SpecError: root: 7 is too large; give a whole number from 0 to 1"
        )
        for way in ("mismatch", "call", "work", "functional", "barrier"):
            kind, _, text = said.pop(way).partition(": ")
            assert kind == "TransportError", way
            assert why.search(text), way
        assert len(said) == 2
        assert all(why.search(each) for each in said.values()), said


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_training_stops_when_a_rank_dies(transport: str) -> None:
    found = launched("failing.py", "death", ranks=3, HOCKET_TRANSPORT=transport)
    assert [each["step"] for each in found] == ["nothing"] * 3
    for rank in (0, 2):
        assert "rank 1 has died" in found[rank]["step of those that are left"]


def train(backend: str, *words: str, ranks: int, **more: str) -> Any:
    """Train, and give what rank 0 says of it."""
    found = launched("train.py", backend, *words, ranks=ranks, **more)[0]
    assert found["equal"], "replicas differ"
    assert len(found["losses"]) == int(words[0])
    return found


def same(
    steps: int, ranks: int, transport: str, net: str = "convolutions", dtype: str = "float32"
) -> list[float]:
    """Train with gloo and with hocket, and compare; the losses."""
    words = (str(steps), dtype, net)
    gloo = train("gloo", *words, ranks=ranks)
    ours = train("hocket", *words, ranks=ranks, HOCKET_TRANSPORT=transport)
    assert ours["calls"]["all-reduce"] > steps
    allowed = 1e-6 if dtype == "float32" else 1e-12
    assert ours["losses"] == pytest.approx(gloo["losses"], rel=allowed)
    losses: list[float] = ours["losses"]
    return losses


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_training_has_the_losses_that_it_has_with_gloo(transport: str) -> None:
    same(10, 4, transport)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["tcp", "shared"])
@pytest.mark.parametrize("ranks", [4, 9])
@pytest.mark.parametrize("net", ["convolutions", "transformer"])
def test_long_training_has_the_losses_that_it_has_with_gloo(
    transport: str, ranks: int, net: str
) -> None:
    """In double precision: in single, other orders of rounding grow to a millionth in 200 steps."""
    losses = same(200, ranks, transport, net, "float64")
    assert sum(losses[-20:]) < sum(losses[:20])


def test_a_hook_averages_gradients_beside_any_backend() -> None:
    gloo = train("gloo", "5", "float32", ranks=2)
    assert gloo["calls"] == {}
    for backend, way in (("gloo", "hook"), ("hocket", "hook"), ("gloo", "narrow")):
        ours = train(backend, "5", "float32", "convolutions", way, ranks=2)
        assert ours["calls"]["all-reduce"] >= 5
        allowed = 1e-6 if way == "hook" else 2e-2
        assert ours["losses"] == pytest.approx(gloo["losses"], rel=allowed)
        assert way == "hook" or ours["losses"][1:] != gloo["losses"][1:]


def test_calls_run_what_a_table_says(tmp_path: Path) -> None:
    from hocket import runtime

    row = runtime.PlanRow(collective="all-reduce", ranks=2, algorithm="ring", transport="shared")
    runtime.PlanTable([row]).save(tmp_path / "table.json")
    gloo = train("gloo", "5", "float32", ranks=2)
    ours = train("hocket", "5", "float32", ranks=2, HOCKET_TABLE=str(tmp_path / "table.json"))
    assert ours["losses"] == pytest.approx(gloo["losses"], rel=1e-6)


def torch_version() -> tuple[int, ...]:
    command = [OTHER or sys.executable, "-c", "import torch; print(torch.__version__)"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in found.split("+")[0].split(".")[:2])


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_sharded_training_has_the_losses_that_it_has_with_gloo(transport: str) -> None:
    if torch_version() < (2, 6):
        pytest.skip("this PyTorch has no fully_shard")
    words = ("10", "float32", "transformer", "fsdp2")
    gloo = train("gloo", *words, ranks=4)
    ours = train("hocket", *words, ranks=4, HOCKET_TRANSPORT=transport)
    assert ours["calls"]["all-gather"] > 30
    assert ours["calls"]["reduce-scatter"] > 20
    assert ours["losses"] == pytest.approx(gloo["losses"], rel=1e-6)


def test_torchrun_starts_it() -> None:
    command = [OTHER or sys.executable, "-W", "ignore", "-m", "torch.distributed.run"]
    words = ["--standalone", "--nproc-per-node", "2", str(HERE / "train.py"), "hocket", "3"]
    found = subprocess.run(
        [*command, *words, "float32"],
        env={**os.environ, **search_path(), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["equal"]


PLANNED = {
    "ddp": {"world": ["all-reduce"]},
    "fsdp2": {"world": ["all-gather", "reduce-scatter"]},
    "tp": {"dp": ["all-gather", "reduce-scatter"], "tp": ["all-reduce"]},
}


@pytest.mark.parametrize("way", PLANNED)
def test_training_by_a_deployed_folder_has_the_losses_of_gloo(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "deploy"
    hk.deploy("fc:4@25GB/s,1us", folder, process_groups="world,dp=2,tp=2", sizes="1K:1M:x32")
    gloo = launched("train_deployed.py", "gloo", way, ranks=4)
    given = {"HOCKET_DEPLOY": str(folder), "HOCKET_STAGE": "64K"}
    doubles = ["double"] if way != "tp" and torch_version() >= (2, 15) else []
    for backend in ["hocket", *doubles]:
        ours = launched("train_deployed.py", backend, way, ranks=4, **given)
        for found, wanted in zip(ours, gloo, strict=True):
            assert found["losses"] == pytest.approx(wanted["losses"], rel=1e-6)
            assert found["sums"] == wanted["sums"]
            for group, kinds in PLANNED[way].items():
                for kind in kinds:
                    calls = [n for each, n in found[group].items() if each.startswith(f"{kind}-")]
                    assert sum(calls) >= 5, found
            assert way == "tp" or sum(found["tp"].values()) == 1
            assert found["world"]["plans have no sum of int64"] == 1
