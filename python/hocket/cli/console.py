"""Where tables and lines are printed: names stand there as they are, and steer nothing."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from hocket.units import printable


class Plain(Console):
    """A console without markup, through which no escape code of a name comes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Make text of what is printed, titles and cells of tables included."""
        lines = (printable(line) for line in text.split("\n"))
        return super().render_str("\n".join(lines), **options)
