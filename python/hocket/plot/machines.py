"""Predicted over measured times by size: a panel a question, a colour a family of machines."""

from __future__ import annotations

from pathlib import Path

from hocket.plot.style import picture, write_title
from hocket.reproduce.machines import MachinesResult

__all__ = ["draw_errors"]

_TICKS = (1 << 10, 1 << 15, 1 << 20, 1 << 25, 1 << 30)
_NAMES = ("1 KiB", "32 KiB", "1 MiB", "32 MiB", "1 GiB")
_COLOURS = 10
_LOW, _HIGH = 0.2, 5.0


def draw_errors(result: MachinesResult, path: Path) -> None:
    """Draw every time that was predicted without having been fitted, by size."""
    questions = list(dict.fromkeys(check.question for check in result.checks))
    names = list(dict.fromkeys(check.what for check in result.checks))
    with picture(path, 9.0, 1.2 + 1.7 * len(questions)) as figure:
        panels = figure.subplots(len(questions), 1, sharex=True, squeeze=False)[:, 0]
        for panel, question in zip(panels, questions, strict=True):
            for check in result.checks:
                if check.question != question:
                    continue
                colour = f"C{names.index(check.what) % _COLOURS}"
                sizes = [each.row.size for each in check.predicted]
                ratios = [min(max(1 + each.error, _LOW), _HIGH) for each in check.predicted]
                panel.plot(sizes, ratios, ".", ms=3.5, alpha=0.7, color=colour, label=check.what)
            panel.axhspan(1 / 1.1, 1.1, color="#dddddd", zorder=0)
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.set_ylim(_LOW, _HIGH)
            panel.set_yticks((0.25, 0.5, 1, 2, 4), ("1/4", "1/2", "1", "2", "4"))
            panel.minorticks_off()
            panel.set_title(question, fontsize=9, loc="left")
            panel.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        panels[-1].set_xticks(_TICKS, _NAMES)
        panels[-1].set_xlabel("size")
        figure.supylabel("predicted / measured", fontsize=9)
        write_title(
            figure, "predicted over measured times of what was not fitted; grey: within 10 %"
        )
