"""Algbw over size: crossovers, and what the picture says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket.plot.compare import draw_comparison
from hocket.plot.sizes import SizeRow, crossovers, draw_sizes
from hocket.plot.style import picture
from hocket.units import format_size, format_time_ps


def rows(**lines: dict[int, float]) -> list[SizeRow]:
    return [(name, size, rate, 1e12) for name, line in lines.items() for size, rate in line.items()]


def test_lines_cross_where_they_meet() -> None:
    # time = a + size / b: the tree has the smaller a, the ring the larger b.
    sizes = [2**k for k in range(10, 28)]
    tree = {size: size / (1e-5 + size / 10e9) for size in sizes}
    ring = {size: size / (3e-5 + size / 20e9) for size in sizes}
    (found,) = crossovers(rows(tree=tree, ring=ring))
    assert (found.before, found.after) == ("tree", "ring")
    assert found.size == pytest.approx(2e-5 / (1 / 10e9 - 1 / 20e9), rel=0.02)


def test_the_fastest_stays_where_others_are_equal() -> None:
    assert crossovers(rows(a={1: 5.0, 2: 6.0, 4: 7.0}, b={1: 4.0, 2: 6.0, 4: 7.0})) == []
    assert crossovers(rows(a={1: 5.0})) == []


def test_a_line_that_begins_later_is_faster_from_half_way() -> None:
    (found,) = crossovers(rows(a={1024: 1e9, 4096: 1e9}, b={4096: 2e9}))
    assert (found.size, found.before, found.after) == (2048, "a", "b")


def test_the_picture_has_all_of_it(drawn: Any, tmp_path: Path) -> None:
    given = rows(
        ring={2**k: 2.0**k * 1e3 for k in range(10, 28)},
        tree={2**k: 2.0**19 * 1e3 for k in range(10, 28)},
    )
    draw_sizes(given, tmp_path / "a.png", title="all-reduce among 8 NPUs")
    for words in ("ring", "tree", "bound", "1: ring is faster than tree from 512 KiB", "128 MiB"):
        assert words in drawn.words
    assert drawn.overlaps() == []
    assert drawn.outside() == []


def test_a_crossover_between_sizes_is_given_about(drawn: Any, tmp_path: Path) -> None:
    given = rows(a={1 << 10: 4e9, 1 << 20: 1e9}, b={1 << 10: 1e9, 1 << 20: 4e9})
    draw_sizes(given, tmp_path / "a.png")
    assert "1: b is faster than a from about 33 kB" in drawn.words


def test_a_front_names_the_sizes_of_its_table(drawn: Any, tmp_path: Path) -> None:
    """Sizes are close together around a crossover, where none lies on another."""
    mesh = hk.topology.mesh(4, 4, bandwidth="25 GB/s", latency="1 us")
    names = ["ring", "multitree", "direct", "halving-doubling", "ring-2d"]
    found = hk.pareto("all-reduce", mesh, sizes="1K:64M:x8", algorithms=names)
    found.plot(tmp_path / "a.png")
    assert len(found.crossovers) > 1
    for number, each in enumerate(found.crossovers, 1):
        (row,) = [row for row in found if row.first.size == each.size]
        size = format_size(row.first.size)
        assert f"{number}: {each.after} is faster than {each.before} from {size}\n" in (
            drawn.words + "\n"
        )
    assert drawn.overlaps() == []
    assert drawn.outside() == []


@pytest.mark.parametrize("low", [3e-7, 950.0, 7e6])
@pytest.mark.parametrize("wide", [1.2, 30.0, 2e4, 1e9])
def test_numbers_of_logarithmic_axes(low: float, wide: float, drawn: Any, tmp_path: Path) -> None:
    """Each axis has two numbers or more, which can be read and lie apart."""
    with picture(tmp_path / "a.png", 6.0, 4.0) as figure:
        axes = figure.add_subplot()
        axes.plot([low, low * wide], [low, low * wide])
        axes.set_xscale("log")
        axes.set_yscale("log")
    numbers = [float(text.replace(",", "")) for text, _ in drawn.texts]
    assert len(numbers) >= 4
    assert all(low / 30 <= number <= low * wide * 30 for number in numbers)
    assert drawn.overlaps() == []


def test_times_of_a_comparison_are_those_of_its_table(drawn: Any, tmp_path: Path) -> None:
    ring = hk.topology.ring(4, bandwidth="23 GB/s", latency="777 ns")
    found = hk.compare("all-reduce", ring, size=1_234_567, algorithms=["ring", "direct"])
    draw_comparison(found, tmp_path / "a.png")
    for each in found:
        assert f"{format_time_ps(each.run.time_ps)}, +" in drawn.words
    assert f"bound {format_time_ps(found.bound.time_ps)}" in drawn.words


def test_of_a_comparison(drawn: Any, tmp_path: Path) -> None:
    mesh = hk.topology.mesh(4, 4, bandwidth="25 GB/s", latency="1 us")
    table: list[SizeRow] = []
    for size in (2**13, 2**17, 2**21, 2**25):
        found = hk.compare(
            "all-reduce", mesh, size=size, algorithms=["ring", "ring-2d", "multitree"]
        )
        bound = size / (found.bound.time_ps * 1e-12)
        table += [(each.algorithm, size, each.run.algbw, bound) for each in found]
    assert all(rate <= bound for _, _, rate, bound in table)
    draw_sizes(table, tmp_path / "a.svg")
    assert "algbw [GB/s]" in drawn.words
    assert drawn.overlaps() == []


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([], "there are no rows"),
        ([("ring", 1, 0.0, 1.0)], "ring at 1 bytes has 0.0"),
        ([("ring", 1, 1.0, 2.0)] * 2, "ring has 1 bytes twice"),
    ],
)
def test_what_cannot_be_drawn(table: list[SizeRow], words: str, tmp_path: Path) -> None:
    with pytest.raises(hk.SpecError, match=words):
        draw_sizes(table, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
