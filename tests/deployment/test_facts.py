"""The verdict of making a group: what all ranks know decides, and alike at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.deployment.folders import row, saved, values

import hocket as hk
from hocket.deployment.facts import Facts, is_on, read_folder, stage_of, verdict
from hocket.deployment.manifest import Deployment
from hocket.deployment.route import Nccl, route

ROWS = [row("all-reduce", 2, 0, 1024), row("all-gather", 4, 0, 1024)]
GROUPS = [
    {"name": "tp", "npus": [[0, 1], [2, 3]], "entries": [ROWS[0]["id"]]},
    {"name": "world", "npus": [[0, 1, 2, 3]], "entries": [ROWS[1]["id"]]},
]


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return saved(tmp_path, values(GROUPS, ROWS))


def facts(*npus: int, **more: Any) -> list[Facts]:
    known = {"manifest": "1", "engine": "mscclpp 0.9.0", "processors": 132, "capability": "9.0"}
    return [Facts(npu, "host", f"GPU-{npu}", **{**known, **more}) for npu in npus]


def test_groups_are_found_by_their_npus(deployment: Deployment) -> None:
    tp = verdict(facts(2, 3), deployment)
    assert (tp.name, tp.ranks, tp.reason) == ("tp", 2, "")
    assert [each.id for each in tp.entries] == GROUPS[0]["entries"]
    assert verdict(facts(0, 1, 2, 3), deployment).name == "world"


def test_packets_are_of_a_process_s_only_group(tmp_path: Path) -> None:
    one = saved(tmp_path, values(GROUPS[:1], ROWS[:1]))
    assert verdict(facts(2, 3), one).packets
    assert not verdict(facts(2, 3, groups=1), one).packets
    both = saved(tmp_path, values(GROUPS, ROWS))
    assert not verdict(facts(2, 3), both).packets


def test_only_mscclpp_sends_packets(tmp_path: Path) -> None:
    small = {**ROWS[0], "protocol": "LL"}
    made = saved(tmp_path, values(GROUPS[:1], [small]))
    for engine, protocol in (
        ("mscclpp 0.9.0", "LL"),
        ("hocket 0.1.0", "Simple"),
        ("cpu", "Simple"),
    ):
        assert verdict(facts(2, 3, engine=engine), made).entries[0].protocol == protocol


@pytest.mark.parametrize(
    ("rank", "change", "why"),
    [
        (1, {"wrong": "no mscclpp"}, "rank 1: no mscclpp"),
        (1, {"manifest": ""}, "rank 1 has no deployed folder"),
        (1, {"manifest": "2"}, "ranks 0 and 1 differ: their folders are not the same"),
        (1, {"engine": "cpu"}, "ranks 0 and 1 differ: their engines are not the same"),
        (
            1,
            {"host": "other"},
            "ranks 0 and 1 differ: plans are for one node, and they are on several",
        ),
        (1, {"capability": "8.0"}, "ranks 0 and 1 differ: their GPUs are not of one kind"),
        (1, {"stage": 4096}, "ranks 0 and 1 differ: HOCKET_STAGE is not the same"),
        (1, {"debug": True}, "ranks 0 and 1 differ: HOCKET_DEBUG is not the same"),
        (1, {"one_gpu": True}, "ranks 0 and 1 differ: HOCKET_TEST_ONE_GPU is not the same"),
        (1, {"device": "GPU-0"}, "two ranks have GPU GPU-0"),
        (1, {"npu": 0}, "two ranks have NPU 0"),
        (
            1,
            {"npu": 2},
            "the folder has no group of NPUs 0, 2; deploy with --process-groups that have it",
        ),
        (
            1,
            {"processors": 27},
            "8 blocks, 16 CTAs of NCCL and 4 spare are more than the 27 processors",
        ),
    ],
)
def test_why_a_group_has_no_plans(
    deployment: Deployment, rank: int, change: dict[str, Any], why: str
) -> None:
    given = facts(0, 1)
    given[rank] = replace(given[rank], **change)
    found = verdict(given, deployment)
    assert found.reason.startswith(why)
    assert not found.entries or found.reason


def test_what_all_ranks_lack(deployment: Deployment) -> None:
    assert verdict(facts(0), deployment).reason == "the group has one rank"
    other = verdict(facts(0, 1, engine="mscclpp 0.8.0"), deployment)
    assert other.reason == "the folder is for mscclpp 0.9.0, and here is mscclpp 0.8.0"
    assert verdict(facts(0, 1, engine="hocket 0.1.0"), deployment).reason == ""
    on_cpu = verdict(facts(0, 1, engine="cpu", processors=0, capability=""), deployment)
    assert on_cpu.reason == ""
    assert verdict(facts(1, 0), deployment).reason == (
        "the folder has no group of NPUs 1, 0; it has them as 0, 1: start ranks in this order"
    )
    shared = [replace(each, device="GPU-0", one_gpu=True) for each in facts(0, 1)]
    assert verdict(shared, deployment).reason == ""


def test_other_gpus_are_refused(tmp_path: Path) -> None:
    made = values(GROUPS, ROWS)
    made["machine"]["gpu"] = "sm90"
    del made["sha256"]
    from hocket.deployment.manifest import digest

    found = verdict(
        facts(0, 1, capability="8.0"), saved(tmp_path, {**made, "sha256": digest(made)})
    )
    assert found.reason == "the folder is for GPUs of capability 9.0, not 8.0"


@pytest.fixture
def nodes(tmp_path: Path) -> Deployment:
    """Two nodes of eight GPUs, with the same bus ids on both."""
    groups = [{"name": "tp", "npus": [[0, 1], [8, 9]], "entries": [ROWS[0]["id"]]}]
    return saved(tmp_path, values(groups, ROWS[:1], npus=16))


def at_bus(*of: tuple[int, int], **more: Any) -> list[Facts]:
    """Return facts of ranks that have a GPU of another number than their rank."""
    return [
        replace(each, bus=f"00000000:{gpu:02X}:00.0", **more)
        for each, (_, gpu) in zip(facts(*(npu for npu, _ in of)), of, strict=True)
    ]


def test_gpus_in_another_order_are_found_by_their_bus_ids(nodes: Deployment) -> None:
    assert verdict(at_bus((2, 0), (3, 1)), nodes).name == "tp"
    assert verdict(at_bus((10, 0), (15, 1)), nodes).name == "tp"
    swapped = verdict(at_bus((0, 1), (1, 0)), nodes)
    assert swapped.reason.startswith("the folder has no group of NPUs 1, 0; it has them as 0, 1")
    other = verdict(at_bus((0, 0), (1, 99)), nodes)
    assert other.reason.startswith("rank 1 has the GPU 00000000:63:00.0, and the machine")
    on_one = [replace(each, device="GPU-0", one_gpu=True) for each in at_bus((0, 7), (1, 7))]
    assert verdict(on_one, nodes).name == "tp"
    odd = [replace(each, bus="none") for each in facts(0, 1)]
    assert verdict(odd, nodes).reason.startswith("rank 0 has the GPU none")


def test_more_gpus_than_the_folder_has(deployment: Deployment) -> None:
    assert verdict(facts(*range(12)), deployment).reason == (
        "rank 8 has NPU 8, and the folder is for a machine of 8"
    )


def test_plans_for_switches_need_multicast_at_every_gpu(tmp_path: Path) -> None:
    rows = [row("all-reduce", 2, 0, 1024, switches=True), row("all-gather", 2, 0, 1024)]
    group = {"name": "tp", "npus": [[0, 1]], "entries": [each["id"] for each in rows]}
    made = saved(tmp_path, values([group], rows))

    def taken(given: list[Facts], kind: str) -> str:
        found = route(kind, "sum", "float32", 512, 0, verdict(given, made), captured=False)
        return found.reason if isinstance(found, Nccl) else found.collective

    both = facts(0, 1, multicast=True)
    one = [both[0], replace(both[1], multicast=False)]
    assert taken(both, "all-reduce") == "all-reduce"
    assert taken(one, "all-reduce") == (
        "a plan for switches, and a GPU of the group has no multicast memory"
    )
    assert taken(one, "all-gather") == "all-gather"
    assert taken(facts(0, 1, engine="cpu"), "all-reduce") == "all-reduce"


def test_facts_pass_through_a_store() -> None:
    for each in facts(0, 1, wrong='it\'s "so"\nand ü'):
        assert Facts.of_text(each.to_text().encode()) == each


def test_a_folder_with_a_missing_file_is_wrong(tmp_path: Path) -> None:
    saved(tmp_path, values(GROUPS, ROWS))
    found, manifest, wrong = read_folder(str(tmp_path))
    assert (found, manifest) == (None, "")
    assert "a.json" in wrong
    assert read_folder(None) == (None, "", "")


@pytest.mark.parametrize("text", ["1", "5GiB", "much", "-1"])
def test_a_stage_of_no_size_is_refused(text: str) -> None:
    with pytest.raises(hk.SpecError, match="HOCKET_STAGE"):
        stage_of(text)


def test_a_stage_is_a_size() -> None:
    assert (stage_of(None), stage_of("1MiB")) == (64 << 20, 1 << 20)


def test_a_setting_is_on_or_off() -> None:
    assert [is_on("HOCKET_DEBUG", text) for text in (None, "", "0", "1")] == [False] * 3 + [True]
    with pytest.raises(hk.SpecError, match="HOCKET_DEBUG: 'true' is neither 0 nor 1; give 1, or"):
        is_on("HOCKET_DEBUG", "true")
