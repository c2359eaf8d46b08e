"""Waiting for what a testbed comes to."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 40.0
"""How long it may take [s]."""


def until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, f"not {what} after {PATIENCE:g} s"
        time.sleep(0.05)
