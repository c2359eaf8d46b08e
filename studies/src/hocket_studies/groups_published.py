"""The published figures of PCCL: times of synthesis, and speedups of process groups over Direct.

Only the abstract was read in the paper's own words: it has 512 NPUs in 11.68 minutes. The other figures
are second-hand, from two public summaries of the paper, which agree. Neither says on which networks 512
and 1,000 NPUs are, how fast links are, or which NPUs form a group.

References
----------
Won et al.: PCCL: Process Group-Aware Scalable and Generic Collective Algorithm Synthesizer, arXiv
2606.07019v1.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "Won et al.: PCCL, arXiv 2606.07019v1; its abstract, the rest from summaries of the paper"


@dataclass(frozen=True)
class Figure:
    """What was published of a target: time of Direct over that of PCCL's plan, and seconds of synthesis."""

    speedup: float | None = None
    seconds: float | None = None


NONE = Figure()
"""Nothing was published."""

ROWS: dict[str, dict[str, Figure]] = {
    "groups": {"1 row of mesh 8x8": Figure(speedup=3.05)},
    "scale": {
        "mesh 8x8x8": Figure(seconds=11.68 * 60),
        "mesh 10x10x10": Figure(seconds=2.01 * 3600),
    },
}
"""By experiment and target."""

NOTES = {
    "groups": ("published: 2.33 to 3.03, mean 2.68, of groups at once; fewer with more groups",),
    "switches": ("published: 1.33 on average, for 16 to 256 NPUs",),
}
"""Published figures of several targets together."""
