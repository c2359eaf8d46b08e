"""Every command and program in README.md and docs/ works as it stands there, and prints what is shown.

In a ``console`` block, a line that begins with ``$ `` is a command and what follows is its output; a line
``...`` stands for any lines. ``> FILE`` keeps the output, and with ``&`` at its end a command runs on while
the page is read. Any block after a line that is only a file name in backquotes and a colon is that file;
other ``python`` blocks are programs. Where PyTorch is not installed, a page whose commands need it is
skipped, and so is a program of another page that imports it; the page of the testbed is skipped where
none can be built, that of the controller where its programs are not.
``make`` in ``sh`` blocks must name a target.

With ``--accept`` (``make accept``), a page whose commands print something else is written anew. Look at the
difference: what the page says about the output may no longer be true.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.built import preload, programs

import hocket_testbed
from hocket.cli import run
from hocket.plans import registry

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
TORCH = {"from-torch.md", "pytorch.md"}
"""Pages whose commands need PyTorch."""


@dataclass
class Block:
    language: str
    text: str
    file: str | None
    line: int


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    file = None
    start = None
    for i, line in enumerate(lines):
        if line.startswith("```"):
            if start is None:
                start = i
            else:
                language = lines[start].removeprefix("```")
                yield Block(language, "\n".join(lines[start + 1 : i]), file, start + 1)
                start, file = None, None
        elif start is None and line.strip():
            named = re.fullmatch(r"`([\w.-]+)`:", line)
            file = named.group(1) if named else None


def commands(block: Block) -> Iterator[tuple[int, list[str], list[str]]]:
    """Give commands with the lines that a block shows of them, and where in the page these begin."""
    lines = block.text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    for i, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        command = shlex.split(lines[i].removeprefix("$ "))
        yield block.line + i + 1, command, lines[i + 1 : end]


class Background:
    """Commands that run on."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[str]] = []

    def start(self, command: list[str]) -> None:
        """Start a command, which says a line when it is there."""
        module = [sys.executable, "-m", *command]
        process = subprocess.Popen(module, stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        assert process.poll() is None, line

    def stop(self) -> None:
        """End all, the last first."""
        for process in reversed(self.running):
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def outcome(command: list[str]) -> tuple[int, str, str]:
    """Run a command, here if it is Python's, and give its code, output and errors."""
    if command[1] in ("controller", "agent"):  # it would replace this process
        done = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(command[1:])
    return code, out.getvalue(), err.getvalue()


def matches(shown: list[str], printed: list[str]) -> bool:
    pattern = "\n".join(".*" if line == "..." else re.escape(line.rstrip()) for line in shown)
    return (
        re.fullmatch(pattern, "\n".join(line.rstrip() for line in printed), re.DOTALL) is not None
    )


def abridged(shown: list[str], printed: list[str]) -> list[str]:
    """Give the output with as many lines as were shown before, between and after what is left out.

    Lines between two that are left out are those most like what was shown there.
    """
    parts: list[list[str]] = [[]]
    for line in shown:
        parts += [[]] if line == "..." else []
        parts[-1] += [] if line == "..." else [line]
    if len(parts) == 1:
        return printed
    first, *between, last = parts
    at, made = len(first), printed[: len(first)]
    end = max(at, len(printed) - len(last))
    for part in between:
        places = range(at, end - len(part) + 1)
        if places:
            best = max(places, key=lambda i: alikeness(part, printed[i : i + len(part)]))
            at = best + len(part)
            made += ["...", *printed[best:at]]
    return [*made, "...", *printed[end:]]


def alikeness(shown: list[str], printed: list[str]) -> float:
    pairs = zip(shown, printed, strict=True)
    return sum(SequenceMatcher(None, one, other, autojunk=False).ratio() for one, other in pairs)


def test_lines_are_left_out_where_they_were() -> None:
    assert abridged(["a", "b"], ["c"]) == ["c"]
    assert abridged(["a", "...", "b"], ["c", "d", "e", "f"]) == ["c", "...", "f"]
    assert abridged(["a", "...", "b", "...", "c"], ["d", "e"]) == ["d", "...", "e"]
    assert abridged(["a", "..."], ["d"]) == ["d", "..."]


def test_lines_between_those_left_out_are_found_again() -> None:
    printed = ["on a ring", "plan  time  gap", "greedy 3 us  1", "ring 2 us  0", "2 plans", "note"]
    shown = ["...", "plan  time", "greedy 4 us", "...", "2 plan", "..."]
    found = ["...", "plan  time  gap", "greedy 3 us  1", "...", "2 plans", "..."]
    assert abridged(shown, printed) == found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    accept: bool,
) -> None:
    if page.name in TORCH and find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: make torch installs it")
    missing = hocket_testbed.what_is_missing()
    if page.name == "testbed.md" and missing is not None:
        pytest.skip(f"no testbed can be built here: {missing[0]}")
    if page.name in ("controller.md", "testbed.md"):
        found = programs()
        library = preload()
        if not found or library is None:
            pytest.skip("the controller is not built: cargo test -p hocket-controller")
        for name, path in (*found.items(), ("HOCKET_PRELOAD", str(library))):
            monkeypatch.setenv(name, path)
        monkeypatch.setenv("HOCKET_AGENT_SOCKET", "agent.sock")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOCKET_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(registry, "_OWN", {})  # what a page registers is gone after it
    # Its targets, and the variables that may be set, as `make fuzz SECONDS=600`.
    makefile = (ROOT / "Makefile").read_text()
    makes = set(re.findall(r"^([a-z-]+):|^([A-Z]+) [?:]=", makefile, re.MULTILINE))
    targets = {target or variable for target, variable in makes}
    background = Background()
    request.addfinalizer(background.stop)
    others = []
    for block in blocks(page):
        where = f"{page.name}, line {block.line}"
        if block.file is not None:
            Path(block.file).write_text(block.text + "\n", encoding="utf-8")
        if block.language == "sh":
            for text in block.text.splitlines():
                words = shlex.split(text, comments=True)
                if words[:1] == ["make"]:
                    assert {word.partition("=")[0] for word in words[1:]} <= targets, where
        elif block.language == "python" and block.file is None:
            if "import torch" in block.text and find_spec("torch") is None:
                continue
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block.text, where, "exec"), {"__name__": "__main__"})
        elif block.language == "console":
            for line, command, shown in commands(block):
                assert command[0] == "hocket", where
                if command[-1] == "&":
                    background.start(command[:-1])
                    continue
                file = command[-1] if command[-2] == ">" else None
                code, out, err = outcome(command if file is None else command[:-2])
                assert code == 0, f"{where}: {shlex.join(command)}: {err}"
                if file is not None:
                    Path(file).write_text(out, encoding="utf-8")
                    continue
                printed = [line.rstrip() for line in out.splitlines()]
                if not matches(shown, printed):
                    assert accept, f"{where}: {shlex.join(command)}:\n{out}"
                    others.append((line, len(shown), abridged(shown, printed)))
    if others:
        lines = page.read_text(encoding="utf-8").splitlines()
        for line, count, new in reversed(others):
            lines[line : line + count] = new
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
