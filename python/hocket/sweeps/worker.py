"""A process that runs parts of a sweep for whoever started it: ``python -m hocket.sweeps.worker``.

It is told what to do on standard input, in frames, and ends with it.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import IO, Any

_LENGTH = struct.Struct("<Q")
_early: list[subprocess.Popen[bytes]] = []


@contextmanager
def early_process() -> Iterator[None]:
    """Start a process that :func:`start_process` gives within the block; it is ended if none asked for it.

    Importing takes half a second here and there, and while this process does it alone, a core is idle.
    """
    _early.append(_new_process())
    try:
        yield
    finally:
        for each in _early:
            with each:
                each.kill()
        _early.clear()


def start_process() -> subprocess.Popen[bytes]:
    """Start a process that waits for a sweep and its tasks."""
    return _early.pop() if _early else _new_process()


def _new_process() -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C ends whoever started it, and its standard input with that.
    return subprocess.Popen(
        [sys.executable, "-m", "hocket.sweeps.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # the selector sees no answer that lies in a buffer
        env={**os.environ, "RAYON_NUM_THREADS": "1"},
        start_new_session=True,
    )


def write_frame(file: IO[bytes], value: object) -> None:
    """Write a value behind its length."""
    data = pickle.dumps(value)
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:  # a file without a buffer may take a part only
        left = left[file.write(left) :]
    file.flush()


def read_frame(file: IO[bytes]) -> Any:
    """Read a value.

    Raises
    ------
    EOFError
        If there is none.
    """
    (length,) = _LENGTH.unpack(_exactly(file, _LENGTH.size))
    return pickle.loads(_exactly(file, length))


def _exactly(file: IO[bytes], length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        more = file.read(length - len(data))
        if not more:
            raise EOFError
        data += more
    return bytes(data)


def main() -> None:
    """Run what is asked for until standard input ends."""
    source = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints is no answer
    tasks: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(source, tasks), daemon=True).start()

    from hocket._core.interrupt import unattended
    from hocket.sweeps.batch import run_batch, run_point
    from hocket.sweeps.inputs import SweepInputs

    unattended()  # Ctrl-C reaches whoever started it

    while True:
        told = tasks.get()
        if not isinstance(told, tuple):  # a sweep, which the tasks that follow are of
            sweep, inputs = told, SweepInputs(told.loaded)
            continue
        kind, number, killers = told
        if kind == "part":
            answer: object = run_batch(sweep, number, inputs, killers)
        else:
            run_point(sweep, number, inputs)
            answer = None
        write_frame(answers, answer)


def _listen(source: IO[bytes], tasks: SimpleQueue[Any]) -> None:
    """Pass on the input; end the process when nothing more will come."""
    try:
        while True:
            tasks.put(read_frame(source))
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main()
