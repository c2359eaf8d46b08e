"""What holds whatever is given: a result or a refusal in one line, in little time, and nothing else."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hocket.errors import Error

Door = Callable[[bytes], None]

MAX_SECONDS = 5.0
"""Of the processor, for one input; inputs are small."""


def refused(error: Error) -> None:
    """Check the message of a refusal."""
    message = str(error)
    assert message, "a refusal without a word"
    assert not set(message) & set("\n\r\x1b"), repr(message)
    message.encode("utf-8", "surrogateescape")


def guarded(door: Door, seconds: float = MAX_SECONDS) -> Door:
    """Give a door that takes refusals for an answer, and no long time."""

    def check(data: bytes) -> None:
        start = time.process_time()
        try:
            door(data)
        except Error as error:
            refused(error)
        took = time.process_time() - start
        assert took < seconds, f"{took:.1f} s of the processor"

    return check


def folder() -> Path:
    """Give a folder of this process, in memory where there is such a place; it goes when it ends."""
    memory = Path("/dev/shm")
    made = tempfile.mkdtemp(prefix="hocket-fuzz-", dir=memory if memory.is_dir() else None)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def is_one_line(text: str) -> bool:
    """Whether a text is one line that says something."""
    return len(text) > 1 and text.endswith("\n") and text.count("\n") == 1
