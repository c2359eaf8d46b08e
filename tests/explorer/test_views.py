"""Sweeps, iterations, jobs and the live page in a real browser."""

from __future__ import annotations

import contextlib
import io
import json
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.profiles.test_logs import FORMS, PREFIXES, Run, read, with_prefix

import hocket as hk
from hocket import routing, training
from hocket.cli import run as command
from hocket.explorer.page import fill
from hocket.explorer.request import PageRequest
from hocket.explorer.serve import Server
from hocket.explorer.sizes import sweep_page
from hocket.explorer.tracks import write_cluster, write_training

LOG = """# nThread 1 nGpus 8 minBytes 65536 maxBytes 16777216
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
       65536         16384     float     sum      -1    23.10    2.84    4.96      0    22.80    2.87    5.03      0
     1048576        262144     float     sum      -1    41.00   25.57   44.76      0    40.50   25.89   45.31    N/A
    16777216       4194304     float     sum      -1    230.5   72.79   127.4      0    229.1   73.23   128.2      0
# Avg bus bandwidth    : 59.3
"""  # noqa: E501 - as nccl-tests writes it
GATHER = "  1048576   262144   float   none   -1   41   25.57   22.4   0   40   26.2   22.9   0\n"


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list]:
    argv = ["compare", "all-reduce", "-t", "dgx1_v100", "--sizes", "64K:16M:x16", "--json"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert command(argv) == 0
    found = json.loads(printed.getvalue())["comparisons"]
    path = tmp_path_factory.mktemp("sweep") / "sweep.html"
    path.write_text(fill(sweep_page(found)))
    return path, found


def test_a_sweep_has_its_algorithms_and_the_bound(tab, sweep) -> None:
    path, found = sweep
    open_tab = tab().open(path)
    lines = open_tab(
        "[...document.querySelectorAll('#chart [data-line]')].map((e) => e.dataset.line)"
    )
    names = {row["algorithm"] for each in found for row in each["algorithms"]}
    assert set(lines) == {*names, "bound", "nccl"}
    picks = [each["nccl"] for each in found]
    told = [f"{pick['algorithm']} with {pick['protocol']}" for pick in picks]
    assert open_tab("page.head.nccl.map((e) => e.pick)") == told
    for i, each in enumerate(found):
        for row in each["algorithms"]:
            point = open_tab(
                "([name, i]) => page.head.lines.find((l) => l.name === name).points[i]",
                [row["algorithm"], i],
            )
            assert point[1:] == [row["time_ps"], row["busbw_bytes_per_s"]]
        bus = open_tab(f"page.head.bound[{i}][2]")
        best = each["algorithms"][0]
        assert bus == pytest.approx(
            best["busbw_bytes_per_s"] * best["time_ps"] / each["bound"]["time_ps"]
        )
    # The bound is on top.
    tops = open_tab(
        """['bound', 'ring', 'greedy', 'direct'].map((name) =>
             document.querySelector(`#chart [data-line=${name}]`).getBBox().y)"""
    )
    assert tops[0] == min(tops)


def test_a_sweeps_table_follows_keys_and_clicks(tab, sweep) -> None:
    path, found = sweep
    open_tab = tab().open(path)
    open_tab.page.keyboard.press("ArrowRight")
    assert open_tab("page.state.size") == 1 << 20
    assert "At 1 MiB" in open_tab("document.querySelector('#panel caption').textContent")
    open_tab.page.locator("#panel tbody tr", has_text="greedy").click()
    assert open_tab("document.querySelector('[data-line=greedy]')") is None
    open_tab.page.select_option("#y", "time")
    again = tab().open(path, open_tab.hash)
    assert again("page.state.hide") == ["greedy"]
    assert again("page.state.y") == "time"
    assert len(found) == 3


def test_logs_of_nccl_tests_become_points(tab, sweep, tmp_path: Path) -> None:
    path, _ = sweep
    open_tab = tab().open(path)
    (tmp_path / "log.txt").write_text(LOG)
    open_tab.page.set_input_files("#file", tmp_path / "log.txt")
    open_tab.until("page.measured.length === 2")
    assert open_tab("page.measured[0].points") == [
        [65536, 23.10e6, pytest.approx(4.96e9)],
        [1048576, 41.00e6, pytest.approx(44.76e9)],
        [16777216, 230.5e6, pytest.approx(127.4e9)],
    ]
    assert open_tab("page.measured[1].points[1]") == [1048576, 40.5e6, pytest.approx(45.31e9)]
    assert open_tab("document.querySelectorAll('[data-measured]').length") == 6
    open_tab(
        """(text) => {
          const dataTransfer = new DataTransfer();
          dataTransfer.setData('text/plain', text);
          const how = {dataTransfer, bubbles: true, cancelable: true};
          document.body.dispatchEvent(new DragEvent('drop', how));
        }""",
        GATHER,
    )
    assert open_tab("page.measured[2].points") == [[1048576, 41e6, pytest.approx(22.4e9)]]
    open_tab(
        """() => { const data = new DataTransfer(); data.setData('text/plain', 'hello');
        window.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data})); }"""
    )
    assert "no line of nccl-tests" in open_tab("document.querySelector('#said').textContent")
    assert open_tab("page.measured.length") == 4


def test_the_page_reads_logs_as_the_command_line_does(tab, sweep) -> None:
    """Behind any prefix and in any form; what ran without MPI, or was wrong, is left out."""
    path, _ = sweep
    open_tab = tab().open(path)
    plain = sorted(name for name in PREFIXES if "JSON" not in name)
    for i, prefix in enumerate(plain):
        lines = with_prefix(Run("all_reduce", form=FORMS[i % len(FORMS)]).lines(), prefix)
        rows = read(lines)
        points = open_tab(
            """(text) => { page.measured.length = 0; page.add("log", text);
            return page.measured.map((each) => each.points.map((point) => point.slice(0, 2))); }""",
            "\n".join(lines),
        )
        told = [
            [[row.size, pytest.approx(row.seconds * 1e12)] for row in rows.only(in_place=each)]
            for each in (False, True)
        ]
        assert points == told, prefix
    for old, new, said in (
        (
            "20.39      0",
            "0.00      0",
            "1 left out with a busbw of 0: build nccl-tests with MPI=1",
        ),
        ("20.39      0", "20.39  1.5e+06", "1 left out with wrong results"),
    ):
        text = "\n".join(Run("all_reduce").lines())
        assert old in text
        open_tab("(text) => page.add('log', text)", text.replace(old, new))
        assert said in open_tab("document.querySelector('#said').textContent")


@pytest.fixture(scope="session")
def iteration(tmp_path_factory: pytest.TempPathFactory):
    network = hk.topology.load("torus:4x4@25GB/s,700ns")
    run = training.train("resnet50", network, parallel=training.Parallel(dp=4, pp=4), npu="a100")
    path = tmp_path_factory.mktemp("iteration") / "train.html"
    write_training([run], path)
    return path, run


def test_an_iteration_has_its_spans_and_what_is_exposed(tab, iteration) -> None:
    path, run = iteration
    open_tab = tab().open(path)
    spans = run.timeline()
    assert open_tab("page.columns[0].lane.length") == len(spans)
    for name, expected in (
        ("start", [span.start_ps for span in spans]),
        ("length", [span.end_ps - span.start_ps for span in spans]),
        ("exposed", [span.exposed_ps for span in spans]),
    ):
        assert open_tab(f"[...page.columns[0].{name}]") == expected
    longest = max(range(len(spans)), key=lambda i: spans[i].end_ps - spans[i].start_ps)
    lane = open_tab(f"page.columns[0].lane[{longest}]")
    middle = (spans[longest].start_ps + spans[longest].end_ps) / 2 / run.total_ps
    box = open_tab.page.locator(".lanes canvas").bounding_box()
    x = box["x"] + 150 + middle * (box["width"] - 152)
    open_tab.page.mouse.click(x, box["y"] + lane * 19 + 9)
    assert open_tab("page.state.span") == longest
    assert spans[longest].name in open_tab("document.querySelector('#hover').textContent")
    assert f"span={longest}" in open_tab.hash
    chosen = open_tab("document.querySelector('#panel tr.chosen').textContent")
    assert spans[longest].name in chosen
    bars = open_tab("page.head.runs[0].bars")
    assert sum(ps for _, ps in bars) == pytest.approx(run.time_ps, rel=1e-6)
    open_tab.page.keyboard.press("+")
    assert open_tab("page.state.w") is not None
    again = tab().open(path, open_tab.hash)
    assert again("page.state.w") == open_tab("page.state.w.map(Math.round)")


def test_jobs_before_and_after_a_scheme(tab, tmp_path: Path) -> None:
    fabric = routing.cluster("clos:4x8", hosts_per_tor=2, gpus_per_host=4, nics_per_host=4)
    text = (
        "seed: 1\ndefaults: {iterations: 3, placement: random-tors}\njobs:\n"
        "  - {name: a, parameters: 7e9, tensor: 4, data: 6, compute: 100 ms}\n"
        "  - {name: b, parameters: 7e9, tensor: 4, data: 6, compute: 70 ms}\n"
    )
    (tmp_path / "jobs.yml").write_text(text)
    jobs = routing.load_jobs(tmp_path / "jobs.yml")
    runs = [
        routing.simulate(fabric, jobs, scheme=name, keep_rates=True) for name in ("ecmp", "greedy")
    ]
    write_cluster(runs, tmp_path / "jobs.html")
    open_tab = tab().open(tmp_path / "jobs.html")
    assert open_tab("document.querySelectorAll('.lanes').length") == 2
    assert open_tab("document.querySelectorAll('.net').length") == 2
    for i, run in enumerate(runs):
        assert open_tab(f"page.head.runs[{i}].title") == run.scheme
        kinds = open_tab(f"page.head.runs[{i}].kinds")
        assert {"compute", "all-reduce"} <= set(kinds)
        count = sum(len(job.iterations) for job in run.jobs)
        own = open_tab(
            """(i) => {
              const {kinds} = page.head.runs[i];
              return [...page.columns[i].kind].filter((k) => kinds[k] === 'all-reduce').length;
            }""",
            i,
        )
        assert own == count
        assert open_tab(f"page.columns[{i}].rate_t.length") == len(run.core.rates)
        assert open_tab(f"[...page.views[{i}].scene.bytes]") == run.link_bytes.tolist()
    assert open_tab("page.total") == max(run.core.time_ps for run in runs)


def test_what_commands_print_has_pages(
    tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    argv = ["train", "alexnet", "-t", "ring:4", "--bandwidth", "25GB/s", "--latency", "1us"]
    assert command([*argv, "--npu", "a100", "--json", "--page", "train.html"]) == 0
    Path("train.json").write_text(capsys.readouterr().out)
    assert command(["show", "train.json", "-o", "page.html"]) == 0
    open_tab = tab().open(tmp_path / "page.html")
    assert open_tab("document.querySelectorAll('[data-bar]').length") > 0
    tab().open(tmp_path / "train.html")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello", "is no result of hocket"),
        ('{"format": "hocket.plan"}', "hocket.plan"),
        ('{"format": "hocket.comparison"}', "not what hocket prints"),
        ('{"format": "hocket.training-run", "breakdown": []}', "not what hocket prints"),
        ('{"format": "hocket.comparisons", "comparisons": []}', "there is no comparison"),
        ("[" * 100_000, "is no result of hocket"),
    ],
)
def test_other_documents_are_refused_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("some.json").write_text(text)
    assert command(["show", "some.json", "-o", "page.html"]) == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    assert says in error
    assert not Path("page.html").exists()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(
        "127.0.0.1", 0, PageRequest(topology="ring:4@25GB/s,700ns", size="1MB"), 300.0
    ) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def asked(
    server: Server, host: str | None = None, path: str = "/", **given: str
) -> tuple[int, str]:
    request = urllib.request.Request(f"{server.url.rstrip('/')}{path}?{urlencode(given)}")
    if host is not None:
        request.add_header("Host", host)
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def header_of(page: str) -> dict:
    return json.loads(re.search(r'id="header">(.*?)</script>', page, re.DOTALL)[1])


def test_the_live_page_plans_what_is_asked_for(server: Server) -> None:
    status, page = asked(server)
    assert status == 200
    assert header_of(page)["scenes"][0]["topology"] == "ring 4"
    status, page = asked(server, topology="dgx1_v100", algorithm="ring, greedy", failed="gpu0,gpu1")
    assert status == 200
    header = header_of(page)
    assert [scene["title"] for scene in header["scenes"]] == ["ring", "greedy"]
    assert header["networks"][0]["links"] == 30
    values = {field["name"]: field["value"] for field in header["form"]}
    assert values["failed"] == "gpu0,gpu1"
    times = {}
    for slow in ("", "gpu0,gpu1=1GB/s"):
        status, page = asked(server, topology="dgx1_v100", algorithm="ring", size="64MB", slow=slow)
        assert status == 200
        times[slow] = header_of(page)["scenes"][0]["time_ps"]
    assert times["gpu0,gpu1=1GB/s"] > 1.5 * times[""]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"topology": "/etc/passwd"}, "neither a shipped machine nor a builder"),
        ({"topology": "own.yml"}, "neither a shipped machine nor a builder"),
        ({"topology": "../own"}, "neither a shipped machine nor a builder"),
        ({"topology": "no_such_machine"}, "no_such_machine"),
        ({"algorithm": "own.py:plan"}, "not one of hocket"),
        ({"algorithm": ""}, "there is none"),
        ({"algorithms": "ring"}, "did you mean"),
        ({"network": "dgx1_v100"}, "the form has no 'network'"),
        ({"topology": "torus:4x4"}, "write it behind @"),
        ({f"x{i}": "1" for i in range(30)}, "too many fields"),
        ({"algorithm": "ring,ring,ring,ring,ring"}, "5 do not fit"),
        ({"collective": "own.yml"}, "collective"),
        ({"size": "much"}, "much"),
        ({"failed": "<script>"}, "script"),
        ({"slow": "gpu0"}, "no rate"),
        ({"slow": "gpu9=1GB/s"}, "gpu9"),
        ({"slow": "gpu0=much"}, "much"),
    ],
)
def test_the_live_page_refuses_in_a_sentence(server: Server, given: dict, says: str) -> None:
    status, page = asked(server, **given)
    assert status == 400
    header = header_of(page)
    assert header["kind"] == "message"
    assert says in header["text"]
    assert header["form"]


def test_the_live_page_is_for_this_machine_alone(server: Server) -> None:
    assert asked(server, host="evil.example")[0] == 403
    assert asked(server, host="localhost:1234")[0] == 200
    assert asked(server, path="/etc/passwd")[0] == 404
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "request_line",
    [
        b"\0\xff garbage",
        b"POST / HTTP/1.1",
        b"GET / HTTP/9.9",
        b"GET http://[x/ HTTP/1.1",
        b"GET / X",
    ],
)
def test_what_is_no_request_has_a_line_of_text(
    server: Server, request_line: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(server.server_address[:2], timeout=20) as connection:
        connection.sendall(request_line + b"\r\nHost: localhost\r\n\r\n")
        said = b"".join(iter(lambda: connection.recv(65536), b""))
    assert said.startswith(b"HTTP/1.0 ")
    assert b"<" not in said
    assert capfd.readouterr().err == ""


def test_the_form_plans_anew_in_a_browser(browser, server: Server) -> None:
    context = browser.new_context()
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(server.url)
    page.locator("form input[name=algorithm]").fill("direct")
    page.locator("#go").click()
    page.wait_for_url("**algorithm=direct**")
    page.locator(".net").wait_for()
    assert "direct" in page.locator("h1").text_content()
    page.locator("form input[name=topology]").fill("nonsense")
    page.locator("#go").click()
    page.locator("[role=alert]").wait_for()
    assert "nonsense" in page.locator("[role=alert]").text_content()
    context.close()
    assert [each for each in said if "400" not in each and "favicon" not in each] == []


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--port", "70000"], "70000"),
        (["--time-limit", "0"], "0 s"),
        (["--host", "203.0.113.7", "--port", "0"], "cannot be served on"),
    ],
)
def test_a_server_that_cannot_start_says_so(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["show", "--live", *argv]) == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    assert says in error
