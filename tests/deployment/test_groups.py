"""Process groups: the words of a mesh, of all groups of a size, and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket.deployment.groups import labels, process_groups


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_a_mesh_is_that_of_pytorch(sizes: list[int]) -> None:
    names = "abcd"[: len(sizes)]
    text = ",".join(f"{name}={size}" for name, size in zip(names, sizes, strict=True))
    mesh = np.arange(np.prod(sizes)).reshape(sizes)
    for place, found in enumerate(process_groups(text, mesh.size)):
        rows = np.moveaxis(mesh, place, -1).reshape(-1, sizes[place])
        assert found.name == names[place]
        assert sorted(found.npus) == sorted(map(tuple, rows.tolist()))


def test_words_stand_beside_each_other(tmp_path: Path) -> None:
    file = tmp_path / "groups.json"
    file.write_text(json.dumps({"pairs": [[3, 0], [1, 2]]}))
    assert [each.name for each in process_groups("_=2,tp=2", 4)] == ["tp"]
    found = process_groups(f"world,dp=2,tp=2,any=3,{file}", 4)
    assert {each.name: each.npus for each in found} == {
        "world": ((0, 1, 2, 3),),
        "dp": ((0, 2), (1, 3)),
        "tp": ((0, 1), (2, 3)),
        "any=3": ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)),
        "pairs": ((3, 0), (1, 2)),
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tp=3", "tp 3 make 3 of 8 NPUs; give axes whose product is 8"),
        ("tp=0,dp=8", "make 0 of 8 NPUs"),
        ("frob", "'frob' is no group; give world"),
        ("", "'' is no group"),
        ("world,world", "'world' is there twice"),
        ("any=3,any=03", "'any=3' is there twice"),
        ("world=4,dp=2", "'world' stands for all 8 NPUs; use another name"),
        ("any=9", "'any=9' is no size of a group; give 2 to 8"),
        ("any=x", "is no size"),
        ("missing.json", "missing.json"),
    ],
)
def test_what_is_no_group_is_refused(text: str, why: str) -> None:
    with pytest.raises(hk.SpecError, match=why):
        process_groups(text, 8)


def test_many_groups_are_refused_before_they_are_made() -> None:
    with pytest.raises(hk.SpecError, match=r"any=32 are .* groups; take at most 4,096"):
        process_groups("any=32", 64)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ("{", "is no JSON"),
        ("[]", "are no groups by name"),
        ('{"a b": [[0, 1]]}', "is no name"),
        ('{"a": [0, 1]}', "a: is no list of lists of two NPUs or more"),
        ('{"a": [[0, true]]}', "is no list of lists"),
        ('{"a": [[0, 4]]}', "a: there is no NPU 4; NPUs are 0 to 3"),
        ('{"a": [[0, 1], [1, 2]]}', "a: its groups overlap in NPU 1"),
        ('{"world": [[0, 1], [2, 3]]}', "'world' stands for all 4 NPUs; use another name"),
        ('{"any": [[0, 0]]}', r"any: a group has an NPU twice: \[0, 0\]; list each once"),
        ('{"a": [[0, 1]], "a": [[2, 3]]}', "key 'a' is there twice; write each once"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, values: str, why: str) -> None:
    file = tmp_path / "groups.json"
    file.write_text(values)
    with pytest.raises(hk.SpecError, match=why) as caught:
        process_groups(str(file), 4)
    assert str(file) in str(caught.value)


def test_groups_of_one_name_are_told_apart_by_their_npus() -> None:
    found = labels([("world", [[0, 1, 2, 3]]), ("tp", [[0, 1]]), ("tp", [[2, 3]])])
    assert found == ["world", "tp of NPUs 0, 1", "tp of NPUs 2, 3"]
