"""Fits: constants that times were made with are found again, and what data cannot tell is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from hocket.profiles.cost_model import CONSTANTS, cells_of, times
from hocket.profiles.fit import FitOptions, fit
from hocket.profiles.hardware import Hardware
from hocket.profiles.measurement import MeasuredSeries, Measurement
from hocket.profiles.profile import Profile, load_profile, profile_names, profile_of
from hocket.profiles.section import with_profile
from hocket.topology import machines
from hocket.topology.text import from_file

BOX = Hardware(300e9)
SIZES = [1 << power for power in range(10, 33)]


def made(
    constants: dict[str, float],
    launch: float,
    npus: tuple[int, ...] = (2, 4, 8),
    noise: float = 0.0,
) -> MeasuredSeries:
    """Give times that follow the law exactly, or up to some noise."""
    draw = np.random.default_rng(7)
    rows = [
        Measurement(kind, count, 1, size, 1.0)
        for kind in ("all-reduce", "all-gather")
        for count in npus
        for size in SIZES
    ]
    took = times(cells_of(rows, BOX), constants, np.full(len(rows), launch)) * 1e-6
    took *= np.exp(draw.normal(0, noise, len(rows)))
    return MeasuredSeries(
        "made",
        tuple(
            Measurement(row.kind, row.npus, 1, row.size, float(time))
            for row, time in zip(rows, took, strict=True)
        ),
    )


def test_constants_are_found_again() -> None:
    truth = {name: each.prior for name, each in CONSTANTS.items()}
    truth |= {
        "ll.step": 1.4,
        "simple.efficiency": 0.61,
        "ll128.efficiency": 0.4,
        "simple.fixed": 70.0,
    }
    found = fit([(made(truth, 9.0, noise=0.01), BOX)], FitOptions(width=3.0))
    assert found.launch["made"].value == pytest.approx(9.0, rel=0.2)
    assert found.held.sum() == pytest.approx(len(found.rows) / 5, rel=0.2)
    assert np.median(np.abs(found.errors[found.held])) < 0.015
    for name in ("simple.efficiency", "ll128.efficiency"):
        assert found.constants[name].is_seen
        assert found.values[name] == pytest.approx(truth[name], rel=0.05)
    inside = [
        found.constants[name].low <= truth[name] <= found.constants[name].high
        for name in ("simple.efficiency", "ll128.efficiency", "simple.fixed", "ll.step")
    ]
    assert sum(inside) >= 3


def test_what_no_time_tells_stays_at_its_prior() -> None:
    truth = {name: each.prior for name, each in CONSTANTS.items()}
    found = fit([(made(truth, 9.0), BOX)])
    for name in ("nvls.efficiency", "p2p.fixed"):
        assert not found.constants[name].is_seen
        assert found.values[name] == pytest.approx(CONSTANTS[name].prior, rel=1e-3)
    assert not any("hop" in name for name in found.constants)


def test_one_count_of_npus_does_not_tell_steps_from_fixed_costs() -> None:
    truth = {name: each.prior for name, each in CONSTANTS.items()}
    rows = [row for row in made(truth, 1.0, npus=(8,)) if row.kind == "all-reduce"]
    found = fit([(MeasuredSeries("made", tuple(rows)), BOX)], FitOptions(width=4.0))
    pairs = {frozenset(pair) for pair in found.alike}
    unseen = {name for name, each in found.constants.items() if not each.is_seen}
    assert frozenset(("simple.fixed", "simple.step")) in pairs or "simple.step" in unseen


def test_one_spike_moves_nothing() -> None:
    truth = {name: each.prior for name, each in CONSTANTS.items()}
    clean = made(truth, 9.0)
    rows = list(clean.rows)
    at = next(i for i, row in enumerate(rows) if row.size == 1 << 28)
    rows[at] = Measurement(rows[at].kind, rows[at].npus, 1, rows[at].size, rows[at].seconds * 5)
    one, other = fit([(clean, BOX)]), fit([(MeasuredSeries("made", tuple(rows)), BOX)])
    share = other.values["simple.efficiency"] / one.values["simple.efficiency"]
    assert share == pytest.approx(1, abs=0.03)


def test_too_few_sizes_are_refused() -> None:
    rows = tuple(Measurement("all-reduce", 8, 1, size, 1e-5) for size in (8, 16, 32))
    with pytest.raises(
        hk.SpecError, match="few: has 3 sizes, too few to fit the law; measure 4 to 8"
    ):
        fit([(MeasuredSeries("few", rows), BOX)])


def test_a_profile_comes_back_from_its_text(tmp_path: Path) -> None:
    truth = {name: each.prior for name, each in CONSTANTS.items()}
    profile = Profile.of_fit("mine", fit([(made(truth, 9.0), BOX)]), ('from "here"',))
    text = with_profile(
        "builder: ring\nnpus: 4\nbandwidth: 1 GB/s\nlatency: 1 us\n", profile.as_yaml()
    )

    path = tmp_path / "t.yml"
    path.write_text(text)
    again = profile_of(from_file(path))
    assert again.values == pytest.approx(profile.values, rel=1e-3)
    assert dict(again.launch) == pytest.approx(dict(profile.launch), rel=1e-3)
    assert {name: each.is_seen for name, each in again.constants.items()} == {
        name: each.is_seen for name, each in profile.constants.items()
    }


def test_a_new_section_takes_the_place_of_the_old() -> None:
    old = "name: x\nprofile:\n  launch: {mpi: 3}\n  # of old\n# new\nbuilder: ring\n"
    assert with_profile(old, "profile: a100\n") == "name: x\nbuilder: ring\nprofile: a100\n"
    assert with_profile("name: x\nprofile: a100\nnpus: 4\n", "profile: h100\n") == (
        "name: x\nnpus: 4\nprofile: h100\n"
    )


@pytest.mark.parametrize("name", profile_names())
def test_shipped_profiles_are_whole(name: str) -> None:
    profile = load_profile(name)
    assert profile.launch
    assert profile.source
    for key, each in profile.constants.items():
        assert each.value > 0
        assert not each.is_seen or each.low <= each.value <= each.high
        assert CONSTANTS[key].unit or each.value < 1.5


def test_every_shipped_machine_has_a_known_profile_or_none() -> None:
    with_one = 0
    for name in machines.names():
        spec = from_file(machines.path(name))
        if spec.profile is not None:
            assert profile_of(spec).constants
            with_one += 1
    assert with_one >= 13
