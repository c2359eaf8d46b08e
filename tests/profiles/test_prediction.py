"""Predictions and the bound on any plan: few bounds tell of many sizes which are below it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import hocket as hk
from hocket.fitting.constants import Fitted
from hocket.profiles.profile import Profile, load_profile
from hocket.topology import Topology


@pytest.fixture
def network() -> Topology:
    return hk.topology.load("hgx_h200_8gpu")


def too_quick(times: int) -> Profile:
    """Return a profile by which NVLinks and switches that sum carry so many times as much."""
    found = load_profile("h100")
    constants = {
        name: Fitted(value * times, value, value * times)
        for name, value in found.values.items()
        if name.endswith((".efficiency", "p2p.channel"))
    }
    return replace(found, constants={**found.constants, **constants})


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "all-to-all"])
@pytest.mark.parametrize("times", [1, 2, 4])
def test_each_size_is_below_the_bound_as_if_it_were_alone(
    network: Topology, kind: str, times: int
) -> None:
    draw = random.Random(f"{kind} {times}")
    sizes = list({draw.randrange(1, 2 << draw.randrange(35)) for _ in range(40)})
    draw.shuffle(sizes)
    found = hk.predict(kind, network, sizes=sizes, profile=too_quick(times))
    below = []
    for size, each in zip(sizes, found.times, strict=True):
        least = hk.bound(network, hk.collective_on(kind, network, size)).time_ps
        assert each.size == size
        assert (each.below_bound is not None) == (each.seconds * 1e12 < least)
        below.append(each.below_bound is not None)
    assert not all(below)
    assert any(below) == (times > 1)


def test_the_largest_size_has_a_bound_too(network: Topology) -> None:
    assert hk.predict("all-gather", network, sizes=[(1 << 63) - 1]).times[0].below_bound is None


def test_one_size_after_the_other_is_as_all_at_once(network: Topology) -> None:
    quick, sizes = too_quick(4), [10**k + k for k in range(3, 11)]
    together = hk.predict("all-reduce", network, sizes=sizes, profile=quick).times
    alone = [
        hk.predict("all-reduce", network, sizes=[size], profile=quick).times[0] for size in sizes
    ]
    assert list(together) == alone
    assert {each.below_bound is None for each in alone} == {True, False}
