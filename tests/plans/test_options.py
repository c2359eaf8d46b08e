"""Which algorithm uses which option, and the words where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from hocket import PlanOptions, SpecError
from hocket.plans.algorithms import algorithms, check_name, check_options, heeded

HEED: dict[str, tuple[Any, set[str], str]] = {
    "seed": (3, {"greedy", "exact", "blind", "auto"}, "greedy, blind, exact and auto"),
    "unwind": ("max", {"greedy", "exact", "blind", "auto"}, "greedy, blind, exact and auto"),
    "trials": (3, {"greedy", "exact", "auto"}, "greedy, exact and auto"),
    "slot": ("1 us", {"exact", "auto"}, "exact and auto"),
    "window": (3, {"exact", "auto"}, "exact and auto"),
    "relays": ("none", {"steiner"}, "steiner"),
}


@pytest.mark.parametrize("option", HEED)
def test_what_an_algorithm_does_not_heed_is_refused(option: str) -> None:
    value, use, words = HEED[option]
    options = PlanOptions(**{option: value})
    names = {each.name for each in algorithms()}
    assert use < names
    for name in names:
        if name in use:
            check_options(name, options)
            assert heeded(name, options) == options
            continue
        with pytest.raises(SpecError) as caught:
            check_options(name, options)
        assert str(caught.value) == f"{option}: {name} does not use it; it is for {words}"
        assert heeded(name, options) == PlanOptions()
        check_options(name, heeded(name, options))


def test_what_all_heed_is_never_refused() -> None:
    options = PlanOptions(chunks=4, latency_model="occupying", routing="ecmp")
    for each in algorithms():
        check_options(each.name, options)
        assert heeded(each.name, options) == options


def test_words_about_an_algorithm_that_there_is_not() -> None:
    check_name("ring")
    with pytest.raises(SpecError, match=r"^there is no algorithm 'rin'; did you mean 'ring'\?$"):
        check_name("rin")
    names = ", ".join(each.name for each in algorithms())
    with pytest.raises(SpecError) as caught:
        check_name("tenis player")
    assert str(caught.value) == f"there is no algorithm 'tenis player'; algorithms are {names}"
