"""Constants of classes: found again from times that they made, and errors that hold for other owners."""

from __future__ import annotations

import numpy as np
import pytest

from hocket.profiles.cost_model import CONSTANTS, cells_of, times
from hocket.profiles.expected import OTHER, ExpectedError
from hocket.profiles.hardware import Hardware
from hocket.profiles.measurement import MeasuredSeries, Measurement
from hocket_studies.machines_catalogue import MeasuredSet, load_sets
from hocket_studies.machines_composed import (
    LeftOut,
    _Problem,
    class_files,
    compose,
    coverage,
    evidence_of,
    expected_errors,
    fitted_rows,
    leave_owners_out,
)

ON = Hardware(300e9, 200e9)
SIZES = [1 << at for at in range(12, 33, 2)]


def made(
    owner: str, values: dict[str, float], launch: float, box: str = "a100"
) -> tuple[MeasuredSet, MeasuredSeries]:
    """Make the sets of an owner by the law."""
    rows = [
        Measurement(kind, 8 * nodes, nodes, size, 1.0)
        for kind in ("all-reduce", "all-gather", "all-to-all")
        for nodes in (1, 2, 4)
        for size in SIZES
    ]
    took = times(cells_of(rows, ON), values, np.full(len(rows), launch)) * 1e-6
    measured = [
        Measurement(row.kind, row.npus, row.nodes, row.size, float(time))
        for row, time in zip(rows, took, strict=True)
    ]
    name = f"set of {owner}"
    return MeasuredSet(name, owner, box, "ib", ON, "mpi"), MeasuredSeries(name, tuple(measured))


def test_times_that_classes_made_are_predicted_for_an_owner_who_is_new() -> None:
    values = {name: each.prior * 1.1 for name, each in CONSTANTS.items()}
    sets = [made(owner, values, 15.0) for owner in ("a", "b", "c", "d")]
    found = compose(sets[:3])
    each, series = sets[3]
    took = found.predict(each, fitted_rows(each, series))
    errors = took / [row.seconds for row in series] - 1
    assert np.abs(errors).max() < 0.1
    assert np.median(np.abs(errors)) < 0.02


def test_slopes_are_those_of_the_times() -> None:
    values = {name: each.prior for name, each in CONSTANTS.items()}
    problem = _Problem([made("a", values, 15.0), made("b", values, 20.0, box="h100")])
    rng = np.random.default_rng(3)
    point = np.array(problem.prior) + 0.1 * rng.standard_normal(len(problem.prior))
    slopes = problem.slopes(point)
    for at in range(0, len(point), 5):
        step = np.zeros(len(point))
        step[at] = 1e-4
        wanted = (problem.off(point + step) - problem.off(point - step)) / 2e-4
        assert slopes[:, at] == pytest.approx(wanted, abs=2e-3)


def test_classes_that_nobody_measured_have_constants_of_any() -> None:
    values = {name: each.prior for name, each in CONSTANTS.items()}
    found = compose([made("a", values, 15.0)])
    any_box = {name: each.value for name, each in found.boxes["any"].items()}
    seen = found.values("b200", "efa9")
    assert {name: seen[name] for name in any_box} == any_box
    ranges = [(each.low, each.high) for each in found.boxes["any"].values()]
    own = [(each.low, each.high) for each in found.boxes["a100"].values()]
    wider = [high / low for low, high in ranges]
    assert np.median(wider) >= np.median([high / low for low, high in own])


def left(owner: str, errors: list[float], of: str = OTHER) -> list[LeftOut]:
    measured = MeasuredSet(owner, owner, "a100", "ib", ON, "mpi")
    row = Measurement("all-reduce", 8, 1, 1 << 30, 1.0)
    return [LeftOut(measured, row, 1.0 + error, of) for error in errors]


def test_each_owner_weighs_the_same() -> None:
    many = left("a", [0.1] * 1000) + left("b", [1 / 1.2 - 1] * 10) + left("c", [0.3] * 10)
    (found,) = expected_errors(many)
    assert (found.owners, found.times) == (3, 1020)
    assert found.median == pytest.approx(1.2, abs=1e-3)
    assert found.factor == pytest.approx(1.3, abs=1e-3)


def test_an_error_that_is_stated_comes_from_other_owners() -> None:
    many = [each for at in range(6) for each in left(f"owner {at}", [0.01 * at] * 5)]
    far = left("far", [0.5] * 5)
    held = coverage([*many, *far])
    ((right, total),) = held.values()
    assert (right, total) == (30, 35)


def test_few_owners_state_more_than_many() -> None:
    rng = np.random.default_rng(5)

    def stated(count: int) -> ExpectedError:
        (found,) = expected_errors(
            [
                each
                for at in range(count)
                for each in left(f"owner {at}", np.abs(rng.standard_normal(500)).tolist())
            ]
        )
        return found

    assert stated(6).factor > stated(12).factor > stated(60).factor


def test_sets_state_who_published_them_and_what_they_are() -> None:
    sets = [each for each, _ in load_sets()]
    assert len({each.name for each in sets}) == len(sets)
    assert all(each.owner and each.box for each in sets)


@pytest.mark.slow
def test_shipped_sets_are_predicted_without_their_owners() -> None:
    """Of the sets that are in this repository alone: the median is loose, the files whole."""
    sets = load_sets()
    found = compose(sets)
    times_left = leave_owners_out(sets, found)
    big = [each.factor for each in times_left if each.row.size >= 1 << 20 and each.row.nodes == 1]
    assert np.median(big) < 1.12
    held = coverage(times_left)
    right, total = (sum(each[at] for each in held.values()) for at in (0, 1))
    assert 0.8 < right / total <= 1
    files = class_files(sets, found, expected_errors(times_left))
    known = evidence_of(sets)
    assert {f"boxes/{box}.yml" for box in known.boxes} <= set(files)
    assert {f"fabrics/{fabric}.yml" for fabric in known.fabrics} <= set(files)
