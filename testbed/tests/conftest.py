"""Testbeds of tests have a prefix for each process, and are skipped where none can be built."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.built import preload, programs

import hocket_testbed


@pytest.fixture
def controller_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller and its agent, built."""
    found = programs()
    if not found:
        pytest.skip("the controller is not built: cargo test -p hocket-controller")
    for name, path in found.items():
        monkeypatch.setenv(name, path)


@pytest.fixture
def controller_library(controller_programs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller, its agent, and the library that asks the agent."""
    library = preload()
    if library is None:
        pytest.skip("the library is built by cargo")
    monkeypatch.setenv("HOCKET_PRELOAD", str(library))


@pytest.fixture
def prefix() -> Iterator[str]:
    """A prefix of which nothing is left afterwards."""
    missing = hocket_testbed.what_is_missing()
    if missing is not None:
        pytest.skip(f"no testbed can be built here: {missing[0]}")
    name = f"t{os.getpid() % 100_000}"
    yield name
    assert hocket_testbed.clean(name) == 0
