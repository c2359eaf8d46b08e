"""Calls that go on while the program does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from hocket.errors import SpecError


class Pending:
    """A call that was started; its arrays belong to it until it has ended."""

    def __init__(self, work: Callable[[], Any], worker: Worker) -> None:
        self._work = work
        self._worker = worker
        self._ended = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Return whether it has ended, well or not."""
        return self._ended.is_set()

    def wait(self, timeout: float | None = None) -> Any:
        """Wait until it has ended, and give its result.

        Parameters
        ----------
        timeout
            For how long [s]; the call goes on after that.

        Raises
        ------
        TimeoutError
            If it has not ended in time.
        TransportError
            If it has failed.
        SpecError
            If who waits is a started call itself: this one only comes after it.
        """
        if self._worker.is_inside and not self.done():
            why = "a started call waits for one that comes after it"
            raise SpecError(None, why, "wait where it was started, or call without start")
        if not self._ended.wait(timeout):
            raise TimeoutError(f"the call has not ended within {timeout} s")
        if self._error is not None:
            raise self._error
        return self._result

    def run(self) -> None:
        """Make the call, once."""
        try:
            self._result = self._work()
        except BaseException as error:  # whoever waits gets it
            self._error = error
        self._ended.set()


class Worker:
    """A thread that makes calls in the order in which they were started."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Pending | None] = SimpleQueue()
        self._last: Pending | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def is_inside(self) -> bool:
        """Return whether the caller is one of its calls."""
        return threading.current_thread() is self._thread

    @property
    def is_idle(self) -> bool:
        """Whether all calls have ended."""
        return self._last is None or self._last.done()

    def start(self, work: Callable[[], Any]) -> Pending:
        """Start a call after those that were started before.

        Raises
        ------
        SpecError
            If it has been closed.
        """
        self.check_open()
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="hocket-calls", daemon=True)
            self._thread.start()
        self._last = Pending(work, self)
        self._calls.put(self._last)
        return self._last

    def check_open(self) -> None:
        """Refuse calls after the end.

        Raises
        ------
        SpecError
            If it has been closed.
        """
        if self._closed:
            raise SpecError(None, "the communicator is closed")

    def close(self) -> None:
        """End after the calls that were started.

        Raises
        ------
        SpecError
            If one of them asks for it.
        """
        if self.is_inside:
            why = "a started call cannot close its communicator"
            raise SpecError(None, why, "close it where the call was started")
        self._closed = True
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
