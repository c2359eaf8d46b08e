"""Figures 4 and 12 of Themis: training iterations on its networks.

Four models, three iterations each: per-NPU batches of 32, 128, 512 and 16 samples; gradients of 16
bits, all reduced at the end of the backward pass; Transformer-1T in groups of 128 NPUs that share
every layer over the first dimensions, with ZeRO 2 over the others and forward passes computed again in
the backward one; DLRM's embeddings exchanged all-to-all beside its bottom layers, where the paper has no
exposed part of it and here up to 8 % of the time are. Compute is an A100's peak times one number for each
model; its memory never limits, and updates take no time.

The one number
--------------
The paper gives the peak of an A100 and no sizes of GNMT and DLRM. For Transformer-1T that peak as it is
(1.0) agrees with what it published. Not so for the others: from ResNet-152's operations (67 GFLOP a sample)
an A100 at its peak takes 6.9 ms for 32 samples, its all-reduce of 120 MB takes 0.5 to 2.3 ms, and so no
network whatever could make an iteration 1.49 times as fast. Each of the other three numbers was
chosen so that the *mean speed-up of Themis* agrees; it says how much compute the published ratios
imply. Their maximum, Ideal's mean and maximum, the networks' order and the cut of exposed
communication follow, and were not fitted:

- ResNet-152: 21 peaks: what 1.5 samples, rather than 32, take at the peak. Nothing published says so.
- GNMT: 5.5 peaks of the model shipped here, with 50 tokens a sentence; 9 tokens would make it 1.
- DLRM: 0.6 of the peak, with the layers shipped here.

With every number at 1 the mean speed-ups are 1.07, 1.08, 1.39 and 1.28: less for ResNet-152 and GNMT.

References
----------
Rashidi et al.: Themis, ISCA 2022, sections 3.2, 5 and 6.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import mean

from hocket import _core, topology
from hocket.training import TrainingRun, train
from hocket.workload.accelerators import Accelerator
from hocket_studies.themis import BASELINE, IDEAL, NETWORKS, OPTIMAL

__all__ = ["CURRENT", "FIGURES", "SETUPS", "Cell", "Setup", "TrainingFigures", "reproduce_training"]

FIGURES = (4, 12)
CURRENT = "current"
"""The system of today in figure 4: the network of two dimensions, the second of 100 Gb/s."""
_CURRENT_RATE = 100 * 10**9 // 8
ITERATIONS = 3
UTILIZATIONS = tuple(share / 100 for share in range(10, 101, 5))
THEMIS = "themis"
OnCase = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Setup:
    """The training of a model.

    Attributes
    ----------
    parallel, samples
        How it is spread, and samples of a replica.
    peaks
        In shares of an A100's peak: see above.
    recompute
        Whether forward passes are computed again.
    in_figure_4
        Whether that figure has it.
    """

    parallel: str
    samples: int
    peaks: float
    recompute: bool = False
    in_figure_4: bool = True


SETUPS = {
    "resnet152": Setup("dp=1024", 32, 21.0),
    "gnmt": Setup("dp=1024", 128, 5.5),
    "dlrm": Setup("dp=1024", 512, 0.6, in_figure_4=False),
    "transformer-1t": Setup("dp=8,tp=128,zero=2", 16, 1.0, recompute=True),
}
"""Models of section 5.2."""


@dataclass(frozen=True)
class Cell:
    """A model on a network by an algorithm: times of all iterations, in ps."""

    workload: str
    network: str
    algorithm: str
    time_ps: int
    forward_ps: float
    backward_ps: float
    exposed_ps: dict[str, float]

    @property
    def communication_ps(self) -> float:
        """All that is exposed."""
        return sum(self.exposed_ps.values())


@dataclass(frozen=True)
class TrainingFigures:
    """The results that figures 4 and 12 show."""

    algorithms: tuple[str, ...]
    cells: tuple[Cell, ...]

    @cached_property
    def _by_key(self) -> dict[tuple[str, str, str], Cell]:
        return {(each.workload, each.network, each.algorithm): each for each in self.cells}

    def cell(self, workload: str, network: str, algorithm: str) -> Cell:
        """Return one of them."""
        return self._by_key[workload, network, algorithm]

    def speedups(self, workload: str, algorithm: str) -> dict[str, float]:
        """Baseline's time / time, by network."""
        found = {}
        for network in NETWORKS:
            base = self.cell(workload, network, BASELINE)
            found[network] = base.time_ps / self.cell(workload, network, algorithm).time_ps
        return found

    def mean_speedup(self, workload: str, algorithm: str) -> float:
        """Over networks."""
        return mean(self.speedups(workload, algorithm).values())

    def max_speedup(self, workload: str, algorithm: str) -> float:
        """Over networks."""
        return max(self.speedups(workload, algorithm).values())

    def exposed_reduction(self, algorithm: str) -> float:
        """Baseline's exposed communication / an algorithm's, the mean over models and networks."""
        ratios = [
            self.cell(workload, network, BASELINE).communication_ps
            / self.cell(workload, network, algorithm).communication_ps
            for workload in SETUPS
            for network in NETWORKS
        ]
        return mean(ratios)

    def utilization(self, workload: str, network: str, algorithm: str = BASELINE) -> float:
        """Bandwidth used of that of the dimensions that communicate, while compute waits; 0 to 1."""
        ideal = self.cell(workload, network, IDEAL).communication_ps
        return ideal / self.cell(workload, network, algorithm).communication_ps

    def runtime_ps(self, workload: str, network: str, utilization: float) -> float:
        """Time of the iterations if so much of the bandwidth were used; figure 4's lines."""
        ideal = self.cell(workload, network, IDEAL)
        return ideal.time_ps - ideal.communication_ps * (1 - 1 / utilization)


def networks() -> dict[str, _core.Topology]:
    """Table 2's networks and the current system."""
    found = {name: topology.load(name) for name in NETWORKS}
    first, second = found["themis-2d"].dimensions
    kind, size, _, latency, offload = second
    dimensions = [first, (kind, size, _CURRENT_RATE, latency, offload)]
    today = _core.build_product(dimensions).with_switching(found["themis-2d"].switching)
    return {CURRENT: today, **found}


def reproduce_training(
    figures: Sequence[int] = FIGURES,
    *,
    optimal: bool = True,
    on_case: OnCase | None = None,
) -> TrainingFigures:
    """Compute what figures 4 and 12 of Themis show.

    Parameters
    ----------
    figures
        Which.
    optimal
        Whether to add ``multirail-optimal``, which takes nearly all of the time.
    on_case
        Called before each training.
    """
    algorithms = (BASELINE, THEMIS, *([OPTIMAL] if optimal else []), IDEAL)
    loaded = networks()
    cases = [
        (workload, network, algorithm)
        for workload, setup in SETUPS.items()
        for network in loaded
        for algorithm in algorithms
        if (network != CURRENT or (4 in figures and setup.in_figure_4))
        and (12 in figures or (setup.in_figure_4 and algorithm in (BASELINE, IDEAL)))
    ]
    cells = []
    for i, (workload, network, algorithm) in enumerate(cases):
        if on_case is not None:
            on_case(f"{workload}, {network}, {algorithm}", i, len(cases))
        cells.append(_cell(workload, network, algorithm, loaded[network]))
    return TrainingFigures(algorithms, tuple(cells))


def _cell(workload: str, network: str, algorithm: str, on: _core.Topology) -> Cell:
    setup = SETUPS[workload]
    run = trained(workload, on, algorithm, setup.peaks)
    where = run.breakdown
    exposed = {cause: time for cause, time in where.exposed.items() if time}
    return Cell(workload, network, algorithm, run.total_ps, where.forward, where.backward, exposed)


def trained(workload: str, on: _core.Topology, algorithm: str, peaks: float) -> TrainingRun:
    """Train a model as section 5.2 has it."""
    setup = SETUPS[workload]
    return train(
        workload,
        on,
        parallel=setup.parallel,
        algorithm=algorithm,
        samples=setup.samples,
        iterations=ITERATIONS,
        npu=Accelerator("a100", f"{312 * peaks:g} TFLOP/s"),
        bucket=None,
        recompute=setup.recompute,
        overlap_tensor=False,
        update=False,
        memory_check=False,
    )
