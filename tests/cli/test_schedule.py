"""``hocket plan --dimension-only``, ``advise dims`` and ``simulate --fidelity dimension``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hocket as hk

RAILS = (
    *("-t", "Ring_SW:4x8", "--bandwidth", "10 GB/s", "--bandwidth", "10 GB/s"),
    *("--latency", "100 ns", "--latency", "700 ns", "-s", "3MB"),
)
THEMIS = ("plan", "--dimension-only", "all-reduce", *RAILS, "-a", "themis", "-c", "16")


def rails() -> hk.Topology:
    return hk.topology.product(
        "Ring_SW", [4, 8], bandwidth=["10 GB/s"] * 2, latency=["100 ns", "700 ns"]
    )


def themis() -> hk.Schedule:
    return hk.schedule("all-reduce", rails(), size="3 MB", algorithm="themis", chunks=16)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOCKET_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_schedule_prints_what_it_comes_to(hocket: Any) -> None:
    result = hocket(*THEMIS)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].rstrip() == (
        "themis all-reduce of 3 MB among 32 NPUs of Ring_Switch 4x8: 16 chunks, smallest-first"
    )
    for word in ("time", "gap", "dimension 1", "Ring of 4, 20 GB/s", "weighted utilization"):
        assert word in result.out
    assert "cut-through, latency overlapped" in result.out
    shares = [line for line in lines if "% of the data" in line]
    assert sum(int(line.split()[0]) for line in shares) == 16
    assert "reduce-scatter 1 2, all-gather 2 1" in result.out


def test_schedule_json_is_what_python_gives(hocket: Any) -> None:
    values = hocket(*THEMIS, "--json").json()
    head = {"format": "hocket.dimension-run", "version": 1}
    assert values == {**head, **themis().simulate().to_dict()}
    assert values["fidelity"] == "dimension"
    assert values["chunks"] == 16
    assert values["latency_model"] == "overlapped"
    options = ("--latency-model", "occupying", "--switching", "store-and-forward")
    slower = hocket(*THEMIS, *options, "--json").json()
    assert slower["time_ps"] > values["time_ps"]
    assert (slower["latency_model"], slower["switching"]) == ("occupying", "store-and-forward")
    one_way = hocket(
        "plan", "--dimension-only", "all-gather", *RAILS, "-a", "themis-fifo", "--json"
    ).json()
    assert one_way["collective"] == "all-gather"
    assert one_way["chunks"] == 64


def test_a_size_1_dimension_is_skipped(hocket: Any) -> None:
    link = ("--bandwidth", "1 GB/s", "--latency", "1 us")
    result = hocket(
        "plan", "--dimension-only", "all-reduce", "-t", "Ring_SW:1x4", *link, "-s", "1MB"
    )
    assert result.code == 0
    assert "Ring of 1: skipped" in result.out
    assert "Switch of 4, 1 GB/s" in result.out


def test_kept_by_name(hocket: Any, folder: Path, data: Path) -> None:
    assert hocket("plan", "--dimension-only", "--list").out == (
        f"none yet: --save NAME keeps one in {data / 'schedules'}\n"
    )
    assert hocket("plan", "--dimension-only", "--list", "--json").json()["schedules"] == []
    result = hocket(*THEMIS, "--save", "mine")
    assert result.out.endswith("kept as mine; use it by --algorithm schedule:mine\n")
    assert (data / "schedules" / "mine.json").is_file()
    assert hocket("plan", "--dimension-only", "--list").out == "mine\n"
    assert hocket("plan", "--dimension-only", "--list", "--json").json()["schedules"] == ["mine"]
    again = hocket(
        "plan", "--dimension-only", "all-reduce", *RAILS, "-a", "schedule:mine", "--json"
    ).json()
    assert again["time_ps"] == themis().simulate().time_ps

    plan = ("plan", "all-reduce", *RAILS, "-a", "schedule:mine", "-o", "plan.parquet")
    assert hocket(*plan).code == 0
    assert hk.Plan.load("plan.parquet").schedule is not None
    by_rails = hocket("simulate", "plan.parquet", "--fidelity", "dimension", "--json").json()
    assert by_rails == again
    by_links = hocket("simulate", "plan.parquet", "--json").json()
    assert by_links["time_ps"] == pytest.approx(by_rails["time_ps"], rel=1e-3)
    assert by_links["order"] == "plan"

    compare = ("compare", "all-reduce", *RAILS, "-a", "schedule:mine", "-a", "hierarchical")
    ranked = hocket(*compare, "-c", "16", "--json").json()
    names = [(each["algorithm"], each["chunks"]) for each in ranked["algorithms"]]
    assert names == [("schedule:mine", 16), ("hierarchical", 16)]


def test_kept_in_a_file(hocket: Any, folder: Path) -> None:
    assert hocket(*THEMIS, "--save", "mine.json").code == 0
    argv = ("plan", "--dimension-only", "all-reduce", *RAILS, "-a", "schedule:mine.json", "--json")
    assert hocket(*argv).json()["time_ps"] == themis().simulate().time_ps
    assert [path.name for path in folder.iterdir()] == ["mine.json"]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_pictures(hocket: Any, folder: Path, suffix: str) -> None:
    assert hocket(*THEMIS, "--plot", f"activity{suffix}").code == 0
    assert (folder / f"activity{suffix}").stat().st_size > 4_000


def test_advise_dims(hocket: Any) -> None:
    argv = ("topology", "advise", *RAILS[:-2])
    result = hocket(*argv)
    assert (result.code, result.err) == (0, "")
    for word in (
        "busy, fixed order",
        "Ring",
        "Switch",
        "over-provisioned",
        "multirail-optimal",
    ):
        assert word in result.out
    values = hocket(*argv, "--json").json()
    head = {"format": "hocket.advice", "version": 1}
    assert values == {**head, **hk.advise_dimensions(rails()).to_dict()}
    assert [each["number"] for each in values["dimensions"]] == [1, 2]
    assert values["limiting"] == []


def test_compare_names_one_reason_once(hocket: Any) -> None:
    result = hocket("compare", "all-reduce", "-t", "dgx1_v100", "-s", "1MB", "-a", "ring")
    assert "left out" not in result.out
    result = hocket("compare", "all-reduce", "-t", "dgx1_v100", "-s", "1MB", "--why")
    reasons = result.out.split("left out: ")[1:]
    starts = [
        "hierarchical: topology",
        "multi-ring: topology",
        "themis-fifo, themis, multirail-optimal: topology",
        "ring-bi-odd, tto, tto-overlapped: it needs a complete mesh",
        "two-tree-overlap: it needs a complete line",
        "ring-2d: it needs a mesh or torus",
        "hdrm: it needs a BiGraph",
        "steiner: every NPU takes part",
        "in-network: no switch of",
        "multimem: no switch of",
        "nccl-nvls: no switch",
        "symmetric: the link",
    ]
    assert [text.startswith(start) for text, start in zip(reasons, starts, strict=True)] == [
        True
    ] * len(starts)
