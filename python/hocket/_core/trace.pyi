"""Execution traces, as the Rust core reads them."""

from collections.abc import Sequence
from typing import ClassVar, Literal, final

import numpy as np
import numpy.typing as npt

from hocket._core import _Immutable

__all__ = ["Draft", "Trace"]

@final
class Draft:
    """A trace whose groups of ranks are not known yet: the name and contents of each rank's file."""

    def __new__(
        cls, files: Sequence[tuple[str, bytes]], follow: Literal["all", "data"] = "all"
    ) -> Draft: ...
    @property
    def process_groups(self) -> list[tuple[int, str]]:
        """Inputs of metadata nodes, with their rank."""
    def link(self, groups: Sequence[tuple[int, Sequence[int]]]) -> Trace:
        """Make the trace, given ids and ranks of groups; once."""

@final
class Trace(_Immutable):
    """A trace of all ranks: columns over nodes, rank by rank, then dependencies, groups and calls."""

    NONE: ClassVar[int]
    KINDS: ClassVar[dict[int, str]]
    """Names of the kinds of nodes, by what ``kind`` says."""
    CALLS: ClassVar[dict[int, str]]
    """Names of the kinds of calls, by what ``calls_kind`` says; ``call_kind`` knows 254 and 255 too."""
    @staticmethod
    def of_columns(
        rank_first: npt.NDArray[np.uint32],
        id: npt.NDArray[np.uint64],
        kind: npt.NDArray[np.uint8],
        duration_ps: npt.NDArray[np.uint64],
        operations: npt.NDArray[np.uint64],
        tensor_bytes: npt.NDArray[np.uint64],
        is_cpu: npt.NDArray[np.uint8],
        call_kind: npt.NDArray[np.uint8],
        bytes: npt.NDArray[np.uint64],
        group: npt.NDArray[np.uint32],
        peer: npt.NDArray[np.uint32],
        tag: npt.NDArray[np.uint64],
        priority: npt.NDArray[np.uint32],
        names: Sequence[str],
        name_row: npt.NDArray[np.uint32],
        dependency_first: npt.NDArray[np.uint32],
        dependencies: npt.NDArray[np.uint32],
        groups: Sequence[tuple[int, Sequence[int]]],
    ) -> Trace:
        """Make a trace again of its columns, and the id and ranks of each group; all of it is checked.

        Raises
        ------
        SpecError
            If the columns are none of a trace.
        """
    @property
    def ranks(self) -> int: ...
    def __len__(self) -> int: ...
    @property
    def unspecified(self) -> int:
        """Collective nodes that do not say what they do."""
    @property
    def names(self) -> list[str]:
        """Each distinct name."""
    @property
    def rank_first(self) -> npt.NDArray[np.uint32]:
        """First row of each rank, and the number of rows."""
    @property
    def id(self) -> npt.NDArray[np.uint64]:
        """The node's number in its file."""
    @property
    def kind(self) -> npt.NDArray[np.uint8]:
        """The kind of each node, numbered as ``hocket.traces.KINDS``."""
    @property
    def duration_ps(self) -> npt.NDArray[np.uint64]:
        """How long it took, where the trace says so."""
    @property
    def operations(self) -> npt.NDArray[np.uint64]:
        """Operations of a computation."""
    @property
    def tensor_bytes(self) -> npt.NDArray[np.uint64]:
        """Bytes that a computation or a memory node touches."""
    @property
    def is_cpu(self) -> npt.NDArray[np.uint8]:
        """1 for what a CPU does, else 0."""
    @property
    def call_kind(self) -> npt.NDArray[np.uint8]:
        """The collective of a node, numbered as ``hocket.traces.CALLS``.

        254 is one that does not say it, 255 no collective.
        """
    @property
    def bytes(self) -> npt.NDArray[np.uint64]:
        """``comm_size`` as it stands in the file."""
    @property
    def group(self) -> npt.NDArray[np.uint32]:
        """Group of a collective, a row of the groups, or ``NONE``."""
    @property
    def peer(self) -> npt.NDArray[np.uint32]:
        """Rank at the other end of a send or receive, or ``NONE``."""
    @property
    def tag(self) -> npt.NDArray[np.uint64]:
        """Tag of a send or receive."""
    @property
    def priority(self) -> npt.NDArray[np.uint32]:
        """Priority of a collective."""
    @property
    def name_row(self) -> npt.NDArray[np.uint32]:
        """Which of ``names`` is each row's."""
    @property
    def dependency_first(self) -> npt.NDArray[np.uint32]:
        """First of each row's dependencies, and their number."""
    @property
    def dependencies(self) -> npt.NDArray[np.uint32]:
        """Rows that must end before a row starts, ascending."""
    @property
    def order(self) -> npt.NDArray[np.uint32]:
        """All rows, rank by rank, each after what it depends on.

        Of those that may come next the one with the lowest id does.
        """
    @property
    def group_id(self) -> npt.NDArray[np.uint64]:
        """Numbers of the groups; row 0 is all ranks."""
    @property
    def group_first(self) -> npt.NDArray[np.uint32]:
        """First of each group's ranks, and their number."""
    @property
    def group_ranks(self) -> npt.NDArray[np.uint32]:
        """Ranks of the groups."""
    @property
    def calls_kind(self) -> npt.NDArray[np.uint8]:
        """The collective of each call, as ``call_kind``."""
    @property
    def calls_group(self) -> npt.NDArray[np.uint32]:
        """Among whom, a row of the groups."""
    @property
    def calls_size(self) -> npt.NDArray[np.uint64]:
        """Bytes as ``Collective.size`` counts them; 0 for a barrier."""
    @property
    def calls_first(self) -> npt.NDArray[np.uint32]:
        """First of each call's nodes, and their number."""
    @property
    def calls_nodes(self) -> npt.NDArray[np.uint32]:
        """Nodes of the calls, one for each rank of the group in its order."""
    @property
    def call(self) -> npt.NDArray[np.uint32]:
        """Call of a collective node, or ``NONE``."""
    @property
    def partner(self) -> npt.NDArray[np.uint32]:
        """The receive of a send and the reverse, or ``NONE``."""
