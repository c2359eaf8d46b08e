"""One rank of a real NCCL, in a process of its own: ``python one_rank.py RANK JOB.json``.

It uses neither hocket nor PyTorch: libnccl and the driver are called as they are. What it finds goes to
``rankN.json`` beside the job.
"""

from __future__ import annotations

import array
import ctypes
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FLOAT, SUM = 7, 0
GLOBAL = 0
"""Mode of capture of a stream."""


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * 128)]


class SimInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("time", ctypes.c_float),
    ]


class Rank:
    """A communicator's rank on the first GPU."""

    def __init__(self, rank: int, job: dict[str, Any], folder: Path) -> None:
        self.rank, self.ranks = rank, job["ranks"]
        self.nccl = ctypes.CDLL(job["library"])
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.nccl.ncclGetErrorString.restype = ctypes.c_char_p
        self.nccl.ncclGetLastError.restype = ctypes.c_char_p
        context = ctypes.c_void_p()
        self.driver("cuInit", 0)
        self.driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.driver("cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        self.driver("cuStreamCreate", ctypes.byref(self.stream), 1)
        number = ctypes.c_int()
        self.call("ncclGetVersion", ctypes.byref(number))
        self.version = number.value
        self.comm = ctypes.c_void_p()
        self.call("ncclCommInitRank", ctypes.byref(self.comm), self.ranks, self.meet(folder), rank)

    def driver(self, name: str, *arguments: Any) -> None:
        code = getattr(self.cuda, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: error {code} of the driver")

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.nccl, name)(*arguments)
        if code:
            why = self.nccl.ncclGetErrorString(code).decode()
            raise RuntimeError(f"{name}: {why}: {self.nccl.ncclGetLastError(None).decode()}")

    def meet(self, folder: Path) -> UniqueId:
        """The first rank's address, by a file."""
        file, made = folder / "address", UniqueId()
        if self.rank == 0:
            self.call("ncclGetUniqueId", ctypes.byref(made))
            file.with_suffix(".new").write_bytes(bytes(made))
            file.with_suffix(".new").rename(file)
        until = time.monotonic() + 60
        while not file.exists():
            if time.monotonic() > until:
                raise RuntimeError("rank 0 has not come")
            time.sleep(0.01)
        return UniqueId.from_buffer_copy(file.read_bytes())

    def start(self, kind: str, size: int, sent: Any, received: Any) -> None:
        """Enqueue a collective of a size [bytes] as nccl-tests states it."""
        count = size // 4
        each = count // self.ranks
        name, *arguments = {
            "all-reduce": ("ncclAllReduce", count, FLOAT, SUM),
            "all-gather": ("ncclAllGather", each, FLOAT),
            "reduce-scatter": ("ncclReduceScatter", each, FLOAT, SUM),
            "broadcast": ("ncclBroadcast", count, FLOAT, 0),
            "reduce": ("ncclReduce", count, FLOAT, SUM, 0),
        }[kind]
        counted = ctypes.c_size_t(arguments[0])
        self.call(name, sent, received, counted, *arguments[1:], self.comm, self.stream)

    def predict(self, kind: str, size: int) -> float:
        """What NCCL predicts for its own pick [us]: nothing is launched."""
        info = SimInfo(ctypes.sizeof(SimInfo), 0x74685283, 22200, -1.0)
        anywhere = ctypes.c_void_p(1 << 40)
        self.call("ncclGroupStart")
        self.start(kind, size, anywhere, anywhere)
        self.call("ncclGroupSimulateEnd", ctypes.byref(info))
        return float(info.time)

    def plan(self, kind: str, size: int) -> None:
        """Plan it into a graph of CUDA that is never launched; NCCL's log says what it picked."""
        anywhere, graph = ctypes.c_void_p(1 << 40), ctypes.c_void_p()
        self.driver("cuStreamBeginCapture_v2", self.stream, GLOBAL)
        self.start(kind, size, anywhere, anywhere)
        self.driver("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self.driver("cuGraphDestroy", graph)

    def run(self, kind: str, size: int) -> bool:
        """Whether it gives the right numbers."""
        count = size // 4
        each = count // self.ranks
        sent, received = ctypes.c_void_p(), ctypes.c_void_p()
        for at in (sent, received):
            self.driver("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
        mine = array.array("f", [(i % 61) * (self.rank + 1) for i in range(count)])
        self.driver("cuMemcpyHtoD_v2", sent, mine.buffer_info()[0], ctypes.c_size_t(size))
        self.start(kind, size, sent, received)
        self.driver("cuStreamSynchronize", self.stream)
        found = array.array("f", bytes(size))
        self.driver("cuMemcpyDtoH_v2", found.buffer_info()[0], received, ctypes.c_size_t(size))
        for at in (sent, received):
            self.driver("cuMemFree_v2", at)
        factor = self.ranks * (self.ranks + 1) // 2
        if kind == "reduce" and self.rank:
            return True
        if kind in ("all-reduce", "reduce"):
            expected = [(i % 61) * factor for i in range(count)]
        elif kind == "broadcast":
            expected = [i % 61 for i in range(count)]
        elif kind == "all-gather":
            expected = [(i % 61) * (r + 1) for r in range(self.ranks) for i in range(each)]
        else:
            expected = [((self.rank * each + i) % 61) * factor for i in range(each)]
        return list(found[: len(expected)]) == expected


def work(rank: Rank, job: dict[str, Any]) -> dict[str, Any]:
    """Predictions come last: what they enqueue stays there, and would be launched with what comes after."""
    done: dict[str, Any] = {"version": rank.version, "right": [], "predicted": []}
    for kind, size in job.get("run", []):
        begun = time.monotonic()
        right = rank.run(kind, size)
        done["right"].append([kind, size, right, time.monotonic() - begun])
    for kind, size in job.get("plan", []):
        rank.plan(kind, size)
    for kind, size in job.get("predict", []):
        done["predicted"].append([kind, size, rank.predict(kind, size)])
    return done


def main() -> None:
    number, file = int(sys.argv[1]), Path(sys.argv[2])
    job = json.loads(file.read_text())
    begun = time.monotonic()
    try:
        rank = Rank(number, job, file.parent)
        done = {"seconds_to_begin": time.monotonic() - begun, **work(rank, job)}
    except RuntimeError as error:
        done = {"error": str(error)}
    done["seconds"] = time.monotonic() - begun
    (file.parent / f"rank{number}.json").write_text(json.dumps(done))
    sys.stdout.flush()
    os._exit("error" in done)  # plans that never ran are not waited for


if __name__ == "__main__":
    main()
