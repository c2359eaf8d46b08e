"""Figures 4 and 12 of Themis: training.

References
----------
Rashidi et al.: Themis, ISCA 2022, figures 4 and 12.
"""

from __future__ import annotations

from pathlib import Path

from hocket.plot.style import ACCENT, NPU, SWITCH, picture
from hocket_studies.themis import BASELINE, NETWORKS
from hocket_studies.themis_training import CURRENT, SETUPS, UTILIZATIONS, TrainingFigures

_PARTS = {
    "forward": "#4c72b0",
    "backward": "#dd8452",
    "data": "#c44e52",
    "tensor": "#55a868",
    "table": "#8172b3",
}
_MARKS = ("o", "s", "^", "v", "D", "P", "X")


def draw_iterations(result: TrainingFigures, path: Path) -> None:
    """Draw figure 12: where the time goes, by model, network and scheduler; the baseline's is 1."""
    names = result.algorithms
    with picture(path, 11.0, 7.5) as figure:
        for axes, workload in zip(figure.subplots(2, 2).flat, SETUPS, strict=True):
            places, labels = [], []
            for i, network in enumerate(NETWORKS):
                base = result.cell(workload, network, BASELINE).time_ps
                for k, name in enumerate(names):
                    cell = result.cell(workload, network, name)
                    parts = {"forward": cell.forward_ps, "backward": cell.backward_ps}
                    parts |= cell.exposed_ps
                    place, height = i * (len(names) + 1.2) + k, 0.0
                    for part, time in parts.items():
                        share = time / base
                        axes.bar(place, share, 0.85, bottom=height, color=_PARTS[part])
                        height += share
                    places.append(place)
                    labels.append(name)
                middle = i * (len(names) + 1.2) + (len(names) - 1) / 2
                short = network.removeprefix("themis-").replace("-", "\n", 1)
                axes.text(middle, 1.03, short, ha="center", fontsize=6.5)
            axes.set_xticks(places, labels, rotation=90, fontsize=6)
            axes.set_ylim(0, 1.18)
            axes.set_title(workload, fontsize="medium")
            axes.set_ylabel(f"time / {BASELINE}'s")
        handles = [axes.bar(0, 0, color=color) for color in _PARTS.values()]
        words = ["forward", "backward", "exposed: data", "exposed: tensor", "exposed: tables"]
        figure.legend(handles, words, loc="outside lower center", ncols=5, frameon=False)
        figure.suptitle("Training iterations: where the time goes (Themis, figure 12)")


def draw_runtimes(result: TrainingFigures, path: Path) -> None:
    """Draw figure 4: time by bandwidth that is used; a mark where the baseline is."""
    models = [name for name, setup in SETUPS.items() if setup.in_figure_4]
    with picture(path, 11.0, 4.0) as figure:
        for axes, workload in zip(figure.subplots(1, 3), models, strict=True):
            slowest = result.runtime_ps(workload, CURRENT, UTILIZATIONS[0])
            for i, network in enumerate((CURRENT, *NETWORKS)):
                times = [result.runtime_ps(workload, network, share) for share in UTILIZATIONS]
                color = SWITCH if network == CURRENT else (NPU if i % 2 else ACCENT)
                x = [100 * share for share in UTILIZATIONS]
                label = network.removeprefix("themis-")
                share = result.utilization(workload, network)
                time = result.runtime_ps(workload, network, share) / slowest
                line = [time / slowest for time in times]
                axes.plot(x, line, color=color, linewidth=1, alpha=0.4 + 0.1 * i)
                axes.plot(100 * share, time, _MARKS[i], color=color, label=label)
            axes.set_title(workload, fontsize="medium")
            axes.set_xlabel("bandwidth used [%]")
            axes.set_ylim(0, 1)
        figure.axes[0].set_ylabel(f"time / {CURRENT}'s at 10 %")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=7, frameon=False, fontsize=7
        )
        figure.suptitle("Training by bandwidth used; marks: hierarchical (Themis, figure 4)")
