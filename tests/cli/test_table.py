"""Tables: no number, name or unit is cut, however narrow the terminal."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket._results import Column, Result, said
from hocket.cli.compare import _table, crossover
from hocket.cli.numbers import RATES, TIMES, in_one_unit
from hocket.cli.table import NEVER, Table, cell_width, shown_of, table_of
from hocket.collectives.sizes import sizes_of
from hocket.errors import SpecError

WIDTHS = (60, 80, 100, 120, 140)
LONG = "a_network_card_of_the_third_server_"
NETWORKS = {
    "dgx1_v100": "dgx1_v100",
    "themis-2d": "Ring_SW:4x4",
    "long names": None,
}


def network(name: str, folder: Path) -> hk.Topology:
    if NETWORKS[name] is not None:
        given = {} if ":" not in NETWORKS[name] else {"bandwidth": "25 GB/s", "latency": "1 us"}
        return hk.topology.load(NETWORKS[name], **given) if not given else ring_sw()
    links = "".join(
        f"  - {{a: {LONG}{i}, b: {LONG}{(i + 1) % 5}, bandwidth: 123 GB/s, latency: 1 us}}\n"
        for i in range(5)
    )
    file = folder / "long.yml"
    file.write_text(
        f"name: long\nnpus: [{', '.join(f'{LONG}{i}' for i in range(5))}]\nlinks:\n{links}"
    )
    return hk.topology.load(file)


def ring_sw() -> hk.Topology:
    return hk.topology.product("Ring_SW", [4, 4], bandwidth=["25 GB/s"] * 2, latency=["1 us"] * 2)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("sizes", [("256 MB",), ("8 KiB", "3 MB", "1 GB")])
def test_nothing_is_cut_at_any_width(name: str, sizes: tuple[str, ...], tmp_path: Path) -> None:
    net = network(name, tmp_path)
    made = [
        hk.compare(
            "all-reduce", net, size=size, algorithms=["ring", "bidirectional-ring", "greedy"]
        )
        for size in sizes
    ]
    table = _table(made)
    everything = table.lines()
    rows = [line for line in everything if line.startswith("│")]
    assert len(rows) == sum(len(list(each)) for each in made)
    cells = {cell for row in rows for cell in row.strip("│").split("│")}
    wanted = {entry.algorithm for each in made for entry in each}
    words = {cell.strip() for cell in cells}
    assert wanted <= words
    columns = []
    for width in WIDTHS:
        lines = table.lines(width)
        assert max(map(cell_width, lines)) <= width
        shown = [line for line in lines if line.startswith("│")]
        assert len(shown) == len(rows)
        for line, row in zip(shown, rows, strict=True):
            parts = [part.strip() for part in line.strip("│").split("│")]
            whole = [part.strip() for part in row.strip("│").split("│")]
            assert set(parts) <= set(whole)
            assert set(parts) & wanted
        head = "\n".join(line for line in lines if line.startswith("┃"))
        for always in ("algorithm", "time", "gap"):
            assert always in head
        columns.append(shown[0].count("│"))
    assert columns == sorted(columns)  # the wider, the more


def test_columns_leave_in_their_order() -> None:
    table = Table("a title")
    table.add_column("name")
    table.add_column("first", leaves=2, justify="right")
    table.add_column("second", leaves=1, unit="ms")
    table.add_column("stays", leaves=NEVER)
    table.add_column("plain")
    table.add_row("a" * 10, "b" * 10, "c" * 10, "d" * 10, "e" * 10)
    gone = []
    for width in (66, 65, 52, 39, 10):
        lines = table.lines(width)
        said = [line for line in lines if "want of room" in line]
        gone.append(said[0].partition(": ")[2] if said else "")
    assert gone[0] == ""
    assert "first" in gone[1]
    assert "second" in gone[2]
    assert table.lines()[0] == "a title"
    assert all(word * 10 in " ".join(table.lines(10)) for word in "ad")


@dataclass(frozen=True)
class Way(Result):
    name: str = field(metadata=said(column=Column("name")))
    kind: str = field(metadata=said(column=Column("kind", leaves=0, leaves_alike=1)))
    cost: float | None = field(metadata=said(column=Column("cost", leaves=0, is_rounded=True)))
    lost: int = field(metadata=said(column=Column("lost", leaves=0, hides_zero=True)))


def test_columns_follow_from_their_declarations() -> None:
    alike = table_of([Way("a" * 30, "road", 1234.56, 0), Way("b", "road", None, 1000)])
    assert next(line for line in alike.lines(50) if "left out" in line).endswith("kind")
    differ = table_of([Way("a" * 30, "road", 0.123456, 0), Way("b", "rail", None, 1000)])
    assert not any("left out" in line for line in differ.lines(50))
    cells = [line.strip("│").split("│") for line in alike.lines() if line.startswith("│")]
    assert [[cell.strip() for cell in row[2:]] for row in cells] == [["1,235", "–"], ["–", "1,000"]]


@dataclass(frozen=True)
class Chained(Result):
    last: int = field(metadata=said(column=Column("last", after="middle")))
    middle: int = field(metadata=said(column=Column("middle", after="first")))
    first: int = field(metadata=said(column=Column("first")))


def test_columns_stand_behind_others_whatever_is_left_out() -> None:
    assert [each.key for each in shown_of(Chained)] == ["first", "middle", "last"]
    assert [each.key for each in shown_of(Chained, "middle")] == ["first", "last"]


def test_prose_wraps_at_words_and_titles_before_columns_leave() -> None:
    table = Table()
    table.add_column("machine")
    table.add_column("a title of words", justify="right")
    table.add_column("what it is", prose=True)
    table.add_row(
        "dgx", "12345", "eight accelerators in a cube, whose links are of two speeds " * 2
    )
    for width in WIDTHS:
        lines = table.lines(width)
        assert max(map(cell_width, lines)) <= width
        assert "want of room" not in lines[-1]
        for word in ("12345", "accelerators", "speeds"):
            assert word in " ".join(lines)


def test_wide_letters_take_two_columns() -> None:
    table = Table()
    table.add_column("name")
    table.add_row("节点一")
    table.add_row("abc")
    assert len({cell_width(line) for line in table.lines()}) == 1


def test_numbers_of_a_column_have_one_unit() -> None:
    assert in_one_unit([3_083_000_000, 10_241_000_000], TIMES) == ("ms", ["3.083", "10.241"])
    assert in_one_unit([80_400_000, 2_000_000_000], TIMES) == ("us", ["80.4", "2,000.0"])
    assert in_one_unit([659_164_000, 1_263_000_000], RATES) == ("MB/s", ["659.2", "1,263.0"])
    assert in_one_unit([0, 0], TIMES) == ("ps", ["0", "0"])
    assert in_one_unit([1, 10**13], TIMES) == ("us", ["<0.1", "10,000,000.0"])


@pytest.mark.parametrize(
    ("values", "by_row", "unit", "cells"),
    [
        ([5e6, 20e9], False, "us", ["5", "20,000"]),
        ([5e6, 5e9], True, "us", ["5", "5,000"]),
        ([5e6, 5.01e9], True, "", ["5 us", "5.01 ms"]),
        ([723.9e3, 3_132_447e6], True, "", ["723.9 ns", "3.132 s "]),
        ([5e6, None, 6e6], True, "us", ["5", "–", "6"]),
        ([5, None, 20e12], True, "", ["5 ps", "–", "20 s "]),
        ([None, None], True, "", ["–", "–"]),
        (["-", None], False, "", ["-", "–"]),
    ],
)
def test_numbers_that_are_far_apart_have_a_unit_each(
    values: list[Any], by_row: bool, unit: str, cells: list[str]
) -> None:
    """And where no number is, no unit stands above."""
    table = Table(by_row=by_row)
    table.add_column("time", units=TIMES)
    for value in values:
        table.add_row(value)
    lines = table.lines()
    head = [line.strip("┃ ") for line in lines if line.startswith("┃")]
    assert head == (["time", unit] if unit else ["time"])
    assert [line.strip("│").lstrip(" ")[:-1] for line in lines if line.startswith("│")] == cells


def test_measurements_of_all_sizes_are_written_in_units_that_suit_each(
    hocket: Any, folder: Path
) -> None:
    """As of ``-b 8 -e 8G``, whose rates are a billion times apart; nothing is predicted of small ones."""
    sizes = [(8, 26.1), (1 << 20, 88.5), (1 << 33, 120_000.0)]
    rows = "".join(f"all_reduce,2,1,{size},{took}\n" for size, took in sizes)
    (folder / "all.csv").write_text(f"collective,gpus,nodes,bytes,time_us\n{rows}")
    ring = "box:1x2@450GB/s,350ns"
    shown = hocket("measured", "all.csv", "-t", ring, "--no-plans").out
    assert "<0.001 GB/s" in shown
    assert "71.58 GB/s" in shown
    assert " 120 ms" in shown
    rows = "".join(f"all_reduce,2,1,{size},{took}\n" for size, took in sizes[:2])
    (folder / "all.csv").write_text(f"collective,gpus,nodes,bytes,time_us\n{rows}")
    lines = hocket("measured", "all.csv", "-t", ring, "--no-plans").out.splitlines()
    names, units = ([each.strip() for each in line.split("┃")] for line in lines[2:4])
    assert units[names.index("predicted")] == ""


def test_sizes_are_read_as_nccl_tests_has_them() -> None:
    assert sizes_of(["8KB,1MB", "256 MB"]) == [8000, 10**6, 256 * 10**6]
    assert sizes_of("8K:128K:x4") == [8192, 32768, 131072]
    assert sizes_of(["4K", "1K:4K:+1K"]) == [4096, 1024, 2048, 3072]
    assert sizes_of("1M,8K,1M,64K:128K:x2,8K") == [1 << 20, 8192, 1 << 16, 1 << 17]


def test_sizes_come_back_as_they_are_asked_for(hocket: Any) -> None:
    """In every table, JSON and call; what is said of ranges goes from small sizes to large ones."""
    asked = [10**6, 8192, 65536]
    ring = ("-t", "dgx_a100_1box", "-s", "1MB", "--sizes", "8K,1MB,64KiB")
    compared = hocket("compare", "all-reduce", *ring, "-a", "ring", "-a", "direct")
    assert "all-reduce of 3 sizes from 8 KiB to 1 MB among" in compared.out
    assert re.findall(r"│ +(8 KiB|1 MB|64 KiB) │", compared.out)[::2] == ["1 MB", "8 KiB", "64 KiB"]
    predicted = hocket("predict", "all-reduce", *ring, "--json").json()
    assert [each["size_bytes"] for each in predicted["times"]] == asked
    advised = hocket(
        "topology",
        "advise",
        "--failures",
        "all-reduce",
        *ring[2:],
        "-t",
        "ring:3@1GB/s,1us",
        "-a",
        "ring",
        "--json",
    )
    assert [each["size_bytes"] for each in advised.json()["sizes"]] == asked
    made = hk.compare_sizes("all-reduce", "ring:3@1GB/s,1us", asked, algorithms=["ring", "direct"])
    assert made.sizes == asked
    assert made.title.startswith("all-reduce, 3 sizes from 8 KiB to 1 MB")
    assert [
        each.size for each in hk.predict("all-reduce", "dgx_a100_1box", sizes=asked).times
    ] == asked
    again = hk.compare_sizes(
        "all-reduce", "ring:3@1GB/s,1us", sorted(asked), algorithms=["ring", "direct"]
    )
    assert made.crossovers == again.crossovers
    assert [
        each.size
        for each in hk.pareto(
            "all-reduce", "ring:3@1GB/s,1us", sizes=asked, algorithms=["ring"]
        ).points
    ] == sorted(asked)


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        ("8K:1M:x2:x2", "begin:end:xfactor"),
        ("", "size"),
        ([], "there is none"),
        ("8K:4K:x2", "ends before it begins"),
        ("8K:1M:x1", "neither a factor"),
        ("8K:1M:2", "neither a factor"),
        ("8K:1G:+1B", "sizes"),
        ("a:1M:x2", "'a'"),
    ],
)
def test_a_bad_sweep_is_refused(sweep: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said) as error:
        sizes_of(sweep)
    assert error.value.field == "sizes"


def test_the_fastest_of_each_size() -> None:
    assert crossover([(8, "ring"), (9, "ring")]) == "fastest at every size: ring"
    found = crossover([(4000, "c"), (1000, "a"), (3000, "b"), (5000, "a"), (2000, "b")])
    assert found == "fastest: a up to 1 kB, b from 2 kB to 3 kB, c at 4 kB, a from 5 kB"


def test_compare_several_sizes(hocket: Any, folder: Path) -> None:
    argv = ("compare", "all-reduce", "-t", "amd4_sccl", "-s", "8KB,1MB", "--sizes", "1M:4M:x4")
    result = hocket(*argv)
    assert (result.code, result.err) == (0, "")
    assert "all-reduce of 4 sizes from 8 kB to 4 MiB among 4 NPUs" in result.out
    assert "\nfastest" in result.out
    assert re.search(r"^\d+ algorithms do not apply here \(--why\)$", result.out, re.MULTILINE)
    assert "needs a BiGraph" in hocket(*argv, "--why").out
    values = hocket(*argv, "--json").json()["comparisons"]
    assert [each["size_bytes"] for each in values] == [8000, 10**6, 2**20, 2**22]
    rows = list(csv.DictReader(io.StringIO(hocket(*argv, "--csv").out)))
    told = [
        (v["size_bytes"], e["algorithm"], e["time_ps"]) for v in values for e in v["algorithms"]
    ]
    assert [(int(r["size_bytes"]), r["algorithm"], int(r["time_ps"])) for r in rows] == told
    assert {row["verified"] for row in rows} == {"true"}
    assert rows[0]["busiest_link_src"].startswith("gpu")
    assert hocket(*argv, "--plot", "sizes.png").code == 0
    assert (folder / "sizes.png").stat().st_size > 1000


def test_the_rows_of_the_plot() -> None:
    ring = hk.topology.ring(4, bandwidth="1 GB/s", latency="1 us")
    made = hk.compare_sizes("all-reduce", ring, [10**7, "1 MB"], algorithms=["ring"])
    rows = made.size_rows
    assert [row[:2] for row in rows] == [("ring", 10**7), ("ring", 10**6)]
    for row, each in zip(rows, made, strict=True):
        assert row[2] == each.best.run.algbw
        assert row[3] == pytest.approx(row[1] / (each.bound.time_ps * 1e-12))
        assert row[2] <= row[3]


def test_no_size_is_refused(hocket: Any) -> None:
    result = hocket("compare", "all-reduce", "-t", "dgx1_v100")
    assert result.code == 2
    assert result.err == "hocket: --size: there is none; give -s 256MB, or --sizes 8K:1G:x4\n"
