"""Every closed list says which of its names was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from hocket._checks import did_you_mean

from .conftest import Hocket

ROOT = Path(__file__).parents[2]
JOBS = str(ROOT / "examples" / "jobs.yml")
TRACE = str(ROOT / "tests" / "data" / "chakra" / "all_gather")
RING = ("-t", "ring:4", "--bandwidth", "1 GB/s", "--latency", "1 us")
REDUCE = ("all-reduce", *RING, "-s", "1MB")
ROUTE = ("route", JOBS, "-f", "clos:32x64")
TRAIN = ("train", "alexnet", *RING)
REPLAY = ("trace", "run", TRACE, *RING)
SCHEDULE = ("plan", "--dimension-only", "all-reduce", "-t", "themis-2d", "-s", "1MB")


@pytest.mark.parametrize(
    ("argv", "field", "wrong", "right"),
    [
        ((*ROUTE, "--scheme"), "--scheme", "gredy", "greedy"),
        ((*ROUTE, "--hash"), "--hash", "crc3", "crc32"),
        ((*ROUTE, "--order"), "--order", "jobs", "job"),
        ((*ROUTE, "--weights"), "--weights", "flow", "flows"),
        (("route", JOBS, "-f"), "--fabric", "closs:2x2", "clos"),
        ((*TRAIN, "-a"), None, "greedyy", "greedy"),
        ((*TRAIN, "--npu"), "--npu", "a10", "a100"),
        ((*TRAIN, "--order"), "--order", "fif", "fifo"),
        (("compare", *REDUCE, "-a"), None, "greedyy", "greedy"),
        (("compare", *REDUCE, "--fidelity"), "--fidelity", "lnk", "link"),
        (("compare", *REDUCE, "--order"), "--order", "redy", "ready"),
        (("compare", *REDUCE, "--switching"), "--switching", "cut-thru", "cut-through"),
        (("compare", *REDUCE, "--latency-model"), "--latency-model", "overlap", "overlapped"),
        (("compare", *REDUCE, "--routing"), "--routing", "ecm", "ecmp"),
        (("plan", *REDUCE, "-a", "greedy", "--unwind"), "--unwind", "rng", "ring"),
        (("plan", *REDUCE, "-a"), None, "exat", "exact"),
        ((*SCHEDULE, "-a"), None, "temis", "themis"),
        ((*SCHEDULE, "--switching"), "--switching", "cut", "cut-through"),
        (("topology", "advise", "--failures", *REDUCE, "--part"), "--part", "lnk", "link"),
        ((*REPLAY, "--npu"), "--npu", "a10", "a100"),
        ((*REPLAY, "--order"), "--order", "fif", "fifo"),
        (("trace", "show", TRACE, "--dependencies"), "--dependencies", "dat", "data"),
        (("workload", "show", "alexnet", "--folds"), "--folds", "drain", "drained"),
        (("topology", "show"), "--topology", "Ring_Swich:2x2", "Ring_Switch"),
        (("workload", "show"), None, "gpt-3", "gpt3-175b"),
        (("compare",), None, "allreduc", "all-reduce"),
    ],
)
def test_the_nearest_name_is_asked_for(
    hocket: Hocket, argv: tuple[str, ...], field: str | None, wrong: str, right: str
) -> None:
    rest = REDUCE[1:] if argv == ("compare",) else ()
    result = hocket(*argv, wrong, *rest)
    assert result.code == 2
    assert result.err.startswith(
        f"hocket: {field}: there is no" if field else "hocket: there is no"
    ) or (field == "--unwind")
    assert repr(wrong.partition(":")[0]) in result.err
    assert result.err.endswith(f"; did you mean {right!r}?\n")


@pytest.mark.parametrize(
    ("study", "option", "wrong", "right"),
    [
        ("themis", "--figure", "4,5", "4, 8, 9, 10, 11 or 12"),
        ("tacos", "--table", "9", "1, 2, 3, 4 or 5"),
        ("mesh", "--figure", "3", "8, 9, 10, 11, 12, 13 or 14"),
        ("routing", "--figure", "1", "4, 5, 6, 7 or 8"),
    ],
)
def test_figures_that_are_not_there(
    hocket: Hocket, study: str, option: str, wrong: str, right: str
) -> None:
    result = hocket("reproduce", study, option, wrong)
    number = wrong.rpartition(",")[2]
    assert result.code == 2
    assert result.err == f"hocket: {option}: there is no {number!r}; use {right}\n"


def test_a_model_has_one_name(hocket: Hocket, folder: Path) -> None:
    listed = hocket("workload", "list", "--json").json()["workloads"]
    jobs = "jobs:\n  - {name: one, model: MODEL, data: 2}\n"
    (folder / "jobs.yml").write_text(jobs.replace("MODEL", "gpt-3"))
    result = hocket("route", "jobs.yml", "-f", "clos:8x16")
    assert (result.code, result.err.endswith("did you mean 'gpt3-175b'?\n")) == (2, True)
    (folder / "jobs.yml").write_text(jobs.replace("MODEL", "gpt3-175b"))
    assert hocket("route", "jobs.yml", "-f", "clos:8x16").code == 0
    assert "gpt3-175b" in {each["name"] for each in listed}


def test_what_is_near() -> None:
    known = ("gpt3-175b", "all-reduce", "cut-through", "resnet50")
    for word, right in (("gpt-3", 0), ("ALL_REDUCE", 1), ("cut", 2), ("resnet", 3)):
        assert did_you_mean(word, known, "x") == f"did you mean {known[right]!r}?"
    for word in ("", "z", "50", "all to none of them"):
        assert did_you_mean(word, known, "x") == "x"
