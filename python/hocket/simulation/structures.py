"""The structures of a plan on its network: the rings and trees that its chunks take.

Nothing is known of the algorithm: a plan from a file or by hand has structures as any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hocket import _core
from hocket._checks import one_of
from hocket.errors import SpecError
from hocket.plans.plan import Plan
from hocket.units import shown

if TYPE_CHECKING:
    from hocket.simulation.run import Run

Phase = Literal["reduce", "copy"]
PHASES = ("reduce", "copy")

_REDUCE = 1


@dataclass(frozen=True)
class Structure:
    """Transfers that belong together."""

    kind: str
    """ring, tree, branch (what leads into rings and out of them) or graph (any other)."""
    chunks: tuple[int, ...]
    """The chunks that take it."""
    transfers: tuple[tuple[int, int], ...]
    """Sending and receiving NPU (or switch that sums or multicasts), sorted."""
    links: tuple[int, ...]
    """The links that these take, sorted; through switches and other NPUs, too."""
    roots: tuple[int, ...]
    """Where sums end, or copies begin; a ring has none."""


def default_phase(plan: Plan) -> Phase:
    """Return reduce if a plan sums, or copy."""
    return "reduce" if bool((plan.transfers.op == _REDUCE).any()) else "copy"


def structures(
    run: Run, phase: Phase | None = None, *, chunk: int | None = None
) -> list[Structure]:
    """Find the rings and trees of a plan, in order of their first chunks.

    Chunks that are sent between the same NPUs over the same paths share a structure. Those that go
    round one ring, each leaving out the link at its own end, do so too: their transfers together
    have one way out of every NPU (into it, for copies) and a cycle through three NPUs at least and more
    than half of them. What they have beside the cycle are branches, one structure for all rings.

    Parameters
    ----------
    run
        With ``keep_services``: a run knows the links of every transfer.
    phase
        ``"reduce"``: what is summed, and copies that a sum waits for because their receiver has
        nothing of its own; ``"copy"``: all else. By default reduce where there are sums.
    chunk
        Only what this chunk takes.

    Raises
    ------
    SpecError
        If the run kept no services, there is no such phase or chunk, or there are no transfers
        or too many.
    """
    plan = run.plan
    if not len(plan):
        raise SpecError(None, "the plan has no transfers, so that there is nothing to see")
    phase = default_phase(plan) if phase is None else phase
    one_of("phase", phase, PHASES)
    if chunk is not None and (type(chunk) is not int or not 0 <= chunk < plan.chunks):
        raise SpecError(
            "chunk", f"there is no {shown(chunk)}", f"chunks are 0 to {plan.chunks - 1}"
        )
    found = _core.structures(run.core, phase == "reduce", chunk)
    return [
        Structure(kind, tuple(chunks), tuple(transfers), tuple(links), tuple(roots))
        for kind, chunks, transfers, links, roots in found
    ]
