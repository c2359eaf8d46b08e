"""A training run by its sizes: the model, how it is spread, and what a batch is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hocket._checks import instance_of, one_of, truth, whole
from hocket.errors import SpecError
from hocket.training.parallel import Parallel
from hocket.workload.transformers import Transformer

RECOMPUTE = ("none", "selective", "full")
"""What the backward pass computes again: nothing, the scores of attention, or the whole forward pass."""
PRECISIONS = {"16-bit": 1.0, "8-bit": 2.0, "4-bit": 4.0}
"""Of the numbers that are multiplied, and how many times the peak of 16 bits such a product has."""
USUAL = "16-bit"
"""Precision of most products."""
_MOST = 1 << 24
_PARTS = (1, 2, 4, 8, 16)
"""Sequences of a micro-batch that are tried where nobody says how many there are."""
_ENDS = 2
"""Groups of layers of a pipeline that an embedding and a head may be instead."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training run.

    Attributes
    ----------
    model
        What is trained.
    parallel
        How it is spread over NPUs: ``dp``, ``tp``, ``pp``, ``cp``, ``interleave`` and ``zero``.
    batch
        Sequences of an iteration, of all replicas together.
    micro_batch
        Sequences that a replica computes at a time.
    recompute
        ``"none"``, ``"selective"`` or ``"full"``.
    sequence_parallel
        Whether what tensor parallelism does not cut is cut along the sequence.
    precision
        Of products: ``"16-bit"``, ``"8-bit"`` or ``"4-bit"``.

    Raises
    ------
    SpecError
        Naming the field that makes no sense, or that does not divide.

    References
    ----------
    Korthikanti et al.: Reducing Activation Recomputation in Large Transformer Models, 2022 (selective
    recomputation, sequence parallelism).
    """

    model: Transformer
    parallel: Parallel
    batch: int
    micro_batch: int = 1
    recompute: str = "none"
    sequence_parallel: bool = False
    precision: str = USUAL

    def __post_init__(self) -> None:
        instance_of(Transformer, "model", self.model, "give sizes, as hocket.workload.Transformer")
        instance_of(Parallel, "parallel", self.parallel, "give sizes, as hocket.Parallel(dp=8)")
        whole("batch", self.batch, 1, _MOST)
        whole("micro_batch", self.micro_batch, 1, _MOST)
        one_of("recompute", self.recompute, RECOMPUTE)
        truth("sequence_parallel", self.sequence_parallel)
        one_of("precision", self.precision, tuple(PRECISIONS))
        self._check_sizes()

    def _check_sizes(self) -> None:
        spread, model = self.parallel, self.model
        if model.experts:
            wrong = "it has experts, which the law does not describe"
            raise SpecError("model", wrong, "name a transformer without experts, as gpt3-175b")
        if spread.ep > 1:
            wrong = f"ep={spread.ep}: the law does not describe expert parallelism"
            raise SpecError("parallel", wrong, "leave ep out")
        if spread.micro_batches is not None:
            wrong = f"micro-batches={spread.micro_batches} is not how a batch is cut here"
            raise SpecError("parallel", wrong, "give the size of a micro-batch instead")
        if self.batch % (spread.dp * self.micro_batch):
            raise SpecError(
                "batch",
                f"{self.batch} sequences do not divide among {spread.dp} replicas in micro-batches "
                f"of {self.micro_batch}",
                f"make it a multiple of {spread.dp * self.micro_batch}",
            )
        if model.heads % spread.tp:
            wrong = f"tp={spread.tp} does not divide {model.heads} heads"
            raise SpecError("parallel", wrong, "give a divisor of heads")
        ends = _ENDS if spread.interleave > 1 else 0
        if spread.pp * spread.interleave > model.layers + ends:
            wrong = f"{model.layers} layers are too few for {spread.pp} stages"
            wrong += f" of {spread.interleave} groups" if spread.interleave > 1 else ""
            raise SpecError("parallel", wrong, "give fewer")
        if model.sequence % spread.cp:
            wrong = f"cp={spread.cp} does not divide a sequence of {model.sequence}"
            raise SpecError("parallel", wrong, "give a divisor of it")
        if spread.zero > 1 and spread.pp > 1:
            wrong = f"zero={spread.zero} with pp={spread.pp}: the law has no such pipelines"
            raise SpecError("parallel", wrong, "give a zero of at most 1, or no pp")

    @property
    def micro_batches(self) -> int:
        """The number of micro-batches that a replica computes in an iteration."""
        return self.batch // (self.parallel.dp * self.micro_batch)

    @property
    def tokens(self) -> int:
        """Tokens of an iteration."""
        return self.batch * self.model.sequence

    @property
    def feed_forward(self) -> int:
        """Numbers inside the feed-forward part."""
        model = self.model
        return 4 * model.hidden if model.feed_forward is None else model.feed_forward

    @property
    def keys(self) -> int:
        """Numbers of a token's keys, or of its values."""
        return self.model.hidden // self.model.heads * (self.model.kv_heads or self.model.heads)

    @property
    def layer_parameters(self) -> int:
        """Weights of a layer's products."""
        model = self.model
        inner = (3 if model.gated else 2) * model.hidden * self.feed_forward
        return model.hidden * (2 * model.hidden + 2 * self.keys) + inner

    @property
    def flops(self) -> float:
        """Operations of an iteration without recomputation, all scores of attention counted.

        Source: Narayanan et al. 2021, equation 3, without its recomputation; general in the sizes.
        """
        model = self.model
        layers = 6 * self.layer_parameters + 12 * model.hidden * model.sequence
        return float(self.tokens * (model.layers * layers + 6 * model.hidden * model.vocabulary))

    @property
    def hardware_flops(self) -> float:
        """The same with what is computed again."""
        model = self.model
        scores = 4 * model.hidden * model.sequence
        again = {
            "none": 0,
            "selective": scores,
            "full": 2 * self.layer_parameters + scores,
        }[self.recompute]
        extra = self.tokens * model.layers * again
        return self.flops + float(extra)

    def with_usual_parts(self) -> Iterator[Job]:
        """Yield the job with each usual size of a micro-batch that divides its batch.

        An interleaved pipeline also needs as many micro-batches as a multiple of its stages.
        """
        spread = self.parallel
        for size in _PARTS:
            if self.batch % (spread.dp * size):
                continue
            made = replace(self, micro_batch=size)
            if size == 1 or spread.interleave == 1 or made.micro_batches % spread.pp == 0:
                yield made
