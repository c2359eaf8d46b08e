"""Refusals end in the option to paste, and what is pasted is taken."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import hocket as hk

from .conftest import Hocket

TORUS = ("-t", "torus:8x8x8", "--bandwidth", "100 GB/s", "--latency", "1 us")
BERT = ("train", "bert-large", "-t", "dgx1_v100", "--npu", "v100", "--samples")


def ways(message: str) -> list[list[str]]:
    """Give the options that a message ends in."""
    assert message.count("; give --") == 1
    told = message.strip().partition("; give ")[2]
    return [shlex.split(part) for part in told.replace(" or --", ", --").split(", ")]


@pytest.mark.parametrize(
    ("argv", "why", "right"),
    [
        (
            ("train", "gpt3-175b", *TORUS, "-p", "dp=8,tp=8,pp=8", "--samples", "16"),
            "--samples: 16 do not divide into 32 micro-batches, 4 for each of 8 stages",
            [["--samples", "32"], ["--parallel", "dp=8,tp=8,pp=8,micro-batches=16"]],
        ),
        (
            ("train", "gpt3-175b", *TORUS, "-p", "dp=8,tp=8,pp=9"),
            "--parallel: dp 8 x tp 8 x pp 9 make 576 NPUs, and topology 'torus 8x8x8' has 512",
            [["--parallel", "dp=8,tp=8,pp=8"]],
        ),
        (
            (
                "train",
                "--compare",
                "alexnet",
                "-t",
                "dgx1_v100",
                "-p",
                "dp=4,tp=2",
                "--batch",
                "102",
            ),
            "--batch: 102 samples do not divide among 4 replicas",
            [["--batch", "104"]],
        ),
        (
            ("plan", "all-reduce", "-t", "dgx1_v100", "-s", "1kB", "--chunk-size", "2kB"),
            "--chunk-size: 2000 B is more than the data, 1000 B",
            [["--chunk-size", "1000 B"]],
        ),
        (
            ("route", "jobs.yml", "-f", "clos:2x2"),
            "--hosts-per-tor: 2 NIC ports below a ToR",
            [["--hosts-per-tor", "1"], ["--nics-per-host", "1"]],
        ),
    ],
)
def test_a_refusal_ends_in_options(
    hocket: Hocket, argv: tuple[str, ...], why: str, right: list[list[str]]
) -> None:
    if "jobs.yml" in argv:
        Path("jobs.yml").write_text("jobs:\n  - {name: one, model: bloom, data: 2}\n")
    result = hocket(*argv)
    assert result.code == 2
    assert result.err.startswith(f"hocket: {why}")
    assert ways(result.err) == right


@pytest.mark.slow
def test_memory_names_the_least_that_fits(hocket: Hocket) -> None:
    wanted = (*BERT, "128")
    result = hocket(*wanted)
    assert result.code == 2
    assert result.err.startswith("hocket: memory: an NPU needs about")
    found = ways(result.err)
    assert found[-1] == ["--no-memory-check"]
    assert ["--recompute"] in found
    for way in found:
        assert hocket(*wanted, *way).code == 0
    result = hocket("train", "--compare", *wanted[1:])
    assert (result.code, ways(result.err)) == (2, found)


def test_python_names_arguments() -> None:
    with pytest.raises(
        hk.errors.InfeasibleError, match=r"; give .*recompute=True.* or memory_check=False$"
    ):
        hk.train("bert-large", "dgx1_v100", npu="v100", samples=128)
    with pytest.raises(hk.errors.SpecError, match=r"; give parallel='dp=8'$"):
        hk.train("alexnet", "dgx1_v100", parallel="dp=4")
