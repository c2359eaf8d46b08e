"""Graphs for one communicator: the variable that names their file is set only while it is made.

References
----------
NVIDIA/nccl 2.30.7, src/graph/search.cc (``ncclTopoCompute`` reads the variable for each communicator) and
src/init.cc (splits read it anew; read at commit 5067397).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from hocket._checks import path_of
from hocket.errors import InfeasibleError, SpecError
from hocket.nccl.graphs import read_graph

_VARIABLE = "NCCL_GRAPH_FILE"
_NONBLOCKING = "TORCH_NCCL_USE_COMM_NONBLOCKING"
_OFF = {"", "0", "n", "no", "off", "f", "false"}
_open = threading.Lock()


@contextmanager
def graph_file(path: str | PathLike[str]) -> Iterator[None]:
    """Let the one communicator that is made inside read a file of graphs, and no other.

    At the end the communicator of a process group of PyTorch that was made inside exists: one element is
    reduced on it, since PyTorch may make it as late as at the first call. Make groups that are split from
    another outside, unless the file is theirs.

    Parameters
    ----------
    path
        A file such as ``hocket nccl graph`` writes, for all GPUs of the communicator on this node.

    Raises
    ------
    SpecError
        If there is no such file, it makes no sense, or ``NCCL_GRAPH_FILE`` is set already.
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


def _groups() -> list[Any]:
    """Return the process groups of PyTorch that this process is in and that have a backend of NCCL."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return []
    groups = list(distributed.distributed_c10d._world.pg_map)
    return [
        group for group in groups if "nccl" in str(distributed.get_backend_config(group)).lower()
    ]


def _make(group: Any) -> None:
    """Make the communicator of a group, if it is not made: reduce one element, and wait for it."""
    torch = sys.modules["torch"]
    element = torch.zeros(1, device=getattr(group, "bound_device_id", None) or "cuda")
    torch.distributed.all_reduce(element, group=group)
    element.item()
