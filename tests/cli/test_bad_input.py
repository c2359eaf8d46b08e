"""Whatever is wrong with what a user gives: one line on standard error, exit code 2, nothing written."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hocket as hk
from hocket.files.blob import pack

R = '--topology ring:4 --bandwidth "1 GB/s" --latency "1 us"'
P = f"plan all-reduce {R} --size 1MB --algorithm"
B = f"plan broadcast {R} --size 1MB --algorithm chain"
LINE = '-t line:4 --bandwidth "1 GB/s" --latency "1 us"'
BIG = '--bandwidth "1 GB/s" --latency "1 us"'
RS = f"-t Ring_SW:2x4 {BIG}"
S = f"plan --dimension-only all-reduce {RS} -s 1MB"
MULTIRAIL = ("hierarchical", "themis-fifo", "themis", "multirail-optimal")
FAR = '--bandwidth "1 GB/s" --latency "1 us" -s 1MB -a ring'

CASES = {
    # words that name nothing
    f"compare all-frob {R} -s 1MB": ["'all-frob'", "all-reduce, reduce-scatter"],
    f"plan all-frob {R} -s 1MB -a ring": ["'all-frob'", "all-to-all"],
    f"{P} rng": ["'rng'", "did you mean 'ring'?"],
    f"compare all-reduce {R} -s 1MB -a rng": ["'rng'", "did you mean 'ring'?"],
    "compare all-reduce -t dgx_v100 -s 1MB": ["--topology", "'dgx_v100'", "dgx1_v100"],
    "compare all-reduce -t frob:3 -s 1MB": ["--topology", "'frob'", "mesh:9x9"],
    "compare all-reduce -t nowhere.yml -s 1MB": ["nowhere.yml", "no such file"],
    "topology show nope": ["'nope'", "hocket topology list"],
    "frob": ["'frob'", "--help"],
    "topology frob": ["'frob'", "--help"],
    f"{P} ring --bogus 3": ["--bogus", "--help"],
    f"plan all-reduce {R} --siz 1MB -a ring": ["--siz", "--size"],
    f"{P} ring extra": ["extra", "--help"],
    # what is missing
    "plan": ["COLLECTIVE"],
    f"plan all-reduce {R} -a ring": ["--size"],
    "compare all-reduce -s 1MB": ["--topology"],
    "check": ["FILE"],
    "topology show": ["TOPOLOGY"],
    "topology draw dgx1_v100": ["--output"],
    f"plan all-reduce {R} -a ring -o q.parquet -s": ["-s", "argument"],
    "plan all-reduce -t ring:4 -s 1MB -a ring": ["--bandwidth", "ring:4", '"25 GB/s"'],
    'plan all-reduce -t ring:4 --bandwidth "1 GB/s" -s 1MB -a ring': ["--latency", '"700 ns"'],
    # sizes
    f"compare all-reduce {R} -s 1000": ["size", "'1000' ", '"256 MB"'],
    f"compare all-reduce {R} -s 0MB": ["size", "'0MB' "],
    f"compare all-reduce {R} -s -1MB": ["size", "'-1MB'", '"256 MB"'],
    f"compare all-reduce {R} -s 1.5B": ["size", "'1.5B'", "whole number"],
    f"compare all-reduce {R} -s 1GB/s": ["size", "'GB/s'"],
    f"compare all-reduce {R} -s 1e999TB": ["size", "too large"],
    f'compare all-reduce {R} -s "1 B"': ["1 B", "4 chunks", "fewer chunks or more bytes"],
    f'plan all-reduce {R} -s "8 B" -a ring -c 9': ["8 B", "36 chunks", "fewer chunks"],
    # chunks
    f"{P} ring -c 0": ["chunks", "0 is not a number of chunks", "1 or more"],
    f"{P} ring -c -1": ["chunks", "-1 is not a number of chunks", "1 or more"],
    f"compare all-reduce {R} -s 1MB -c 0": ["chunks", "0 is not a number of chunks"],
    f"{P} ring -c 2.5": ["--chunks", "whole number"],
    f"{P} ring -c many": ["--chunks", "whole number"],
    f"{P} ring -c 99999999999999999999999999": ["chunks", "2^32", "fewer"],
    f"compare all-reduce {R} -s 1MB -c 4294967296": ["chunks", "2^32", "fewer"],
    f"plan all-reduce {R} -s 8000TB -a ring -c 1000000000": ["24000000000 transfers", "memory"],
    f"compare broadcast {R} -s 8000TB -c 1000000000": ["transfers", "memory", "fewer"],
    # NPUs and roots
    f"{P} ring --npus 0": ["two NPUs", "1 given"],
    f"{P} ring --npus 0,0": ["NPU 0", "twice", "once"],
    f"{P} ring --npus 0,npu0": ["NPU 0", "twice", "once"],
    f"{P} ring --npus 0,9": ["npus", "no NPU 9", "0 to 3"],
    f"{P} ring --npus 0,bob": ["--npus", "'bob'", "0-3"],
    f"{P} ring --npus 3-1": ["--npus", "'3-1'"],
    f'{P} ring --npus ""': ["--npus", "''"],
    f"{P} ring --npus 0-99999999999": ["--npus", "99999999999", "0 to 3"],
    f"{P} ring --npus {'9' * 5000}": ["--npus", "'999", "..."],
    f"{P} ring --npus 0-{'9' * 5000}": ["--npus", "'0-999", "..."],
    f"{B} --root {'9' * 5000}": ["root", '"999'],
    f"plan all-reduce -t dgx2_1box -s 1MB -a ring --npus 0,{'{switch}'}": ["switch", "NPU"],
    f"{B} --root 9": ["root", "no NPU 9", "0 to 3"],
    f"{B} --root bob": ["root", '"bob"', "npu0"],
    f"{B} --npus 0,1 --root 3": ["root", "NPU 3", "participants"],
    f"{P} ring --root 0": ["all-reduce", "no root", "leave it out"],
    f"plan all-reduce -t ring:1 {FAR}": ["ring", "1", "at least 2"],
    f"plan all-reduce -t ring:0 {FAR}": ["ring", "0", "at least 2"],
    # what cannot be done here
    f"{P} pairwise": ["pairwise", "all-to-all, not all-reduce", "halving-doubling"],
    f"compare all-reduce {R} -s 1MB -a pairwise": ["pairwise", "all-to-all, not all-reduce"],
    "plan all-reduce -t dgx1_v100 -s 1MB -a hierarchical": ["hierarchical", "no dimensions"],
    # schedules of dimensions
    **{
        f"{command} all-reduce -t dgx1_v100 -s 1MB -a {name}": [name, "dgx1_v100", "no dimensions"]
        for command in ("plan", "plan --dimension-only")
        for name in MULTIRAIL
    },
    "topology advise -t dgx1_v100": ["'dgx1_v100' states no dimensions", "Ring_Switch"],
    f"topology advise -t FC_FC_FC_FC_FC_FC_FC:2x2x2x2x2x2x2 {BIG}": ["7 dimensions", "at most 6"],
    "topology advise": ["--topology"],
    "plan --dimension-only": ["--topology", "--size", "--list"],
    "plan --dimension-only all-reduce -t themis-2d": ["--size", "hocket plan --dimension-only"],
    f"plan --dimension-only broadcast {RS} -s 1MB": ["multirail-optimal", "not broadcast"],
    f"plan --dimension-only all-frob {RS} -s 1MB": ["'all-frob'", "all-gather"],
    f"{S} -a frob": ["'frob'", "themis"],
    f"{S} -a ring": ["ring", "schedules no dimensions", "themis"],
    f"{S} -a schedule:none": ["'none'", "saved ones are", "--save"],
    f"{S} -a schedule:../x": ["'../x'", "letters"],
    f"{S} -a schedule:": ["''", "letters"],
    f"{S} -a schedule:text.json": ["text.json", "Invalid JSON"],
    f"plan all-reduce {RS} -s 1MB -a schedule:none": ["'none'", "saved ones are"],
    f"compare all-reduce {RS} -s 1MB -a schedule:none": ["'none'", "saved ones are"],
    f"{S} --save a/b": ["'a/b'", "letters"],
    f"{S} --save nowhere/s.json": ["no folder 'nowhere'", "make it"],
    f"{S} --save {'n' * 300}.json": ["File name too long"],
    f"{S} --plot times.jpg": ["times.jpg", ".png"],
    f"{S} -c 0": ["chunks", "0 is not a number of chunks"],
    f"plan --dimension-only all-reduce {RS} -s 100B -a themis -c 1000": [
        "100 B",
        "fewer chunks or more bytes",
    ],
    f"{S} --time-limit 5": ["--time-limit", "'5' "],
    f"{P} ring --time-limit 5": ["--time-limit", "'5' "],
    f"{S} --switching x": ["--switching", "'x'"],
    f"{S} --latency-model x": ["--latency-model", "'x'"],
    "plan --dimension-only all-reduce -t Ring_SW:2x4 --bandwidth 0GB/s --latency 1us -s 1MB": [
        "--bandwidth",
        "0",
    ],
    f"plan --dimension-only all-reduce -t Ring_SW:1x1 {BIG} -s 1MB": ["one NPU", "2 or more"],
    **{
        f"plan all-reduce {RS} -s 1MB -a {name} {option}": [word]
        for name in MULTIRAIL
        for option, word in (
            ("--npus 0-3", "all NPUs"),
            ("--npus 7,6,5,4,3,2,1,0", "in order"),
            ("--root 3", "no root"),
        )
    },
    f"plan all-reduce {RS} -s 1MB -a themis --failed npu0,npu1": ["links", "missing"],
    "simulate rails.parquet --fidelity dimension --order plan": ["--order: dimension fidelity"],
    "simulate rails.parquet --fidelity dimension -o r.parquet": ["--output: dimension fidelity"],
    "simulate good.parquet --fidelity dimension": ["fidelity", "ring", "themis"],
    "simulate failed.parquet --fidelity dimension": ["links of topology", "failed"],
    # failures
    f"compare all-reduce {LINE} -s 1MB --failed npu1,npu2": ['"npu0" to "npu2"', "join them"],
    f"compare broadcast {LINE} -s 1MB --failed npu1": ["direct", "no path of links"],
    f"{P} ring --failed npu0,npu2": ['no link "npu0" -> "npu2"', "npu1, npu3"],
    f"{P} ring --failed bob": ['"bob"', "npu0"],
    f"{P} ring --failed a,b,c": ["--failed", "'a,b,c'", "A,B"],
    f"{P} ring --failed npu0,": ["--failed", "'npu0,'"],
    f"{P} ring --failed npu0 --failed npu1 --failed npu2 --failed npu3": ["no NPU", "at least one"],
    f"{P} ring --failed npu0 --failed npu1 --failed npu2": ["two NPUs", "1 given"],
    # far too many
    f"plan all-reduce -t ring:1000000000 {FAR}": ["1000000000 NPUs", "B of memory"],
    f"plan all-reduce -t fc:1000000000 {FAR}": ["1000000000 NPUs", "B of memory"],
    f"plan all-reduce -t switch:1000000000 {FAR}": ["1000000000 NPUs", "B of memory"],
    f"plan all-reduce -t mesh:32000x32000 {FAR}": ["1024000000 NPUs", "B of memory"],
    f"plan all-reduce -t hypercube:30 {FAR}": ["2^30 NPUs", "B of memory"],
    f"plan all-reduce -t hypercube:4000000000 {FAR}": ["hypercube"],
    f"plan all-reduce -t ring:99999999999 {FAR}": ["2^32", "smaller"],
    f"plan all-reduce -t Ring_FC:100000x10000 {FAR}": ["1000000000 NPUs", "B of memory"],
    f"plan all-reduce -t clos:1000x1000000x1000 {FAR}": ["B of memory"],
    f"plan all-reduce -t fat_tree:4000000 {FAR}": ["B of memory"],
    f"plan all-reduce -t bigraph:1000000x1000 {FAR}": ["B of memory"],
    f"plan all-reduce -t dragonfly:1000000x1000 {FAR}": ["B of memory"],
    # options of the simulation
    "simulate good.parquet --order fifo": ["--order", "'fifo'", "ready, plan or priority"],
    "simulate good.parquet --switching x": ["--switching", "'x'", "cut-through"],
    "simulate good.parquet --latency-model x": ["--latency-model", "'x'", "occupying"],
    "simulate good.parquet --fidelity cell": ["fidelity", "'cell'", "link"],
    f"compare all-reduce {R} -s 1MB --order fifo": ["--order", "'fifo'"],
    "simulate slow.parquet": ["213 days", "sizes smaller or bandwidths larger"],
    'plan all-gather -t mesh:3x3 --bandwidth 1kB/s --latency "1 us" -s 9TB --algorithm direct': [
        "longer than 213 days",
        "sizes smaller or bandwidths larger",
    ],
    'compare all-gather -t mesh:3x3 --bandwidth 1kB/s --latency "1 us" -s 9TB': [
        "longer than 213 days",
        "sizes smaller or bandwidths larger",
    ],
    # files
    "check nowhere.parquet": ["nowhere.parquet", "no such file", "hocket plan"],
    "check .": [".", "is a folder"],
    "simulate text.parquet": ["text.parquet", "not a plan"],
    "check empty.parquet": ["empty.parquet", "not a plan"],
    "check other.parquet": ["other.parquet", "not a plan", "hocket plan"],
    f"{P} ring -o nowhere/p.parquet": ["nowhere/p.parquet", "no folder 'nowhere'", "make it"],
    f"{P} ring -o good.parquet/p.parquet": ["'good.parquet' is a file, not a folder"],
    f"{P} ring -o .": ["'.'", "is a folder", "name a file"],
    f'{P} ring -o ""': ["--output: '' is empty", "give a value"],
    'topology draw dgx1_v100 -o ""': ["--output: '' is empty"],
    'deploy -t dgx1_v100 -o ""': ["--output: '' is empty"],
    'nccl tuner write -t dgx1_v100 -o ""': ["--output: '' is empty"],
    f'compare all-reduce {R} -s 1MB --plot ""': ["--plot: '' is empty"],
    f"{P} ring -o {'n' * 300}": ["nnn: File name too long"],
    f"check {'n' * 300}": ["nnn: File name too long"],
    "simulate good.parquet -o nowhere/r.parquet": ["no folder 'nowhere'"],
    "simulate good.parquet -o ./good.parquet": ["--output", "is the plan", "another file"],
    "export good.parquet --to msccl -o ./good.parquet": ["--output", "is the plan", "another file"],
    "import a.xml -t dgx1_v100 -o ./a.xml": ["--output", "a file that is read", "another file"],
    "nccl tuner write -t dgx1_v100 --measured a.csv -o ./a.csv": ["--output", "table that is read"],
    "simulate good.parquet --plot heat.png -o nowhere/r.parquet": ["no folder 'nowhere'"],
    "simulate good.parquet --plot heat.jpg": ["heat.jpg", ".png, .svg, .pdf"],
    "simulate good.parquet --plot nowhere/heat.png": ["no folder 'nowhere'"],
    f"compare all-reduce {R} -s 1MB --plot times": ["times", ".png"],
    "topology draw dgx1_v100 -o net.gif": ["net.gif", ".svg"],
    "topology draw dgx1_v100 -o nowhere/net.svg": ["no folder 'nowhere'"],
    f"topology draw ring:3000 {BIG} --full -o net.svg": ["3000 devices", "at most 2000"],
}


def split(line: str) -> list[str]:
    import shlex

    switch = hk.topology.load("dgx2_1box").device_names[-1]
    return shlex.split(line.replace("{switch}", switch))


@pytest.fixture
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOCKET_DATA", str(folder / "data"))
    topology = hk.topology.ring(4, bandwidth="1 GB/s", latency="1 us")
    hk.plan("all-reduce", topology, size="1 MB", algorithm="ring", chunks=1).save("good.parquet")
    slow = hk.topology.ring(4, bandwidth="1 B/s", latency="9000000 s")
    hk.plan("all-reduce", slow, size="8 MB", algorithm="ring", chunks=1).save("slow.parquet")
    pq.write_table(pa.table({"chunk": [1, 2, 3]}), "other.parquet")
    rails = hk.topology.product("Ring_SW", [2, 4], bandwidth=["1 GB/s"] * 2, latency=["1 us"] * 2)
    given = {"size": "1 MB", "algorithm": "themis", "chunks": 4}
    hk.plan("all-reduce", rails, **given).save("rails.parquet")
    failed = rails.without(links=[("npu0", "npu1")])
    hk.plan("all-reduce", failed, size="1 MB", algorithm="hierarchical", chunks=4).save(
        "failed.parquet"
    )
    (folder / "text.json").write_text("no JSON at all")
    (folder / "text.parquet").write_text("no parquet at all")
    (folder / "empty.parquet").write_bytes(b"")
    return folder


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check_refusal(result: Any, words: list[str], code: int = 2) -> None:
    assert result.code == code, result.err
    assert result.err.startswith("hocket: ")
    assert result.err.count("\n") == 1, result.err
    assert result.err.endswith("\n")
    for word in words:
        assert word in result.err, (word, result.err)


@pytest.mark.parametrize("line", CASES)
def test_refusal(hocket: Any, files: Path, line: str) -> None:
    argv = split(line)
    before = listing(files)
    keeps_file = argv[0] == "plan" and not {"-o", "--dimension-only"} & {*argv}
    start = time.process_time()  # the machine may be busy
    result = hocket(*argv, *(["-o", "out.parquet"] if keeps_file else []))
    assert time.process_time() - start < 2.0
    check_refusal(result, CASES[line])
    assert result.out == ""
    assert listing(files) == before


@pytest.mark.parametrize("line", [f"{P} ring --npus 0,0", "check text.parquet"])
def test_refusal_as_json(hocket: Any, files: Path, line: str) -> None:
    result = hocket(*split(line), "--json")
    check_refusal(result, [])
    values = json.loads(result.out)
    message = result.err.removeprefix("hocket: ").strip()
    assert (values.pop("error"), values.pop("message")) == ("SpecError", message)
    parts = (values.get("origin"), values.get("field"), values.pop("why"))
    line = ": ".join(part for part in parts if part is not None)
    assert message == "; ".join([line, *([values["remedy"]] if "remedy" in values else [])])


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["plan", "--no-such-option"], "see `hocket plan --help`"),
        (
            ["predict", "--nccl"],
            "Missing option '--topology' / '-t'; see `hocket predict --nccl --help`",
        ),
        (["nothing"], "see `hocket --help`"),
    ],
)
def test_options_that_make_no_sense_as_json(
    hocket: Any, files: Path, argv: list[str], said: str
) -> None:
    result = hocket(*argv, "--json")
    check_refusal(result, [said])
    values = json.loads(result.out)
    assert values["error"] == "UsageError"
    assert values["message"] == result.err.removeprefix("hocket: ").strip()


def test_names_that_are_no_text(hocket: Any, files: Path) -> None:
    """Bytes of the command line that are no UTF-8."""
    (files / "jobs.yml").write_text("jobs: [{name: a, parameters: 10, compute: 1 s}]")
    fabric = ["route", "jobs.yml", "--fabric", "clos:8x2"]
    result = hocket(*fabric, "--failed", "\udce9")
    check_refusal(result, [r"failed: '\udce9' is neither a device nor a link"])
    result = hocket(*split(B), "--root", "\udce9")
    check_refusal(result, [r"root: '\udce9' is not text in UTF-8"])
    result = hocket(*fabric, "--hash", "\udce9")
    check_refusal(result, [r"hash: there is no '\udce9'; use crc32, toeplitz or linux"])


@pytest.mark.parametrize("option", [[], ["--compare"]])
def test_names_with_brackets(hocket: Any, files: Path, option: list[str]) -> None:
    jobs = ", ".join(f"{{name: '{n}', parameters: 10, compute: 1 s}}" for n in ("[b]x[/]", "[/x]"))
    (files / "jobs.yml").write_text(f"jobs: [{jobs}]")
    result = hocket("route", "jobs.yml", "--fabric", "clos:8x2", *option)
    assert result.code == 0, result.err
    assert "[b]x[/]" in result.out
    assert "[/x]" in result.out


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_may_not_be_written(hocket: Any, files: Path) -> None:
    (files / "locked").mkdir(mode=0o500)
    check_refusal(hocket(*split(f"{P} ring -o locked/p.parquet")), ["locked", "cannot be written"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk(hocket: Any, files: Path) -> None:
    says = ["/dev/full", "cannot be written: No space left", "make room, or name a file on another"]
    check_refusal(hocket(*split(f"{P} ring -o /dev/full")), says)


def test_a_truncated_plan(hocket: Any, files: Path) -> None:
    data = (files / "good.parquet").read_bytes()
    ends = {*range(0, len(data), 97), *range(1, 13), *range(len(data) - 12, len(data))}
    for end in sorted(ends):
        (files / "cut.parquet").write_bytes(data[:end])
        before = listing(files)
        check_refusal(hocket("check", "cut.parquet"), ["cut.parquet", "not a whole one"])
        assert listing(files) == before


Edit = Callable[[pa.Table], pa.Table]


def column(name: str, values: Any, kind: pa.DataType | None = None) -> Edit:
    """Put ``values`` (or what they make of the old values) in place of a column."""

    def edit(table: pa.Table) -> pa.Table:
        new = values(table[name].to_pylist()) if callable(values) else values
        place = table.column_names.index(name)
        return table.set_column(place, name, pa.array(new, kind or table.schema.field(name).type))

    return edit


def first(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda old: [value, *old[1:]]


def metadata(name: str, value: str | None) -> Edit:
    def edit(table: pa.Table) -> pa.Table:
        fields = dict(table.schema.metadata)
        if value is None:
            del fields[name.encode()]
        else:
            fields[name.encode()] = value.encode()
        return table.replace_schema_metadata(fields)

    return edit


def in_metadata(name: str, **changes: Any) -> Edit:
    def edit(table: pa.Table) -> pa.Table:
        fields = json.loads(table.schema.metadata[name.encode()])
        return metadata(name, json.dumps(fields | changes))(table)

    return edit


U32, U64 = np.uint32, np.uint64
STRING = pa.string()
EDITS: dict[str, tuple[Edit, list[str]]] = {
    "an op that is none": (
        column("op", lambda old: ["add", *map(str, old[1:])], STRING),
        ["column op", "copy and reduce"],
    ),
    "an op left empty": (
        column("op", lambda old: [None, *map(str, old[1:])], STRING),
        ["column op"],
    ),
    "a sender left empty": (column("src", first(None)), ["column src", "empty"]),
    "a sender below 0": (column("src", first(-1), pa.int64()), []),
    "a sender as a word": (column("src", lambda old: ["x"] * len(old), STRING), []),
    "a wait on nothing there": (column("wait", first(24)), []),
    "a group that is not there": (column("wait_group", first(7)), []),
    "a group beyond all numbers": (column("wait_group", first(2**31)), []),
    "a path that is not there": (column("path", first(3)), []),
    "both waits": (
        lambda table: column("wait_group", first(0))(column("wait", first(3))(table)),
        ["row 0"],
    ),
    "a column too few": (lambda table: table.drop_columns(["dst"]), ["dst"]),
    "a format of the future": (in_metadata("hocket.plan", format=3), ["format", "3"]),
    "an algorithm that is a number": (in_metadata("hocket.plan", collective=3), []),
    "no plan metadata": (metadata("hocket.plan", None), ["hocket.plan"]),
    "no topology": (metadata("hocket.topology", None), ["hocket.topology"]),
    "no demands": (lambda table: table.drop_columns(["chunk_demands"]), ["chunk_demands"]),
    "a topology that is not JSON": (metadata("hocket.topology", "{"), []),
    "a topology that is a list": (metadata("hocket.topology", "[]"), []),
    "deep JSON": (metadata("hocket.plan", "[" * 100_000), []),
    "more NPUs than devices": (in_metadata("hocket.topology", npu_count=9), []),
    "fewer than no NPU": (in_metadata("hocket.topology", npu_count=-1), []),
    "2^70 NPUs": (in_metadata("hocket.topology", npu_count=2**70), []),
    "devices without names": (in_metadata("hocket.topology", devices=[1, 2, 3, 4]), []),
    "a bandwidth of 0": (
        in_metadata("hocket.topology", link_bandwidth=pack(np.zeros(8, U64))),
        ["bandwidth"],
    ),
    "a bandwidth too few": (
        in_metadata("hocket.topology", link_bandwidth=pack(np.ones(7, U64))),
        [],
    ),
    "no dimension": (in_metadata("hocket.topology", dimensions=[[]]), []),
    "an unknown dimension": (
        in_metadata("hocket.topology", dimensions=[["Moebius", 4, 1, 1]]),
        ["Moebius"],
    ),
    "an array that is none": (in_metadata("hocket.topology", link_bandwidth="x"), []),
    "an array of wrong type": (
        in_metadata("hocket.topology", link_bandwidth=pack(np.zeros(8, U32))),
        ["uint64"],
    ),
    "chunks of wrong length": (column("chunk_demands", first([0, 0])), ["chunk_demands 2"]),
    "chunks of no size": (column("chunk_sizes", first([1, None, 1, 1])), ["chunk_sizes", "empty"]),
    "chunks past all bytes": (column("chunk_sizes", first([2**63] * 4)), []),
    "groups that are no lists": (column("groups", first(3), pa.int64()), ["groups", "not lists"]),
    "a group of nothing there": (column("groups", first([[99]])), ["group 0"]),
    "a group of itself": (column("groups", first([[2**31]])), ["group 0"]),
    "a path of words": (
        column("paths", first([["x"]]), pa.list_(pa.list_(STRING))),
        [],
    ),
    "a participant that is not there": (
        in_metadata(
            "hocket.plan",
            collective={
                "kind": "all-reduce",
                "npus": [0, 1, 2, 9],
                "size_bytes": 1_000_000,
                "root": None,
                "in_place": True,
            },
        ),
        ["NPU 9 takes part", "0 to 3"],
    ),
    "a collective of one": (
        in_metadata("hocket.plan", collective={"kind": "all-reduce", "npus": [0]}),
        [],
    ),
}


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("command", ["check", "simulate"])
def test_an_edited_plan(hocket: Any, files: Path, command: str, name: str) -> None:
    edit, words = EDITS[name]
    pq.write_table(edit(pq.read_table("good.parquet")), "edited.parquet")
    before = listing(files)
    check_refusal(hocket(command, "edited.parquet"), ["edited.parquet", *words])
    assert listing(files) == before


def test_a_file_may_gain_columns_and_lose_the_sizes(hocket: Any, files: Path) -> None:
    table = pq.read_table("good.parquet").drop_columns(["size_bytes"])
    table = table.append_column("note", pa.array(["mine"] * len(table)))
    pq.write_table(table, "noted.parquet")
    assert hocket("check", "noted.parquet").code == 0


def to_copy(old: list[Any]) -> list[Any]:
    assert old[0] == "reduce"
    return ["copy", *old[1:]]


# A plan that can be read and does not do what it should: exit code 1, and what is to blame.
WRONG: dict[str, tuple[Edit, list[str]]] = {
    "an op swapped": (column("op", to_copy, STRING), ["transfer", "chunk", "NPU"]),
    "an unknown sender": (column("src", first(99)), ["transfer 0", "NPU 99 does not exist"]),
    "an unknown receiver": (column("dst", first(4)), ["transfer 0", "NPU 4 does not exist"]),
    "a transfer to itself": (
        column("dst", lambda old: [0] * len(old)),
        ["transfer 0", "NPU 0 sends to itself"],
    ),
    "an unknown chunk": (column("chunk", first(4)), ["transfer 0", "carries chunks 4..5"]),
    "too many chunks": (column("chunk_count", first(2**32 - 1)), ["transfer 0", "0..4"]),
    "no chunk at all": (column("chunk_count", first(0)), ["transfer 0", "chunks 3..3"]),
    "an unknown demand": (
        column("chunk_demands", first([0, 0, 0, 9])),
        ["chunk 3", "block 9 of 1"],
    ),
    "the last transfer lost": (lambda table: table.slice(0, 23), ["chunk", "NPU"]),
    "all transfers lost": (lambda table: table.slice(0, 0), ["chunk", "NPU"]),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("command", ["check", "simulate"])
def test_a_wrong_plan(hocket: Any, files: Path, command: str, name: str) -> None:
    edit, words = WRONG[name]
    pq.write_table(edit(pq.read_table("good.parquet")), "wrong.parquet")
    before = listing(files)
    output = ["-o", "run.parquet", "--plot", "heat.png"] if command == "simulate" else []
    result = hocket(command, "wrong.parquet", *output)
    check_refusal(result, ["the plan is wrong", *words], code=1)
    assert result.out == ""
    assert listing(files) == before


def test_a_wrong_plan_as_json(hocket: Any, files: Path) -> None:
    edit, words = WRONG["an op swapped"]
    pq.write_table(edit(pq.read_table("good.parquet")), "wrong.parquet")
    for command in ("check", "simulate"):
        result = hocket(command, "wrong.parquet", "--json")
        check_refusal(result, words, code=1)
        values = json.loads(result.out)
        assert values["error"] == "VerificationError"
        with pytest.raises(hk.VerificationError) as caught:
            hk.Plan.load("wrong.parquet").verify()
        assert values["violations"] == [
            {
                "code": each.code,
                "transfer": each.transfer,
                "chunk": each.chunk,
                "npu": each.npu,
                "detail": each.detail,
            }
            for each in caught.value.violations
        ]
        blamed = values["violations"][0]
        assert 0 <= blamed["transfer"] < 24
        assert 0 <= blamed["chunk"] < 4
        assert 0 <= blamed["npu"] < 4


def test_a_cycle_of_waits_is_a_wrong_plan(hocket: Any, files: Path) -> None:
    table = pq.read_table("good.parquet")
    waits = table["wait"].to_pylist()
    waiting = next(row for row, wait in enumerate(waits) if wait is not None)
    cycle = [waiting if row == waits[waiting] else wait for row, wait in enumerate(waits)]
    pq.write_table(column("wait", cycle)(table), "cycle.parquet")
    check_refusal(hocket("check", "cycle.parquet"), ["transfer", "wait"], code=1)
