"""``hocket train``: its table and JSON are what Python gives, and what it writes is whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hocket as hk

from .conftest import Hocket

HOMO = ("-t", "themis-3d-homo")
SMALL = ("-t", "SW_SW:4x4", "--bandwidth", "50 GB/s", "--latency", "1 us")


def rows(out: str) -> dict[str, list[str]]:
    """Give the first table of two columns or more: its cells by the first of each row."""
    found: dict[str, list[str]] = {}
    for line in out.splitlines():
        if line.startswith("│"):
            cells = [cell.strip() for cell in line.strip("│").split("│")]
            found.setdefault(cells[0], cells[1:])
    return found


def test_the_table_says_where_the_time_went(hocket: Hocket) -> None:
    run = hk.train("resnet152", hk.topology.load("themis-3d-homo"))
    done = hocket("train", "resnet152", *HOMO)
    assert done.code == 0, done.err
    table = rows(done.out)
    assert list(table) == ["forward", "backward", "update", "exposed: data", "iteration"]
    assert float(table["iteration"][0].replace(",", "")) == pytest.approx(
        run.total_ps * 1e-6, rel=1e-4
    )
    shares = [float(cells[1].rstrip("%")) for name, cells in table.items() if name != "iteration"]
    assert sum(shares) == pytest.approx(100, abs=0.2)
    for part in (
        "resnet152 on 1,024 NPUs of themis_3d_homo: dp=1024, 32 samples per replica",
        f"{run.samples_per_second:,.0f} samples/s",
        f"{run.hidden:.1%} of it is hidden behind compute",
        "memory: about 3.803 GB",
        "a100 has 80 GB",
        "algorithm: themis, 64 chunks, the default on networks with dimensions",
        "dp: groups of 1,024 NPUs on dimension 1 (Switch: all 16), dimension 2",
    ):
        assert part in done.out, part
    assert "stages" not in done.out
    assert "0 ps" not in done.out


def test_json_is_what_python_gives(hocket: Hocket) -> None:
    options = {"parallel": "dp=256,pp=4", "iterations": 3, "recompute": True, "order": "lifo"}
    run = hk.train("resnet152", hk.topology.load("themis-3d-homo"), **options)  # type: ignore[arg-type]
    told = hocket(
        *("train", "resnet152", *HOMO, "--parallel", "dp=256,pp=4", "--iterations", "3"),
        *("--recompute", "--order", "lifo", "--json"),
    ).json()
    assert told["time_ps"] == run.time_ps
    assert told["total_ps"] == run.total_ps == told["iteration_ends_ps"][-1]
    assert told["iteration_ends_ps"] == run.iteration_ps
    assert told["samples_per_s"] == run.samples_per_second
    assert told["parallel"] == {
        "dp": 256, "tp": 1, "pp": 4, "ep": 1, "cp": 1, "interleave": 1, "zero": 0, "micro_batches": 16,
    }  # fmt: skip
    mean = run.breakdown.over(3)
    for part, whole in [(told["breakdown"], mean)] + [
        (stage["breakdown"], own.over(3))
        for stage, own in zip(told["stages"], run.stage_breakdowns, strict=True)
    ]:
        assert part["forward_ps"] == whole.forward
        assert part["exposed_ps"] == whole.exposed
        times = [part[f"{name}_ps"] for name in ("forward", "backward", "update", "waiting")]
        assert sum(times) + sum(part["exposed_ps"].values()) == pytest.approx(run.time_ps)
    assert told["memory"]["total_bytes"] == run.memory.total
    assert told["npu"]["memory_bytes"] == 80 * 10**9
    assert [layer["name"] for layer in told["layers"]] == [layer.name for layer in run.layers]
    assert {layer["stage"] for layer in told["layers"]} == {1, 2, 3, 4}
    assert told["groups"]["pp"] == {
        "npus": 4, "count": None, "dimensions": [{"dimension": 3, "npus": 4, "apart": 2}],
    }  # fmt: skip


def test_every_option_reaches_the_run(hocket: Hocket) -> None:
    """Each changes what is told, as Python says that it should."""
    cases = {
        ("--samples", "8"): {"samples": 8},
        ("--npu", "h100"): {"npu": "h100"},
        ("--npu", "chiplet"): {"npu": hk.Chiplet()},
        ("--efficiency", "0.5"): {"efficiency": 0.5},
        ("--precision-bits", "32"): {"precision_bits": 32},
        ("--bucket", "1 MiB"): {"bucket": "1 MiB"},
        ("--bucket", "all"): {"bucket": None},
        ("--recompute",): {"recompute": True},
        ("--no-update",): {"update": False},
        ("--algorithm", "ring"): {"algorithm": "ring"},
        ("--algorithm", "hierarchical", "--chunks", "4"): {
            "algorithm": "hierarchical",
            "chunks": 4,
        },
        ("--parallel", "dp=4,tp=4"): {"parallel": "dp=4,tp=4"},
        ("--parallel", "dp=4,tp=4", "--map", "tp=2"): {
            "parallel": hk.Parallel(dp=4, tp=4, dimensions={"tp": [2]})
        },
        ("--parallel", "dp=16,zero=3"): {"parallel": "dp=16,zero=3"},
    }
    net = ("-t", "SW_SW:4x4", "--bandwidth", "50 GB/s", "--bandwidth", "10 GB/s")
    topology = hk.topology.product(
        "SW_SW", [4, 4], bandwidth=["50 GB/s", "10 GB/s"], latency=["1 us"] * 2
    )
    seen = set()
    for words, options in cases.items():
        told = hocket("train", "resnet152", *net, "--latency", "1 us", *words, "--json").json()
        run = hk.train("resnet152", topology, **options)  # type: ignore[arg-type]
        assert told["total_ps"] == run.total_ps, words
        seen.add(told["total_ps"])
    plain = hk.train("resnet152", topology).total_ps
    assert plain not in seen
    assert len(seen) == len(cases)


def test_stages_and_layers_have_tables(hocket: Hocket) -> None:
    topology = hk.topology.load("themis-3d-homo")
    run = hk.train("resnet152", topology, parallel="dp=256,pp=4")
    done = hocket("train", "resnet152", *HOMO, "-p", "dp=256,pp=4", "--layers")
    assert "exposed: pipeline" in rows(done.out)
    assert "waiting" in rows(done.out)
    assert "stages, of an iteration" in done.out
    assert {"1", "2", "3", "4"} <= set(rows(done.out))
    ranked = done.out.split("layers with most exposed communication")[1]
    communicate = [layer for layer in run.layers if layer.communication]
    assert ranked.count("│\n") == len(communicate) <= 10
    most = max(communicate, key=lambda layer: layer.exposed)
    assert next(iter(rows(ranked))) == most.name
    many = hocket("train", "resnet152", *HOMO, "-p", "dp=1024,zero=3", "--layers")
    assert "others that communicate; --json has all" in many.out
    alone = hocket("train", "ncf", *SMALL, "-p", "tp=16", "--layers")
    assert "no layer communicates" in alone.out


def test_networks_without_dimensions(hocket: Hocket) -> None:
    done = hocket("train", "ncf", "-t", "dgx1_v100", "-p", "dp=4,tp=2")
    assert done.code == 0, done.err
    assert "algorithm: auto, the default on networks without whole dimensions" in done.out
    assert "dp: groups of 4 NPUs, the first of them 0, 2, 4, 6" in done.out
    told = hocket("train", "ncf", "-t", "dgx1_v100", "--json").json()
    assert told["groups"]["dp"] == {"npus": 8, "count": 1, "dimensions": None}


def test_what_auto_chose_is_a_table(hocket: Hocket) -> None:
    argv = ("train", "alexnet", "-t", "dgx1_v100", "-p", "dp=4,tp=2", "--iterations", "2")
    done = hocket(*argv, "--bucket", "1MB")
    told = hocket(*argv, "--bucket", "1MB", "--json").json()["choices"]
    table = done.out.split("what auto chose for the collectives of an iteration\n")[1]
    lines = [line for line in table.splitlines() if line.startswith("│")]
    run = hk.train("alexnet", "dgx1_v100", parallel="dp=4,tp=2", iterations=2, bucket=1_000_000)
    assert len(told) == len(run.choices) == len(run.makers) == sum(run.chosen.values())
    taken = [each["calls"] * each["time_ps"] for each in told]
    assert sum(taken) == run.communication_ps / 2
    assert taken == sorted(taken, reverse=True)
    for line, each, chosen in zip(lines[:10], told, run.choices, strict=False):
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        assert [cells[0], cells[1], cells[3]] == [
            each["kind"],
            str(each["npus"]),
            each["algorithm"],
        ]
        assert each["calls"] == chosen.calls
    named = hocket(*argv, "-a", "ring")
    assert "what auto chose" not in named.out
    assert hocket(*argv, "-a", "ring", "--json").json()["choices"] == []


def test_what_takes_no_time_is_told(hocket: Hocket) -> None:
    done = hocket("train", "ncf", *SMALL, "-a", "none", "--no-update")
    assert "none: collectives take no time" in done.out
    assert "communication:" not in done.out
    assert "exposed" not in done.out


def test_files_are_written(hocket: Hocket, folder: Path) -> None:
    done = hocket("train", "ncf", *SMALL, "--timeline", "run.png", "--perfetto", "run.json")
    assert done.code == 0, done.err
    assert sorted(path.name for path in folder.iterdir()) == ["run.json", "run.png"]
    events = json.loads((folder / "run.json").read_text())["traceEvents"]
    ends = [event["ts"] + event["dur"] for event in events if event["ph"] == "X"]
    told = hocket("train", "ncf", *SMALL, "--json").json()
    assert max(ends) * 1e6 == pytest.approx(told["total_ps"])


BAD = {
    "train": ["MODEL"],
    "train ncf": ["--topology"],
    "train restnet152 -t themis-2d": ["'restnet152'", "resnet152"],
    "train nowhere.yml -t themis-2d": ["nowhere.yml", "No such file", "workload file"],
    "train ncf -t themis-9d": ["--topology", "'themis-9d'"],
    "train ncf -t SW:4": ["--bandwidth"],
    # parallelism
    "train ncf -t themis-2d -p dp=64": [
        "parallel",
        "dp 64",
        "64 NPUs",
        "has 1,024; give --parallel dp=1024",
    ],
    "train ncf -t themis-2d -p dp=x": ["parallel: dp", "'x'", "dp=64,tp=16"],
    "train ncf -t themis-2d -p dp=1024,dp=1": ["dp is given twice"],
    "train ncf -t themis-2d -p xp=4": ["'xp=4'", "micro-batches"],
    'train ncf -t themis-2d -p ""': ["--parallel: '' is empty; give a value"],
    "train ncf -t themis-2d -p dp=0": ["parallel: dp: 0 "],
    "train ncf -t themis-2d -p dp=1024,zero=4": ["parallel: zero: 4 "],
    "train ncf -t themis-2d -p dp=1024,ep=3": ["ep=3 does not divide dp=1024"],
    "train ncf -t themis-2d -p dp=512,pp=2 --samples 12": ["12 do not divide into 8 micro-batches"],
    "train ncf -t themis-2d -p dp=16,pp=64 --samples 256": ["pp=64 stages", "at most"],
    "train ncf -t dgx1_v100 -p dp=2,tp=3": [
        "parallel",
        "6 NPUs",
        "has 8; give --parallel dp=4,tp=2",
    ],
    # the map
    "train ncf -t themis-2d -p dp=64,tp=16 --map tp": ["--map", "'tp'", "tp=1,dp=2+3"],
    "train ncf -t themis-2d -p dp=64,tp=16 --map xp=1": ["--map", "'xp=1'", "tp, dp, pp"],
    "train ncf -t themis-2d -p dp=64,tp=16 --map tp=a": ["--map: tp", "'a'", "tp=1"],
    "train ncf -t themis-2d -p dp=64,tp=16 --map tp=1,tp=2": ["--map", "tp", "twice"],
    "train ncf -t themis-2d -p dp=64,tp=16 --map tp=1+1": ["--map", "tp", "twice"],
    "train ncf -t themis-2d -p dp=64,tp=16 --map tp=3": ["dimensions: tp", "3 "],
    "train ncf -t themis-2d -p dp=64,tp=16 --map tp=0": ["dimensions: tp", "0 "],
    "train ncf -t themis-2d -p dp=16,tp=64 --map tp=1": ["tp=64 does not fit", "16 x 64"],
    "train ncf -t dgx1_v100 --map dp=1": ["dimensions", "leave it out"],
    # collectives
    "train ncf -t themis-2d -a thems": ["'thems'", "themis"],
    "train ncf -t dgx1_v100 -a themis": ["algorithm: themis works on dimensions", "greedy"],
    "train ncf -t dgx1_v100 -a ideal": ["algorithm: ideal works on dimensions"],
    "train ncf -t themis-2d -a schedule:none": ["'none'", "saved ones"],
    "train ncf -t themis-2d -c 0": ["chunks", "0"],
    "train ncf -t themis-2d -c 0 -a none": ["chunks", "0 is not a number of chunks"],
    'train ncf -t switch:4 --bandwidth "1 GB/s" --latency "1 us" --failed npu0,sw0 -a themis': [
        "algorithm: themis works on",
        "greedy",
    ],
    "train ncf -t themis-2d -c x": ["--chunks", "whole number"],
    "train ncf -t themis-2d --order random": ["order", "'random'", "fifo or lifo"],
    # the rest
    "train ncf -t themis-2d --samples 0": ["samples: 0 "],
    "train ncf -t themis-2d --samples x": ["--samples", "whole number"],
    "train ncf -t themis-2d --iterations 0": ["iterations: 0 "],
    "train ncf -t themis-2d --iterations 10000 -p dp=1024,micro-batches=32": [
        "iterations",
        "micro-batches",
        "passes, more than",
        "give fewer",
    ],
    "train ncf -t themis-2d --iterations 100000": ["iterations", "too large"],
    "train ncf -t themis-2d --npu a10": ["--npu", "'a10'", "a100"],
    "train ncf -t themis-2d --npu potato": ["--npu", "'potato'", "v100", "chiplet"],
    "train ncf -t themis-2d --npu chiplet --efficiency 0.5": ["--efficiency", "leave it out"],
    "train ncf -t themis-2d --efficiency 0": ["efficiency: 0", "0.5"],
    "train ncf -t themis-2d --efficiency nan": ["efficiency: nan", "0.5"],
    "train ncf -t themis-2d --efficiency 50": ["efficiency: 50.0", "up to 1; did you mean 0.5?"],
    "train ncf -t themis-2d --efficiency 1.01": ["efficiency: 1.01", "up to 1, such as 0.5"],
    "train --compare ncf -t themis-2d --efficiency 50": ["efficiency: 50.0", "did you mean 0.5?"],
    "train ncf -t themis-2d --efficiency 1e-14": ["npu: a pass", "faster one, or fewer samples"],
    "train ncf -t themis-2d --efficiency x": ["--efficiency", "not a number"],
    "train ncf -t themis-2d --precision-bits 0": ["--precision-bits", "0 "],
    "train ncf -t themis-2d --bucket 25": ["--bucket", "'25' ", "or all"],
    "train ncf -t themis-2d --bucket 0MB": ["--bucket", "'0MB' "],
    "train resnet152 -t themis-2d --samples 16384": [
        "about",
        "a100 has 80 GB",
        "--no-memory-check",
    ],
    # files
    "train ncf -t themis-2d --timeline a.jpg": ["a.jpg", ".png"],
    "train ncf -t themis-2d --timeline nowhere/a.png": ["no folder 'nowhere'"],
    "train ncf -t themis-2d --perfetto nowhere/a.json": ["no folder 'nowhere'"],
    "train ncf -t themis-2d --perfetto .": ["folder"],
    "train ncf -t themis-2d --timeline a.png --perfetto ./a.png": [
        "--perfetto",
        "use .pftrace or .json",
    ],
}


@pytest.mark.parametrize("command", BAD)
def test_bad_input_gets_one_line(hocket: Hocket, folder: Path, command: str) -> None:
    import shlex

    done = hocket(*shlex.split(command))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("hocket: ")
    assert done.err.count("\n") == 1
    for part in BAD[command]:
        assert part in done.err, done.err
    assert not list(folder.iterdir())


def test_bad_input_is_told_as_json_as_well(hocket: Hocket) -> None:
    done = hocket("train", "resnet152", *HOMO, "--samples", "16384", "--json")
    assert done.code == 2
    told = done.json()
    assert told["error"] == "InfeasibleError"
    assert told["message"] == done.err.removeprefix("hocket: ").strip()


def test_what_does_not_fit_is_trained_if_asked(hocket: Hocket) -> None:
    done = hocket("train", "resnet152", *SMALL, "--samples", "16384", "--no-memory-check")
    assert done.code == 0, done.err
    assert "a100 has 80 GB" in done.out
