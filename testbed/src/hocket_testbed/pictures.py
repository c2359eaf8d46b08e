"""Jobs and plans on a testbed: what each run took, beside what the simulation says."""

from __future__ import annotations

from pathlib import Path

from hocket.plot.style import ACCENT, NPU, picture
from hocket.plot.timing import time_unit
from hocket_testbed.plan_runs import PlanStudy
from hocket_testbed.study import Study

_MAX_NAMED = 40
"""Runs that have room for a name each."""


def draw_study(study: Study, path: Path) -> None:
    """Draw when the last job of each run was done, measured and simulated, hashed runs in order of time."""
    runs = [*study.assigned, *sorted(study.hashed, key=lambda run: max(run.predicted))]
    name, picoseconds = time_unit(max(run.time for run in runs) * 1e12)
    unit = picoseconds * 1e-12
    places = range(len(runs))
    with picture(path, 2.0 + 0.32 * min(len(runs), _MAX_NAMED), 3.4) as figure:
        axes = figure.add_subplot()
        axes.bar(
            places,
            [run.time / unit for run in runs],
            color=[ACCENT if run.paths == "assigned" else NPU for run in runs],
            width=0.7,
        )
        axes.scatter(
            places,
            [max(run.predicted) / unit for run in runs],
            marker="_",
            s=160,
            color="black",
            zorder=3,
            label="flow simulation with the same ports",
        )
        axes.axhline(
            study.ideal / unit, color="black", linewidth=0.8, linestyle=":", label="no link shared"
        )
        if len(runs) <= _MAX_NAMED:
            names = [run.how if run.paths == "assigned" else f"seed {run.how}" for run in runs]
            axes.set_xticks(list(places), names, rotation=90)
        else:
            axes.set_xticks([])
        axes.set_ylabel(f"last job done [{name}]")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, loc="upper left")
        gain = "" if study.gain is None else f": ECMP takes {study.gain:.2f} times as long"
        axes.set_title(f"assigned paths and ECMP, {study.jobs} jobs{gain}")


def draw_plans(study: PlanStudy, path: Path) -> None:
    """Draw a point for each plan: simulated to the right, the median of what was measured upwards."""
    runs = study.runs
    longest = max(max(*run.times, run.predicted) for run in runs)
    name, picoseconds = time_unit(longest * 1e12)
    unit = picoseconds * 1e-12
    with picture(path, 4.6, 4.2) as figure:
        axes = figure.add_subplot()
        most = 1.08 * longest / unit
        axes.plot(
            [0, most], [0, most], color="black", linewidth=0.8, linestyle=":", label="as simulated"
        )
        for run in runs:
            x, y = run.predicted / unit, run.time / unit
            axes.plot(
                [x, x], [min(run.times) / unit, max(run.times) / unit], color=NPU, linewidth=3
            )
            axes.scatter([x], [y], color=ACCENT, s=24, zorder=3)
            text = f"{run.plan.algorithm} {100 * run.deviation:+.1f} %"
            # Names of the right half would leave the picture to the right.
            left = x > most / 2
            axes.annotate(
                text,
                (x, y),
                xytext=(-6 if left else 6, 4 if left else -4),
                textcoords="offset points",
                ha="right" if left else "left",
                va="bottom" if left else "top",
                fontsize="small",
            )
        axes.set_xlim(0, most)
        axes.set_ylim(0, most)
        axes.set_xlabel(f"simulated [{name}]")
        axes.set_ylabel(f"measured, median and all runs [{name}]")
        axes.set_title(f"plans on {study.spec.topology.name}")
        axes.legend(frameon=False, loc="upper left")
