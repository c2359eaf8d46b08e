"""Groups of NPUs."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket import topology as tp
from hocket.topology.json import topology_from_json, topology_to_json

from .small_networks import LINK

GROUPS = [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "groups",
    [3, "3", "0-2 3-5", "npu0,npu1,2  3-4,npu5", GROUPS, [["npu0", 1, 2], ("npu3", 4, "npu5")]],
)
def test_groups(groups: Any) -> None:
    ring = tp.ring(6, **LINK)
    grouped = tp.grouped(ring, groups)
    assert grouped.groups == GROUPS
    assert ring.groups == []
    assert grouped != ring
    assert topology_from_json(topology_to_json(grouped)) == grouped
    assert grouped.without(["npu1"]).groups == [[0, 1], [2, 3, 4]]


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (4, "groups: 4 does not divide the 6 NPUs of 'ring 6'"),
        (0, "groups: 0 does not divide"),
        (True, "groups: true does not divide"),
        (-3, "groups: -3 does not divide"),
        ("", "groups: there is none; give a number of NPUs"),
        (None, "groups: None "),
        ([1, 2], "groups: [1, 2] "),
        (["ab"], "groups: ['ab'] "),
        ("0-2 3-6", "groups[1]: there is no NPU 6; NPUs are 0 to 5"),
        ("5-3", "groups: '5-3' is not a range of NPUs"),
        ([[0, "npu9"]], "groups[0]: there is no NPU 'npu9'; did you mean"),
        ([[0, 1.0]], "groups[0]: there is no NPU 1.0"),
        ([[0, 1, 2], [3, 4]], 'groups: "npu5" is in none'),
        ([[0, 1, 2], [2, 3, 4, 5]], 'group 1: has "npu2", which is in group 0 too'),
        ([[0, 1, 2, 3, 4, 5], []], "group 1: has no NPU"),
    ],
)
def test_wrong_groups(groups: Any, says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        tp.grouped(tp.ring(6, **LINK), groups)
    assert says in str(error.value)


def test_a_switch_is_in_no_group() -> None:
    with pytest.raises(hk.SpecError, match="'sw0' is a switch"):
        tp.grouped(tp.switch(2, **LINK), [["npu0", "npu1", "sw0"]])
