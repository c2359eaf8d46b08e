"""What hocket says of NCCL is what NCCL said: its graphs, predictions and picks (tests/data/nccl)."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import hocket as hk
from hocket.nccl.machine import Machine
from hocket.nccl.model import NcclChoice
from hocket.nccl.report import choices_of

from . import dumps

DATA = Path(__file__).parents[1] / "data" / "nccl"
WHOLE, FEWER = dumps.switched(12), dumps.switched(11)
DEAD = replace(dumps.DGX_A100, links=lambda gpu: FEWER(gpu) if gpu == 3 else WHOLE(gpu))
MACHINES: Mapping[str, Sequence[dumps.Made]] = {
    "four_t4": (),
    "four_a100_dead_link": (),
    "four_t4_2": (dumps.PCI_T4,) * 2,
    "dgx1": (dumps.DGX1,),
    "dgx1_2": (dumps.DGX1,) * 2,
    "dgx_a100": (dumps.DGX_A100,),
    "dgx_a100_dead_link": (DEAD,),
    "dgx_a100_2": (dumps.DGX_A100,) * 2,
    "dgx_a100_2_nic_down": (dumps.DGX_A100, replace(dumps.DGX_A100, down=frozenset({3}))),
    "dgx_h100": (dumps.DGX_H100,),
    "dgx_h100_2": (dumps.DGX_H100,) * 2,
    "gb200": (dumps.GB200,),
}
"""By folder; without any, the folder has its topology."""
CLOSE = 1e-3
"""NCCL counts in single precision."""


def machine_of(folder: Path, name: str) -> Machine:
    files = []
    for number, made in enumerate(MACHINES[name]):
        files.append(folder / f"topo{number}.xml")
        files[-1].write_text(made.topology())
    files = files or [DATA / name / "topo.xml"]
    graphs = sorted((DATA / name).glob("graph*.xml"))
    graphs *= len(files) // len(graphs)
    return hk.nccl.load_machine(list(zip(files, graphs, strict=True)))


def rows_of(name: str) -> list[tuple[str, int, str, dict[str, float]]]:
    """Collective, bytes, pick, and NCCL's predictions by algorithm and protocol [us]."""
    with (DATA / name / "picks.csv").open() as file:
        return [
            (
                row["collective"],
                int(row["bytes"]),
                f"{row['algorithm']} {row['protocol']}",
                {key: float(time) for key, time in row.items() if " " in key and time},
            )
            for row in csv.DictReader(file)
        ]


def times(choices: Sequence[NcclChoice]) -> dict[str, float]:
    return {f"{each.algorithm} {each.protocol}": each.seconds * 1e6 for each in choices}


def is_newer(machine: str, key: str) -> bool:
    """The version that hocket follows holds LL128 of a ring to less on Blackwell than this one does."""
    return machine == "gb200" and key == "ring LL128"


@pytest.mark.parametrize("name", MACHINES)
def test_predictions_along_its_graphs(tmp_path: Path, name: str) -> None:
    machine = machine_of(tmp_path, name)
    for kind, size, pick, told in rows_of(name):
        found = times(choices_of(machine, kind, size))
        assert found.keys() == told.keys()
        for key, time in told.items():
            if not is_newer(name, key):
                assert found[key] == pytest.approx(time, rel=CLOSE), (kind, size, key)
        if not is_newer(name, pick):
            assert min(found, key=lambda each: found[each]) == pick


@pytest.mark.parametrize(
    "name", [name for name in MACHINES if "t4" not in name and name != "dgx1_2"]
)
def test_predictions_by_the_network_alone(tmp_path: Path, name: str) -> None:
    """No graphs are given. Of GPUs without NVLink, and of hosts' links beside it, nothing is said."""
    machine = machine_of(tmp_path, name)
    cpu = machine.cpu or "intel"
    for kind, size, pick, told in rows_of(name):
        asked = hk.nccl.predict(kind, machine.topology, size=f"{size} B", cpu=cpu)
        found = {key: time for key, time in times(asked.choices).items() if key in told}
        assert found.keys() == told.keys()
        if name == "gb200":
            # Of four GPUs NCCL finds trees whose channels are faster than a ring's, and of a plain pattern.
            found = {key: time for key, time in found.items() if not is_newer(name, key)}
            found = {key: time for key, time in found.items() if not key.startswith("tree")}
        for key, time in found.items():
            assert time == pytest.approx(told[key], rel=CLOSE), (kind, size, key)
        if not is_newer(name, pick):
            assert min(found, key=lambda each: found[each]) == pick


@pytest.mark.parametrize("name", [name for name in MACHINES if name.endswith(("link", "a100"))])
def test_its_own_rings_are_as_many(tmp_path: Path, name: str) -> None:
    """Of a box NCCL finds as many channels of rings as hocket's graphs have, and as fast."""
    machine = machine_of(tmp_path, name)
    own = machine.nodes[0].graph("ring")
    ours = hk.nccl.design_graphs(machine).graphs[0][0]
    assert own is not None
    assert len(own.channels) == len(ours.channels)
    assert own.speed_intra == pytest.approx(ours.speed_intra)
