"""A future of PyTorch that its core, too, sees fail."""

from __future__ import annotations

from typing import Any

import torch


class FailingFuture:
    """The future of a call that goes on.

    An exception that a future is given from Python is a value like any other to PyTorch's core, which goes
    on with it. One that leaves a callback is an error.

    Attributes
    ----------
    future
        Holds the value once the call has ended, or its error.
    failed
        What went wrong, once it has ended.
    """

    def __init__(self, value: Any) -> None:
        self._value = value
        self._ended: Any = torch.futures.Future()
        self.failed: BaseException | None = None
        self.future: Any = self._ended.then(self._outcome)

    def settle(self, failed: BaseException | None) -> None:
        """Report that the call has ended, and what went wrong."""
        self.failed = failed
        self._ended.set_result(None)

    def _outcome(self, _: Any) -> Any:
        if self.failed is not None:
            raise self.failed
        return self._value
