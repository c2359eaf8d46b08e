"""Picks inputs that together reach every line that all reach: ``smallest.py TARGET OUTPUT FOLDER...``.

libFuzzer's own merge starts its program anew, which a target of atheris is not.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import targets

import hocket

_PACKAGE = str(Path(hocket.__file__).parent)
Line = tuple[str, int]


def reached(name: str, data: bytes) -> set[Line]:
    """Give the lines of the package that an input reaches."""
    lines: set[Line] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            return None
        lines.add((file, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        targets.TARGETS[name](data)
    finally:
        sys.settrace(None)
    return lines


def pick(name: str, inputs: Iterable[Path]) -> list[Path]:
    """Give the inputs, the shortest first, that reach a line that none before them does."""
    picked, seen = [], set[Line]()
    for path in sorted(inputs, key=lambda path: (path.stat().st_size, path.name)):
        lines = reached(name, path.read_bytes())
        if lines - seen:
            picked.append(path)
            seen |= lines
    return picked


if __name__ == "__main__":
    target, output, *folders = sys.argv[1:]
    for found in pick(target, (path for folder in folders for path in Path(folder).iterdir())):
        shutil.copy(found, output)
