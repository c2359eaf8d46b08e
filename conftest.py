"""Settings of all tests: hypothesis draws the same examples on every run, however slow the machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import hocket
from hocket.cli import options

settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

# What users keep is no business of tests; those of the cache have a folder of their own.
os.environ["HOCKET_CACHE"] = "off"

# Lines of progress come by the clock: on a busy machine they would stand among what a test asks for.
options._EVERY_S = 1e6

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # In the background of a script: programs that tests start would ignore the signal as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of ``make accept``."""
    parser.addoption(
        "--accept",
        action="store_true",
        help="write what is printed today into the pages and files that show it; git diff tells",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as slow what builds networks, repeats evaluations or runs pages, where no path asks for it."""
    if config.args != config.getini("testpaths"):
        return
    root = Path(__file__).parent
    slow = ("testbed/tests", "studies/tests", "tests/docs/test_docs.py::test_page")
    for item in items:
        place = f"{item.path.relative_to(root).as_posix()}::{item.name}"
        if place.startswith(slow) and item.get_closest_marker("long") is None:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def accept(pytestconfig: pytest.Config) -> bool:
    """Whether what a page or a file shows is written anew where it differs."""
    return bool(pytestconfig.getoption("--accept"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add how to accept to the failures of what ``make accept`` writes."""
    report = yield
    if report.failed and "accept" in getattr(item, "fixturenames", ()):
        how = "make accept writes it anew (PAGES=WORD: only tests with that word in their names)"
        report.sections.append(("If the new output is meant", how))
    return report


@pytest.fixture
def interrupted(tmp_path: Path) -> Callable[..., str]:
    """Run a program that prints "made" and then works on; give what it prints after an interrupt."""

    def run(script: str, *, within: float) -> str:
        with subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(hocket.__file__).parent.parent)},
            stdout=subprocess.PIPE,
            encoding="utf-8",
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "made\n"
                time.sleep(0.5)
                process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=within)
            finally:
                process.kill()
        return out

    return run
