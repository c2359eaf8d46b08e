"""Tables for tuners: every size is answered, as NCCL's example plugin reads them too."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import hocket as hk
from hocket.cli import run
from hocket.nccl.tuner import LARGEST, TunerRow, TunerTable

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce")


def example_plugin(text: str) -> Iterator[list[str]]:
    """Rows as plugins/tuner/example/plugin.c reads them: lines of 255 bytes, commas, 8 to 10 fields."""
    for line in text.splitlines(keepends=True):
        assert len(line.encode()) <= 255, "fgets would cut it"
        if line[0] in "#\n":
            continue
        fields = [field.strip(" \t") for field in line.rstrip("\n").split(",") if field]
        assert 8 <= len(fields) <= 10
        assert fields[0] in ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
        assert fields[3] in ("tree", "ring", "nvls", "nvls_tree", "pat")
        assert fields[4] in ("ll", "ll128", "simple")
        yield fields


@pytest.mark.parametrize(
    "topology", ["dgx_a100_1box", "dgx_a100_2box", "hgx_h200_8gpu", "dgx1_v100"]
)
def test_every_size_is_answered(topology: str) -> None:
    table = hk.nccl.tuner_table(topology)
    network = hk.topology.load(topology)
    nodes = max(len(network.groups), 1)
    rows = list(example_plugin(table.text))
    for kind in ("broadcast", "reduce", "allgather", "reducescatter", "allreduce"):
        ranges = sorted((int(row[1]), int(row[2])) for row in rows if row[0] == kind)
        assert ranges[0][0] == 0
        assert ranges[-1][1] == LARGEST
        assert all(end + 1 == start for (_, end), (start, _) in itertools.pairwise(ranges))
    # With -1 the example plugin would set one channel.
    assert all(1 <= int(row[5]) <= 64 for row in rows)
    assert {(row[6], row[7]) for row in rows} == {(str(nodes), str(network.npu_count))}
    for kind in KINDS:
        for size in (1, 1000, 1 << 15, 1 << 20, 12_345_678, 1 << 32):
            row = table.pick(kind, size, nodes=nodes, ranks=network.npu_count)
            pick = hk.nccl.predict(kind, topology, size=size)
            assert row is not None
            assert (row.algorithm, row.protocol) == (pick.algorithm, pick.protocol), (kind, size)


def test_ends_are_exact() -> None:
    table = hk.nccl.tuner_table("dgx_a100_1box")
    rows = [row for row in table.rows if row.kind == "all-reduce"]
    changes = 0
    for row, after in itertools.pairwise(rows):
        below = hk.nccl.predict("all-reduce", "dgx_a100_1box", size=row.most)
        above = hk.nccl.predict("all-reduce", "dgx_a100_1box", size=after.least)
        assert (below.algorithm, below.protocol) == (row.algorithm, row.protocol)
        assert (above.algorithm, above.protocol) == (after.algorithm, after.protocol)
        changes += (row.algorithm, row.protocol) != (after.algorithm, after.protocol)
    assert changes >= 2


def test_channels_grow_with_the_work() -> None:
    """Of a ring with Simple, 512 threads of 64 bytes each: another channel from 32 KiB on."""
    table = hk.nccl.tuner_table("dgx_a100_1box")
    last = [row for row in table.rows if row.kind == "all-gather"][-1]
    assert (last.protocol, last.channels) == ("Simple", 24)
    ring = [row for row in table.rows if (row.kind, row.protocol) == ("all-gather", "Simple")]
    for row in ring:
        assert row.channels == 1 or row.least >= row.channels * 512 * 64 or row is ring[0]


def test_by_a_profile() -> None:
    table = hk.nccl.tuner_table("dgx_a100_1box", profile="a100")
    assert any("predicted by a profile" in each for each in table.comments)
    found = hk.predict("all-reduce", "dgx_a100_1box", sizes="1 GiB").times[0]
    row = table.pick("all-reduce", 1 << 30, nodes=1, ranks=8)
    assert row is not None
    assert (row.algorithm, row.protocol.lower()) == (found.algorithm, found.protocol.lower())


SWEEP = """collective,gpus,nodes,bytes,time_us,algo,proto
all_reduce,8,1,1024,10,tree,ll
all_reduce,8,1,1024,14,ring,simple
all_reduce,8,1,1048576,80,tree,ll
all_reduce,8,1,1048576,40,ring,simple
all_reduce,8,1,1048576,50,auto,auto
"""


def test_from_sweeps(tmp_path: Path) -> None:
    file = tmp_path / "sweep.csv"
    file.write_text(SWEEP)
    table = hk.nccl.tuner_table("dgx_a100_1box", measured=[file])
    assert "all-reduce: measured" in table.comments
    assert "all-gather: predicted by NCCL's own model" in table.comments
    pick = table.pick("all-reduce", 0, nodes=1, ranks=8)
    assert pick is not None
    assert pick.algorithm == "tree"
    # log(14 / 10) above at 1 KiB, log(40 / 80) below at 1 MiB: equal where a straight line passes 0.
    share = 0.33647 / (0.33647 + 0.69315)
    at = 1024 * 1024**share
    change = next(row.least for row in table.rows if row.algorithm == "ring")
    assert change == pytest.approx(at, rel=0.01)
    assert table.rows[-1].most == LARGEST


def test_sweeps_that_do_not_fit(tmp_path: Path) -> None:
    file = tmp_path / "sweep.csv"
    file.write_text(SWEEP)
    with pytest.raises(hk.SpecError, match="8 GPUs on 1 node were measured"):
        hk.nccl.tuner_table("dgx_a100_2box", measured=[file])
    file.write_text(
        "\n".join(line for line in SWEEP.splitlines() if "tree" not in line and "ring" not in line)
    )
    with pytest.raises(hk.SpecError, match="no line says which algorithm"):
        hk.nccl.tuner_table("dgx_a100_1box", measured=[file])
    for wrong, why in (
        ("tree,ll", "no algorithm 'tree2'"),
        ("ring,simple", "no protocol 'simple2'"),
    ):
        file.write_text(SWEEP.replace(wrong, "tree2,ll" if "tree2" in why else "ring,simple2"))
        with pytest.raises(hk.SpecError, match=f"sweep.csv: measured: there is {why}; "):
            hk.nccl.tuner_table("dgx_a100_1box", measured=[file])
    with pytest.raises(hk.SpecError, match="not a list of files"):
        hk.nccl.tuner_table("dgx_a100_1box", measured=str(file))


def test_a_file_is_read_again(tmp_path: Path) -> None:
    table = hk.nccl.tuner_table("dgx_a100_2box")
    table.write(tmp_path / "tuner.csv")
    assert hk.nccl.read_tuner(tmp_path / "tuner.csv") == table
    assert "NCCL 2.30.7" in table.text


def test_holes_are_not_written(tmp_path: Path) -> None:
    row = TunerRow("reduce", 0, (1 << 32) - 1, "ring", "Simple", 2, 1, 8)
    with pytest.raises(hk.SpecError, match="no line answers for reduce of 4294967296 bytes"):
        TunerTable((row,)).write(tmp_path / "tuner.csv")
    assert not list(tmp_path.iterdir())


def test_bad_tables(tmp_path: Path) -> None:
    file = tmp_path / "tuner.csv"
    for text, why in [
        ("allreduce,0,1,Ring,ll,1,1,1\n", 'tuner.csv, line 1: there is no "Ring"'),
        ("# a\nallreduce,0,1,ring,ll,1\n", "tuner.csv, line 2: the line has 6 fields"),
        ("allreduce,5,1,ring,ll,1,1,1\n", "max_bytes 1 is less"),
        (f"# {'a' * 300}\n", "the line has 302 characters"),
    ]:
        file.write_text(text)
        with pytest.raises(hk.SpecError, match=why.replace("(", "\\(")):
            hk.nccl.read_tuner(file)
    with file.open("wb") as whole:
        whole.truncate(2 << 30)
    with pytest.raises(hk.SpecError, match="is larger than 64 MiB"):
        hk.nccl.read_tuner(file)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "tuner.csv")
    assert run(["nccl", "tuner", "write", "--topology", "dgx_a100_1box", "-o", output]) == 0
    assert "all-reduce" in capsys.readouterr().out
    first = Path(output).read_text()
    assert "predicted by a profile" in first
    given = ["nccl", "tuner", "write", "--topology", "dgx_a100_1box", "-o", output, "--json"]
    assert run([*given, "--profile", "none"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["format"] == "hocket.nccl-tuner"
    assert Path(output).read_text() != first
    assert run(["nccl", "tuner", "write", "--topology", "mi250_1box", "-o", output]) == 2
    assert "links of xGMI are those of AMD's GPUs" in capsys.readouterr().err


def test_groups_of_a_job_have_lines_in_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each number of ranks and nodes as on its own part of the network, the first group of those alike."""
    network = hk.topology.load("dgx_a100_2box")
    box = [list(range(8)), list(range(8, 16))]
    table = hk.nccl.tuner_table(network, groups=[list(range(16)), *box, [0, 1, 8, 9], [3]])
    assert {(row.ranks, row.nodes) for row in table} == {(16, 2), (8, 1), (4, 2)}
    whole = hk.nccl.tuner_table(network).rows
    alone = hk.nccl.tuner_table(network.without(network.device_names[8:16])).rows
    assert table.rows[: len(whole) + len(alone)] == whole + alone
    for counts in ((16, 2), (8, 1), (4, 2)):
        for size in (0, 1 << 20, LARGEST):
            row = table.pick("all-reduce", size, ranks=counts[0], nodes=counts[1])
            assert row is not None
    assert table.pick("all-reduce", 0, ranks=2, nodes=1) is None
    # By the words of a mesh: of one GPU per node there is no model.
    file = tmp_path / "tuner.csv"
    words = ["--process-groups", "world,dp=2,tp=8", "--profile", "none"]
    write = ["nccl", "tuner", "write", "-t", "dgx_a100_2box", "-o", str(file), *words]
    assert run(write) == 0
    assert hk.nccl.read_tuner(file).rows == whole + alone
    printed = capsys.readouterr().out
    assert "2 ranks on 2 nodes are left to NCCL: its nodes have a single NPU" in printed
    assert "┃ ranks ┃ nodes ┃" in printed


def test_groups_that_make_no_table() -> None:
    for groups, why in (
        ([[0, 8]], "2 ranks on 2 nodes are left to NCCL"),
        ([[0], [1]], "every group has one NPU"),
    ):
        with pytest.raises(hk.InfeasibleError, match=why):
            hk.nccl.tuner_table("dgx_a100_2box", groups=groups)
    with pytest.raises(hk.SpecError, match="groups: 16"):
        hk.nccl.tuner_table("dgx_a100_2box", groups=[[0, 16]])
