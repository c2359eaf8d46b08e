"""How many transfers plans have is known before they are made."""

from __future__ import annotations

import pytest

import hocket as hk
from hocket.errors import Error
from hocket.plans.algorithms import quick
from hocket.plans.sizes import expected, taken

MOST = 8
"""How many times as many a plan has at the most: of trees, and of searches in which NPUs pass on chunks."""


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "broadcast", "all-to-all"])
@pytest.mark.parametrize("network", ["mesh:4x4", "rail:4x4", "ring:12"])
def test_plans_have_as_many_transfers_as_expected(network: str, kind: str) -> None:
    topology = hk.topology.load(network, bandwidth="25 GB/s", latency="1 us")
    collective = hk.collective_on(kind, topology, "1 MB")
    found = expected(collective, topology, quick(kind), 2)
    assert len(found) > 2
    for name, (count,) in found.items():
        try:
            made = hk.plan(collective, topology, algorithm=name, chunks=2)
        except Error:
            continue  # which takes no number of chunks, or not this one
        assert count / 2 <= len(made) <= MOST * count, name


def test_what_nobody_can_tell_of_is_left_out() -> None:
    topology = hk.topology.load("ring:4@25GB/s,1us")
    collective = hk.collective_on("all-reduce", topology, "1 MB")
    assert expected(collective, topology, ["auto", "nothing", "ring-2d"], None) == {}
    assert expected(collective, topology, ["ring"], None)["ring"][0] == 2 * 4 * 3


def test_what_they_take_is_said_of_all_plans_and_of_the_largest() -> None:
    assert taken(4_000_000, 2_000_000) == "about 4,000,000 transfers: 500 MB of memory and 16 s"
