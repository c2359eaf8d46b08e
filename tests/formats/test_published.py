"""Published files of runtimes: those that are shipped, and those that the environment names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import hocket as hk
from hocket.formats import CheckOptions, ImportOptions, check_file, import_plan

DATA = Path(__file__).parents[1] / "data"
WRONG = {
    "mscclang_ag_rd.xml": {"deadlock"},
    "reduce_tbg.json": {"race"},
    "allreduce_pipeline.json": {"channel", "sizes"},
}
"""Files that are wrong, and why: docs/msccl.md and docs/mscclpp.md."""


def files() -> list[Path]:
    """All of them."""
    folders = [DATA / "msccl", DATA / "mscclpp"]
    folders += [
        Path(os.environ[name])
        for name in ("HOCKET_MSCCL_FILES", "HOCKET_MSCCLPP_FILES")
        if name in os.environ
    ]
    return sorted(
        each for folder in folders for each in folder.rglob("*") if each.suffix in (".xml", ".json")
    )


@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_published_files_are_judged_as_their_authors_do(file: Path) -> None:
    found = check_file(file, options=CheckOptions(run=True))
    codes = {fault.code for fault in found.judgement.faults}
    assert codes == WRONG.get(file.name, set())
    if found.is_right:
        assert any("every output is right" in note for note in found.judgement.notes)


@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_published_files_are_plans(file: Path) -> None:
    ranks = check_file(file).judgement.program.ranks  # type: ignore[union-attr]
    topology = hk.topology.switch(ranks, bandwidth="50 GB/s", latency="500 ns")
    if file.name in WRONG:
        with pytest.raises(hk.SpecError, match=r"it is wrong: .*`hocket check` names all faults"):
            import_plan(file, topology)
        return
    plan = import_plan(file, topology, options=ImportOptions(size="16 MiB"))
    assert plan.is_verified
    assert plan.collective.size == 16 << 20
    run = hk.simulate(plan)
    assert run.time_ps >= run.lower_bound.time_ps > 0


def test_the_known_wrong_files_are_among_them() -> None:
    names = {file.name for file in files()}
    assert names.issuperset(WRONG)
    assert len(names) >= 29
