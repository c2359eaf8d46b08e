"""The files of a deployed folder: plans, programs, the tuner table, graphs, and their manifest."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hocket import _core
from hocket.deployment import MANIFEST
from hocket.deployment.groups import ANY
from hocket.deployment.manifest import FORMAT, RUNTIME, VERSION, Manifest, bus_id, digest
from hocket.errors import Error
from hocket.files.model import Reader
from hocket.formats.deployed_figures import names_and_nodes
from hocket.formats.deployed_rows import DeployOptions, GroupClass, Program
from hocket.nccl.design import design_graphs
from hocket.nccl.graphs import graph_text
from hocket.nccl.machine import Machine, load_machine
from hocket.nccl.tuner import tuner_table
from hocket.plans.plan import Plan

_MOST_NODES, _MOST_GRAPHS = 16, 16
"""Nodes of a group for which graphs are designed, and files of graphs."""


def write_folder(
    at: Path,
    network: _core.Topology,
    gpu: str | None,
    machine: Machine | None,
    given: DeployOptions,
    made: Sequence[GroupClass],
) -> Manifest:
    """Write a deployed folder into an empty one."""
    groups, entries = [], []
    for number, each in enumerate(made):
        ids, left = [], []
        for row in each.rows:
            if row.program is None:
                left.append({**row.sizes, "reason": row.why})
                continue
            name = f"{row.kind}-{len(each.npus[0])}-{number}-{row.planned_bytes}"
            entries.append({**row.sizes, "id": name, **_write_program(at, name, row.program)})
            ids.append(name)
        groups.append({"name": each.name, "npus": each.npus, "entries": ids, "left_to_nccl": left})
    values: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "hocket": _core.__version__,
        "made_for": RUNTIME,
        "machine": {
            "topology": network.name,
            "npus": _npus(network, machine),
            "processors": given.processors,
            "gpu": gpu,
        },
        "estimates": given.estimates.model_dump(),
        "groups": groups,
        "entries": entries,
        "fallback": {
            "tuner": _write_tuner(at, network, gpu, made),
            "graphs": [] if machine is None else _write_graphs(at, network, machine, made),
            "max_ctas": given.max_ctas,
        },
    }
    values["sha256"] = digest(values)
    _write(at, MANIFEST, (json.dumps(values, indent=1) + "\n").encode())
    return Reader({}, MANIFEST).checked(Manifest, values)


def _write(at: Path, name: str, raw: bytes) -> dict[str, str]:
    """Write a file, and return what a manifest says of it."""
    (at / name).write_bytes(raw)
    return {"file": name, "sha256": hashlib.sha256(raw).hexdigest()}


def _write_program(at: Path, name: str, program: Program) -> dict[str, object]:
    """Write a plan and its program, and describe them."""
    saved = at / f"{name}.parquet"
    Plan(program.plan.core).save(saved)  # without the time of the search, which differs each time
    plan = _write(at, saved.name, saved.read_bytes())
    text = _write(at, f"{name}.json", program.text.encode())
    return {"plan": plan, "program": text, **program.figures}


def _write_tuner(
    at: Path, network: _core.Topology, gpu: str | None, made: Sequence[GroupClass]
) -> dict[str, str] | None:
    """Write one table for all communicators, or none if NCCL's model has none."""
    try:
        table = tuner_table(network, gpu=gpu, groups=[each.npus[0] for each in made])
    except Error:
        return None
    return _write(at, "tuner.csv", table.text.encode())


def _npus(network: _core.Topology, machine: Machine | None) -> list[dict[str, object]]:
    """Return the NPUs of a network: name, node, and the bus id that a dump has."""
    buses: dict[str, str | None] = {}
    if machine is not None:
        for node, npus in zip(machine.nodes, machine.network.nodes, strict=True):
            for npu, bus in zip(npus, node.system.buses, strict=True):
                buses[machine.spec.npus[npu]] = None if bus is None else bus_id(bus)
    return [
        {"name": name, "node": node, "bus": buses.get(name)}
        for name, node in names_and_nodes(network)
    ]


def _write_graphs(
    at: Path, network: _core.Topology, machine: Machine, made: Sequence[GroupClass]
) -> list[dict[str, object]]:
    """Write NCCL's graphs for groups with the same GPUs on each of their nodes, once for GPUs alike."""
    if network.link_count != machine.topology.link_count:
        return []  # something has failed, which the machine does not say
    place_of = {
        npu: (place, gpu[0])
        for place, (node, npus) in enumerate(zip(machine.nodes, machine.network.nodes, strict=True))
        for npu, gpu in zip(npus, node.system.gpus, strict=True)
    }
    found: dict[tuple[tuple[str, ...], tuple[int, ...]], tuple[str, list[list[int]]]] = {}
    for each in made:
        for npus in each.npus if not each.name.startswith(ANY) and len(each.npus[0]) > 1 else ():
            gpus: dict[int, list[int]] = {}
            for npu in npus:
                gpus.setdefault(place_of[npu][0], []).append(place_of[npu][1])
            devs = {tuple(sorted(on)) for on in gpus.values()}
            if len(devs) == 1 and len(gpus) <= _MOST_NODES:
                key = (tuple(machine.nodes[node].file for node in sorted(gpus)), devs.pop())
                listed = found.setdefault(key, (each.name, []))[1]
                listed += [npus] if npus not in listed else []
    graphs: list[dict[str, object]] = []
    numbers = itertools.count()
    for (dumps, used), (group, groups) in list(found.items())[:_MOST_GRAPHS]:
        try:
            part = load_machine(
                [(Path(dump), None) for dump in dumps], slow=machine.spec.slow, gpus=used
            )
            design = design_graphs(part)
        except Error:
            continue  # NCCL's own search has the group
        texts = [graph_text(each) for each in design.graphs]
        number = next(numbers)
        for node, text in enumerate(texts[:1] if design.are_alike else texts):
            at_node = "" if design.are_alike else f".node{node}"
            file = _write(at, f"graph-{group}-{number}{at_node}.xml", text.encode())
            graphs.append({**file, "npus": groups, "node": None if design.are_alike else node})
    return graphs
