"""Cycles of systolic arrays and chiplets: against SCALE-Sim, an obvious count, and the published figure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket.workload.systolic import Gemm

# Layer, cycles on 256 x 256 and on 16 x 16, as SCALE-Sim 2 and 3 print them.
SCALE_SIM = [
    ("alexnet", hk.Layer("conv3", 13, 13, 3, 3, 256, 384), 5_627, 448_127),
    ("alphagozero", hk.Layer("conv", 19, 19, 3, 3, 17, 256), 1_325, 55_631),
    ("alphagozero", hk.Layer("res_conv1", 19, 19, 3, 3, 256, 256), 5_627, 709_535),
    ("ncf", hk.Layer("mlp_fc1", channels=64, filters=32), 573, 187),
    ("transformer", hk.Layer("encoder.1/ffn1", channels=512, filters=2048), 8_175, 69_375),
]
PUBLISHED = 1_832_399  # Laskar et al. 2024, section VIII-B: T of ResNet-152, 16 samples per chiplet


@pytest.mark.parametrize(("workload", "layer", "large", "small"), SCALE_SIM)
def test_single_layers_are_those_of_scale_sim(
    workload: str, layer: hk.Layer, large: int, small: int
) -> None:
    assert layer in hk.workload.load(workload).layers
    for size, cycles in ((256, large), (16, small)):
        gemm = Gemm(layer.output_pixels, layer.filters, layer.window)
        assert hk.Array(size, size).cycles(gemm) == cycles
        assert hk.Chiplet(array=(size, size)).layer(layer).forward == cycles


def slow_count(array: hk.Array, gemm: Gemm) -> int:
    """The number, from 0, of the last cycle: cell by cell, fold by fold.

    Operands enter at the left and at the top, skewed by a cycle for each row and column; every cell
    takes up one product a cycle. The next fold enters when the last cell of the array is through.
    """
    begin = 0
    for _ in range(0, gemm.rows, array.rows):
        for _ in range(0, gemm.columns, array.columns):
            last = 0
            for row in range(array.rows):
                for column in range(array.columns):
                    for k in range(gemm.depth):
                        last = max(last, begin + row + column + k)
            begin = last + 1
    return begin - 1


SMALL = st.integers(1, 7)
GEMMS = st.builds(Gemm, st.integers(1, 20), st.integers(1, 20), st.integers(1, 9))


@given(st.builds(hk.Array, SMALL, SMALL), GEMMS)
def test_cycles_are_those_of_a_slow_count(array: hk.Array, gemm: Gemm) -> None:
    assert array.cycles(gemm) == slow_count(array, gemm)


def drain_count(array: hk.Array, gemm: Gemm) -> int:
    """Cycles where folds follow each other: the last number to leave, cell by cell.

    All folds are alike: the rows and columns of the first.
    """
    rows, columns = min(array.rows, gemm.rows), min(array.columns, gemm.columns)
    begin, end = 0, 0
    for _ in range(array.folds(gemm)):
        for row in range(rows):
            for column in range(columns):
                end = max(end, begin + row + column + max(gemm.depth, rows))
        begin += max(gemm.depth, rows)
    return end


@given(st.builds(hk.Array, SMALL, SMALL), GEMMS)
def test_overlapped_folds(array: hk.Array, gemm: Gemm) -> None:
    cycles = array.cycles(gemm, folds="overlapped")
    assert cycles == drain_count(array, gemm)
    macs = gemm.rows * gemm.columns * gemm.depth
    assert macs <= cycles * array.rows * array.columns  # no cell does two a cycle


@given(st.builds(hk.Array, SMALL, SMALL), GEMMS, st.integers(1, 30))
def test_more_arrays_are_not_slower(array: hk.Array, gemm: Gemm, arrays: int) -> None:
    for folds in ("drained", "overlapped"):
        one = array.cycles(gemm, folds=folds)  # type: ignore[arg-type]
        many = array.cycles(gemm, folds=folds, arrays=arrays)  # type: ignore[arg-type]
        assert many <= one
        alone = array.cycles(gemm, folds=folds, arrays=array.folds(gemm))  # type: ignore[arg-type]
        assert alone <= many


def test_gradients_are_products_of_their_own() -> None:
    layer = hk.Layer("l", 13, 11, 3, 3, channels=40, filters=30, stride=2)
    array = hk.Array(8, 8)
    found = hk.Chiplet((2, 2), array).layer(layer, 4)
    assert found.forward == array.cycles(Gemm(6 * 5, 30, 9 * 40))
    assert found.input_gradient == array.cycles(Gemm(13 * 11, 40, 9 * 30))
    assert found.weight_gradient == array.cycles(Gemm(9 * 40, 30, 6 * 5))
    assert found.backward == found.input_gradient + found.weight_gradient
    columns = hk.Chiplet((2, 2), array, input_gradient="columns").layer(layer, 4)
    assert columns.input_gradient == array.cycles(Gemm(6 * 5, 9 * 40, 30))
    assert hk.Chiplet((2, 2), array).layer(layer, 4, first=True).input_gradient == 0
    wasteful = hk.Chiplet((2, 2), array, data_gradient=True).layer(layer, 4, first=True)
    assert wasteful == found


def test_samples_are_dealt_out_to_pes() -> None:
    layer = hk.Layer("l", channels=40, filters=30, times=5)
    one = hk.Chiplet((1, 1)).layer(layer, 1).forward
    assert one == 5 * hk.Array().cycles(Gemm(1, 30, 40))
    for samples, turns in ((1, 1), (6, 1), (7, 2), (12, 2), (13, 3)):
        assert hk.Chiplet((2, 3)).layer(layer, samples).forward == turns * one


def test_folds_are_dealt_out_to_pes() -> None:
    layer = hk.Layer("l", 10, 10, 3, 3, channels=4, filters=30, times=2)
    array = hk.Array(8, 8)
    found = hk.Chiplet((2, 2), array, distribution="folds").layer(layer, 3)
    # 6 x 64 pixels by 30 filters are 48 x 4 folds, 48 for each of 4 PEs.
    assert found.forward == 48 * (8 + 8 + 36 - 2) - 1
    assert found.input_gradient == array.cycles(Gemm(600, 4, 270), arrays=4)
    assert found.weight_gradient == array.cycles(Gemm(36, 30, 6 * 64), arrays=4)


def test_workload_adds_up() -> None:
    workload = hk.workload.load("alphagozero")
    chiplet = hk.Chiplet()
    found = chiplet.workload(workload)
    assert found.layers[0].input_gradient == 0
    for i, (each, layer) in enumerate(zip(found.layers, workload.layers, strict=True)):
        assert each == chiplet.layer(layer, first=i == 0)
    assert found.forward == sum(each.forward for each in found.layers) == 19_739
    assert found.total == found.forward + found.backward == 59_207


def test_embeddings_need_no_gradient_of_the_data() -> None:
    found = hk.Chiplet().workload(hk.workload.load("ncf")).layers
    assert [each.input_gradient > 0 for each in found] == [False] * 4 + [True] * 4


def test_time() -> None:
    assert hk.Chiplet().time_ps(7) == 7_000
    assert hk.Chiplet(clock="3 GHz").time_ps(1) == 334  # rounded up
    assert hk.Chiplet(clock="940 MHz").clock_hz == 940_000_000


# What each choice gives beside the published T; docs/workloads.md has the table.
CHOICES: list[tuple[dict[str, Any], int]] = [
    ({}, 1_992_544),
    ({"data_gradient": True}, 2_747_265),
    ({"input_gradient": "columns"}, 2_205_606),
    ({"distribution": "folds"}, 2_585_692),
    ({"folds": "overlapped"}, 1_266_409),
    ({"folds": "overlapped", "data_gradient": True}, 1_915_818),
    ({"folds": "overlapped", "input_gradient": "columns"}, 1_260_603),
    ({"folds": "overlapped", "distribution": "folds"}, 2_229_061),
]


@pytest.mark.parametrize(("choice", "cycles"), CHOICES)
def test_resnet152_by_choice(choice: dict[str, Any], cycles: int) -> None:
    assert hk.Chiplet(**choice).workload(hk.workload.load("resnet152")).total == cycles


def test_the_default_is_the_nearest_that_computes_only_what_is_needed() -> None:
    workload = hk.workload.load("resnet152")
    needed = [choice for choice, _ in CHOICES if "data_gradient" not in choice]
    off = [abs(hk.Chiplet(**each).workload(workload).total - PUBLISHED) for each in needed]
    assert min(off) == off[needed.index({})]
    assert hk.Chiplet().workload(workload).total / PUBLISHED == pytest.approx(1.087, abs=1e-3)


def test_the_published_figure_from_the_published_table() -> None:
    """The table of the paper's code: no padding, stride 2 in the 3 x 3 filters, 224 x 224 at first.

    There the gradient of the data is computed, and folds follow each other.
    """
    layers = [hk.Layer("conv1", 224, 224, 7, 7, 3, 64, 2)]
    channels, side = 64, 56
    for stage, (blocks, width) in enumerate([(3, 64), (8, 128), (36, 256), (3, 512)]):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            out = side // stride
            layers.append(hk.Layer("a", side, side, 1, 1, channels, width))
            layers.append(hk.Layer("b", side, side, 3, 3, width, width, stride))
            layers.append(hk.Layer("c", out, out, 1, 1, width, 4 * width))
            if block == 0:
                layers.append(hk.Layer("s", side, side, 1, 1, channels, 4 * width, stride))
            channels, side = 4 * width, out
    layers.append(hk.Layer("fc", channels=2048, filters=1000))
    table = hk.Workload("table", tuple(layers))
    assert table.parameters == hk.workload.load("resnet152").row_parameters
    chiplet = hk.Chiplet(folds="overlapped", data_gradient=True)
    assert chiplet.workload(table).total / PUBLISHED == pytest.approx(1.027, abs=1e-3)
    needed = hk.Chiplet(folds="overlapped").workload(table).total
    assert needed / PUBLISHED == pytest.approx(0.691, abs=1e-3)
    assert hk.Chiplet().workload(table).total / PUBLISHED == pytest.approx(1.083, abs=1e-3)


# What makes no sense.


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        ({"processing_elements": (4,)}, ["processing_elements", "not a pair", "(4, 4)"]),
        ({"processing_elements": 16}, ["processing_elements", "16 is not a pair"]),
        ({"processing_elements": (4, 0)}, ["processing_elements", "0 "]),
        ({"processing_elements": (4, 4.0)}, ["4.0 is not a whole number"]),
        ({"array": (256, 1 << 21)}, ["array", "too large"]),
        ({"array": "256x0"}, ["array", "'256x0' is not a size"]),
        ({"clock": "1"}, ["clock", "'1' ", "1 GHz"]),
        ({"clock": "0 Hz"}, ["clock", "is 0"]),
        ({"clock": "1 ghz"}, ["clock", "not a unit of frequency"]),
        ({"clock": True}, ["clock", "true "]),
        ({"precision_bits": 0}, ["precision_bits", "too small"]),
        ({"folds": "x"}, ["folds", "'x'", "drained or overlapped"]),
        ({"distribution": 1}, ["distribution", "samples or folds"]),
        ({"input_gradient": None}, ["input_gradient", "convolution or columns"]),
    ],
)
def test_chiplet_that_makes_no_sense(keys: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(hk.SpecError) as error:
        hk.Chiplet(**keys)
    assert [part for part in parts if part not in str(error.value)] == []
    assert "; " in str(error.value)


@pytest.mark.parametrize("samples", [0, -1, 1.5, True, 1 << 30])
def test_samples_that_make_no_sense(samples: Any) -> None:
    with pytest.raises(hk.SpecError, match=r"samples: .*; give a whole number"):
        hk.Chiplet().workload(hk.workload.load("alexnet"), samples)


def test_array_that_makes_no_sense() -> None:
    with pytest.raises(hk.SpecError, match="array: rows: 0 "):
        hk.Array(0, 4)
    with pytest.raises(hk.SpecError, match="folds: there is no 'x'; use drained or overlapped"):
        hk.Array().cycles(Gemm(1, 1, 1), folds="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("cycles", [-1, 1.5, "3", None, True])
def test_cycles_that_make_no_sense(cycles: Any) -> None:
    with pytest.raises(hk.SpecError, match=r"cycles: .* is not a count; give a whole number"):
        hk.Chiplet().time_ps(cycles)


@pytest.mark.parametrize("value", [None, "resnet152", 5])
def test_what_is_no_workload_and_no_layer(value: Any) -> None:
    with pytest.raises(hk.SpecError, match=r"workload: .* is not a Workload; give one"):
        hk.Chiplet().workload(value)
    with pytest.raises(hk.SpecError, match=r"layer: .* is not a Layer; give one"):
        hk.Chiplet().layer(value)


def test_chiplets_of_equal_lists_are_equal() -> None:
    pes: Any = [4, 4]
    assert hash(hk.Chiplet(processing_elements=pes)) == hash(hk.Chiplet())
