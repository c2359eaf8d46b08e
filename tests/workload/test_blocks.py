"""Layers by their costs: dimensions turned into costs, transformers and recurrent layers by their sizes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket.workload.costs import Block, Work
from hocket.workload.layers import blocks_of
from hocket.workload.recurrent import Lstm
from hocket.workload.transformers import Transformer
from hocket.workload.yaml import from_text

SMALL: dict[str, Any] = {"layers": 3, "hidden": 64, "heads": 4, "sequence": 16, "vocabulary": 100}


def passes(block: Block) -> tuple[int, int, int]:
    return (block.forward.flops, block.input_gradient.flops, block.weight_gradient.flops)


# Layers by their dimensions.


def test_costs_of_a_convolution() -> None:
    layers = (
        hk.Layer("first", 9, 7, 3, 2, channels=2, filters=4, stride=2),
        hk.Layer("second", 4, 4, 3, 3, channels=4, filters=5, times=3, biases=True),
    )
    first, second = blocks_of(hk.Workload("w", layers))
    macs = (4 * 3) * (3 * 2 * 2) * 4
    inputs, outputs = 9 * 7 * 2, 4 * 3 * 4
    assert first.forward == first.weight_gradient == Work(2 * macs, 2 * (inputs + outputs))
    assert first.input_gradient == Work()  # of the data
    assert (first.inputs, first.outputs, first.kept_numbers) == (inputs, outputs, inputs)
    assert second.forward == second.input_gradient == second.weight_gradient
    assert second.forward.flops == 2 * 3 * 4 * 9 * 4 * 5
    assert second.parameters == 9 * 4 * 5 + 5
    assert second.flops == sum(passes(second))


def test_a_normalization_moves_bytes_and_keeps_its_input() -> None:
    layer = hk.Layer("l", 4, channels=3, filters=2)
    normalized = hk.Layer("n", 4, channels=3, filters=2, normalized=True)
    _, plain, more = blocks_of(hk.Workload("w", (layer, layer, normalized)))
    assert passes(plain) == passes(more)
    assert more.forward.bytes - plain.forward.bytes == 3 * 2 * 8
    assert more.weight_gradient.bytes - plain.weight_gradient.bytes == 5 * 2 * 8
    assert more.input_gradient == plain.input_gradient
    assert (plain.kept_numbers, more.kept_numbers) == (12, 12 + 8)
    assert more.parameters - plain.parameters == 4


def test_both_gradients_of_a_product_of_activations() -> None:
    layers = (
        hk.Layer("x", channels=2, filters=2),
        hk.Layer("scores", 8, channels=4, filters=8, own_parameters=0),
        hk.Layer("words", channels=4, filters=9, own_parameters=0, reads_data=True),
    )
    _, scores, words = blocks_of(hk.Workload("w", layers))
    assert passes(scores) == (512, 1024, 0)
    assert passes(words) == (
        72,
        0,
        72,
    )  # the weights are an earlier layer's; nobody needs the input's


def test_costs_are_kept_as_they_are() -> None:
    block = Block("b", Work(7, 8), parameters=9, experts=3, routed=2)
    assert blocks_of(hk.Workload("w", (block,))) == [block]
    workload = hk.Workload("w", (hk.Layer("l", channels=2, filters=3), block))
    assert (workload.parameters, workload.row_parameters) == (15, 15)
    assert workload.gradient_bytes() == 60
    table = Block("t", Work(), parameters=100, outputs=1, is_table=True)
    assert hk.Workload("w", (table,)).parameters == 100
    assert hk.Workload("w", (table,)).gradient_bytes() == 0


def test_cycles_need_dimensions() -> None:
    workload = hk.Workload("w", (hk.Layer("l"), Block("costly", Work(1)), Block("b", Work())))
    with pytest.raises(hk.SpecError, match="workload w: layer costly has costs and no dimensions"):
        hk.Chiplet().workload(workload)


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        ({"name": ""}, ["name", "''"]),
        ({"forward": 3}, ["layer b: forward: 3 is not a Work"]),
        ({"weight_gradient": None}, ["layer b: weight_gradient", "is not a Work"]),
        ({"parameters": -1}, ["layer b: parameters: -1 "]),
        ({"parameters": 1 << 48}, ["layer b: parameters", "too large"]),
        ({"inputs": 1.5}, ["layer b: inputs: 1.5 "]),
        ({"outputs": True}, ["layer b: outputs: true "]),
        ({"kept": -1}, ["layer b: kept: -1 "]),
        ({"split": "row"}, ["layer b: split: there is no 'row'", "did you mean 'rows'"]),
        ({"experts": 3, "parameters": 8, "routed": 1}, ["8 parameters do not divide", "3 experts"]),
        ({"experts": 3, "routed": 1}, ["0 parameters do not divide among 3 experts"]),
        ({"routed": 5}, ["layer b: routed: there are no experts"]),
        ({"is_table": True, "outputs": 4}, ["layer b: a table has parameters", "give both"]),
        ({"is_table": True, "parameters": 4}, ["layer b: a table has parameters", "give both"]),
        (
            {"is_table": True, "parameters": 4, "outputs": 1, "experts": 2, "routed": 1},
            ["tables have no experts"],
        ),
    ],
)
def test_block_that_makes_no_sense(keys: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(hk.SpecError) as error:
        Block(**{"name": "b", "forward": Work(), **keys})
    assert [part for part in parts if part not in str(error.value)] == []
    assert "; " in str(error.value)


@pytest.mark.parametrize("keys", [{"flops": -1}, {"bytes": 1.5}, {"time_ps": 1 << 63}])
def test_work_that_makes_no_sense(keys: dict[str, Any]) -> None:
    with pytest.raises(hk.SpecError, match=f"{next(iter(keys))}: .*; give a whole number from 0"):
        Work(**keys)


def test_joins_name_a_later_layer() -> None:
    a, b = Block("a", Work(), joins="b"), Block("b", Work())
    assert hk.Workload("w", (a, b)).layers == (a, b)
    for wrong in ((b, a), (a,), (Block("b", Work(), joins="b"),)):
        with pytest.raises(
            hk.SpecError, match=r"workload w: layer .: joins: 'b' is not a later layer"
        ):
            hk.Workload("w", wrong)


def test_experts_get_numbers() -> None:
    up = Block("up", Work(), parameters=8, experts=4, routed=3)
    down = Block("down", Work(), parameters=8, experts=4)
    assert len(hk.Workload("w", (up, down)).layers) == 2
    fewer = Block("fewer", Work(), parameters=8, experts=2)
    for wrong in ((down,), (down, up), (up, fewer), (up, hk.Layer("l"), down)):
        with pytest.raises(hk.SpecError, match=r"nothing is routed to its . experts; give routed"):
            hk.Workload("w", wrong)


# Transformers.


def by_name(blocks: list[Block]) -> dict[str, Block]:
    return {block.name: block for block in blocks}


def test_parts_of_a_layer() -> None:
    blocks = Transformer(**SMALL).blocks()
    names = ["norm1", "qkv", "attention", "projection", "norm2", "up", "down"]
    layers = [f"layer.{i}/{name}" for i in (1, 2, 3) for name in names]
    assert [block.name for block in blocks] == ["embedding", *layers, "norm", "head"]
    split = {block.name.removeprefix("layer.1/"): block.split for block in blocks[:8]}
    assert split == {
        "embedding": "rows",
        "norm1": "copied",
        "qkv": "columns",
        "attention": "inside",
        "projection": "rows",
        "norm2": "copied",
        "up": "columns",
        "down": "rows",
    }
    assert blocks[-1].split == "columns"


def test_each_layer_takes_what_the_one_before_gives() -> None:
    variants: list[dict[str, Any]] = [
        {},
        {"kv_heads": 2, "gated": True},
        {"experts": 4, "embedding_norm": True},
    ]
    for keys in variants:
        blocks = Transformer(**SMALL, **keys).blocks()
        for before, after in pairwise(blocks):
            assert after.inputs == before.outputs, (before.name, after.name)


@pytest.mark.parametrize("keys", [{}, {"experts": 4}, {"head": False}, {"vocabulary": 0}])
@pytest.mark.parametrize("norms", [{}, {"embedding_norm": True, "final_norm": False}])
def test_count_is_that_of_the_blocks(keys: dict[str, Any], norms: dict[str, Any]) -> None:
    sizes = Transformer(**{**SMALL, **keys, **norms})
    assert len(sizes.blocks()) == sizes.count


COUNTS = st.integers(1, 6)


@given(COUNTS, COUNTS, COUNTS, st.integers(1, 50), st.integers(0, 60))
def test_parameters_and_operations_by_the_published_formulas(
    layers: int, heads: int, width: int, sequence: int, vocabulary: int
) -> None:
    """Of GPT's kind (Narayanan et al. 2021, section 5.1 and appendix)."""
    h = heads * width
    found = Transformer(
        layers, h, heads, sequence, vocabulary=vocabulary, positions=sequence
    ).blocks()
    parameters = layers * (12 * h * h + 13 * h) + 2 * h  # with those of the last normalization
    if vocabulary:
        parameters += (vocabulary + sequence) * h
    assert sum(block.parameters for block in found) == parameters
    products = [block for block in found if "norm" not in block.name and block.name != "embedding"]
    forward = sum(block.forward.flops for block in products)
    assert forward == (
        24 * layers * sequence * h * h
        + 4 * layers * sequence**2 * h
        + 2 * sequence * h * vocabulary
    )
    assert sum(block.flops for block in products) == 3 * forward


def test_what_is_kept_is_the_published_sum() -> None:
    """34 s h bytes a layer (Korthikanti et al. 2022, equation 1), less two masks of a byte each."""
    blocks = Transformer(**{**SMALL, "layers": 1, "vocabulary": 0, "final_norm": False}).blocks()
    assert 2 * sum(block.kept_numbers for block in blocks) == (34 - 2) * 16 * 64


def moved(block: Block) -> tuple[int, int, int]:
    return (block.forward.bytes, block.input_gradient.bytes, block.weight_gradient.bytes)


def test_bytes_are_those_of_what_goes_in_and_out() -> None:
    found = by_name(Transformer(**SMALL, positions=16).blocks())
    tokens = 16 * 64
    for name in ("qkv", "projection", "up", "down"):
        block = found[f"layer.1/{name}"]
        assert moved(block) == (2 * (block.inputs + block.outputs),) * 3, name
    attention = found["layer.1/attention"]
    assert moved(attention) == (2 * 4 * tokens, 4 * 4 * tokens, 0)  # of three read and one written
    assert moved(found["norm"]) == (2 * 2 * tokens, 2 * 3 * tokens, 2 * 2 * tokens)
    # A row of a word and one of a position are read, their sum is written; backward each row is changed.
    assert moved(found["embedding"]) == (2 * 3 * tokens, 0, 2 * 5 * tokens)
    assert passes(found["embedding"]) == (tokens, 0, 2 * tokens)
    assert moved(found["head"]) == (2 * (tokens + 1600),) * 3
    gated = by_name(Transformer(**SMALL, gated=True).blocks())["layer.1/up"]
    assert gated.forward.bytes == 2 * (
        tokens + 2 * 4 * tokens
    )  # both products, before they are one
    spread = by_name(Transformer(**SMALL, experts=4).blocks())
    assert spread["layer.1/down"].forward.bytes == 2 * 2 * (4 * tokens + tokens)
    assert spread["layer.1/router"].forward == Work(2 * tokens * 4, 2 * (tokens + 16 * 4))


def test_fewer_heads_of_keys_and_gates() -> None:
    found = by_name(
        Transformer(**SMALL, kv_heads=2, gated=True, feed_forward=96, biases=False).blocks()
    )
    assert found["layer.1/qkv"].parameters == 64 * (64 + 2 * 32)
    assert found["layer.1/qkv"].forward.flops == 2 * 16 * 64 * 128
    assert found["layer.1/attention"].inputs == 16 * 128
    assert found["layer.1/attention"].forward.flops == 4 * 16 * 16 * 64
    assert found["layer.1/up"].parameters == 2 * 64 * 96
    assert found["layer.1/up"].forward.flops == 2 * found["layer.1/down"].forward.flops
    assert (found["layer.1/up"].outputs, found["layer.1/up"].kept) == (16 * 96, 16 * (64 + 2 * 96))


def test_experts() -> None:
    found = by_name(Transformer(**SMALL, experts=8, top_k=2).blocks())
    plain = by_name(Transformer(**SMALL).blocks())
    for name in ("layer.2/up", "layer.2/down"):
        assert found[name].experts == 8
        assert found[name].parameters == 8 * plain[name].parameters
        assert found[name].forward.flops == 2 * plain[name].forward.flops
    assert found["layer.2/up"].routed == 2 * 16 * 64
    assert found["layer.2/router"].parameters == 64 * 8
    assert hk.workload.transformer(**SMALL, experts=8).parameters > 0


def test_variants_of_the_ends() -> None:
    plain = by_name(Transformer(**SMALL).blocks())
    assert (plain["head"].parameters, plain["embedding"].parameters) == (0, 100 * 64)
    assert plain["head"].weight_gradient == plain["head"].forward
    apart = by_name(
        Transformer(**SMALL, tied_embeddings=False, positions=16, token_types=2).blocks()
    )
    assert (apart["head"].parameters, apart["embedding"].parameters) == (6400, 118 * 64)
    assert plain["norm"].parameters == 128
    assert by_name(Transformer(**SMALL, norm="rmsnorm").blocks())["norm"].parameters == 64
    causal = by_name(Transformer(**SMALL, causal=True).blocks())["layer.1/attention"]
    assert causal.forward.flops == 4 * 64 * 16 * 17 // 2
    assert passes(plain["layer.1/attention"]) == (65536, 131072, 0)


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"layers": 0}, "transformer: layers: 0 "),
        ({"hidden": 65}, "transformer: hidden: 65 does not divide among 4 heads"),
        ({"kv_heads": 3}, "transformer: kv_heads: 4 heads do not share 3"),
        ({"norm": "batch"}, "transformer: norm: there is no 'batch'; use layernorm or rmsnorm"),
        ({"experts": 1}, "transformer: top_k: a token goes to 2 of 1 experts"),
        ({"gated": 1}, "transformer: gated: 1 is neither True nor False"),
        ({"sequence": 1.5}, "transformer: sequence: 1.5 is not a whole number"),
        ({"vocabulary": -1}, "transformer: vocabulary: -1 is too small"),
        ({"hiden": 3}, "transformer: there is no 'hiden'; did you mean 'hidden'?"),
    ],
)
def test_sizes_that_make_no_sense(keys: dict[str, Any], part: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        hk.workload.transformer(**{**SMALL, **keys})
    assert part in str(error.value)


def test_a_size_that_is_missing() -> None:
    with pytest.raises(hk.SpecError, match="transformer: heads is missing; give it"):
        hk.workload.transformer(layers=2, hidden=8, sequence=4)


# Recurrent layers.


def test_lstm() -> None:
    one, two = Lstm(layers=2, hidden=8, input=5, sequence=10, bidirectional=True).blocks()
    assert one.parameters == 2 * (4 * 8 * (5 + 8) + 8 * 8)
    assert two.parameters == 2 * (4 * 8 * (16 + 8) + 8 * 8)
    assert (one.inputs, one.outputs, two.inputs) == (50, 160, 160)
    assert one.forward.flops == 2 * 10 * 2 * (4 * 8 * 13) + 9 * 160
    assert one.weight_gradient.flops == 2 * 10 * 2 * (4 * 8 * 13)
    assert one.kept == 50 + 6 * 160
    assert moved(one) == (2 * (50 + 160 + 6 * 160),) * 2 + (2 * (50 + 160 + 4 * 160),)
    assert one.input_gradient.flops == one.forward.flops + 9 * 160
    assert Lstm(1, 8, 5, 10, biases=0).blocks()[0].parameters == 4 * 8 * 13


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"hidden": 0}, "lstm: hidden: 0 "),
        ({"biases": 3}, "lstm: biases: 3 "),
        ({"bidirectional": 1}, "lstm: bidirectional: 1 is not a choice; give True or False"),
    ],
)
def test_lstm_that_makes_no_sense(keys: dict[str, Any], part: str) -> None:
    with pytest.raises(hk.SpecError, match=part):
        Lstm(**{"layers": 1, "hidden": 2, "input": 2, "sequence": 2, **keys})


# Files of them.


def test_architectures_in_files() -> None:
    text = (
        "layers:\n"
        "  - transformer: {layers: 2, hidden: 8, heads: 2, sequence: 4, vocabulary: 10}\n"
        "  - {name: more, repeat: 2, lstm: {layers: 1, hidden: 4, input: 8, sequence: 4}}\n"
    )
    layers = from_text(text, "w.yml").layers
    whole = hk.workload.transformer(layers=2, hidden=8, heads=2, sequence=4, vocabulary=10)
    assert layers[: len(whole.layers)] == whole.layers
    assert [layer.name for layer in layers[-2:]] == ["more.1/layer.1", "more.2/layer.1"]
