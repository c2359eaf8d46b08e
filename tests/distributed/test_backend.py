"""The backend of ``torch.distributed``, beside gloo.

It needs PyTorch in this interpreter, or in the one that ``HOCKET_TORCH_PYTHON`` names, which then
gets hocket and what it needs from this one.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "python"
OTHER = os.environ.get("HOCKET_TORCH_PYTHON")

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None and OTHER is None, reason="PyTorch is not installed: make torch"
)


def launched(script: str, *words: str, ranks: int, **more: str) -> list[Any]:
    """Run a script in processes, as a launcher does; what each prints."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(ranks),
        "OMP_NUM_THREADS": "1",
        **more,
    }
    if OTHER is not None:
        paths = [str(PACKAGE), sysconfig.get_paths()["purelib"]]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
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
            out, err = process.communicate(timeout=280)
            assert process.returncode == 0, err
            found.append(json.loads(out) if out.strip() else None)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return found


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_every_collective_gives_what_gloo_gives(transport: str) -> None:
    ours = launched("calls.py", "hocket", ranks=3, HOCKET_TRANSPORT=transport)
    for found in ours:
        assert all(found.pop("more").values())
    assert ours == launched("calls.py", "gloo", ranks=3)


def same(steps: int, ranks: int, transport: str) -> list[float]:
    """Train with gloo and with hocket, and compare; the losses."""
    words = (str(steps), "float32")
    gloo = launched("train.py", "gloo", *words, ranks=ranks)[0]
    ours = launched("train.py", "hocket", *words, ranks=ranks, HOCKET_TRANSPORT=transport)[0]
    assert ours["equal"], "replicas differ"
    assert len(ours["losses"]) == steps
    assert ours["losses"] == pytest.approx(gloo["losses"], rel=1e-6)
    losses: list[float] = ours["losses"]
    return losses


@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_training_has_the_losses_that_it_has_with_gloo(transport: str) -> None:
    same(10, 4, transport)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["tcp", "shared"])
def test_long_training_has_the_losses_that_it_has_with_gloo(transport: str) -> None:
    losses = same(200, 4, transport)
    assert sum(losses[-20:]) < sum(losses[:20])
