"""Pages in a real browser, from files, in both ways of drawing: every view, and each way between views."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from hocket.explorer import write_page
from hocket.simulation.run import Run

NET, STRIP = ".net", ".strip"
VIEW = "page.inspect().views[0]"


def run_of(network: str, algorithm: str, kind: str = "all-reduce", size: str = "1MB") -> Run:
    plan = hk.plan(kind, hk.topology.load(network), size=size, algorithm=algorithm)
    return hk.simulate(plan, keep_services=True)


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[Run]]]:
    """Pages that the tests open, each with what it shows."""
    healthy = hk.topology.load("dgx1_v100")
    failed = healthy.without(links=["gpu0,gpu1"])
    both = [
        hk.simulate(hk.plan("all-reduce", each, size="1MB", algorithm="greedy"), keep_services=True)
        for each in (healthy, failed)
    ]
    runs = {
        "dgx1": [run_of("dgx1_v100", "greedy")],
        "torus": [run_of("torus:8x8x4@25GB/s,700ns", "hierarchical")],
        "machine": [run_of("azure_ndv4", "greedy")],
        "both": both,
    }
    found = {}
    for name, shown in runs.items():
        path = tmp_path_factory.mktemp("pages") / f"{name}.html"
        write_page(shown, path, titles=["healthy", "failed"] if name == "both" else None)
        found[name] = (path, shown)
    return found


def centre(tab, selector: str) -> tuple[float, float, float, float]:
    box = tab.page.locator(selector).first.bounding_box()
    return box["x"], box["y"], box["width"], box["height"]


def test_columns_come_out_as_they_went_in(tab, pages) -> None:
    for name in ("dgx1", "torus", "machine"):
        path, (run,) = pages[name]
        open_tab = tab().open(path)
        found = open_tab(
            """async () => {
              const {scenes: [s]} = page.inspect(), m = s.transfers, late = await page.late();
              const sum = (c) => {
                let a = 0n;
                for (let i = 0; i < c.length; i++) a += BigInt(c[i]) * BigInt(i % 9973 + 1);
                return String(a);
              };
              const columns = [m.start, m.length, m.src, m.dst, m.chunk, m.count, m.op, late['s0.wait']];
              columns.push(m.stayLink, m.stayStart, m.stayLength);
              return [...columns.map(sum), String(s.head.unit_ps), String(s.head.single)];
            }"""
        )
        unit, moved, core = int(found[-2]), run.plan.transfers, run.core
        order = np.lexsort((core.service_start_ps, core.service_transfer))
        rows = np.arange(len(moved))
        wait = np.where(moved.wait < 1 << 31, rows - moved.wait.astype(np.int64), 0)
        start, end = run.start_ps // unit, run.end_ps // unit
        columns = (
            *(start, end - start, moved.src, moved.dst, moved.chunk, moved.chunk_count, moved.op),
            *(wait, core.service_link[order], core.service_start_ps[order] // unit),
            (core.service_end_ps - core.service_start_ps)[order] // unit,
        )
        expected = [
            str(sum(value * (i % 9973 + 1) for i, value in enumerate(column.tolist())))
            for column in columns
        ]
        assert found[:-2] == expected, name


@pytest.mark.parametrize("name", ["dgx1", "torus", "machine", "both"])
def test_no_link_is_hidden(tab, pages, name: str) -> None:
    open_tab = tab().open(pages[name][0])
    for owned in open_tab("page.inspect().views.map((v) => [...v.owned()])"):
        assert min(owned) >= 6


@pytest.mark.parametrize(("name", "scheme"), [("dgx1", "light"), ("torus", "dark")])
def test_a_link_has_the_colour_of_its_use_at_the_cursor(tab, pages, name: str, scheme: str) -> None:
    path, (run,) = pages[name]
    open_tab = tab(color_scheme=scheme).open(path)
    bins = open_tab("page.inspect().scenes[0].head.bins")
    heat = run.heat(bins)
    for share in (0.1, 0.45, 0.8):
        bin_of = int(share * bins)
        open_tab(f"page.set({{t: {(bin_of + 0.5) * run.time_ps / bins}}})")
        image = open_tab.pixels(f"{VIEW}.base")
        for link in range(0, run.topology.link_count, 1 + run.topology.link_count // 40):
            x, y = open_tab(f"{VIEW}.middle({link})")
            word = open_tab(f"(() => {{ const v = {VIEW}; return v.tones[{link}]; }})()")
            tone = open_tab(f"{VIEW}.scene.tone({link}, {bin_of}) & 255")
            assert abs(tone / 255 - heat[link, bin_of]) <= 1 / 255 + 1e-5
            wanted = [word & 255, word >> 8 & 255, word >> 16 & 255]
            near = (
                image[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2].reshape(-1, 3).astype(int)
            )
            assert np.abs(near - wanted).max(axis=1).min() <= 6, (link, share)


def test_time_moves_by_keys_and_mouse_and_is_in_the_address(tab, pages) -> None:
    path, (run,) = pages["dgx1"]
    open_tab = tab().open(path)
    page, step = open_tab.page, run.time_ps / open_tab("page.inspect().scenes[0].head.bins")
    page.keyboard.press("ArrowRight")
    assert abs(open_tab("page.state.t") - step) < 1
    page.keyboard.press("Shift+ArrowRight")
    assert abs(open_tab("page.state.t") - 11 * step) < 1
    page.keyboard.press("ArrowLeft")
    assert abs(open_tab("page.state.t") - 10 * step) < 1
    page.keyboard.press("End")
    assert open_tab("page.state.t") == open_tab("page.total")
    page.keyboard.press("Home")
    assert open_tab("page.state.t") == 0
    x, y, width, height = centre(open_tab, STRIP)
    page.mouse.move(x + 0.5 * (width + 64), y + height / 3)
    assert abs(open_tab("page.state.t") / run.time_ps - 0.5) < 0.01
    seen = open_tab("page.state.t")
    open_tab.until(f"location.hash.includes('t={round(seen)}')")
    again = tab().open(path, open_tab.hash)
    assert abs(again("page.state.t") - seen) <= 1
    left = again("document.querySelector('.cursor').getBoundingClientRect().left")
    assert abs(left - (x + 64 + 0.5 * (width - 64))) < 8
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    open_tab.until("page.state.t > 0")
    page.keyboard.press("Space")
    stopped = open_tab("page.state.t")
    page.wait_for_timeout(80)
    assert open_tab("page.state.t") == stopped


def test_a_link_leads_to_what_it_carries_and_that_to_a_chunk(tab, pages) -> None:
    for name in ("dgx1", "torus"):
        path, (run,) = pages[name]
        open_tab = tab().open(path)
        link = 5
        x, y = open_tab(f"{VIEW}.middle({link})")
        left, top, *_ = centre(open_tab, NET)
        open_tab.page.mouse.click(left + 1 + x, top + 1 + y)
        assert open_tab("page.state.link") == link
        own = np.flatnonzero(run.core.service_link == link)
        caption = open_tab("document.querySelector('#panel caption').textContent")
        assert f"carries {len(own)} transfer" in caption
        assert run.topology.device_names[int(run.topology.link_src[link])] in caption
        first = own[np.argmin(run.core.service_start_ps[own])]
        chunk = int(run.plan.transfers.chunk[run.core.service_transfer[first]])
        open_tab.page.locator("#panel tbody tr").first.click()
        assert open_tab("page.state.chunk") == chunk
        assert "exactly once" in open_tab("document.querySelector('#panel').textContent")
        assert f"chunk={chunk}" in open_tab.hash
        open_tab.page.keyboard.press("Escape")
        assert open_tab("[page.state.link, page.state.chunk, page.state.npu].join()") == "-1,-1,-1"


def test_strips_lead_to_links_and_npus(tab, pages) -> None:
    path, (run,) = pages["dgx1"]
    open_tab = tab().open(path)
    x, y, width, height = centre(open_tab, STRIP)
    rows = run.topology.link_count
    open_tab.page.mouse.click(x + width / 2, y + (height - 18) * 3.5 / rows)
    link = open_tab("page.state.link")
    assert link == open_tab(
        "page.inspect().strips[0].item((page.inspect().strips[0].canvas.clientHeight - 18) * 3.5 / 32)"
    )
    open_tab.page.select_option("#strip", "npus")
    open_tab.page.mouse.click(x + width / 2, y + (height - 18) * 2.5 / 8)
    assert open_tab("page.state.npu") == 2
    caption = open_tab("document.querySelector('#panel caption').textContent")
    moved = run.plan.transfers
    assert f"{(moved.src == 2).sum() + (moved.dst == 2).sum()} transfers" in caption.replace(
        ",", ""
    )


def test_a_part_of_the_time_is_counted_anew_to_the_pixel(tab, pages) -> None:
    path, (run,) = pages["dgx1"]
    open_tab = tab().open(path)
    x, y, width, _ = centre(open_tab, STRIP)
    mouse = open_tab.page.mouse
    mouse.move(x + 64 + 0.30 * (width - 66), y + 20)
    mouse.down()
    mouse.move(x + 64 + 0.31 * (width - 66), y + 20, steps=4)
    mouse.up()
    low, high = open_tab("page.state.w")
    assert 0.28 < low / run.time_ps < high / run.time_ps < 0.33
    used = np.array(open_tab("[...page.inspect().strips[0].exact(200).use]")).reshape(-1, 200)
    edges = low + (high - low) * np.arange(201) / 200
    for link in (0, 9, 31):
        own = run.core.service_link == link
        start, end = run.core.service_start_ps[own, None], run.core.service_end_ps[own, None]
        part = np.clip(np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1]), 0, None).sum(
            axis=0
        )
        assert np.abs(used[link] / 255 - part / (edges[1] - edges[0])).max() <= 1.5 / 255
    open_tab.page.keyboard.press("w")
    assert open_tab("page.state.w") is None


def test_a_chunks_proof_is_replayed(tab, pages) -> None:
    """Who has contributed what, beside a replay in Python of the same transfers."""
    path, (run,) = pages["dgx1"]
    open_tab = tab().open(path)
    moved, chunk = run.plan.transfers, 3
    open_tab.page.fill("#chunk", str(chunk))
    open_tab.page.keyboard.press("Tab")
    assert open_tab("page.state.chunk") == chunk
    rows = np.flatnonzero((moved.chunk <= chunk) & (chunk < moved.chunk + moved.chunk_count))
    for share in (0.0, 0.2, 0.37, 0.6, 1.0):
        now = share * run.time_ps
        held = {npu: {npu} for npu in range(8)}
        flying: dict[int, set[int]] = {}
        events = sorted(
            [(run.end_ps[row], 0, row) for row in rows]
            + [(run.start_ps[row], 1, row) for row in rows]
        )
        for moment, is_start, row in events:
            if moment > now:
                break
            src, dst = int(moved.src[row]), int(moved.dst[row])
            if is_start:
                flying[row] = set(held[src])
            else:
                held[dst] = held[dst] | flying[row] if moved.op[row] else flying[row]
        found = open_tab(
            """(now) => {
              const proof = page.inspect().proof(), {held} = proof.at(now), all = [...Array(8).keys()];
              return all.map((d) => all.filter((e) => proof.has(held.get(d), e)));
            }""",
            now,
        )
        assert found == [sorted(held[npu]) for npu in range(8)], share
    assert open_tab("page.inspect().proof().holds()")
    # A transfer that is taken away is missed.
    assert not open_tab(
        """(() => {
          const p = page.inspect().proof(), {op} = page.inspect().scenes[0].transfers;
          op[p.rows.at(-1)] = 1;
          const holds = p.holds();
          op[p.rows.at(-1)] = 0;
          return holds;
        })()"""
    )


def test_tables_stand_behind_every_picture(tab, pages) -> None:
    path, (run,) = pages["machine"]
    open_tab = tab().open(path)
    for name, rows in (("links", run.topology.link_count), ("npus", 8), ("runs", 1)):
        open_tab.page.click(f"#tab-{name}")
        shown = "document.querySelectorAll('#panel tbody tr').length"
        assert open_tab(shown) == min(rows, 40), name
        if rows > 40:
            note = open_tab.page.locator("#panel .note", has_text=f"{rows - 40} rows not shown")
            note.locator("button").click()
            assert open_tab(shown) == rows
    open_tab.page.click("#tab-links")
    open_tab.page.locator("#panel th button", has_text="bytes").click()
    open_tab.page.locator("#panel th button", has_text="bytes").click()
    busiest = int(np.argmax(run.core.link_bytes))
    open_tab.page.locator("#panel tbody tr").first.press("Enter")
    assert run.core.link_bytes[open_tab("page.state.link")] == run.core.link_bytes[busiest]
    assert "carries" in open_tab("document.querySelector('#panel caption').textContent")


def test_the_bound_is_a_line_and_its_cut_is_in_the_picture(tab, pages) -> None:
    path, (run,) = pages["machine"]
    open_tab = tab().open(path)
    x, _, width, _ = centre(open_tab, STRIP)
    line = open_tab("document.querySelector('.bound').getBoundingClientRect().left")
    wanted = x + 64 + (width - 68) * run.lower_bound.time_ps / run.time_ps
    assert abs(line - wanted) < 4
    assert run.lower_bound.witness in open_tab("document.querySelector('#witness').textContent")
    sides = run.lower_bound.sides
    with_cut = open_tab.pixels(f"{VIEW}.marks").sum()
    open_tab.page.keyboard.press("c")
    without = open_tab.pixels(f"{VIEW}.marks").sum()
    assert (with_cut != without) == bool(sides)
    assert "cut=0" in open_tab.hash


def test_two_runs_are_on_one_clock(tab, pages) -> None:
    path, runs = pages["both"]
    open_tab = tab().open(path)
    total = max(run.time_ps for run in runs)
    assert open_tab("page.total") == total
    assert open_tab("document.querySelectorAll('.net').length") == 2
    assert open_tab("page.inspect().scenes.map((s) => s.network.head.links)") == [32, 30]
    # When the quicker one is done, its links are idle and the other's are not.
    quick = int(np.argmin([run.time_ps for run in runs]))
    open_tab(f"page.set({{t: {(runs[quick].time_ps + total) / 2}}})")
    tones = open_tab("page.inspect().views.map((v) => new Set(v.tones).size)")
    assert tones[quick] == 1
    assert tones[1 - quick] > 1
    open_tab.page.select_option("#run", "1")
    x, y = open_tab("page.inspect().views[1].middle(2)")
    box = open_tab.page.locator(NET).nth(1).bounding_box()
    open_tab.page.mouse.click(box["x"] + 1 + x, box["y"] + 1 + y)
    assert open_tab("[page.state.run, page.state.link].join()") == "1,2"
    again = tab().open(path, open_tab.hash)
    assert again("[page.state.run, page.state.link].join()") == "1,2"


def test_the_network_moves_and_boxes_open(tab, pages) -> None:
    open_tab = tab().open(pages["torus"][0])
    whole = open_tab(f"{VIEW}.k")
    x, y, width, height = centre(open_tab, NET)
    inside = open_tab(
        f"(() => {{ const v = {VIEW}, b = v.scene.network.head.boxes[0]; "
        "return [(b[0] + 0.5) * v.k + v.left, (b[1] + 0.2) * v.k + v.top]; })()"
    )
    open_tab.page.mouse.dblclick(x + 1 + inside[0], y + 1 + inside[1])
    assert open_tab(f"{VIEW}.k") > 1.2 * whole
    assert "v=" in open_tab.hash
    open_tab.page.keyboard.press("0")
    assert open_tab(f"{VIEW}.k") == whole
    open_tab.page.mouse.move(x + width / 2, y + height / 2)
    open_tab.page.mouse.wheel(0, -200)
    open_tab.until(f"{VIEW}.k > {whole}")
    seen, link = open_tab("page.state.v"), open_tab("page.state.link")
    open_tab.page.mouse.down()
    open_tab.page.mouse.move(x + width / 2 + 60, y + height / 2, steps=5)
    open_tab.page.mouse.up()
    assert open_tab("page.state.v[0]") < seen[0]
    assert open_tab("page.state.link") == link, "what was moved was not chosen"


def test_bundles_where_there_is_no_room_for_links(tab, pages) -> None:
    open_tab = tab().open(pages["torus"][0], "#v=20,10,150")
    assert not open_tab(f"{VIEW}.detailed")
    bundles = open_tab(f"{VIEW}.bundles.map((b) => b.links.length)")
    assert sum(bundles) == open_tab("page.inspect().scenes[0].network.head.links")
    x, y = open_tab(f"[{VIEW}.bundles[0].x + 1, {VIEW}.bundles[0].y + 1]")
    assert open_tab(f"{VIEW}.near({x}, {y}).length") == 1


def test_pictures_and_spans_are_saved(tab, pages, tmp_path: Path) -> None:
    path, (run,) = pages["dgx1"]
    open_tab = tab().open(path, "#t=5000000")
    for name in ("svg", "png", "perfetto"):
        with open_tab.page.expect_download() as download:
            open_tab.page.click(f"#{name}")
        download.value.save_as(tmp_path / name)
    drawing = ET.parse(tmp_path / "svg").getroot()
    ways = drawing.iter("{http://www.w3.org/2000/svg}path")
    assert len(list(ways)) == run.topology.link_count
    assert (tmp_path / "png").read_bytes().startswith(b"\x89PNG")
    events = json.loads((tmp_path / "perfetto").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == len(run.core.service_link)
    last = int(run.core.service_end_ps.max())
    assert abs(max(each["ts"] + each["dur"] for each in spans) * 1e6 - last) < 1e3


def test_spans_open_in_perfetto(browser, pages) -> None:
    """A stand-in for ui.perfetto.dev answers as that does, and keeps what it is given."""
    path, (run,) = pages["dgx1"]
    stand_in = """<script>onmessage = (event) => {
      if (event.data === 'PING') event.source.postMessage('PONG', '*');
      else window.given = event.data.perfetto;
    };</script>"""
    context = browser.new_context()
    context.route(
        "https://ui.perfetto.dev/**",
        lambda route: route.fulfill(body=stand_in, content_type="text/html"),
    )
    page = context.new_page()
    page.goto(f"file://{path}")
    page.locator("#panel").wait_for()
    while not page.evaluate("!!window.loaded"):
        page.wait_for_timeout(20)
    with context.expect_page() as opened:
        page.click("#open")
    other = opened.value
    other.wait_for_function("window.given")
    text = other.evaluate("new TextDecoder().decode(window.given.buffer)")
    spans = [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X"]
    assert len(spans) == len(run.core.service_link)
    context.close()


def test_dark_light_and_print(tab, pages) -> None:
    path, _ = pages["dgx1"]
    colours = {}
    for scheme in ("light", "dark"):
        open_tab = tab(color_scheme=scheme).open(path)
        colours[scheme] = open_tab("getComputedStyle(document.body).backgroundColor")
    assert colours["light"] != colours["dark"]
    open_tab.page.select_option("#theme", "light")
    assert open_tab("getComputedStyle(document.body).backgroundColor") == colours["light"]
    assert "theme=light" in open_tab.hash
    open_tab.page.emulate_media(media="print")
    assert open_tab("getComputedStyle(document.querySelector('.bar')).display") == "none"


def luminance(colour: list[float]) -> float:
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read(tab, pages, scheme: str) -> None:
    open_tab = tab(color_scheme=scheme).open(pages["dgx1"][0])
    found = open_tab(
        """['--ink', '--faint', '--mark', '--paper'].map((name) => {
          const e = document.createElement('i');
          e.style.color = `var(${name})`;
          document.body.append(e);
          return getComputedStyle(e).color;
        })"""
    )
    values = [luminance([int(part) / 255 for part in each[4:-1].split(",")[:3]]) for each in found]
    paper = values.pop()
    for value in values:
        low, high = sorted((value, paper))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_an_address_that_makes_no_sense_is_passed_over(tab, pages) -> None:
    open_tab = tab().open(
        pages["dgx1"][0], "#t=-4&link=9999&chunk=1e99&npu=x&w=9,2&v=1,2&tab=<b>&run=7&theme=red"
    )
    state = open_tab("page.state")
    assert (state["t"], state["link"], state["npu"], state["w"], state["run"]) == (
        0,
        -1,
        -1,
        None,
        0,
    )


def test_a_page_that_is_cut_short_says_so(tab, pages, tmp_path: Path) -> None:
    text = pages["dgx1"][0].read_text()
    start = text.index('id="first">') + len('id="first">')
    broken = tmp_path / "broken.html"
    broken.write_text(text[: start + 400] + text[text.index("</script>", start) :])
    open_tab = tab()
    open_tab.page.goto(f"file://{broken}")
    for _ in range(200):
        if open_tab("!!window.err"):
            break
        open_tab.page.wait_for_timeout(20)
    assert "cannot be shown" in open_tab("document.body.textContent")
