"""What ends a process whose launch does not end: a kernel that waits cannot be taken back."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, NoReturn

from hocket.errors import TransportError

EXIT = 87
"""Exit code of a process that a watchdog ended."""
_WAIT = 2.0
"""Seconds in which the ranks tell each other where they are."""
_SIGN = "hocket: a launch does not end"
"""Key of the store by which all ranks learn it, and why."""


class _Never:
    def done(self) -> bool:
        return False


class Watchdog:
    """Looks at the launches of a group, in a thread, and ends the process if one does not end.

    All ranks of the group learn of it through the store, and end too.

    Parameters
    ----------
    store
        Of the group.
    rank, size, name
        Of this process in the group, its ranks, and what it is called.
    seconds
        How long a launch may take.
    device
        Whose events it looks at.

    Attributes
    ----------
    engine
        What launches, once there is one: it may know of a launch that gave up.
    """

    engine: Any = None

    def __init__(
        self, store: Any, rank: int, size: int, name: str, seconds: float, device: Any
    ) -> None:
        self._store = store.clone()  # a call that waits in the store must not hold it up
        self._rank, self._size, self._name, self._seconds = rank, size, name, seconds
        self._device = device
        self._pending: deque[tuple[Any, float, str]] = deque()
        self._last = "nothing"
        self._failed = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="hocket watchdog", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def add(self, event: Any, said: str) -> None:
        """Watch a launch until its event is done."""
        self._last = said
        self._pending.append((event, time.monotonic() + self._seconds, said))

    def tell(self, said: str) -> None:
        """End all ranks, as this one failed after others may have launched."""
        self._failed = said

    @contextlib.contextmanager
    def limit(self, said: str) -> Iterator[None]:
        """Watch what has no event.

        An engine may wait with the interpreter locked, so that no thread of Python runs: then a timer of
        C's ends the process a little later.
        """
        mark = (_Never(), time.monotonic() + self._seconds, said)
        self._pending.append(mark)
        faulthandler.dump_traceback_later(self._seconds + 3 * _WAIT, exit=True)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            self._pending.remove(mark)

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.set()
        atexit.unregister(self.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _look(self) -> None:
        self._device.relax()
        step = min(0.5, self._seconds / 20)
        has_store = True
        while not self._stopped.wait(step):
            self._forget()
            late = self._failed or self._given_up() or self._late()
            if has_store and not late:
                try:
                    if self._store.check([_SIGN]):
                        self._end("")
                except RuntimeError:
                    has_store = False  # its process has ended: the job is over, or fails elsewhere
            if late:
                self._end(late)

    def _forget(self) -> None:
        for each in list(self._pending):
            if not each[0].done():
                break
            self._pending.remove(each)

    def _given_up(self) -> str:
        """Return what the engine says of a launch that gave up; empty if none did."""
        if self.engine is not None:
            try:
                self.engine.check()
            except TransportError as error:
                self._failed = str(error)
        return self._failed

    def _late(self) -> str:
        """Return what should have ended by now; empty if nothing."""
        pending = list(self._pending)
        now = time.monotonic()
        late = [said for event, until, said in pending if until < now and not event.done()]
        return late[0] if late else ""

    def _end(self, late: str) -> NoReturn:
        """Tell the others, print what each says, and end."""
        own = late or (self._pending[0][2] if self._pending else f"nothing after {self._last}")
        said = {self._rank: own}
        why = (self._failed and "failed") or f"did not end in {self._seconds:g} s"
        with contextlib.suppress(RuntimeError):
            self._store.set(f"hocket: late at rank {self._rank}", own)
            if late:
                self._store.set(_SIGN, why)
            else:
                why = self._store.get(_SIGN).decode()
            until = time.monotonic() + _WAIT
            while len(said) < self._size and time.monotonic() < until:
                for rank in range(self._size):
                    key = f"hocket: late at rank {rank}"
                    if rank not in said and self._store.check([key]):
                        said[rank] = self._store.get(key).decode()
                time.sleep(0.02)
        every = [f"rank {rank}: {said.get(rank, 'says nothing')}" for rank in range(self._size)]
        line = f"hocket: a launch of group {self._name} {why}; {'; '.join(every)}"
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
        if self._rank == 0:
            time.sleep(1)  # its process may have the store, which the others still read
        os._exit(EXIT)
