"""Dimensions as schedulers see them, and how data is spread over them."""

from typing import final

from hocket._core import Topology

__all__ = ["Balance", "balance", "check_rails", "rails"]

def check_rails(topology: Topology) -> None:
    """Raise SpecError where links have failed or a switch has a limit, so that NPUs differ."""

def rails(topology: Topology) -> list[tuple[int, str, int, int, int, int, bool]]:
    """Describe the dimensions of more than one NPU as schedulers see them.

    Place among the topology's, kind, size, bandwidth of an NPU [bytes/s], latency of a step [ps],
    steps of a pass, whether switches sum.
    """

@final
class Balance:
    """Shares of the data by order of the dimensions, and what they do to the dimensions."""

    @property
    def shares(self) -> list[tuple[list[int], float]]:
        """Order of the reduce-scatter and its share, greatest first."""

    @property
    def loads(self) -> list[float]:
        """Bytes that an NPU sends over each dimension for a byte that is summed."""

    @property
    def busy(self) -> list[bool]:
        """Which dimensions have most to do for their bandwidth."""

    @property
    def utilization(self) -> float:
        """Of all bandwidth, where latencies count for nothing, 0 to 1."""

def balance(topology: Topology, *, fixed: bool = False) -> Balance | None:
    """Balance the dimensions' loads best, or show the fixed order; ``None`` for more than six."""
