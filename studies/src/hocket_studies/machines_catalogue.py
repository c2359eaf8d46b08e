"""Published sweeps: which machine each was measured on, by its public specification."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.profiles.hardware import Hardware
from hocket.profiles.measurement import (
    MeasuredSeries,
    Measurement,
    measurements_in,
    read_measurements,
)

__all__ = ["SCHEDULE_SETS", "SETS", "MeasuredSet", "load_schedule_sets", "load_sets"]

_FOLDER = Path(__file__).parent / "machines_measured"
_G = 1e9
_FABRICS = {"ib": "InfiniBand", "efa": "EFA", "slingshot": "Slingshot"}
"""Names of fabrics by how those of their classes start; others are called as their class."""
_BOXES = {"a100-mesh": "A100 mesh"}
_ROUND = "collective,gpus,nodes,bytes,time_us,algo,proto,inplace\n"


@dataclass(frozen=True)
class MeasuredSet:
    """A published set of sweeps.

    Attributes
    ----------
    name
        Of its file.
    owner
        Who published it.
    box, fabric
        Classes of its nodes and of what joins them; an empty fabric for a single node.
    hardware
        Nominal bandwidths.
    launch
        The kind of program: ``"process"`` drives all GPUs of a node, ``"mpi"`` has a process for each,
        ``"torch"`` calls the library from PyTorch.
    in_place
        Which times are used.
    facts
        What else is to be known: ``"picks"``: the algorithms that it names are the library's choice;
        ``"slow"``: published because it was, so not fitted; ``"node=72"``: GPUs that one NVLink domain
        joins; ``"joint"``: used for classes alone.
    is_few
        Whether a few sizes alone are known.
    """

    name: str
    owner: str
    box: str
    fabric: str
    hardware: Hardware
    launch: str
    in_place: bool = False
    facts: tuple[str, ...] = ()
    is_few: bool = False

    @property
    def family(self) -> str:
        """What its GPUs are called, as in tables."""
        return _BOXES.get(self.box, self.box.upper())

    @property
    def joined(self) -> str:
        """What its fabric is called; empty for a single node."""
        found = (name for start, name in _FABRICS.items() if self.fabric.startswith(start))
        return next(found, self.fabric)

    @property
    def states_picks(self) -> bool:
        """Whether the algorithms that it names are the library's choice, not what it was told."""
        return "picks" in self.facts


def _sets() -> Iterator[MeasuredSet]:
    few = set(_few_sizes())
    with (_FOLDER / "sets.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            facts = tuple(line["facts"].split())
            hardware = Hardware(
                float(line["inside_GBps"]) * _G,
                float(line["nics_GBps"]) * _G,
                sums=line["sums"] == "1" and "nvls=off" not in facts,
            )
            name, is_in_place = line["set"], line["in_place"] == "1"
            whose = line["owner"], line["box"], line["fabric"]
            yield MeasuredSet(
                name, *whose, hardware, line["launch"], is_in_place, facts, name in few
            )


@cache
def _few_sizes() -> Mapping[str, str]:
    """Return the sets of which a few sizes are known, each as the text of a table."""
    found: dict[str, str] = {}
    with (_FOLDER / "few_sizes.csv").open(encoding="utf-8") as file:
        next(file)
        for line in file:
            name, _, rest = line.partition(",")
            found[name] = found.get(name, _ROUND) + rest
    return found


SETS: tuple[MeasuredSet, ...] = tuple(_sets())
"""Bandwidths are nominal, from the makers' specifications; a node's NICs together."""

SCHEDULE_SETS: Mapping[str, tuple[str, ...]] = {
    "MI300X": tuple(
        f"mi300x_azure_msccl_1x8_{name}"
        for name in ("allgather_ring", "allgather_allpair", "allreduce_allpair")
    )
}
"""By family: sets whose rows in place ran a schedule that is known."""


def load_schedule_sets(
    data: Path | None = None,
) -> Iterator[tuple[str, list[tuple[str, Measurement]]]]:
    """Read the times of known schedules that a folder has: by family, each with the name of its set."""
    for family, names in SCHEDULE_SETS.items():
        found = []
        for name in names:
            path = None if data is None else data / f"{name}.csv"
            if path is not None and path.is_file():
                found += [(name, row) for row in read_measurements(path).only(in_place=True)]
        if found:
            yield family, found


def load_sets(data: Path | None = None) -> list[tuple[MeasuredSet, MeasuredSeries]]:
    """Read the sets that are shipped, and those that a folder has.

    Parameters
    ----------
    data
        A folder of tables named as the sets; by default only what is shipped.

    Raises
    ------
    SpecError
        If the folder has none of them.
    """
    found = []
    missing = True
    for each in SETS:
        path = _FOLDER / f"{each.name}.csv"
        if data is not None and (data / path.name).is_file():
            path, missing = data / path.name, False
        if each.is_few:
            table = _few_sizes()[each.name].encode()
            found.append((each, _used(each, measurements_in(table, each.name, each.name))))
        elif path.is_file():
            found.append((each, _used(each, read_measurements(path))))
    if data is not None and not data.is_dir():
        wrong = f"{shown_path(data)} is not a folder"
        raise SpecError("--data", wrong, "name one with tables of measurements")
    if data is not None and missing:
        known = ", ".join(f"{each.name}.csv" for each in SETS[:3])
        raise SpecError(
            "--data", f"{shown_path(data)} has no set that is known", f"name them {known}, ..."
        )
    return found


def _used(each: MeasuredSet, sweeps: MeasuredSeries) -> MeasuredSeries:
    """Return the times of a set that are used, each size once."""
    sweeps = sweeps.only(in_place=each.in_place).once()
    rows = [row for row in sweeps if row.is_aligned]
    for fact in each.facts:
        name, _, value = fact.partition("=")
        if name == "node":
            rows = [replace(row, nodes=max(1, row.npus // int(value))) for row in rows]
    return replace(sweeps, rows=tuple(rows))
