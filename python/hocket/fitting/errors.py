"""Errors of a law against measured times, by collective and band of sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHARE = 0.9
"""Of the errors of a source that is new that a stated one is to hold for."""


@dataclass(frozen=True)
class Band:
    """Sizes from one up to before another [bytes]."""

    name: str
    low: int
    high: int


BANDS = (
    Band("below 64 KiB", 0, 64 << 10),
    Band("64 KiB to 1 MiB", 64 << 10, 1 << 20),
    Band("1 to 64 MiB", 1 << 20, (64 << 20) + 1),
    Band("above 64 MiB", (64 << 20) + 1, 1 << 62),
)


@dataclass(frozen=True)
class ErrorSummary:
    """Median and 90th percentile of absolute errors, and of how many."""

    rows: int
    median: float
    p90: float


def band_of(size: int) -> Band:
    """Return the band that a size is in."""
    return next(band for band in BANDS if size < band.high)


def summary_of(errors: NDArray[np.float64]) -> ErrorSummary:
    """Return median and 90th percentile of absolute errors; of none, nothing."""
    if len(errors) == 0:
        return ErrorSummary(0, float("nan"), float("nan"))
    sizes = np.abs(errors)
    return ErrorSummary(len(sizes), float(np.median(sizes)), float(np.percentile(sizes, 90)))


def of_new_sources(errors: NDArray[np.float64], sources: Sequence[Hashable]) -> tuple[float, float]:
    """Return what half and what 9 of 10 absolute errors of a source that is new are below.

    Parameters
    ----------
    errors
        Each without anything of its source, (rows,).
    sources
        Whose each is, (rows,); each source weighs the same.
    """
    counts = Counter(sources)
    sizes = np.abs(errors)
    weights = np.array([1 / counts[each] for each in sources])
    order = sizes.argsort(kind="stable")
    share = (weights[order].cumsum() - weights[order] / 2) / weights.sum()
    # A new source may lie anywhere among the others or beyond them: half of what that asks for is added.
    level = min(_SHARE * (1 + 0.5 / len(counts)), 1.0)
    median, within = (float(np.interp(at, share, sizes[order])) for at in (0.5, level))
    return median, within


def summaries(
    errors: NDArray[np.float64], sizes: NDArray[np.int64]
) -> Iterator[tuple[Band, ErrorSummary]]:
    """Return the errors of each band that has any."""
    for band in BANDS:
        within = (sizes >= band.low) & (sizes < band.high)
        if within.any():
            yield band, summary_of(errors[within])


def rank_correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return Kendall's tau-b of two series; nan where either has a single value.

    Source: Kendall, The treatment of ties in ranking problems, 1945.
    """
    first, second = np.sign(one[:, None] - one), np.sign(other[:, None] - other)
    pairs = np.sqrt(np.abs(first).sum() * np.abs(second).sum())
    return float((first * second).sum() / pairs) if pairs else float("nan")
