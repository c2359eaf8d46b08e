"""Tables and logs of measurements: what is read, and what is refused."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket.profiles.measurement import Measurement, oddities, read_measurements

HEAD = "collective,gpus,nodes,bytes,time_us,algo,proto,inplace\n"
RANKS = "".join(
    f"#  Rank  {rank} Group  0 Pid  77{rank} on {host} device  0 [0x07] NVIDIA A100-SXM4-40GB\n"
    for rank, host in enumerate(["gpu-a", "gpu-a", "gpu-b", "gpu-b"])
)
TIMES = "     time   algbw   busbw #wrong"
COLUMNS = f"#       size         count      type   redop    root{TIMES}{TIMES}\n"
LOG = f"""\
# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576
# Collective test starting: all_reduce_perf
{RANKS}{COLUMNS}
           8             2     float     sum      -1    26.10    0.00    0.00      0    25.90  0.00  0.00  0
     1048576        262144     float     sum      -1    88.50   11.85   17.77      0    87.10 12.04 18.06  0
# Out of bounds values : 0 OK
"""
OLD = f"""\
# all_gather_perf
{RANKS}#       size    count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
        1024            64   float             19.5    0.05    0.04  0e+00     19.1    0.05    0.04  0e+00
"""
"""As versions before 2.12 print it: an all-gather has neither an operation nor a root."""
LINES = [*LOG.splitlines(), *HEAD.splitlines()]


def write(folder: Path, text: str, name: str = "measured.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_table_is_read(tmp_path: Path) -> None:
    text = (
        "# hardware: eight of them\n"
        + HEAD
        + "all_reduce,8,1,1024,12.5,RING,LL,1\nbroadcast,4,2,8,3,,,\n"
    )
    sweeps = read_measurements(write(tmp_path, text))
    assert sweeps.name == "measured"
    assert sweeps.facts == {"hardware": "eight of them"}
    assert sweeps.rows == (
        Measurement("all-reduce", 8, 1, 1024, pytest.approx(12.5e-6), "ring", "ll", True),
        Measurement("broadcast", 4, 2, 8, pytest.approx(3e-6)),
    )


def test_rows_of_collectives_without_a_model_are_left_out(tmp_path: Path) -> None:
    """By the same words as runs of their programs in logs."""
    rows = HEAD + "gather,8,1,8,3,,,\nall_reduce,8,1,8,3,,,\nalltoallv_perf,8,1,8,3,,,\n"
    sweeps = read_measurements(write(tmp_path, rows))
    assert [row.kind for row in sweeps] == ["all-reduce"]
    assert sweeps.others == {
        "of gather_perf, whose collective has no model here": 1,
        "of alltoallv_perf, whose parts differ in size": 1,
    }
    with pytest.raises(
        hk.SpecError, match="has only times of scatter_perf, whose collective has no"
    ):
        read_measurements(write(tmp_path, HEAD + "scatter,8,1,8,3,,,\n"))


def test_times_of_wrong_results_are_left_out(tmp_path: Path) -> None:
    """Each of a line's two times has a number of wrong results of its own; N/A is none."""
    lines = LOG.replace("17.77      0", "17.77      5").replace(
        "0.00  0.00  0\n", "0.00  0.00  3\n"
    )
    sweeps = read_measurements(
        write(tmp_path, lines.replace("0.00    0.00      0", "0.00    0.00    N/A"))
    )
    assert [(row.size, row.in_place) for row in sweeps] == [(8, False), (1 << 20, True)]
    assert [line.partition(": ")[2] for line in sweeps.wrong] == [
        "all-reduce of 8 bytes in place, #wrong 3",
        "all-reduce of 1048576 bytes out of place, #wrong 5",
    ]
    assert sweeps.only(in_place=True).once().wrong == sweeps.wrong


def test_a_log_of_wrong_results_alone_is_refused(tmp_path: Path) -> None:
    lines = LOG.replace("      0    ", "      1    ").replace("0.00  0\n", "0.00  2\n")
    lines = lines.replace("18.06  0\n", "18.06  9\n")
    with pytest.raises(hk.SpecError, match="results were wrong at all 4 times; mend"):
        read_measurements(write(tmp_path, lines))


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_tables_of_other_separators_are_refused(tmp_path: Path, mark: str, name: str) -> None:
    text = (
        "# source: us\n" + HEAD.replace(",", mark) + f"all_reduce{mark}8{mark}1{mark}8{mark}3,5\n"
    )
    with pytest.raises(hk.SpecError, match=f"line 2: columns are separated by {name}; separate"):
        read_measurements(write(tmp_path, text))


def test_a_log_is_read(tmp_path: Path) -> None:
    rows = read_measurements(write(tmp_path, LOG, "run.txt")).rows
    assert [(row.kind, row.npus, row.nodes) for row in rows] == [("all-reduce", 4, 2)] * 4
    assert [row.size for row in rows] == [8, 8, 1 << 20, 1 << 20]
    assert [row.seconds for row in rows] == pytest.approx([26.1e-6, 25.9e-6, 88.5e-6, 87.1e-6])
    assert [row.in_place for row in rows] == [False, True, False, True]


def test_logs_of_several_runs_in_one_file(tmp_path: Path) -> None:
    rows = read_measurements(write(tmp_path, LOG + OLD, "run.txt")).rows
    assert [row.kind for row in rows] == ["all-reduce"] * 4 + ["all-gather"] * 2
    assert {row.npus for row in rows} == {4}
    assert [row.seconds for row in rows[4:]] == pytest.approx([19.5e-6, 19.1e-6])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no measurements; give a table with the columns collective"),
        (HEAD, "has no measurements"),
        ("collective,gpus,bytes,time_us\nall_reduce,8,8,1\n", "line 1: there is no column 'nodes'"),
        (
            HEAD.replace("time_us", "time_ms"),
            "no column 'time_us'; give times in microseconds, in a",
        ),
        (HEAD + "all_reduce,8,1,8,0,,,\n", "line 2: time_us: '0' is not a time; give microseconds"),
        ("bytes," + HEAD, "line 1: there are 2 columns 'bytes'; keep one"),
        (HEAD + "all_reduce,8,1,8,nan,,,\n", "line 2: time_us: 'nan' is not a time"),
        (HEAD + "all_reduce,8,1,8,-3,,,\n", "'-3' is not a time"),
        (
            HEAD + "all_reduce,8,1,8,1e-300,,,\n",
            "'1e-300' is not a time; give microseconds from 0.001",
        ),
        (HEAD + "all_reduce,8,1,0,3,,,\n", "bytes: '0' is not a whole number above 0"),
        (HEAD + "all_reduce,8,3,8,3,,,\n", "nodes: 8 NPUs do not spread evenly over 3"),
        (HEAD + "all_reduce,1,1,8,3,,,\n", "gpus: 1 is too few"),
        (HEAD + "all_redice,8,1,8,3,,,\n", "there is no 'all_redice'; did you mean 'all_reduce'"),
        (HEAD + "all_reduce,8,1,8,3,,,2\n", "inplace: '2' is not valid; give 0 or 1"),
        (HEAD + "all_reduce,8,1,8\n", "line 2: has 4 cells, not 8"),
        (
            LOG.replace("# Collective test starting: all_reduce_perf\n", "").replace("sum", "none"),
            "no line says which collective it is; write it in the file before its ranks",
        ),
        (
            "# all_reduce_perf\n#  (B)  (elements)  (ms)  (GB/s)\n",
            "line 2: times are in (ms); give",
        ),
        (LOG.replace("#  Rank", "#  rank"), "no lines before say which ranks took part"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        read_measurements(write(tmp_path, text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(hk.SpecError, match="cannot be read"):
        read_measurements(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(hk.SpecError, match="is not text in UTF-8"):
        read_measurements(tmp_path / "binary.csv")


@given(st.text(max_size=300) | st.lists(st.sampled_from(LINES)).map("\n".join))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_text(text, encoding="utf-8", errors="replace")
    with suppress(hk.SpecError):
        assert all(row.seconds > 0 and row.npus >= 2 for row in read_measurements(path))


def test_times_that_stand_out_are_named(tmp_path: Path) -> None:
    rows = "".join(
        f"all_reduce,8,1,{size},{time},,,\n" for size, time in ((8, 5), (16, 50), (32, 6))
    )
    assert list(oddities(read_measurements(write(tmp_path, HEAD + rows)))) == [
        "measured: all-reduce of 16 bytes takes 50 us, more than twice as long as the sizes next to it"
    ]


def test_an_all_to_all_of_odd_parts_is_not_aligned() -> None:
    assert not Measurement("all-to-all", 3, 1, 192 << 10 | 8, 1.0).is_aligned
    assert Measurement("all-to-all", 4, 1, 1 << 20, 1.0).is_aligned
    assert Measurement("all-reduce", 3, 1, 5, 1.0).is_aligned
