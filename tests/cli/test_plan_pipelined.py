"""``hocket plan`` of a large broken network: what it prints of trees with many pieces."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import hocket as hk
from hocket.cli import kept, options, schema
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


@pytest.mark.parametrize(
    ("network", "more"),
    [
        ("torus:23x23@50GB/s,700ns", {}),  # symmetric
        ("line:600@50GB/s,700ns", {"size": 600 << 13}),  # little data
        ("line:600@50GB/s,700ns", {"kind": "all-gather"}),
        ("line:600@50GB/s,700ns", {"npus": "0-520"}),
        ("line:600@50GB/s,700ns", {"output": "plan.parquet"}),
        ("line:440@50GB/s,700ns", {}),
    ],
)
def test_others_are_planned_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    network: str,
    more: dict[str, Any],
) -> None:
    def pending() -> options.Meanwhile[hk.Bound]:
        return options.Meanwhile(lambda: hk.bound(topology, collective))

    tried_with: list[int | None] = []

    def tried(*_: Any, trees: int | None, **__: Any) -> Any:
        tried_with.append(trees)
        raise AssertionError("it was tried")

    monkeypatch.setattr(kept, "pipeline", tried)
    given: dict[str, Any] = {"kind": "all-reduce", "size": "1 GB", "npus": None, **more}
    output = given.pop("output", None)
    topology = hk.topology.as_topology(network)
    collective = hk.collective_on(given["kind"], topology, given["size"], npus=given["npus"])
    assert kept.chosen(collective, topology, hk.PlanOptions(), output, pending) is None
    line = hk.topology.as_topology("line:600@50GB/s,700ns")
    large = hk.collective_on("all-reduce", line, "1 GB")
    with pytest.raises(AssertionError, match="it was tried"):
        kept.chosen(large, line, hk.PlanOptions(), None, pending)
    said = capsys.readouterr().err
    assert said.startswith("hocket: one piece of each tree: about 306,688 transfers: ")
    assert said.count("; cheaper: -a ") == 1
    with pytest.raises(AssertionError, match="it was tried"):
        kept.chosen(large, line, hk.PlanOptions(time_limit="1 s"), None, pending)
    assert tried_with == [None, 21]
    assert "--time-limit: few trees, 21, for lack of time" in capsys.readouterr().err


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
