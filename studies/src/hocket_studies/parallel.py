"""Many runs on all cores, which stop when whoever waits for them is interrupted."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from threading import Event
from typing import TypeVar

from hocket.collectives.collective import Progress

Key = TypeVar("Key")
Result = TypeVar("Result")


def in_parallel(
    work: Callable[[Key, Progress], Result], keys: Iterable[Key]
) -> Generator[tuple[Key, Result], None, None]:
    """Return ``work(key, progress)`` of each key, in the order in which they end.

    Whatever ends the loop early (an interrupt, an error) stops the rest: those that run hear of it through
    ``progress``, which they call as they go, and the others never begin.
    """
    is_over = Event()

    def progress(stage: str, done: int, total: int) -> None:
        if is_over.is_set():
            raise CancelledError

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        try:
            futures = {pool.submit(work, key, progress): key for key in keys}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            is_over.set()
            pool.shutdown(wait=False, cancel_futures=True)
