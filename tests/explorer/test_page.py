"""Pages hold what the run did, and nothing that a page could trip over."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from hocket.cli import run as command
from hocket.explorer import encode, write_page
from hocket.simulation.run import Run


def made(algorithm: str = "ring", machine: str = "dgx1_v100") -> Run:
    network = hk.topology.load(machine)
    plan = hk.plan("all-reduce", network, size="1MB", algorithm=algorithm)
    return hk.simulate(plan, keep_services=True)


def decoded(header: dict, blob: bytes) -> tuple[dict[str, np.ndarray], np.ndarray]:
    raw = np.frombuffer(zlib.decompress(blob, -15), np.uint8)
    at, rows, found = 0, header["rows"], {}
    for name, planes in header["columns"]:
        zigzag = np.zeros(rows, np.uint64)
        for plane in range(planes):
            part = raw[at : at + rows].astype(np.uint64)
            zigzag |= part << np.uint64(8 * plane)
            at += rows
        signed = (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(
            np.int64
        )
        found[name] = np.cumsum(signed)
    return found, raw[at:].reshape(len(header["links"]), header["bins"])


@pytest.mark.parametrize("algorithm", ["ring", "greedy"])
def test_the_page_holds_the_transfers_of_the_run(tmp_path: Path, algorithm: str) -> None:
    run = made(algorithm)
    write_page(run, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    header = json.loads(re.search(r'id="header">(.*?)</script>', text)[1])
    blob = base64.b64decode(re.search(r'id="columns">(.*?)</script>', text)[1])
    found, heat = decoded(header, blob)
    start, unit = found["start"] * header["unit_ps"], header["unit_ps"]
    assert (start == run.start_ps).all()
    assert (start + found["length"] * unit == run.end_ps).all()
    moved = run.plan.transfers
    for name in ("src", "dst", "chunk", "op", "wait"):
        assert (found[name] == getattr(moved, name)).all(), name
    assert (found["count"] == moved.chunk_count).all()
    assert np.abs(heat / 255 - run.heat(header["bins"])).max() <= 1 / 255 + 1e-6
    assert "http://" not in text
    assert "https://" not in text


def test_the_same_run_gives_the_same_page() -> None:
    assert encode(made()) == encode(made())


@pytest.mark.parametrize("what", ["no plan", "no folder"])
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    plan, page = tmp_path / "plan.parquet", tmp_path / "page.html"
    if what == "no plan":
        plan.write_text("hello")
    else:
        made().plan.save(plan)
        page = tmp_path / "missing" / "page.html"
    assert command(["explore", str(plan), "-o", str(page)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not page.exists()
