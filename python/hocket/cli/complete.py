"""What a shell completes: names of closed lists, each read when it is asked for.

In bash, values are completed without the command line itself, which takes longer to import than to answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
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


_OPTIONS: dict[str, Callable[[str], list[str]]] = {
    "--topology": topologies,
    "-t": topologies,
    "--algorithm": algorithms,
    "-a": algorithms,
    "--npu": devices,
    "--fidelity": fidelities,
    "--routing": routings,
}
"""By option."""
_OTHERS: dict[tuple[str, str], Callable[[str], list[str]] | None] = {
    ("simulate", "--fidelity"): all_fidelities,
    ("trace run", "--npu"): None,
    ("check", "--topology"): None,
    ("check", "-t"): None,
    ("export", "--topology"): None,
    ("export", "-t"): None,
    ("run", "--collective"): collectives,
    ("testbed run", "--collective"): collectives,
    ("testbed run-clos", "--collective"): collectives,
    ("design", "--workload"): models,
}
"""Where an option of a command is another; None where nothing is completed."""
_ARGUMENTS: dict[str, Callable[[str], list[str]]] = {
    "compare": collectives,
    "design": collectives,
    "pareto": collectives,
    "plan": collectives,
    "predict": collectives,
    "nccl predict": collectives,
    "advise failures": collectives,
    "autotune": collectives,
    "testbed run": algorithms,
    "testbed run-clos": algorithms,
    "train": models,
    "predict-training": models,
    "compare-training": models,
    "topology show": topologies,
    "topology draw": topologies,
    "topology export": topologies,
    "workload show": models,
}
"""The first argument, by command."""
_GROUPS = ("advise", "nccl", "topology", "workload", "trace", "reproduce", "sweep", "testbed")


def completed(words: list[str], incomplete: str) -> list[str] | None:
    """Complete the value of an option or the first argument; None for all else.

    Parameters
    ----------
    words
        What stands before it, without the program.
    incomplete
        What is typed of it.
    """
    command = " ".join(words[:2] if words[:1] and words[0] in _GROUPS else words[:1])
    rest = words[command.count(" ") + 1 :]
    if not words or incomplete.startswith("-"):
        return None
    if not rest:
        complete = _ARGUMENTS.get(command)
    else:
        complete = _OTHERS.get((command, rest[-1]), _OPTIONS.get(rest[-1]))
    return None if complete is None else complete(incomplete)


def answered() -> bool:
    """Print what bash asks for, where that needs no command, and say whether it was."""
    text, number = os.environ.get("COMP_WORDS", ""), os.environ.get("COMP_CWORD", "")
    if not number.isdecimal() or any(mark in text for mark in "'\"\\"):
        return False
    words = text.split()
    last = int(number)
    found = completed(words[1:last], words[last] if last < len(words) else "")
    if found is None:
        return False
    print("\n".join(found))
    return True


def _files(incomplete: str) -> list[str]:
    """Give files and folders that begin so: folders end in a slash."""
    folder, slash, start = incomplete.rpartition("/")
    try:
        found = sorted(Path(folder + slash or ".").iterdir())
    except (OSError, ValueError):  # the latter for a NUL
        return []
    return [
        f"{folder}{slash}{each.name}" + "/" * each.is_dir()
        for each in found
        if each.name.startswith(start)
        and (each.is_dir() or each.suffix in _FILES)
        and not (each.name.startswith(".") and not start)
    ]
