"""What a page of a million transfers takes in a browser: ``python bench/explorer.py [--repeat N] [PAGE]``.

Needs what ``make browser`` installs. Times are the wall clock's in a browser without a graphics card;
the least and the median of all openings are given, with the machine's load, as other work adds to them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

CHUNK = """(chunk) => {
  const start = performance.now();
  page.set({chunk, link: -1, npu: -1, tab: 'chunk'});
  document.body.getBoundingClientRect();
  return performance.now() - start;
}"""
LINK = """(link) => {
  const start = performance.now();
  page.set({link, chunk: -1, npu: -1, tab: 'transfers'});
  document.body.getBoundingClientRect();
  return performance.now() - start;
}"""
WINDOW = """(part) => {
  const start = performance.now(), total = page.total;
  page.set({w: [total * part, total * (part + 0.05)]});
  return performance.now() - start;
}"""
FRAMES = """() => new Promise((done) => {
  const took = [];
  let last = performance.now(), n = 0;
  page.set({w: null, chunk: -1, link: -1, tab: 'runs'});
  const step = (now) => {
    took.push(now - last); last = now;
    page.set({t: page.total * (n++ / 60)});
    if (n <= 60) requestAnimationFrame(step); else done(took.slice(2));
  };
  requestAnimationFrame(step);
})"""
MARKS = "[...performance.getEntriesByType('mark')].map((each) => [each.name, each.startTime])"


def write(path: Path) -> None:
    """Write the page of 1,310,720 transfers among 1,024 NPUs."""
    import hocket as hk
    from hocket.explorer import write_page

    network = hk.topology.load("torus:16x8x8@50GB/s,500ns")
    plan = hk.plan("all-reduce", network, size="256MB", algorithm="hierarchical", chunks=22)
    run = hk.simulate(plan, keep_services=True)
    start = time.process_time()
    write_page(run, path)
    took = time.process_time() - start
    size = path.stat().st_size / 1e6
    print(f"{len(plan):,} transfers, {size:.2f} MB, written in {took:.2f} s of processor time")


def measure(browser: Any, page: Path, into: dict[str, list[float]]) -> None:
    """Open a page anew and ask it for chunks, links, windows and frames."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    tab = context.new_page()
    tab.goto(f"file://{page}")
    while not tab.evaluate("!!(window.ready && window.loaded)"):
        time.sleep(0.02)
    for name, at in tab.evaluate(MARKS):
        into.setdefault(name, []).append(at)
    chunks = tab.evaluate("page.inspect().scenes[0].head.chunks")
    for i, name in enumerate(["first chunk's tree", *["a chunk's tree"] * 5]):
        into.setdefault(name, []).append(tab.evaluate(CHUNK, (977 * i + 3) % chunks))
    links = tab.evaluate("page.inspect().scenes[0].network.head.links")
    for i in range(5):
        into.setdefault("a link", []).append(tab.evaluate(LINK, (997 * i + 5) % links))
    for i in range(3):
        into.setdefault("a window counted anew", []).append(tab.evaluate(WINDOW, 0.2 * i + 0.1))
    into.setdefault("a frame", []).extend(tab.evaluate(FRAMES))
    context.close()


def main() -> None:
    """Measure pages in one run of one browser, one after the other, so that load hits all alike."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--swiftshader", action="store_true")
    given = parser.parse_args()
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("HOCKET_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    how = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        pages = [each.resolve() for each in given.pages]
        if not pages:
            pages = [Path(folder) / "page.html"]
            write(pages[0])
        browser = driver.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", *(how if given.swiftshader else ["--disable-gpu"])],
        )
        found: list[dict[str, list[float]]] = [{} for _ in pages]
        for _ in range(given.repeat):
            for page, into in zip(pages, found, strict=True):
                measure(browser, page, into)
        browser.close()
    print(f"load {os.getloadavg()[0]:.1f}; least and median [ms]")
    for name in found[0]:
        each = [
            f"{min(into[name]):8.1f} {statistics.median(into[name]):8.1f}"
            for into in found
            if name in into
        ]
        print(f"{name:24}", " | ".join(each))


if __name__ == "__main__":
    main()
