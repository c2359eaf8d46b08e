"""The published figures of TACOS: tables I to V, and the numbers in the text for figures 6, 19 and 21.

Two columns of table I, headed "Ring" and "Greedy", are taken for those of Direct and of Ring. On the
network as unwound, where nodes are a one-way ring, Direct comes to 4.0, 12.0, 28.0 times the best from
16 NPUs on, twice as many for each doubling, and Ring to 7.7, 7.8, 7.9; "Ring" has 3.78, 11.28, 26.47 and
"Greedy" 7.44, 7.48, 7.54. All are 3 to 6 % lower, as if TACOS's own plans, which the rest is divided by,
had slots rounded up: with 0.5 us and 1.43 MB a link of 50 GB/s takes 29.1 us of 4 slots of 7.65 us.

References
----------
Won et al.: TACOS: Topology-Aware Collective Algorithm Synthesizer for Distributed Training,
arXiv 2304.05301, sections III and VIII.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "Won et al.: TACOS, arXiv 2304.05301, tables I to V, figures 6, 19 and 21"

PAPER_NAMES = {
    "exact": "TACOS-ILP",
    "early": "Early Term.",
    "cluster": "Clustering",
    "greedy": "TACOS-Greedy",
    "blind": "TACCL-like",
    "rank-ring": "Ring",
    "ring": "not in it",
    "direct": "Direct",
}
"""What the paper calls each method."""


@dataclass(frozen=True)
class Figure:
    """A cell of a table: time over that of the best, and seconds of synthesis."""

    ratio: float
    seconds: float | None = None


_Row = dict[str, Figure]


def _baselines(blind: float | None, ring: float | None, direct: float) -> _Row:
    given = {"blind": blind, "rank-ring": ring, "direct": direct}
    return {name: Figure(ratio) for name, ratio in given.items() if ratio is not None}


def _two_searches(early: Figure, cluster: Figure, ring: float, direct: float, blind: float) -> _Row:
    return {"early": early, "cluster": cluster, **_baselines(blind, ring, direct)}


ROWS: dict[str, dict[str, _Row]] = {
    "table 1": {
        "8 NPUs": {
            "exact": Figure(1.00, 0.070),
            "greedy": Figure(1.00, 0.00029),
            **_baselines(1.00, 3.74, 1.44),
        },
        "16 NPUs": {
            "exact": Figure(1.00, 0.79),
            "greedy": Figure(1.00, 0.00063),
            **_baselines(2.89, 7.44, 3.78),
        },
        "32 NPUs": {
            "exact": Figure(1.00, 20.01),
            "greedy": Figure(1.45, 0.0089),
            **_baselines(4.10, 7.48, 11.28),
        },
        "64 NPUs": {
            "exact": Figure(1.00, 70.16),
            "greedy": Figure(1.58, 0.09792),
            **_baselines(4.27, 7.54, 26.47),
        },
        "128 NPUs": {"greedy": Figure(1.00, 1.08), **_baselines(2.60, 4.79, 36.00)},
        "256 NPUs": {"greedy": Figure(1.00, 16.50), **_baselines(None, 4.66, 72.24)},
        "512 NPUs": {"greedy": Figure(1.00, 365.4), **_baselines(None, 4.64, 146.21)},
    },
    "table 2": {
        "8 x 8": _two_searches(Figure(1.00, 600), Figure(1.06, 13.88), 8.00, 13.81, 1.56),
        "10 x 10": _two_searches(Figure(1.00, 900), Figure(1.17, 58.18), 8.74, 19.61, 1.57),
        "12 x 12": _two_searches(Figure(1.00, 1200), Figure(1.23, 168.26), 9.67, 27.33, 1.57),
    },
    "table 3": {
        "all-reduce": {
            "exact": Figure(1.00, 4.92),
            "greedy": Figure(1.00, 0.00353),
            **_baselines(1.00, 5.38, 5.08),
        },
    },
    "table 4": {
        "broadcast": {"exact": Figure(1.00, 0.10), **_baselines(1.00, None, 3.90)},
        "reduce": {"exact": Figure(1.00, 0.10), **_baselines(1.00, None, 3.90)},
        "gather": {"exact": Figure(1.00, 56.13), **_baselines(1.11, None, 1.67)},
        "scatter": {"exact": Figure(1.00, 56.13), **_baselines(1.11, None, 1.67)},
    },
    "table 5": {
        "three at once": {
            "exact": Figure(1.00, 6.73),
            "greedy": Figure(1.25, 0.00367),
            **_baselines(1.50, None, 3.63),
        },
    },
    "figure 6": {
        "ring": {"rank-ring": Figure(1.00), "direct": Figure(12.88)},
        "fully connected": {"rank-ring": Figure(99), "direct": Figure(1.00)},
        "mesh": {"greedy": Figure(1.00), "rank-ring": Figure(3.94), "direct": Figure(5.52)},
    },
    "figure 21": {"1600 MB": {"greedy": Figure(1.00, 57.87)}},
}
"""By table or figure, network or collective, and method."""

MEAN_SPEEDUPS = {
    "figure 19": {("exact", "baselines"): 3.73, ("greedy", "baselines"): 3.17},
    "figure 21": {("greedy", "rank-ring"): 4.51, ("greedy", "direct"): 11.00},
}
"""Of one method over another, mean over the figure; the baselines are Ring and Direct."""
