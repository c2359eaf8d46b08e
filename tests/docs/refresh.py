"""Writes what commands print today into the pages that show it: ``python tests/docs/refresh.py [PAGE...]``.

Where a page leaves lines out (``...``), as many lines as before stay at the beginning and the end. Look at
the difference before it is committed: what a page says about the output may be true no longer.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.docs.test_docs import PAGES, blocks, commands, matches

from hocket.cli import run


def abridged(shown: list[str], printed: list[str]) -> list[str]:
    """Give the output with lines left out where they were left out before."""
    if "..." not in shown:
        return printed
    head = shown.index("...")
    tail = len(shown) - 1 - max(i for i, line in enumerate(shown) if line == "...")
    kept = printed[:head]
    rest = printed[head:]
    return [*kept, "...", *(rest[-tail:] if tail else [])]


def refresh(page: Path) -> int:
    """Rewrite a page, and give the number of outputs that were out of date."""
    lines = page.read_text(encoding="utf-8").splitlines()
    changed = 0
    shift = 0
    for block in blocks(page):
        if block.file is not None:
            Path(block.file).write_text(block.text + "\n", encoding="utf-8")
        if block.language == "python" and block.file is None:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block.text, page.name, "exec"), {"__name__": "__main__"})
        if block.language != "console":
            continue
        made = []
        for command, shown in commands(block):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = run(command[1:])
            if code != 0:
                print(f"{page.name}, line {block.line}: {shlex.join(command)}: exit code {code}")
            printed = [line.rstrip() for line in out.getvalue().splitlines()]
            is_right = code != 0 or matches(shown, printed)
            changed += not is_right
            made.append(shown if is_right else abridged(shown, printed))
        text = iter(made)
        new = [
            line
            for command in block.text.splitlines()
            if command.startswith("$ ")
            for line in (command, *next(text))
        ]
        count = len(block.text.splitlines())
        start = block.line + shift
        lines[start : start + count] = new
        shift += len(new) - count
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return changed


def main(names: list[str]) -> None:
    """Refresh the pages that are named, or all."""
    for page in PAGES:
        if names and page.name not in names:
            continue
        here = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            os.environ["HOCKET_DATA"] = str(Path(folder) / "data")
            os.environ["HOCKET_CACHE"] = "off"
            try:
                print(f"{page.name}: {refresh(page)} outputs were out of date")
            finally:
                os.chdir(here)


if __name__ == "__main__":
    main(sys.argv[1:])
