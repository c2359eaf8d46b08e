"""``hocket run`` and ``hk.runtime.run_plan``: processes that are started, checked and timed."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from tests.cli.conftest import Hocket, folder, hocket

import hocket as hk
from hocket import runtime
from hocket.runtime import processes
from hocket.runtime.reference import check, expected

__all__ = ["folder", "hocket"]  # fixtures

NETWORK = "mesh:2x2@1GB/s,10us"


def test_a_plan_is_run_checked_and_timed(hocket: Hocket) -> None:
    made = hocket(
        *(
            "plan",
            "all-reduce",
            "-t",
            NETWORK,
            "-s",
            "1MB",
            "-a",
            "greedy",
            "-c",
            "2",
            "-o",
            "plan.parquet",
        )
    )
    assert made.code == 0, made.err
    found = hocket("run", "plan.parquet", "--calls", "3", "--json").json()
    assert found["format"] == "hocket.timed-calls"
    assert (found["algorithm"], found["ranks"], found["calls"]) == ("greedy", 4, 3)
    assert 0 < found["min_ps"] <= found["median_ps"] <= found["p90_ps"]
    assert found["algbw"] == pytest.approx(1e6 / found["median_ps"] * 1e12)
    assert found["busbw"] == pytest.approx(found["algbw"] * 1.5)
    assert found["predicted_ps"] > 10**8
    larger = hocket("run", "plan.parquet", "--calls", "1", "--size", "2MB", "--json").json()
    assert (larger["size_bytes"], larger["predicted_ps"]) == (2_000_000, None)


SLOW = ("all-gather", "reduce-scatter", "broadcast", "reduce", "gather", "scatter")


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["all-reduce", "all-to-all", *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)],
)
def test_every_kind_is_run(kind: str) -> None:
    for algorithm, asked, transport in (
        (None, "auto", "shared"),
        ("direct", "auto", "tcp"),
    ):
        found = runtime.run_plan(
            kind, ranks=2, size=4000, algorithm=algorithm, calls=1, transport=asked
        )
        assert (found.collective, found.transport) == (kind, transport)
        assert found.size == 4000


@pytest.mark.parametrize(("algorithm", "transport"), [(None, "tcp"), ("direct", "shared")], ids=str)
def test_the_other_transport_is_taken_where_it_is_asked_for(
    algorithm: str | None, transport: str
) -> None:
    found = runtime.run_plan(
        "all-reduce", ranks=2, size=4000, algorithm=algorithm, calls=1, transport=transport
    )
    assert found.transport == transport


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--np: is missing; say how many processes to start"),
        (("--np", "4"), '--size: is missing; give bytes, as in "16 MB"'),
        (("--np", "1", "-s", "1MB"), "--np: 1 is not 2 to 64"),
        (("--np", "4", "-s", "2B"), "--size: 2 bytes are no float32 for each of 4 ranks"),
        (("--np", "4", "-s", "1MB", "--dtype", "int3"), "--dtype: 'int3' is not known; one of "),
        (("--np", "4", "-s", "1MB", "--op", "or"), "--op: 'or' is not known; one of sum, "),
        (
            ("--np", "4", "-s", "1MB", "--dtype", "int8", "--op", "average"),
            "--op: there is no average of int8",
        ),
        (("--np", "4", "-s", "1MB", "--calls", "0"), "--calls: 0 is not 1 to 100000"),
        (("--np", "4", "-s", "1MB", "--timeout", "soon"), "--timeout: 'soon' is not a time"),
        (("--np", "4", "-s", "1MB", "--transport", "x"), "--transport: 'x' is not known"),
        (("--np", "4", "-s", "1MB", "--collective", "x"), 'there is no collective "x"'),
        (("--np", "4", "-s", "1MB", "--root", "-1"), "--root: -1 is not a rank of 0 to 3"),
        (("--np", "4", "-s", "1MB", "-a", "x"), "there is no algorithm 'x'"),
        (("plan.parquet", "-a", "ring"), "--algorithm: the plan has its own; leave it out"),
        (("plan.parquet", "--root", "1"), "--root: the plan has its own; leave it out"),
        (("plan.parquet", "--np", "3"), "--np: the plan is for 4 ranks, not 3"),
        (("nowhere.parquet",), "there is no such file"),
    ],
)
def test_what_makes_no_sense_is_refused(hocket: Hocket, words: tuple[str, ...], said: str) -> None:
    hocket("plan", "all-reduce", "-t", NETWORK, "-s", "1MB", "-a", "ring", "-o", "plan.parquet")
    result = hocket("run", *words)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert len(result.err.splitlines()) == 1


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[str]]:
    """Give the processes that are started, as they are."""
    found: list[subprocess.Popen[str]] = []

    class Recorded(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            found.append(self)

    monkeypatch.setattr(processes.subprocess, "Popen", Recorded)
    return found


@pytest.mark.parametrize("when", ["ranks start", "run"])
def test_a_process_that_is_killed_is_named(started: list[subprocess.Popen[str]], when: str) -> None:
    """Whoever waits for it would do so for as long as a call may stand still."""
    seen: list[tuple[str, int, int]] = []

    def kill(stage: str, done: int, total: int) -> None:
        seen.append((stage, done, total))
        if stage == when and len(started) == 3 and (stage == "ranks start" or done > 0):
            started[1].kill()

    with pytest.raises(hk.TransportError) as caught:
        runtime.run_plan(
            "all-reduce", ranks=3, size=1 << 20, calls=100_000, progress=kill, timeout="600 s"
        )
    assert (caught.value.code, caught.value.culprit) == ("died", 1)
    assert str(caught.value) == "rank 1 has died: it was ended by SIGKILL and said nothing"
    assert all(process.poll() is not None for process in started)
    assert seen[0] == ("ranks start", 0, 3)
    assert when == "ranks start" or seen[-1][::2] == ("run", 100_000)


def test_an_interruption_leaves_no_process(started: list[subprocess.Popen[str]]) -> None:
    def interrupt(stage: str, done: int, _total: int) -> None:
        if stage == "run" and done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runtime.run_plan("all-reduce", ranks=2, size=1 << 20, calls=100_000, progress=interrupt)
    assert [process.poll() is not None for process in started] == [True, True]


def test_the_check_finds_what_is_wrong() -> None:
    import numpy as np

    inputs = [np.arange(6.0, dtype=np.float32) + rank for rank in range(3)]
    right = expected("all-reduce", inputs, 0, 0, "sum")
    assert right is not None
    result = right.astype(np.float32)
    assert check("all-reduce", result, inputs, 0, 0, "sum") is None
    result[4] += 1e-3
    assert "1 numbers are wrong, at 4 " in str(check("all-reduce", result, inputs, 0, 0, "sum"))
    result[4] = np.nan
    assert check("all-reduce", result, inputs, 0, 0, "sum") is not None
    assert check("all-reduce", result[:2], inputs, 0, 0, "sum") is not None
    assert check("reduce", None, inputs, 1, 0, "sum") is None
    assert check("reduce", result, inputs, 1, 0, "sum") is not None


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("kind", ["all-reduce", "reduce-scatter", "reduce", "all-to-all"])
def test_a_check_by_blocks_finds_what_one_of_the_whole_finds(
    monkeypatch: pytest.MonkeyPatch, kind: str, dtype: str
) -> None:
    """Against the comparison of whole arrays, with faults at random places."""
    import numpy as np

    from hocket.runtime import reference

    monkeypatch.setattr(reference, "BLOCK", 7)
    random = np.random.default_rng(3)
    for faults in (0, 1, 5):
        for shape in ((60,), (12, 5)):
            inputs = [random.normal(0, 9, shape).astype(dtype) for _ in range(3)]
            right = expected(kind, inputs, 1, 1, "sum")
            assert right is not None
            result = right.astype(dtype)
            places = random.choice(result.size, faults, replace=False)
            for place in places:
                result.flat[place] += 1 if result.flat[place] < 50 else -1
            said = check(kind, result, inputs, 1, 1, "sum")
            if not faults:
                assert said is None
                continue
            at = np.unravel_index(places.min(), result.shape)
            where = int(at[0]) if len(at) == 1 else tuple(map(int, at))
            wants = f"{faults} numbers are wrong, at {where} {result[at]} instead of {right[at]}"
            assert said == wants
    assert check("reduce", None, inputs, 0, 1, "sum") is None
    assert check("reduce", result, inputs, 0, 1, "sum") == "has a result where there is none"
    assert "has shape (3,)" in str(check(kind, result.flat[:3], inputs, 1, 1, "sum"))
