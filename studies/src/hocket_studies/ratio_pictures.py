"""Predicted over measured times: a panel a question, a colour a set or a family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hocket.plot.style import picture, write_title

__all__ = ["Ratios", "draw_ratios"]

_COLOURS = 10


class _Check(Protocol):
    @property
    def question(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def predicted(self) -> Sequence[Any]: ...


@dataclass(frozen=True)
class Ratios:
    """The style of such a picture.

    Attributes
    ----------
    of
        Where a prediction lies along the panel.
    base, ticks
        Base of the logarithms there; positions with their names.
    label, title
        What is along the panels, and what the picture shows.
    furthest
        Ratio beyond which points lie at the edge, in both directions.
    panel, dot
        Height of a panel [inch] and size of a point.
    """

    of: Callable[[Any], float]
    base: int
    ticks: dict[float, str]
    label: str
    title: str
    furthest: float
    panel: float
    dot: float


def draw_ratios(checks: Sequence[_Check], path: Path, look: Ratios) -> None:
    """Draw every prediction of what was not fitted."""
    questions = list(dict.fromkeys(check.question for check in checks))
    names = list(dict.fromkeys(check.what for check in checks))
    low, high = 1 / look.furthest, look.furthest
    with picture(path, 9.0, 1.2 + look.panel * len(questions)) as figure:
        panels = figure.subplots(len(questions), 1, sharex=True, squeeze=False)[:, 0]
        for panel, question in zip(panels, questions, strict=True):
            for check in (check for check in checks if check.question == question):
                colour = f"C{names.index(check.what) % _COLOURS}"
                along = [look.of(each) for each in check.predicted]
                ratios = [min(max(1 + each.error, low), high) for each in check.predicted]
                panel.plot(
                    along, ratios, ".", ms=look.dot, alpha=0.7, color=colour, label=check.what
                )
            panel.axhspan(1 / 1.1, 1.1, color="#dddddd", zorder=0)
            panel.set_xscale("log", base=look.base)
            panel.set_yscale("log")
            panel.set_ylim(low, high)
            panel.set_yticks((0.25, 0.5, 1, 2, 4), ("1/4", "1/2", "1", "2", "4"))
            panel.minorticks_off()
            panel.set_title(question, fontsize=9, loc="left")
            panel.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        panels[-1].set_xticks(list(look.ticks), list(look.ticks.values()))
        panels[-1].set_xlabel(look.label)
        figure.supylabel("predicted / measured", fontsize=9)
        write_title(figure, look.title)
