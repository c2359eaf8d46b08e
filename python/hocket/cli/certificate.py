"""The lines that show how good packed trees are."""

from __future__ import annotations

from hocket.cli import options
from hocket.plans.trees import Packing

RATE_ONLY = (
    "the trees are proved for their rate only; the remaining gap is latency and pipeline fill"
)


def print_certificates(packings: tuple[Packing, ...]) -> None:
    """Print the certificates of a plan, and what they do not cover."""
    for packing in packings:
        options.say(str(packing))
    if packings:
        options.note(RATE_ONLY)
