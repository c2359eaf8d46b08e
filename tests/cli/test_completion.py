"""What a shell completes after TAB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def completed(line: str, folder: Path) -> set[str]:
    code = "from hocket.cli import main; main()"
    words = {"_HOCKET_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": ""}
    words["COMP_CWORD"] = str(len(line.split(" ")) - 1)
    words["_TYPER_COMPLETE_ARGS"] = line
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **words},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("hocket compare all-r", {"all-reduce"}),
        ("hocket compare all-reduce -t dgx1", {"dgx1_v100"}),
        ("hocket compare all-reduce -t my", {"mynet.yml"}),
        ("hocket compare all-reduce -a gre", {"greedy"}),
        ("hocket compare all-reduce --fidelity f", {"flow"}),
        ("hocket simulate plan.parquet --fidelity d", {"dimension"}),
        ("hocket train resnet5", {"resnet50"}),
        ("hocket train resnet50 --npu a1", {"a100"}),
        ("hocket topology show dgx1", {"dgx1_v100"}),
    ],
)
def test_names_are_completed(line: str, names: set[str], tmp_path: Path) -> None:
    (tmp_path / "mynet.yml").write_text("")
    assert names <= completed(line, tmp_path)
