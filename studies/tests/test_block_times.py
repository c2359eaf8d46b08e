"""What thread blocks take: closed forms, where they are stuck, and constants that are found again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from hocket.profiles.block_constants import BLOCK_CONSTANTS
from hocket.profiles.profile import Profile, load_profile, profile_of
from hocket.profiles.section import with_profile
from hocket.topology.text import from_file
from hocket_studies.block_schedules import (
    BlockSchedule,
    pairs_all_gather,
    pairs_all_reduce,
    ring_all_gather,
)
from hocket_studies.block_times import block_times

VALUES = {name: each.prior for name, each in BLOCK_CONSTANTS.items()}
GIB = 1 << 30


def times(schedule: BlockSchedule, protocol: str, *sizes: int, **changes: float) -> list[float]:
    values = VALUES | {name.replace("__", "."): value for name, value in changes.items()}
    return list(block_times(schedule, sizes, protocol, values))


def test_at_most_twelve_constants() -> None:
    assert len(BLOCK_CONSTANTS) <= 12


@pytest.mark.parametrize("protocol", ["ll", "ll128", "simple"])
def test_a_lone_channel_moves_at_its_rate(protocol: str) -> None:
    """On one channel a block receives and sends in turn, so every tile takes both."""
    first, second = times(ring_all_gather(8), protocol, GIB, 2 * GIB)
    assert second - first == pytest.approx(7 / 8 * GIB / VALUES[f"{protocol}.rate"] * 1e-3)


@pytest.mark.parametrize("protocol", ["ll", "ll128", "simple"])
def test_small_data_takes_fixed_cost_and_hops(protocol: str) -> None:
    fixed = VALUES["fixed"] + (VALUES["ll128.fixed"] if protocol == "ll128" else 0.0)
    hop = VALUES[f"{protocol}.latency"]
    assert times(pairs_all_gather(8), protocol, 256)[0] == pytest.approx(fixed + hop, rel=0.01)
    assert times(ring_all_gather(8), protocol, 256)[0] == pytest.approx(fixed + 7 * hop, rel=0.03)
    # Sums wait for what has come, and the second phase for all sums.
    waits = 2 * VALUES["sync"]
    wanted = fixed + 2 * hop + waits
    assert times(pairs_all_reduce(8), protocol, 256)[0] == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("instances", [1, 2, 4])
def test_instances_add_until_the_link_is_full(instances: int) -> None:
    alone = times(ring_all_gather(8), "ll", GIB)[0]
    several = times(ring_all_gather(8, 1, instances), "ll", instances * GIB)[0]
    assert several == pytest.approx(alone)
    narrow = times(ring_all_gather(8, 1, 16), "ll", GIB, link=1.0)[0]
    # Half of an LL line is data, and while all blocks send they share the link, sixteen at once.
    sending = 7 / 8 * GIB / 0.5 * 1e-3
    receiving = 7 / 8 * GIB / 16 * 0.5 / VALUES["ll.rate"] * 1e-3
    assert narrow == pytest.approx(sending + receiving, rel=1e-3)


def test_channels_do_not_add() -> None:
    """Blocks run in program order: one that waits for chunks of its round does not begin the next."""
    paces = [
        float(np.diff(times(ring_all_gather(8, channels), "simple", GIB, 2 * GIB, link=1e6))[0])
        for channels in (1, 2, 4, 8)
    ]
    gains = [paces[0] / pace for pace in paces]
    assert gains[3] == pytest.approx(7, rel=0.01)
    assert 1 < gains[1] < 1.6
    assert gains[1] < gains[2] < 2.2


@pytest.mark.parametrize(("instances", "last_mib"), [(1, 32), (2, 64), (4, 128), (8, 256)])
def test_all_pairs_hang_where_the_published_sweep_ends(instances: int, last_mib: int) -> None:
    """Both of a pair send eight chunks before they receive; Simple has slots for two transfers only."""
    schedule = pairs_all_reduce(8, instances)
    assert times(schedule, "simple", last_mib << 20)[0] > 0
    with pytest.raises(hk.InfeasibleError, match=r"waits at step 0 for ever.*send less before"):
        times(schedule, "simple", last_mib << 21)
    for protocol in ("ll", "ll128"):
        assert times(schedule, protocol, last_mib << 21)[0] > 0


def test_a_profile_keeps_constants_of_blocks(tmp_path: Path) -> None:
    profile = load_profile("mi300x")
    text = "builder: ring\nnpus: 4\nbandwidth: 1 GB/s\nlatency: 1 us\n"
    path = tmp_path / "t.yml"
    path.write_text(with_profile(text, profile.as_yaml()))
    again = profile_of(from_file(path))
    assert again.block_values == profile.block_values
    assert set(again.blocks) == set(BLOCK_CONSTANTS)
    with pytest.raises(hk.SpecError, match="blocks: profile 'a100' states none; take one that"):
        _ = load_profile("a100").block_values


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ll.rat: [2]", "blocks.ll.rat: there is no such constant; did you mean 'll.rate'"),
        ("ll.rate: [2, 3, 4]", "is not a value with its interval; give .value, low, high."),
        ("ll.rate: [-2]", "ll.rate"),
    ],
)
def test_bad_constants_of_blocks(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "t.yml"
    head = "builder: ring\nnpus: 4\nbandwidth: 1 GB/s\nlatency: 1 us\n"
    path.write_text(head + f"profile:\n  blocks:\n    {line}\n")
    with pytest.raises(hk.SpecError, match=message):
        profile_of(from_file(path))


def test_bad_input() -> None:
    with pytest.raises(hk.SpecError, match="protocol: there is no 'LL'"):
        times(ring_all_gather(8), "LL", 1024)
    with pytest.raises(hk.SpecError, match="chunks: is out of range"):
        times(ring_all_gather(8), "ll", 0)
    with pytest.raises(hk.SpecError, match="link: is out of range"):
        times(ring_all_gather(8), "ll", 1024, link=0.0)
    assert isinstance(load_profile("mi300x"), Profile)
