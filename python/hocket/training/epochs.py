"""Iterations and epochs of data-parallel training: compute, then or meanwhile an all-reduce.

After Laskar et al. 2024 (RingBiOdd and TTO), equations 1 and 2 of section VIII-B and the layer-wise
all-reduce of section VII-C (figure 11). How long an all-reduce takes is for the caller to say, so that any
plan, network and fidelity will do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hocket._checks import check_function, instance_of, truth, whole
from hocket.errors import SpecError
from hocket.units import shown
from hocket.workload.layers import Layer, Workload, check_workload
from hocket.workload.limits import bytes_of
from hocket.workload.systolic import Chiplet

_MAX_COUNT = 1 << 62

AllReduce = Callable[[int], int]
"""Gives the time [ps] of an all-reduce of so many bytes."""


@dataclass(frozen=True)
class Epoch:
    """Training once on the whole training set; times in one unit, such as ps or cycles.

    Attributes
    ----------
    iterations
        How many, each on as many samples as all NPUs take together.
    compute, all_reduce
        Of one iteration.
    """

    iterations: int
    compute: int
    all_reduce: int

    @property
    def time(self) -> int:
        """The two terms of equation 2, over the whole epoch."""
        return self.iterations * (self.compute + self.all_reduce)

    @property
    def all_reduce_time(self) -> int:
        """The share of all-reduce."""
        return self.iterations * self.all_reduce

    def gain(self, other: Epoch) -> int:
        """Return how much shorter another epoch is than this one (equation 2)."""
        return self.time - other.time

    def speedup(self, other: Epoch) -> float:
        """Return how many times as fast another epoch is as this one."""
        return self.time / other.time if other.time else float("inf")


def iterations(training_set: int, npus: int, samples: int = 16) -> int:
    """Return the iterations of an epoch: ``ceil(training_set / (npus * samples))``.

    Parameters
    ----------
    training_set
        Samples of the training set (D).
    npus
        Those that train (N; one less for ``tto``).
    samples
        Of each in an iteration (d).

    References
    ----------
    Laskar et al. 2024, equation 1.
    """
    each = whole("npus", npus, 1, 1 << 32) * whole("samples", samples, 1, 1 << 32)
    return -(-whole("training_set", training_set, 1, _MAX_COUNT) // each)


def epoch(
    training_set: int, npus: int, compute: int, all_reduce: int, *, samples: int = 16
) -> Epoch:
    """Return an epoch whose iterations compute, then sum the gradients.

    Parameters
    ----------
    training_set, npus, samples
        As for :func:`iterations`.
    compute, all_reduce
        Of an iteration (T and C), in one unit, such as ps or cycles.

    References
    ----------
    Laskar et al. 2024, equations 1 and 2.
    """
    whole("compute", compute, 0, _MAX_COUNT)
    whole("all_reduce", all_reduce, 0, _MAX_COUNT)
    return Epoch(iterations(training_set, npus, samples), compute, all_reduce)


@dataclass(frozen=True)
class LayerAllReduce:
    """The all-reduce of the gradient of some layers; times in ps from the start of the iteration.

    Attributes
    ----------
    name
        The layer, the first of its group, or ``all``.
    size
        Bytes.
    ready, start, end
        When the gradient is there, when its all-reduce starts and ends.
    """

    name: str
    size: int
    ready: int
    start: int
    end: int


@dataclass(frozen=True)
class Iteration:
    """One step of training on one NPU, all of them being alike; times in ps.

    Attributes
    ----------
    forward_ps, backward_ps
        Compute.
    all_reduces
        In the order in which they are done.
    """

    forward_ps: int
    backward_ps: int
    all_reduces: tuple[LayerAllReduce, ...]

    @property
    def compute_ps(self) -> int:
        """Both passes."""
        return self.forward_ps + self.backward_ps

    @property
    def all_reduce_ps(self) -> int:
        """All-reduces, overlapped with compute or not."""
        return sum(each.end - each.start for each in self.all_reduces)

    @property
    def time_ps(self) -> int:
        """Until compute and all-reduces are done."""
        return max(self.compute_ps, self.all_reduces[-1].end if self.all_reduces else 0)

    @property
    def exposed_ps(self) -> int:
        """The time that all-reduces add to compute."""
        return self.time_ps - self.compute_ps


def iteration(
    workload: Workload,
    chiplet: Chiplet,
    all_reduce: AllReduce,
    *,
    samples: int = 16,
    overlap: bool = False,
    groups: int | Sequence[int] = 1,
    rows: bool = False,
) -> Iteration:
    """Return an iteration: forward, backward from the last layer to the first, and all-reduces.

    Parameters
    ----------
    workload, chiplet, samples
        What is trained, on what, and on how many samples per chiplet.
    all_reduce
        Gives the time [ps] of an all-reduce of so many bytes; is asked once for each size.
    overlap
        Whether each layer has an all-reduce of its own, which starts when the backward step of that layer
        is done and the all-reduce before it as well. Otherwise one all-reduce of all gradients follows the
        backward pass.
    groups
        With ``overlap``, how many consecutive layers share an all-reduce, which starts when the
        gradients of all of them are there: one number for all groups, the last of which may be smaller,
        or one for each, from the first layer on.
    rows
        Whether weights count as in SCALE-Sim's tables (:attr:`Layer.row_parameters`), as in the paper, and
        not each once.

    References
    ----------
    Laskar et al. 2024, section VII-C, figure 11.
    """
    instance_of(Chiplet, "chiplet", chiplet, "make one by hk.Chiplet(...)")
    check_workload(workload)
    if all_reduce is None:
        raise SpecError("all_reduce", "there is none", "give a function from bytes to picoseconds")
    check_function("all_reduce", all_reduce)
    truth("overlap", overlap)
    truth("rows", rows)
    cycles = chiplet.workload(workload, samples)
    compute = chiplet.time_ps(cycles.total)
    forward = chiplet.time_ps(cycles.forward)
    times: dict[int, int] = {}

    def size_of(layer: Layer) -> int:
        many = layer.row_parameters if rows else layer.parameters
        return bytes_of(many, chiplet.precision_bits)

    def lasts(size: int) -> int:
        if size not in times:
            times[size] = _time(all_reduce(size), size)
        return times[size]

    done: list[LayerAllReduce] = []
    if overlap:
        passed, free = cycles.forward, 0
        ends = len(cycles.layers)
        for count in reversed(_groups(groups, ends)):
            group = cycles.layers[ends - count : ends]
            ends -= count
            passed += sum(each.backward for each in group)
            size = sum(size_of(each.layer) for each in group)
            if size == 0:
                continue
            ready = chiplet.time_ps(passed)
            start = max(ready, free)
            free = start + lasts(size)
            done.append(LayerAllReduce(group[0].layer.name, size, ready, start, free))
    else:
        size = sum(size_of(each.layer) for each in cycles.layers)
        if size:
            done.append(LayerAllReduce("all", size, compute, compute, compute + lasts(size)))
    return Iteration(forward, compute - forward, tuple(done))


def _groups(groups: int | Sequence[int], layers: int) -> list[int]:
    """Return how many layers each group has, from the first on."""
    if isinstance(groups, int):
        each = whole("groups", groups, 1, 1 << 32)
        return [min(each, layers - first) for first in range(0, layers, each)]
    if isinstance(groups, str):
        raise SpecError("groups", f"{shown(groups)} is not a number of layers, nor a list of such")
    found = [whole("groups", count, 1, 1 << 32) for count in groups]
    if sum(found) != layers:
        raise SpecError(
            "groups", f"they have {sum(found)} layers in all", f"the workload has {layers}"
        )
    return found


def _time(value: object, size: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SpecError(
            "all_reduce",
            f"gave {shown(value)} for {size} bytes",
            "give a time in whole picoseconds",
        )
    return value
