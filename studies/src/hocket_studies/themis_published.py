"""The published numbers of section 6.1 of Themis; the bars of its figures carry none.

References
----------
Rashidi et al.: Themis: A Network Bandwidth-Aware Collective Scheduling Policy for Distributed
Training of DL Models, ISCA 2022, section 6.1 and table 2.
"""

from __future__ import annotations

SOURCE = "Rashidi et al.: Themis, ISCA 2022, section 6.1"

PAPER_NAMES = {
    "hierarchical": "baseline",
    "themis-fifo": "Themis+FIFO",
    "themis": "Themis+SCF",
    "multirail-optimal": "not in it",
    "ideal": "Ideal",
}
"""What the paper calls each scheduler."""

MEAN_UTILIZATION = {"hierarchical": 0.5631, "themis-fifo": 0.8767, "themis": 0.9514}
"""Over all networks and sizes at 64 chunks: the text on figure 11."""

MEAN_SPEEDUP = {"themis-fifo": 1.58, "themis": 1.72}
"""Baseline's time / time, over all networks and sizes: the text on figure 8."""

MAX_SPEEDUP = {"themis": 2.70}
"""The largest of them."""

SWEEP_UTILIZATION = {
    "themis-fifo": {4: 0.4313, 512: 0.8781},
    "themis": {4: 0.4858, 512: 0.9118},
}
"""By number of chunks, 100 MB, mean of two networks: the text on figure 10."""

TRAINING_SPEEDUP = {
    "resnet152": (1.49, 2.25),
    "gnmt": (1.30, 1.78),
    "dlrm": (1.30, 1.77),
    "transformer-1t": (1.25, 1.53),
}
"""Of Themis+SCF over the baseline, mean and largest over networks: the text on figure 12."""

IDEAL_TRAINING_SPEEDUP = {"resnet152": 1.54, "gnmt": 1.32, "dlrm": 1.33, "transformer-1t": 1.26}
"""Of Ideal, mean over networks: the same."""

IDEAL_MAX_TRAINING_SPEEDUP = {"resnet152": 2.34, "gnmt": 1.81, "transformer-1t": 1.54}
"""The largest of it: section 3.2."""

EXPOSED_REDUCTION = {"themis": 1.65, "ideal": 1.72}
"""Exposed communication of the baseline over theirs, mean over models and networks: section 6.2."""

TRAINING_UTILIZATION = {"mean": 0.597, "least": 0.351, "current": 0.977}
"""Of the baseline, over models and networks, and on the current system: section 3.2."""
