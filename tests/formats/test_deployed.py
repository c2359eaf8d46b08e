"""Deployed folders: what is written, and what a check finds."""

from __future__ import annotations

import hashlib
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.deployment import MANIFEST
from hocket.deployment.manifest import digest
from hocket.formats.deployed_rows import DeployOptions
from hocket.nccl.tuner import read_tuner

RING = "ring:4@25GB/s,1us"
ALL = "all-reduce,all-gather,broadcast"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("deployed") / "deploy"
    hk.deploy(RING, made, process_groups="world,dp=2,tp=2", collectives=ALL, sizes="1K:64K:x64")
    return made


def changed(folder: Path, tmp_path: Path, **values: Any) -> Path:
    """Copy a folder, with other values in its first entry."""
    copy = tmp_path / "deploy"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    manifest = _manifest(copy)
    manifest["entries"][0] |= values
    return _save(copy, manifest)


def _save(folder: Path, manifest: dict[str, Any]) -> Path:
    """Write a manifest with its hash computed anew."""
    manifest["sha256"] = digest(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


def test_every_plan_is_right_and_every_size_is_told(folder: Path) -> None:
    found = hk.check_file(folder, options=hk.CheckOptions(run=True))
    assert found.is_right, found.judgement.faults
    manifest = json.loads((folder / MANIFEST).read_text())
    assert [(each["name"], each["npus"]) for each in manifest["groups"]] == [
        ("world", [[0, 1, 2, 3]]),
        ("dp", [[0, 2], [1, 3]]),
        ("tp", [[0, 1], [2, 3]]),
    ]
    by_id = {each["id"]: each for each in manifest["entries"]}
    for group in manifest["groups"]:
        for kind in ALL.split(","):
            rows = [by_id[each] for each in group["entries"] if by_id[each]["collective"] == kind]
            rows += [row for row in group["left_to_nccl"] if row["collective"] == kind]
            rows.sort(key=lambda row: row["from_bytes"])
            assert (rows[0]["from_bytes"], rows[-1]["to_bytes"]) == (1024, 65537)
            for before, after in pairwise(rows):
                assert before["to_bytes"] == after["from_bytes"]


@pytest.mark.slow
def test_a_plan_that_does_not_pay_is_left_to_nccl(tmp_path: Path) -> None:
    made = hk.deploy(
        "dgx1_v100", tmp_path / "deploy", collectives="all-reduce", sizes="256K:256M:x1024"
    )
    small, large = made.ranges
    assert small.runs != "NCCL"
    assert small.predicted_ps is not None
    assert small.nccl_ps is not None
    assert small.predicted_ps * 1.05 <= small.nccl_ps
    assert (large.runs, large.planned_bytes) == ("NCCL", 256 << 20)
    assert large.why.endswith("with launch and copies")
    table = read_tuner(tmp_path / "deploy" / "tuner.csv")
    assert {(row.ranks, row.nodes) for row in table.rows} == {(8, 1)}
    found = hk.check_file(tmp_path / "deploy")
    assert found.is_right
    assert any("left to NCCL: " in note for note in found.judgement.notes)


def test_a_part_of_a_machine_has_the_gpus_of_the_whole(tmp_path: Path) -> None:
    """Two of four GPUs have a third of the links of each, which would be those of no GPU."""
    made = hk.deploy(
        "fully_connected:4@100GB/s,700ns",
        tmp_path / "deploy",
        process_groups="world,dp=2,tp=2",
        collectives="all-reduce",
        sizes="1M:1M",
    )
    assert {each.group for each in made.ranges} == {"world", "dp", "tp"}
    assert all(each.nccl_ps is not None for each in made.ranges)
    assert hk.check_file(tmp_path / "deploy").is_right


def test_groups_on_several_nodes_are_left_to_nccl(tmp_path: Path) -> None:
    made = hk.deploy(
        "dgx_a100_2box",
        tmp_path / "deploy",
        process_groups="dp=2,tp=8",
        collectives="all-gather",
        sizes="1M:1M",
    )
    assert {(each.group, each.runs, each.why) for each in made.ranges if each.why} == {
        ("dp", "NCCL", "plans are for one node")
    }
    assert [each.groups for each in made.ranges if each.group == "tp"] == [2]


def test_switches_that_sum_are_deployed(tmp_path: Path) -> None:
    made = hk.deploy(
        "hgx_h100_8gpu_validated", tmp_path / "deploy", collectives="all-reduce", sizes="4M:4M"
    )
    assert [each.runs for each in made.ranges] == ["multimem"]
    entry = made.deployment.manifest.entries[0]
    assert entry.switches
    assert entry.over_bound > 0
    assert hk.check_file(tmp_path / "deploy", options=hk.CheckOptions(run=True)).is_right


def test_files_of_others_are_kept(folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "results.csv").write_text("1")
    with pytest.raises(hk.SpecError, match=r"has other files, such as 'results.csv'"):
        hk.deploy(RING, mine, sizes="1K:1K")
    copy = changed(folder, tmp_path)
    (copy / "results.json").mkdir()
    with pytest.raises(hk.SpecError, match=r"has other files, such as 'results.json'"):
        hk.deploy(RING, copy, sizes="1K:1K")
    (copy / "results.json").rmdir()

    def write(*_: object) -> None:
        (copy / "notes.txt").write_text("1")

    with pytest.raises(hk.SpecError, match=r"has other files, such as 'notes.txt'"):
        hk.deploy(RING, copy, sizes="1K:1K", progress=write)
    (copy / "notes.txt").unlink()
    assert hk.check_file(copy).is_right
    hk.deploy(RING, copy, sizes="1K:1K", collectives="all-reduce")
    assert len(list(copy.iterdir())) == 3


def test_all_sizes_that_were_asked_for_have_a_row(tmp_path: Path) -> None:
    made = hk.deploy("ring:3@25GB/s,1us", tmp_path / "d", sizes="1K:64K:x64")
    rows = [each for each in made if each.collective == "all-reduce"]
    assert (rows[0].from_bytes, rows[-1].to_bytes) == (1024, (64 << 10) + 1)


@pytest.mark.parametrize("text", [b"\xff\xfe", b"", b"[]", b"{}"])
def test_a_program_that_is_none_is_found(folder: Path, tmp_path: Path, text: bytes) -> None:
    copy = changed(folder, tmp_path)
    manifest = json.loads((copy / MANIFEST).read_text())
    program = manifest["entries"][0]["program"]
    (copy / program["file"]).write_bytes(text)
    program["sha256"] = hashlib.sha256(text).hexdigest()
    manifest["sha256"] = digest(manifest)
    (copy / MANIFEST).write_text(json.dumps(manifest))
    found = hk.check_file(copy)
    assert [fault.place for fault in found.judgement.faults] == [program["file"]]


def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "deploy"
    with pytest.raises(hk.SpecError, match="processors: 20 leave none beside 16 CTAs and 4 spare"):
        hk.deploy(RING, folder, processors=20)
    right = "name groups within nodes, such as process_groups dp=2,tp=8"
    with pytest.raises(hk.InfeasibleError, match=f"all is left to NCCL: .*; {right}"):
        hk.deploy("dgx_a100_2box", folder, sizes="1K:1K")
    assert not folder.exists()
    folder.mkdir()
    (folder / "mine.txt").write_text("kept")
    with pytest.raises(hk.SpecError, match=r"has other files, such as 'mine.txt'"):
        hk.deploy(RING, folder, sizes="1K:1K", collectives="all-gather")
    assert [each.name for each in folder.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("collectives", "reduce"),
        ("sizes", "1K:frob"),
        ("max_ctas", 65),
        ("launch", "10"),
        ("copy_rate", "fast"),
        ("packets", "few"),
        ("tolerance", 1),
        ("tolerance", True),
        ("share", 1),
        ("process_groups", 4),
    ],
)
def test_options_that_make_no_sense(name: str, value: Any) -> None:
    with pytest.raises(hk.SpecError, match=name):
        hk.deploy(RING, "unused", options=DeployOptions(**{name: value}), process_groups="frob")


@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_a_changed_file_is_found(folder: Path, tmp_path: Path, ending: str) -> None:
    copy = changed(folder, tmp_path)
    file = next(file for file in sorted(copy.iterdir()) if file.name.endswith("024" + ending))
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    found = hk.check_file(copy)
    assert [(fault.code, fault.place) for fault in found.judgement.faults] == [("file", file.name)]
    file.unlink()
    assert [fault.code for fault in hk.check_file(copy).judgement.faults] == ["file"]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"unit_bytes": 16}, "unit_bytes is"),
        ({"blocks": 1}, "blocks is"),
        ({"name": "other"}, "name is"),
        (
            {"protocol": "LL"},
            "protocol is Simple by the plan and its program, the manifest says LL",
        ),
        ({"algorithm": "other"}, "algorithm is"),
        (
            {"switches": True},
            "switches is False by the plan and its program, the manifest says True",
        ),
        ({"planned_bytes": 1025}, "planned_bytes is 1024 by the plan and its program"),
        ({"max_bytes": 1 << 20}, "max_bytes is"),
        ({"predicted_ps": 1}, "predicted_ps is"),
        ({"nccl_ps": 1 << 50}, "nccl_ps is None by the plan and its program"),
        ({"over_bound": 9.0}, "over_bound is"),
        ({"over_best": 9.0}, "over_best is 9.0, more than over_bound"),
    ],
)
def test_a_manifest_of_other_files_is_found(
    folder: Path, tmp_path: Path, values: dict[str, Any], why: str
) -> None:
    found = hk.check_file(changed(folder, tmp_path, **values))
    assert [fault.code for fault in found.judgement.faults] == ["manifest"]
    assert found.judgement.faults[0].detail.startswith(why)


def test_two_runs_write_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    asked = {"process_groups": "world", "collectives": "all-reduce", "sizes": "1K:64K:x64"}
    for name in ("one", "other"):
        hk.deploy("fc:4@25GB/s,1us", tmp_path / name, **asked)
    one, other = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
        for name in ("one", "other")
    )
    assert one == other


def test_groups_of_one_rank_are_left_to_nccl(tmp_path: Path) -> None:
    made = hk.deploy(RING, tmp_path / "d", process_groups="world,dp=1,tp=4", sizes="1K:1K")
    assert {each.why for each in made if each.group == "dp"} == {"the group has one rank"}
    assert hk.check_file(tmp_path / "d").is_right


def test_unlike_groups_of_a_name_are_told_apart(tmp_path: Path) -> None:
    """One link of four is slower, so groups of a mesh are unlike."""
    slower = hk.topology.load(RING, slow=["npu0,npu1=5GB/s"])
    made = hk.deploy(slower, tmp_path / "d", process_groups="dp=2,tp=2", sizes="1M:1M")
    told = "groups of one name with unlike plans, in this order: tp of NPUs 0, 1; tp of NPUs 2, 3"
    assert told in made.notes


def test_a_group_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    ring = hk.topology.ring(4, bandwidth="25 GB/s", latency="1 us")
    cut = ring.without(links=[("npu0", "npu1"), ("npu2", "npu3")])
    why = "process_groups: a group of 'tp' is cut off: no path of links leads from .*; join them"
    with pytest.raises(hk.SpecError, match=why):
        hk.deploy(cut, tmp_path / "d", process_groups="tp=2,dp=2", sizes="1K:1K")


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        (("machine", "processors"), 20, r"CTAs of NCCL and 4 spare are more than 20 processors"),
        (("machine", "processors"), 1 << 17, "machine.processors: 131072 is too large"),
        (("fallback", "max_ctas"), 75, "fallback.max_ctas: 75 is too large; give at most 64"),
        (("fallback", "max_ctas"), 60, r"60 CTAs of NCCL and 4 spare are more than"),
        (("entries", 0, "planned_bytes"), 1 << 40, "planned_bytes 1099511627776 is no size"),
        (("entries", 0, "to_bytes"), 1 << 40, "rows of all-reduce overlap at"),
        (("entries", 0, "from_bytes"), 1 << 40, "to_bytes is not above from_bytes"),
    ],
)
def test_figures_that_cannot_be_are_refused(
    folder: Path, tmp_path: Path, place: tuple[Any, ...], value: int, why: str
) -> None:
    with pytest.raises(hk.SpecError, match=why):
        hk.check_file(_set(folder, tmp_path, place, value))


def test_what_is_left_to_nccl_fits_between_the_rows(tmp_path: Path) -> None:
    made = tmp_path / "made"
    hk.deploy("dgx1_v100", made, collectives="all-reduce", sizes="256K:256M:x1024")
    left = ("groups", 0, "left_to_nccl", 0, "from_bytes")
    first = json.loads((made / MANIFEST).read_text())["groups"][0]["left_to_nccl"][0]["from_bytes"]
    for value, what in ((first - 1, "overlap"), (first + 1, "leave a hole")):
        (tmp_path / what).mkdir()
        with pytest.raises(hk.SpecError, match=f"world: rows of all-reduce {what} at"):
            hk.check_file(_set(made, tmp_path / what, left, value))
    for text, why in (
        ("all-reduce,0,1,ring", "line 1"),
        ("allreduce,0,1048576,ring,simple,-1,1,7\n", "it has lines for 7 ranks, and no group has"),
    ):
        (tmp_path / why[:4]).mkdir()
        copy = _set(made, tmp_path / why[:4], ("fallback", "tuner", "sha256"), _sha(text))
        (copy / "tuner.csv").write_text(text)
        faults = hk.check_file(copy).judgement.faults
        assert any(why in fault.text for fault in faults), faults


def test_a_folder_for_another_version_is_found(folder: Path, tmp_path: Path) -> None:
    found = hk.check_file(_set(folder, tmp_path, ("made_for", "version"), "0.8.0"))
    assert [fault.detail for fault in found.judgement.faults] == [
        "the folder is for mscclpp 0.8.0; its programs are judged for mscclpp 0.9.0"
    ]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _set(folder: Path, tmp_path: Path, place: tuple[Any, ...], value: object) -> Path:
    """Copy a folder with another value in its manifest."""
    copy = changed(folder, tmp_path)
    manifest = json.loads((copy / MANIFEST).read_text())
    at = manifest
    for part in place[:-1]:
        at = at[part]
    at[place[-1]] = value
    return _save(copy, manifest)


def test_a_plan_for_other_ranks_is_found(folder: Path, tmp_path: Path) -> None:
    other = next(each for each in _entries(folder) if each["ranks"] == 2)
    mine = {name: other[name] for name in ("plan", "program")}
    found = hk.check_file(changed(folder, tmp_path, **mine))
    details = [fault.detail for fault in found.judgement.faults]
    assert "ranks is 2 by the plan and its program, the manifest says 4" in details


def _manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    return found


def _entries(folder: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = _manifest(folder)["entries"]
    return entries


@pytest.mark.parametrize("npus", [[[0, 2, 1, 3]], [[3, 1, 2, 0]]], ids=str)
def test_groups_with_other_links_than_the_plan_are_found(
    folder: Path, tmp_path: Path, npus: list[list[int]]
) -> None:
    found = hk.check_file(_set(folder, tmp_path, ("groups", 0, "npus"), npus))
    world = _manifest(folder)["groups"][0]["entries"]
    assert [fault.place for fault in found.judgement.faults] == world
    assert f"and NPUs {npus[0]} of group world have other links" in found.judgement.faults[0].detail


def test_groups_that_a_symmetry_maps_to_the_plans_are_right(folder: Path, tmp_path: Path) -> None:
    for place, npus in enumerate(([[1, 2, 3, 0]], [[3, 2, 1, 0]])):
        (tmp_path / str(place)).mkdir()
        copy = _set(folder, tmp_path / str(place), ("groups", 0, "npus"), npus)
        assert hk.check_file(copy).is_right


def test_predictions_of_another_version_are_not_compared(folder: Path, tmp_path: Path) -> None:
    copy = changed(folder, tmp_path, predicted_ps=1)
    manifest = _manifest(copy) | {"hocket": "0.0.1"}
    _save(copy, manifest)
    found = hk.check_file(copy)
    assert found.is_right
    assert "predicted times are those of hocket 0.0.1: they are not compared" in (
        found.judgement.notes
    )


def test_a_plan_that_does_not_pay_is_found(tmp_path: Path) -> None:
    made = tmp_path / "made"
    hk.deploy("dgx1_v100", made, collectives="all-reduce", sizes="256K:256K")
    assert hk.check_file(made).is_right
    found = hk.check_file(_set(made, tmp_path, ("estimates", "tolerance"), 0.99))
    assert [fault.detail for fault in found.judgement.faults] == [
        "the plan is not as much faster than NCCL as estimates.tolerance says"
    ]


def test_what_is_of_no_use_is_told(folder: Path, tmp_path: Path) -> None:
    copy = changed(folder, tmp_path)
    (copy / "a\nb.txt").write_text("mine")
    found = hk.check_file(copy)
    assert found.is_right
    assert "not of the folder, and of no use there: a\\nb.txt" in found.judgement.notes
    manifest = _manifest(copy)
    left = {"collective": "all-reduce", "from_bytes": 0, "to_bytes": 1, "reason": "it is small"}
    for group in manifest["groups"]:
        group |= {"entries": [], "left_to_nccl": [left]}
    with pytest.raises(hk.SpecError, match=r"entry all-reduce-4-0-1024: no group takes it"):
        hk.check_file(_save(copy, manifest))
    with pytest.raises(hk.SpecError, match=r"groups: \[\] has 0 entries"):
        hk.check_file(_save(copy, manifest | {"groups": []}))
    named = manifest["machine"] | {"topology": "a\nb"}
    with pytest.raises(hk.SpecError, match=r"topology: .a.nb. is not one line of text"):
        hk.check_file(_save(copy, manifest | {"machine": named}))


def test_a_plan_that_is_cut_short_is_found(folder: Path, tmp_path: Path) -> None:
    copy = changed(folder, tmp_path)
    manifest = _manifest(copy)
    plan = manifest["entries"][0]["plan"]
    raw = (copy / plan["file"]).read_bytes()[:-100]
    (copy / plan["file"]).write_bytes(raw)
    plan["sha256"] = hashlib.sha256(raw).hexdigest()
    found = hk.check_file(_save(copy, manifest))
    assert [(fault.code, fault.place) for fault in found.judgement.faults] == [
        ("plan", plan["file"])
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_in_a_folder_is_not_waited_for(folder: Path, tmp_path: Path) -> None:
    copy = changed(folder, tmp_path)
    program = copy / _entries(folder)[0]["program"]["file"]
    program.unlink()
    os.mkfifo(program)
    assert "is a pipe" in hk.check_file(copy).judgement.faults[0].detail
    (copy / MANIFEST).unlink()
    os.mkfifo(copy / MANIFEST)
    with pytest.raises(
        hk.SpecError, match=r"deploy.json: is a pipe, not a file; give the manifest"
    ):
        hk.check_file(copy)


def test_small_sizes_go_in_packets_where_that_is_asked_for(tmp_path: Path) -> None:
    asked = {"sizes": "1K:64K:x64", "collectives": "all-reduce,broadcast", "packets": "4K"}
    made = hk.deploy(RING, tmp_path / "d", process_groups="world", **asked)
    entries = {each.id: each.protocol for each in made.deployment.manifest.entries}
    assert entries == {
        "all-reduce-4-0-1024": "LL",
        "all-reduce-4-0-65536": "Simple",
        "broadcast-4-0-1024": "Simple",  # whose packets a later broadcast could overwrite
        "broadcast-4-0-65536": "Simple",
    }
    assert hk.check_file(tmp_path / "d", options=hk.CheckOptions(run=True)).is_right
    with pytest.raises(hk.SpecError, match=r"packets: NPU 0 is in 3 groups, and MSCCL\+\+ counts"):
        hk.deploy(RING, tmp_path / "e", process_groups="world,dp=2,tp=2", **asked)


TWO_SWITCHES = "clos:1x2x2@25GB/s,1us"
MESH = {"process_groups": "dp=2,tp=2", "collectives": "all-gather", "sizes": "4M:4M"}


def test_groups_that_communicate_at_once_share_links(tmp_path: Path) -> None:
    network = hk.topology.load(TWO_SWITCHES)
    hk.deploy(TWO_SWITCHES, tmp_path / "alone", **MESH)
    hk.deploy(TWO_SWITCHES, tmp_path / "shared", share=True, **MESH)
    assert hk.check_file(tmp_path / "shared").is_right
    alone, shared = (
        {each["id"]: each["predicted_ps"] for each in _manifest(tmp_path / name)["entries"]}
        for name in ("alone", "shared")
    )
    dp, tp = alone
    assert shared[tp] == alone[tp]
    assert shared[dp] > 1.5 * alone[dp]
    rates = hk.Plan.load(tmp_path / "shared" / f"{dp}.parquet").topology.link_bandwidth
    between = (network.link_src >= 4) & (network.link_dst >= 4)
    assert (rates == network.link_bandwidth // (1 + between)).all()
    assert hk.Plan.load(tmp_path / "shared" / f"{tp}.parquet").topology == network


def test_groups_of_which_any_may_communicate_share_nothing(tmp_path: Path) -> None:
    hk.deploy(TWO_SWITCHES, tmp_path / "d", **{**MESH, "process_groups": "any=2"}, share=True)
    names = {hk.Plan.load(file).topology.name for file in (tmp_path / "d").glob("*.parquet")}
    assert names == {hk.topology.load(TWO_SWITCHES).name}


def test_a_plan_for_other_rates_than_the_manifest_says_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "deploy"
    hk.deploy(TWO_SWITCHES, folder, share=True, **MESH)
    manifest = _manifest(folder)
    manifest["estimates"]["shares_links"] = False
    found = hk.check_file(_save(folder, manifest)).judgement.faults
    assert "shared by 2 groups, the manifest says" in found[0].detail
    assert found[1].detail == "the plan's network is not that of the first plan"


def test_plans_that_pass_npus_of_other_groups_are_left_out(tmp_path: Path) -> None:
    groups = {"process_groups": "dp=2,tp=2", "collectives": "all-gather", "sizes": "1M:1M"}
    dp, tp = hk.deploy(RING, tmp_path / "deploy", **groups)
    assert dp.runs == "NCCL"
    assert "passes npu" in dp.why
    assert tp.runs != "trees"  # half of whose data goes the other way round
