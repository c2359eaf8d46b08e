"""Options of planning: those of every algorithm in one value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from hocket import _core
from hocket._checks import did_you_mean, one_of, truth
from hocket._core import synthesis as core
from hocket._memory import checked_limit
from hocket._options import Size, Time, seconds
from hocket.collectives.collective import check_chunks
from hocket.collectives.timing import Latency
from hocket.errors import SpecError
from hocket.plans.synthesis.runtimes import blocks_of
from hocket.units import parse_size, parse_time, shown

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class PlanKeywords(TypedDict, total=False):
        """The fields of :class:`PlanOptions` as keywords of a call."""

        chunks: int | None
        chunk_size: int | str | None
        effort: Effort
        time_limit: float | str | None
        seed: int
        unwind: str | None
        latency_model: Latency
        trials: int
        slot: float | str | None
        window: int | None
        relays: Relays
        memory_limit: int | None
        routing: str
        cache: bool
        runtime: str | None


ROUNDING = 1e-5
"""What is longer than the least by no more than that is as short: chunks may differ by a byte."""

Relays = Literal["none", "forward", "sum"]
"""What NPUs may do with data that they neither hold nor want."""

Effort = Literal["low", "normal", "high"]
"""How much a search may try, by work that is counted."""
SHARES: dict[Effort, float] = {"low": 0.3, "normal": 1.0, "high": 4.0}
"""What each effort is of the normal one."""

TRIALS = 64
"""Random trials of a synthesizer by default."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options of planning.

    Numbers are in seconds and bytes, texts have a unit; both are kept as numbers. A search ends after work
    that is counted: the same call makes the same plan on every machine, unless a time limit ends it.

    Attributes
    ----------
    chunks
        Number of equal slices of the data, which are pipelined. Default: chosen by the algorithm.
    chunk_size
        Bytes of each slice of the data, such as ``"96 KiB"``, instead of `chunks`.
    routing
        Choice among equal paths: balanced, ecmp, ecmp:SEED (by hashes), spray (at flow and packet
        fidelity) or single.
    effort
        Work of a search: low, normal or high; the same on every machine.
    time_limit
        Time limit of a search [s], such as ``"200 ms"``; the result is the best plan so far.
    seed
        Seed of a synthesizer's random choices.
    unwind
        Edges that replace switches in synthesis: 1, 2, ... (degree), ring or max; one value, or
        comma-separated values per dimension. Default: the best of several.
    latency_model
        During its latency, a link is free (`overlapped`) or busy (`occupying`, as TACOS counts).
    trials
        Largest number of random trials of a synthesizer.
    window
        For exact: plan N slots at a time, one window after the other.
    slot
        For exact: length of a slot [s], such as ``"2.3 us"``. Default: chosen by hocket.
    relays
        For steiner: NPUs outside a group do nothing (always with `runtime`), forward, or also sum and copy.
    memory_limit
        Bytes that the work may take. Default: most of the machine's memory.
    cache
        For auto: reuse its earlier choice for the same question, and remember the new one.
    runtime
        Runtime that must execute the plan: mscclpp or mscclpp:sms=132 (processors of the GPU).

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    chunks: int | None = None
    chunk_size: Size | None = None
    routing: str = "balanced"
    effort: Effort = "normal"
    time_limit: Time | None = None
    seed: int = 0
    unwind: str | None = None
    latency_model: Latency = "overlapped"
    trials: int = TRIALS
    window: int | None = None
    slot: Time | None = None
    relays: Relays = "sum"
    memory_limit: int | None = None
    cache: bool = True
    runtime: str | None = None

    def __post_init__(self) -> None:
        check_chunks(self.chunks)
        if self.chunk_size is not None:
            if self.chunks is not None:
                raise SpecError("chunk_size", "chunks says the same", "give one of them")
            size = parse_size(self.chunk_size, field="chunk_size")
            object.__setattr__(self, "chunk_size", size)
        if self.time_limit is not None:
            limit = seconds(self.time_limit, "time_limit")
            if not limit > 0:
                raise SpecError("time_limit", "0 leaves no time", "give more, as 10s")
            object.__setattr__(self, "time_limit", limit)
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 64:
            raise SpecError("seed", f"{self.seed!r} is not a whole number from 0 to 2^64 - 1")
        if self.unwind is not None:
            self._check_unwind(self.unwind)
        if self.runtime is not None:
            blocks_of(self.runtime)
        one_of("latency_model", self.latency_model, get_args(Latency))
        one_of("effort", self.effort, get_args(Effort))
        one_of("relays", self.relays, get_args(Relays))
        for name, most in (("trials", 32), ("window", 63)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 1 <= value < 1 << most):
                raise SpecError(name, f"{value!r} is not a whole number of at least 1")
        if self.slot is not None:
            length = seconds(self.slot, "slot")
            if not length > 0:
                shorter = f"{self.slot!r} is shorter than a picosecond"
                raise SpecError("slot", shorter, "give more, as '2.3 us'")
            object.__setattr__(self, "slot", length)
        if self.memory_limit is not None:
            checked_limit(self.memory_limit)
        object.__setattr__(self, "routing", checked_routing(self.routing))
        truth("cache", self.cache)

    @property
    def seconds(self) -> float | None:
        """The time limit of a search [s]."""
        return None if self.time_limit is None else float(self.time_limit)

    @property
    def share(self) -> float:
        """The work of a search, as a share of that of normal effort."""
        return SHARES[self.effort]

    @property
    def slot_ps(self) -> int | None:
        """The length of a slot [ps]."""
        return None if self.slot is None else parse_time(self.slot, field="slot")

    @property
    def limit_bytes(self) -> int:
        """Bytes that the work may take."""
        return checked_limit(self.memory_limit)

    def slices(self, size: int) -> int | None:
        """Return the number of slices that so many bytes are cut into; ``None`` leaves it to the algorithm.

        Raises
        ------
        SpecError
            If a slice has more bytes than there are.
        """
        if self.chunk_size is None:
            return self.chunks
        largest = int(self.chunk_size)
        if largest > size:
            why = f"{largest} B is more than the data, {size} B"
            raise SpecError("chunk_size", why, instead=[{"chunk_size": f"{size} B"}])
        return -(-size // largest)

    @staticmethod
    def _check_unwind(given: object) -> None:
        parts = [part.strip() for part in given.split(",")] if isinstance(given, str) else []
        known = ("ring", "max", "auto") if len(parts) == 1 else ("ring", "max")
        for part in parts or [""]:
            if part not in known and not re.fullmatch("0*[1-9][0-9]{0,8}", part, re.ASCII):
                right = (
                    "give a degree (1, 2, ...), ring (both ways) or max (all to all), or one for "
                    "each dimension, separated by commas"
                )
                hint = did_you_mean(part, known, right)
                raise SpecError("unwind", f"{given!r} is not one", hint)

    @property
    def names_unwinding(self) -> bool:
        """Whether an unwinding is named; else several are tried."""
        return self.unwind is not None and self.unwind != "auto"

    def unwindings(self, topology: _core.Topology) -> list[list[str]]:
        """Return the unwindings to try: each one entry for all switches, or one for each dimension.

        Raises
        ------
        SpecError
            Where their number fits neither.
        """
        if self.unwind is None or not self.names_unwinding:
            return core.unwindings(topology)
        given = [part.strip() for part in self.unwind.split(",")]
        wanted = len(topology.dimensions)
        if len(given) not in (1, wanted):
            plural = "" if wanted == 1 else "s"
            raise SpecError(
                "unwind",
                f"{self.unwind!r} has {len(given)} entries, and {topology.name} {wanted} "
                f"dimension{plural}",
                "give one entry, or one for each dimension",
            )
        return [given]


ROUTINGS = ("balanced", "ecmp", "spray", "single")
"""How transfers may be spread over equal paths."""


def checked_routing(routing: object) -> str:
    """Return a routing as it is written in files.

    Raises
    ------
    SpecError
        If it is none.
    """
    if not isinstance(routing, str):
        raise SpecError(
            "routing", f"{shown(routing)} is not a name", "give balanced, ecmp, spray or single"
        )
    if routing.partition(":")[0] not in ROUTINGS:
        right = f"use {', '.join(ROUTINGS)}; ecmp:7 is ecmp with a seed"
        raise SpecError(
            "routing", f"there is no {shown(routing)}", did_you_mean(routing, ROUTINGS, right)
        )
    return _core.checked_routing(routing)
