"""Every example prints what the file beside it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example_prints_what_it_says(example: Path, tmp_path: Path) -> None:
    expected = example.with_suffix(".out").read_text(encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert run.stderr == ""
    assert run.stdout == expected
    assert run.returncode == 0
