"""Training by ``auto``: no collective is slower than by greedy, and choices are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.errors import Error
from hocket.training.candidates import candidates
from hocket.training.network import PlanNetwork
from hocket.training.parallel import Group

LINK = {"bandwidth": "25 GB/s", "latency": "700 ns"}
NETWORKS = {
    "irregular": hk.topology.load("dgx1_v100"),
    "mesh without a link": hk.topology.load("mesh:4x2", **LINK).without(links=[("npu0", "npu1")]),
    "boxes": hk.topology.load("box:2x4", **LINK),
}
WHOLE = Group(8, None, (tuple(range(8)),))
PAIRS = Group(2, None, tuple((i, i + 4) for i in range(4)))


@pytest.mark.parametrize("group", [WHOLE, PAIRS], ids=["all", "pairs"])
@pytest.mark.parametrize("kind", ["all-reduce", "reduce-scatter", "all-gather", "all-to-all"])
@pytest.mark.parametrize("network", NETWORKS)
def test_no_collective_is_slower_than_by_another(network: str, kind: str, group: Group) -> None:
    def took(algorithm: str) -> int:
        made = PlanNetwork(NETWORKS[network], algorithm, None)
        return made.shapes[made.collective(kind, group, 1_000_000)].lone_ps

    names = candidates(kind, NETWORKS[network], group)
    assert names[0] == "greedy"
    auto = PlanNetwork(NETWORKS[network], "auto", None)
    best = auto.shapes[auto.collective(kind, group, 1_000_000)].lone_ps
    (maker,) = auto.makers.values()
    assert best <= took("greedy")
    assert maker in names
    for name in ("ring", "direct", "halving-doubling"):
        if name in names:
            assert best <= took(name)


def test_what_is_tried_depends_on_how_much_there_is_to_plan() -> None:
    small, large = NETWORKS["irregular"], hk.topology.load("mesh:8x8", **LINK)
    assert "trees" in candidates("all-reduce", small, WHOLE)
    assert "trees" not in candidates("all-reduce", small, PAIRS)
    assert "steiner" in candidates("all-reduce", small, PAIRS)
    assert "steiner" not in candidates("all-reduce", small, WHOLE)
    assert "steiner" not in candidates("all-reduce", hk.topology.load("mesh:9x9", **LINK), PAIRS)
    everybody = Group(64, None, (tuple(range(64)),))
    assert "trees" not in candidates("all-reduce", large, everybody)
    assert "ring" in candidates("all-reduce", large, everybody)
    huge = hk.topology.load("mesh:20x20", **LINK)
    names = candidates("all-reduce", huge, Group(400, None, (tuple(range(400)),)))
    assert "symmetric" in names[:3]
    assert names[-1] == "greedy"
    for each in ("exact", "multirail-optimal", "auto"):
        assert each not in candidates("all-reduce", small, WHOLE)


def test_groups_that_share_links_get_one_plan() -> None:
    boxes = hk.topology.load("dgx_a100_2box")
    across = Group(4, None, tuple(tuple(range(at, 16, 4)) for at in range(4)))
    made = PlanNetwork(boxes, "auto", None, cache=False)
    best = made.shapes[made.collective("all-reduce", across, 64_000_000)].lone_ps
    ring = PlanNetwork(boxes, "ring", None)
    assert list(made.makers.values()) == ["steiner"]
    assert best < 0.7 * ring.shapes[ring.collective("all-reduce", across, 64_000_000)].lone_ps


def test_it_is_the_default_and_says_what_it_chose() -> None:
    run = hk.train("alexnet", NETWORKS["irregular"], samples=16)
    by_greedy = hk.train("alexnet", NETWORKS["irregular"], samples=16, algorithm="greedy")
    assert run.algorithm == "auto"
    assert run.total_ps <= by_greedy.total_ps
    assert run.chosen == run.to_dict()["chosen"]
    assert sum(run.chosen.values()) == len(run.makers) > 0
    assert by_greedy.chosen == {}


@pytest.mark.parametrize("text", [None, "{", '{"algorithm": "tto", "chunks": 1}', "[]"])
def test_choices_are_kept(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOCKET_CACHE", str(tmp_path))
    asked: list[str] = []
    found = PlanNetwork._found

    def counted(self: PlanNetwork, kind: str, group: Group, size: int, *given: Any) -> Any:
        asked.append(kind)
        return found(self, kind, group, size, *given)

    monkeypatch.setattr(PlanNetwork, "_found", counted)
    first = hk.train("alexnet", NETWORKS["irregular"], samples=16)
    count = len(asked)
    for file in (tmp_path / "training").glob("*.json"):
        if text is not None:
            file.write_text(text)
    again = hk.train("alexnet", NETWORKS["irregular"], samples=16)
    assert again.total_ps == first.total_ps
    assert again.makers == first.makers
    added = len(asked) - count
    assert added == len(first.makers) if text is None else added >= count


def test_what_stops_the_first_is_said() -> None:
    line = hk.topology.line(4, **LINK).without(links=[("npu1", "npu2")])
    with pytest.raises(Error) as caught:
        hk.train("alexnet", line, samples=16)
    assert caught.value.origin == "greedy"


def test_at_size_others_are_tried_in_turn_until_one_is_near_the_bound() -> None:
    network = hk.topology.load("rail:64x8@50GB/s,1us")
    group = Group(512, None, (tuple(range(512)),))
    made = PlanNetwork(network, "auto", None, cache=False)
    took = made.shapes[made.collective("all-reduce", group, 1 << 30)].lone_ps
    assert list(made.makers.values()) == ["symmetric"]
    assert took < 1.03 * hk.bound(network, hk.collective_on("all-reduce", network, 1 << 30)).time_ps
