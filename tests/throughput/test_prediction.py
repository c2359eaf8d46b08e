"""Predictions of training runs: what users see, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.profiles.hardware import Hardware
from hocket.throughput.constants import (
    ALL,
    FEWEST_SOURCES,
    KNOWN,
    NONE,
    OUTSIDE,
    Constants,
    ExpectedError,
    owners_of,
    shipped,
)
from hocket.throughput.cost_model import CONSTANTS
from hocket.throughput.machine import Machine, machine_of
from hocket.throughput.stack import STACKS
from hocket.workload.accelerators import accelerator

GPT3 = {"parallel": "dp=4,tp=8,pp=12,interleave=2", "batch": 1536}


def test_gpt3_of_2021() -> None:
    """384 A100 reached 153 teraflops with what is computed again (Narayanan et al. 2021, table 2)."""
    found = hk.predict_training("gpt3-175b", npu="a100", stack="megatron-2021", **GPT3)
    assert found.hardware_tflops == pytest.approx(153, rel=0.05)
    assert any("passes" in line for line in found.assumed)
    value = found.to_dict()
    assert sum(each["time_s"] for each in value["parts"]) == pytest.approx(value["time_s"])
    assert value["npus"] == 384
    assert value["parallel"]["micro_batches"] == 384


def test_a_program_and_an_accelerator_that_were_fitted_assume_nothing() -> None:
    found = hk.predict_training(
        "gpt3-175b", parallel="dp=64,zero=3", batch=256, npu="a100", stack="llm-foundry"
    )
    assert not found.assumed
    assert found.error == shipped().errors[KNOWN]
    assert found.to_dict()["expected_error"]["within"] == found.error.within


def test_what_was_not_fitted_is_said_and_has_the_error_of_all_runs() -> None:
    """MaxText was fitted on B200 alone, and nothing on H100 with products of 4 bits."""
    found = hk.predict_training(
        "llama2-70b", parallel="dp=64,zero=3", batch=128, stack="maxtext", precision="4-bit"
    )
    assert "efficiency: nothing of h100 4-bit was fitted" in found.assumed
    assert "attention: nothing of maxtext on h100 was fitted" in found.assumed
    assert found.error == shipped().errors[ALL]


def test_a_constant_is_the_product_of_its_parts() -> None:
    constants = shipped()
    stack, machine = STACKS["megatron-core"], Machine(accelerator("h100"), Hardware(1e9, 1e9))
    owners = owners_of("efficiency", stack, machine, "8-bit")
    assert owners == ("any", "h100 8-bit", "megatron-core", "megatron-core on h100")
    parts = [constants.fitted[owner, "efficiency"].value for owner in owners]
    assert constants.given("efficiency", stack, machine, "8-bit") == pytest.approx(prod(parts))
    # A part that nobody has is 1, and a constant without parts its prior.
    assert constants.given("efficiency", stack, machine, "4-bit") == pytest.approx(
        prod(parts) / parts[1]
    )
    assert NONE.given("efficiency", stack, machine, "8-bit") == CONSTANTS["efficiency"].prior


def test_a_class_of_few_sources_counts_as_all() -> None:
    few = ExpectedError(KNOWN, FEWEST_SOURCES - 1, 9, 0.01, 0.02)
    every = ExpectedError(ALL, 9, 99, 0.1, 0.3)
    errors = Constants(errors={KNOWN: few, ALL: every})
    assert errors.of_class(KNOWN) == every
    enough = replace(few, sources=FEWEST_SOURCES)
    assert Constants(errors={KNOWN: enough, ALL: every}).of_class(KNOWN) == enough


def test_llama3_405b() -> None:
    """16,384 H100 reached 400 teraflops with half the scores counted (Grattafiori et al. 2024, table 4)."""
    found = hk.predict_training(
        "llama3-405b", parallel="dp=128,tp=8,pp=16,interleave=7,zero=1", batch=2048
    )
    assert not found.assumed
    assert found.error is not None
    assert found.seconds == pytest.approx(6.46, rel=found.error.within)


def test_gb300_is_not_read_as_gb200() -> None:
    """405B on 256 at 8 bits: 48.0 to 49.7 s on GB300, 56.9 to 62.5 on GB200 (Megatron-Bridge, 2026)."""
    given = {"parallel": "dp=8,tp=2,pp=8,cp=2,interleave=4", "batch": 1536, "precision": "8-bit"}
    new, old = (
        hk.predict_training("llama3-405b", npu=npu, stack="megatron-bridge", **given)
        for npu in ("gb300", "gb200")
    )
    assert new.seconds == pytest.approx(49, rel=0.06)
    assert old.seconds / new.seconds > 1.1


def test_kinds_outside_the_law_state_theirs() -> None:
    late = hk.predict_training(
        "gpt3-175b", parallel="dp=384,zero=3", batch=1536, npu="a100", stack="deepspeed-2021"
    )
    assert late.error is not None
    assert late.error.of == OUTSIDE
    assert late.error.median > 0.3


def test_a_topology_says_bandwidths() -> None:
    boxes = hk.predict_training(
        "gpt3-175b", npu="a100", stack="megatron-2021", topology="dgx_a100_8box", **GPT3
    )
    usual = hk.predict_training("gpt3-175b", npu="a100", stack="megatron-2021", **GPT3)
    assert boxes.seconds == pytest.approx(usual.seconds, rel=1e-3)
    slow = hk.predict_training(
        "gpt3-175b", npu="a100", stack="megatron-2021", nic_bandwidth="10 GB/s", **GPT3
    )
    assert slow.seconds > usual.seconds


def test_a_power_limit_slows_what_an_npu_does_in_proportion() -> None:
    given = {"parallel": "tp=8", "batch": 8, "npu": "h100"}
    full, limited = (
        hk.predict_training("llama2-70b", power=watts, **given) for watts in (None, 500)
    )
    for part in ("products", "attention", "memory", "update"):
        assert limited.parts[part] == pytest.approx(full.parts[part] * 7 / 5)
    for part in ("tensor", "launch"):
        assert limited.parts[part] == full.parts[part]
    assert limited.share_of_peak < full.share_of_peak
    assert limited.to_dict()["power_share"] == pytest.approx(5 / 7)
    assert hk.predict_training("llama2-70b", power=700, **given).seconds == full.seconds


def test_a_mesh_has_less_for_a_few_neighbours() -> None:
    """A hybrid cube mesh: four links between two pairs of quads, six at each V100."""
    mesh = machine_of(hk.topology.load("dgx1_v100"), accelerator("v100"))
    assert mesh.groups[4] < mesh.hardware.bandwidth
    assert mesh.groups[2] < mesh.groups[4]
    assert not machine_of(hk.topology.load("dgx_a100_1box"), accelerator("a100")).groups


def test_an_accelerator_that_was_not_fitted_needs_its_efficiency() -> None:
    with pytest.raises(hk.SpecError, match=r"no runs of 'mi300x' were fitted.*give efficiency"):
        hk.predict_training(
            "llama2-70b", parallel="tp=8", batch=8, npu="mi300x", topology="mi300x_8gpu"
        )
    found = hk.predict_training(
        "llama2-70b", parallel="tp=8", batch=8, npu="mi300x", topology="mi300x_8gpu", efficiency=0.6
    )
    assert 0 < found.share_of_peak < 0.6
    assert found.error is None  # how far a stated efficiency is off is not known


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"batch": 1535}, "1535 sequences do not divide among 4 replicas"),
        ({"micro_batch": 7}, "micro-batches of 7"),
        ({"parallel": "tp=7"}, "tp=7 does not divide 96 heads"),
        ({"parallel": "pp=97"}, "96 layers are too few for 97 stages"),
        ({"parallel": "tp=8,pp=12,zero=3"}, "zero=3 with pp=12"),
        ({"parallel": "cp=3"}, "cp=3 does not divide a sequence of 2048"),
        ({"parallel": "dp=4,ep=2"}, "parallel: ep=2: the law does not describe expert parallelism"),
        ({"model": "mixtral-8x7b"}, "it has experts, which the law does not describe"),
        ({"parallel": "dp=4,micro-batches=2"}, "give the size of a micro-batch"),
        ({"parallel": "interleave=2"}, "there is no pipeline"),
        ({"parallel": 3}, "3 is not a Parallel"),
        ({"stak": "llm-foundry"}, "did you mean stack"),
        ({"stack": "megatron"}, "there is no 'megatron'"),
        ({"npu": "a1000"}, "there is no 'a1000'"),
        ({"npu": "tpu-v4"}, "in which nodes 'tpu-v4' comes is not known"),
        ({"topology": "dgx_a100_1box"}, "it is one node of 8 NPUs, and the run needs 384"),
        ({"recompute": "half"}, "there is no 'half'"),
        ({"precision": "fp8"}, "there is no 'fp8'"),
        ({"efficiency": 40}, "did you mean 0.4"),
        ({"nic_bandwidth": "fast"}, "nic_bandwidth"),
        ({"sequence": 0}, "sequence"),
        ({"power": 500}, "500 W is above the nominal 400 W of 'a100'; give at most 400"),
        ({"power": 0}, "power"),
        ({"npu": "tpu-v5p", "power": 300}, "the nominal power of 'tpu-v5p' is not known"),
        ({"model": "resnet50"}, "there are other layers than one transformer"),
        ({"model": "gpt5"}, "there is no workload 'gpt5'"),
        ({"model": 5}, "5 is no transformer"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        hk.predict_training(**{"model": "gpt3-175b", "npu": "a100", **GPT3, **given})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_shipped_constants_have_owners_and_sources() -> None:
    constants = shipped()
    for (owner, name), each in constants.fitted.items():
        assert name in CONSTANTS
        assert owner in constants.sources
        assert each.value > 0
        assert not each.is_seen or each.low <= each.value <= each.high
    for error in constants.errors.values():
        assert 0 < error.median <= error.within
        assert error.runs > error.sources > 1


def test_constants_are_read_as_they_are_written(tmp_path: Path) -> None:
    from hocket.throughput.constants import constants_of

    path = tmp_path / "constants.yml"
    path.write_text(shipped().as_yaml())
    assert constants_of(path).as_yaml() == shipped().as_yaml()
