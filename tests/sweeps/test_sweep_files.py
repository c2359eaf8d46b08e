"""Sweep files that are wrong: one line with file, line, what is wrong and what would be right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from tests.nccl.dumps import DGX_H100

import hocket as hk
from hocket.cli import schema
from hocket.errors import Error
from hocket.sweeps.commands import NAMES, command_named
from hocket.sweeps.inputs import SweepInputs
from hocket.sweeps.sweep import MOST_POINTS
from hocket.sweeps.yaml import from_text

ROOT = Path(__file__).parents[2]
NET = "topology: 'ring:4@25GB/s,1us'"
GOOD = f"command: simulate\nset: {{{NET}, algorithm: ring}}\ngrid:\n  size: [1 KB]\n"

WRONG = [
    ("", "s.yml: is empty; begin with command: and grid: or list:"),
    ("grid: {}", "s.yml: key 'command' is missing; add it: simulate, compare, "),
    (
        "command: simulat",
        "s.yml, line 1: command: no sweep runs 'simulat'; did you mean 'simulate'?",
    ),
    (GOOD + "gird: {}", "s.yml, line 5: there is no key 'gird'; did you mean 'grid'?"),
    (
        GOOD.replace("algorithm", "algoritm"),
        "s.yml, line 2: set: simulate has no key 'algoritm'; did you mean 'algorithm'?",
    ),
    (
        GOOD.replace("algorithm: ring", "algorithm: rong"),
        "s.yml, line 2: set.algorithm: there is no algorithm 'rong'; did you mean 'ring'?",
    ),
    (
        GOOD.replace("[1 KB]", "[1 KB, 1 parsec]"),
        "s.yml, line 4: grid.size[1]: '1 parsec': 'parsec' is not a unit of size; ",
    ),
    (GOOD.replace("[1 KB]", "[1 KB, 1000]"), "grid.size[1]: 1000 stands twice; keep one"),
    (GOOD.replace("[1 KB]", "[]"), "s.yml, line 4: grid.size: has no values; give one at least"),
    (GOOD.replace("[1 KB]", ""), "s.yml, line 4: grid.size: has no value; give it one"),
    (GOOD + "  chunks: [0]", "s.yml, line 5: grid.chunks[0]: 0 is not a number of chunks; "),
    (GOOD + "  chunks: ['0:4:x2']", "chunks[0]: '0:4:x2' multiplies 0; begin at 1 or more"),
    (GOOD + "  seed: [-4]", "line 5: grid.seed[0]: -4 is not a whole number from 0 to 2^64 - 1"),
    ("command: pareto", "line 1: command: no sweep runs 'pareto'; use `hocket compare --front`"),
    (GOOD + "  chunks: ['1:9:x1']", "'1:9:x1' never gets further; give a step of +1 or more"),
    (GOOD + "  chunks: 9:1", "s.yml, line 5: grid.chunks: '9:1' ends before it begins; "),
    (GOOD + "  seed: 0:9999999999:+1", "has 10,000,000,000 numbers; a range has at most 1,000,000"),
    (GOOD + "  routing: [sideways]", "s.yml, line 5: grid.routing[0]: "),
    (GOOD + "  failed: [3]", "s.yml, line 5: grid.failed[0]: 3 is no list of devices and links; "),
    (GOOD + "  cache: [1]", "s.yml, line 5: grid.cache[0]: 1 is neither true nor false; "),
    (GOOD.replace("algorithm: ring", "algorithm: [ring]"), "set.algorithm: ['ring'] is a list; "),
    (
        GOOD + "  algorithm: [direct]",
        "grid.algorithm: algorithm is in set: too; say it in one place",
    ),
    (GOOD + "list: [{size: 2 KB}]", "grid.size: size is in list: too; say it in one place"),
    (GOOD + "list: []", "s.yml, line 5: list: is empty; give a point a line"),
    (
        GOOD.replace(NET, "size: 2 KB").replace("  size", "  seed").replace("1 KB", "1"),
        "needs a key 'topology'",
    ),
    (
        GOOD.replace("ring:4@", "rong:4@"),
        "s.yml, line 2: set.topology: there is no 'rong' to build; ",
    ),
    (GOOD.replace("ring:4@25GB/s,1us", "ring:4"), "s.yml, line 2: set.topology: "),
    (GOOD.replace("ring:4@25GB/s,1us", "no/such.yml"), "no/such.yml: cannot be read: No such file"),
    (GOOD + "costs: {link: {ech: 1}}", "costs.link: there is no key 'ech'; did you mean 'each'?"),
    (GOOD + "costs: none.yml", "none.yml: cannot be read: No such file or directory; "),
    (
        "command: train\nset: {topology: dgx1_v100, workload: gpt-9}",
        "s.yml, line 2: set.workload: ",
    ),
    (
        "command: train\nset: {topology: dgx1_v100, workload: resnet50, parallel: 'dp'}",
        "set.parallel: 'dp' is",
    ),
    (
        "command: train\nset: {topology: dgx1_v100, workload: resnet50, npu: a1}",
        "line 2: set.npu: ",
    ),
    (
        "command: predict\nset: {topology: dgx1_v100, size: 1 MB, profile: x}",
        "line 2: set.profile: ",
    ),
    (
        "command: route\nset: {jobs: x.yml, fabric: 'clos:4x4'}",
        "x.yml: cannot be read: No such file",
    ),
    (
        GOOD.replace("algorithm: ring", "algorithm: a.py:f"),
        "'a.py:f' is a file; register the algorithm",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[message[:60] for _, message in WRONG])
def test_what_is_wrong_is_said_in_one_line(text: str, message: str) -> None:
    with pytest.raises(hk.SpecError) as caught:
        from_text(text, "s.yml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_many_points_are_counted_and_not_listed() -> None:
    text = GOOD + "  seed: 0:99999:+1\n  chunks: 1:10000:+1\n"
    with pytest.raises(hk.SpecError) as caught:
        from_text(text, "s.yml")
    assert str(caught.value) == (
        "s.yml: these are 1,000,000,000 points: size 1 x seed 100,000 x chunks 10,000; "
        "a sweep has at most 1,000,000; give a key fewer values, or make several sweeps"
    )


@pytest.mark.slow
def test_as_many_points_as_there_can_be() -> None:
    assert from_text(GOOD + "  seed: 0:999999:+1", "s.yml").count == MOST_POINTS


def test_numbers_to_base_60_are_ranges() -> None:
    sweep = from_text(GOOD + "  chunks: 1:24\n", "s.yml")
    assert sweep.axes[1].values == tuple(range(1, 25))


def test_files_are_looked_for_from_the_folder_of_the_sweep(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "net.yml").write_text(
        "builder: ring\nnpus: 4\nbandwidth: 25 GB/s\nlatency: 1 us\n"
    )
    (tmp_path / "sub" / "mine.yml").write_text(
        "name: mine\nsends: [{src: 0, dst: 2, size: 1 MB}]\n"
    )
    file = tmp_path / "sub" / "sweep.yml"
    file.write_text(
        "command: simulate\nset: {collective: mine.yml}\n"
        "grid: {topology: [net.yml, 'pod=net.yml'], algorithm: [greedy]}\n"
    )
    found = hk.run_sweep(file, tmp_path / "out", workers=1)
    rows = found.to_frame().to_pylist()
    assert [row["error"] for row in rows] == [None, None]
    assert [row["topology"] for row in rows] == ["net.yml", "pod=net.yml"]
    # Two hops of 40 us and 1 us each, or both ways at once.
    assert 21_000_000 <= rows[0]["time_ps"] <= 82_000_000


@pytest.mark.parametrize("name", NAMES)
def test_keys_and_columns_do_not_clash(name: str) -> None:
    command = command_named(name)
    assert not set(command.keys) & set(command.columns)
    assert not {"point", "error", "error_kind"} & (set(command.keys) | set(command.columns))
    assert set(command.required) <= set(command.keys)


def test_the_example_of_the_documentation_is_read() -> None:
    page = (Path(hk.__file__).parents[2] / "docs" / "sweeps.md").read_text()
    blocks = [part.split("```")[0] for part in page.split("```yaml\n")[1:]]
    sweeps = [block for block in blocks if "command" in yaml.safe_load(block)]
    assert sweeps
    for block in sweeps:
        assert from_text(block, "docs/sweeps.md").count > 0


# The schema.


def _complaints(text: str) -> list[str]:
    from jsonschema import Draft202012Validator

    from hocket.sweeps.schema import json_schema

    found = Draft202012Validator(json_schema()).iter_errors(yaml.safe_load(text))
    return [error.message for error in found]


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = schema.schema_text("sweep")
    assert schema.main(["sweep"]) == 0
    assert capsys.readouterr().out == text


def test_sweep_files_that_ship_are_valid() -> None:
    page = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    shown = [
        each for each in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "command:" in each
    ]
    files = [
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("sweep*.yml"))
    ]
    assert shown
    assert files
    for text in (*shown, *files):
        assert from_text(text, "sweep.yml", ROOT / "examples").count > 0
        assert _complaints(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "grid: {size: [1 MB]}",
        "command: simulat\ngrid: {size: [1 MB]}",
        "command: simulate\ngrids: {size: [1 MB]}",
        "command: simulate\ngrid: {sizes: [1 MB]}",
        "command: simulate\nset: {npu: a100}",
        "command: simulate\nset: {chunks: [1, 2]}",
        "command: simulate\nlist: []",
        "command: simulate\nlist: [{workload: alexnet}]",
        "command: train\nset: {size: 1 MB}",
        "command: simulate\ngrid: {cache: [5]}",
        "command: simulate\ncosts: {links: 5}",
    ],
)
def test_what_reading_refuses_the_schema_refuses(text: str) -> None:
    with pytest.raises(Error):
        from_text(text, "sweep.yml")
    assert _complaints(text)


def test_one_value_has_no_number() -> None:
    with pytest.raises(hk.SpecError, match=r"grid\.topology: there is no 'ring'"):
        from_text("command: bound\nset: {size: 1 MB}\ngrid: {topology: ring}\n", "s.yml")


def test_one_dump_stands_for_several_nodes(tmp_path: Path) -> None:
    (tmp_path / "h100.xml").write_text(DGX_H100.topology())
    text = "dump:h100.xml,nodes=2"
    file = tmp_path / "sweep.yml"
    file.write_text(
        "command: compare\n"
        "set: {collective: all-gather, size: 1 MB, algorithm: ring}\n"
        f"grid: {{topology: ['{text}', 'four=dump:h100.xml,nodes=4']}}\n"
    )
    sweep = hk.load_sweep(file)
    made = [SweepInputs(sweep.loaded).network(sweep.point(i)) for i in range(2)]
    assert [each.topology.npu_count for each in made] == [16, 32]
    assert [each.topology.name for each in made] == ["h100 x2", "four"]
    assert sorted(sweep.files) == [text, "four=dump:h100.xml,nodes=4"]
