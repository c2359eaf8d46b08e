"""Tables of published runs: what is read, what is left out, and how far predictions are from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hocket.cli import run as command
from hocket.errors import SpecError
from hocket.fitting.errors import of_new_sources
from hocket.throughput.constants import ALL, KNOWN, shipped
from hocket.throughput.cost_model import iteration_s
from hocket_studies.training import PredictedRun, coverage
from hocket_studies.training_catalogue import COLUMNS, load_runs, read_runs
from hocket_studies.training_fit import fit_constants, predicted_s
from hocket_studies.training_surveys import read_survey

ROW = {
    "set": "mine",
    "model": "GPT",
    "machine": "selene",
    "stack": "megatron-2021",
    "layers": "24",
    "hidden": "2304",
    "heads": "24",
    "kv_heads": "",
    "feed_forward": "",
    "gated": "",
    "vocabulary": "51200",
    "sequence": "2048",
    "dp": "32",
    "tp": "1",
    "pp": "1",
    "cp": "1",
    "interleave": "1",
    "zero": "0",
    "batch": "512",
    "micro_batch": "",
    "recompute": "full",
    "sequence_parallel": "",
    "precision": "16-bit",
    "iteration_s": "3.53",
    "source": "me",
}
SURVEY = (
    "# a survey\n"
    "model,params,hardware,gpus,tp,pp,dp,ep,cp,zero,global_batch,micro_batch,seq_len,precision,"
    "iteration_s,tokens_per_s_per_gpu,tflops_per_gpu,source,date,notes\n"
)
FEW = [each for each in load_runs()[0] if each.set in ("gpu-recipes h200", "fms-fsdp vela-h100")][
    -2:
]


def table(path: Path, **cells: str) -> Path:
    row = {**ROW, **cells}
    path.write_text(",".join(COLUMNS) + "\n" + ",".join(row[name] for name in COLUMNS) + "\n")
    return path


def test_shipped_runs_by_shipped_constants() -> None:
    """Medians of all sets, each predicted by the constants that are shipped."""
    constants = shipped()
    errors: dict[str, list[float]] = {}
    for each in load_runs()[0]:
        took, _ = predicted_s(each, constants)
        errors.setdefault(each.set, []).append(abs(took / each.seconds - 1))
    median = {name: float(np.median(found)) for name, found in errors.items()}
    assert len(errors["mpt-a100"]) == 139
    for name in ("mpt-a100", "mpt-h100", "narayanan-2021", "dgxc-benchmarking gb200"):
        assert median[name] <= 0.05
    for name in ("korthikanti-2022", "dgxc-benchmarking h100", "megatron-bridge gb300"):
        assert median[name] <= 0.06
    assert median["llama3-405b"] <= 0.16
    assert median["narayanan-2021-zero3"] > 0.25


@pytest.mark.slow
def test_sources_that_are_left_out_lie_within_what_is_stated() -> None:
    """Megatron on A100 in 2021, and NeMo on H100: each without anything of its source."""
    runs = [each for each in load_runs()[0] if "zero3" not in each.set]
    known = shipped()
    for name, limit in (("narayanan-2021", 0.1), ("dgxc-benchmarking h100", 0.2)):
        own = [each for each in runs if each.set == name and each.job.precision == "16-bit"]
        others = [each for each in runs if each.publisher != own[0].publisher]
        found = fit_constants(others, known)
        errors = [predicted_s(each, found)[0] / each.seconds - 1 for each in own]
        assert np.median(np.abs(errors)) <= limit
        stated = known.expected(own[0].stack, own[0].machine, "16-bit")
        assert stated is not None
        assert np.mean(np.abs(errors) <= stated.within) >= 0.9


def test_constants_of_made_up_runs_are_found_again() -> None:
    """Runs that take what the law says give its constants back: their products, which alone runs tell."""
    runs = [each for each in load_runs()[0] if each.set == "mpt-a100"][::4]
    truth = {"efficiency": 0.6, "attention": 0.45, "passes": 30.0}
    made = []
    for each in runs:
        values = shipped().values(each.stack, each.machine, each.job.precision) | truth
        made.append(replace(each, seconds=iteration_s(each.job, each.machine, each.stack, values)))
    found = fit_constants(made)
    values = found.values(runs[0].stack, runs[0].machine, "16-bit")
    for name, value in truth.items():
        assert values[name] == pytest.approx(value, rel=0.1)
    assert not found.fitted["llm-foundry", "launch"].is_seen
    assert found.sources["llm-foundry on a100"] == f"{len(runs)} runs of llm-foundry"
    assert found.class_of(runs[0].stack, runs[0].machine, "16-bit") == KNOWN
    assert found.class_of(runs[0].stack, runs[0].machine, "8-bit") == ALL


def test_each_source_weighs_the_same() -> None:
    """Two sources: a hundred runs that are 1 % off outweigh not two that are 20 % off."""
    errors, sources = np.array([0.01] * 100 + [0.2, -0.2]), ["a"] * 100 + ["b"] * 2
    median, within = of_new_sources(errors, sources)
    assert 0.01 < median < 0.2
    assert within == 0.2
    single = [PredictedRun(each, 1.1 * each.seconds, each.job, each.seconds, ALL) for each in FEW]
    held, total = coverage(single)
    assert (held, total) == (2, 2)


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    (found,) = read_runs(table(tmp_path / "mine.csv"))
    assert found.unstated == ("micro_batch",)
    assert [job.micro_batch for job in found.jobs] == [1, 2, 4, 8, 16]
    assert found.npus == 32
    (assumed,) = read_runs(
        table(tmp_path / "mine.csv", dp="8", pp="4", interleave="", micro_batch="1")
    )
    assert assumed.job.parallel.interleave == 2
    runs, refused = load_runs(tmp_path)
    assert runs[-1].set == "mine"
    assert not refused


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"iteration_s": "0"}, "mine.csv: line 2: iteration_s: '0' is no time"),
        ({"iteration_s": "fast"}, "line 2: iteration_s: 'fast' is not a number"),
        ({"machine": "mine"}, "line 2: machine: there is no 'mine'; use dlperf"),
        ({"stack": "mine"}, "line 2: stack: there is no 'mine'"),
        ({"layers": "many"}, "line 2: layers: 'many' is not a whole number"),
        ({"dp": "3"}, "512 sequences do not divide among 3 replicas"),
        ({"heads": "7"}, "2304 does not divide among 7 heads"),
        ({"precision": "bf16"}, "there is no 'bf16'"),
    ],
)
def test_a_wrong_row_is_refused(tmp_path: Path, cells: dict[str, str], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_runs(table(tmp_path / "mine.csv", **cells).parent)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_runs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    for folder, said in (
        (tmp_path, "has no table of training runs"),
        (tmp_path / "no", "is not a folder"),
    ):
        assert (
            command(["reproduce", "training", "-o", str(tmp_path / "out"), "--data", str(folder)])
            == 2
        )
        err = capsys.readouterr().err
        assert said in err
        assert err.count("\n") == 1
    (tmp_path / "mine.csv").write_text("set,layers,iteration_s\n")
    with pytest.raises(SpecError, match="model: there is no such column"):
        load_runs(tmp_path)


def test_a_survey_is_read_as_far_as_its_rows_say(tmp_path: Path) -> None:
    rows = [
        'GPT 174.6B,,"Selene DGX A100-80GB",384,8,12,4,1,1,,1536,1,2048,fp16,,,153,arXiv:2104.04473,,',
        'LLAMA3-70B,,"H100 (DGX H100)",64,4,4,4,1,1,,128,1,8192,bf16,,800,,NVIDIA/Megatron-LM,,VP=5',
        "DeepSeekV3,,DGX-GB200,256,1,4,64,64,1,,4096,1,4096,FP8,13,,,NVIDIA-NeMo/Megatron-Bridge,,",
        "llama3.1-70b,,TPU v6e-256,256,1,1,256,1,1,,256,1,8192,bf16,10,,,tpu-recipes,,",
        "MPT-7b,,a100_80gb,8,1,1,8,1,1,3,16,2,2048,bf16,1,,,mosaicml/llm-foundry,,SUSPECT",
        "MPT-7b,,a100_80gb,x,1,1,8,1,1,3,16,2,2048,bf16,1,,,mosaicml/llm-foundry,,",
        "GPT 9B,,H100,8,1,1,8,1,1,,16,2,2048,bf16,1,,,mine,,",
        "LLAMA3-8B,,H100,8,1,1,8,1,1,,,2,8192,bf16,1,,,mine,,",
    ]
    path = tmp_path / "training.csv"
    path.write_text(SURVEY + "\n".join(rows) + "\n")
    runs, refused = read_survey(path)
    assert [run.set for run in runs] == ["narayanan-2021", "megatron-lm h100"]
    assert runs[0].unstated == ("interleave",)
    # Table 2 of the paper: 174.6 B took 76.8 s by equation 3.
    assert runs[0].seconds == pytest.approx(76.78, rel=1e-3)
    assert runs[1].job.parallel.interleave == 5
    assert runs[1].seconds == pytest.approx(128 * 8192 / (800 * 64))
    assert len(refused) == 6
    assert any("mixtures of experts" in line for line in refused)
    assert any("TPU v6e-256" in line for line in refused)
    again, _ = load_runs(tmp_path)
    assert sum(run.name == "GPT 174.6B" and run.npus == 384 for run in again) == 2  # one is ZeRO-3


def test_the_command_writes_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = [each for each in load_runs()[0] if each.set.startswith(("dlperf", "korthikanti"))]
    few = few[1::3]
    monkeypatch.setattr("hocket_studies.training.load_runs", lambda data: (few, ["a row (1)"]))
    assert command(["reproduce", "training", "-o", str(tmp_path), "--constants"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "training.png",
        "training.json",
        "training.csv",
        "training.md",
        "constants.yml",
    }
    page = (tmp_path / "training.md").read_text()
    assert "| dlperf-oneflow, 16-bit | 6 |" in page
    assert "Kendall's tau" in page
    assert "9 of 10 within" in page
    assert len((tmp_path / "training.csv").read_text().splitlines()) == 1 + len(few)
