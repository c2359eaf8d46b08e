"""The results of this package as JSON values."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class MeasuredSizeData(TypedDict):
    """How long one size of one collective took, and what was to be expected."""

    collective: str
    timing: str
    """``run``: calls one after another, launch and all; ``kernel``: kernels alone."""
    size_bytes: int
    """As nccl-tests states it."""
    time_ps: int
    """The median over calls."""
    calls: int
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    bound_ps: int | None
    """What any plan takes at least; None of a send-receive."""
    predicted_ps: int | None
    """What the library takes on a healthy machine; None where nothing predicts it."""
    pick: str | None
    pick_protocol: str | None
    pick_channels: int | None
    """What NCCL or RCCL picks by its own model; None where it has none."""
    best_ps: int | None
    """What the best plan takes; None where none was made."""
    best_algorithm: str | None
    """Who makes it; ``library`` where no plan beats the prediction."""
    verdict: Literal["neither", "algorithm", "fabric", "start", "faster than the bound", "not told"]
    is_over: bool
    """Whether it takes longer than predicted, by more than the tolerance."""
    instead: str | None
    """The library's algorithm that takes as long, where that is not its quickest."""
    below_bound: str | None
    """Why the prediction, or the best plan's time, stands below the bound; null where neither does."""


class MeasuredRangeData(TypedDict):
    """Sizes with one verdict."""

    collective: str
    timing: str
    from_bytes: int
    to_bytes: int
    verdict: str
    sentence: str


class MeasuredData(TypedDict):
    """The measured times next to the expected ones."""

    topology: str
    npus: int
    nodes: int
    profile: str | None
    """Whose constants predict; None where NCCL's own model does."""
    library: str | None
    library_version: str | None
    """Whose picks are shown; None where no model of it fits the topology."""
    launch_us: dict[str, float]
    """What launching is taken to cost, by collective of those that were launched one after another."""
    tolerance: float | None
    """Share by which times may exceed predictions; None: by band of sizes."""
    sizes: list[MeasuredSizeData]
    ranges: list[MeasuredRangeData]
    notes: list[str]
