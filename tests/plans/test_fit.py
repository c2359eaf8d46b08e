"""Plans for a runtime: they fit, and what does not is said."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.cli import run
from hocket.formats.checked import check_file
from hocket.formats.exported import export_plan
from hocket.formats.options import CheckOptions, ExportOptions
from hocket.plans.choice import fastest
from hocket.plans.planner import make
from hocket.sweeps.yaml import from_text
from hocket.topology.sources import names

KINDS = ("all-reduce", "all-gather", "reduce-scatter")
SIZES = ("8KB", "1MB", "64MB", "1GB")
BOXES = ("dgx1_v100", "dgx_a100_1box", "hgx_h100_8gpu_validated")
MORE = [name for name in names() if name not in BOXES and not re.search("_[48]box|themis", name)]
"""The other machines of one or two boxes."""


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


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "box",
    [
        *(pytest.param(box, marks=pytest.mark.slow) for box in BOXES),
        *(pytest.param(box, marks=pytest.mark.long) for box in MORE),
    ],
)
def test_every_plan_that_fits_is_written_and_right(
    box: str, kind: str, size: str, tmp_path: Path
) -> None:
    made = hk.compare(kind, box, size=size, runtime="mscclpp")
    for entry in made:
        assert entry.plan.fit is not None
        assert entry.plan.fit.fits
    print(box, kind, size, made.best.algorithm, made.best.plan.fit)  # with pytest -rP: the table
    assert _is_right(made.best.plan, tmp_path)


def test_a_number_of_chunks_that_does_not_fit_is_refused() -> None:
    with pytest.raises(hk.InfeasibleError, match=r"operations, and the most is 64"):
        hk.plan(
            "all-gather",
            "amd4_sccl",
            size="64MB",
            algorithm="greedy",
            chunks=300,
            runtime="mscclpp",
        )


@pytest.mark.parametrize("kind", KINDS)
def test_many_equal_slices_fit_in_pipelines(kind: str, tmp_path: Path) -> None:
    made = hk.plan(
        kind,
        "hgx_h100_8gpu_validated",
        size="64MB",
        algorithm="direct",
        chunks=256,
        runtime="mscclpp",
    )
    assert made.fit is not None
    assert made.fit.fits
    file = tmp_path / "plan.json"
    written = export_plan(made, str(file), to="mscclpp").written
    unit = 64_000_000 // 8 // 256
    assert any(f"in rounds of {-unit // 16 * -16} bytes" in note for note in written.notes)
    operations = max(
        sum(1 + len(op.get("ops", [])) for op in block["ops"])
        for gpu in json.loads(file.read_text())["gpus"]
        for block in gpu["threadblocks"]
    )
    assert operations == made.fit.operations
    assert check_file(str(file), options=CheckOptions(run=True)).is_right


def test_fewer_chunks_are_tried_where_blocks_are_few() -> None:
    on = "hgx_h100_8gpu_validated"
    made = hk.plan("all-reduce", on, size="64MB", algorithm="greedy", runtime="mscclpp:sms=32")
    assert made.fit is not None
    assert made.fit.blocks <= 32
    assert made.fit.best_of_all == "greedy"
    assert made.fit.over_best > 0


@pytest.mark.parametrize("given", ["nccl", "mscclpp:sms=0", "mscclpp:sms=many", "mscclpp:", 7])
def test_what_is_no_runtime_is_refused(given: object) -> None:
    with pytest.raises(hk.SpecError, match="runtime"):
        hk.plan("all-reduce", "ring:4@25GB/s,1us", size="1MB", algorithm="ring", runtime=given)  # type: ignore[arg-type]


def test_comparisons_say_what_fits_and_how_far_it_is_from_the_best_of_all() -> None:
    on, size = "hgx_h100_8gpu_validated", "64MB"
    names = ["direct", "ring", "trees"]
    found = hk.compare("all-gather", on, size=size, algorithms=names, runtime="mscclpp")
    free = hk.compare("all-gather", on, size=size, algorithms=names)
    assert all(each["fit"] is None for each in free.to_dict()["algorithms"])
    for entry in found:
        fit = entry.to_dict()["fit"]
        assert fit["fits"]
        assert fit["misfit"] is None
        assert (fit["best_of_all_time_ps"] or entry.run.time_ps) >= free.best.run.time_ps
        assert fit["over_best"] == pytest.approx(
            entry.run.time_ps / (fit["best_of_all_time_ps"] or entry.run.time_ps) - 1
        )


@pytest.mark.slow
def test_every_plan_of_a_front_fits() -> None:
    on, names = "dgx_a100_1box", ["direct", "ring", "trees"]
    front = hk.pareto(
        "all-reduce", on, sizes="8K:8M:x32", algorithms=names, runtime="mscclpp", precision=1.0
    )
    for each in front:
        made = hk.plan(
            "all-reduce",
            on,
            size=each.first.size,
            algorithm=each.algorithm,
            chunks=each.chunks,
            runtime="mscclpp",
        )
        assert made.fit is not None
        assert made.fit.fits


SWEEP = """
command: simulate
grid:
  runtime: [mscclpp, "mscclpp:sms=16"]
set: {topology: hgx_h100_8gpu_validated, collective: all-reduce, size: 64 MB, algorithm: direct}
"""


def test_a_sweep_plans_for_runtimes(tmp_path: Path) -> None:
    found = hk.run_sweep(from_text(SWEEP, "s.yml"), tmp_path / "out", workers=1)
    whole, few = found.to_frame().to_pylist()
    assert (whole["runtime"], few["runtime"]) == ("mscclpp", "mscclpp:sms=16")
    assert whole["time_ps"] < few["time_ps"]
    with pytest.raises(hk.SpecError, match=r"give mscclpp|mscclpp:sms=132"):
        from_text(SWEEP.replace("sms=16", "sms=none"), "s.yml")


def test_the_refusal_of_an_export_names_a_command_that_gives_a_plan_that_fits(
    tmp_path: Path,
) -> None:
    made = hk.plan("all-gather", "amd4_sccl", size="64MB", algorithm="greedy", chunks=300)
    file = tmp_path / "plan.json"
    with pytest.raises(hk.InfeasibleError, match="operations, and the most is 64") as refused:
        export_plan(made, str(file), to="mscclpp")
    assert not file.exists()
    command = str(refused.value).partition("hocket ")[2]
    fits = str(tmp_path / "fits.parquet")
    assert run([*command.replace("fits.parquet", fits).split()]) == 0
    assert _is_right(hk.Plan.load(fits), tmp_path)


def test_the_command_names_the_participants_and_no_network_that_is_not_found(
    tmp_path: Path,
) -> None:
    network = hk.topology.ring(5, bandwidth="10 GB/s", latency="1 us")
    some = {"size": "64MB", "npus": [0, 2, 1], "algorithm": "ring", "chunks": 3000}
    made = hk.plan("all-gather", network, **some)
    file, packets = str(tmp_path / "plan.json"), ExportOptions(protocol="LL")
    with pytest.raises(hk.InfeasibleError) as refused:
        export_plan(made, file, to="mscclpp", options=packets)
    assert refused.value.remedy is not None
    assert "hocket plan all-gather -t FILE -s 64000000B --npus 0,2,1 " in refused.value.remedy


def test_the_command_names_the_network_as_it_was_given(tmp_path: Path) -> None:
    plan, fits = str(tmp_path / "plan.parquet"), str(tmp_path / "fits.parquet")
    words = ["-t", "ring:6@10GB/s,1us", "--failed", "npu0,npu1", "--slow", "npu3=1 GB/s"]
    rest = ["-s", "64MB", "-a", "greedy", "--chunks", "300", "-o", plan]
    assert run(["plan", "all-gather", *words, *rest]) == 0
    with pytest.raises(hk.InfeasibleError) as refused:
        export_plan(hk.Plan.load(plan), str(tmp_path / "plan.json"), to="mscclpp")
    command = shlex.split(str(refused.value).partition("hocket ")[2].replace("fits.parquet", fits))
    assert run(command) == 0
    assert hk.Plan.load(fits).topology == hk.Plan.load(plan).topology


def test_each_number_of_chunks_is_planned_once() -> None:
    tried: list[int | None] = []

    def plan(
        collective: hk.Collective, on: hk.Topology, name: Any, options: Any, *rest: Any
    ) -> hk.Plan:
        tried.append(options.chunks)
        return make(collective, on, name, options, *rest)

    on = hk.topology.load("hgx_h100_8gpu_validated")
    collective = hk.collective_on("all-gather", on, size="1MB")
    options = hk.PlanOptions(runtime="mscclpp")
    found = fastest(plan, collective, on, "halving-doubling", options)
    assert found.plan.fit is not None
    assert found.plan.fit.fits
    assert len(tried) == len(set(tried))


def test_a_plan_with_many_blocks_says_how_to_name_a_larger_gpu() -> None:
    on = "switch:50@25GB/s,1us"
    with pytest.raises(hk.InfeasibleError) as refused:
        hk.plan("all-gather", on, size="1MB", algorithm="direct", runtime="mscclpp")
    assert refused.value.why == (
        "no plan fits: a rank would have 98 blocks, and every GPU runs 78 at once; "
        "if yours runs 98, give mscclpp:sms=98"
    )
    made = hk.plan("all-gather", on, size="1MB", algorithm="direct", runtime="mscclpp:sms=98")
    assert made.fit is not None
    assert made.fit.blocks == 98
