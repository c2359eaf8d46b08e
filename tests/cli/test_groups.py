"""``--groups`` and ``groups:``: which NPUs form a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Hocket

STAR = """\
name: odd
npus: [a0, a1, a2, b0, b1, b2]
switches: [s]
links:
""" + "".join(
    f'  - [{npu}, s, "25 GB/s", "1 us"]\n' for npu in ("a0", "a1", "a2", "b0", "b1", "b2")
)


@pytest.fixture
def odd(folder: Path) -> str:
    """A network without dimensions."""
    (folder / "odd.yml").write_text(STAR)
    return "odd.yml"


@pytest.mark.parametrize("groups", ["3", "0-2 3-5", "a0,a1,a2 b0,b1,b2", "x=a0,a1,a2;y=b0,b1,b2"])
def test_hierarchical_runs_where_nodes_are_named(hocket: Hocket, odd: str, groups: str) -> None:
    task = ("all-reduce", "-t", odd, "-s", "1MB", "-a", "hierarchical", "--groups", groups)
    for command in ("plan", "compare"):
        result = hocket(command, *task)
        assert (result.code, result.err) == (0, "")
    spread = ("-t", odd, "-a", "multi-ring", "--groups", groups, "--json")
    assert hocket("train", "alexnet", *spread).code == 0
    advice = hocket("topology", "advise", "--failures", *task, "--json").json()
    assert advice["algorithm"] == "hierarchical"


def test_without_nodes_the_option_is_named(hocket: Hocket, odd: str) -> None:
    result = hocket("plan", "all-reduce", "-t", odd, "-s", "1MB", "-a", "hierarchical")
    assert result.code == 2
    assert '(--groups "0-3 4-7")' in result.err
    result = hocket(
        "plan", "all-reduce", "-t", odd, "-s", "1MB", "-a", "hierarchical", "--groups", "0-3 4,5"
    )
    assert result.code == 2
    assert (
        "the first has 4 NPUs, node 1 2; give all as many (--groups), or use multi-ring"
        in result.err
    )


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ("a0,a1,a2 b0,b1,bx", "there is no NPU 'bx'; `hocket"),
        ("a0,a1,a2 b0,b1,s", "'s' is a switch; name NPUs only"),
        ("a0,a1,a2 b0,b1", '"b2" is in none'),
        ("4", "4 does not divide the 6 NPUs of 'odd'"),
        (";", "there is none"),
    ],
)
def test_groups_that_are_none(hocket: Hocket, odd: str, groups: str, why: str) -> None:
    result = hocket("compare", "all-reduce", "-t", odd, "-s", "1MB", "--groups", groups)
    assert result.code == 2
    assert result.err.startswith("hocket: odd.yml: --groups")
    assert why in result.err


@pytest.mark.parametrize(
    ("more", "line", "why"),
    [
        (
            "groups:\n  - [a0, a1, a2]\n  - [b0, b1, bx]\n",
            13,
            "groups[1]: there is no NPU 'bx'",
        ),
        ("groups:\n  - [a0, a1, a2]\n  - [b0, b1, b1]\n", 13, 'group 1: has "b1"'),
        ("groups:\n  - [a0, a1, a2]\n  - [b0, b1, s]\n", 13, "groups[1]: 's' is a switch"),
        ("groups:\n  - [a0, a1, a2]\n  - [b0, b1]\n", 11, 'groups: "b2" is in none'),
        ("failed:\n  nodes:\n    - a0\n    - q\n", 14, 'failed: no device is called "q"'),
        (
            "failed:\n  links:\n    - [a0, s]\n    - [a1, a2]\n",
            14,
            'failed: there is no link "a1" -> "a2"',
        ),
    ],
)
def test_a_file_says_its_line(hocket: Hocket, odd: str, more: str, line: int, why: str) -> None:
    with Path(odd).open("a") as file:
        file.write(more)
    result = hocket("topology", "show", odd)
    assert result.code == 2
    assert result.err.startswith(f"hocket: odd.yml, line {line}: {why}")
