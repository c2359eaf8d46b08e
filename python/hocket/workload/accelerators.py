"""Accelerators by what they can do at most: operations a second and bytes a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from hocket._checks import share_of_peak
from hocket.errors import SpecError
from hocket.units import parse_bandwidth, parse_operations, parse_size, shown
from hocket.workload.costs import Work

_SECOND = 10**12


@dataclass(frozen=True)
class Accelerator:
    """An NPU whose passes take as long as their operations or their bytes, whichever is longer.

    Attributes
    ----------
    name
        What it is called.
    peak
        Operations a second on numbers of 16 bits, without sparsity, such as ``"312 TFLOP/s"``.
    memory_bandwidth
        Of its memory, such as ``"2.039 TB/s"``; None: it never limits.
    memory
        What it holds, such as ``"80 GB"``; None: anything.
    efficiency
        Share of `peak` that is reached, such as 0.5.
    memory_efficiency
        Share of `memory_bandwidth` that is.

    References
    ----------
    Williams, Waterman, Patterson: Roofline, CACM 2009.
    """

    name: str
    peak: str
    memory_bandwidth: str | None = None
    memory: str | None = None
    efficiency: float = 1.0
    memory_efficiency: float = 1.0

    def __post_init__(self) -> None:
        parse_operations(self.peak, field="peak")
        if self.memory_bandwidth is not None:
            parse_bandwidth(self.memory_bandwidth, field="memory_bandwidth")
        if self.memory is not None:
            parse_size(self.memory, field="memory")
        for field in ("efficiency", "memory_efficiency"):
            share_of_peak(field, getattr(self, field))

    @property
    def memory_bytes(self) -> int | None:
        """Its size [bytes]."""
        return None if self.memory is None else parse_size(self.memory, field="memory")

    def time_ps(self, work: Work, samples: Fraction, weight_bytes: Fraction = Fraction(0)) -> int:
        """Return the time of a pass [ps], rounded up.

        Parameters
        ----------
        work
            For one sample.
        samples
            How many; a part of one where a layer is cut up.
        weight_bytes
            Of the weights that the pass reads, or the gradient that it writes.
        """
        if work.time_ps is not None:
            return _ceil(work.time_ps * samples)
        time = work.flops * samples * self._flop_ps
        if self.memory_bandwidth is not None:
            moved = work.bytes * samples + weight_bytes
            time = max(time, self.moves_ps(moved))
        return _ceil(time)

    def moves_ps(self, moved: Fraction) -> Fraction:
        """Return the time in which memory reads or writes so many bytes [ps]."""
        return moved * self._byte_ps

    @cached_property
    def _flop_ps(self) -> Fraction:
        """Time of an operation [ps]."""
        rate = parse_operations(self.peak, field="peak")
        return _SECOND / (rate * Fraction(str(self.efficiency)))

    @cached_property
    def _byte_ps(self) -> Fraction:
        """Time in which memory reads or writes a byte [ps]."""
        if self.memory_bandwidth is None:
            return Fraction(0)
        rate = parse_bandwidth(self.memory_bandwidth, field="memory_bandwidth")
        return _SECOND / (rate * Fraction(str(self.memory_efficiency)))


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


# Data sheets of the makers: dense operations on 16-bit numbers, memory bandwidth, memory.
# NVIDIA V100 SXM2, A100 SXM4 80 GB and 40 GB, H100 SXM5, H200, B200, one of GB200 and one of GB300; AMD
# MI250 and MI300X; Google TPU v3 and v4 (a chip) and v5p.
_ALL = (
    Accelerator("v100", "125 TFLOP/s", "900 GB/s", "32 GB"),
    Accelerator("a100", "312 TFLOP/s", "2039 GB/s", "80 GB"),
    Accelerator("a100-40gb", "312 TFLOP/s", "1555 GB/s", "40 GB"),
    Accelerator("h100", "989.4 TFLOP/s", "3350 GB/s", "80 GB"),
    Accelerator("h200", "989.4 TFLOP/s", "4800 GB/s", "141 GB"),
    Accelerator("b200", "2250 TFLOP/s", "8000 GB/s", "192 GB"),
    Accelerator("gb200", "2500 TFLOP/s", "8000 GB/s", "186 GB"),
    Accelerator("gb300", "2500 TFLOP/s", "8000 GB/s", "288 GB"),
    Accelerator("mi250", "362.1 TFLOP/s", "3276.8 GB/s", "128 GB"),
    Accelerator("mi250-gcd", "181.05 TFLOP/s", "1638.4 GB/s", "64 GB"),
    Accelerator("mi300x", "1307.4 TFLOP/s", "5300 GB/s", "192 GB"),
    Accelerator("tpu-v3", "123 TFLOP/s", "900 GB/s", "32 GB"),
    Accelerator("tpu-v4", "275 TFLOP/s", "1200 GB/s", "32 GB"),
    Accelerator("tpu-v5p", "459 TFLOP/s", "2765 GB/s", "95 GB"),
)
ACCELERATORS: Mapping[str, Accelerator] = {each.name: each for each in _ALL}
"""Accelerators by name."""


def accelerator(name: object) -> Accelerator:
    """Return the accelerator of that name.

    Raises
    ------
    SpecError
        If there is none.
    """
    from hocket._checks import did_you_mean

    if not isinstance(name, str) or name not in ACCELERATORS:
        known = f"accelerators are {', '.join(ACCELERATORS)}"
        hint = did_you_mean(str(name), ACCELERATORS, known) if isinstance(name, str) else known
        raise SpecError("npu", f"there is no {shown(name)}", hint)
    return ACCELERATORS[name]
