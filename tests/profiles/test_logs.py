"""Logs of nccl-tests and rccl-tests: of every program and form, as launchers pass them on."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket.profiles.measurement import MeasuredSeries, measurements_in, read_measurements
from hocket.telemetry.files import read_recording

MIB = 1 << 20

PROGRAMS = {
    "all_reduce": ("all-reduce", "sum", False, lambda n: 2 * (n - 1) / n),
    "all_gather": ("all-gather", "none", False, lambda n: (n - 1) / n),
    "reduce_scatter": ("reduce-scatter", "sum", False, lambda n: (n - 1) / n),
    "broadcast": ("broadcast", "none", True, lambda n: 1),
    "reduce": ("reduce", "max", True, lambda n: 1),
    "alltoall": ("all-to-all", "none", False, lambda n: (n - 1) / n),
    "sendrecv": ("send-receive", "sum", False, lambda n: 1),
}
"""What each program measures, and what its lines have: operation, root, busbw over algbw."""

OTHERS = {
    "gather": ("none", True, lambda n: (n - 1) / n),
    "scatter": ("none", True, lambda n: (n - 1) / n),
    "alltoallv": ("none", False, lambda n: (n - 1) / n),
    "hypercube": ("", False, lambda n: 1),
}
FORMS = ("2.4", "2.13", "2.18", "stamped", "per-iteration", "rccl", "rccl, in place")


@dataclass(frozen=True)
class Run:
    """A run of a program; ``rows`` are sizes, and times out of place and in place [us]."""

    program: str
    hosts: int = 2
    each: int = 4
    rows: tuple[tuple[int, float, float], ...] = ((MIB, 90.0, 88.5), (16 * MIB, 410.5, 402.0))
    form: str = "2.18"
    named: str = "starting"

    def wanted(self) -> list[tuple[object, ...]]:
        """What is to be read from it."""
        who = PROGRAMS[self.program][0], self.hosts * self.each, self.hosts
        return [
            (*who, size, pytest.approx(took * 1e-6), in_place)
            for size, *times in self.rows
            for in_place, took in enumerate(times)
            if in_place or self.form != "rccl, in place"
        ]

    def lines(self) -> list[str]:
        """What is printed."""
        made = {
            "starting": [f"# Collective test starting: {self.program}_perf"],
            "title": [f"# {self.program}_perf"],
            "command": [f"+ mpirun -np 8 nccl-tests/build/{self.program}_perf_mpi -b 8 -e 1G"],
        }.get(self.named, [])
        made += ["# nThread 1 nGpus 1 minBytes 8 maxBytes 1 step: 2(factor) iters: 20", "#"]
        made += ["# Using devices", *self.ranks(), "#", *self.head()]
        made += [self.row(*row) for row in self.rows]
        made += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 12.5", "#"]
        if self.named == "concluded" or self.named == "starting":
            made.append(f"# Collective test concluded: {self.program}_perf")
        return made

    def ranks(self) -> list[str]:
        group = "" if "rccl" in self.form or self.form == "2.4" else "Group  0 "
        return [
            f"#  Rank {rank:2d} {group}Pid {700 + rank:6d} on {f'box{rank // self.each}':>10s} device "
            f"{rank % self.each:2d} [0x{rank % self.each:02x}] NVIDIA A100-SXM4-80GB"
            for rank in range(self.hosts * self.each)
        ]

    @property
    def said(self) -> tuple[str, bool, Callable[[int], float]]:
        """Operation, whether it has a root, and busbw over algbw."""
        return OTHERS.get(self.program) or PROGRAMS[self.program][1:]

    def head(self) -> list[str]:
        redop, is_rooted, _ = self.said
        rates = " time algbw busbw " + ("error" if self.form == "2.4" else "#wrong")
        if self.form == "per-iteration":
            rates += " i_min i_max i_p99 i_cv%"
        before = ["redop", "root"]
        if self.form == "2.4":  # each program had columns of its own
            before = ["redop"] * (redop not in ("", "none")) + ["root"] * is_rooted
        once = self.form == "rccl, in place"
        stamp = "  timestamp" if self.form == "stamped" else ""
        places = "in-place" if once else "out-of-place                       in-place"
        return [
            f"#                                        {places}          ",
            f"#       size         count      type  {'  '.join(before)}{rates * (2 - once)}{stamp}",
            "#        (B)    (elements)                (us)  (GB/s)  (GB/s)    (us)  (GB/s)  (GB/s)",
        ]

    def row(self, size: int, *times: float) -> str:
        redop, is_rooted, factor = self.said
        root = "3" if is_rooted else "-1"
        if self.form == "2.4":
            before = [redop] * (redop not in ("", "none")) + [root] * is_rooted
        else:
            before = ["" if self.form == "2.13" and redop == "none" else redop, root]
        text = f"{size:12d}  {size // 4:12d}  {'float':>8s}  " + "".join(
            f"  {each:>6s}" for each in before
        )
        for took in times[self.form == "rccl, in place" :]:
            rate = size / took / 1e3
            wrong = "0e+00" if self.form == "2.4" else "0"
            text += f"  {took:7.2f}  {rate:6.2f}  {rate * factor(self.hosts * self.each):6.2f}  {wrong:>5s}"
            if self.form == "per-iteration":
                text += f"  {took - 1:7.2f}  {took + 9:7.2f}  {took + 5:7.2f}     3.10"
        return text + ("  2026-03-04 05:06:07" if self.form == "stamped" else "")


def read(text: str | Sequence[str]) -> MeasuredSeries:
    """Read lines as a file."""
    whole = text if isinstance(text, str) else "\n".join(text) + "\n"
    return measurements_in(whole.encode(), "run.txt", "run")


def got(sweeps: MeasuredSeries) -> list[tuple[object, ...]]:
    return [(row.kind, row.npus, row.nodes, row.size, row.seconds, row.in_place) for row in sweeps]


PREFIXES: dict[str, Callable[[int, str], str]] = {
    "none": lambda _, line: line,
    "mpirun --tag-output": lambda _, line: f"[1,0]<stdout>:{line}",
    "mpirun of version 5": lambda _, line: f"[prterun-box0-77@1,0]<stdout>: {line}",
    "mpirun -timestamp-output": lambda i, line: (
        f"Wed Mar  4 05:06:{i % 60:02d} 2026<stdout>:{line}"
    ),
    "mpirun, mixed ranks": lambda i, line: f"[1,{i % 4}]<stdout>:{line}",
    "srun -l": lambda _, line: f" 0: {line}",
    "Intel MPI -l": lambda _, line: f"[0] {line}",
    "kubectl --prefix": lambda _, line: f"[pod/job-launcher-x7k2p/nccl] {line}",
    "docker compose": lambda _, line: f"nccl-1  | {line}",
    "ISO times": lambda i, line: f"2026-03-04T05:06:{i % 60:02d}.{i:06d}Z {line}",
    "cri": lambda i, line: f"2026-03-04T05:06:{i % 60:02d}.{i:09d}Z stdout F {line}",
    "journal": lambda i, line: f"Mar 04 05:06:{i % 60:02d} box0 nccl[4711]: {line}",
    "epoch": lambda i, line: f"{1767225600 + i}.25 {line}",
    "dmesg": lambda i, line: f"[{i:5d}.123456] {line}",
    "quoted": lambda _, line: f"> {line}",
    "quoted twice": lambda _, line: f"> > {line}",
    "pdsh": lambda _, line: f"box0: {line}",
    "cat -n": lambda i, line: f"{i + 1:6d}\t{line}",
    "grep -n": lambda i, line: f"{i + 1}:{line}",
    "colours": lambda _, line: f"\x1b[32m{line}\x1b[0m",
    "CRLF": lambda _, line: f"{line}\r",
    "docker's JSON": lambda i, line: json.dumps(
        {"log": line + "\n", "stream": "stdout", "time": i}
    ),
    "journal's JSON": lambda i, line: json.dumps(
        {"MESSAGE": line, "PRIORITY": "6", "_PID": str(i)}
    ),
}


def with_prefix(lines: Sequence[str], prefix: str) -> list[str]:
    return [PREFIXES[prefix](i, line) for i, line in enumerate(lines)]


rows = st.lists(
    st.tuples(
        st.sampled_from([MIB, 8 * MIB, 256 * MIB, 1 << 30]),
        st.integers(500, 22500).map(lambda each: each / 4),
        st.integers(500, 22500).map(lambda each: each / 4),
    ),
    min_size=1,
    max_size=3,
).map(tuple)
runs = st.builds(
    Run,
    program=st.sampled_from(sorted(PROGRAMS)),
    hosts=st.sampled_from([1, 2, 3]),
    each=st.sampled_from([3, 4, 8]),
    rows=rows,
    form=st.sampled_from(FORMS),
    named=st.sampled_from(["starting", "title", "command", "concluded"]),
)


@settings(max_examples=120)
@given(st.lists(runs, min_size=1, max_size=3), st.sampled_from(sorted(PREFIXES)))
def test_what_was_printed_is_read(printed: list[Run], prefix: str) -> None:
    """Of any programs one after another, in any form, behind any prefix."""
    lines = [line for run in printed for line in run.lines()]
    wanted = [row for run in printed for row in run.wanted()]
    assert got(read(with_prefix(lines, prefix))) == wanted


def may_be(run: Run, name: str) -> bool:
    """Whether another program could have printed what a run did."""
    redop, is_rooted, factor = run.said
    other, is_other_rooted, other_factor = PROGRAMS[name][1:]
    is_bare = run.form == "2.4"  # which has no column for what is empty
    return (
        factor(run.hosts * run.each) == other_factor(run.hosts * run.each)
        and (
            name == "sendrecv"
            or (is_bare and redop == "none")
            or (redop == "none") == (other == "none")
        )
        and ((is_bare and not is_rooted) or is_rooted == is_other_rooted)
    )


@settings(max_examples=80)
@given(runs, st.sampled_from(sorted(PROGRAMS)))
def test_a_wrong_name_is_refused_where_lines_tell(run: Run, name: str) -> None:
    """Operation, root and busbw tell which program ran, but for an all-gather and an all-to-all."""
    lines = [f"# {name}_perf", *replace(run, named="none").lines()]
    if may_be(run, name):
        assert {row.kind for row in read(lines)} == {PROGRAMS[name][0]}
        return
    with pytest.raises(hk.SpecError, match=f"which is no {name}_perf among"):
        read(lines)


@settings(max_examples=60)
@given(runs, st.data())
def test_a_lost_rank_is_noticed(run: Run, data: st.DataObject) -> None:
    """By its number, or by busbw where the last ones are lost and the collective's rates tell."""
    lines = run.lines()
    ranks = [i for i, line in enumerate(lines) if " Rank " in line]
    lost = data.draw(st.sampled_from(ranks))
    del lines[lost]
    factor = PROGRAMS[run.program][3]
    if lost == ranks[-1] and run.hosts == 1 and factor(3) == factor(2) == 1:
        return
    with pytest.raises(hk.SpecError):
        read(lines)


ALONE = [line.replace("Rank  1", "Rank  0") for line in Run("all_reduce", 1, 2).lines()]
GOOD = Run("all_reduce").lines()
INTERLEAVED = [
    line for line in Run("all_reduce", 1, 2).lines() for line in ([line, line] if line else [])
]


def but(old: str, new: str, lines: Sequence[str] = tuple(GOOD)) -> list[str]:
    """Lines in which something else stands."""
    text = "\n".join(lines)
    assert old in text
    return text.replace(old, new).splitlines()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            ALONE,
            "line 6: rank 0 is there twice: each process ran alone, or outputs are mixed; build",
        ),
        (INTERLEAVED, "rank 0 is there twice"),
        (
            [f"[1,{i}]<stdout>:{line}" for line in Run("reduce", 1, 1).lines() for i in range(4)],
            "one GPU ran alone, so nothing was exchanged; build nccl-tests with MPI=1",
        ),
        (
            [
                re.sub(r"(\d\.\d+ +\d+\.\d+ +)\d+\.\d+( +0\b)", r"\g<1>0.00\2", line)
                for line in GOOD
            ],
            "busbw 0.00 beside algbw 11.65, which is no all_reduce_perf among 8 ranks; build nccl-tests",
        ),
        (but(" sum ", " none "), "redop is none, which is no all_reduce_perf among 8 ranks; keep"),
        (but("    -1 ", "     0 "), "root is 0, which is no all_reduce_perf among 8 ranks"),
        (
            but("concluded: all_reduce", "concluded: all_gather"),
            "this run begins as all_reduce_perf and ends as all_gather_perf; keep the lines",
        ),
        (but(" time algbw", " cputime algbw", Run("reduce").lines()), "(-C); measure without"),
        (
            but("  410.50", " 41050.0"),
            "algbw 40.87 is not 16777216 bytes in 41050.0 us; give the log",
        ),
        ([line[:90] if " float " in line else line for line in GOOD], "values under 13 columns"),
        (
            [line for line in GOOD if "size " not in line],
            "no line before says what its columns are",
        ),
        (
            [line for line in GOOD if "on       box1" not in line or "Rank  4" in line],
            "5 ranks do not",
        ),
        (but("Group  0 Pid    700", "Group  1 Pid    700"), "2 groups of ranks ran at once"),
        (
            [line.replace("box1", "box0") for line in GOOD],
            "2 ranks are on device 0 [0x00] of box0: other hosts have its name; give each host a name",
        ),
        (
            [line for line in GOOD if " float " in line],
            "line 1: no line before says what its columns are",
        ),
        (
            ["#      bytes             N    type      time  algbw"],
            "line 1: times are in ms, as the first",
        ),
        (
            [*GOOD, *Run("all_gather", named="none").lines()],
            "no line says which collective it is: all_gather_perf or alltoall_perf; write it",
        ),
        (
            [line for line in GOOD for _ in range(1 + (" size " in line))],
            "line 16: a second table begins before the first has a row: outputs of several processes",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(lines: list[str], words: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        read(lines)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_times_of_wrong_results_are_left_out_however_many_there_are() -> None:
    """Counts above a million are printed as 1.5e+06; old versions mark errors, or say it below."""
    many = but("11.65   20.39      0", "11.65   20.39  1.5e+06")
    found = read(many)
    assert found.wrong == (
        "run.txt, line 17: all-reduce of 1048576 bytes out of place, #wrong 1.5e+06",
    )
    assert len(found) == 3
    old = Run("all_reduce", form="2.4").lines()
    marked = read(but("20.39  0e+00", "20.39  2e-01*", old))
    assert [line.partition(", ")[2] for line in marked.wrong] == [
        "line 17: all-reduce of 1048576 bytes out of place, error 2e-01*"
    ]
    with pytest.raises(hk.SpecError, match="results were wrong at all 4 times"):
        read(but("values : 0 OK", "values : 7 FAILED", old))


def test_what_has_no_model_is_left_out_with_its_reason(tmp_path: Path) -> None:
    others = [line for name in OTHERS for line in Run(name).lines()]
    unknown = [line.replace("reduce_perf", "shuffle_perf") for line in Run("reduce").lines()]
    found = read([*others, *GOOD, *unknown])
    assert got(found) == Run("all_reduce").wanted()
    assert found.others == {
        "of gather_perf, whose collective has no model here": 4,
        "of scatter_perf, whose collective has no model here": 4,
        "of alltoallv_perf, whose parts differ in size": 4,
        "of hypercube_perf, which is an all-gather of the test's own and no call of the library": 4,
        "of shuffle_perf, which is not known here": 4,
    }
    for name in OTHERS:
        with pytest.raises(
            hk.SpecError, match=f"has only times of {name}_perf, wh.*; give what one of"
        ):
            read(Run(name).lines())
    (tmp_path / "all.txt").write_text("\n".join([*others, *GOOD]))
    recording = read_recording(tmp_path / "all.txt")
    assert recording.left_out == {
        **{reason: count for reason, count in found.others.items() if "shuffle" not in reason},
        "in place": 2,
    }


@pytest.mark.parametrize("prefix", sorted(PREFIXES))
def test_all_readers_agree(tmp_path: Path, prefix: str) -> None:
    """``hocket measured`` finds out what a file is; ``hocket calibrate`` is told that it is a log."""
    path = tmp_path / "run.txt"
    lines = [*Run("all_reduce").lines(), *Run("all_gather", named="concluded").lines()]
    path.write_bytes("\n".join(with_prefix(lines, prefix)).encode())
    told = [
        (row.kind, row.size, row.seconds, row.npus)
        for row in read_measurements(path).only(in_place=False)
    ]
    recorded = [
        (call.kind, call.size, call.seconds, call.npus) for call in read_recording(path).calls
    ]
    assert len(told) == 4
    assert told == recorded


def test_outputs_that_are_mixed_are_told_apart_by_their_prefixes() -> None:
    one, two = Run("all_reduce", 1, 4), Run("all_gather", 3, 8, rows=((MIB, 70.0, 71.0),))
    first = [f"[pod/one] {line}" for line in one.lines()]
    second = [f"[pod/two] {line}" for line in two.lines()]
    mixed = [
        line
        for i in range(max(len(first), len(second)))
        for line in (*first[i : i + 1], *second[i : i + 1])
    ]
    assert sorted(got(read(mixed)), key=str) == sorted([*one.wanted(), *two.wanted()], key=str)


def test_a_run_that_failed_before_its_table_does_not_lend_its_ranks() -> None:
    failed = [
        *Run("all_gather", 1, 8).lines()[:12],
        "box0: Test NCCL failure common.cu:1005 'unhandled error'",
    ]
    assert got(read([*failed, *GOOD])) == Run("all_reduce").wanted()


def test_a_name_that_lines_tell_need_not_be_written() -> None:
    """A loop over one program, with its name above the first run alone."""
    again = Run("all_reduce", named="none").lines()
    assert got(read(["# all_reduce_perf", *again, *again])) == 2 * Run("all_reduce").wanted()


def test_groups_on_hosts_of_their_own_are_one_collective() -> None:
    lines = [
        re.sub("Group  0(.*box1)", r"Group  1\1", line)
        for line in Run("broadcast", form="2.18").lines()
    ]
    assert {(row.npus, row.nodes) for row in read(lines)} == {(4, 1)}


def test_processes_that_see_one_gpu_each_share_a_host() -> None:
    lines = [re.sub(r"device .*\]", "device  0 [0x01]", line) for line in Run("broadcast").lines()]
    assert {(row.npus, row.nodes) for row in read(lines)} == {(8, 2)}


def test_times_in_place_alone_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("\n".join(Run("all_reduce", form="rccl, in place").lines()))
    with pytest.raises(
        hk.SpecError, match="has no times of collectives: 2 in place; give --in-place"
    ):
        read_recording(path)
    assert len(read_recording(path, in_place=True).calls) == 2


@pytest.mark.parametrize("form", ["2.4", "2.18", "rccl, in place"])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_line_that_was_cut_between_values_is_told(form: str, is_named: bool) -> None:
    """Its times would else be read from other columns."""
    lines = [
        line for line in Run("all_reduce", form=form).lines() if is_named or "_perf" not in line
    ]
    last = max(i for i, line in enumerate(lines) if re.match(r" *\d+ +\d+ +[a-z]", line))
    for gone in (1, 2, 3):
        cut = " ".join(lines[last].split()[:-gone])
        with pytest.raises(
            hk.SpecError, match=f"line {last + 1}: .*leave lines out that were cut off"
        ):
            read([*lines[:last], cut])


def test_a_compressed_log_is_read_for_a_fit_too(tmp_path: Path) -> None:
    path = tmp_path / "run.txt.gz"
    path.write_bytes(gzip.compress("\n".join(GOOD).encode()))
    found = read_measurements(path)
    assert got(found) == Run("all_reduce").wanted()
    assert found.name == "run"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(hk.SpecError, match="is no whole gzip file"):
        read_measurements(path)


def test_times_that_are_no_numbers_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    lines = [re.sub(r"\b90\.00?\b", "  nan", line) for line in GOOD]
    assert lines != GOOD
    path.write_text("\n".join(lines))
    assert read_recording(path).left_out == {"that are no numbers": 1, "in place": 2}


def test_messages_of_the_library_are_no_lines_of_a_table() -> None:
    """They have commas, which tables are told by, and numbers."""
    said = [
        "box0:700:731 [0] NCCL INFO Channel 00/24 : 0 1 2 3, via P2P/CUMEM",
        "box0:700:731 [0] NCCL INFO comm 0x7f rank 0 nRanks 8 2 float buffers, 16 coll channels",
        "NCCL version 2.27.3+cuda12.9",
    ]
    lines = [each for i, line in enumerate(GOOD) for each in (*said[: i % 4], line)]
    assert got(read([*said, *lines])) == Run("all_reduce").wanted()


def test_a_table_of_a_spreadsheet_begins_with_a_mark() -> None:
    text = "\ufeffcollective,gpus,nodes,bytes,time_us\nall_reduce,8,1,8,30\n"
    assert [row.size for row in read(text)] == [8]


def test_what_is_long_takes_no_longer() -> None:
    """Lines of a million characters, and as many tables, take time in proportion."""
    long = "# Rank 1 on " * 100_000
    head, row = GOOD[14], GOOD[16]
    tables = [*GOOD[:14], *(head, row) * 3000]
    found = read([long, "1 " * 500_000, *tables, "#" * 1_000_000])
    assert len(found) == 6000
