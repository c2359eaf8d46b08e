"""A training graph as columns, filled node by node."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from hocket._core import iteration as core
from hocket.collectives.collective import Progress
from hocket.errors import SpecError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Columns", "Pass", "Tag"]

_NONE = (1 << 32) - 1
_MESSAGE, _COLLECTIVE = 0, 1
LONGEST_PS = 4 * 10**18
"""Of a pass; the core counts no more of all of them."""


class Pass(IntEnum):
    """The work of a node."""

    FORWARD = 0
    RECOMPUTE = 1
    INPUT_GRADIENT = 2
    WEIGHT_GRADIENT = 3
    UPDATE = 4


@dataclass(frozen=True)
class Tag:
    """The place of a node in the training.

    Attributes
    ----------
    iteration, layer
        Numbers from 0; a layer of -1 is none.
    does
        Which pass.
    cause
        What a call is for (its place among ``CAUSES``); -1 of a node that computes.
    """

    iteration: int
    layer: int
    does: Pass
    cause: int = -1


@dataclass
class Columns:
    """Nodes, what they wait for, and calls; as :func:`hocket._core.iteration.run` takes them."""

    actors: int
    actor: list[int] = field(default_factory=list)
    time_ps: list[int] = field(default_factory=list)
    call: list[int] = field(default_factory=list)
    tags: list[Tag] = field(default_factory=list)
    first_dep: list[int] = field(default_factory=lambda: [0])
    deps: list[int] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)
    priority: list[int] = field(default_factory=list)
    starters: list[int] = field(default_factory=list)
    members: list[list[int]] = field(default_factory=list)

    def compute(self, actor: int, time_ps: int, deps: list[int], tag: Tag) -> int:
        """Add a node that computes."""
        return self._node(actor, time_ps, deps, tag, _NONE)

    def collective(self, actor: int, shape: int, deps: list[int], tag: Tag) -> int:
        """Add a node that takes part in a call, alone: its actor stands for all NPUs of the group."""
        return self._node(actor, 0, deps, tag, self.new_call(shape, _COLLECTIVE))

    def new_message(self, shape: int) -> int:
        """Add a message, which is served before collectives: a stage waits for it."""
        return self.new_call(shape, _MESSAGE)

    def new_call(self, shape: int, priority: int) -> int:
        """Add a call that begins with its first member; of least priority is served first."""
        self.shape.append(shape)
        self.priority.append(priority)
        self.starters.append(1)
        self.members.append([])
        return len(self.shape) - 1

    def sends(self, actor: int, call: int, deps: list[int], tag: Tag) -> int:
        """Add the node whose readiness begins a call."""
        node = self._node(actor, 0, deps, tag, call)
        self.members[call].sort(key=lambda member: member != node)
        return node

    def receives(self, actor: int, call: int, deps: list[int], tag: Tag) -> int:
        """Add a node that ends with a call."""
        return self._node(actor, 0, deps, tag, call)

    def _node(self, actor: int, time_ps: int, deps: list[int], tag: Tag, call: int) -> int:
        node = len(self.actor)
        self.actor.append(actor)
        self.time_ps.append(time_ps)
        self.call.append(call)
        self.tags.append(tag)
        self.deps.extend(sorted(set(deps)))
        self.first_dep.append(len(self.deps))
        if call != _NONE:
            self.members[call].append(node)
        return node

    def run(
        self, shapes: list[core.Shape], *, order: str = "fifo", progress: Progress | None = None
    ) -> core.Outcome:
        """Run the graph.

        Raises
        ------
        SpecError
            If it takes longer than can be counted.
        """
        import numpy as np

        if max(self.time_ps, default=0) > LONGEST_PS:
            raise SpecError(
                "npu",
                "a pass of a layer takes longer than a month",
                "use a faster one, or fewer samples",
            )

        def u32(values: list[int]) -> NDArray[np.uint32]:
            return np.array(values, dtype=np.uint32)

        counts = [0, *(len(each) for each in self.members)]
        members = [node for each in self.members for node in each]
        nodes = len(self.actor)
        return core.run(
            np.arange(self.actors, dtype=np.uint32),
            (
                u32(self.actor),
                np.zeros(nodes, dtype=np.uint8),
                np.array(self.time_ps, dtype=np.uint64),
                u32(self.call),
            ),
            (u32(self.first_dep), u32(self.deps)),
            (
                u32(self.shape),
                u32(self.priority),
                u32(self.starters),
                np.cumsum(counts, dtype=np.uint32),
                u32(members),
            ),
            shapes,
            order=order,
            progress=progress,
        )
