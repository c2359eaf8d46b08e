"""What no memory holds is refused before its network is built, and nothing else is."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket import _core
from hocket.cli import run
from hocket.topology.build import build_topology, counts_of
from hocket.topology.text import from_text

ON = '--bandwidth "1 GB/s" --latency "1 us"'
COUNTED = ["fc:6", "clos:3x4", "dragonfly:3x4x2", "Ring_FC_SW:2x8x4", "dgx1_v100", "themis-3d-homo"]


@pytest.mark.parametrize("text", COUNTED)
def test_counts_are_of_what_is_built(text: str) -> None:
    link = (["1 GB/s"], ["1 us"]) if ":" in text else (None, None)
    spec = from_text(text, bandwidth=link[0], latency=link[1])
    counts, built = counts_of(spec), build_topology(spec)
    assert counts.npus == built.npu_count
    assert list(counts.dimensions) == built.dimensions
    assert (counts.switches + counts.npus, counts.links) == (built.device_count, built.link_count)


TOO_LARGE = {
    f"plan all-reduce -t mesh:1000x1000 {ON} -s 1GB -a greedy": ["1000000 NPUs", "182 TiB"],
    f"plan allreduce -t mesh:1000x1000 {ON} -s 1GB -a blind": ["1999998000000 transfers"],
    f"plan all-reduce -t mesh:1000x1000 {ON} -s 1GB -a exact": ["1999998000000 transfers"],
    f"plan all-reduce -t mesh:3000x3000 {ON} -s 1GB -a auto": ["9000000 NPUs"],
    f"plan all-reduce -t fc:20000 {ON} -s 1GB -a direct": ["799960000 transfers", "fewer NPUs"],
    f"plan all-to-all -t switch:200000 {ON} -s 1GB -a pairwise": ["39999800000 transfers"],
    f"plan all-reduce -t clos:100x1000x1000 {ON} -s 1GB -a ring": ["1000000 NPUs"],
    f"plan all-reduce -t torus:200x200x200 {ON} -s 1GB -a hierarchical": ["9552000000"],
    f"plan all-reduce -t fat_tree:200 {ON} -s 1GB -a ring": ["2000000 NPUs"],
    f"plan all-reduce -t dragonfly:5000x1000 {ON} -s 1GB -a ring": ["5000000 NPUs"],
    f"plan all-reduce -t bigraph:3000x1000 {ON} -s 1GB -a ring": ["6000000 NPUs"],
    f"plan all-reduce -t Ring_FC_SW:1000x100x100 {ON} -s 1GB -a themis": ["transfers"],
    f"plan all-reduce -t hypercube:24 {ON} -s 1GB -a direct": ["16777216 NPUs"],
    f"plan broadcast -t mesh:1000x1000 {ON} -s 1GB -a chain -c 1000000": ["999999000000"],
    f"plan all-reduce -t ring:8 {ON} -s 8000TB -a ring -c 4000000000": ["448000000000 transfers"],
    f"plan all-gather -t mesh:3000x3000 {ON} -s 1GB -a greedy --timetable-only": ["TiB"],
    f"plan all-reduce -t fc:20000 --failed npu3 {ON} -s 1GB -a direct": ["19999 NPUs"],
    f"compare all-reduce -t mesh:3000x3000 {ON} -s 1GB": ["9000000 NPUs", "TiB", "PiB"],
    f"compare all-to-all -t switch:2000000 {ON} -s 1GB -a direct -a greedy": ["2000000 NPUs"],
}


def test_a_picture_of_too_many_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hocket.cli.topology.build_topology", lambda _: pytest.fail("it was built"))
    assert run(shlex.split(f"topology draw mesh:3000x3000 {ON} -o x.png")) == 2
    assert "9000000 devices are too many for a schematic" in capsys.readouterr().err
    assert run(shlex.split(f"topology draw mesh:3000x3000 {ON} --full -o x.png")) == 2
    assert "9000000 devices cannot be told apart" in capsys.readouterr().err


@pytest.mark.parametrize("line", TOO_LARGE)
def test_refused_at_once(
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def built(_: object) -> None:
        pytest.fail("it was built")

    monkeypatch.chdir(tmp_path)
    memory = 16 << 30  # whatever the machine has
    for module in ("hocket.comparison.limits", "hocket.cli.options"):
        monkeypatch.setattr(f"{module}.memory_limit", lambda: memory)
    for command in ("plan", "compare"):
        monkeypatch.setattr(f"hocket.cli.{command}.build_topology", built)
    assert run(shlex.split(line)) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("hocket: ")
    assert errors.count("\n") == 1
    assert any(word in errors for word in TOO_LARGE[line]), errors
    assert "more than the limit of 16 GiB" in errors


@given(
    st.sampled_from(["ring:5", "fc:4", "mesh:3x3", "torus:2x4", "switch:6", "Ring_SW:3x4"]),
    st.sampled_from([each.name for each in _core.registry.entries() if each.in_core]),
    st.sampled_from(["all-reduce", "all-gather", "broadcast", "all-to-all", "reduce"]),
    st.one_of(st.none(), st.integers(1, 20)),
    st.integers(0, 200_000),
)
def test_what_is_refused_early_is_refused_anyway(
    text: str, algorithm: str, kind: str, chunks: int | None, limit: int
) -> None:
    spec = from_text(text, bandwidth=["1 GB/s"], latency=["1 us"])
    network = build_topology(spec)
    outline = counts_of(spec)
    try:
        _core.registry.check_size(
            kind, outline.npus, [*outline.dimensions], algorithm, chunks, limit
        )
    except hk.SpecError:
        with pytest.raises((hk.SpecError, hk.InfeasibleError)):
            _core.plan(network, hk.collective_on(kind, network, "1 MB"), algorithm, chunks, limit)


def test_a_comparison_leaves_out_what_nobody_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hocket.comparison.limits._MAX_COMPARED", 100)
    ring = hk.topology.ring(8, bandwidth="1 GB/s", latency="1 us")
    found = hk.compare("all-reduce", ring, size="1 MB")
    assert "name it with --algorithm" in found.refused["ring"]
    named = hk.compare("all-reduce", ring, size="1 MB", algorithms=["ring"])
    assert named.best.algorithm == "ring"
