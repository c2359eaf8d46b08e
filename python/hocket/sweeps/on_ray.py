"""Parts of a sweep as tasks of a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from hocket._checks import is_decimal
from hocket._core import __version__
from hocket.errors import SpecError
from hocket.sweeps.batch import run_batch, run_point
from hocket.sweeps.inputs import SweepInputs
from hocket.sweeps.pool import BatchOutcome, BatchTask
from hocket.sweeps.sweep import Sweep
from hocket.units import shown

if TYPE_CHECKING:
    from types import ModuleType

LOCAL = "local"
"""The address that starts a cluster on this machine."""
_PATIENCE = 5.0
"""How long an address may take to answer [s]."""
_PATIENCE_OF_RAY = 12.0
"""How long Ray may take to connect to what answers there [s]."""
_TRY = """
import logging, sys
import ray
try:
    ray.init(address=sys.argv[1], logging_level=logging.ERROR, log_to_driver=False)
    ray.shutdown()
except Exception as error:
    print(" ".join(str(error).split()) or type(error).__name__)
    sys.exit(1)
"""
_CLIENT_PORT, _HEAD_PORT = 10001, 6379
_INSTALL = "install it: pip install 'hocket[ray]'"
_START = "start one with `ray start --head`, or leave --ray out"


class OnRay:
    """An executor on a Ray cluster; each task takes one CPU."""

    def __init__(self, sweep: Sweep, address: str) -> None:
        self._ray = _connected(address)
        self._started = address == LOCAL
        self._running: dict[Any, BatchTask] = {}
        task = self._ray.remote(num_cpus=1, max_retries=0)(_work)
        self._submit = task.remote
        self._sweep = self._ray.put(sweep)
        self._key = sweep.hash
        cpus = int(self._ray.cluster_resources().get("CPU", 0))
        if cpus < 1:
            self.close()
            raise SpecError("ray", f"the cluster at {shown(address)} has no CPU", "add a worker")
        self._most = 2 * cpus

    @property
    def room(self) -> int:
        """The number of further tasks that it would take now."""
        return self._most - len(self._running)

    def submit(self, task: BatchTask) -> None:
        """Pass on a task."""
        made = self._submit(self._sweep, self._key, __version__, task)
        self._running[made] = task

    def wait(self) -> list[BatchOutcome]:
        """Wait until a task is done or its process has ended.

        Raises
        ------
        SpecError
            If the cluster is gone, or has no hocket or another one.
        """
        ray = self._ray
        done, _ = ray.wait(list(self._running), num_returns=1)
        found = []
        for each in done:
            task = self._running.pop(each)
            try:
                found.append(BatchOutcome(task, ray.get(each)))
            except ray.exceptions.RayTaskError as error:
                raise _of_task(error) from None
            except ray.exceptions.RaySystemError as error:
                raise SpecError("ray", _line(error), _START) from None
            except ray.exceptions.RayError:  # its process or its node ended
                found.append(BatchOutcome(task, None, is_dead=True))
        return found

    def close(self) -> None:
        """Leave the cluster; end one that was started for this."""
        for each in self._running:
            self._ray.cancel(each, force=True)
        self._running.clear()
        self._ray.shutdown()


def _work(sweep: Sweep, key: str, version: str, task: BatchTask) -> tuple[bytes, int] | None:
    """Do a task in a process of the cluster, which keeps what parts share."""
    if version != __version__:
        raise SpecError(
            "ray", f"a node has hocket {__version__}, and this is {version}", "install the same"
        )
    if key not in _KEPT:
        _KEPT.clear()
        _KEPT[key] = SweepInputs(sweep.loaded)
    if task.kind == "part":
        return run_batch(sweep, task.number, _KEPT[key], task.killers)
    run_point(sweep, task.number, _KEPT[key])
    return None


_KEPT: dict[str, SweepInputs] = {}


def _connected(address: str) -> ModuleType:
    """Connect to a cluster, and give the module.

    Raises
    ------
    SpecError
        If Ray is not installed, or no cluster answers.
    """
    try:
        import ray
    except ImportError:
        raise SpecError("ray", "Ray is not installed", _INSTALL) from None
    _check_reachable(address)
    if address != LOCAL and not ray.is_initialized():
        _check_connects(address)
    given: dict[str, Any] = {} if address == LOCAL else {"address": address}
    try:
        ray.init(
            **given,
            logging_level=logging.ERROR,
            log_to_driver=False,
            ignore_reinit_error=True,
            include_dashboard=False if address == LOCAL else None,
        )
    except Exception as error:  # Ray raises whatever its parts do
        why = f"no cluster answers at {shown(address)}: {_line(error)}"
        raise SpecError("ray", why, _START) from None
    module: ModuleType = ray
    return module


def _check_reachable(address: str) -> None:
    """Ask whether anything listens at ``host:port`` or ``ray://host:port``; Ray itself asks for minutes."""
    if address in (LOCAL, "auto"):
        return
    is_client = address.startswith("ray://")
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        host, port = port, str(_CLIENT_PORT if is_client else _HEAD_PORT)
    if not host or not is_decimal(port) or not 0 < int(port) < 65536:
        right = "write auto, local, host:6379 or ray://host:10001"
        raise SpecError("ray", f"{shown(address)} is no address of a cluster", right)
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        why = f"no cluster answers at {shown(address)}: {error.strerror or error}"
        raise SpecError("ray", why, _START) from None


def _check_connects(address: str) -> None:
    """Connect once in a process of its own: Ray prints as it pleases, and waits for minutes."""
    why = f"no cluster answers at {shown(address)}"
    env = {**os.environ, "RAY_NUM_REDIS_GET_RETRIES": "1"}
    try:
        tried = subprocess.run(
            [sys.executable, "-c", _TRY, address],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_OF_RAY,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        why += f": what listens there did not in {_PATIENCE_OF_RAY:g} s"
        raise SpecError("ray", why, _START) from None
    if tried.returncode == 0:
        return
    said = (tried.stdout.strip().splitlines() or ["Ray ended"])[-1]
    if "ray[client]" in said:
        right = "install it: pip install 'ray[client]', or write host:6379"
        raise SpecError("ray", f"{shown(address)} needs Ray's client", right)
    raise SpecError("ray", f"{why}: {said[:200].rstrip('. ')}", _START)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _of_task(error: Any) -> SpecError:
    """Explain why a task failed before it ran a point."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, SpecError):
        return SpecError(cause.field, cause.why, cause.remedy)
    if isinstance(cause, ImportError):
        return SpecError("ray", f"a node has no {cause.name or 'hocket'}", "install hocket there")
    return SpecError(
        "ray", f"a task failed: {_line(cause or error)}", "see the logs of the cluster"
    )
