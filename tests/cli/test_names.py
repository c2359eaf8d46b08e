"""Names from files reach the terminal as they are, and steer nothing there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import hocket as hk
from hocket import _core
from hocket.files import yaml_tree
from hocket.units import printable

ON = ("--bandwidth", "1 GB/s", "--latency", "1 us")
HIDDEN = [
    "\x1b[31m",
    "a\nb",
    "a\rb",
    "\x07",
    "\x9b2J",
    "a\u202eb",
    "a\u200bb",
    "a\u2028b",
    "\ufeffa",
]


def topology(*names: str, called: str = "net") -> hk.Topology:
    links = np.array([0, 1], dtype=np.uint32)
    rates = np.array([10**9] * 2, dtype=np.uint64)
    return _core.Topology.from_arrays(called, names, 2, [], links, links[::-1], rates, rates)


@pytest.mark.parametrize("name", [*HIDDEN, "", "x" * 20_000])
def test_a_network_has_no_such_names(name: str) -> None:
    with pytest.raises(hk.SpecError, match=r"name of device 1:? (has the char|is empty|is longer)"):
        topology("a", name)
    with pytest.raises(hk.SpecError, match=r"name of the topology: "):
        topology("a", "b", called=name)


def saved(folder: Path, **changes: Any) -> None:
    """Write a plan whose metadata says otherwise."""
    ring = hk.topology.ring(4, bandwidth="1 GB/s", latency="1 us")
    hk.plan("all-reduce", ring, size="1 MB", algorithm="ring", chunks=1).save(
        folder / "good.parquet"
    )
    table = pq.read_table(folder / "good.parquet")
    metadata = dict(table.schema.metadata)
    for key, change in changes.items():
        values = json.loads(metadata[f"hocket.{key}".encode()])
        change(values)
        metadata[f"hocket.{key}".encode()] = json.dumps(values).encode()
    pq.write_table(table.replace_schema_metadata(metadata), folder / "bad.parquet")


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("command", ["check", "simulate", "show --json"])
def test_a_plan_file_has_no_such_names(name: str, command: str, hocket: Any, folder: Path) -> None:
    for changes in (
        {"plan": lambda values: values.update(algorithm=name)},
        {"topology": lambda values: values.update(name=name)},
    ):
        saved(folder, **changes)
        result = hocket(*command.split(), "bad.parquet")
        assert result.code == 2, result
        assert "\x1b" not in result.out
        assert result.err.count("\n") == 1
        assert result.err[:-1].isprintable()
        assert "name of" in result.err


@pytest.mark.parametrize("text", ['"\\e[31m"', '"a\\nb"', '"\\u202e"', '"\\x07"'])
def test_escapes_in_yaml_are_refused(text: str, hocket: Any, folder: Path) -> None:
    Path("net.yml").write_text(
        f"npus: [a, {text}]\nlinks:\n  - [a, {text}, 1 GB/s, 1 us]\n", encoding="utf-8"
    )
    Path("jobs.yml").write_text(f"jobs:\n  - {{name: {text}, model: bloom}}\n", encoding="utf-8")
    Path("work.yml").write_text(
        f"name: {text}\nlayers:\n  - {{name: fc, channels: 8, filters: 8}}\n", encoding="utf-8"
    )
    for argv in (
        ["topology", "show", "net.yml"],
        ["route", "jobs.yml", "--fabric", "clos:4x4x4", *ON],
        ["workload", "show", "work.yml"],
    ):
        result = hocket(*argv)
        assert (result.code, result.out) == (2, ""), result
        assert result.err.count("\n") == 1
        assert result.err[:-1].isprintable()


def test_markup_is_no_markup(hocket: Any, folder: Path) -> None:
    Path("net.yml").write_text(
        'name: "[red]net[/]"\nnpus: ["[/a]", ":smile:"]\n'
        'links:\n  - ["[/a]", ":smile:", 1 GB/s, 1 us]\n'
    )
    result = hocket("compare", "all-reduce", "-t", "net.yml", "-s", "1MB")
    assert result.code == 0, result.err
    assert "[red]net[/]" in result.out
    assert "[/a]→:smile:" in result.out
    shown = hocket("topology", "show", "net.yml", "--links")
    assert "[/a]" in shown.out
    assert ":smile:" in shown.out


@pytest.mark.parametrize(
    "argv",
    [
        ["topology", "show", "\x1b[31mred"],
        ["plan", "all-reduce", "-t", "ring:4", *ON, "-s", "\x1b]0;title\x07", "-a", "ring"],
        ["plan", "\x1b[2J", "-t", "ring:4", *ON, "-s", "1MB", "-a", "ring"],
        ["check", "\x1b[31mred.parquet"],
        ["\x1b[31m"],
        ["train", "\x1b[31m", "-t", "ring:4", *ON],
    ],
)
def test_errors_steer_no_terminal(argv: list[str], hocket: Any, folder: Path) -> None:
    result = hocket(*argv)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert result.err[:-1].isprintable()


def test_a_written_path_is_shown_escaped(hocket: Any, folder: Path) -> None:
    argv = ("plan", "all-reduce", "-t", "ring:4", *ON, "-s", "1MB", "-a", "ring")
    result = hocket(*argv, "-o", "a\x1b[31mb.parquet")
    assert result.code == 0
    assert "\x1b" not in result.out
    assert "a\\x1b[31mb.parquet" in result.out


def test_printable_is_what_python_writes() -> None:
    assert printable("größer → 漢字 ok") == "größer → 漢字 ok"
    assert printable("a\x1b[0m\n'\u202e") == "a\\x1b[0m\\n'\\u202e"


def test_a_large_yaml_file_is_refused_at_once(hocket: Any, folder: Path) -> None:
    Path("large.yml").write_text("npus: 4\n" + "# " + "x" * yaml_tree._LARGEST)
    for argv, remedy in (
        (["topology", "show", "large.yml"], "use a builder or dims"),
        (["route", "large.yml", "--fabric", "clos:4x4x4", *ON], "list fewer jobs"),
        (["workload", "show", "large.yml"], "larger than 8 MiB"),
    ):
        result = hocket(*argv)
        assert (result.code, result.out) == (2, "")
        assert "large.yml: is larger than 8 MiB" in result.err
        assert remedy in result.err


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        "[" * 100_000,
        "a: " + "{b: " * 100_000,
        "- " * 100_000,
        "? " * 100_000,
    ],
)
def test_what_unfolds_or_nests_is_refused(text: str, hocket: Any, folder: Path) -> None:
    Path("deep.yml").write_text(text)
    result = hocket("topology", "show", "deep.yml")
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("name", HIDDEN)
def test_a_program_s_name_is_in_one_line(hocket: Any, folder: Path, name: str) -> None:
    plan = hk.plan("broadcast", "fc:2@1GB/s,1us", size="1KB", algorithm="direct", chunks=1)
    hk.export_plan(plan, folder / "program.json", to="mscclpp")
    program = json.loads((folder / "program.json").read_text())
    (folder / "program.json").write_text(json.dumps({**program, "name": name}))
    for command in ("check", "import"):
        said = hocket(command, "program.json")
        assert said.code == 0, said.err
        assert f"MSCCL++'s JSON: {printable(name)}, " in said.out.splitlines()[0]
