"""The published figures of Laskar et al. for all-reduce on meshes: table I and the numbers in the text.

References
----------
Laskar et al.: Enhancing Collective Communication in MCM Accelerators for Deep Learning Training, HPCA
2024, table I and sections VII and VIII.
"""

from __future__ import annotations

SOURCE = "Laskar et al.: Enhancing Collective Communication in MCM Accelerators, HPCA 2024"

USED_LINKS = {
    8: {"ring": 0.29, "bidirectional": 0.57, "ring-2d": 0.55, "multitree": 0.53},
    9: {"ring": 0.28, "ring-2d": 0.53, "multitree": 0.51},
}
"""Table I, by side of the mesh."""

TTO_SPEEDUP = {
    "ring": 3.2,
    "ring-2d": 2.6,
    "double-binary-tree": 5.3,
    "multitree": 1.6,
    "bidirectional": 1.4,
}
"""Mean over meshes and sizes of time / TTO's: section VII-A, figure 8."""

RING_BI_ODD_SPEEDUP = {"ring": 1.9, "ring-2d": 1.75, "double-binary-tree": 3.7, "multitree": 1.1}
"""The same of RingBiOdd."""

SCALING_SPEEDUP = {"ring": 2.8, "multitree": 1.6, "bidirectional": 1.4}
"""Of TTO with 375 KB for each chiplet: section VII-B, figure 9."""

SCALING_RING_BI_ODD = {"multitree": 1.1}

SIMBA_SPEEDUP = {
    "ring": 2.76,
    "ring-2d": 2.52,
    "double-binary-tree": 9.7,
    "multitree": 1.64,
    "bidirectional": 1.41,
}
"""Of TTO's all-reduces on 6 x 6: section VIII-A, figure 13."""

LINK_UTILIZATION = {"tto": 0.83, "bidirectional": 0.57, "ring": 0.30, "multitree": (0.55, 0.60)}
"""Means over time on 9 x 9 with 256 MB: section VII-D, figure 12."""

EPOCH_SPEEDUP = {"multitree": (1.04, 1.5), "bidirectional": (1.1, 1.69)}
"""Least and most over models, of TTO's all-reduces and epochs: section VII-C, figure 10."""

TIME_SAVED = {
    ("bidirectional", "ring"): 0.50,
    ("bidirectional", "multitree"): 0.08,
    ("tto", "multitree"): 0.33,
    ("tto", "bidirectional"): 0.29,
}
"""Share of training time that a method saves of another, the first two of RingBiOdd: the abstract. It
fits the greatest speed-ups of figure 10: 1 - 1 / 1.97, 1 / 1.09 and 1 / 1.5."""

OVERLAP_SPEEDUP = {
    "ring": (0.99, 2.5),
    "ring-2d": (0.99, 2.35),
    "double-binary-tree": (1.03, 5.3),
    "multitree": (0.98, 1.54),
    "bidirectional": (0.99, 1.6),
}
"""The same of iterations whose all-reduces overlap back-propagation: figure 11."""

SIMBA_TRAINING = {
    "ring": (0.97, 1.8),
    "ring-2d": (0.97, 1.73),
    "double-binary-tree": (0.98, 5.56),
    "multitree": (0.97, 1.31),
    "bidirectional": (0.97, 1.17),
}
"""The same of epochs on 6 x 6 with arrays of 16 x 16 and 32 x 32: figure 13."""

EPOCH_EXAMPLE: dict[str, float] = {
    "samples": 1_281_167,
    "compute": 1_832_399,
    "bidirectional": 10_350_425,
    "tto": 7_076_228,
    "iterations": 1252,
    "iterations_of_tto": 1271,
    "gain": 0.44,
}
"""Section VIII-B: ResNet-152 on 8 x 8, in cycles."""

RESULTS = {
    4: {
        "ring": 5_485_432,
        "multitree": 3_683_593,
        "double-binary-tree": 7_333_421,
        "tto": 1_981_481,
    },
    8: {
        "ring": 5_763_235,
        "multitree": 3_491_597,
        "double-binary-tree": 12_226_519,
        "tto": 2_004_546,
    },
}
"""All-reduces of 64 MiB in cycles of 1 ns, by side: the authors' own results, in HPCA_2024_final/bandwidth
of github.com/sabuj7177/TTO_HPCA_2024, commit 5c54fbe. With a header flit for each packet, and sums."""

BEST_CHUNK_KIB = (96, 192)
"""Figure 14: chunks with the most bandwidth."""
