"""Testbeds of tests have a prefix for each process, and are skipped where none can be built."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import hocket as hk

BUILT = Path(__file__).parent.parent.parent / "target" / "debug"
"""Where the tests of the Rust crates leave programs."""


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller and its agent, built."""
    for name in ("hocket-controller", "hocket-agent"):
        variable = name.replace("-", "_").upper()
        if variable not in os.environ:
            if not (BUILT / name).exists():
                pytest.skip(f"{name} is not built: cargo test -p hocket-controller -p hocket-agent")
            monkeypatch.setenv(variable, str(BUILT / name))


@pytest.fixture
def prefix() -> Iterator[str]:
    """A prefix of which nothing is left afterwards."""
    missing = hk.testbed.what_is_missing()
    if missing is not None:
        pytest.skip(f"no testbed can be built here: {missing[0]}")
    name = f"t{os.getpid() % 100_000}"
    yield name
    assert hk.testbed.clean(name) == 0
