"""The style of all pictures, and how they are written."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, LogLocator, MaxNLocator, NullFormatter

from hocket.errors import SpecError
from hocket.files.atomic import check_target, replacing

FORMATS = (".png", ".svg", ".pdf")
NPU, SWITCH, LINK, ACCENT = "#2f6db5", "#8a8a8a", "#5c5c5c", "#c44e2b"
CAUSE_COLORS = {
    "data": "#c44e2b",
    "tensor": "#d99a00",
    "pipeline": "#8a5aa8",
    "expert": "#c2498f",
    "table": "#12908f",
}
"""Colours of what training waits for."""


def check_picture(path: Path) -> None:
    """Refuse a name that no picture can have, before the work.

    Raises
    ------
    SpecError
        If the ending is none of those known, or the file cannot be written.
    """
    if path.suffix.lower() not in FORMATS:
        raise SpecError(
            None, f"a picture ends in {', '.join(FORMATS)}", "name one so", origin=str(path)
        )
    check_target(path)


@contextmanager
def picture(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Yield a figure [inches] that is written to ``path`` in the end, cropped to what is on it."""
    check_picture(path)
    style: Any = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.hashsalt": "hocket",
        "text.parse_math": False,  # a name may have a dollar in it
    }
    with rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                # What matplotlib writes there itself is a formula, which `text.parse_math` leaves as it is.
                if isinstance(axis.get_major_formatter(), LogFormatter):
                    plain_numbers(axis)
        suffix = path.suffix.lower().lstrip(".")
        metadata = {"Date": None} if suffix == "svg" else None
        with replacing(path) as temporary:
            figure.savefig(
                temporary,
                format=suffix,
                dpi=150,
                metadata=metadata,
                bbox_inches="tight",
                pad_inches=0.08,
            )


def write_title(figure: Figure, text: str, size: float = 10.0) -> None:
    """Write a title over all, in as many lines as the figure's width asks for."""
    most = int(figure.get_figwidth() * 72 / (0.56 * size))
    lines = [line for part in text.split("\n") for line in textwrap.wrap(part, max(most, 20))]
    figure.suptitle("\n".join(lines), fontsize=size)


_DECADES = {"x": 2, "y": 4}
"""Up to how many an axis has numbers between powers of ten, too."""


def plain_numbers(axis: Any) -> None:
    """Write the numbers of a logarithmic axis as they are: 1, 10, 100, and 1, 2, 5 on a short one."""
    low, high = axis.get_view_interval()
    decades = math.log10(high / low) if 0 < low < high else math.inf
    if decades < 1:
        axis.set_major_locator(MaxNLocator(5))
    elif decades <= _DECADES[axis.axis_name]:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: significant(value))
    axis.set_minor_formatter(NullFormatter())


def significant(value: float) -> str:
    """Write a number with four significant digits at most: ``0.25``, ``1,500``, ``2e7``."""
    if 1000 <= value < _LONG:
        return f"{value:,.0f}"
    number, _, power = f"{value:.4g}".partition("e")
    return f"{number}e{int(power)}" if power else number


_LONG = 10**6
