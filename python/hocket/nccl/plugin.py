"""The picks of a tuner plugin, asked without a GPU."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from hocket._checks import list_of, path_of, whole
from hocket._children import started
from hocket._results import HIDDEN, Column, Result, TableResult, figure, said
from hocket.errors import InfeasibleError, SpecError
from hocket.nccl.model import KINDS
from hocket.nccl.plugin_process import ALGORITHMS, COLLECTIVES, IGNORED, PROTOCOLS
from hocket.nccl.prediction import Library, library_on, network_and_gpu
from hocket.topology.sources import TopologyLike
from hocket.units import format_size

_SECONDS = 60.0
"""A plugin that takes longer for all answers hangs: it may sleep."""
_LIMITS = {"seconds": 20, "memory": 4 << 30}
"""Time of a processor [s], and bytes, that it may take."""
_LONGEST = 16 << 20
"""Bytes of an answer."""
_MOST_COST = 3.6e9
"""An hour [us]: NCCL takes nothing that would take longer."""
SIZES = tuple(1 << power for power in range(8, 34))
"""Sizes that are asked for by default: 256 B to 8 GiB."""


@dataclass(frozen=True)
class AskedPick(Result):
    """The pick of a tuner for a range of sizes.

    Attributes
    ----------
    kind
        The collective.
    least, most
        The first and the last size that were asked for [bytes].
    algorithm, protocol
        As ``"nvls-tree"`` and ``"Simple"``.
    channels
        How many; ``None`` leaves it to NCCL.
    is_own
        Whether NCCL would pick it without the tuner, by its own model.
    """

    kind: str = field(metadata=said("collective", only="rows", column=Column("collective")))
    least: int = field(metadata=said("min_bytes", column=Column("from", is_given=True)))
    most: int = field(metadata=said("max_bytes", column=Column("to", is_given=True)))
    algorithm: str = field(metadata=said(column=Column("algorithm")))
    protocol: str = field(metadata=said(column=Column("protocol")))
    channels: int | None = field(metadata=said(column=Column("channels", nothing="NCCL's")))
    is_own: bool

    @property
    @figure("picker", only="table", column=Column("picked by"))
    def _picker(self) -> str:
        return "NCCL too" if self.is_own else "the tuner"


@dataclass(frozen=True)
class AskedKind(Result):
    """The pick of a tuner for a collective."""

    collective: str
    picks: list[AskedPick]


@dataclass(frozen=True, repr=False)
class AskedTuner(TableResult):
    """The picks of a tuner plugin.

    Attributes
    ----------
    library
        Its file.
    name, api
        As it calls itself, and the version of NCCL's API by which it was asked.
    npus, nodes
        Of the communicator that it was told of.
    picks
        What it picks, by collective and size.
    log
        What it wrote to NCCL's log: formats, without their values.
    """

    _table = "picks"

    library: str
    name: str
    api: int
    npus: int
    nodes: int
    picks: tuple[AskedPick, ...] = field(metadata=HIDDEN)
    log: tuple[str, ...]

    @property
    @figure()
    def collectives(self) -> list[AskedKind]:
        """The picks of each collective."""
        kinds = dict.fromkeys(each.kind for each in self.picks)
        return [AskedKind(kind, [p for p in self.picks if p.kind == kind]) for kind in kinds]

    def __repr__(self) -> str:
        return f"<AskedTuner {self.name!r}: {len(self.picks)} picks>"


def ask_tuner(
    library: str | PathLike[str],
    topology: TopologyLike,
    *,
    sizes: Sequence[int] = SIZES,
    gpu: str | None = None,
) -> AskedTuner:
    """Ask a tuner plugin what it picks for a communicator of all NPUs of a topology.

    The plugin is loaded by a process of its own, which is told what NCCL's own model predicts, as NCCL
    tells it.

    Parameters
    ----------
    library
        The plugin's shared library, of version 2 to 7 of NCCL's API.
    topology
        A network, or text as of :func:`hocket.topology.load`.
    sizes
        What is asked for [bytes], ascending.
    gpu
        As of :func:`hocket.nccl.predict`.

    Raises
    ------
    SpecError
        If there is no such library, or it is no tuner plugin.
    InfeasibleError
        If the plugin ends the process, hangs, or refuses to start.
    """
    path = path_of("library", library)
    asked = [whole("sizes", size, 0, 2**63 - 1) for size in list_of("sizes", sizes)]
    if not os.path.isfile(path):  # noqa: PTH113 (names that are too long are no files either)
        raise SpecError(None, "there is no such file", "give a tuner's library", origin=str(path))
    told = library_on(*network_and_gpu(topology, gpu))
    npus, nodes = told.npus, told.nodes
    calls = [
        (COLLECTIVES.index(kind), size, _costs(told, kind, size))
        for kind in KINDS
        for size in asked
    ]
    found = _answers(path, {"ranks": npus, "nodes": nodes, "calls": calls})
    answers = iter(found["answers"])
    picks: list[AskedPick] = []
    for collective, size, costs in calls:
        result, channels, after = next(answers)
        kind = COLLECTIVES[collective]
        own, picked = _pick(costs), _pick(costs if result else after)
        if own is None or picked is None:
            why = f"leaves NCCL nothing to use for {kind} of {format_size(size)}"
            raise InfeasibleError(None, why, "ask another plugin", origin=str(path))
        (algorithm, protocol), is_own = picked, picked == own
        count = channels if channels > 0 and not result else None
        _add(picks, AskedPick(kind, size, size, algorithm, protocol, count, is_own))
    return AskedTuner(
        str(path), found["name"], found["api"], npus, nodes, tuple(picks), tuple(found["log"])
    )


def _add(picks: list[AskedPick], pick: AskedPick) -> None:
    """Add a pick of one size, to the one before it where it is the same."""
    before = picks[-1] if picks else None
    if before is not None and _same(before) == _same(pick):
        pick = AskedPick(before.kind, before.least, pick.most, *_same(pick)[1:])
        picks.pop()
    picks.append(pick)


def _same(pick: AskedPick) -> tuple[str, str, str, int | None, bool]:
    return pick.kind, pick.algorithm, pick.protocol, pick.channels, pick.is_own


def _costs(told: Library, kind: str, size: int) -> list[float]:
    """Return what NCCL tells a tuner: its prediction of what it would use [us], -1 for the rest."""
    costs = [IGNORED] * (len(ALGORITHMS) * len(PROTOCOLS))
    for each in told.choices(kind, size):
        at = ALGORITHMS.index(each.algorithm) * len(PROTOCOLS) + PROTOCOLS.index(each.protocol)
        costs[at] = each.seconds * 1e6
    return costs


def _pick(costs: Sequence[float]) -> tuple[str, str] | None:
    """Return what NCCL takes: the least cost of those that are not to be ignored, or None if all are."""
    used = [at for at, cost in enumerate(costs) if 0 <= cost < _MOST_COST]
    if not used:
        return None
    best = min(used, key=lambda at: costs[at])
    return ALGORITHMS[best // len(PROTOCOLS)], PROTOCOLS[best % len(PROTOCOLS)]


def _answers(path: Path, question: dict[str, Any]) -> _Answered:
    """Have a process of its own ask the plugin; neither it nor its session outlives the answer."""
    told = {"library": str(path.resolve()), "parent": os.getpid(), **_LIMITS, **question}
    command = [sys.executable, "-m", "hocket.nccl.plugin_process"]
    begun = time.monotonic()
    with started(command, _SECONDS) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended: how is said below
            process.stdin.write(json.dumps(told).encode())
            process.stdin.close()
        said = process.stdout.readline(_LONGEST + 1)
        if not said:
            process.wait()
        code = process.poll()
    if said.endswith(b"\n"):
        return _checked(path, said, len(question["calls"]))
    if said:
        why = "writes what is no answer into the answers"
    elif code == -signal.SIGXCPU:
        why = f"gives no answer in {_LIMITS['seconds']} s of a processor"
    elif code == -signal.SIGKILL and time.monotonic() - begun >= _SECONDS:
        why = f"gives no answer in {_SECONDS:g} s"
    else:
        how = f"signal {-code}" if code is not None and code < 0 else f"code {code}"
        why = f"ends the process that asks it, with {how}"
    raise InfeasibleError(None, why, "ask another plugin", origin=str(path))


class _Refused(TypedDict):
    """Why a plugin cannot be asked."""

    error: str


class _Answered(TypedDict):
    """A plugin's answer to each call: the result, channels and the remaining costs."""

    name: str
    api: int
    answers: list[tuple[int, int, list[float]]]
    log: list[str]


def _checked(path: Path, said: bytes, calls: int) -> _Answered:
    """Read an answer; a plugin may write into it what it likes."""
    from pydantic import TypeAdapter, ValidationError

    kinds: Any = TypeAdapter(_Answered | _Refused)
    try:
        found = kinds.validate_json(said)
    except ValidationError:
        found = {"answers": []}
    if "error" in found:
        reason = " ".join(found["error"].split())
        why = f"is no tuner plugin that can be asked: {reason}"
        raise SpecError(None, why, "give a library as NCCL_TUNER_PLUGIN names it", origin=str(path))
    answered: _Answered = found
    lengths = [len(costs) for _, _, costs in answered["answers"]]
    if lengths != [len(ALGORITHMS) * len(PROTOCOLS)] * calls:
        why = "writes what is no answer into the answers"
        raise InfeasibleError(None, why, "ask another plugin", origin=str(path))
    return answered
