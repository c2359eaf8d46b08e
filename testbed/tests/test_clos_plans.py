"""Plans by the runtime on a Clos whose switches hash: who steers them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import hocket as hk
import hocket_testbed
from hocket.cli import run
from hocket.cli.documents import json_schema
from hocket_testbed.prediction import cluster_of


def test_the_agents_steer_what_the_ranks_send(
    prefix: str, controller_library: None, tmp_path: Path
) -> None:
    spec = hocket_testbed.ClosSpec(prefix=prefix, spines=2, tors=2, hosts=2, rate="200 Mb/s")
    own = hk.plan("broadcast", cluster_of(spec).topology, size="100 kB", root=3, algorithm="direct")
    file = tmp_path / "plan.parquet"
    own.save(file)
    told: list[str] = []
    with hocket_testbed.build(spec):
        study = hocket_testbed.run_clos_plans(
            spec,
            ["direct", hk.Plan.load(file)],
            size="1 MB",
            calls=2,
            progress=lambda stage, *_: told.append(stage),
        )
    assert told == ["direct, ecmp", "direct, controller", "direct, ecmp", "direct, controller"]
    assert [round(gain, 9) for gain in study.gains] == [
        round(one.time / other.time, 9)
        for one, other in zip(study.runs[::2], study.runs[1::2], strict=True)
    ]
    for each in study.runs:
        assert len(each.times) == 2
        assert each.time > 0.8 * each.predicted
        if each.paths == "ecmp":
            assert each.steered == 0
            continue
        # Between the ToRs lead 8 of the 12 connections of an all-reduce.
        pairs = zip(each.plan.transfers.src.tolist(), each.plan.transfers.dst.tolist(), strict=True)
        between = sum(src // 2 != dst // 2 for src, dst in set(pairs))
        assert between <= each.steered
    steered = study.runs[1]
    assert (steered.connections, steered.plan.collective.name) == (12, "all-reduce")
    assert 1 <= steered.fullest < 1.6


def test_the_command_prints_what_the_schema_says(
    prefix: str, controller_library: None, capsys: pytest.CaptureFixture[str]
) -> None:
    fabric = ["--spines", "2", "--tors", "2", "--hosts", "1", "--prefix", prefix]
    command = ["testbed", "run-clos", "ring", *fabric, "--size", "200kB", "--calls", "1"]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json_schema())
    assert [each["paths"] for each in found["runs"]] == ["ecmp", "controller"]
    assert run(command) == 0
    said = capsys.readouterr()
    assert "all-reduce of 200 kB among 2 hosts, 2 spines, 2 ToRs" in said.out
    assert "ring: by ECMP" in said.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rnig"], "there is no algorithm 'rnig'; did you mean 'ring'"),
        (["none.parquet"], "none.parquet"),
        (["ring", "--size", "much"], "--size: "),
        (["ring", "--calls", "0"], "--calls: 0"),
        (["ring", "--spines", "0"], "--spines: 0"),
        (["ring", "--rate", "fast"], "--rate: "),
    ],
)
def test_bad_input_is_one_line(
    prefix: str,
    controller_library: None,
    arguments: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fabric = ["--tors", "2", "--hosts", "1", "--prefix", prefix]
    assert run(["testbed", "run-clos", *fabric, *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert says in said


@pytest.mark.parametrize(
    ("plans", "keywords", "says"),
    [
        ([], {}, "^plans: there are none"),
        ([7], {}, "^plans: 7 is no plan"),
        (["rnig"], {}, "there is no algorithm 'rnig'"),
        (["ring"], {"calls": 0}, "^calls: 0"),
        (["ring"], {"collective": "sum"}, "'sum'"),
        (["ring"], {"size": "much"}, "^size: "),
    ],
)
def test_what_makes_no_sense(
    plans: list[object],
    keywords: dict[str, object],
    says: str,
    controller_library: None,
) -> None:
    spec = hocket_testbed.ClosSpec(spines=2, tors=2, hosts=2)
    with pytest.raises(hk.SpecError, match=says):
        hocket_testbed.run_clos_plans(spec, plans, **keywords)  # type: ignore[arg-type]


def test_a_plan_of_another_network(controller_library: None) -> None:
    other = hk.plan("all-reduce", hk.topology.ring(4, bandwidth=1e9, latency=0), size=1000)
    spec = hocket_testbed.ClosSpec(spines=2, tors=2, hosts=2)
    with pytest.raises(hk.SpecError, match=r"^plan: "):
        hocket_testbed.run_clos_plans(spec, [other])


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCKET_PRELOAD", "nowhere.so")
    with pytest.raises(hk.SpecError, match=r"there is no library nowhere\.so; build it with `make"):
        hocket_testbed.run_clos_plans(hocket_testbed.ClosSpec(), ["ring"])
