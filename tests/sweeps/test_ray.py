"""Sweeps on a Ray cluster of this machine; where Ray is not installed, what is said of that."""

from __future__ import annotations

import builtins
import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.sweeps import on_ray
from hocket.sweeps.yaml import from_text

SWEEP = """
command: simulate
grid:
  topology: ["ring:4@25GB/s,1us", net.yml]
  algorithm: [ring, direct, hdrm]
  size: [64 KB, 1 MB]
  chunks: [1, 2]
"""
NET = "builder: mesh\nsize: [2, 2]\nbandwidth: 25 GB/s\nlatency: 1 us\n"

ON_RAY = """
import os, random, signal, sys
import ray
import hocket as hk
from hocket.sweeps import on_ray

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
marks = sys.argv[3]

def work(sweep, key, version, task):
    # The first two tasks end their processes, as where a node fails.
    for i in range(2):
        try:
            os.close(os.open(f"{marks}/killed-{i}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(sweep, key, version, task)

plain = on_ray._work
on_ray._work = work
found = hk.run_sweep(sys.argv[1], sys.argv[2], ray="auto")
print(found.failed, found.sweep.count)
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install ray")
def test_ray_gives_the_same_bytes_and_loses_no_point(tmp_path: Path) -> None:
    """On two workers; two of their processes are killed."""
    (tmp_path / "net.yml").write_text(NET)
    (tmp_path / "sweep.yml").write_text(SWEEP)
    marks = tmp_path / "marks"
    marks.mkdir()
    hk.run_sweep(tmp_path / "sweep.yml", tmp_path / "here", workers=1)
    script = tmp_path / "on_ray.py"
    script.write_text(ON_RAY)
    done = subprocess.run(
        [
            sys.executable,
            str(script),
            str(tmp_path / "sweep.yml"),
            str(tmp_path / "ray"),
            str(marks),
        ],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(hk.__file__).parent.parent),
            "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
            "RAY_ADDRESS": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-2:] == ["8", "24"]  # after notes of Ray
    assert len(list(marks.iterdir())) == 2
    wanted = {each.name: each.read_bytes() for each in (tmp_path / "here" / "rows").iterdir()}
    assert {
        each.name: each.read_bytes() for each in (tmp_path / "ray" / "rows").iterdir()
    } == wanted


def refuse_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def without(name: str, *given: Any, **more: Any) -> Any:
        if name == "ray":
            raise ImportError(name=name)
        return plain(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)


def test_without_ray_one_line_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_ray(monkeypatch)
    sweep = from_text(SWEEP.replace(", net.yml", ""), "s.yml")
    with pytest.raises(hk.SpecError) as caught:
        hk.run_sweep(sweep, tmp_path / "a", ray="auto")
    assert str(caught.value) == "ray: Ray is not installed; install it: pip install 'hocket[ray]'"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ray://127.0.0.1:{port}", "no cluster answers at 'ray://127.0.0.1:"),
        ("127.0.0.1:{port}", "no cluster answers at '127.0.0.1:"),
        (
            "127.0.0.1:x",
            "'127.0.0.1:x' is no address of a cluster; write auto, local, host:6379 or ray",
        ),
        ("127.0.0.1:99999", "is no address of a cluster"),
        (":6379", "is no address of a cluster"),
    ],
)
def test_where_nothing_answers_one_line_says_so(address: str, message: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(hk.SpecError) as caught:
        on_ray._check_reachable(address.format(port=port))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_node_with_another_version_is_refused() -> None:
    sweep = from_text(SWEEP.replace(", net.yml", ""), "s.yml")
    task = on_ray.BatchTask("part", 0)
    with pytest.raises(
        hk.SpecError, match=r"a node has hocket .*, and this is 9\.9; install the same"
    ):
        on_ray._work(sweep, sweep.hash, "9.9", task)


def test_a_task_gives_what_a_process_here_does() -> None:
    from hocket.sweeps.batch import run_batch
    from hocket.sweeps.inputs import SweepInputs

    sweep = from_text(SWEEP.replace(", net.yml", ""), "s.yml")
    made = on_ray._work(sweep, sweep.hash, hk.__version__, on_ray.BatchTask("part", 1))
    assert made == run_batch(sweep, 1, SweepInputs(sweep.loaded))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install ray")
def test_what_listens_but_is_no_cluster_is_given_up(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(hk.SpecError, match="no cluster answers at"):
            on_ray._connected(address)
    assert capfd.readouterr().err == ""
