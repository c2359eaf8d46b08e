"""Tables of published runs: what is read, what is left out, and how far predictions are from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hocket.cli import run as command
from hocket.errors import SpecError
from hocket.throughput.constants import shipped
from hocket.throughput.cost_model import iteration_s
from hocket_studies.training import reproduce_training
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


def table(path: Path, **cells: str) -> Path:
    row = {**ROW, **cells}
    path.write_text(",".join(COLUMNS) + "\n" + ",".join(row[name] for name in COLUMNS) + "\n")
    return path


def test_shipped_runs_by_shipped_constants() -> None:
    """Medians of all sets, those of clusters that nothing was fitted to included."""
    constants = shipped()
    errors: dict[str, list[float]] = {}
    for each in load_runs()[0]:
        took, _ = predicted_s(each, constants)
        errors.setdefault(each.set, []).append(abs(took / each.seconds - 1))
    median = {name: float(np.median(found)) for name, found in errors.items()}
    worst = {name: max(found) for name, found in errors.items()}
    assert len(errors["mpt-a100"]) == 139
    assert median["mpt-a100"] <= 0.05
    assert median["mpt-h100"] <= 0.05
    for name in ("narayanan-2021", "korthikanti-2022", "llama3-405b"):
        assert median[name] <= 0.08
        assert worst[name] <= 0.25


@pytest.mark.slow
def test_shipped_runs_are_predicted_as_the_documentation_says() -> None:
    """What was not fitted; the limits are those the project set itself."""
    result = reproduce_training()
    for name in ("mpt-a100", "mpt-h100"):
        assert result.check("five folds", name).spread.median <= 0.05
        assert result.check("larger", name).spread.median <= 0.06
    for name in ("dlperf-megatron", "dlperf-oneflow"):
        assert result.check("five folds", name).tau >= 0.8
    for name in ("narayanan-2021", "korthikanti-2022", "llama3-405b"):
        check = result.check("other cluster", name)
        assert check.spread.median <= 0.08
        assert abs(check.worst.error) <= 0.25
    outside = {check.what: check for check in result.checks if check.question == "outside"}
    assert outside["narayanan-2021-zero3"].why
    assert outside["narayanan-2021-zero3"].spread.median > 0.25
    known = shipped()
    for key, each in result.constants.fitted.items():
        assert each.value == pytest.approx(known.fitted[key].value, rel=0.01), key


def test_constants_of_made_up_runs_are_found_again() -> None:
    """Runs that take what the law says give its constants back, but for one that they hardly feel."""
    runs = [each for each in load_runs()[0] if each.set == "mpt-a100"]
    truth = {
        ("a100", "efficiency"): 0.6,
        ("a100", "depth"): 150.0,
        ("llm-foundry on a100", "attention"): 0.4,
        ("llm-foundry on a100", "passes"): 15.0,
        ("llm-foundry on a100", "launch"): 3e-5,
    }
    constants = shipped().with_values(truth)
    made = []
    for each in runs:
        values = constants.values(each.stack, each.machine, each.job.precision)
        made.append(replace(each, seconds=iteration_s(each.job, each.machine, each.stack, values)))
    found = fit_constants(made)
    assert not found.fitted["llm-foundry on a100", "launch"].is_seen
    for key, value in truth.items():
        each = found.fitted[key]
        if each.is_seen:
            assert each.value == pytest.approx(value, rel=0.1)
            assert each.low <= value <= each.high
    assert sum(found.fitted[key].is_seen for key in truth) == 4


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
    assert "| five folds | dlperf-megatron | 18 |" in page
    assert "Kendall's tau" in page
    assert len((tmp_path / "training.csv").read_text().splitlines()) == 1 + 36 + 8
