"""GPUs whose threads are those of a CPU: ``interpreter.cu`` is compiled as C++ with ``cuda_on_cpu.h``."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

from hocket.deployment.own import OwnEngine, Symmetric, Words, source

HERE = Path(__file__).parent


@cache
def library(*flags: str) -> Any:
    """Compile the interpreter."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = Path(mkdtemp())
    (folder / "interpreter.cpp").write_text(source())
    made = folder / "interpreter.so"
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", f"-I{HERE}", *warnings, *flags]
    done = subprocess.run(
        [compiler, *options, str(folder / "interpreter.cpp"), "-o", str(made)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = ctypes.CDLL(str(made))
    shutil.rmtree(folder)
    return found


class Cluster:
    """The GPUs of all ranks.

    Parameters
    ----------
    ranks
        How many.
    threads
        Of a block.
    seed
        Of the order in which threads take turns; 0 for threads of the system.
    has_multicast
        Whether memory has a multicast address.

    Attributes
    ----------
    absent
        Ranks that leave out launches.
    calls, callers
        How many calls a launch makes, and what each rank's caller does for them: ``Caller`` of the header.
    """

    def __init__(
        self, ranks: int, *, threads: int = 1, seed: int = 1, has_multicast: bool = False
    ) -> None:
        self.ranks, self.threads, self.seed = ranks, threads, seed
        self.has_multicast = has_multicast
        self.absent: set[int] = set()
        self.calls = 1
        self.callers = np.zeros((ranks, 6), np.uint64)
        self.memory: list[Any] = []
        self._barrier = threading.Barrier(ranks)
        self._calls: list[Any] = [None] * ranks
        self.library = library()

    def gpu(self, rank: int) -> _Gpu:
        """Return the GPU of a rank."""
        return _Gpu(self, rank)

    def allocate(self, rank: int, size: int) -> Symmetric:
        """Return memory of a rank."""
        if self._barrier.wait() == 0:
            # Addresses that are multiples of a vector; one more stands for all.
            self.memory = [
                np.zeros(size // 16, "u8,u8").view(np.uint8) for _ in range(self.ranks + 1)
            ]
        self._barrier.wait()
        bases = [int(each.ctypes.data) for each in self.memory]
        return Symmetric(self.memory[rank], bases[:-1], bases[-1] if self.has_multicast else 0)

    def launch(self, rank: int, call: Words, blocks: int, vectors: int, dtype: int) -> None:
        """Launch at all ranks, of which some may leave it out."""
        self._calls[rank] = (call, blocks)
        if self._barrier.wait() == 0:
            present = [each for i, each in enumerate(self._calls) if i not in self.absent]
            bases = np.array([each.ctypes.data for each in self.memory], np.uint64)
            pointer = bases.ctypes.data_as(ctypes.c_void_p)
            self.library.multicast_memory(ctypes.c_uint64(int(bases[-1])), pointer, self.ranks)
            calls = np.array([each[0].ctypes.data for each in present], np.uint64)
            counts = np.array([each[1] for each in present], np.int32)
            callers = np.delete(self.callers, list(self.absent), axis=0)
            self.library.launch(
                len(present),
                calls.ctypes.data_as(ctypes.c_void_p),
                counts.ctypes.data_as(ctypes.c_void_p),
                callers.ctypes.data_as(ctypes.c_void_p),
                self.calls,
                self.threads,
                vectors,
                dtype,
                ctypes.c_uint64(self.seed),
            )
            self.seed += bool(self.seed)
        self._barrier.wait()

    def on_all(self, work: Callable[[int], Any]) -> list[Any]:
        """Run a function at all ranks at once; if one fails, the others do not wait for it."""

        def guarded(rank: int) -> Any:
            try:
                return work(rank)
            except Exception:
                self._barrier.abort()
                raise

        with ThreadPoolExecutor(self.ranks) as pool:
            futures = [pool.submit(guarded, rank) for rank in range(self.ranks)]
        errors = [each.exception() for each in futures]
        for error in errors:
            if error is not None and not isinstance(error, threading.BrokenBarrierError):
                raise error
        return [each.result() for each in futures]

    def engines(self, programs: Any, stage: int, seconds: float = 1e-3) -> list[OwnEngine]:
        """Make the engines of all ranks; with turns a second is 10^9 of them."""

        def make(rank: int) -> OwnEngine:
            return OwnEngine(
                self.gpu(rank),
                programs,
                rank=rank,
                ranks=self.ranks,
                stage=stage,
                seconds=seconds,
                scale=scale,
            )

        return self.on_all(make)


class _Gpu:
    def __init__(self, cluster: Cluster, rank: int) -> None:
        self._cluster, self._rank = cluster, rank
        self.report = np.zeros(4, np.uint64)

    def symmetric(self, size: int) -> Symmetric:
        return self._cluster.allocate(self._rank, size)

    def upload(self, words: Words) -> Words:
        return words.copy()

    def address(self, of: Words) -> int:
        return int(of.ctypes.data)

    def launch(self, call: Words, blocks: int, vectors: int, dtype: int) -> None:
        self._cluster.launch(self._rank, call, blocks, vectors, dtype)


def scale(buffer: Any, dtype: str, factor: float) -> None:
    numbers = buffer.view(dtype)
    numbers *= numbers.dtype.type(factor)
