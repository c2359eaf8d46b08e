"""Manifests: what is refused, and that one changed bit is."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.deployment.folders import row, saved, values

import hocket as hk
from hocket.deployment import MANIFEST
from hocket.deployment.manifest import digest, load_deployment

TP = {"name": "tp", "npus": [[0, 1], [2, 3]], "entries": ["all-reduce-2-0-Simple"]}
MADE = values([TP], [row("all-reduce", 2, 0, 1024)])


def test_a_group_is_found_by_its_npus_in_order(tmp_path: Path) -> None:
    made = saved(tmp_path, MADE)
    assert made.group_of((2, 3)) == made.manifest.groups[0]
    assert made.group_of((3, 2)) is None
    assert made.group_of((0, 2)) is None


def test_one_changed_bit_is_refused(tmp_path: Path) -> None:
    text = json.dumps(MADE, indent=1).encode()
    assert saved(tmp_path, text.decode()).manifest.version == 1
    for place in range(0, len(text), 7):
        for bit in range(8):
            changed = bytearray(text)
            changed[place] ^= 1 << bit
            (tmp_path / MANIFEST).write_bytes(changed)
            with pytest.raises(hk.SpecError) as caught:
                load_deployment(tmp_path)
            assert "\n" not in str(caught.value)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    found = saved(tmp_path, json.dumps(MADE))
    os.mkfifo(tmp_path / found.files[0].file)
    with pytest.raises(hk.SpecError, match="is a pipe"):
        found.read(found.files[0])


def _set(*path: Any, to: Any) -> Callable[[Any], None]:
    def change(found: Any) -> None:
        for part in path[:-1]:
            found = found[part]
        found[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_set("version", to=2), 'version: is 2; this hocket reads format "hocket.deploy"'),
        (_set("version", to=True), "version: is true"),
        (_set("format", to="hocket.plan"), "format: is 'hocket.plan'"),
        (_set("frob", to=1), "there is no key 'frob'"),
        (_set("groups", 0, "frob", to=1), "'frob'; keys are name, npus, entries, left_to_nccl"),
        (_set("entries", 0, "plan", "frob", to=1), "'frob'; keys are file, sha256"),
        (_set("made_for", "runtime", to="frob"), "made_for.runtime"),
        (_set("groups", 0, "npus", 1, to=[1, 2]), "tp: its groups overlap in NPU 1"),
        (_set("groups", 0, "npus", 1, to=[6, 8]), "there is no NPU 8; NPUs are 0 to 7"),
        (_set("groups", 0, "npus", 1, to=[4, 5, 6]), "tp: groups of unlike sizes share no rows"),
        (_set("groups", 0, "npus", to=[[4, 5, 6]]), "entry .* is for 2 ranks"),
        (_set("groups", 0, "entries", to=[]), "group tp: it has no rows"),
        (_set("groups", 0, "entries", to=["all"]), "there is no entry 'all'"),
        (_set("entries", 0, "to_bytes", to=0), "to_bytes is not above from_bytes"),
        (_set("entries", 0, "unit_bytes", to=24), "unit_bytes"),
        (
            _set("entries", 0, "plan", "file", to="../a"),
            "'../a' is not valid; write it as .A-Za-z0-9",
        ),
        (
            _set("machine", "npus", 1, "node", to=1),
            "tp: plans are for one node, and it is on several",
        ),
        (
            _set("machine", "npus", 1, "bus", to="0000:00:00.0"),
            "two NPUs of a node have one bus id",
        ),
        (_set("machine", "processors", to=64), "sha256: is of another manifest: it was changed"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, change: Callable[[Any], None], why: str) -> None:
    found = copy.deepcopy(MADE)
    change(found)
    if "sha256" not in why:
        found["sha256"] = digest(found)
    with pytest.raises(hk.SpecError, match=why) as caught:
        saved(tmp_path, found)
    assert MANIFEST in str(caught.value)


def test_rows_that_overlap_are_refused(tmp_path: Path) -> None:
    rows = [row("all-reduce", 2, 0, 1024), row("all-reduce", 2, 1000, 2048)]
    group = {**TP, "entries": [each["id"] for each in rows]}
    with pytest.raises(hk.SpecError, match="overlap at 1000 bytes"):
        saved(tmp_path, values([group], rows))


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    text = json.dumps(MADE).replace('"version"', '"version": 1, "version"', 1)
    with pytest.raises(hk.SpecError, match="key 'version' is there twice; write each once"):
        saved(tmp_path, text)


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00", "[" * 100_000])
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(hk.SpecError, match=MANIFEST):
        saved(tmp_path, text)


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hk.SpecError, match=MANIFEST):
        load_deployment(tmp_path)


def test_a_manifest_apart_from_its_folder_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    copy.write_text(json.dumps(values([], [])))
    with pytest.raises(
        hk.SpecError, match=r"copy.json: is no deployed folder; name the folder; its"
    ):
        hk.check_file(copy)


def test_a_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(hk.SpecError, match=r"cannot be read: File name too long"):
        load_deployment("a" * 5000)
