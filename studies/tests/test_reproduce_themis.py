"""``hocket reproduce themis``: bands about what Themis (ISCA 2022, section 6.1) published."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hocket.cli import run

PNG = b"\x89PNG\r\n\x1a\n"
PICTURES = ["fig8.png", "fig9.png", "fig10.png", "fig11.png", "overview.png"]
DOCS = Path(__file__).parents[2] / "docs" / "img" / "themis.png"

Reproduce = Callable[..., tuple[int, str, str]]


@pytest.fixture
def reproduce(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Reproduce:
    """Run the command in an empty folder: its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def call(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["reproduce", "themis", *argv])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """What the command prints as JSON, and the folder with its pictures."""
    folder = tmp_path_factory.mktemp("figures") / "not" / "there"
    with pytest.MonkeyPatch.context() as patch:
        printed: list[Any] = []
        patch.setattr(
            "hocket.cli.options.print_result",
            lambda what, value: printed.append({"format": f"hocket.{what}", "version": 1, **value}),
        )
        argv = ["reproduce", "themis", "--figures", "8,9,10,11", "--no-optimal", "--json"]
        assert run([*argv, "-o", str(folder)]) == 0
    return json.loads(json.dumps(printed[0])), folder


def near(value: float, middle: float, most: float) -> bool:
    return abs(value - middle) <= most


def test_mean_utilization_is_as_published(figures: tuple[Any, Path]) -> None:
    value = figures[0]["utilization"]
    assert list(value) == ["hierarchical", "themis-fifo", "themis"]
    assert near(value["hierarchical"]["mean"], 0.5631, 0.015)
    assert near(value["themis-fifo"]["mean"], 0.8767, 0.04)
    assert near(value["themis"]["mean"], 0.9514, 0.015)
    published = {name: each["published_mean"] for name, each in value.items()}
    assert published == {"hierarchical": 0.5631, "themis-fifo": 0.8767, "themis": 0.9514}
    for each in value.values():
        assert each["mean"] == pytest.approx(sum(each["networks"].values()) / 6)


def test_speedups_are_as_published(figures: tuple[Any, Path]) -> None:
    value = figures[0]["speedups"]
    assert near(value["themis-fifo"]["mean"], 1.58, 0.08)
    assert near(value["themis"]["mean"], 1.72, 0.06)
    assert near(value["themis"]["max"], 2.70, 0.12)
    assert value["themis"]["mean"] < value["ideal"]["mean"]


def test_more_chunks_help_themis_and_not_the_baseline(figures: tuple[Any, Path]) -> None:
    value = figures[0]["chunk_sweep"]["utilization"]
    flat = list(value["hierarchical"].values())
    assert max(flat) - min(flat) <= 0.01
    themis = {int(chunks): share for chunks, share in value["themis"].items()}
    assert list(themis) == [4, 8, 16, 32, 64, 128, 256, 512]
    assert near(themis[4], 0.4858, 0.06)
    assert near(themis[512], 0.9118, 0.06)
    assert all(share >= themis[8] for chunks, share in themis.items() if chunks >= 16)


def test_cases_agree_with_each_other(figures: tuple[Any, Path]) -> None:
    cases = figures[0]["cases"]
    assert len(cases) == 6 * 5 * 3
    for case in cases:
        assert case["chunks"] == 64
        assert case["ideal_ps"] <= case["time_ps"]
        assert case["utilization"] == pytest.approx(case["ideal_ps"] / case["time_ps"], rel=1e-6)


def test_activity_shows_what_the_baseline_leaves_idle(figures: tuple[Any, Path]) -> None:
    activity = figures[0]["activity"]
    assert activity["period_ps"] == 100_000_000
    baseline = activity["schedulers"]["hierarchical"]["shares"]
    assert [len(row) for row in baseline] == [188] * 3  # 18.75 ms
    assert min(baseline[0][:-1]) > 0.99
    assert max(baseline[1]) < 0.5
    themis = activity["schedulers"]["themis"]["shares"]
    assert all(min(row[:50]) > 0.99 for row in themis)


def test_pictures_are_there(figures: tuple[Any, Path]) -> None:
    value, folder = figures
    assert value["pictures"] == [str(folder / name) for name in PICTURES]
    assert {path.name for path in folder.iterdir()} == {*PICTURES, "themis.json"}
    for path in [*folder.glob("*.png"), DOCS]:
        assert path.read_bytes().startswith(PNG)
        assert path.stat().st_size < 120_000


def test_tables_say_what_was_published(reproduce: Reproduce, tmp_path: Path) -> None:
    code, out, _ = reproduce("--no-optimal", "--figure", "10", "--figure", "11")
    assert code == 0
    assert "56.31%" in out
    assert "91.2%" in out
    assert "published" in out
    assert "figure 8" not in out
    assert "multirail-optimal" not in out
    assert "reproduce-themis: fig10.png, fig11.png, overview.png" in out
    assert max(map(len, out.splitlines())) <= 140
    drawn = sorted(path.name for path in (tmp_path / "reproduce-themis").iterdir())
    assert drawn == ["fig10.png", "fig11.png", "overview.png", "themis.json"]


def test_two_runs_are_alike(reproduce: Reproduce, tmp_path: Path) -> None:
    argv = ["--no-optimal", "--json", "--figure", "9"]
    first = reproduce(*argv)
    picture = (tmp_path / "reproduce-themis" / "fig9.png").read_bytes()
    assert reproduce(*argv) == first
    assert (tmp_path / "reproduce-themis" / "fig9.png").read_bytes() == picture
    assert set(json.loads(first[1])) >= {"activity", "pictures"}
    assert "cases" not in json.loads(first[1])


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--figure", "13"], ["--figure", "'13'", "4, 8, 9, 10, 11 or 12"]),
        (["--figure", "eight"], ["--figure", "'eight'", "4, 8, 9, 10, 11 or 12"]),
        (["--output", "taken"], ["--output", "'taken'", "is a file"]),
        (["--output", "taken/below"], ["--output", "taken/below", "cannot be made"]),
        (["--bogus"], ["--bogus"]),
    ],
)
def test_bad_input_is_one_line(
    reproduce: Reproduce, tmp_path: Path, argv: list[str], words: list[str]
) -> None:
    (tmp_path / "taken").write_text("mine")
    code, out, err = reproduce("--no-optimal", *argv)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert all(word in err for word in words), err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.long
def test_everything_at_once(reproduce: Reproduce) -> None:
    code, out, _ = reproduce("--json")
    assert code == 0
    value = json.loads(out)
    assert value["utilization"]["multirail-optimal"]["mean"] >= 0.985
    assert len(value["activity"]["schedulers"]) == 4
    best = {(c["network"], c["size_bytes"]): c["time_ps"] for c in value["cases"][3::4]}
    assert len(best) == 30
    for case in value["cases"]:
        assert best[case["network"], case["size_bytes"]] <= case["time_ps"]
