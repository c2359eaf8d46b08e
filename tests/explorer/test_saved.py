"""Pages of what is saved: runs, iterations and sweeps, and what of them is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import hocket as hk
from hocket import training
from hocket.cli import run as command
from hocket.explorer import write_page

SWEEP = """
command: simulate
set: {collective: all-reduce}
grid:
  topology: ["ring:4@25GB/s,1us", "fc:4@25GB/s,1us"]
  algorithm: [ring, direct]
  size: [64 KB, 1 MB, 16 MB]
  chunks: [1, 4]
costs: {link: {each: 10, bandwidth: 2 per GB/s}}
"""


def made(fidelity: str, **options: object) -> hk.Run:
    plan = hk.plan("all-reduce", hk.topology.load("dgx1_v100"), size="1MB", algorithm="ring")
    return hk.simulate(plan, fidelity=fidelity, keep_services=True, **options)


@pytest.mark.parametrize(
    ("fidelity", "options"),
    [
        ("link", {"switching": "cut-through", "latency_model": "occupying"}),
        ("flow", {"flow_rate": "5 GB/s"}),
        ("packet", {"flit_size": 256, "clock": "2 GHz"}),
    ],
)
def test_a_saved_run_has_the_page_of_the_run(fidelity: str, options: dict, tmp_path: Path) -> None:
    run = made(fidelity, **options)
    run.save(tmp_path / "run.parquet")
    again = hk.Run.load(tmp_path / "run.parquet")
    assert again.options == run.options
    write_page(run, tmp_path / "one.html")
    assert command(["show", str(tmp_path / "run.parquet"), "-o", str(tmp_path / "two.html")]) == 0
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    assert hk.Plan.load(tmp_path / "run.parquet").verify().to_dict() == run.plan.to_dict()


def test_a_run_that_is_not_its_plans_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made("link").save("run.parquet")
    table = pq.read_table("run.parquet")
    times = table.column("end_ps").to_numpy() + 1
    place = table.schema.get_field_index("end_ps")
    pq.write_table(table.set_column(place, "end_ps", [times]), "changed.parquet")
    old = table.select(["chunk", "src", "dst", "start_ps", "end_ps"])
    run = {b"hocket.run": table.schema.metadata[b"hocket.run"]}
    pq.write_table(old.replace_schema_metadata(run), "old.parquet")
    for argv, says in (
        (["changed.parquet"], "its times are not those that its plan takes"),
        (["old.parquet"], "older version, without its plan"),
        (["run.parquet", "--fidelity", "flow"], "says how it was simulated"),
    ):
        assert command(["show", *argv, "-o", "page.html"]) == 2
        error = capsys.readouterr().err.strip()
        assert len(error.splitlines()) == 1
        assert says in error
        assert not Path("page.html").exists()
    hk.plan("all-reduce", hk.topology.load("ring:4@1GB/s,1us"), size=64, algorithm="ring").save(
        "p.parquet"
    )
    with pytest.raises(hk.SpecError, match="is not a run"):
        hk.Run.load("p.parquet")


def test_a_saved_iteration_has_its_spans(
    tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    argv = ["train", "alexnet", "-t", "torus:2x2@25GB/s,1us", "--npu", "a100", "-p", "dp=2,pp=2"]
    assert command([*argv, "-o", "run.json", "--json"]) == 0
    printed, saved = json.loads(capsys.readouterr().out), json.loads(Path("run.json").read_text())
    spans = saved.pop("spans")
    assert saved == {key: value for key, value in printed.items() if key in saved}
    network = hk.topology.load("torus:2x2@25GB/s,1us")
    run = training.train("alexnet", network, npu="a100", parallel=training.Parallel(dp=2, pp=2))
    expected = run.timeline()
    assert spans["start_ps"] == [span.start_ps for span in expected]
    assert command(["show", "run.json", "-o", "page.html"]) == 0
    open_tab = tab().open(tmp_path / "page.html")
    for name in ("start", "exposed"):
        own = [getattr(span, f"{name}_ps") for span in expected]
        assert open_tab(f"[...page.columns[0].{name}]") == own
    assert open_tab("page.head.runs[0].lanes.length") == len({span[:2] for span in expected})
    assert open_tab("page.head.note") is None


@pytest.mark.parametrize(
    "change",
    [
        {"spans": []},
        {"spans": {"stage": [0]}},
        {"spans": "all"},
    ],
)
def test_an_iteration_with_wrong_spans_is_refused(
    change: dict, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = hk.topology.load("ring:4@25GB/s,1us")
    training.train("alexnet", network, npu="a100").save(tmp_path / "run.json")
    saved = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(saved | change))
    capsys.readouterr()
    assert command(["show", str(tmp_path / "run.json"), "-o", str(tmp_path / "p.html")]) == 2
    assert "not what hocket prints" in capsys.readouterr().err
    assert not (tmp_path / "p.html").exists()


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "sweep.yml").write_text(SWEEP)
    hk.run_sweep(folder / "sweep.yml", folder / "results", workers=1)
    return folder


def test_a_sweep_has_lines_of_each_network_and_its_front(tab, study: Path) -> None:
    page = study / "page.html"
    assert command(["sweep", "report", str(study / "results"), "--page", str(page)]) == 0
    rows = pq.read_table(study / "results" / "rows").to_pylist()
    open_tab = tab().open(page)
    networks = ["ring:4@25GB/s,1us", "fc:4@25GB/s,1us"]
    assert open_tab("page.head.groups.map((each) => each.name)") == networks
    for number, network in enumerate(networks):
        open_tab.page.select_option("#group", str(number))
        assert open_tab("document.querySelectorAll('#chart [data-line]').length") == 3
        for name in ("ring", "direct"):
            own = [row for row in rows if (row["topology"], row["algorithm"]) == (network, name)]
            least = [
                [size, min(row["time_ps"] for row in own if row["size"] == size)]
                for size in sorted({row["size"] for row in own})
            ]
            found = open_tab(
                "(name) => page.head.lines.find((l) => l.name === name).points.map((p) => p.slice(0, 2))",
                name,
            )
            assert found == least
        tops = open_tab(
            """['bound', 'ring', 'direct'].map((name) =>
                 document.querySelector(`#chart [data-line=${name}]`).getBBox().y)"""
        )
        assert tops[0] == min(tops)
    open_tab.page.select_option("#task", "1")
    size = sorted({row["size"] for row in rows})[1]
    own = [row for row in rows if row["size"] == size]
    best = [
        row
        for row in own
        if not any(
            (each["cost"], each["time_ps"]) != (row["cost"], row["time_ps"])
            and each["cost"] <= row["cost"]
            and each["time_ps"] <= row["time_ps"]
            for each in own
        )
    ]
    wanted = sorted({(row["cost"], row["time_ps"]) for row in best})
    assert open_tab("document.querySelectorAll('#front [data-front]').length") == len(wanted)
    assert open_tab("document.querySelectorAll('#priced tbody tr').length") == len(wanted)
    assert open_tab("document.querySelectorAll('#front [data-point]').length") == 2
    assert "group=1" in open_tab.hash
    again = tab().open(page, open_tab.hash)
    assert again("[page.state.group, page.state.task, page.sizes.length]") == [1, 1, 3]


def test_a_sweeps_folder_is_explored(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["show", str(study / "results"), "-o", str(tmp_path / "a.html")]) == 0
    argv = ["sweep", "report", str(study / "results"), "--page", str(tmp_path / "b.html")]
    assert command(argv) == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    (tmp_path / "none").mkdir()
    capsys.readouterr()
    for folders in ([str(tmp_path / "none")], [str(study / "results")] * 2):
        assert command(["show", *folders, "-o", str(tmp_path / "c.html")]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
        assert not (tmp_path / "c.html").exists()


def test_a_sweep_without_sizes_or_costs_has_nothing_to_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = 'command: train\nset: {workload: alexnet, npu: a100}\ngrid: {topology: ["ring:2@9GB/s,1us"]}\n'
    (tmp_path / "sweep.yml").write_text(text)
    hk.run_sweep(tmp_path / "sweep.yml", tmp_path / "results", workers=1)
    argv = ["sweep", "report", str(tmp_path / "results"), "--page", str(tmp_path / "p.html")]
    capsys.readouterr()
    assert command(argv) == 2
    assert "neither bus bandwidths of sizes nor costs" in capsys.readouterr().err
    assert not (tmp_path / "p.html").exists()
