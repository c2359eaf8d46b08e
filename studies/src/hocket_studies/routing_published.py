"""The published numbers of Cohen et al., figures 4 to 8: the paper prints almost none.

The paper's plots have no values, so the numbers are those that its released simulator prints, run on its
own traffic: one draw of everything, and true means over all iterations.

References
----------
Cohen et al.: Routing for large ML models, section 5; its released code, dcn-simulators, commit 0ecf8fb.
"""

from __future__ import annotations

from typing import NamedTuple

SOURCE = "Cohen et al.: Routing for large ML models, section 5"
RELEASED = "its released code, dcn-simulators, commit 0ecf8fb"

GREEDY_MS = 10
"""Section 5.3: about so long for an assignment by greedy, 100 to over 1,500 flows, on an Apple M1 Max."""


class Row(NamedTuple):
    """Job 0, BLOOM, mean of 10 iterations."""

    all_reduce: float
    """Seconds."""
    flow_completion: float
    """Seconds."""
    throughput: float
    """Gbit/s."""


CELLS: dict[tuple[int, int, int], dict[str, Row]] = {
    (0, 1, 2): {
        "ecmp": Row(4.693, 1.057, 72.4),
        "annealing": Row(4.341, 0.915, 76.5),
        "greedy-by-tor": Row(1.173, 0.587, 100.0),
        "edge-coloring": Row(1.173, 0.587, 100.0),
        "ilp": Row(1.173, 0.587, 100.0),
    },
    (0, 1, 4): {
        "ecmp": Row(7.040, 0.489, 75.8),
        "annealing": Row(7.216, 0.479, 75.3),
        "greedy-by-tor": Row(1.760, 0.293, 100.0),
        "edge-coloring": Row(1.760, 0.293, 100.0),
        "ilp": Row(1.760, 0.293, 100.0),
    },
    (0, 1, 8): {
        "ecmp": Row(8.213, 0.233, 78.1),
        "annealing": Row(9.240, 0.232, 77.2),
        "greedy-by-tor": Row(2.053, 0.147, 100.0),
        "edge-coloring": Row(2.053, 0.147, 100.0),
    },
    (0, 3, 4): {
        "ecmp": Row(7.472, 0.492, 75.5),
        "annealing": Row(5.446, 0.442, 77.2),
        "greedy-by-tor": Row(1.766, 0.294, 99.9),
        "edge-coloring": Row(1.789, 0.294, 99.8),
    },
    (0, 3, 8): {
        "ecmp": Row(8.950, 0.240, 76.4),
        "greedy-by-tor": Row(3.497, 0.153, 97.7),
        "edge-coloring": Row(2.236, 0.149, 99.0),
    },
    (0, 5, 4): {
        "ecmp": Row(7.472, 0.494, 75.4),
        "greedy-by-tor": Row(1.813, 0.294, 99.9),
        "edge-coloring": Row(1.803, 0.295, 99.5),
    },
    (1, 1, 8): {
        "ecmp": Row(8.213, 0.233, 77.6),
        "annealing": Row(9.856, 0.235, 77.0),
        "greedy-by-tor": Row(4.107, 0.153, 97.9),
        "edge-coloring": Row(4.107, 0.153, 97.9),
    },
    (4, 1, 8): {
        "ecmp": Row(10.267, 0.231, 77.4),
        "annealing": Row(10.267, 0.244, 75.4),
        "greedy-by-tor": Row(4.107, 0.171, 91.7),
        "edge-coloring": Row(4.107, 0.171, 91.7),
    },
    (8, 1, 4): {
        "ecmp": Row(7.040, 0.527, 69.5),
        "annealing": Row(8.624, 0.539, 70.5),
        "greedy-by-tor": Row(3.520, 0.391, 83.3),
        "edge-coloring": Row(3.520, 0.391, 83.3),
    },
}
"""By failed spines, jobs and ring; greedy there takes ToRs by how many flows they have."""

ASSIGNMENT_MS: dict[str, dict[int, float]] = {
    "greedy": {100: 3.5, 400: 10.7, 1_500: 34.7, 10_000: 279, 100_000: 4_072},
    "edge-coloring": {100: 1.0, 400: 2.3, 1_500: 12.3},
    "annealing": {100: 209, 400: 2_395, 1_500: 17_804},
    "ilp": {100: 1_163, 400: 9_633, 1_500: 258_047},
}
"""Figure 7's, by number of flows: CPU time of the released code [ms] on another, busy machine; greedy in
Java, colouring in Python (the algorithm only), the ILP by CBC. Random pairs on 64 ToRs and 32 spines."""
