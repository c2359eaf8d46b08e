"""Jobs on a testbed: what each run took, beside what the simulation says."""

from __future__ import annotations

from pathlib import Path

from hocket.plot.style import ACCENT, NPU, picture
from hocket.plot.timing import time_unit
from hocket.testbed.study import Study

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
