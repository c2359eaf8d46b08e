"""Plans for a runtime: they fit, and what does not is said."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocket as hk
from hocket.formats.checked import check_file
from hocket.formats.exported import export_plan

KINDS = ("all-reduce", "all-gather", "reduce-scatter")
SIZES = ("8KB", "1MB", "64MB", "1GB")
BOXES = ("dgx1_v100", "dgx_a100_1box", "hgx_h100_8gpu_validated")


def _is_right(plan: hk.Plan, folder: Path) -> bool:
    file = folder / "plan.json"
    export_plan(plan, str(file), to="mscclpp")
    return check_file(str(file)).is_right


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_for_a_runtime_is_written_and_right(kind: str, tmp_path: Path) -> None:
    made = hk.plan(kind, "dgx_a100_1box", size="64MB", algorithm="direct", runtime="mscclpp")
    assert made.fit is not None
    assert made.fit.fits
    assert made.fit.operations <= made.fit.most_operations
    assert _is_right(made, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("box", BOXES)
def test_every_plan_that_fits_is_written_and_right(
    box: str, kind: str, size: str, tmp_path: Path
) -> None:
    made = hk.compare(kind, box, size=size, runtime="mscclpp")
    for entry in made:
        assert entry.plan.fit is not None
        assert entry.plan.fit.fits
    assert _is_right(made.best.plan, tmp_path)


def test_a_number_of_chunks_that_does_not_fit_is_refused() -> None:
    with pytest.raises(hk.InfeasibleError, match=r"512 operations, and the most is 64"):
        hk.plan(
            "all-reduce",
            "hgx_h100_8gpu_validated",
            size="64MB",
            algorithm="direct",
            chunks=256,
            runtime="mscclpp",
        )


def test_fewer_chunks_are_tried_where_blocks_are_few() -> None:
    on = "hgx_h100_8gpu_validated"
    made = hk.plan("all-reduce", on, size="64MB", algorithm="direct", runtime="mscclpp:sms=32")
    assert made.fit is not None
    assert made.fit.blocks <= 32
    assert made.fit.best_of_all == "direct"
    assert made.fit.over_best > 0


@pytest.mark.parametrize("given", ["nccl", "mscclpp:sms=0", "mscclpp:sms=many", "mscclpp:", 7])
def test_what_is_no_runtime_is_refused(given: object) -> None:
    with pytest.raises(hk.SpecError, match="runtime"):
        hk.plan("all-reduce", "ring:4@25GB/s,1us", size="1MB", algorithm="ring", runtime=given)  # type: ignore[arg-type]
