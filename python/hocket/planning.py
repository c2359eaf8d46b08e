"""Plans: made by an algorithm, read from a file, proved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hocket import _core
from hocket.errors import SpecError
from hocket.memory import memory_limit as default_memory_limit
from hocket.units import parse_size

if TYPE_CHECKING:
    from os import PathLike

_MOST = 1 << 32
_MOST_BYTES = 1 << 63

Progress = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)`` a few times a second during long work."""


@dataclass(frozen=True)
class Transfers:
    """The transfers of a plan, as read-only NumPy columns of equal length.

    Attributes
    ----------
    chunk, chunk_count
        First chunk and number of consecutive chunks carried, shape ``(len(plan),)``, ``uint32``.
    src, dst
        Sending and receiving NPU, ``uint32``.
    op
        0 copy, 1 reduce, ``uint8``.
    wait
        What must end first, ``uint32``: ``Plan.NO_WAIT`` nothing; with the high bit set, a group (its
        position below it); otherwise a transfer.
    path
        Position of an explicit path, ``uint32``, or ``Plan.DEFAULT_ROUTE``.
    size_bytes
        Bytes carried, ``uint64`` (computed when asked for).
    """

    chunk: NDArray[np.uint32]
    chunk_count: NDArray[np.uint32]
    src: NDArray[np.uint32]
    dst: NDArray[np.uint32]
    op: NDArray[np.uint8]
    wait: NDArray[np.uint32]
    path: NDArray[np.uint32]
    _chunk_offsets: NDArray[np.uint64]

    @property
    def size_bytes(self) -> NDArray[np.uint64]:
        """Bytes that each transfer carries."""
        from hocket.files.plan_file import bytes_carried

        return bytes_carried(self._chunk_offsets, self.chunk, self.chunk_count)

    def __len__(self) -> int:
        return len(self.chunk)


class Plan:
    """The transfers that implement one collective on one topology.

    Made by :func:`hocket.plan` or :meth:`Plan.load`. Immutable.
    """

    NO_WAIT = _core.Plan.NO_WAIT
    DEFAULT_ROUTE = _core.Plan.DEFAULT_ROUTE

    def __init__(self, core: _core.Plan) -> None:
        self.core = core

    @property
    def algorithm(self) -> str:
        """Name of the algorithm that made it."""
        return self.core.algorithm

    @property
    def topology(self) -> _core.Topology:
        """The network it was made for."""
        return self.core.topology

    @property
    def collective(self) -> _core.Collective:
        """What it implements."""
        return self.core.collective

    @property
    def chunks(self) -> int:
        """How many chunks the data is cut into."""
        return len(self.core.chunk_demand)

    @property
    def nbytes(self) -> int:
        """Memory that the columns take [bytes]."""
        return self.core.nbytes

    @property
    def is_verified(self) -> bool:
        """Whether it has been proved right."""
        return self.core.is_verified

    @property
    def transfers(self) -> Transfers:
        """Every transfer, as columns; no copy is made."""
        core = self.core
        return Transfers(
            core.chunk,
            core.chunk_count,
            core.src,
            core.dst,
            core.op,
            core.wait,
            core.path,
            core.chunk_offsets,
        )

    def verify(self, *, progress: Progress | None = None) -> Plan:
        """Prove that the plan does what its collective asks, whatever the timing.

        Returns
        -------
        Plan
            This plan.

        Raises
        ------
        VerificationError
            With ``.violations``: code, transfer, chunk, NPU and what is wrong.
        """
        _core.verify(self.core, progress=progress)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan to a Parquet file, a transfer a row; whole or not at all."""
        from hocket.files.plan_file import save_plan

        save_plan(self, Path(path))

    @staticmethod
    def load(path: str | PathLike[str]) -> Plan:
        """Read a plan that :meth:`save` wrote.

        Raises
        ------
        SpecError
            If the file is missing, truncated, or no plan.
        """
        from hocket.files.plan_file import load_plan

        return load_plan(Path(path))

    def __len__(self) -> int:
        return len(self.core)

    def __repr__(self) -> str:
        return repr(self.core)


_SPELLINGS = {
    kind.replace("-", ""): kind
    for kind in (
        "all-reduce",
        "reduce-scatter",
        "all-gather",
        "broadcast",
        "reduce",
        "gather",
        "scatter",
        "all-to-all",
    )
}
"""Kinds by their names without hyphens: allreduce and all_reduce are all-reduce."""


def collective_on(
    kind: str,
    topology: _core.Topology,
    size: int | str,
    *,
    npus: Sequence[int | str] | None = None,
    root: int | str | None = None,
    in_place: bool = True,
) -> _core.Collective:
    """Make a collective among NPUs of a topology.

    Parameters
    ----------
    kind
        ``all-reduce``, ``reduce-scatter``, ``all-gather``, ``broadcast``, ``reduce``, ``gather``,
        ``scatter`` or ``all-to-all``.
    size
        Bytes, or text with a unit such as ``"256 MB"``; what nccl-tests calls size.
    npus
        Participants in rank order, by number or name; all NPUs by default.
    root
        The root, by number or name; the first participant by default.
    in_place
        Whether the result overwrites the input.

    Raises
    ------
    SpecError
        If anything of it makes no sense.
    """
    if not isinstance(topology, _core.Topology):
        raise SpecError(
            f"topology: {topology!r} is no Topology; make one, as by hk.topology.load(...)"
        )
    kind = _SPELLINGS.get(str(kind).lower().replace("_", "").replace("-", ""), str(kind))
    numbers = (
        list(range(topology.npu_count))
        if npus is None
        else [npu_number(topology, npu, "npus") for npu in npus]
    )
    rank = None
    if root is not None:
        number = npu_number(topology, root, "root")
        if number not in numbers:
            raise SpecError(
                f"root: NPU {root!r} does not take part; choose one of the participants"
            )
        rank = numbers.index(number)
    if isinstance(size, str):
        size = parse_size(size, field="size")
    elif type(size) is not int or not 0 <= size < _MOST_BYTES:
        raise SpecError(
            f'size: {size!r} is not a whole number of bytes below 2^63; give one, or text as "256 MB"'
        )
    return _core.Collective(kind, numbers, size, rank, in_place)


def npu_number(topology: _core.Topology, npu: int | str, field: str) -> int:
    """Give the number of an NPU that ``field`` names by number or name.

    Raises
    ------
    SpecError
        If there is no such NPU.
    """
    if isinstance(npu, str):
        try:
            number = topology.device_index(npu)
        except SpecError as error:
            raise SpecError(f"{field}: {error}") from None
        if number >= topology.npu_count:
            raise SpecError(f"{field}: {npu!r} is a switch; name an NPU")
        return number
    number = int(npu)
    if number != npu or not 0 <= number < topology.npu_count:
        raise SpecError(f"{field}: there is no NPU {npu}; NPUs are 0 to {topology.npu_count - 1}")
    return number


def check_chunks(chunks: int | None) -> None:
    """Refuse what is no number of chunks.

    Raises
    ------
    SpecError
        If it is none, or 2^32 or more.
    """
    if chunks is None:
        return
    if type(chunks) is not int or chunks < 1:
        raise SpecError(f"chunks: {chunks!r} is not a number of chunks; give 1 or more")
    if chunks >= _MOST:
        raise SpecError(f"chunks: {chunks} is 2^32 or more; give fewer")


def plan(
    kind: str,
    topology: _core.Topology,
    *,
    size: int | str,
    algorithm: str,
    chunks: int | None = None,
    npus: Sequence[int | str] | None = None,
    root: int | str | None = None,
    in_place: bool = True,
    memory_limit: int | None = None,
) -> Plan:
    """Plan a collective on a topology by a named algorithm.

    Parameters
    ----------
    kind, topology, size, npus, root, in_place
        See :func:`hocket.collective_on`.
    algorithm
        One of :func:`hocket.algorithms`.
    chunks
        Into how many pipelined slices the data is cut; the algorithm's own default if left out.
    memory_limit
        Bytes that the work may take; most of the machine's memory by default.

    Returns
    -------
    Plan
        Not yet verified.

    Raises
    ------
    SpecError
        For input that makes no sense, or more than fits in memory.
    InfeasibleError
        If the algorithm cannot do this here, with the reason.
    """
    collective = collective_on(kind, topology, size, npus=npus, root=root, in_place=in_place)
    return plan_collective(
        collective, topology, algorithm=algorithm, chunks=chunks, memory_limit=memory_limit
    )


def plan_collective(
    collective: _core.Collective,
    topology: _core.Topology,
    *,
    algorithm: str,
    chunks: int | None = None,
    memory_limit: int | None = None,
) -> Plan:
    """Plan a collective that is already made; see :func:`plan`."""
    check_chunks(chunks)
    limit = default_memory_limit() if memory_limit is None else memory_limit
    if type(limit) is not int or not 0 <= limit < _MOST_BYTES:
        raise SpecError(f"memory_limit: {limit!r} is not a number of bytes below 2^63")
    return Plan(_core.plan(topology, collective, algorithm, chunks, limit))
