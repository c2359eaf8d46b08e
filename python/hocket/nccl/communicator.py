"""Graphs for one communicator: the variable that names their file is set only while it is made.

References
----------
NVIDIA/nccl 2.30.7, src/graph/search.cc (``ncclTopoCompute`` reads the variable for each communicator) and
src/init.cc (splits read it anew; read at commit 5067397).
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from hocket._checks import is_decimal, list_of, path_of, whole
from hocket.deployment.manifest import load_deployment
from hocket.errors import InfeasibleError, SpecError
from hocket.nccl.graphs import read_graph
from hocket.units import shown

_VARIABLE = "NCCL_GRAPH_FILE"
_NONBLOCKING = "TORCH_NCCL_USE_COMM_NONBLOCKING"
_OFF = {"", "0", "n", "no", "off", "f", "false"}
_open = threading.Lock()


@contextmanager
def graph_file(
    path: str | PathLike[str], ranks: Sequence[int] | None = None, rank: int | None = None
) -> Iterator[None]:
    """Let the one communicator that is made inside read a file of graphs, and no other.

    At the end the communicator of a process group of PyTorch that was made inside exists: one element is
    reduced on it, since PyTorch may make it as late as at the first call. Make groups that are split from
    another outside, unless the file is theirs.

    Parameters
    ----------
    path
        A file such as ``hocket nccl graph`` writes, for all GPUs of the communicator on this node. Or the
        folder of ``hocket deploy``, which may have one for a group: if it has none, nothing is read.
    ranks
        The ranks of the group in the job, for a folder. Default: all.
    rank
        This process's, for a folder. Default: what the variable ``RANK`` says, as torchrun sets it.

    Raises
    ------
    SpecError
        If there is no such file or rank, it makes no sense, or ``NCCL_GRAPH_FILE`` is set already.
    InfeasibleError
        If communicators are made without waiting (``TORCH_NCCL_USE_COMM_NONBLOCKING``), this function is in
        use already, by this thread or another, or several groups were made inside.

    Examples
    --------
    >>> import hocket as hk
    >>> import torch.distributed as dist  # doctest: +SKIP
    >>> with hk.nccl.graph_file("graph.xml"):  # doctest: +SKIP
    ...     dist.init_process_group("nccl", device_id=device)
    """
    file = path_of("path", path).absolute()
    if file.is_dir():
        found = _of_folder(file, ranks, rank)
        if found is None:
            yield
            return
        file = found
    read_graph(file)
    if os.environ.get(_NONBLOCKING, "").strip().lower() not in _OFF:
        why = f"with {_NONBLOCKING} a communicator reads its file some time after it is made"
        raise InfeasibleError(None, why, "set it to 0")
    if not _open.acquire(blocking=False):
        why = "a communicator is being made by a file of graphs already"
        raise InfeasibleError(None, why, "make one after the other")
    try:
        if _VARIABLE in os.environ:
            why = "is set, so that every communicator of the process reads that file"
            raise SpecError(_VARIABLE, why, "unset it")
        before = set(_groups())
        os.environ[_VARIABLE] = str(file)
        try:
            yield
            made = [group for group in _groups() if group not in before]
            if len(made) > 1:
                why = f"{len(made)} process groups were made, which read one file each"
                raise InfeasibleError(None, why, "make one")
            for group in made:
                _make(group)
        finally:
            os.environ.pop(_VARIABLE, None)
    finally:
        _open.release()


def _of_folder(folder: Path, ranks: Sequence[int] | None, rank: int | None) -> Path | None:
    """Return the file of a deployed folder that a rank of a group reads, or None if there is none."""
    deployment = load_deployment(folder)
    count = len(deployment.manifest.machine.npus)
    if rank is None:
        text = os.environ.get("RANK", "")
        if not is_decimal(text):
            why = f"the variable RANK is {shown(text)}" if text else "the variable RANK is not set"
            raise SpecError("rank", why, "give the rank in the job, such as 0")
        rank = int(text)
    whole("rank", rank, 0, count - 1)
    npus = range(count) if ranks is None else list_of("ranks", ranks)
    graph = deployment.graph_of(tuple(npus), rank)
    if graph is None:
        return None
    deployment.read(graph)
    return folder / graph.file


def _groups() -> list[Any]:
    """Return this process's groups of PyTorch that have NCCL, or hocket, which makes one of NCCL."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return []
    groups = list(distributed.distributed_c10d._world.pg_map)
    return [
        group
        for group in groups
        if re.search("nccl|hocket", str(distributed.get_backend_config(group)).lower())
    ]


def _make(group: Any) -> None:
    """Make the communicator of a group, if it is not made: reduce one element, and wait for it.

    No plan of hocket sums its type, so that the backend of hocket gives it to NCCL.
    """
    torch = sys.modules["torch"]
    device = getattr(group, "bound_device_id", None)
    if device is None and "hocket" in str(torch.distributed.get_backend_config(group)):
        backend = group._get_backend(torch.device("cuda"))
        device = getattr(backend, "bound_device", None)  # hocket took it over
    device = device or "cuda"
    element = torch.zeros(1, dtype=torch.float64, device=device)
    torch.distributed.all_reduce(element, group=group)
    element.item()
