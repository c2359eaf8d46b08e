"""Whatever is no path is refused by everything that takes one, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hocket as hk
from hocket.profiles.measurement import read_measurements
from hocket.runtime.table import PlanTable

GRID = hk.topology.load("Ring_Ring:2x2@25GB/s,1us")
PLAN = hk.plan("all-reduce", GRID, size="1 MB", algorithm="ring")
RUN = hk.simulate(PLAN)
TRAINED = hk.train("resnet152", GRID, efficiency=0.5)
TAKERS: dict[str, Callable[[Any], object]] = {
    "save a plan": PLAN.save,
    "load a plan": hk.Plan.load,
    "export a plan": lambda path: hk.export_plan(PLAN, path, to="msccl"),
    "check a file": hk.check_file,
    "save a run": RUN.save,
    "a run over time": RUN.save_perfetto,
    "save a schedule": hk.schedule("all-reduce", GRID, size="1 MB").save,
    "save an iteration": TRAINED.save,
    "an iteration over time": TRAINED.save_perfetto,
    "draw an iteration": TRAINED.plot,
    "load a table": PlanTable.load,
    "read measurements": read_measurements,
}


@pytest.mark.parametrize("taker", TAKERS)
def test_what_is_no_path_is_refused(taker: str) -> None:
    for path in (None, 5, b"a.json", ["a.json"], "a\0b.json"):
        with pytest.raises(hk.SpecError) as caught:
            TAKERS[taker](path)
        assert "\n" not in str(caught.value)
