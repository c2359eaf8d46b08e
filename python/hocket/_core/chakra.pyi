"""Execution traces as ASTRA-sim runs them."""

from collections.abc import Callable, Sequence
from typing import final

from hocket._core import Plan

__all__ = ["Exported", "Writer", "export"]

@final
class Writer:
    """Writes the file of a rank, node by node; `after` are ids of nodes that must end first."""

    def __new__(cls) -> Writer: ...
    def compute(self, id: int, name: str, after: Sequence[int], micros: int) -> None:
        """Add a computation."""
    def call(
        self,
        id: int,
        name: str,
        after: Sequence[int],
        kind: int,
        bytes: int,
        group: int | None = None,
    ) -> None:
        """Add a part in a collective, whose kind is numbered as ``hocket.traces.CALLS``."""
    def send(self, id: int, name: str, after: Sequence[int], to: int, bytes: int, tag: int) -> None:
        """Add a message to another rank."""
    def receive(
        self, id: int, name: str, after: Sequence[int], source: int, bytes: int, tag: int
    ) -> None:
        """Add a message from another rank."""
    def take(self) -> bytes:
        """Return the file, and begin the next."""

@final
class Exported:
    """The files written for a plan."""

    @property
    def call(self) -> str:
        """The collective as ASTRA-sim knows it."""
    @property
    def ranks(self) -> int: ...
    @property
    def nodes(self) -> int: ...
    @property
    def group(self) -> list[int] | None:
        """NPUs of the ranks, if they are not all in order."""
    @property
    def notes(self) -> list[str]: ...

def export(
    plan: Plan,
    write: Callable[[str, bytes], object],
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> Exported:
    """Pass name and contents of each file of a plan to `write`: ``plan.RANK.et``, ``workload.NPU.et``.

    Raises
    ------
    hocket.InfeasibleError
        If ASTRA-sim cannot run it.
    """
