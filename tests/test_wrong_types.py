"""Wrong values given to any public name are refused in one line: no raw error leaks from inside.

The names are enumerated, and their parameters too, so that new ones are taken up by themselves.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import hocket as hk
from hocket.topology.declared import FAMILIES

ROOMS = (hk, hk.topology, hk.workload, hk.training, hk.traces, hk.routing, hk.nccl)
CHAKRA = Path(__file__).parent / "data" / "chakra"
NCCL = Path(__file__).parent / "data" / "nccl" / "four_t4"
OWN = re.compile(
    r"missing \d+ required|unexpected keyword argument|takes .* positional argument|"
    r"multiple values for|required positional argument|No constructor defined|cannot create"
)
"""What Python itself says of a call whose parameters do not fit."""


class Odd:
    """Something that is nothing hocket knows."""

    def __repr__(self) -> str:
        return "<Odd>"


def wrong_values() -> list[object]:
    numbers = [
        0,
        -1,
        1.5,
        float("nan"),
        float("inf"),
        10**400,
        2**64,
        2**31,
        True,
        1j,
        Fraction(1, 3),
    ]
    texts = ["", "x", "a,b", "\0", "é" * 300, b"x", Path("no/such.yml")]
    several = [
        [],
        ["x"],
        [1],
        [None],
        [[]],
        (),
        ("a", "b", "c"),
        {},
        {"x": 1},
        {1: None},
        {1},
        range(2),
    ]
    scalars = [np.int64(3), np.float32(2.5), np.zeros(3), np.array("x"), np.bool_(True)]
    return [None, *numbers, *texts, *several, *scalars, Odd(), iter(()), lambda *_: None]


def topology() -> hk.Topology:
    return hk.topology.ring(4, bandwidth="25 GB/s", latency="1 us")


def good(name: str) -> dict[str, Any]:
    """Give a right value for each required parameter, by its name and where it is needed."""
    topo = topology()
    job = hk.routing.Job("one", parameters=10**6, data=8, compute="20 us")
    hosts = hk.routing.cluster("clos:4x8x8")
    chiplet, workload = hk.Chiplet(), hk.workload.load("alexnet")
    plan = hk.plan("all-reduce", topo, size="1 MB", algorithm="ring")
    values: dict[str, Any] = {
        "topology": topo,
        "topologies": topo,
        "collective": plan.collective,
        "collectives": [plan.collective],
        "kind": "all-reduce",
        "size": "1 MB",
        "name": "mine",
        "demands": [hk.Demand("1 MB", [0], [1])],
        "holders": [0],
        "wanted": [1],
        "sizes": [["1 MB"] * 4] * 4,
        "sends": [(0, 1, "1 MB")],
        "plan": plan,
        "plans": [plan],
        "core": plan.core,
        "workload": workload,
        "bandwidth": "25 GB/s",
        "latency": "1 us",
        "graph": networkx.cycle_graph(4),
        "groups": [[0, 1], [2, 3]],
        "kinds": "all-reduce",
        "peak": "312 TFLOP/s",
        "layers": workload.layers,
        "forward": hk.workload.Work(1),
        "chiplet": chiplet,
        "all_reduce": lambda size: size,
        "training_set": 1000,
        "compute": 1000,
        "npus": 4,
        "hidden": 64,
        "heads": 4,
        "sequence": 16,
        "prefix": CHAKRA / "all_reduce",
        "trace": hk.traces.load(CHAKRA / "all_reduce"),
        "ranks": [[hk.traces.Compute("a", "1 us")]],
        "time": "1 us",
        "to": 1,
        "source": 0,
        "fabric": "clos:4x8x8",
        "flows": [(0, 1)],
        "cluster": hosts,
        "jobs": [job],
        "path": "no/such.yml",
        "name_or_path": "ring:4@25GB/s,1us",
        "value": "ring:4@25GB/s,1us",
        "nodes": 2,
        "folder": "no/such",
        "sweep": "no/such.yml",
        "budget": 1000.0,
        "costs": "no/such.yml",
    }
    there: dict[str, dict[str, Any]] = {
        "hocket.compare_sizes": {"sizes": ["1 MB"]},
        "hocket.deploy": {"topology": "ring:2@25GB/s,1us", "folder": "written"},
        "hocket.export_plan": {"to": "msccl", "path": "written.xml"},
        "hocket.timetable": {"collective": hk.collective_on("all-gather", topo, "1 MB")},
        "hocket.topology.offloaded": {"topology": hk.topology.load("hgx_h100_8gpu_validated")},
        "hocket.routing.fabric_flows": {"jobs": hk.routing.place(hosts, [job])},
        "hocket.nccl.ask_tuner": {"library": "no/such.so"},
        "hocket.nccl.audit": {"topology": NCCL / "topo.xml", "graph": NCCL / "graph0.xml"},
        "hocket.nccl.design_graphs": {"machine": hk.nccl.load_machine([(NCCL / "topo.xml", None)])},
        "hocket.nccl.predict": {"topology": "dgx_a100_1box"},
        "hocket.nccl.tuner_table": {"topology": "dgx_a100_1box"},
        "hocket.nccl.load_machine": {"files": [("no/such.xml", None)]},
        "hocket.nccl.write_graph": {"path": "written.xml", "graphs": ()},
        "hocket.training.epoch": {"all_reduce": 1000},
        **{
            f"hocket.topology.{name}": {
                each.name: 2 for each in family.parameters if each.unit == "count"
            }
            for name, family in FAMILIES.items()
        },
        "hocket.topology.product": {
            "kinds": "Ring_Switch",
            "sizes": [2, 2],
            "bandwidth": ["25 GB/s"] * 2,
            "latency": ["1 us"] * 2,
        },
        "hocket.workload.load": {"name_or_path": "alexnet"},
        "hocket.workload.Transformer": {"layers": 2},
        "hocket.routing.assign": {
            "fabric": hk.topology.clos(2, 4, bandwidth="25 GB/s", latency="1 us")
        },
        "hocket.accelerator": {"name": "a100"},
        "hocket.measured": {"files": "no/such.log"},
        "hocket.predict": {"topology": "dgx_a100_1box", "sizes": ["1 MB"]},
        "hocket.predict_plan": {"profile": "a100"},
        "hocket.predict_training": {"model": "gpt3-175b", "parallel": "tp=8", "batch": 8},
        "hocket.topology.export_topology": {"path": "written.yml", "to": "infragraph"},
        "hocket.traces.write": {"prefix": "written"},
        "hocket.traces.write_training": {
            "run": hk.train("alexnet", "ring:4@25GB/s,1us", algorithm="none", memory_check=False),
            "folder": "written",
        },
        "hocket.workload.save": {"path": "written.yml"},
    }
    return {**values, **there.get(name, {})}


def public() -> dict[str, Callable[..., object]]:
    """Give every public callable: functions, and classes that check what they are given."""
    found: dict[int, tuple[str, Any]] = {}
    for room in ROOMS:
        for name in dir(room):
            what = getattr(room, name)
            if name.startswith("_") or (not isinstance(what, type) and not inspect.isroutine(what)):
                continue
            if isinstance(what, type) and (issubclass(what, BaseException) or not checks(what)):
                continue
            found.setdefault(id(what), (f"{room.__name__}.{name}", what))
    return dict(found.values())


def checks(kind: type) -> bool:
    """Whether a class looks at what it is made of; others are made by hocket alone."""
    return "__post_init__" in vars(kind) or kind is hk.PlanBuilder


PUBLIC = public()


def parameters(what: Callable[..., object]) -> list[inspect.Parameter]:
    return list(inspect.signature(what).parameters.values())


def calls(name: str, right: bool = False) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Give calls, each with one wrong value: its parameter, and the arguments by place and by name.

    If `right`, the only one is that in which no value is wrong.
    """
    what, known = PUBLIC[name], good(name)
    of = parameters(what)
    required = [each for each in of if each.default is inspect.Parameter.empty]
    by_place = [each for each in required if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    by_name = [each for each in required if each.kind is inspect.Parameter.KEYWORD_ONLY]
    if right:
        keywords = {one.name: known[one.name] for one in by_name}
        yield "", [known[one.name] for one in by_place], {**SMALL.get(name, {}), **keywords}
        return
    for each in of:
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        for value in wrong_values():
            args = [value if one is each else known[one.name] for one in by_place]
            keywords = {one.name: known[one.name] for one in by_name}
            if each.kind is inspect.Parameter.VAR_POSITIONAL:
                args = [value, value]
            elif each not in by_place:
                keywords[each.name] = value
            yield each.name, args, {**SMALL.get(name, {}), **keywords}


SMALL: dict[str, dict[str, Any]] = {
    "hocket.plan": {"size": "1 MB"},
    "hocket.compare": {"size": "1 MB"},
    "hocket.deploy": {"collectives": "all-reduce", "sizes": "1 KB"},
    "hocket.pareto": {"sizes": ["1 MB"]},
    "hocket.plan_symmetric": {"size": "1 MB"},
    "hocket.topology.from_networkx": {"default_bandwidth": "25 GB/s", "default_latency": "1 us"},
    "hocket.workload.transformer": {"layers": 2, "hidden": 64, "heads": 4, "sequence": 16},
    "hocket.routing.Job": {"parameters": 10**6, "data": 8, "compute": "20 us"},
}
"""What else calls are given, where they would do much without it."""


REFUSED = {
    "hocket.autotune",  # measures
    "hocket.check_file",
    "hocket.design_network",
    "hocket.import_plan",
    "hocket.load_collective",
    "hocket.load_sweep",
    "hocket.measured",
    "hocket.plan_pipelined",  # for 448 NPUs and more
    "hocket.report_sweep",
    "hocket.run_sweep",
    "hocket.routing.load_jobs",
    "hocket.nccl.ask_tuner",
    "hocket.nccl.load_machine",
    "hocket.nccl.read_graph",
    "hocket.nccl.read_tuner",
    "hocket.nccl.write_graph",  # of no graphs
    "hocket.topology.mesh",  # of no sizes
    "hocket.topology.price",
    "hocket.topology.torus",
}
"""Whose values above are not right: most read a file, and there is none."""


def test_names_are_found() -> None:
    assert len(PUBLIC) > 60
    assert {"hocket.plan", "hocket.topology.mesh", "hocket.traces.load"} <= set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_wrong_values_are_refused_in_a_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    what = PUBLIC[name]
    leaks = []
    for parameter, args, keywords in calls(name):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                what(*args, **keywords)
        except hk.Error as error:
            if "\n" in str(error):
                leaks.append(f"{parameter}: several lines: {error}")
        except TypeError as error:
            if error.__traceback__ is not None and (
                error.__traceback__.tb_next is not None or not OWN.search(str(error))
            ):
                leaks.append(f"{parameter}: TypeError {error}")
        except Exception as error:
            leaks.append(f"{parameter}: {type(error).__name__} {error}")
    assert not leaks, "\n".join(dict.fromkeys(leaks))


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_right_values_are_taken(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Were one refused, no call above would come as far as the parameters that are looked at after it.
    monkeypatch.chdir(tmp_path)
    _, args, keywords = next(calls(name, right=True))
    with pytest.raises(hk.Error) if name in REFUSED else nullcontext():
        PUBLIC[name](*args, **keywords)
