"""``-q`` and ``-v``, options given twice, and what tables and lines say beside the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from hocket.cli.compare_training import Networks

from .conftest import Hocket

DGX = ("-t", "dgx1_v100", "-s", "1MB")
RING = "name: mine\nbuilder: ring\nnpus: 4\nbandwidth: 25 GB/s\nlatency: 1 us\n"


@pytest.mark.parametrize(
    ("argv", "note"),
    [
        (("compare", "all-reduce", *DGX, "-a", "ring", "-a", "greedy"), None),
        (("compare", "all-reduce", *DGX), "algorithms do not apply here (--why)"),
        (("plan", "all-reduce", *DGX, "-a", "ring"), "not kept: give -o"),
        (("topology", "show", "dgx1_v100"), "source: "),
        (("workload", "show", "gpt3-175b"), "note: "),
        (("train", "alexnet", "-t", "dgx1_v100"), "communication: "),
    ],
)
def test_quiet_leaves_notes_out(hocket: Hocket, argv: tuple[str, ...], note: str | None) -> None:
    told, quiet = hocket(*argv), hocket(*argv, "-q")
    assert quiet.code == 0
    assert set(quiet.out.splitlines()) <= set(told.out.splitlines())
    if note is not None:
        assert note in told.out
        assert note not in quiet.out
    assert hocket(*argv).out == told.out, "quiet once is not quiet for ever"


def test_verbose_says_more(hocket: Hocket) -> None:
    for argv in (
        ("compare", "all-reduce", *DGX),
        ("plan", "all-reduce", *DGX, "-a", "greedy"),
        ("train", "alexnet", "-t", "dgx1_v100"),
        ("topology", "show", "dgx1_v100"),
    ):
        told, more = hocket(*argv), hocket(*argv, "-v")
        assert more.code == 0
        assert len(more.out) > len(told.out)


@pytest.mark.parametrize(
    ("argv", "option"),
    [
        (("compare", "all-reduce", *DGX, "-t", "dgx2_1box"), "--topology"),
        (("compare", "all-reduce", *DGX, "--topology=dgx2_1box"), "--topology"),
        (("plan", "all-reduce", *DGX, "-s", "2MB"), "--size"),
        (("train", "alexnet", "-t", "dgx1_v100", "--npu", "a100", "--npu", "h100"), "--npu"),
    ],
)
def test_an_option_that_is_taken_once(hocket: Hocket, argv: tuple[str, ...], option: str) -> None:
    result = hocket(*argv)
    assert result.code == 2
    assert result.err == f"hocket: {option}: is given 2 times, and taken once; give one\n"


def test_what_has_failed_is_shown(hocket: Hocket) -> None:
    argv = ("topology", "show", "dgx1_v100", "--failed", "gpu0,gpu1", "--failed", "gpu7")
    assert "gpu7 gpu0,gpu1" in hocket(*argv).out
    value = hocket(*argv, "--json").json()
    assert (value["failed_nodes"], value["failed_links"]) == (["gpu7"], [["gpu0", "gpu1"]])
    assert "failed" not in hocket("topology", "show", "dgx1_v100").out


def test_failures_of_several_sizes(hocket: Hocket) -> None:
    argv = (
        "topology",
        "advise",
        "--failures",
        "all-reduce",
        "-t",
        "ring:4@25GB/s,1us",
        "-a",
        "ring",
    )
    result = hocket(*argv, "-s", "8kB,1MB")
    assert (result.code, result.err) == (0, "")
    rows = [line for line in result.out.splitlines() if line.startswith("│")]
    assert {row.split("│")[1].strip() for row in rows} == {"8 kB", "1 MB"}
    assert "1 MB, without failures: " in result.out
    assert hocket(*argv, "-s", "8kB,1MB", "--csv").out.startswith("size_bytes,part,names,")
    assert (
        hocket(*argv).err == "hocket: --size: there is none; give -s 256MB, or --sizes 8K:1G:x4\n"
    )


def test_a_plan_is_written_as_parquet(hocket: Hocket, folder: Path) -> None:
    result = hocket("plan", "all-reduce", *DGX, "-o", "p.csv")
    assert result.code == 2
    assert result.err.startswith(
        "hocket: --output: p.csv: a plan is written as Parquet; name p.parquet"
    )
    assert not list(folder.iterdir())


def test_a_network_is_called_the_same_whatever_it_is_compared_with(
    hocket: Hocket, folder: Path
) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.yml").write_text(RING)
    assert list(Networks(["a.yml"]).build()) == ["mine"]
    assert list(Networks(["a.yml", "dgx1_v100"]).build()) == ["mine", "dgx1_v100"]
    result = hocket("train", "--compare", "alexnet", "-t", "a.yml", "-t", "b.yml")
    assert result.code == 2
    assert "two networks are called 'mine'; give one another name, as NAME=NETWORK" in result.err


@pytest.mark.slow
def test_a_search_says_so_without_a_terminal(hocket: Hocket) -> None:
    argv = ("train", "--compare", "alexnet", "-t", "Ring_SW:2x4@10GB/s,1us", "--search", "1")
    assert hocket(*argv).err == "hocket: --search tries every split of Ring_SW:2x4@10GB/s,1us\n"
    assert hocket(*argv, "-q").err == ""


@pytest.mark.slow
def test_the_plot_heeds_the_baseline(hocket: Hocket, folder: Path) -> None:
    argv = ("train", "--compare", "alexnet", "-t", "ring:4@25GB/s,1us", "-t", "dgx1_v100")
    assert hocket(*argv, "--plot", "a.svg").code == 0
    assert hocket(*argv, "--plot", "b.svg", "--baseline", "dgx1_v100").code == 0
    assert (folder / "a.svg").read_bytes() != (folder / "b.svg").read_bytes()
