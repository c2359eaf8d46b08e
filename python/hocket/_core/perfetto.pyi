"""Spans of time as Perfetto shows them."""

from collections.abc import Sequence
from typing import Any, TypeAlias, final

__all__ = ["Writer"]

_Row: TypeAlias = tuple[int, int, str, int, int, str, dict[str, Any] | None]
"""Process, track, name, start and end [ps], category, and what else there is to say."""

@final
class Writer:
    """Writes a trace, packet by packet, each text once."""

    def __new__(cls) -> Writer: ...
    def process(self, process: int, name: str) -> None:
        """Add a process."""

    def track(self, process: int, track: int, name: str) -> None:
        """Add a track of a process."""

    def spans(self, spans: Sequence[_Row]) -> bytes:
        """Add spans, each track's in the order of their starts; give the bytes since the last call."""
