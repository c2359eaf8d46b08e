"""Shipped models beside what is published of them: parameters, to the last one, and operations."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

import hocket as hk
from hocket.workload.costs import Block
from hocket.workload.layers import blocks_of


def blocks(name: str) -> list[Block]:
    return blocks_of(hk.workload.load(name))


def forward(name: str) -> int:
    return sum(block.forward.flops for block in blocks(name))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # torchvision, models/resnet.py.
        ("resnet50", 25_557_032),
        ("resnet152", 60_192_808),
        # MLPerf's training benchmark.
        ("gnmt", 160_671_297),
        # The published weights; of BERT those of its encoder with the pooler.
        ("bert-large", 335_141_888 + 1_084_220),
        ("llama2-70b", 68_976_648_192),
        ("llama3-8b", 8_030_261_248),
        ("llama3-70b", 70_553_706_496),
        ("llama3-405b", 405_853_388_800),
        ("bloom", 176_247_271_424),
        ("mixtral-8x7b", 46_702_792_704),
        # Their papers give the first four or five digits.
        ("gpt3-175b", 174_604_259_328),
        ("transformer-1t", 1_008_038_758_400),
    ],
)
def test_parameters(name: str, parameters: int) -> None:
    workload = hk.workload.load(name)
    assert workload.parameters == parameters
    assert workload.gradient_bytes(16) == 2 * parameters


def test_printed_totals() -> None:
    assert round(hk.workload.load("gpt3-175b").parameters / 1e8) == 1746  # Brown et al., table D.1
    assert round(hk.workload.load("transformer-1t").parameters / 1e8) == 10080  # table 1: 1008.0
    assert hk.workload.load("bert-large").parameters == pytest.approx(340e6, rel=0.012)


def test_transformer_1t_by_its_papers_formula() -> None:
    """Narayanan et al. 2021, equation 2, which leaves out the last normalization."""
    layers, h, words, tokens = 128, 25_600, 51_200, 2_048
    formula = 12 * layers * h * h + 13 * layers * h + (words + tokens) * h
    assert hk.workload.load("transformer-1t").parameters == formula + 2 * h


def test_bert_with_its_heads() -> None:
    extra = {"transform": 1024 * 1024 + 3 * 1024, "words": 30_522, "next_sentence": 2 * 1024 + 2}
    found = {block.name: block.parameters for block in blocks("bert-large")}
    assert {name: found[name] for name in extra} == extra
    assert sum(extra.values()) == 1_084_220
    assert found["pooler"] == 1024 * 1024 + 1024


# Operations.


@pytest.mark.parametrize(
    ("name", "products", "within"),
    [
        ("resnet50", 4.09e9, 0.0005),  # torchvision
        ("resnet152", 11.3e9, 0.005),  # He et al., table 1; torchvision's strides make it 11.51
    ],
)
def test_multiplications(name: str, products: float, within: float) -> None:
    assert forward(name) / 2 == pytest.approx(products, rel=within)


@pytest.mark.parametrize(
    ("name", "tokens", "active", "within"),
    [
        ("gpt3-175b", 2048, 174.6e9, 0.035),
        ("transformer-1t", 2048, 1008e9, 0.015),
        ("llama2-70b", 4096, 68.98e9, 0.08),
        ("bloom", 2048, 176.2e9, 0.025),
    ],
)
def test_six_operations_for_a_parameter_and_token(
    name: str, tokens: int, active: float, within: float
) -> None:
    """6 N for each token (Kaplan et al. 2020); products of activations come on top."""
    found = blocks(name)
    everything = sum(block.flops for block in found)
    assert everything == pytest.approx(6 * active * tokens, rel=within)
    attention = sum(block.flops for block in found if block.name.endswith("/attention"))
    assert everything - attention == pytest.approx(6 * active * tokens, rel=0.015)


def test_gpt3_by_its_papers_table() -> None:
    """3.14e23 operations for 300 thousand million tokens (Brown et al. 2020, table D.1)."""
    found = sum(block.flops for block in blocks("gpt3-175b") if "/attention" not in block.name)
    assert found / 2048 * 300e9 == pytest.approx(3.14e23, rel=0.003)


def test_transformer_1t_by_its_papers_operations() -> None:
    """Narayanan et al. 2021, equation 3, less the forward pass that it computes again."""
    layers, h, words, tokens = 128, 25_600, 51_200, 2_048
    each = 72 * tokens * layers * h * h
    formula = each * (1 + tokens / (6 * h)) + 6 * tokens * h * words
    found = sum(
        block.flops
        for block in blocks("transformer-1t")
        if "norm" not in block.name and block.name != "embedding"
    )
    assert found == pytest.approx(formula, rel=1e-12)


def test_mixtral_uses_a_part_of_its_parameters() -> None:
    """12.9 thousand million of a token's (the paper says 13)."""
    found = blocks("mixtral-8x7b")
    used = sum(
        block.parameters * 2 // block.experts if block.experts else block.parameters
        for block in found
    )
    assert used == pytest.approx(12.9e9, rel=0.002)
    attention = sum(block.forward.flops for block in found if "/attention" in block.name)
    rest = sum(block.forward.flops for block in found) - attention
    assert rest == pytest.approx(2 * used * 32_768, rel=0.012)


def test_gnmt_by_its_sizes() -> None:
    def lstm(taken: int) -> int:
        return 4 * 1024 * (taken + 1024 + 2)

    encoder = 2 * lstm(1024) + lstm(2048) + 2 * lstm(1024)
    attention = 2 * 1024 * 1024 + 1024 + 1 + 1024
    decoder = lstm(1024) + attention + 3 * lstm(2048)
    words = 32_320 * 1024
    assert encoder + decoder + 2 * words + 32_320 == 160_671_297
    found = blocks("gnmt")
    assert found[0].parameters == words
    assert all(block.split == "copied" for block in found)


# Models that exchange in another way.


def test_dlrm() -> None:
    found = blocks("dlrm")
    tables, rest = found[0], found[1:]
    assert (tables.is_table, tables.joins) == (True, "interaction")
    assert tables.parameters == 64 * 6_000_000 * 256
    assert tables.outputs == 64 * 256
    bottom, top = [2048] * 8 + [256], [65 * 64 // 2 + 256] + [4096] * 15 + [1]
    sizes = sum(a * b + b for sizes in (bottom, top) for a, b in pairwise(sizes))
    assert sum(block.parameters for block in rest) == sizes == 274_413_825
    assert rest[0].input_gradient.flops == 0
    # Kalamkar et al. 2020, table II: 1047 MB, which are MiB, in 32 bits.
    workload = hk.workload.load("dlrm")
    assert round(workload.gradient_bytes() / 2**20) == 1047
    # Themis, section 6.1: collectives from 100 MB to 1 GB.
    assert 100e6 <= workload.gradient_bytes(16) <= 1e9


@pytest.mark.parametrize("name", ["resnet152", "gnmt"])
def test_gradients_are_of_the_sizes_that_themis_says(name: str) -> None:
    assert 100e6 <= hk.workload.load(name).gradient_bytes(16) <= 1e9


# Where SCALE-Sim's tables, which others of the models are, do not have the published totals.


def test_alexnet_lacks_its_fully_connected_layers() -> None:
    """60,965,224 parameters: two of its convolutions and most of another take half the channels."""
    rest = 9216 * 4096 + 4096 * 4096 + 4096 * 1000
    halves = (5 * 5 * 96 * 256 + 3 * 3 * 384 * 384 + 3 * 3 * 384 * 256) // 2
    biases = 96 + 256 + 384 + 384 + 256 + 4096 + 4096 + 1000
    found = hk.workload.load("alexnet").parameters
    assert found - halves + rest + biases == 60_965_224


def test_googlenet_has_three_other_filters() -> None:
    """6,998,552 parameters with biases, by table 1 of the paper and in its published weights."""
    layers = {layer.name: layer for layer in hk.workload.load("googlenet").layers}
    other: dict[str, Callable[[int], int]] = {
        "inc4c_5x5": lambda filters: 5 * 5 * 24 * filters,
        "inc5a_3x3red": lambda filters: 832 * filters,
        "inc5b_5x5": lambda filters: 5 * 5 * 48 * filters,
    }
    less = 0
    for name, weights in other.items():
        layer = layers[name]
        assert isinstance(layer, hk.Layer)
        less += weights(layer.filters) - layer.parameters
    assert less == 136_064
    biases = sum(layer.filters for layer in layers.values() if isinstance(layer, hk.Layer))
    assert hk.workload.load("googlenet").parameters + less + biases == 6_998_552


def test_transformer_has_fewer_words_than_its_paper() -> None:
    """65 million there (table 3), with 37,000 words and biases; here 33,708 and a product more."""
    here = hk.workload.load("transformer").parameters - 512 * 512
    assert here + (37_000 - 33_708) * 512 == pytest.approx(65e6, rel=0.035)
