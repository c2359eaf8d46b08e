"""Doors of plans in Python: frames, and names under which algorithms of one's own are registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from draw import ODD, Draw
from parquet import CHANGES, PLANS, RING

import hocket as hk
from hocket.plans import registry

_SEEDS = [(plan, plan.to_frame()) for plan in PLANS]
_OTHER = (RING, hk.collective_on("all-to-all", RING, "1 MB"))
_FORMS: tuple[Callable[[pa.Table], Any], ...] = (
    lambda table: table,
    lambda table: table.to_pydict(),
    lambda table: table.to_reader(),
    lambda table: table.select(
        [i for i, name in enumerate(table.column_names) if "wait" not in name]
    ),
)


def frame(data: bytes) -> None:
    """A plan's frame: other values, columns and types, in any form that a frame has; or none."""
    draw = Draw(data)
    plan, table = draw.one_of(_SEEDS)
    for _ in range(draw.below(4)):
        table = draw.one_of(CHANGES)(table, draw)
    given = draw.one_of(ODD) if draw.below(32) == 31 else draw.one_of(_FORMS)(table)
    topology, collective = (plan.topology, plan.collective) if draw.below(8) else _OTHER
    options: dict[str, Any] = {}
    if draw.below(8) == 7:
        options[draw.one_of(("name", "chunks", "link_order"))] = draw.one_of((*ODD, 4))
    made = hk.Plan.from_frame(given, topology, collective, **options)
    repr(made)
    made.verify()
    assert hk.simulate(made).time_ps >= 0


def registered(data: bytes) -> None:
    """A name, kinds and a summary of an algorithm; what is registered plans, and is known by its name."""
    draw = Draw(data)
    kinds = draw.one_of(
        (registry.KINDS, "all-gather", ["all-gather"], ("allgather", "custom"), *ODD)
    )
    summary = draw.one_of((None, "what it does", "two\nlines", *ODD))
    function = _plan if draw.below(16) else draw.one_of(ODD)
    name = draw.rest().decode("utf-8", "surrogateescape") if draw.below(8) else draw.one_of(ODD)
    known = dict(registry._OWN)
    try:
        hk.algorithm(name, kinds=kinds, summary=summary)(function)  # type: ignore[arg-type]
        found = registry.find(name)
        assert found is not None
        assert found.function is _plan
        assert "\n" not in found.summary
        assert any(each.name == name for each in hk.algorithms())
        hk.plan("all-gather", RING, size="1 MB", algorithm=name).verify()
    finally:
        registry._OWN.clear()
        registry._OWN.update(known)


def _plan(topology: Any, collective: Any, options: Any) -> Any:
    """Send from each to each."""
    return hk.plan(collective, topology, algorithm="direct")
