"""Workload files of layers by their costs: what they mean, and every way to get one wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket.workload.costs import Block, Work
from hocket.workload.yaml import MAX_LAYERS, from_text

FC = "{name: fc, channels: 3, filters: 4}"
B = "{name: b, forward: {flops: 5}}"
SIZES = "layers: 2, hidden: 8, heads: 2, sequence: 4"


def layers(*entries: str) -> str:
    return "layers:\n" + "".join(f"  - {entry}\n" for entry in entries)


def read(*entries: str, top: str = "") -> list[Any]:
    return list(from_text(top + layers(*entries), "w.yml").layers)


def test_every_key() -> None:
    first, block = read(
        FC,
        "{name: b, forward: {flops: 1.2e9, bytes: 3e6}, input_gradient: {flops: 7}, "
        "weight_gradient: {}, parameters: 64, inputs: 10, outputs: 20, kept: 30, split: rows, "
        "experts: 8, routed: 5}",
    )
    assert first == hk.Layer("fc", channels=3, filters=4)
    assert block == Block(
        "b",
        Work(1_200_000_000, 3_000_000),
        Work(7),
        Work(),
        parameters=64,
        inputs=10,
        outputs=20,
        kept=30,
        split="rows",
        experts=8,
        routed=5,
    )
    (table,) = read("{name: t, forward: {}, parameters: 1e9, outputs: 3, table: true}")
    assert (table.is_table, table.parameters) == (True, 10**9)


def test_gradients_that_are_left_out() -> None:
    a, b, c, d = read(
        "{name: a, forward: {flops: 5}, parameters: 1}",
        "{name: b, forward: {flops: 6}, parameters: 1}",
        "{name: c, forward: {flops: 7}}",
        "{name: d, forward: {flops: 8}, parameters: 1, reads_data: true}",
    )
    assert (a.input_gradient, a.weight_gradient) == (Work(), Work(5))  # the first reads data
    assert (b.input_gradient, b.weight_gradient) == (Work(6), Work(6))
    assert (c.input_gradient, c.weight_gradient) == (Work(7), Work())
    assert (d.input_gradient, d.weight_gradient) == (Work(), Work(8))
    (alone,) = read("{name: a, forward: {flops: 5}, input_gradient: {flops: 1}}")
    assert alone.input_gradient == Work(1)


def test_times_are_divided_by_the_samples_of_the_batch() -> None:
    _, b = read(
        B,
        '{name: b, forward: "1.2 ms", input_gradient: {flops: 3}, weight_gradient: 100 ns, '
        "parameters: 1}",
        top="measured_samples: 32\n",
    )
    assert b.forward == Work(time_ps=37_500_000)
    assert b.input_gradient == Work(3)
    assert b.weight_gradient == Work(time_ps=3125)
    (odd,) = read('{name: b, forward: "1 ns"}', top="measured_samples: 3\n")
    assert odd.forward.time_ps == 334  # rounded up, 2 ps in all


def test_joins_is_looked_for_from_the_inside_out() -> None:
    join = "{name: a, forward: {}, joins: end}"
    found = read(
        "{name: g, repeat: 2, layers: [" + join + ", {name: end, forward: {}}]}",
        "{name: h, layers: [" + join + "]}",
        "{name: end, forward: {}}",
    )
    assert [layer.joins for layer in found if layer.joins] == ["g.1/end", "g.2/end", "end"]


def test_experts_find_what_was_routed() -> None:
    up = "{name: up, forward: {}, parameters: 8, experts: 4, routed: 3}"
    down = "{name: down, forward: {}, parameters: 8, experts: 4}"
    assert [layer.routed for layer in read(up, down)] == [3, 0]


BAD = {
    layers("{name: b, forward: 3}"): ["layers[0].forward", "3 ", '"700 ns"'],
    layers("{name: b, forward: 3 MB}"): ["layers[0].forward", "'MB' "],
    layers("{name: b, forward: x}"): ["layers[0].forward", "'x' "],
    layers("{name: b, forward: -1 ms}"): ["layers[0].forward", "is negative"],
    layers("{name: b, forward: [3]}"): ["layers[0].forward", "{flops: 1.2e9, bytes: 3e6}"],
    layers("{name: b, forward: true}"): ["layers[0].forward", "true is not valid"],
    layers("{name: b, forward: 1.5}"): ["layers[0].forward", "1.5 is not valid"],
    layers("{name: b, forward: }"): ["layers[0].forward", "has no value"],
    layers("{name: b, forward: {flop: 3}}"): ["layers[0].forward", "did you mean 'flops'?"],
    layers("{name: b, forward: {flops: -3}}"): ["layers[0].forward.flops", "-3 "],
    layers("{name: b, forward: {flops: 0.5}}"): ["forward.flops", "0.5 "],
    layers("{name: b, forward: {flops: x}}"): ["forward.flops", "'x' "],
    layers("{name: b, forward: {flops: true}}"): ["forward.flops", "true "],
    layers("{name: b, forward: {bytes: 1e30}}"): ["forward.bytes", "too large"],
    layers("{name: b, forward: {bytes: .nan}}"): ["forward.bytes", "nan "],
    layers("{name: b, inputs: 3}"): ["line 2", "layers[0]", "'forward' is missing"],
    layers("{name: b, forward: {}, parameters: 1e20}"): ["layers[0].parameters", "too large"],
    layers("{name: b, forward: {}, foward: {}}"): ["did you mean 'forward'?"],
    layers("{name: b, foward: {}}"): ["layers[0]", "did you mean 'forward'?"],
    layers("{name: b, forward: {}, stride: 3}"): ["there is no key 'stride'", "keys are name"],
    layers("{name: b, forward: {}, kept: -1}"): ["layers[0].kept", "-1 "],
    layers("{name: b, forward: {}, split: row}"): ["layers[0].split", "did you mean 'rows'?"],
    layers("{name: b, forward: {}, split: half}"): ["layers[0].split", "'half'", "copied, "],
    layers("{name: b, forward: {}, table: true}"): ["layers[0]", "a table has parameters"],
    layers("{name: b, forward: {}, table: 1}"): ["layers[0].table", "neither true nor false"],
    layers("{name: b, forward: {}, routed: 1}"): ["layers[0]", "there are no experts"],
    layers("{name: b, forward: {}, experts: 3, routed: 1, parameters: 4}"): ["do not divide"],
    layers(FC, "{name: b, forward: {}, experts: 3, parameters: 3}"): [
        "line 3: layers[1]",
        "nothing is routed to its 3 experts",
    ],
    layers(B, "{name: c, forward: {}, joins: b}"): [
        "line 3",
        "layers[1].joins",
        "not a later layer",
    ],
    layers(B, "{name: c, forward: {}, joins: c}"): ["layers[1].joins", "'c' is not a later layer"],
    layers("{name: c, forward: {}, joins: 3}", B): ["layers[0].joins", "3 is not text"],
    layers("{name: b, forward: {}, input_gradient: {}, reads_data: true}"): [
        "layers[0]",
        "input_gradient: no gradient of data",
    ],
    layers(FC, "{name: b, forward: {}, weight_gradient: 3 ms}"): [
        "line 3: layers[1]",
        "of how many samples is not said",
        "measured_samples:",
    ],
    "measured_samples: 0\n" + layers(B): ["line 1", "measured_samples", "0 "],
    layers(FC[:-1] + ", split: rows}"): ["layers[0]", "there is no key 'split'"],
    layers(FC[:-1] + ", biases: 1}"): ["layers[0].biases", "neither true nor false"],
    layers("{transformer: 3}"): ["layers[0].transformer", "3 is not a mapping"],
    layers("{transformer: {layers: 2}}"): ["layers[0].transformer", "'hidden' is missing"],
    layers(f"{{transformer: {{{SIZES}, hiden: 3}}}}"): ["layers[0].transformer", "'hidden'?"],
    layers(f"{{transformer: {{{SIZES}, kv_heads: 3}}}}"): [
        "line 2: layers[0].transformer: kv_heads: 2 heads do not share 3"
    ],
    layers(f"{{transformer: {{{SIZES}, norm: none}}}}"): ["transformer.norm", "layernorm"],
    layers(f"{{transformer: {{{SIZES}}}, repeat: 2}}"): ["layers[0]", "without a name; give it"],
    layers(f"{{transformer: {{{SIZES}}}, repat: 2}}"): ["layers[0]", "did you mean 'repeat'?"],
    layers(f"{{transformer: {{{SIZES.replace('2', '10000', 1)}}}, name: t, repeat: 9}}"): [
        "layers",
        f"at most {MAX_LAYERS}",
    ],
    layers(f"{{transformer: {{{SIZES.replace('2', '10001', 1)}}}}}"): ["10001 is too large"],
    layers("{lstm: {layers: 1, hidden: 2, input: 2}}"): ["layers[0].lstm", "'sequence' is missing"],
    layers("{lstm: {layers: 1, hidden: 2, input: 2, sequence: 3, biases: 3}}"): [
        "layers[0].lstm.biases",
        "3 ",
    ],
    layers("{lstm: {layers: 1, hidden: 2, input: 2, sequence: 3, direction: 2}}"): [
        "layers[0].lstm",
        "there is no key 'direction'",
        "bidirectional",
    ],
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text[:70]))
def test_bad_file(text: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        from_text(text, "w.yml")
    message = str(error.value)
    assert message.startswith("w.yml, line ")
    assert len(message.splitlines()) == 1
    assert "; " in message
    assert not [word for word in ("input should", "valid ", "<", "@") if word in message]
    assert [part for part in BAD[text] if part not in message] == []


WORKS = st.builds(Work, st.integers(0, 1 << 62), st.integers(0, 1 << 62))
NUMBERS = st.integers(0, 1 << 62)
BLOCKS = st.builds(
    Block,
    st.sampled_from(["a", "b", "c"]),
    WORKS,
    WORKS,
    WORKS,
    parameters=st.integers(0, 1 << 40),
    inputs=NUMBERS,
    outputs=NUMBERS,
    kept=st.none() | NUMBERS,
    split=st.sampled_from(["copied", "columns", "rows", "inside"]),
)


def entry(block: Block) -> dict[str, Any]:
    """A layer as a file has it."""
    passes = ("forward", "input_gradient", "weight_gradient")
    keys = ("parameters", "inputs", "outputs", "kept", "split")
    works = {name: {"flops": getattr(block, name).flops} for name in passes}
    for name in passes:
        works[name]["bytes"] = getattr(block, name).bytes
    rest = {key: getattr(block, key) for key in keys if getattr(block, key) is not None}
    return {"name": block.name, **works, **rest}


@given(st.lists(BLOCKS, min_size=1, max_size=4))
def test_what_is_written_is_read(blocks: list[Block]) -> None:
    text = json.dumps({"layers": [entry(block) for block in blocks]})
    assert list(from_text(text, "w.yml").layers) == blocks
