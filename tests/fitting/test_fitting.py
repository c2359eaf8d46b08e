"""Constants are found from times, written and read, and without SciPy the extra is named."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.stats import kendalltau

import hocket as hk
from hocket.fitting.constants import Constant, Fitted, values_of
from hocket.fitting.errors import rank_correlation
from hocket.fitting.solve import solve

LAW = {"fixed": Constant(5.0, 1.0, "us", "fixed cost"), "rate": Constant(1.0, 1.0, "", "of a byte")}
SIZES = np.array([1.0, 10.0, 100.0, 1000.0])


def off(point: np.ndarray) -> np.ndarray:
    """A law of two constants against times that 8 and 2 give."""
    fixed, rate = np.exp(point)
    return np.log((fixed + rate * SIZES) / (8.0 + 2.0 * SIZES))


def test_constants_are_found_with_their_intervals() -> None:
    prior = np.log([each.prior for each in LAW.values()])
    found = solve(off, prior, np.ones(2), steps=50)
    for each, truth in zip(found.constants, (8.0, 2.0), strict=True):
        assert each.value == pytest.approx(truth, rel=0.01)
        assert each.low < truth < each.high
        assert each.is_seen
    assert np.exp(found.point).tolist() == [each.value for each in found.constants]


def test_what_no_data_tells_is_its_prior() -> None:
    found = solve(lambda point: off(point) * 0, np.log([5.0, 1.0]), np.ones(2), steps=50)
    assert [each.value for each in found.constants] == pytest.approx([5.0, 1.0])
    assert not any(each.is_seen for each in found.constants)
    assert values_of(LAW, {"rate": Fitted(3.0)}) == {"fixed": 5.0, "rate": 3.0}


@pytest.mark.parametrize("each", [Fitted(0.5, 0.25, 1.0), Fitted(2.5e6, 2e6, 3e6)])
def test_what_is_written_is_read(each: Fitted) -> None:
    assert Fitted.read([float(part) for part in each.written()[1:-1].split(",")]) == each
    unseen = Fitted.read([each.value])
    assert (unseen.value, unseen.is_seen) == (each.value, False)
    assert unseen.written().count(",") == 0


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(hk.SpecError, match=r"^constants are fitted by SciPy.*hocket\[fit\]'$"):
        solve(off, np.zeros(2), np.ones(2), steps=5)


def test_ranks_are_compared_as_others_do() -> None:
    draw = np.random.default_rng(3)
    for count in (2, 5, 40):
        one, other = draw.integers(0, 9, count) * 1.0, draw.integers(0, 9, count) * 1.0
        expected = kendalltau(one, other).statistic
        assert rank_correlation(one, other) == pytest.approx(expected, nan_ok=True)
    assert np.isnan(rank_correlation(np.ones(1), np.ones(1)))
