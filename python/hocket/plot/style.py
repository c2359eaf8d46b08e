"""How every picture looks and is written."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from hocket.errors import SpecError
from hocket.files.atomic import check_target, replacing

FORMATS = (".png", ".svg", ".pdf")
NPU, SWITCH, LINK, ACCENT = "#2f6db5", "#8a8a8a", "#5c5c5c", "#c44e2b"


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
    """Give a figure [inches] that is written to ``path`` in the end, cropped to what is on it."""
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


def plain_numbers(axis: Any) -> None:
    """Write the numbers of a logarithmic axis as they are, 1, 10, 100, and none between."""
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())
