"""Doors that take text: topology, jobs, workload and schedule files, units, specs."""

from __future__ import annotations

import os
from pathlib import Path

import checks
from draw import ODD, Draw

import hocket as hk
from hocket import _core, units
from hocket.cli import complete
from hocket.cli import groups as option_groups
from hocket.cluster import yaml as jobs_file
from hocket.collectives import yaml as collective_file
from hocket.collectives.collective import collective_on
from hocket.errors import Error, SpecError
from hocket.plans import schedule_file
from hocket.profiles.fit import fit
from hocket.profiles.hardware import Hardware
from hocket.profiles.measurement import oddities, read_measurements
from hocket.profiles.profile import profile_of
from hocket.telemetry.files import read_recording
from hocket.topology import text
from hocket.topology.build import build_topology, counts_of
from hocket.topology.spec import TopologySpec
from hocket.workload import text as workload_text
from hocket.workload import yaml as workload_file

MAX_NPUS = 2_000
"""NPUs of a network that is built, or its links; those that must be refused at once are too."""
REFUSED = 1 << 40

_FOLDER = checks.folder()


def written(data: bytes, name: str) -> Path:
    """Give a file that holds these bytes."""
    path = _FOLDER / name
    path.write_bytes(data)
    return path


def topology(data: bytes) -> None:
    """A topology file: hocket's own or ASTRA-sim's; its profile has constants that there are."""
    spec = text.from_file(written(data, "net.yml"))
    if spec.profile is not None:
        assert all(value > 0 for value in profile_of(spec).values.values())
    built(spec)


def built(spec: TopologySpec) -> _core.Topology | None:
    """Build what is small, or so large that it must be refused at once."""
    if not is_tried(spec):
        return None
    made = build_topology(spec)
    if made.npu_count <= MAX_NPUS:
        made.inspect()
        repr(made)
    return made


def is_tried(spec: TopologySpec) -> bool:
    """Whether a network is small, or so large that it must be refused at once."""
    counts = counts_of(spec)
    size = max(counts.npus, counts.switches, counts.links)
    return size <= 2000 or size > REFUSED


def jobs(data: bytes) -> None:
    """A file of jobs."""
    listed = jobs_file.from_file(written(data, "jobs.yml"))
    for job in listed:
        assert job.arrival_ps >= 0
        for fact in ("gpus", "gpus_per_replica", "gradient_bytes", "compute_ps", "algorithm"):
            getattr(job, fact)


def workload(data: bytes) -> None:
    """A workload file; what it describes can be written and read again."""
    made = workload_file.from_file(written(data, "net.yml"))
    assert made.parameters >= 0
    made.gradient_bytes(16)
    if len(made.layers) <= 200:
        again = workload_file.from_text(workload_text.to_text(made), "net.yml")
        assert again.layers == made.layers


_TORUS = hk.topology.product("Ring_SW", [2, 4], bandwidth=["1 GB/s"] * 2, latency=["1 us"] * 2)
_COLLECTIVE = collective_on("all-reduce", _TORUS, "1 MB")


def schedule(data: bytes) -> None:
    """A saved schedule; one that fits makes a plan that is right."""
    path = written(data, "schedule.json")
    made = schedule_file.load_schedule(path, _TORUS, _COLLECTIVE)
    assert made.simulate().time_ps > 0
    if len(made.lanes) <= 16:
        _core.plan_of(made.core, 1 << 34)


_NODES = hk.topology.fully_connected(6, bandwidth="25 GB/s", latency="700 ns")


def collective(data: bytes) -> None:
    """A file of a collective; what it asks for is planned."""
    made = collective_file.read_collective(written(data, "collective.yml"), _NODES)
    if made.size < 1 << 50 and len(made.demands()) <= 64:
        hk.plan(made, _NODES, algorithm="greedy", chunks=1).verify()


_BOX = Hardware(300e9, 100e9, sums=True)


def sweep(data: bytes) -> None:
    """A table or log of measurements; what is not large is fitted, and predicted in finite time."""
    found = read_measurements(written(data, "sweep.csv"))
    assert all(row.seconds > 0 and row.npus >= 2 for row in found)
    list(oddities(found))
    if len(found) <= 24:
        fitted = fit([(found, _BOX)])
        assert all(0 < each < float("inf") for each in fitted.predicted.tolist())


def recording(data: bytes) -> None:
    """A recording of any kind; what is read is judged, on networks that it is of and others."""
    found = read_recording(written(data, "recording"))
    assert all(call.seconds > 0 and call.size > 0 and call.npus >= 1 for call in found.calls)
    if len(found.calls) <= 24:
        judged = hk.measured(_FOLDER / "recording", "dgx_a100_1box", plans=False)
        assert all(each.sentence.isprintable() for each in judged.ranges)


def groups(data: bytes) -> None:
    """Groups of NPUs as text; every NPU is then in one."""
    made = hk.topology.grouped(_NODES, data.decode("utf-8", "surrogateescape"))
    assert made.groups is not None
    assert sorted(npu for group in made.groups for npu in group) == list(range(6))


def sizes(data: bytes) -> None:
    """Sizes of a comparison: those of ``--size``, a line each, and in the first line the sweep."""
    sweep, *texts = data.decode("utf-8", "surrogateescape").split("\n")
    found = option_groups.Sizes(texts, sweep or None).read()
    assert found == sorted(set(found))
    assert all(type(size) is int and 0 < size < 1 << 63 for size in found)


_COMPLETED = checks.folder() / "completed"


def completion(data: bytes) -> None:
    """The beginning of a word, completed as each list; all that is offered begins with it."""
    if not _COMPLETED.is_dir():
        (_COMPLETED / "deep").mkdir(parents=True)
        for name in ("net.yml", "deep/net.yml", ".hidden.yml", "notes.txt"):
            (_COMPLETED / name).write_text("")
    word = data.decode("utf-8", "surrogateescape")
    if word.startswith("/") or ".." in word:
        return
    here = Path.cwd()
    os.chdir(_COMPLETED)
    try:
        for offer in _OFFERS:
            assert all(each.startswith(word) for each in offer(word))
    finally:
        os.chdir(here)


_OFFERS = (
    complete.algorithms,
    complete.collectives,
    complete.topologies,
    complete.models,
    complete.devices,
    complete.fidelities,
    complete.all_fidelities,
    complete.routings,
)

PARSERS = (
    units.parse_size,
    units.parse_bandwidth,
    units.parse_time,
    units.parse_frequency,
    units.parse_operations,
    units.parse_count,
)


def quantity(data: bytes) -> None:
    """A quantity as text, read as each kind that there is."""
    given = data.decode("utf-8", "surrogateescape")
    for parse in PARSERS:
        try:
            value = parse(given, field="field")
        except SpecError as error:
            checks.refused(error)
        else:
            assert type(value) is int
            assert 0 <= value <= 1 << 63


_RING = hk.topology.ring(4, bandwidth="25 GB/s", latency="700 ns")


def spec(data: bytes) -> None:
    """What options hold: a network, bandwidths, latencies, failures, NPUs, a root; a line each."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    name, rates, delays, failed, npus, root = (lines + [""] * 6)[:6]
    network: _core.Topology | None = _RING
    try:
        network = built(
            text.from_text(
                name,
                bandwidth=[rates] if rates else None,
                latency=[delays] if delays else None,
            )
        )
    except Error as error:
        checks.refused(error)
    if network is None or network.npu_count > MAX_NPUS:
        return
    for ask in (
        lambda: network.without(*text.read_failures(failed.split(" "))),
        lambda: collective_on(
            "broadcast",
            network,
            "1 MB",
            npus=npus,
            root=root,
        ),
    ):
        try:
            ask()
        except Error as error:
            checks.refused(error)


def value(data: bytes) -> None:
    """A value of another kind where a quantity belongs."""
    draw = Draw(data)
    for parse in PARSERS:
        parse(draw.one_of(ODD), field="field")
