"""Who draws what: a result asks here for its picture, and does not know the room that draws it.

Pictures are below results, so that results cannot import them. The face of the package
(``hocket/__init__.py``), which is below both, names who draws each.
"""

from __future__ import annotations

TYPE_CHECKING = (
    False  # this file is loaded with the package, before anything that takes long to import
)
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any, TypeAlias

    Painter: TypeAlias = Callable[[Any, Path], None]

__all__ = ["draw", "set_painter"]

_PAINTERS: dict[str, Painter] = {}


def set_painter(subject: str, painter: Painter) -> None:
    """Name who draws results of a kind into a .png, .svg or .pdf file."""
    _PAINTERS[subject] = painter


def draw(subject: str, result: object, path: Path) -> None:
    """Draw a result by whoever draws its kind.

    Raises
    ------
    SpecError
        If the file can be no picture, or cannot be written.
    """
    _PAINTERS[subject](result, path)
