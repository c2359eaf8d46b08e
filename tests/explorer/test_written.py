"""What stands on pages: quantities as the command line writes them, and no more than there is."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from hocket.explorer import write_page
from hocket.explorer.page import fill
from hocket.explorer.tracks import _Sheet, _Span
from hocket.units import format_bandwidth, format_size, format_time_ps

pytestmark = pytest.mark.parametrize("browser", ["cpu"], indirect=True)

MARK = (0xC2, 0x18, 0x7F)
"""The colour of what is waited for, on white."""


def written(folder: Path, time_ps: int, spans: list[_Span]) -> Path:
    sheet = _Sheet("spans")
    sheet.add("spans", time_ps, [("stage 1", "compute")], spans)
    path = folder / "page.html"
    path.write_text(fill(*sheet.made()), encoding="utf-8")
    return path


def test_times(tab, tmp_path: Path) -> None:
    draw = random.Random(1)
    # Sixteenths of a unit lie half-way between two numbers of three decimals.
    values = [k * unit // 16 for k in range(1, 40, 2) for unit in (10**6, 10**9, 10**12)]
    values += [int(10 ** draw.uniform(0, 14)) for _ in range(200)]
    spans = [_Span(0, i, value, "a", "b", value) for i, value in enumerate(values)]
    open_tab = tab().open(written(tmp_path, max(values), spans))
    open_tab("document.querySelector('#panel .note button').click()")
    cells = open_tab(
        "[...document.querySelectorAll('#panel tbody td:nth-child(n+4)')].map(e => e.textContent)"
    )
    expected = [[format_time_ps(i), *[format_time_ps(value)] * 2] for i, value in enumerate(values)]
    assert cells == [text for row in expected for text in row]


@pytest.mark.parametrize("size", [14_768_128 * 4, "1 GiB"])
def test_sizes_and_rates(tab, tmp_path: Path, size: int | str) -> None:
    network = hk.topology.ring(4, bandwidth="23.4567 GB/s", latency="700 ns")
    plan = hk.plan("all-reduce", network, size=size, algorithm="ring", chunks=1)
    run = hk.simulate(plan, keep_services=True)
    write_page(run, tmp_path / "page.html")
    open_tab = tab().open(tmp_path / "page.html", "#tab=links")
    rows = open_tab(
        "[...document.querySelectorAll('#panel tbody tr')]"
        ".map((r) => [...r.cells].map((c) => c.textContent))"
    )
    assert len(rows) == network.link_count
    assert sorted(row[3] for row in rows) == sorted(map(format_size, run.link_bytes.tolist()))
    assert {row[4] for row in rows} == {format_bandwidth(23_456_700_000)}
    assert f"for {format_size(run.collective.size)}, " in open_tab("document.body.textContent")


def test_a_table_stays_sorted_when_the_time_moves(tab, tmp_path: Path) -> None:
    spans = [_Span(0, i, 100 - i, "a", "b") for i in range(100)]
    open_tab = tab().open(written(tmp_path, 200, spans))
    takes = (
        "[...document.querySelectorAll('#panel tbody td:nth-child(5)')].map((e) => e.textContent)"
    )
    open_tab("document.querySelector('#panel th:nth-child(5) button').click()")
    open_tab("document.querySelector('#panel .note button').click()")
    expected = [f"{length} ps" for length in range(1, 101)]
    assert open_tab(takes) == expected
    open_tab("page.set({ w: [0, 150] })")
    assert open_tab(takes) == expected


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_printed_table_has_its_headings(tab, tmp_path: Path, scheme: str) -> None:
    spans = [_Span(0, i, 1, "a", "b") for i in range(100)]
    open_tab = tab(color_scheme=scheme).open(written(tmp_path, 100, spans))
    open_tab.page.emulate_media(media="print", color_scheme=scheme)
    shown = "(e) => [e.getClientRects().length > 0, getComputedStyle(e).color]"
    for part in ("th button", "td", "caption", ".note"):
        found = open_tab(f"[...document.querySelectorAll('#panel {part}')].map({shown})")
        assert found
        assert all(has for has, _ in found), part
    black = open_tab(f"[...document.querySelectorAll('#panel th button, #panel td')].map({shown})")
    assert {color for _, color in black} == {"rgb(0, 0, 0)"}
    assert "60 rows not shown" in open_tab("document.querySelector('#panel .note').innerText")


@pytest.mark.parametrize(("exposed", "share"), [(640, 0.0), (10**11, 0.1), (5 * 10**11, 0.5)])
def test_what_is_waited_for_is_as_long_as_it_takes(
    tab, tmp_path: Path, exposed: int, share: float
) -> None:
    spans = [_Span(0, 0, 10**12, "a", "b", exposed)]
    open_tab = tab(color_scheme="light").open(written(tmp_path, 10**12, spans))
    open_tab("page.set({ t: 0 })")
    image = open_tab.pixels("document.querySelector('.lanes canvas')")
    marked = (np.abs(image.astype(int) - MARK).max(axis=2) < 8).any(axis=0)
    wide = image.shape[1] - 152
    assert marked.sum() == pytest.approx(share * wide, abs=2)
