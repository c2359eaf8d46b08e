"""What proves how good packed trees are, in lines."""

from __future__ import annotations

from hocket.cli import options
from hocket.plans.trees import Packing

RATE_ONLY = (
    "certificate: of the rate alone; the rest of the gap is latency, and the filling of the trees"
)


def print_certificates(packings: tuple[Packing, ...]) -> None:
    """Print the certificates of a plan, and what they do not speak of."""
    for packing in packings:
        options.say(str(packing))
    if packings:
        options.note(RATE_ONLY)
