"""Options of commands that classes of the library declare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from hocket.cli.command import Call, Option, Panel, UsageError
from hocket.errors import SpecError


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How fast.

    Attributes
    ----------
    factor
        Factor of the speed.
    is_safe
        Check everything.
    names
        A name. Can be repeated.
    """

    factor: int = 2
    is_safe: bool = True
    names: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Group:
    """Options of a command's own, and some of the library."""

    speed: Annotated[Speed, Panel("Speed", rare=["factor"], but=["names"])]
    given: Annotated[dict[str, Any], Panel("Names", only=["names", "factor"], of=Speed)]
    label: Annotated[str, Option("--label", help="A label.")] = "none"


CALLED: list[Group] = []


def command(*, group: Group) -> None:
    """Do it."""
    CALLED.append(group)


def called(*words: str) -> Group:
    """Call the command, and return what it is given."""
    call = Call("hocket command", f"{__name__}:command")
    call(call.values(words))
    return CALLED.pop()


def test_a_class_makes_options_and_gets_what_is_given() -> None:
    assert called() == Group(speed=Speed(), given={})
    found = called("--factor", "3", "--no-is-safe", "--name", "a", "--name", "b")
    assert found.speed == Speed(factor=3, is_safe=False)
    assert found.given == {"names": ["a", "b"], "factor": 3}, "an option of two groups is one"


def test_panels_say_how_options_are_shown() -> None:
    call = Call("hocket command", f"{__name__}:command")
    found = {each.field: each for each in call.params}
    assert found["factor"].names == ("--factor",)
    assert found["is_safe"].names == ("--is-safe/--no-is-safe",)
    assert (found["factor"].panel, found["names"].panel) == ("Speed", "Names")
    assert isinstance(found["factor"].told, Option)
    assert found["factor"].told.rare
    assert found["factor"].told.help == "Factor of the speed."
    assert found["factor"].default == 2


def test_what_is_no_value_of_an_option_is_refused() -> None:
    with pytest.raises(SpecError, match="--factor: 'x' is not a whole number"):
        called("--factor", "x")
    with pytest.raises(UsageError, match="--names"):
        called("--names", "a")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--chunks", "٣"),
        ("--npus", "٠,١"),
        ("--groups", "٢"),
        ("--root", "١"),
        ("--seed", "٣"),
        ("--size", "٣MB"),
        ("--topology", "ring:٤@25GB/s,1us"),
    ],
)
def test_digits_are_those_from_0_to_9(hocket: Any, option: str, value: str) -> None:
    given = {"--topology": "ring:4@25GB/s,1us", "--size": "3MB"} | {option: value}
    kind = "broadcast" if option == "--root" else "all-gather"
    done = hocket("plan", kind, *(word for pair in given.items() for word in pair))
    assert (done.code, done.out) == (2, "")
    assert option in done.err
