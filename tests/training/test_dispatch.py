"""Tokens that go to experts and back: dispatch and combine in training, by closed forms on two nodes."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket.training import TrainingRun
from hocket.training.network import TOKENS
from hocket.workload.costs import Block, Work

from .small_models import Model, trained

RAIL = hk.topology.rail(
    2, 2, bandwidth="50 GB/s", latency="1 us", node_bandwidth="450 GB/s", node_latency="1 us"
)
NUMBERS = 25_000_000
"""Of the tokens of an NPU, 50 MB."""
ONCE_PS = 1_000_000_000
"""In which the tokens of an NPU cross its NIC once."""


def layers(top: int, experts: int = 4) -> Model:
    """A layer whose tokens go to as many experts, one of four on each NPU."""
    work = Work(time_ps=1000)
    moe = Block("moe", work, work, work, 64, experts=experts, routed=top * NUMBERS, top=top)
    return Model("moe", (moe,))


def run(top: int, experts: int = 4, **options: Any) -> TrainingRun:
    return trained(
        layers(top, experts), RAIL, "dp=4,ep=4", samples=1, cache=False, bucket=None, **options
    )


def times(run: TrainingRun) -> dict[str, int]:
    """The time of the one collective of each kind."""
    return {
        exchange.kind: shape.lone_ps
        for exchange, shape in zip(run.exchanges, run.shapes, strict=True)
    }


def test_a_token_for_everybody_enters_the_other_node_once() -> None:
    found = run(4)
    assert ONCE_PS < times(found)[TOKENS] < 1.1 * ONCE_PS
    assert times(found)[TOKENS] * 1.8 < times(run(4, dispatch="all-to-all"))["all-to-all"]
    assert set(found.makers.values()) == {"steiner"}
    assert found.exchanges == [(TOKENS, 4, 4 * 2 * NUMBERS)]
    # There and back, forward and backward.
    assert len(found.columns.shape) == 4
    assert found.breakdown.exposed["expert"] == 4 * times(found)[TOKENS]


def test_what_exchanges_as_much_as_a_table_goes_all_to_all() -> None:
    work = Work(time_ps=1000)
    table = Block("t", work, Work(), work, 64, outputs=4 * NUMBERS, is_table=True)
    both = Model("both", (table, *layers(4).layers))
    found = trained(both, RAIL, "dp=4,ep=4", samples=1, cache=False, bucket=None)
    assert [each.kind for each in found.exchanges] == ["all-to-all"]


def test_half_of_the_copies_of_one_expert_cross() -> None:
    """A token has one expert, half of them in the other node: an all-to-all."""
    assert set(times(run(1))) == {"all-to-all"}
    skewed = times(run(1, dispatch="tokens=64,seed=1"))[TOKENS]
    assert 0.5 * ONCE_PS < skewed < 0.9 * ONCE_PS


def test_a_limit_of_nodes_takes_less() -> None:
    """Half of the tokens cross with a limit of one node, and 1 - 7/15 / 2 of them without."""
    even, near = (
        times(run(2, 16, dispatch=words))[TOKENS] for words in ("tokens=64", "tokens=64,nodes=1")
    )
    assert near == pytest.approx(0.5 * ONCE_PS, rel=0.1)
    assert even == pytest.approx((1 - 7 / 30) * ONCE_PS, rel=0.1)


@pytest.mark.parametrize("algorithm", ["ring", "direct"])
def test_algorithms_that_cannot_dispatch_send_all_to_all(algorithm: str) -> None:
    assert set(times(run(4, algorithm=algorithm))) == {"all-to-all"}
    with pytest.raises(hk.SpecError, match=f"dispatch: {algorithm} sends tokens all-to-all; use"):
        run(4, algorithm=algorithm, dispatch="skew=2")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("skew=0", "dispatch: skew"),
        ("skew", "'skew' has no value"),
        ("experts=4", "experts follows from the model; leave it out"),
        ("tokens=0", "dispatch: tokens"),
        ("nodes=3,skew=x", "dispatch: skew"),
        ("nodes=1", "dispatch: nodes: 1 of them may have only 2 experts, and a token needs 4"),
        (7, "dispatch: 7 is not a str"),
    ],
)
def test_words_that_make_no_sense_are_refused(words: Any, why: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        run(4, dispatch=words)
    assert why in str(caught.value)


def test_models_without_experts_dispatch_nothing() -> None:
    model = Model("a", (Block("a", Work(1), parameters=64),))
    with pytest.raises(hk.SpecError, match="dispatch: the model has no experts"):
        trained(model, RAIL, "dp=4", dispatch="skew=2")
