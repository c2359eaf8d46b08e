"""Every example prints what the file beside it says; ``make accept`` writes that anew."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example_prints_what_it_says(example: Path, tmp_path: Path, accept: bool) -> None:
    shown = example.with_suffix(".out")
    run = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert run.stderr == ""
    assert run.returncode == 0
    if accept:
        shown.write_text(run.stdout, encoding="utf-8")
    assert run.stdout == shown.read_text(encoding="utf-8")
