"""Files of runtimes: written, read, judged, refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import hocket as hk
from hocket.cli.app import run
from hocket.formats import ExportOptions, check_file, export_plan

PROGRAMS = ("msccl", "mscclpp")

Change = Callable[[str], str]


@pytest.fixture(scope="module")
def plan() -> hk.Plan:
    topo = hk.topology.ring(4, bandwidth="50 GB/s", latency="500 ns")
    return hk.plan("all-reduce", topo, size="4 MB", algorithm="ring", chunks=1)


@pytest.fixture(scope="module")
def xml(plan: hk.Plan, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("msccl") / "plan.xml"
    export_plan(plan, path, to="msccl", options=ExportOptions(min_size=1024, max_size="1 GiB"))
    return path.read_text()


@pytest.fixture(scope="module")
def plan_json(plan: hk.Plan, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("mscclpp") / "plan.json"
    export_plan(plan, path, to="mscclpp")
    return path.read_text()


@pytest.mark.parametrize("kind", PROGRAMS)
@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"])
@pytest.mark.parametrize("in_place", [True, False])
def test_what_is_written_is_right(
    kind: str, collective: str, in_place: bool, tmp_path: Path
) -> None:
    topo = hk.topology.fully_connected(4, bandwidth="50 GB/s", latency="500 ns")
    plan = hk.plan(collective, topo, size="4 MB", algorithm="direct", chunks=1)
    path = tmp_path / "plan"
    if collective == "all-to-all" and in_place:
        with pytest.raises(hk.InfeasibleError, match="in place would overwrite"):
            export_plan(plan, path, to=kind, options=ExportOptions(in_place=True))
        assert not list(tmp_path.iterdir())
        return
    made = export_plan(plan, path, to=kind, options=ExportOptions(in_place=in_place))
    found = check_file(path)
    assert found.kind.name == kind
    assert found.is_right, found.judgement.faults[0].text
    written, read = made.written.program, found.judgement.program
    assert written is not None
    assert read is not None
    assert read.contents_known
    assert written.chunks == read.chunks
    assert read.in_place == in_place


def test_the_limits_of_sizes_are_in_the_file(xml: str) -> None:
    assert re.match(
        r'<algo [^>]* inplace="1" outofplace="0" minBytes="1024" maxBytes="1073741824">', xml
    )


def swap(old: str, new: str, count: int = 1) -> Change:
    """Replace what must be there."""

    def change(text: str) -> str:
        assert old in text, old
        return text.replace(old, new, count)

    return change


def matched(pattern: str, new: str) -> Change:
    """Replace the first match of what must be there."""

    def change(text: str) -> str:
        made, count = re.subn(pattern, new, text, count=1)
        assert count == 1, pattern
        return made

    return change


UNREADABLE: dict[str, tuple[Change, str]] = {
    "cut": (lambda text: text[: len(text) // 2], r"line \d+: "),
    "declaration": (lambda text: '<?xml version="1.0"?>' + text, "XML declaration"),
    "entity bomb": (
        lambda text: '<!DOCTYPE algo [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + text,
        "document type",
    ),
    "entity": (swap('name="ring"', 'name="&lt;"'), "has an entity in name"),
    "text": (swap("<gpu", "stray <gpu"), "text or an entity between elements"),
    "no protocol": (swap('proto="Simple"', ""), "lacks proto"),
    "unknown protocol": (
        swap('proto="Simple"', 'proto="LL256"'),
        'proto="LL256", which is unknown',
    ),
    "unknown collective": (swap('coll="allreduce"', 'coll="allshuffle"'), "which no runtime knows"),
    "world size": (swap('ngpus="4"', 'ngpus="5"'), "has 4 <gpu> elements, and ngpus is 5"),
    "fewer ranks": (swap('ngpus="4"', 'ngpus="3"'), 'has id="3"; it must be 0 to 2'),
    "no number": (swap('nchannels="1"', 'nchannels="one"'), "must be a whole number"),
    "too large": (swap('ngpus="4"', 'ngpus="99999999999999999999"'), "must be a whole number"),
    "rank twice": (swap('gpu id="1"', 'gpu id="0"'), "the next rank is 1"),
    "block ids": (swap('tb id="0"', 'tb id="1"'), "the next is 0"),
    "unknown step": (matched(r'type="s"', 'type="ra"'), 'type="ra", which is unknown'),
    "unknown buffer": (matched(r'srcbuf="i"', 'srcbuf="x"'), 'srcbuf="x", which is unknown'),
    "half a dependency": (swap('depid="-1"', 'depid="0"'), 'deps="-1"'),
    "flag": (swap('hasdep="0"', 'hasdep="2"'), "must be 0 to 1"),
    "misplaced": (swap("<gpu", "<step/><gpu"), "<step> element where none belongs"),
    "second": (lambda text: text + text, "second <algo>"),
    "mismatched tags": (swap("</gpu>", "</tb>"), "is not XML"),
    "attribute twice": (swap('id="0"', 'id="0" id="0"'), "<gpu>"),
}
WRONG: dict[str, tuple[Change, str]] = {
    "channel": (matched(r'(<tb [^>]*)chan="0"', r'\1chan="3"'), "unknown_channel"),
    "position": (swap(' s="1"', ' s="7"'), "position"),
    "no chunks": (swap('cnt="1"', 'cnt="0"'), "count"),
    "many chunks": (swap('cnt="1"', 'cnt="72"'), "count"),
    "offset": (swap('srcoff="0"', 'srcoff="40000"'), "offset"),
    "bounds": (swap('srcoff="0"', 'srcoff="4"'), "out_of_bounds"),
    "dependency": (swap('depid="-1" deps="-1"', 'depid="5" deps="0"'), "dependency"),
    "silent": (
        matched(r'( s="1"[^>]*)depid="-1" deps="-1"', r'\1depid="0" deps="0"'),
        "dependency",
    ),
    "stray nop": (
        matched(
            r'<step s="0" type="s"[^>]*/>',
            '<step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" '
            'depid="-1" deps="-1" hasdep="0"/>',
        ),
        "nop",
    ),
    "peer": (matched(r'send="1"', 'send="9"'), "unknown"),
    "own peer": (matched(r'(<gpu id="0"[^>]*>\s*<tb id="0") send="1"', r'\1 send="0"'), "unknown"),
    "no peer": (matched(r'send="1"', 'send="-1"'), "unknown"),
    "idle sender": (swap("</gpu>", '<tb id="1" send="1" recv="-1" chan="0"></tb></gpu>'), "shared"),
    "idle receiver": (
        swap("</gpu>", '<tb id="1" send="-1" recv="3" chan="0"></tb></gpu>'),
        "shared",
    ),
    "half a connection": (
        swap("</gpu>", '<tb id="1" send="2" recv="-1" chan="0"></tb></gpu>'),
        "unmatched",
    ),
    "lost": (matched(r'\s*<step s="6"[^>]*/>', ""), "unmatched"),
    "counts": (swap('cnt="1"', 'cnt="2"'), "out_of_bounds"),
    "chunk": (
        swap('type="s" srcbuf="i" srcoff="0"', 'type="s" srcbuf="i" srcoff="1"'),
        "wrong_sum",
    ),
    "order of sizes": (swap('minBytes="1024"', 'minBytes="9999999999"'), "size_limits"),
    "no mode": (swap('inplace="1" outofplace="0"', 'inplace="0" outofplace="0"'), "no_mode"),
    "other collective": (swap('coll="allreduce"', 'coll="allgather"'), "undefined"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_files_are_refused_in_one_line(
    name: str, xml: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, said = UNREADABLE[name]
    path = tmp_path / "broken.xml"
    path.write_text(change(xml))
    assert run(["check", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "broken.xml" in printed.err
    assert re.search(said, printed.err), printed.err


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_are_each_wrong_for_their_own_reason(
    name: str, xml: str, tmp_path: Path
) -> None:
    change, code = WRONG[name]
    path = tmp_path / "wrong.xml"
    path.write_text(change(xml))
    found = check_file(path)
    assert not found.is_right
    assert found.judgement.faults[0].code == code, found.judgement.faults[0].text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"inplace":true', '"inplace":"yes"', "invalid type"),
        ('"gpus":[', '"gpus":[{},', "missing field `id`"),
        ('"collective":"allreduce",', "", "missing field `collective`"),
        ('"channel_type":"memory"', '"channel_type":"rope"', "unknown variant `rope`"),
    ],
)
def test_unreadable_json_is_refused_in_one_line(
    old: str,
    new: str,
    said: str,
    plan_json: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "broken.json"
    assert old in plan_json
    path.write_text(plan_json.replace(old, new, 1))
    assert run(["check", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert said in printed.err
    assert "broken.json, line 1" in printed.err


def test_keys_that_the_executor_does_not_read_are_notes(
    plan_json: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "more.json"
    more = swap('"protocol":"Simple"', '"protocol":"Simple","version":2')(plan_json)
    path.write_text(swap('"init_value":', '"colour":null,"init_value":', -1)(more))
    found = check_file(path)
    assert found.is_right
    notes = found.judgement.notes
    assert 'the executor does not read "version" of the plan' in notes
    assert any('"colour" of gpus[0].semaphores[0] and ' in note for note in notes)
    assert run(["check", str(path)]) == 0
    assert 'the executor does not read "version"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"id":1', '"id":3', "position"),
        ('"name":"nop"', '"name":"hop"', "operation"),
        ('"input_chunks":4', '"input_chunks":0', "sizes"),
        ('"connected_to":[1', '"connected_to":[9', "channel"),
        ('"channel_ids":[0]', '"channel_ids":[40]', "channel"),
        ('"protocol":"Simple"', '"protocol":"LL512"', "protocol"),
        ('"buffer_id":0', '"buffer_id":7', "unreadable"),
        ('"name":"wait"', '"name":"signal"', "unmatched"),
        ('"name":"nop"', '"name":"flush"', "race"),
    ],
)
def test_wrong_json_is_wrong_for_its_own_reason(
    old: str, new: str, code: str, plan_json: str, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.json"
    assert old in plan_json
    path.write_text(plan_json.replace(old, new, -1 if code == "race" else 1))
    found = check_file(path)
    assert not found.is_right
    assert found.judgement.faults[0].code == code, found.judgement.faults[0].text


def test_other_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    assert run(["check", str(path)]) == 2
    assert "is not a file of a known runtime" in capsys.readouterr().err
    path.write_bytes(b"\xff\xfe<algo")
    assert run(["import", str(path)]) == 2
    assert "is not text in UTF-8" in capsys.readouterr().err
    assert run(["check", str(tmp_path / "missing.xml")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_file_of_two_gib_is_refused_unread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "huge.xml"
    with path.open("wb") as file:
        file.truncate(2 << 30)
    assert run(["check", str(path)]) == 2
    assert "is larger than 1024 MiB" in capsys.readouterr().err


def test_commands_print_and_exit(
    plan: hk.Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, written = tmp_path / "plan.parquet", tmp_path / "plan.xml"
    plan.save(saved)
    assert run(["export", str(saved), "--to", "msccl", "-o", str(written), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["format"] == "hocket.exported-file"
    assert made["program"]["steps"] == 28
    assert run(["check", str(written), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["right"] is True
    written.write_text(written.read_text().replace('coll="allreduce"', 'coll="allgather"'))
    assert run(["check", str(written)]) == 1
    assert "wrong: " in capsys.readouterr().out
    assert run(["import", str(written)]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "nccl-scroll"), "is not a kind of file"),
        (("--to", "mscclpp", "--protocol", "LL128"), "is not a protocol of MSCCL++"),
        (("--to", "msccl", "--protocol", "LL99"), "is not a protocol of NCCL"),
        (("--to", "msccl", "--channels", "0"), "give a whole number from 1 to"),
        (("--to", "msccl", "--min-size", "2 elephants"), "elephants"),
    ],
)
def test_wrong_options_write_nothing(
    arguments: tuple[str, ...],
    said: str,
    plan: hk.Plan,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    saved = tmp_path / "plan.parquet"
    plan.save(saved)
    assert run(["export", str(saved), "-o", str(tmp_path / "out"), *arguments]) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "out").exists()
