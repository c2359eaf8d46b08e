"""Training jobs: what each exchanges and how long it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from hocket import _core
from hocket._checks import did_you_mean, instance_of, one_of, share_of_peak, whole
from hocket._core import Topology
from hocket.cluster.models import MODELS, Model, model
from hocket.collectives.collective import collective_on
from hocket.errors import SpecError
from hocket.training.alone import Alone, alone
from hocket.units import parse_count, parse_operations, parse_time, shown
from hocket.workload import load
from hocket.workload.accelerators import Accelerator
from hocket.workload.layers import Workload

if TYPE_CHECKING:
    from hocket.plans.plan import Plan

POLICIES = ("random", "random-tors", "packed", "best-fit")
"""Names that a job takes as ``placement``; docs/jobs.md says what each does."""
ROUNDS = ("data", "lock-step")
"""What a step waits for: its inputs, or all flows of the step before in its ring."""
MAX_GPUS = 1 << 24
"""GPUs of a job, at most."""
MAX_ITERATIONS = 10**6
"""Of a job, at most."""
_PAPER_RATE = 312 * 10**12
_PAPER_SHARE = 10**9
_SECOND = 10**12
_LONGEST_TIME = 1 << 63


class _Way(NamedTuple):
    """The plan of an all-reduce: a hocket algorithm, and the network of ranks that it runs on."""

    algorithm: str
    network: Callable[[int, Sequence[int]], Topology]
    axes: range | None = None


_RATE, _DELAY = 12_500_000_000, 0
"""Of the links between ranks: alike, so that the plan is that of equal ranks."""
_LINK = {"bandwidth": _RATE, "latency": _DELAY}


def _all_to_all(ranks: int, _: Sequence[int]) -> Topology:
    return _core.families.build("fully_connected", {"npus": ranks, **_LINK})


def _rings(_: int, grid: Sequence[int]) -> Topology:
    return _core.build_product([("Ring", size, _RATE, _DELAY) for size in grid])


def _groups(_: int, grid: Sequence[int]) -> Topology:
    return _core.build_product([("FullyConnected", size, _RATE, _DELAY) for size in grid])


def _torus(_: int, grid: Sequence[int]) -> Topology:
    return _core.families.build("torus", {"size": list(grid), **_LINK})


_WAYS = {
    "ring": _Way("ring", _all_to_all),
    "bidirectional-ring": _Way("bidirectional-ring", _all_to_all),
    "tree": _Way("double-binary-tree", _all_to_all),
    "double-binary-tree": _Way("double-binary-tree", _all_to_all),
    "halving-doubling": _Way("halving-doubling", _all_to_all),
    "direct": _Way("direct", _all_to_all),
    "hierarchical-ring": _Way("hierarchical", _rings, range(2, 33)),
    "hierarchical": _Way("hierarchical", _groups, range(2, 33)),
    "ring-2d": _Way("ring-2d", _torus, range(2, 3)),
}
COLLECTIVES = tuple(_WAYS)
"""Names that a job takes as ``collective``."""


@dataclass(frozen=True)
class Compute:
    """The time that an iteration computes, by its operations: 6 for each parameter and token.

    Attributes
    ----------
    tokens_per_iteration
        Over all replicas. Default: the batch that the model was published with.
    peak
        Of a GPU; that of an A100 by default.
    efficiency
        Share of the peak that is reached while the pipeline is full. BLOOM's training reached 156 of
        312 TFLOP/s.
    micro_batches
        Into how many parts a replica cuts its share of the batch to keep the pipeline full. A pipeline of p
        stages idles for p - 1 of them. Default: 4 for each stage.

    References
    ----------
    Kaplan et al.: Scaling laws for neural language models, 2020, section 2.1: 6 operations.
    Le Scao et al.: BLOOM, 2022, section 3.4: 156 TFLOP/s.
    Huang et al.: GPipe, 2019, section 2.3: the idle share, and 4 micro-batches for each stage.
    """

    tokens_per_iteration: int | float | str | None = None
    peak: str = "312 TFLOP/s"
    efficiency: float = 0.5
    micro_batches: int | None = None

    def __post_init__(self) -> None:
        if self.tokens_per_iteration is not None:
            parse_count(self.tokens_per_iteration, field="tokens_per_iteration")
        parse_operations(self.peak, field="peak")
        share_of_peak("efficiency", self.efficiency)
        if self.micro_batches is not None:
            whole("micro_batches", self.micro_batches, 1, MAX_GPUS)

    def time_ps(self, parameters: int, tokens: int, gpus: int, pipeline: int) -> int:
        """Return the time of an iteration [ps], rounded up.

        Parameters
        ----------
        parameters, tokens
            Of the model, and of the iteration.
        gpus, pipeline
            Of the job: all GPUs, and stages.
        """
        rate = parse_operations(self.peak, field="peak") * Fraction(str(self.efficiency))
        parts = 4 * pipeline if self.micro_batches is None else self.micro_batches
        idle = Fraction(pipeline - 1, parts)
        return _ceil(6 * parameters * tokens * _SECOND / (gpus * rate) * (1 + idle))


@dataclass(frozen=True)
class Job:
    """A model that is trained by 3D parallelism.

    A replica of the model is cut over ``tensor * pipeline`` GPUs, and there are ``data`` replicas. After
    each iteration, GPU i of every replica all-reduces its part of the gradients with GPU i of the others:
    these GPUs are ring i. ``hk.routing`` lists the names of models, policies and collectives in ``MODELS``,
    ``POLICIES`` and ``COLLECTIVES``.

    Attributes
    ----------
    name
        What it is called; no two jobs of a list share one.
    model
        A model that says parameters, tensor, pipeline and training_tokens.
    parameters
        Of the model, such as 13e9.
    tensor
        Parts of each layer. Default: what the model says, or 1.
    pipeline
        Pipeline stages. Default: what the model says, or 1.
    training_tokens
        Of the whole training, for compute: ``paper``.
    data
        Copies of the model.
    iterations
        How many are trained.
    arrival
        When it starts, such as ``2 s``.
    compute
        Time of an iteration: measured, such as ``1.2 s``; by its operations (:class:`Compute`); or
        ``paper``: 6 operations for each parameter and token of the *whole* training at 312 TFLOP/s, divided
        by 10^9, as the released study of Cohen et al. has it.
    placement
        Policy that chooses its hosts. Default: packed, unless hosts are listed.
    hosts
        Names of its hosts, in order, instead of a placement.
    collective
        How a ring all-reduces.
    grid
        Sizes of the grid of ranks, for hierarchical ones and ``ring-2d``; their product is data.
    rounds
        Whether a step starts when its inputs are there (``data``), or when all flows of the step before in
        its ring are (``lock-step``).
    bytes_per_parameter
        Of the gradient of a parameter.
    workload
        Instead of a model: a shipped workload, a file, or a :class:`hocket.Workload`. Its layers say what
        gradients there are and, unless that is measured, how long an iteration computes.
    npu
        Accelerator that trains a workload. Default: a100.
    samples
        Of each replica in an iteration of a workload. Default: 32.
    efficiency
        Share of the accelerator's peak that a workload reaches. Default: 1.
    precision
        Bits of a workload's weights and gradients. Default: 16.
    micro_batches
        Of a replica of a workload. Default: 4 for each pipeline stage.
    origin
        Where it was read, for messages.

    References
    ----------
    Cohen et al.: Routing for large ML models, section 5.
    """

    name: str
    model: str | None = None
    parameters: int | float | str | None = None
    tensor: int | None = None
    pipeline: int | None = None
    training_tokens: int | float | str | None = None
    data: int = 1
    iterations: int = 10
    arrival: str = "0 s"
    compute: Compute | str = Compute()
    placement: str | None = None
    hosts: Sequence[str] | None = None
    collective: str = "ring"
    grid: Sequence[int] | None = None
    rounds: str = "data"
    bytes_per_parameter: int = 4
    workload: Workload | str | None = None
    npu: Accelerator | str | None = None
    samples: int | None = None
    efficiency: float | None = None
    precision: int | None = None
    micro_batches: int | None = None
    origin: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        instance_of(str, "origin", self.origin, "say where the job was read, or nothing")
        try:
            self._check()
        except SpecError as error:
            raise self.wrong(error) from None

    @property
    def gpus_per_replica(self) -> int:
        """GPUs that hold a replica of the model."""
        return (self.tensor or 1) * (self.pipeline or 1)

    @property
    def gpus(self) -> int:
        """GPUs of all replicas."""
        return self.gpus_per_replica * self.data

    @property
    def gradient_bytes(self) -> int:
        """Bytes of the gradients that a GPU holds, rounded up: what a ring all-reduces.

        Of a workload's pipeline, those of the stage that has most.
        """
        if self.workload is not None:
            return self._alone().gradient_bytes
        return -(-self.bytes_per_parameter * self._parameters // self.gpus_per_replica)

    @property
    def arrival_ps(self) -> int:
        """When it starts [ps]."""
        return parse_time(self.arrival, field="arrival")

    @property
    def compute_ps(self) -> int:
        """Time that an iteration computes before it all-reduces [ps], rounded up."""
        if isinstance(self.compute, Compute) and self.workload is not None:
            return self._alone().compute_ps
        if isinstance(self.compute, Compute):
            given = (self._parameters, self._batch(), self.gpus, self.pipeline or 1)
            return self.compute.time_ps(*given)
        if self.compute != "paper":
            return parse_time(self.compute, field="compute")
        if self.training_tokens is None:
            raise SpecError(
                "training_tokens",
                "there are none, and compute: paper needs them",
                "give them or a model",
            )
        tokens = parse_count(self.training_tokens, field="training_tokens")
        work = 6 * self._parameters * tokens * _SECOND
        return _ceil(Fraction(work, _PAPER_RATE * _PAPER_SHARE))

    @property
    def algorithm(self) -> str:
        """The algorithm of :func:`hocket.plan` that its collective is."""
        return _WAYS[self.collective].algorithm

    def all_reduce(self) -> Plan | None:
        """Plan what a ring does after each iteration; None where there is one replica only.

        The plan is for ranks, which are replicas: NPU k of it is that GPU of the ring that belongs to
        replica k. Its network is that of equal ranks and says nothing of the fabric.

        Raises
        ------
        SpecError
            With the job's name: when there are too many replicas, or too few bytes for them.
        """
        from hocket.plans.planner import make
        from hocket.plans.synthesis import PlanOptions

        if self.data == 1:
            return None
        try:
            network = _WAYS[self.collective].network(self.data, self.grid or ())
            collective = collective_on("all-reduce", network, self.gradient_bytes)
            return make(collective, network, self.algorithm, PlanOptions())
        except SpecError as error:
            raise self.wrong(error) from None

    def wrong(self, error: SpecError) -> SpecError:
        """Make an error one about this job, which says where the job was read."""
        where = f"{self.origin}: " if self.origin else ""
        return error.but(origin=f"{where}job {shown(self.name)}")

    def _alone(self) -> Alone:
        """Train a replica of the workload, without any communication."""
        assert isinstance(self.workload, Workload)
        parallel = f"dp={self.data},tp={self.tensor},pp={self.pipeline}"
        if self.micro_batches is not None:
            parallel += f",micro-batches={self.micro_batches}"
        try:
            return alone(
                self.workload,
                parallel,
                self.npu or "a100",
                32 if self.samples is None else self.samples,
                self.efficiency,
                16 if self.precision is None else self.precision,
            )
        except SpecError as error:
            raise _in_words_of_a_job(error) from None

    @property
    def _parameters(self) -> int:
        return parse_count(self.parameters, field="parameters")

    def _batch(self) -> int:
        tokens = self.compute.tokens_per_iteration if isinstance(self.compute, Compute) else None
        if tokens is not None:
            return parse_count(tokens, field="tokens_per_iteration")
        if self.model is None:
            raise SpecError(
                "compute",
                "there are no tokens_per_iteration, and no model that says them",
                "give them, or a time such as '1.2 s'",
            )
        return model(self.model).batch_tokens

    def _check(self) -> None:
        _check_name(self.name)
        self._check_workload()
        self._fill(None if self.model is None else model(self.model))
        for name, most in _COUNTS.items():
            whole(name, getattr(self, name), 1, most)
        if self.gpus > MAX_GPUS:
            raise SpecError(
                "data",
                f"{self.data} replicas of {self.gpus_per_replica} GPUs are {self.gpus}",
                f"make it at most {MAX_GPUS}",
            )
        parse_time(self.arrival, field="arrival")
        self._check_compute()
        self._check_placement()
        self._check_collective()

    def _check_workload(self) -> None:
        """Load the workload; refuse what goes with none, or with the other ways to name a model."""
        if self.workload is None:
            for name in OF_WORKLOAD:
                if getattr(self, name) is not None:
                    raise SpecError(str(name), "is of a workload", f"name one, or leave {name} out")
            return
        for name in ("model", "training_tokens"):
            if getattr(self, name) is not None:
                raise SpecError(str(name), "there is a workload", "leave one of them out")
        if self.bytes_per_parameter != Job.bytes_per_parameter:
            raise SpecError(
                "bytes_per_parameter", "of a workload it is precision, in bits", "give that"
            )
        is_time = isinstance(self.compute, str) and self.compute != "paper"
        if not is_time and self.compute != Compute():
            raise SpecError(
                "compute",
                "the workload's layers say it",
                "leave it out, or give a time such as '1.2 s'",
            )
        given: object = self.workload
        if not isinstance(given, Workload | str):
            raise SpecError(
                "workload", f"{shown(given)} is not a name", "give one such as resnet152"
            )
        try:
            loaded = given if isinstance(given, Workload) else load(given)
        except SpecError as error:
            raise SpecError("workload", str(error)) from None
        if self.parameters not in (None, loaded.parameters):
            raise SpecError("parameters", "the workload says them", "leave one of them out")
        object.__setattr__(self, "workload", loaded)
        self._check_knobs()

    def _check_knobs(self) -> None:
        for name in ("samples", "precision", "micro_batches"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 1, MAX_GPUS)
        if self.efficiency is not None:
            share_of_peak("efficiency", self.efficiency)
        if not isinstance(self.npu, Accelerator | str | None):
            raise SpecError("npu", f"{shown(self.npu)} is not a name", "give one such as a100")

    def _fill(self, known: Model | None) -> None:
        """Take from the model what is left out."""
        if isinstance(self.workload, Workload):
            object.__setattr__(self, "parameters", self.workload.parameters)
        if known is None and self.parameters is None:
            raise SpecError(
                "model",
                "there is none",
                f"give one of {', '.join(MODELS)}, or parameters, or a workload",
            )
        if self.parameters is not None and known is not None:
            given = parse_count(self.parameters, field="parameters")
            if given != known.parameters:
                raise SpecError(
                    "parameters",
                    f"{known.name} has {known.parameters:.3g}, not {given:.3g}",
                    "leave them out, or the model",
                )
        values = {
            "parameters": None if known is None else known.parameters,
            "tensor": 1 if known is None else known.tensor,
            "pipeline": 1 if known is None else known.pipeline,
            "training_tokens": None if known is None else known.training_tokens,
        }
        for name, value in values.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name in ("parameters", "training_tokens"):
            if getattr(self, name) is not None and self.workload is None:
                object.__setattr__(self, name, parse_count(getattr(self, name), field=name))

    def _check_compute(self) -> None:
        if not isinstance(self.compute, Compute | str):
            raise SpecError(
                "compute",
                f"{shown(self.compute)} is not valid",
                "give 'paper', a time such as '1.2 s' or a Compute",
            )
        if self.workload is not None:
            self._alone()
        if self.compute_ps >= _LONGEST_TIME:
            raise SpecError("compute", "takes more than 100 days", "make the job smaller or faster")

    def _check_placement(self) -> None:
        if self.hosts is None:
            is_known = isinstance(self.placement, str) and self.placement in POLICIES
            if self.placement is not None and not is_known:
                known = f"policies are {', '.join(POLICIES)}, or list hosts"
                hint = did_you_mean(str(self.placement)[:99], POLICIES, known)
                raise SpecError("placement", f"there is no {shown(self.placement)}", hint)
            return
        if self.placement is not None:
            raise SpecError("placement", "hosts are listed", "leave one of them out")
        names: object = self.hosts
        right = "write it as [host0, host3]"
        is_list = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        if not is_list or not self.hosts:
            raise SpecError("hosts", f"{shown(names)} is not a list of names", right)
        object.__setattr__(self, "hosts", tuple(self.hosts))
        for i, name in enumerate(self.hosts):
            if name in self.hosts[:i]:
                raise SpecError("hosts", f"{shown(name)} is listed twice", "list each host once")

    def _check_collective(self) -> None:
        one_of("rounds", self.rounds, ROUNDS)
        one_of("collective", self.collective, COLLECTIVES)
        axes = _WAYS[self.collective].axes
        if self.collective == "bidirectional-ring" and self.data == 2:
            raise SpecError("collective", "two ranks have one ring, whichever way", "use ring")
        if axes is None:
            if self.grid is not None:
                raise SpecError("grid", f"{self.collective} has none", "leave it out")
            return
        given: object = self.grid
        many = f"{axes.start} sizes" if len(axes) == 1 else f"{axes.start} sizes or more"
        right = f"give {self.collective} {many}, each 2 or more, whose product is data, {self.data}"
        if not isinstance(given, list | tuple) or len(given) not in axes:
            what = "there is none" if given is None else f"{shown(given)} is not valid"
            raise SpecError("grid", str(what), right)
        sizes = tuple(whole("grid", size, 2, MAX_GPUS) for size in given)
        if prod(sizes) != self.data:
            raise SpecError("grid", f"{shown(list(sizes))} is {prod(sizes)} ranks", right)
        object.__setattr__(self, "grid", sizes)


@dataclass(frozen=True)
class JobList:
    """Jobs that share a fabric, as a file lists them.

    Attributes
    ----------
    jobs
        In the order of the file.
    seed
        Of random placements.
    """

    jobs: tuple[Job, ...]
    seed: int = 0

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)


OF_WORKLOAD = ("npu", "samples", "efficiency", "precision", "micro_batches")
"""What a job says only of a workload."""


def _in_words_of_a_job(error: SpecError) -> SpecError:
    """Name what was wrong as a job does."""
    names = {
        "precision_bits": "precision",
        "parallel: micro-batches": "micro_batches",
    }
    field = error.field
    return error.but(field=field and names.get(field, field))


_COUNTS = {
    "data": MAX_GPUS,
    "tensor": MAX_GPUS,
    "pipeline": MAX_GPUS,
    "iterations": MAX_ITERATIONS,
    "bytes_per_parameter": 64,
}


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= 200 or not name.isprintable():
        raise SpecError("name", f"{shown(name)} is not a name", "give up to 200 letters")


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
