"""What a file says of how its plan was made: it comes back, and what does not hold does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hocket as hk
from hocket.cli import run
from hocket.plans import claims

RING = "ring:5@25GB/s,700ns"
NETWORKS = ("dgx1_v100", "box:2x4@25GB/s,1us", "clos:2x2x2@50GB/s,1us", "switch:5@25GB/s,1us")
CASES = [
    (network, kind, algorithm)
    for network in (RING, *NETWORKS)
    for kind, algorithm in (
        ("all-reduce", "greedy"),
        ("all-gather", "trees"),
        ("broadcast", "greedy"),
        ("all-reduce", "blind"),
        ("all-gather", "auto"),
        ("all-to-all", "greedy"),
        ("all-reduce", "symmetric"),
    )
]


def of(plan: hk.Plan) -> tuple[object, ...]:
    return (plan.synthesis, plan.trees, plan.selection)


@pytest.mark.parametrize(("network", "kind", "algorithm"), CASES)
@pytest.mark.parametrize("latency", ["overlapped", "occupying"])
def test_it_comes_back(
    network: str, kind: str, algorithm: str, latency: str, tmp_path: Path
) -> None:
    """Of every way to make a plan that says more than who made it, also if chunks differ by a byte."""
    size = 77_777 if latency == "overlapped" else 80_000
    try:
        plan = hk.plan(
            kind,
            network,
            size=size,
            algorithm=algorithm,
            chunks=2,
            latency_model=latency,
            cache=False,
        )  # type: ignore[arg-type]
    except hk.InfeasibleError:
        assert algorithm == "symmetric"
        return
    assert of(plan) != (None, None, None)
    plan.save(tmp_path / "plan.parquet")
    loaded = hk.Plan.load(tmp_path / "plan.parquet")
    assert of(loaded) == of(plan)
    assert not loaded.is_verified
    told, again = (each.verify().to_dict() for each in (plan, loaded))
    for each in (told, again):
        (each["synthesis"] or {}).pop("elapsed_ps", None)
    assert again == told


@pytest.mark.parametrize("kind", ["gather", "scatter", "all-to-all", "all-reduce", "reduce"])
@pytest.mark.parametrize("chunks", [1, 3, None])
def test_the_least_time_is_of_the_same_pieces(
    kind: str, chunks: int | None, tmp_path: Path
) -> None:
    """Also where an NPU keeps a part that no link carries."""
    network = "clos:2x2x2@50GB/s,1us"
    plan = hk.plan(kind, network, size=77_777, algorithm="greedy", chunks=chunks, trials=1)
    plan.save(tmp_path / "plan.parquet")
    assert plan.synthesis is not None
    assert hk.Plan.load(tmp_path / "plan.parquet").synthesis == plan.synthesis


def test_trees_of_some_npus_and_of_one_root_come_back(tmp_path: Path) -> None:
    network = "mesh:3x3@1234567B/s,1us"
    for kind, root in (("reduce", 4), ("broadcast", 2), ("all-reduce", None)):
        plan = hk.plan(kind, network, size=5_000, algorithm="trees", npus=[0, 2, 4, 7], root=root)
        plan.save(tmp_path / "plan.parquet")
        assert plan.trees is not None
        assert hk.Plan.load(tmp_path / "plan.parquet").trees == plan.trees


def test_what_exact_proved_comes_back(tmp_path: Path) -> None:
    """Also where greedy's plan is faster, and taken."""
    for kind, network, size, found in (
        ("all-gather", "mesh:3x3@100GB/s,500ns", "9 MB", ("exact", "optimal", 4)),
        ("all-reduce", "box:2x2@10GB/s,1us", "100 kB", ("greedy", "feasible", 68)),
    ):
        plan = hk.plan(kind, network, size=size, algorithm="exact", chunks=1)
        plan.save(tmp_path / "plan.parquet")
        loaded = hk.Plan.load(tmp_path / "plan.parquet")
        assert loaded.synthesis == plan.synthesis
        assert loaded.synthesis is not None
        synthesis = loaded.synthesis
        assert (loaded.algorithm, synthesis.status, synthesis.slots) == found


def test_runs_and_whole_symmetric_plans_keep_it_too(tmp_path: Path) -> None:
    plan = hk.plan("all-gather", RING, size="5 MB", cache=False)
    hk.simulate(plan.verify()).save(tmp_path / "run.parquet")
    assert of(hk.Run.load(tmp_path / "run.parquet").plan) == of(plan)
    assert of(hk.Plan.load(tmp_path / "run.parquet")) == of(plan)
    whole = hk.plan_symmetric("all-gather", RING, size="5 MB").expand()
    assert whole.trees is not None
    whole.save(tmp_path / "whole.parquet")
    assert hk.Plan.load(tmp_path / "whole.parquet").trees == whole.trees


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "plan.parquet")
    assert run(["plan", "all-gather", "-t", RING, "-s", "5MB", "--json", "-o", file]) == 0
    told = json.loads(capsys.readouterr().out)
    loaded = hk.Plan.load(file).verify().to_dict()
    for name in ("synthesis", "trees", "selection"):
        assert loaded[name] == told[name]  # type: ignore[literal-required]


def changed(path: Path, change: Callable[[dict[str, Any]], object], *, again: bool) -> hk.Plan:
    """Load a plan whose claims were changed, and perhaps the hash with them."""
    table = pq.read_table(path)
    fields = dict(table.schema.metadata)
    known = json.loads(fields[b"hocket.claims"])
    stated = known.pop("hash")
    change(known)
    if again:
        about = [fields[b"hocket.plan"].decode(), fields[b"hocket.topology"].decode()]
        stated = claims._hash(hk.Plan.load(path).core, about, known)
    fields[b"hocket.claims"] = json.dumps({"hash": stated, **known}).encode()
    other = path.with_name("changed.parquet")
    pq.write_table(table.replace_schema_metadata(fields), other)
    return hk.Plan.load(other)


def shorter(name: str, key: str, by: int = 1) -> Callable[[dict[str, Any]], object]:
    def change(known: dict[str, Any]) -> None:
        known[name][key] -= by

    return change


def picked(known: dict[str, Any], time: int) -> None:
    """Say that auto's choice takes another time, in all places where it is said."""
    known["selection"]["time_ps"] = time
    known["selection"]["times_ps"][known["selection"]["algorithm"]] = time


def packing(key: str, value: object) -> Callable[[dict[str, Any]], object]:
    def change(known: dict[str, Any]) -> None:
        known["trees"]["packings"][0][key] = value

    return change


def worse(known: dict[str, Any]) -> None:
    """Say that a cut lets less through to each root, everywhere it is said."""
    for each in known["trees"]["packings"]:
        weight, each["weight"] = each["weight"], 1000
        each["certificate"] = each["certificate"].replace(f"{weight} roots", "1000 roots")


def renamed(known: dict[str, Any]) -> None:
    """Say that auto chose another algorithm."""
    chosen = known["selection"]
    chosen["times_ps"]["other"] = chosen["times_ps"].pop(chosen["algorithm"])
    chosen["algorithm"] = "other"


OPTIMAL = {"status": "optimal", "slots": 1, "least_slots": 1, "slot_ps": 1}
QUICK = {"status": "optimal", "simulated": False, "time_ps": 1, "least_ps": 1}

LIES: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("greedy", shorter("synthesis", "time_ps")),
    ("greedy", shorter("synthesis", "least_ps", -1)),
    ("greedy", lambda known: known["synthesis"].update(status="optimal")),
    ("greedy", lambda known: known["synthesis"].update(least_ps=known["synthesis"]["time_ps"])),
    ("greedy", lambda known: known["synthesis"].update(status="best")),
    ("trees", shorter("trees", "time_ps")),
    ("trees", packing("bandwidth", 1)),
    ("trees", packing("parts", [["gpu0", "gpu9"]])),
    ("trees", packing("parts", [["gpu0", "gpu1"]])),
    ("trees", packing("reached", 1.5)),
    ("trees", packing("reached", 0.5)),
    ("trees", packing("carries", "sums")),
    ("trees", packing("weight", 1000)),
    ("trees", worse),
    ("trees", packing("certificate", "none is better")),
    ("trees", lambda known: known["trees"]["packings"].append(known["trees"]["packings"][0])),
    ("trees", lambda known: known["trees"]["packings"][0]["parts"].append(["gpu0"])),
    ("trees", lambda known: known["trees"]["packings"][0]["parts"][0].append("gpu0")),
    ("greedy", lambda known: known["synthesis"].update(OPTIMAL)),
    ("greedy", lambda known: known["synthesis"].update(OPTIMAL, method="exact")),
    ("greedy", lambda known: known["synthesis"].update(OPTIMAL, slot_ps=None, method="exact")),
    ("greedy", lambda known: known["synthesis"].update(QUICK)),
    ("greedy", lambda known: known["synthesis"].update(method="blind")),
    ("greedy", lambda known: known["synthesis"].update(unwind="1,1,1")),
    ("auto", renamed),
    ("auto", lambda known: known["selection"]["left_out"].update(direct="no\nway")),
    ("auto", lambda known: known["selection"]["left_out"].update({"\x1b[2J": "no way"})),
    ("auto", lambda known: picked(known, known["selection"]["time_ps"] - 1)),
    ("auto", shorter("selection", "time_ps")),
    ("auto", shorter("selection", "bound_ps")),
    ("auto", lambda known: known["selection"].update(bound_ps=known["selection"]["time_ps"])),
    ("auto", lambda known: known["selection"].update(ended="bound")),
    ("auto", lambda known: known["selection"]["times_ps"].update(ring=1)),
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Plans whose synthesis is not proved optimal, and whose choice is above its bound."""
    folder = tmp_path_factory.mktemp("saved")
    files = {}
    for name in ("greedy", "trees", "auto"):
        kind, chunks = ("all-reduce", 1) if name == "auto" else ("all-gather", 4)
        plan = (
            hk.plan(
                kind, "dgx1_v100", size=64_000, algorithm=name, chunks=chunks, trials=1, cache=False
            )
            if name != "trees"
            else hk.plan(kind, "dgx1_v100", size=64_000, algorithm=name, chunks=chunks)
        )
        if plan.synthesis is not None and name == "greedy":
            assert plan.synthesis.status == "feasible"
        files[name] = folder / f"{name}.parquet"
        plan.save(files[name])
    return files


@pytest.mark.parametrize(("name", "change"), LIES)
@pytest.mark.parametrize("again", [False, True], ids=["old hash", "new hash"])
def test_what_does_not_hold_is_left_out(
    saved: dict[str, Path],
    name: str,
    change: Callable[[dict[str, Any]], object],
    again: bool,
) -> None:
    assert of(hk.Plan.load(saved[name])) != (None, None, None)
    assert of(changed(saved[name], lambda known: None, again=True)) == of(hk.Plan.load(saved[name]))
    assert of(changed(saved[name], change, again=again)) == (None, None, None)


def test_words_of_earlier_versions_are_read(saved: dict[str, Path]) -> None:
    def as_before(known: dict[str, Any]) -> None:
        for packing in known["trees"]["packings"]:
            text = packing["certificate"]
            packing["certificate"] = text.replace(" per root, up to", " a root, up to")
            assert packing["certificate"] != text

    assert of(changed(saved["trees"], as_before, again=True)) == of(hk.Plan.load(saved["trees"]))


def test_claims_of_another_plan_are_left_out(saved: dict[str, Path], tmp_path: Path) -> None:
    """Of one whose rows were changed, and of one beside which they were put."""
    table = pq.read_table(saved["greedy"])
    column = table.schema.get_field_index("op")
    for other in (table.slice(0, len(table) - 1), table.set_column(column, "op", table["op"])):
        pq.write_table(other.replace_schema_metadata(table.schema.metadata), tmp_path / "b.parquet")
        loaded = hk.Plan.load(tmp_path / "b.parquet")
        is_same = len(other) == len(table)
        assert (of(loaded) == of(hk.Plan.load(saved["greedy"]))) == is_same
    fields = dict(pq.read_schema(saved["trees"]).metadata)
    fields[b"hocket.claims"] = table.schema.metadata[b"hocket.claims"]
    theirs = pq.read_table(saved["trees"]).replace_schema_metadata(fields)
    pq.write_table(theirs, tmp_path / "b.parquet")
    assert of(hk.Plan.load(tmp_path / "b.parquet")) == (None, None, None)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        "3",
        "{}",
        '{"hash": ""}x',
        '{"hash": "", "synthesis": {}}',
        '{"hash": "", "synthesis": null}',
        '{"hash": "", "others": {}}',
        '{"hash": "", "trees": {"time_ps": 1.5, "pieces": 1, "packings": []}}',
        '{"hash": "", "trees": {"time_ps": -1, "pieces": 1, "packings": []}}',
        '{"hash": "", "trees": {"time_ps": 1e400, "pieces": 1, "packings": []}}',
        '{"hash": "", "trees": {"time_ps": ' + "9" * 30 + ', "pieces": 1, "packings": []}}',
        '{"hash": "", "trees": {"time_ps": ' + "9" * 5000 + ', "pieces": 1, "packings": []}}',
        '{"hash": "", "trees": ' + "[" * 100_000 + "}",
    ],
)
def test_what_is_no_claim_is_refused(saved: dict[str, Path], tmp_path: Path, text: str) -> None:
    table = pq.read_table(saved["trees"])
    fields = dict(table.schema.metadata) | {b"hocket.claims": text.encode()}
    pq.write_table(table.replace_schema_metadata(fields), tmp_path / "b.parquet")
    with pytest.raises(hk.SpecError) as error:
        hk.Plan.load(tmp_path / "b.parquet")
    assert str(error.value) == (
        f"{tmp_path / 'b.parquet'}: hocket.claims does not say how a plan was made; write the plan again "
        "with `hocket plan -o`"
    )


def test_files_without_claims_are_read_as_before(saved: dict[str, Path], tmp_path: Path) -> None:
    table = pq.read_table(saved["auto"])
    fields = dict(table.schema.metadata)
    del fields[b"hocket.claims"]
    pq.write_table(table.replace_schema_metadata(fields), tmp_path / "old.parquet")
    loaded = hk.Plan.load(tmp_path / "old.parquet")
    assert of(loaded) == (None, None, None)
    assert hk.simulate(loaded.verify()).time_ps > 0
    own = hk.plan("all-gather", RING, size="5 MB", algorithm="ring", chunks=1)
    assert isinstance(own.to_frame(), pa.Table)
    assert b"hocket.claims" not in own.to_frame().schema.metadata


@pytest.mark.parametrize("time_ps", [2**51 + 1, 2**53 + 1, 4_504 * 10**12 + 7, 2**61 + 1])
def test_times_of_hours_are_exact(time_ps: int) -> None:
    """Seconds as floats are not, from half an hour on."""
    trees = hk.Trees(time_ps, 1, ())
    assert trees.to_dict()["time_ps"] == time_ps
    assert trees.time == time_ps * 1e-12
    names = {"ring": time_ps, "direct": time_ps + 1}
    chosen = hk.Selection(
        algorithm="ring",
        chunks=1,
        seed=0,
        time_ps=time_ps,
        bound_ps=time_ps - 1,
        times_ps=names,
        plans=2,
        left_out={},
        ended="all",
        cached=False,
    )
    assert chosen.to_dict()["times_ps"] == names
    assert (chosen.to_dict()["time_ps"], chosen.to_dict()["bound_ps"]) == (time_ps, time_ps - 1)
    assert chosen.times == {name: took * 1e-12 for name, took in names.items()}
