"""The places of device names, so that none lies on another or on a device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.patheffects import withStroke
from matplotlib.textpath import TextToPath
from numpy.typing import NDArray

Points = NDArray[np.float64]

_TURNS = (0.25, 0.75, 0.0, 0.5, 0.125, 0.375, 0.625, 0.875)
"""Of a whole turn: above, below, right, left, then askew."""
_REACHES = (1.0, 1.8, 2.8, 4.0, 6.0, 9.0, 13.0, 18.0, 24.0)
_LED = 4.0
"""Radii beyond which a line leads from a device to its name."""
_SAMPLES = np.linspace(0.03, 0.97, 24)
_ON_LABEL, _ON_DEVICE, _ON_LINE, _FAR = 1000.0, 1000.0, 1.0, 4.0


@dataclass(frozen=True)
class Label:
    """A name, its middle [inches], whether it lies on its device, and from where a line leads to it."""

    text: str
    x: float
    y: float
    is_inside: bool
    led_from: tuple[float, float] | None = None


def text_inches(text: str, size: float) -> tuple[float, float]:
    """Return width and height of a line of text in a font of ``size`` points."""
    width, height, descent = TextToPath().get_text_width_height_descent(
        text, FontProperties(size=size), ismath=False
    )
    return float(width) / 72, (float(height) + float(descent)) / 72


def place_labels(
    texts: Sequence[str], points: Points, radius: float, lines: Points, size: float
) -> list[Label]:
    """Place a name in its device where it fits, else beside it.

    Parameters
    ----------
    texts, points
        Names and places of devices [inches].
    radius
        Of a device [inches].
    lines
        Starts and ends of links, which names rather do not cross, ``(count, 2, 2)``.
    size
        Of the font [points].

    Complexity: O(devices x (devices + lines)).
    """
    boxes = np.array([text_inches(text, size) for text in texts]).reshape(-1, 2) + 0.03
    if not len(texts):
        return []
    if float(np.hypot(boxes[:, 0], boxes[:, 1]).max()) <= 2 * radius:
        return [
            Label(text, float(x), float(y), True)
            for text, (x, y) in zip(texts, points, strict=True)
        ]
    on_lines = lines[:, :1] + (lines[:, 1:] - lines[:, :1]) * _SAMPLES[None, :, None]
    on_lines = on_lines.reshape(-1, 2)
    middle = points.mean(axis=0)
    taken: list[tuple[float, float, float, float]] = []
    found = []
    for text, point, (width, height) in zip(texts, points, boxes, strict=True):
        best = min(
            _candidates(point, radius, width, height),
            key=lambda at: _cost(
                at, point, middle, radius, (width, height), taken, points, on_lines
            ),
        )
        taken.append((*best, width, height))
        at = (float(point[0]), float(point[1]))
        is_far = math.dist(best, at) > _LED * radius + math.hypot(width, height) / 2
        found.append(Label(text, *best, False, at if is_far else None))
    return found


def _candidates(
    point: Points, radius: float, width: float, height: float
) -> list[tuple[float, float]]:
    found = []
    for reach in _REACHES:
        for turn in _TURNS:
            x, y = math.cos(2 * math.pi * turn), math.sin(2 * math.pi * turn)
            away = radius * (1.0 + 0.6 * (reach - 1.0)) + 0.01
            found.append(
                (
                    float(point[0]) + x * (away + width / 2),
                    float(point[1]) + y * (away + height / 2),
                )
            )
    return found


def _cost(
    at: tuple[float, float],
    point: Points,
    middle: Points,
    radius: float,
    box: tuple[float, float],
    taken: list[tuple[float, float, float, float]],
    points: Points,
    on_lines: Points,
) -> float:
    """Return how bad a place is: names and devices below it, lines, how far it is, on which side."""
    width, height = box
    cost = 0.0
    for x, y, other_width, other_height in taken:
        if (
            abs(x - at[0]) < (width + other_width) / 2
            and abs(y - at[1]) < (height + other_height) / 2
        ):
            cost += _ON_LABEL
    apart = np.abs(points - at)
    below = (apart[:, 0] < width / 2 + radius) & (apart[:, 1] < height / 2 + radius)
    cost += _ON_DEVICE * int(below.sum() - bool(below[np.abs(points - point).sum(axis=1).argmin()]))
    if len(on_lines):
        near = np.abs(on_lines - at)
        cost += _ON_LINE * int(((near[:, 0] < width / 2) & (near[:, 1] < height / 2)).sum())
    away = math.dist(at, (float(point[0]), float(point[1])))
    outwards = np.array(at) - point
    side = float(outwards @ (point - middle)) / (
        away * max(float(np.linalg.norm(point - middle)), 1e-9)
    )
    return cost + _FAR * away / max(radius, 0.05) - side


def draw_labels(axes: Any, labels: Sequence[Label], size: float, inch: float) -> None:
    """Draw names on axes of ``inch`` inches a unit."""
    halo = [withStroke(linewidth=1.6, foreground="white")]
    for label in labels:
        if label.led_from is not None:
            (x, y), style = label.led_from, {"color": "#8a8a8a", "linewidth": 0.5, "zorder": 2.5}
            axes.plot([x / inch, label.x / inch], [y / inch, label.y / inch], **style)
        axes.text(
            label.x / inch,
            label.y / inch,
            label.text,
            fontsize=size,
            ha="center",
            va="center",
            color="white" if label.is_inside else "black",
            path_effects=None if label.is_inside else halo,
            zorder=4,
        )
