"""What a shell completes: names of closed lists, each read when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_FILES = (".yml", ".yaml", ".json", ".xml")


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def algorithms(incomplete: str) -> list[str]:
    """Complete names of algorithms."""
    from hocket.plans.algorithms import algorithms

    return _starting((each.name for each in algorithms()), incomplete)


def collectives(incomplete: str) -> list[str]:
    """Complete kinds of collectives, and files."""
    from hocket.plans.algorithms import BUILTIN

    kinds = dict.fromkeys(kind for each in BUILTIN.values() for kind in each.kinds)
    return _starting(kinds, incomplete) + _files(incomplete)


def topologies(incomplete: str) -> list[str]:
    """Complete shipped machines and files."""
    from hocket.topology import machines

    return _starting(machines.names(), incomplete) + _files(incomplete)


def models(incomplete: str) -> list[str]:
    """Complete shipped workloads and files."""
    from hocket.workload import models

    return _starting(models.names(), incomplete) + _files(incomplete)


def devices(incomplete: str) -> list[str]:
    """Complete what computes."""
    from hocket.workload.accelerators import ACCELERATORS

    return _starting((*ACCELERATORS, "chiplet"), incomplete)


def fidelities(incomplete: str) -> list[str]:
    """Complete fidelities of transfers."""
    return _starting(("link", "flow", "packet"), incomplete)


def all_fidelities(incomplete: str) -> list[str]:
    """Complete fidelities, that of schedules included."""
    return _starting(("link", "flow", "packet", "dimension"), incomplete)


def routings(incomplete: str) -> list[str]:
    """Complete ways to spread over equal paths."""
    from hocket.plans.synthesis.options import ROUTINGS

    return _starting(ROUTINGS, incomplete)


def _files(incomplete: str) -> list[str]:
    """Give files and folders that begin so: folders end in a slash."""
    folder, slash, start = incomplete.rpartition("/")
    try:
        found = sorted(Path(folder + slash or ".").iterdir())
    except OSError:
        return []
    return [
        f"{folder}{slash}{each.name}" + "/" * each.is_dir()
        for each in found
        if each.name.startswith(start)
        and (each.is_dir() or each.suffix in _FILES)
        and not (each.name.startswith(".") and not start)
    ]
