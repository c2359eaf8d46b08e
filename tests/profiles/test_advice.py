"""Advice on what to measure: beside the information form of Bayes' rule, and as the command gives it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from hocket.cli import run
from hocket.fitting.solve import NOISE
from hocket.profiles.advice import LAUNCH_SPREAD, SPREAD, advise, constants_to_fit
from hocket.profiles.cost_model import CONSTANTS, cells_of, times
from hocket.profiles.expected import evidence
from hocket.profiles.hardware import Hardware
from hocket.profiles.measurement import Measurement
from hocket.profiles.profile import load_profile

BOX = Hardware(450e9, nic_bandwidth=400e9, sums=True, npus=8)
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
SIZES = [1 << power for power in range(13, 31, 2)]


def deviations(profile: str, nodes: int, measured: list[Measurement]) -> np.ndarray:
    """Give the mean deviation of logarithms below and from 1 MiB, by slopes and inverses alone."""
    own = load_profile(profile)
    npus = 8 * nodes
    names = constants_to_fit(nodes)
    wanted = [Measurement(kind, npus, nodes, size, 1.0) for kind in KINDS for size in SIZES]

    def logs(rows: list[Measurement], point: np.ndarray) -> np.ndarray:
        values = {
            name: own.values[name] * np.exp(by) for name, by in zip(names, point, strict=False)
        }
        launch = np.array([own.launching_all(row.npus, row.nodes) for row in rows])
        return np.log(
            times(cells_of(rows, BOX), {**own.values, **values}, launch * np.exp(point[-1]))
        )

    def slopes(rows: list[Measurement]) -> np.ndarray:
        ends = [1e-3 * np.eye(len(names) + 1)[at] for at in range(len(names) + 1)]
        return np.array([(logs(rows, end) - logs(rows, -end)) / 2e-3 for end in ends]).T

    width = np.array([*(SPREAD * CONSTANTS[name].width for name in names), LAUNCH_SPREAD])
    information = np.diag(width**-2.0)
    if measured:
        steep = slopes(measured)
        information += steep.T @ steep / NOISE**2
    left = slopes(wanted) @ np.linalg.inv(information) @ slopes(wanted).T
    small = np.array([row.size < 1 << 20 for row in wanted])
    sure = np.sqrt(np.diag(left))
    return np.array([sure[small].mean(), sure[~small].mean(), sure.mean()])


@pytest.mark.parametrize(
    ("profile", "nodes"), [("h100", 1), ("a100", 1), ("h100+ib", 2), ("b200+efa3", 4)]
)
def test_what_is_left_is_as_the_information_says(profile: str, nodes: int) -> None:
    npus = 8 * nodes
    known = [Measurement("all-reduce", npus, nodes, 1 << 16, 1.0)]
    nothing = deviations(profile, nodes, [])
    measured = list(known)
    for step in advise(load_profile(profile), BOX, npus, nodes, known):
        kept = measured.copy()
        measured.append(Measurement(step.kind, npus, nodes, step.size, 1.0))
        left = deviations(profile, nodes, measured)
        assert (step.small_share, step.large_share) == pytest.approx(
            left[:2] / nothing[:2], rel=1e-2
        )
        # No other next measurement would have left clearly less.
        draw = np.random.default_rng(step.size)
        for at in draw.choice(len(SIZES), 3, replace=False):
            other = Measurement(KINDS[at % 4], npus, nodes, SIZES[at], 1.0)
            if other not in kept:
                assert left[2] <= deviations(profile, nodes, [*kept, other])[2] * 1.001


def test_nothing_is_advised_twice() -> None:
    profile = load_profile("h100")
    first = advise(profile, BOX, 8, 1)
    known = [Measurement(each.kind, 8, 1, each.size, 1.0) for each in first[:2]]
    again = advise(profile, BOX, 8, 1, known, count=40)
    seen = {(each.kind, each.size) for each in again}
    assert len(seen) == len(again) == len(KINDS) * len(SIZES) - 2
    assert not seen & {(each.kind, each.size) for each in first[:2]}


def table(folder: Path, *rows: str, name: str = "measured") -> str:
    file = folder / f"{name}.csv"
    file.write_text("collective,gpus,nodes,bytes,time_us\n" + "".join(f"{row}\n" for row in rows))
    return str(file)


def test_one_small_size_is_enough_to_tell_the_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine whose launch takes 60 us, not 26: its class has the rest."""
    own, output = load_profile("a100"), str(tmp_path / "mine.yml")
    network = "dgx_a100_1box"
    (took,) = hk.predict("all-reduce", network, sizes=[8192], profile="a100").times
    assert took.seconds < 31e-6
    given = table(tmp_path, "all_reduce,8,1,8192,60.0")
    assert run(["calibrate", given, "--topology", network, "-o", output]) == 0
    capsys.readouterr()
    small, large = hk.predict("all-reduce", output, sizes=[16384, 1 << 30]).times
    assert small.seconds == pytest.approx(60e-6, rel=0.1)
    (usual,) = hk.predict("all-reduce", network, sizes=[1 << 30], profile=own).times
    assert large.seconds == pytest.approx(usual.seconds, rel=0.03)


def test_what_two_all_reduces_narrow_is_said_of_all_reduces(
    capsys: pytest.CaptureFixture[str],
) -> None:
    box = evidence().errors["one box", "below 1 MiB"]
    near = evidence().narrowed(box)
    assert near is not None
    assert 1 < near.factor < box.factor
    # What gets no less is not said to narrow anything.
    assert evidence().narrowed(evidence().errors["other machines", "below 1 MiB"]) is None
    for kind, is_said in (("all-reduce", True), ("all-to-all", False)):
        assert run(["predict", kind, "--topology", "hgx_h200_8gpu", "--size", "64KiB"]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert (f"two all-reduces: to {near.factor:.2f}" in printed) == is_said


def test_the_command_names_programs_and_counts_what_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["calibrate", "--advise", "--topology", "dgx_a100_1box"]
    assert run([*asked, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["measurements"]
    assert len(first) == 5
    shares = [each["large_share"] for each in first]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.6
    given = table(tmp_path, "all_reduce,8,1,8192,30.0")
    assert run([*asked, given]) == 0
    printed = capsys.readouterr()
    assert "all_reduce_perf -b 8192 " not in printed.out
    assert "1 time given" in printed.err + printed.out


@pytest.mark.parametrize(
    ("rows", "topology", "words"),
    [
        # A tenth of the times and more lie above twice what any constants give.
        (
            [
                f"all_reduce,8,1,{1 << power},{30 + (1 << power) / 2e5 * (9 if power % 3 else 1)}"
                for power in range(13, 31)
            ],
            "dgx_a100_1box",
            ("no constants explain its times", "hocket measured"),
        ),
        ([], "dgx_a100_1box", ("there is no file", "--advise")),
    ],
)
def test_what_is_no_calibration_is_refused(
    rows: list[str],
    topology: str,
    words: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "mine.yml"
    given = [table(tmp_path, *rows)] if rows else []
    assert run(["calibrate", *given, "--topology", topology, "-o", str(output)]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert len(said.splitlines()) == 1, said
    assert not output.exists()


def test_advice_needs_the_classes(capsys: pytest.CaptureFixture[str]) -> None:
    for topology, words in (
        ("hgx_h100_2box_rails", "what joins its nodes"),
        ("ring:16@10GB/s,1us", "no class has such links"),
    ):
        assert run(["calibrate", "--advise", "--topology", topology]) == 2
        assert words in capsys.readouterr().err


def test_times_of_unlike_machines_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for device in ("NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"):
        file = Path(table(tmp_path, "all_reduce,8,1,8192,30.0", name=device.split()[1]))
        file.write_text(f"# device: {device}\n{file.read_text()}")
        files.append(str(file))
    assert run(["calibrate", *files, "--topology", "dgx_a100_1box"]) == 2
    said = capsys.readouterr().err
    assert "of unlike machines: NVIDIA A100" in said
    assert "H100" in said
