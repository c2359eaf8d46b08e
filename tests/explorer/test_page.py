"""Pages hold what the run did, and nothing that a page could trip over."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket.cli import run as command
from hocket.explorer import encode_runs, write_page
from hocket.explorer.columns import pack, unpack
from hocket.simulation.run import Run

ROOT = Path(__file__).parents[2]
SHELL = ROOT / "python" / "hocket" / "explorer" / "page.html"


def made(algorithm: str = "ring", network: str = "dgx1_v100", kind: str = "all-reduce") -> Run:
    plan = hk.plan(kind, hk.topology.load(network), size="1MB", algorithm=algorithm)
    return hk.simulate(plan, keep_services=True)


def slots(page: Path) -> tuple[dict, dict[str, np.ndarray], dict[str, np.ndarray]]:
    text = page.read_text()
    found = {
        name: re.search(rf'id="{name}">(.*?)</script>', text, re.DOTALL)[1]
        for name in ("header", "first", "rest")
    }
    header = json.loads(found["header"])
    first, both = (base64.b64decode(found[name]) for name in ("first", "rest"))
    rest, late = both[: header["rest_bytes"]], both[header["rest_bytes"] :]
    moved = unpack(header["rest"], rest) | unpack(header["late"], late) if header["rest"] else {}
    return header, unpack(header["first"], first), moved


def check_transfers(run: Run, header: dict, rest: dict[str, np.ndarray], i: int = 0) -> None:
    """Everything of the run's transfers comes out of the page, bit for bit."""
    scene, moved = header["scenes"][i], run.plan.transfers
    column = {name.split(".", 1)[1]: each for name, each in rest.items() if name[1] == str(i)}
    unit = scene["unit_ps"]
    assert (column["start"] * unit == run.start_ps).all()
    assert ((column["start"] + column["length"]) * unit == run.end_ps).all()
    assert (column["chunk"] == moved.chunk).all()
    assert (column["count"] == moved.chunk_count).all()
    assert (column["op"] == moved.op).all()
    wait = np.full(len(moved), run.plan.NO_WAIT, np.int64)
    has = column["wait"] != 0
    wait[has] = np.arange(len(moved))[has] - column["wait"][has]
    grouped = column["group"] != 0
    wait[grouped] = (1 << 31) + column["group"][grouped] - 1
    assert (wait == moved.wait).all()
    core = run.core
    if scene["single"]:
        links = column["link"]
        left = run.end_ps - column["tail"].astype(np.uint64) * np.uint64(unit)
        assert (run.topology.link_src[links] == moved.src).all()
        assert (run.topology.link_dst[links] == moved.dst).all()
        stays = np.column_stack([np.arange(len(moved)), links, run.start_ps, left]).astype(np.int64)
    else:
        assert (column["from"] == moved.src).all()
        assert (column["to"] == moved.dst).all()
        transfer = np.repeat(np.arange(len(moved)), column["hops"])
        start = (column["stay_start"] + column["start"][transfer]) * unit
        stays = np.column_stack(
            [transfer, column["stay_link"], start, start + column["stay_length"] * unit]
        )
    kept = (
        core.service_transfer,
        core.service_link,
        core.service_start_ps,
        core.service_end_ps,
    )
    expected = np.column_stack([each.astype(np.int64) for each in kept])
    assert (
        np.sort(stays.view("i8,i8,i8,i8"), axis=0)
        == np.sort(np.ascontiguousarray(expected).view("i8,i8,i8,i8"), axis=0)
    ).all()


@pytest.mark.parametrize(
    ("algorithm", "network", "kind"),
    [
        ("ring", "dgx1_v100", "all-reduce"),
        ("greedy", "dgx1_v100", "all-reduce"),
        ("greedy", "azure_ndv4", "all-gather"),
        ("hierarchical", "Ring_FC_SW:2x8x4@25GB/s,700ns", "all-reduce"),
        ("trees", "mesh:3x3@25GB/s,700ns", "all-reduce"),
        ("flows", "torus:2x4@25GB/s,700ns", "all-to-all"),
    ],
)
def test_the_page_holds_the_run(tmp_path: Path, algorithm: str, network: str, kind: str) -> None:
    run = made(algorithm, network, kind)
    write_page(run, tmp_path / "page.html")
    header, first, rest = slots(tmp_path / "page.html")
    check_transfers(run, header, rest)
    scene = header["scenes"][0]
    heat = first["s0.heat"].reshape(run.topology.link_count, scene["bins"])
    exact = run.heat(scene["bins"])
    assert (heat / 255 - exact).min() >= -1e-5, "a use is never rounded down"
    assert (heat / 255 - exact).max() <= 1 / 255
    assert (first["s0.busy"] == run.link_busy_ps).all()
    assert (first["s0.bytes"] == run.core.link_bytes).all()
    names = bytes(first["n0.names"]).decode().split("\n")
    assert names == list(run.topology.device_names)
    assert scene["bound_ps"] == run.lower_bound.time_ps
    text = (tmp_path / "page.html").read_text()
    assert not re.findall(r"(?:src|href)=[\"']?https?:", text)


def test_sums_and_copies_of_a_bin_are_those_of_its_services(tmp_path: Path) -> None:
    run = made("greedy")
    write_page(run, tmp_path / "page.html")
    header, first, _ = slots(tmp_path / "page.html")
    bins = header["scenes"][0]["bins"]
    phases = first["s0.phases"].reshape(-1, bins)
    width, core, op = run.time_ps / bins, run.core, run.plan.transfers.op
    for link in (0, 7, 31):
        own = core.service_link == link
        for bin_of in range(0, bins, 37):
            low, high = bin_of * width, (bin_of + 1) * width
            start, end = core.service_start_ps[own], core.service_end_ps[own]
            part = np.maximum(0, np.minimum(end, high) - np.maximum(start, low))
            if part.sum() > 1e-6 * width:
                sums = part[op[core.service_transfer[own]] == 1].sum() / part.sum()
                assert abs(phases[link, bin_of] - 15 * sums) <= 0.51


def test_runs_beside_one_another_share_a_network(tmp_path: Path) -> None:
    healthy = hk.topology.load("dgx1_v100")
    failed = healthy.without(links=["gpu0,gpu1"])
    runs = [
        hk.simulate(hk.plan("all-reduce", network, size="1MB", algorithm=how), keep_services=True)
        for network, how in ((healthy, "ring"), (healthy, "greedy"), (failed, "greedy"))
    ]
    write_page(runs, tmp_path / "page.html", titles=["a", "b", "c"])
    header, _, rest = slots(tmp_path / "page.html")
    assert [scene["network"] for scene in header["scenes"]] == [0, 0, 1]
    assert [scene["title"] for scene in header["scenes"]] == ["a", "b", "c"]
    for i, run in enumerate(runs):
        check_transfers(run, header, rest, i)


def test_the_same_run_gives_the_same_page() -> None:
    assert encode_runs([made()]) == encode_runs([made()])


def test_a_page_that_would_be_too_large_leaves_transfers_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hocket.explorer.page.MOST_BYTES", 100)
    run = made()
    note = write_page(run, tmp_path / "page.html")
    assert note is not None
    assert f"{len(run.plan):,} transfers are more than a page holds" in note
    header, first, rest = slots(tmp_path / "page.html")
    assert rest == {}
    assert header["note"] == note
    assert len(first["s0.heat"])


def test_names_cannot_end_the_header(tmp_path: Path) -> None:
    name = "</script><!--<script>alert(1)"
    network = hk.topology.load("ring:4@25GB/s,700ns").with_name(name)
    plan = hk.plan("all-gather", network, size="1MB", algorithm="ring")
    write_page(hk.simulate(plan, keep_services=True), tmp_path / "page.html")
    header, *_ = slots(tmp_path / "page.html")
    assert header["networks"][0]["name"] == name
    assert "alert(1)</" not in (tmp_path / "page.html").read_text()
    assert "<script>alert" not in (tmp_path / "page.html").read_text()


columns = st.lists(
    st.one_of(
        st.lists(st.integers(-(2**52), 2**52), max_size=40).map(lambda x: np.array(x, np.int64)),
        st.lists(st.integers(0, 2**32 - 1), max_size=40).map(lambda x: np.array(x, np.uint32)),
        st.lists(st.integers(0, 255), max_size=40).map(lambda x: np.array(x, np.uint8)),
    ),
    max_size=4,
)


@settings(deadline=None, max_examples=200)
@given(columns)
def test_any_column_comes_back(given_columns: list[np.ndarray]) -> None:
    named = {str(i): column for i, column in enumerate(given_columns)}
    found = unpack(*pack(named))
    assert list(found) == list(named)
    for name, column in named.items():
        assert (found[name] == column.astype(np.int64)).all()


def test_the_shell_is_small() -> None:
    assert len(SHELL.read_bytes()) <= 100_000


def test_the_shipped_page_is_what_its_sources_build(tmp_path: Path) -> None:
    """Where Node and the builder are (`make page` installs it)."""
    source = ROOT / "explorer"
    if shutil.which("node") is None or not (source / "node_modules" / "esbuild").is_dir():
        pytest.skip("no node, or no explorer/node_modules: `make page` installs what it needs")
    built = tmp_path / "page.html"
    subprocess.run(["node", source / "build.mjs", built], check=True, cwd=source)
    assert built.read_bytes() == SHELL.read_bytes(), "run `make page`"
    subprocess.run(["node", "node_modules/typescript/bin/tsc", "--noEmit"], check=True, cwd=source)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["hello.parquet"], "is not a plan"),
        (["plan.parquet", "-o", "missing/page.html"], "missing"),
        (["plan.parquet", "-o", "plan.parquet"], "name a .png file, or an .html file for a page"),
        (["plan.parquet"] * 5, "5 plans do not fit next to each other"),
        (["plan.parquet", "--title", "a", "--title", "b"], "2 titles for 1 files"),
        (["plan.parquet", "--fidelity", "dimension"], "dimension"),
        (["cut.parquet"], "cut.parquet"),
        (["empty.parquet"], "empty.parquet"),
        (["."], "folder"),
        (["other.json"], "is no result of hocket; give a plan, or what"),
        (["later.json"], "is 'hocket.tomorrow', which has no page"),
        (["broken.json"], "it has no '"),
        (["plan.parquet", "other.json"], "plan.parquet and the .json files do not go on one page"),
        (["broken.json", "--fidelity", "flow"], "says how it was simulated"),
        (["plan.parquet", "-o", "."], "."),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hello.parquet").write_text("hello")
    made().plan.save("plan.parquet")
    plan = Path("plan.parquet").read_bytes()
    Path("cut.parquet").write_bytes(plan[: len(plan) // 2])
    Path("empty.parquet").touch()
    Path("other.json").write_text('{"a": 1}')
    Path("later.json").write_text('{"format": "hocket.tomorrow"}')
    Path("broken.json").write_text('{"format": "hocket.comparison", "version": 1}')
    target = [] if "-o" in arguments else ["-o", "page.html"]
    assert command(["show", *arguments, *target]) == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    assert says in error
    assert not Path("page.html").exists()
    assert Path("plan.parquet").read_bytes() == plan


def test_comparisons_have_the_title_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        command(["compare", "all-gather", "-t", "ring:4@25GB/s,1us", "--size", "1MB", "--json"])
        == 0
    )
    Path("c.json").write_text(capsys.readouterr().out)
    assert command(["show", "c.json", "--title", "My ring", "-o", "page.html"]) == 0
    assert '"title":"My ring"' in Path("page.html").read_text()


def test_several_plans_are_named_by_what_tells_them_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made("ring").plan.save("a.parquet")
    made("greedy").plan.save("b.parquet")
    assert command(["show", "a.parquet", "b.parquet", "-o", "page.html"]) == 0
    header, *_ = slots(Path("page.html"))
    assert [scene["title"] for scene in header["scenes"]] == ["ring", "greedy"]
    assert command(["show", "a.parquet", "a.parquet", "-o", "page.html"]) == 0
    header, *_ = slots(Path("page.html"))
    assert [scene["title"] for scene in header["scenes"]] == ["a (1)", "a (2)"]


def test_other_fidelities_can_be_looked_at(tmp_path: Path) -> None:
    plan = made("ring", "clos:2x4x2@25GB/s,700ns").plan
    for fidelity in ("flow", "packet"):
        run = hk.simulate(plan, fidelity=fidelity, keep_services=True)
        write_page(run, tmp_path / "page.html")
        header, _, rest = slots(tmp_path / "page.html")
        assert header["scenes"][0]["fidelity"] == fidelity
        check_transfers(run, header, rest)
