"""The words of the refusals that every room gives: here alone; elsewhere tests look at the parts."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hocket import SpecError
from hocket._checks import check_name, one_of, share_of_peak, whole

UP_TO_NINE = "; give a whole number from 1 to 9"
SHARE = "; give a number above 0 and up to 1"

REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "whole, small": (lambda: whole("f", 0, 1, 9), f"0 is too small{UP_TO_NINE}"),
    "whole, below 0": (lambda: whole("f", -1, 1, 9), f"-1 is too small{UP_TO_NINE}"),
    "whole, large": (lambda: whole("f", 10, 1, 9), f"10 is too large{UP_TO_NINE}"),
    "whole, a fraction": (lambda: whole("f", 1.5, 1, 9), f"1.5 is not a whole number{UP_TO_NINE}"),
    "whole, a float": (lambda: whole("f", 4.0, 1, 9), f"4.0 is not a whole number{UP_TO_NINE}"),
    "whole, a text": (lambda: whole("f", "2", 1, 9), f"'2' is not a whole number{UP_TO_NINE}"),
    "whole, nothing": (lambda: whole("f", None, 1, 9), f"None is not a whole number{UP_TO_NINE}"),
    "whole, a truth": (lambda: whole("f", True, 1, 9), f"true is not a whole number{UP_TO_NINE}"),
    "one of": (lambda: one_of("f", "c", ["a", "b"]), "there is no 'c'; use a or b"),
    "share, zero": (lambda: share_of_peak("f", 0), f"0 is not valid{SHARE}, such as 0.5"),
    "share, not a number": (
        lambda: share_of_peak("f", float("nan")),
        f"nan is not valid{SHARE}, such as 0.5",
    ),
    "share, above": (lambda: share_of_peak("f", 1.1), f"1.1 is not valid{SHARE}, such as 0.5"),
    "share, per cent": (
        lambda: share_of_peak("f", 45),
        f"45 is not valid{SHARE}; did you mean 0.45?",
    ),
    "share, far above": (lambda: share_of_peak("f", 101), f"101 is not valid{SHARE}, such as 0.5"),
    "share, a text": (lambda: share_of_peak("f", "x"), f"'x' is not a number{SHARE}, such as 0.5"),
    "share, a truth": (
        lambda: share_of_peak("f", True),
        f"true is not a number{SHARE}, such as 0.5",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_words_of_a_refusal(case: str) -> None:
    check, words = REFUSALS[case]
    with pytest.raises(SpecError) as caught:
        check()
    assert str(caught.value) == f"f: {words}"
    assert caught.value.field == "f"
    assert caught.value.remedy == words.partition("; ")[2]


@pytest.mark.parametrize("name", ["", 3, None, "a\nb", "\x1b[31m", "a" * 2001])
def test_words_about_a_name(name: object) -> None:
    with pytest.raises(SpecError, match=r"^name: .* is not a name; give up to 2000 letters$"):
        check_name(name)


def test_what_is_right_passes() -> None:
    assert [whole("f", value, 1, 9) for value in (1, 9, np.uint8(3))] == [1, 9, 3]
    for share in (1e-9, 0.5, 1, Fraction(1, 3)):
        share_of_peak("f", share)
    one_of("f", "b", ["a", "b"])
    check_name("é" * 2000)
