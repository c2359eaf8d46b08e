"""What is said of a search before it begins is about what it then makes."""

from __future__ import annotations

import hocket as hk
from hocket.comparison.limits import Turns
from hocket.plans.algorithms import quick
from hocket.plans.auto import MOST_TRANSFERS, likely
from hocket.plans.sizes import expected
from hocket.plans.synthesis import PlanOptions

LINKS = {"bandwidth": "50 GB/s", "latency": "1 us"}


def test_the_likely_algorithm_of_a_damaged_network_is_the_one_that_auto_takes() -> None:
    whole = hk.topology.torus(32, 32, **LINKS)
    for kind, network, name in [
        ("all-gather", whole, "symmetric"),
        ("all-gather", whole.without(nodes=["npu5"]), "trees"),
        ("all-reduce", hk.topology.torus(4, 4, **LINKS), "greedy"),
    ]:
        collective = hk.collective_on(kind, network, size="1 GB")
        assert likely(collective, network) == name


def test_what_may_be_compared_at_size_is_counted_within_its_limits() -> None:
    network = hk.topology.torus(32, 32, **LINKS)
    collective = hk.collective_on("all-reduce", network, size="1 GB")
    names = quick("all-reduce")
    planned = Turns(collective, network, names, PlanOptions()).planned()
    every = expected(collective, network, names, None)
    assert 0 < len(planned) < len(every)
    assert sum(map(sum, planned.values())) < sum(map(sum, every.values()))
    assert likely(collective, network) in planned
    assert min(planned["symmetric"]) <= MOST_TRANSFERS
