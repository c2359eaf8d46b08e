"""Looks at pictures without pixels: which texts were drawn, and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

_TOUCH = 1.0
"""Pixels by which boxes of two texts may meet."""


@dataclass
class Drawn:
    """Texts of the last picture that was written, with their boxes in pixels, and its size."""

    texts: list[tuple[str, Any]] = field(default_factory=list)
    size: tuple[float, float] = (0.0, 0.0)

    @property
    def words(self) -> str:
        """All texts, a line each."""
        return "\n".join(text for text, _ in self.texts)

    def overlaps(self) -> list[tuple[str, str]]:
        """Pairs of texts whose boxes overlap."""
        found = []
        for i, (text, box) in enumerate(self.texts):
            for other, its in self.texts[:i]:
                wide = min(box.x1, its.x1) - max(box.x0, its.x0)
                high = min(box.y1, its.y1) - max(box.y0, its.y0)
                if wide > _TOUCH and high > _TOUCH:
                    found.append((other, text))
        return found

    def outside(self) -> list[str]:
        """Texts that leave the canvas."""
        width, height = self.size
        return [
            text
            for text, box in self.texts
            if box.x0 < -_TOUCH
            or box.y0 < -_TOUCH
            or box.x1 > width + _TOUCH
            or box.y1 > height + _TOUCH
        ]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """What was drawn last."""
    seen = Drawn()
    write, draw_text = Figure.savefig, Text.draw

    def savefig(figure: Figure, *given: Any, **more: Any) -> None:
        seen.texts.clear()
        renderer = FigureCanvasAgg(figure).get_renderer()

        def draw(text: Text, *rest: Any, **options: Any) -> None:
            draw_text(text, *rest, **options)
            if text.get_visible() and text.get_text().strip():
                seen.texts.append((text.get_text(), text.get_window_extent(renderer)))

        with monkeypatch.context() as patch:
            figure.draw(renderer)  # places everything
            patch.setattr(Text, "draw", draw)
            figure.draw(renderer)
        seen.size = (figure.bbox.width, figure.bbox.height)
        write(figure, *given, **more)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return seen
