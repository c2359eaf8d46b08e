"""Plans run between processes; only on Unix."""

from typing import final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from hocket._core import Plan

__all__ = ["Group", "Pacer", "Program", "Store", "relay"]

@final
class Store:
    """The store where ranks meet, served by threads of this process until it is closed or forgotten.

    Raises ``TransportError`` if the address is not of this host or in use, ``SpecError`` if it can be
    reached from other hosts and there is no secret.
    """

    def __new__(cls, address: str, secret: bytes) -> Self: ...
    @property
    def address(self) -> str:
        """Host and port, the one that was free where 0 was given."""

    def close(self) -> None:
        """End it: groups that have met here lose their store."""

@final
class Pacer:
    """Links that ranks of this process share.

    Their rates are in bytes per second, the latency that each has besides in seconds.
    """

    def __new__(cls, rates: list[int], latency: float = 0.0) -> Self: ...
    def carried(self) -> list[int]:
        """Return the bytes that each link has carried."""

def relay(
    pairs: list[tuple[int, int]], delay: float, loss: float, seed: int, stop: int
) -> tuple[int, int]:
    """Pass frames between the open devices of each pair, each after a delay in seconds; drop a share.

    Returns when the other end of the pipe `stop` is closed, with the numbers of frames passed and dropped.
    """

@final
class Program:
    """The program of ranks: a plan, proved first, with places instead of chunks.

    Raises ``VerificationError`` for a wrong plan, ``InfeasibleError`` for one that has no program.
    """

    def __new__(
        cls, plan: Plan, channel_of: list[int] | None = None, *, in_plan_order: bool = False
    ) -> Self:
        """Lower a plan; on channels of each transfer, and in the plan's order, where that is asked for.

        A channel goes over the stream of its number modulo the number of streams.
        """

    @property
    def kind(self) -> str: ...
    @property
    def ranks(self) -> int: ...
    @property
    def root(self) -> int: ...
    @property
    def in_place(self) -> bool:
        """Whether the whole vector is one array that is read and written."""

    @property
    def hash(self) -> int:
        """Equal for equal programs."""

    def peers(self, rank: int) -> list[int]:
        """Ranks that one is connected with; none for a rank that it does not have."""

@final
class Group:
    """Ranks that have come together. A call that fails ends it: all later ones raise the same."""

    @staticmethod
    def connect(
        address: str,
        *,
        group: str,
        rank: int,
        size: int,
        secret: bytes,
        patience: float,
        timeout: float,
        shares: bool,
        streams: int,
        table: int = 0,
        ways: list[tuple[int, int, str]] | None = None,
        pacer: Pacer | None = None,
        routes: list[tuple[int, int, list[int]]] | None = None,
        local: str | None = None,
        outward: bool = False,
    ) -> Group:
        """Join the group of a name at a store; `patience` and `timeout` are in seconds.

        All ranks must have the same `table`: a hash of what they choose plans by, or 0. `ways` says
        where streams to ranks connect: (rank, stream, address). With a `pacer`, `routes` says which of its
        links each stream takes: (rank, stream, links). `local` is where others reach this rank. With
        `outward` the lower of two ranks opens odd streams.
        """

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def shares(self) -> bool:
        """Whether all ranks share memory."""

    @property
    def number(self) -> int:
        """Of the group in its store, which uses none twice."""

    @property
    def old_ranks(self) -> list[int]:
        """Rank of each in the group that failed before; of a first group its own."""

    def run(
        self,
        program: Program,
        dtype: str,
        op: str,
        elements: int,
        input: npt.NDArray[np.uint8] | None,
        output: npt.NDArray[np.uint8] | None = None,
        *,
        by_memory: bool = False,
    ) -> None:
        """Run a program on bytes; `elements` numbers are the whole vector. In place, `input` is written."""

    def exchange(
        self,
        kind: str,
        root: int,
        dtype: str,
        op: str,
        elements: int,
        input: npt.NDArray[np.uint8] | None,
        output: npt.NDArray[np.uint8] | None,
    ) -> None:
        """Do a collective through shared memory."""

    def reduce_in_place(self, op: str, array: object) -> bool:
        """Do an all-reduce through shared memory if these are NumPy's numbers in one piece; say whether."""

    def allocate(self, bytes: int) -> npt.NDArray[np.uint8] | None:
        """Return memory that all ranks see, with so many bytes each, or None if it cannot be shared."""

    def abort(self, why: str) -> None:
        """End the group: calls of all ranks fail and name this rank."""

    def shrink(self, patience: float) -> Group:
        """Make a group of the ranks that are left, waiting so many seconds for each that is alive."""

    def close(self) -> None:
        """Leave."""
