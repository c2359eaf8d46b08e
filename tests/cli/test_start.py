"""What is imported when: a command's module when the command runs, and nothing slow before."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import hocket as hk
from hocket.cli.command import Call
from hocket.cli.commands import COMMANDS
from hocket.cli.manual import leaves

SLOW = ("numpy", "pydantic", "yaml", "pyarrow", "matplotlib", "networkx")
LEAVES = [(path, each) for path, each in leaves(COMMANDS, "hocket") if not each.is_program]


def loaded_by(*argv: str) -> set[str]:
    code = (
        "import sys; from hocket.cli import run; code = run(sys.argv[1:]); "
        "print('\\n' + ' '.join(sys.modules)); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_no_help_says_words_twice() -> None:
    calls = [Call(path, each.place) for path, each in LEAVES]
    told = [param.told.help for each in calls for param in each.params]
    told += [text for each in calls for text in (each.summary, each.example)]
    assert all(each.example.startswith("For example: hocket ") for each in calls)
    for text in told:
        words = text.lower().split()
        for many in (1, 2, 3):
            parts = [tuple(words[i : i + many]) for i in range(len(words))]
            twice = [
                part for part, after in zip(parts, parts[many:], strict=False) if part == after
            ]
            assert not twice, text


def test_the_version_needs_no_command_line() -> None:
    for option in ("--version", "-V"):
        loaded = loaded_by(option)
        assert not {"hocket.cli.app", *SLOW} & loaded


def test_the_help_imports_no_command() -> None:
    loaded = loaded_by("--help")
    places = {each.place.partition(":")[0] for _, each in LEAVES}
    assert not places & loaded
    assert not {"hocket_studies", "hocket_testbed", "importlib.metadata"} & loaded
    assert not {"numpy", "pydantic"} & loaded


def test_a_package_that_is_not_installed_is_named(
    hocket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    result = hocket("testbed", "clos")
    assert (result.code, result.err) == (
        2,
        "hocket: `testbed` is a command of hocket-testbed, which is not installed; "
        "in a checkout of hocket, `make build` installs it\n",
    )


def test_a_plan_needs_nothing_slow() -> None:
    link = ("--bandwidth", "25 GB/s", "--latency", "500 ns")
    loaded = loaded_by("plan", "all-gather", "-t", "mesh:4x4", *link, "-s", "1MB", "-a", "greedy")
    assert not set(SLOW) & loaded
    assert not {"hocket.cli.compare", "hocket.training", "hocket.cluster.jobs"} & loaded


def test_texts_and_numbers_are_read_as_before(hocket: Any) -> None:
    ring = ("-t", "ring:4", "--bandwidth", "1 GB/s", "--latency", "1 us", "-s", "1MB")
    for given in ("x", "1.5", ""):
        result = hocket("plan", "all-reduce", *ring, "-c", given)
        assert result.code == 2
        assert result.err == f"hocket: --chunks: {given!r} is not a whole number\n"
    values = hocket("plan", "all-reduce", *ring, "-a", "ring", "-c", "2", "--json").json()
    assert values["chunk_count"] == 8
    assert hocket("-V").out == f"hocket {hk.__version__}\n"


def test_help_is_a_command_as_well(hocket: Any) -> None:
    assert hocket("help").out == hocket("--help").out
    assert hocket("help", "reproduce", "tacos").out == hocket("reproduce", "tacos", "-h").out
    assert hocket("help", "nothing").code == 2
