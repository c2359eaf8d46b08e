"""One table of algorithms: Python asks the core's, and says of each what it says."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket import _core
from hocket.plans.algorithms import BUILTIN, SCHEDULERS, compared, heeded, is_scheduled

TOPO = hk.topology.ring(4, bandwidth="25 GB/s", latency="1 us")
GIVEN: dict[str, Any] = {
    "seed": 3,
    "unwind": "1",
    "trials": 2,
    "slot": "1 us",
    "window": 2,
    "relays": "none",
}


def test_python_lists_what_the_core_lists() -> None:
    entries = _core.registry.entries()
    assert list(BUILTIN) == [each.name for each in entries]
    listed = [(each.name, each.summary, list(each.kinds)) for each in hk.algorithms()]
    assert listed[: len(entries)] == [(each.name, each.summary, each.kinds) for each in entries]
    outside = [each.name for each in entries if not each.in_core]
    assert outside == ["exact", "auto"]
    assert [each.name for each in entries if not each.is_compared] == ["blind", *outside]
    assert compared()[: len(entries) - 3] == [each.name for each in entries if each.is_compared]


def test_schedulers_are_those_that_make_schedules() -> None:
    product = hk.topology.torus([4, 4], bandwidth="25 GB/s", latency="1 us")
    for name in BUILTIN:
        if name in SCHEDULERS:
            assert hk.schedule("all-reduce", product, size="1 MB", algorithm=name).algorithm == name
        else:
            with pytest.raises((hk.InfeasibleError, hk.SpecError)):
                hk.schedule("all-reduce", product, size="1 MB", algorithm=name)
    assert [name for name in SCHEDULERS if not is_scheduled(name)] == ["hierarchical"]


@pytest.mark.parametrize("option", GIVEN)
@pytest.mark.parametrize("name", [name for name in BUILTIN if name not in ("exact", "auto")])
def test_an_option_is_taken_by_those_that_heed_it(name: str, option: str) -> None:
    options = hk.PlanOptions(**{option: GIVEN[option]})
    kept = getattr(heeded(name, options), option) == getattr(options, option)
    assert kept == (option in BUILTIN[name].uses)
    if not kept:
        use = [each.name for each in BUILTIN.values() if option in each.uses]
        listed = " and ".join(filter(None, (", ".join(use[:-1]), use[-1])))
        with pytest.raises(hk.SpecError) as caught:
            hk.plan("all-reduce", TOPO, size="1 MB", algorithm=name, options=options)
        assert str(caught.value) == f"{option}: {name} does not use it; it is for {listed}"
