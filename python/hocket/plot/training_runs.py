"""Predicted over measured times of published training runs: a panel a question, a colour a set."""

from __future__ import annotations

from pathlib import Path

from hocket.plot.style import picture, write_title
from hocket.reproduce.training import TrainingResult

__all__ = ["draw_runs"]

_COLOURS = 10
_LOW, _HIGH = 0.25, 4.0


def draw_runs(result: TrainingResult, path: Path) -> None:
    """Draw every run that was predicted without having been fitted, by the operations it reached."""
    questions = list(dict.fromkeys(check.question for check in result.checks))
    names = list(dict.fromkeys(check.what for check in result.checks))
    with picture(path, 9.0, 1.2 + 1.8 * len(questions)) as figure:
        panels = figure.subplots(len(questions), 1, sharex=True, squeeze=False)[:, 0]
        for panel, question in zip(panels, questions, strict=True):
            for check in result.checks:
                if check.question != question:
                    continue
                colour = f"C{names.index(check.what) % _COLOURS}"
                reached = [each.run.tflops for each in check.predicted]
                ratios = [min(max(1 + each.error, _LOW), _HIGH) for each in check.predicted]
                panel.plot(reached, ratios, ".", ms=4.5, alpha=0.7, color=colour, label=check.what)
            panel.axhspan(1 / 1.1, 1.1, color="#dddddd", zorder=0)
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_ylim(_LOW, _HIGH)
            panel.set_yticks((0.25, 0.5, 1, 2, 4), ("1/4", "1/2", "1", "2", "4"))
            panel.minorticks_off()
            panel.set_title(question, fontsize=9, loc="left")
            panel.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        panels[-1].set_xticks(
            (3, 10, 30, 100, 300, 1000, 3000), ("3", "10", "30", "100", "300", "1,000", "3,000")
        )
        panels[-1].set_xlabel("measured TFLOP/s of an NPU, recomputation not counted")
        figure.supylabel("predicted / measured", fontsize=9)
        write_title(figure, "predicted over measured time of an iteration; grey: within 10 %")
