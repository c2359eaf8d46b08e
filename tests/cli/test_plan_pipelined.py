"""``hocket plan`` of a large broken network: what it prints of trees with many pieces."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from hocket.cli import schema
from hocket.cli.kept import pieces_line


@pytest.mark.slow
def test_auto_keeps_one_piece_of_each_tree_of_a_broken_network(hocket: Any) -> None:
    where = ("-t", "torus:46x46@50GB/s,700ns", "--failed", "npu5", "-s", "1GB")
    result = hocket("plan", "all-reduce", *where, "--json")
    assert result.code == 0
    data = json.loads(result.out)
    jsonschema.validate(data, json.loads(schema.schema_text("results")))
    assert data["format"] == "hocket.pipelined-plan"
    assert data["bound_ps"] <= data["time_ps"] < 1.1 * data["bound_ps"]
    assert data["transfers"] == data["pieces"] * data["kept_transfers"]
    assert len(data["simulated"]) == 2


def test_what_was_simulated_is_said() -> None:
    class Made:
        trees, pieces = 64, 221
        simulated: tuple[tuple[int, int], ...] = ((5, 1), (10, 2))

    made: Any = Made()
    assert pieces_line(made).endswith(
        "221 pieces one after another: the time is extrapolated from 5 and 10 pieces of that size"
    )
    made.simulated = ((221, 3),)
    assert pieces_line(made).endswith("one after another: all simulated")
