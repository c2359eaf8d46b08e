"""``hocket deploy``: what the command line adds to the function."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.nccl.dumps import DGX_H100

from hocket.deployment import MANIFEST


def test_the_kind_of_gpu_is_that_of_the_dump(hocket: Any, folder: Path) -> None:
    (folder / "topo.xml").write_text(DGX_H100.topology())
    asked = ("--sizes", "8K:8K", "--collectives", "all-reduce")
    hocket("deploy", "-t", "topo.xml", *asked, "-o", "deploy")
    machine = json.loads((folder / "deploy" / MANIFEST).read_text())["machine"]
    assert (machine["capability"], len(machine["npus"])) == ("9.0", 8)
