"""Figures 10, 11 and 13 of Laskar et al.: epochs of seven models, and the example of section VIII-B.

An iteration computes forward and backward on 16 samples a chiplet, and sums all gradients by one
all-reduce, or by one for each group of layers that starts when their gradients are there (figure 11). The
all-reduce of tto leaves one chiplet out, so that an epoch has more iterations. Gradients count as the rows
of SCALE-Sim's tables do, as in the paper.

References
----------
Laskar et al. 2024, sections VI-B, VII-C, VIII-A and VIII-B; table II.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from hocket import training, workload
from hocket.workload.limits import bytes_of
from hocket.workload.systolic import Chiplet
from hocket_studies.mesh import Case, OnCase, Study, trains
from hocket_studies.mesh_published import EPOCH_EXAMPLE

MODELS = ("alexnet", "alphagozero", "fasterrcnn", "googlenet", "ncf", "resnet152", "transformer")
METHODS = ("ring", "ring-2d", "double-binary-tree", "multitree-published", "bidirectional", "tto")
GROUPS: dict[str, int | tuple[int, ...]] = {
    "alexnet": 1,
    "alphagozero": (1, 1, 2, 3, 1),
    "fasterrcnn": (3, 4, 3, 2, *(1,) * 34),
    "googlenet": (
        *(3, 3, 4, 1, 1, 2, 2, 1, 1, 4, 1, 1, 2, 1, 1, 1, 1, 3, 1, 1, 1, 2, 1, 1, 1, 1, 2),
        *(1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1),
    ),
    "ncf": (1, 1, 1, 5),
    "resnet152": 5,
    "transformer": 17,
}
"""Layers that share an all-reduce in figure 11, as in the published script; 17 of hocket's 765 layers
of the Transformer are about as many as 20 of its 891 rows."""

OVERLAP_METHODS = (*METHODS, "tto-chosen")
TRAINING_SET, SAMPLES = 1_200_000, 16
SIDES = (8, 9)
OVERLAP_SIDE = 8
SIMBA_SIDE, SIMBA_ARRAYS = 6, (32, 16)
_LEAST = 4096
"""Smaller all-reduces are run with so many bytes: a byte at least for each part."""


@dataclass(frozen=True)
class Epochs:
    """One model on one mesh, by method."""

    model: str
    side: int
    array: int
    size: int
    """Bytes of all gradients."""
    epochs: dict[str, training.Epoch]

    def speedup(self, of: str, over: str) -> float:
        """Epoch of ``over`` / epoch of ``of``."""
        return self.epochs[over].speedup(self.epochs[of])

    def all_reduce_speedup(self, of: str, over: str) -> float:
        """All-reduce of ``over`` / all-reduce of ``of``."""
        return self.epochs[over].all_reduce / self.epochs[of].all_reduce


def time_saved(found: list[Epochs], of: str, over: str, sides: tuple[int, ...] = SIDES) -> float:
    """Return the greatest share of an epoch that ``of`` saves of ``over``, over models and meshes."""
    return max(1 - 1 / each.speedup(of, over) for each in found if each.side in sides)


@dataclass(frozen=True)
class Overlapped:
    """Figure 11: one model whose all-reduces overlap back-propagation, by method."""

    model: str
    iterations: dict[str, training.Iteration]
    counts: dict[str, int]
    """Iterations of an epoch."""

    def speedup(self, of: str, over: str) -> float:
        """Epoch of ``over`` / epoch of ``of``."""
        theirs = self.counts[over] * self.iterations[over].time_ps
        return theirs / (self.counts[of] * self.iterations[of].time_ps)


@dataclass(frozen=True)
class Example:
    """Section VIII-B: ResNet-152 on 8 x 8, bidirectional ring against tto."""

    base: training.Epoch
    tto: training.Epoch

    @property
    def all_reduce_gain(self) -> float:
        """The gain of tto in the epoch's all-reduces, as a share of its own time: the printed 44 %."""
        return self.base.all_reduce_time / self.tto.all_reduce_time - 1

    @property
    def epoch_gain(self) -> float:
        """Its gain in the whole epoch."""
        return self.base.speedup(self.tto) - 1


def _chiplet(array: int = 256) -> Chiplet:
    """As in the published code: folds follow each other, and the data's gradient is computed too."""
    return Chiplet(array=(array, array), folds="overlapped", data_gradient=True)


def _bytes(model: workload.Workload) -> int:
    return bytes_of(model.row_parameters, Chiplet().precision_bits)


def _padded(size: int) -> int:
    return max(size, _LEAST)


def epochs(
    study: Study,
    sides: tuple[int, ...],
    arrays: tuple[int, ...],
    *,
    full: bool,
    on_case: OnCase | None = None,
) -> list[Epochs]:
    """Run every model on each mesh, with each size of array (figures 10 and 13).

    Without ``full``, double-binary-tree, which takes longest to simulate, is left out on 9 x 9.
    """
    models = {name: workload.load(name) for name in MODELS}
    sizes = {name: _bytes(model) for name, model in models.items()}
    left_out = () if full else ((9, "double-binary-tree"),)
    on = {side: [m for m in METHODS if (side, m) not in left_out] for side in sides}
    cases = [Case(side, sizes[m], method) for side in sides for m in MODELS for method in on[side]]
    study.run(cases, on_case)
    found = []
    for side in sides:
        for array in arrays:
            chiplet = _chiplet(array)
            for name, model in models.items():
                compute = chiplet.time_ps(chiplet.workload(model, SAMPLES).total)
                by_method = {
                    method: training.epoch(
                        TRAINING_SET,
                        trains(side, method),
                        compute,
                        study.times[Case(side, sizes[name], method)],
                        samples=SAMPLES,
                    )
                    for method in on[side]
                }
                found.append(Epochs(name, side, array, sizes[name], by_method))
    return found


def overlapped(study: Study, on_case: OnCase | None = None) -> list[Overlapped]:
    """Run figure 11: an all-reduce for each group of layers."""
    models = {name: workload.load(name) for name in MODELS}
    counts = {
        m: training.iterations(TRAINING_SET, trains(OVERLAP_SIDE, m), SAMPLES)
        for m in OVERLAP_METHODS
    }
    sizes = {
        _padded(each.size)
        for name, model in models.items()
        for each in _iteration(name, model, lambda size: 0).all_reduces
    }
    cases = [Case(OVERLAP_SIDE, size, method) for size in sizes for method in OVERLAP_METHODS]
    study.run(cases, on_case)

    def lasts(method: str, size: int) -> int:
        return study.times[Case(OVERLAP_SIDE, _padded(size), method)]

    return [
        Overlapped(
            name,
            {m: _iteration(name, model, partial(lasts, m)) for m in OVERLAP_METHODS},
            counts,
        )
        for name, model in models.items()
    ]


def _iteration(
    name: str, model: workload.Workload, all_reduce: training.AllReduce
) -> training.Iteration:
    return training.iteration(
        model,
        _chiplet(),
        all_reduce,
        samples=SAMPLES,
        overlap=True,
        groups=GROUPS[name],
        rows=True,
    )


def example(study: Study, on_case: OnCase | None = None) -> Example:
    """Section VIII-B with hocket's own times [ps]."""
    model, chiplet = workload.load("resnet152"), _chiplet()
    size, side = _bytes(model), 8
    study.run([Case(side, size, method) for method in ("bidirectional", "tto")], on_case)
    compute = chiplet.time_ps(chiplet.workload(model, SAMPLES).total)
    samples = int(EPOCH_EXAMPLE["samples"])
    base, tto = (
        training.epoch(
            samples, trains(side, m), compute, study.times[Case(side, size, m)], samples=SAMPLES
        )
        for m in ("bidirectional", "tto")
    )
    return Example(base, tto)
