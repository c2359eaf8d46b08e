"""Algorithms on shipped machines, through every format: written, read, judged, run on integers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hocket as hk
from hocket._core.formats import check_msccl, check_mscclpp
from hocket.formats import ExportOptions, export_plan
from hocket.plans.algorithms import BUILTIN, quick
from hocket.topology.machines import names

SLOW = ("amd4_sccl", "dgx_a100_2box")
"""A mesh in a node, and switches with NICs between nodes."""
FORMATS = (("msccl", "Simple"), ("msccl", "LL"), ("mscclpp", "Simple"), ("mscclpp", "LL"))
KINDS_OF_COLLECTIVES = sorted({kind for each in BUILTIN.values() for kind in each.kinds})
MOST_NPUS = 64
REFUSALS = re.compile(
    r"has no name for (gather|scatter)|packets (go to memory of the same node|of a later)"
    r"|executor cannot hold it|no runtime loads it|is no rank of the collective"
    r"|not whole multiples of one chunk size"
)
"""What docs/msccl.md and docs/mscclpp.md say that the formats cannot express."""


def machines() -> list[object]:
    """Return a machine of each kind as slow tests, and all others as long ones."""
    small = [name for name in names() if hk.topology.load(name).npu_count <= MOST_NPUS]
    marks = {name: pytest.mark.slow if name in SLOW else pytest.mark.long for name in small}
    return [pytest.param(name, marks=each) for name, each in marks.items()]


def refusal(plan: hk.Plan, path: Path, to: str, protocol: str) -> str | None:
    """Write a plan; give why it cannot be written."""
    try:
        export_plan(plan, path, to=to, options=ExportOptions(protocol=protocol))
    except hk.InfeasibleError as error:
        return str(error)
    return None


@pytest.mark.parametrize("machine", machines())
def test_what_every_algorithm_plans_is_right_in_every_format(machine: str, tmp_path: Path) -> None:
    topology = hk.topology.load(machine)
    path, right = tmp_path / "file", 0
    for kind in KINDS_OF_COLLECTIVES:
        for algorithm in quick(kind):
            try:
                plan = hk.plan(kind, topology, size="16 MB", algorithm=algorithm, chunks=1)
            except (hk.InfeasibleError, hk.SpecError):
                continue
            for to, protocol in FORMATS:
                name = f"{machine}: {kind} by {algorithm} as {to}, {protocol}"
                why = refusal(plan, path, to, protocol)
                if why is not None:
                    assert REFUSALS.search(why), f"{name}: {why}"
                    continue
                check = check_msccl if to == "msccl" else check_mscclpp
                # Packets go where messages go, and both formats are of one program: it is enough to run
                # the plans of other machines once.
                runs = protocol == "Simple" and (machine == SLOW[0] or to == "mscclpp")
                found = check(path.read_text(), runs=runs)
                assert not found.count, f"{name}: {found.findings[0].text}"
                assert not runs or "every output is right" in found.notes[-1], name
                right += 1
    assert right
