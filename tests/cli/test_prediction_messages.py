"""What predictions and calibrations refuse, in the words of the command line."""

from __future__ import annotations

from pathlib import Path
from shlex import split

import pytest

from hocket.cli import run

TRAINING = "predict --training gpt3-175b --npu a100"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("predict gather -t dgx_a100_1box -s 1MiB", "COLLECTIVE: there is no 'gather'"),
        ("predict --nccl -t dgx_a100_1box -s 1MiB,2MiB", "--size: '1MiB,2MiB' is a list; give one size"),
        ("predict --nccl -t dgx_a100_1box -s 1MiB --gpu mi300x", "--gpu: 'dgx_a100_1box' has GPUs"),
        ("predict --nccl -t dgx_a100_1box -s 1MiB --cpu epyc", "--cpu: there is no 'epyc'"),
        ("predict --nccl", "Missing option '--topology' / '-t'; see `hocket predict --nccl --help`"),
        (f"{TRAINING} --parallel dp=-1 --batch 8", "--parallel: dp=-1 is negative; give 1 or more"),
        (f"{TRAINING} --parallel dp=0 --batch 8", "--parallel: dp: 0 is too small"),
        (f"{TRAINING} --parallel pp=12 --batch 8 -t dgx_a100_1box", "or give --nic-bandwidth"),
        (
            "predict --training llama2-70b --npu mi300x --parallel tp=8 --batch 8 -t mi300x_8gpu",
            "give --efficiency, the share of the peak",
        ),
        ("calibrate m.csv -t dgx_a100_1box -o x.json", "--output: 'x.json' does not end in .yml"),
    ],
)  # fmt: skip
def test_messages_name_options(
    line: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(split(line)) == 2
    err = capsys.readouterr().err
    assert err.startswith("hocket: ")
    assert said in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())
