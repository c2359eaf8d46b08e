"""Pictures of the use of each link in a run, and of all links over time.

References
----------
Laskar et al.: Enhancing collective communication in MCM accelerators for deep learning training
(HPCA 2024), figure 12.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from numpy.typing import NDArray

from hocket.plot.links import check_devices, draw_devices, draw_links, scene
from hocket.plot.style import ACCENT, NPU, picture, write_title
from hocket.plot.timing import time_axis
from hocket.simulation.run import Run
from hocket.units import format_size, format_time_ps

BINS = 200
"""Of the curve."""
_NAMED = 3
"""Links in the title."""


def busy_shares(run: Run) -> NDArray[np.float64]:
    """Share of the time that each link was occupied, shape ``(link_count,)``."""
    return run.link_busy_ps / max(run.time_ps, 1)


def in_use(run: Run, bins: int = BINS) -> NDArray[np.float64]:
    """Share of links in use in each bin of time: the mean over links of :meth:`Run.heat`."""
    heat = run.heat(bins)
    if not len(heat):
        return np.zeros(bins)
    return np.asarray(heat.mean(axis=0, dtype=np.float64))


def draw_link_heat(run: Run, path: Path) -> None:
    """Draw the network with each link's share of busy time, and below the share in use over time.

    The run must have kept its services.

    Raises
    ------
    SpecError
        If there are too many devices to tell arrows apart.
    """
    topology, collective = run.topology, run.collective
    check_devices(topology)
    place = scene(topology)
    shares, curve = busy_shares(run), in_use(run)
    wide, high = place.size
    inch = min(0.9, 12.0 / wide, 8.5 / high)
    # The palest tenth is too near to white for a line.
    colors = ListedColormap(matplotlib.colormaps["magma_r"](np.linspace(0.1, 1.0, 256)))
    norm = Normalize(0.0, 1.0)
    width, network = max(wide * inch + 1.1, 4.6), high * inch
    hollow = set(range(topology.npu_count)) - set(collective.npus)
    with picture(path, width, network + 2.3) as figure:
        above, below = figure.subplots(2, 1, height_ratios=[network, 1.5])
        used = {link: colors(norm(share)) for link, share in enumerate(shares) if share > 0}
        draw_links(above, place, used, inch)
        draw_devices(above, place, inch, hollow=hollow)
        figure.colorbar(
            ScalarMappable(norm, colors),
            ax=above,
            label="share of the time in use",
            format=matplotlib.ticker.PercentFormatter(1.0),
            fraction=0.05,
            pad=0.02,
        )
        edges = np.linspace(0.0, float(run.time_ps or 1), len(curve) + 1)
        below.stairs(curve * 100, edges, fill=True, color=NPU, alpha=0.85)
        mean = run.used_link_share * 100
        below.axhline(mean, color=ACCENT, linestyle="--", linewidth=1.2)
        below.set_title(f"mean {mean:.1f}%", loc="right", fontsize=8, color=ACCENT, pad=3)
        below.set_ylim(0, 105)
        below.set_ylabel("links in use [%]")
        time_axis(below, run.time_ps)
        write_title(
            figure,
            f"{run.plan.algorithm} {collective.name} of {format_size(collective.size)} on "
            f"{topology.name}: {format_time_ps(run.time_ps)}\n"
            f"{np.count_nonzero(shares)} of {topology.link_count} links used; {_busiest(run, shares)}",
            9,
        )


def _busiest(run: Run, shares: NDArray[np.float64]) -> str:
    """Name the links in use for most of the time."""
    topology = run.topology
    names = topology.device_names
    order = np.argsort(-shares, kind="stable")[:_NAMED]
    found = [
        f"{names[topology.link_src[i]]}→{names[topology.link_dst[i]]} {shares[i]:.1%}"
        for i in order
    ]
    return f"busiest: {', '.join(found)}"
