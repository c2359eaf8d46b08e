"""The law: how long an iteration takes on a real machine, from few constants.

With T tokens of a micro-batch on an NPU, h numbers a token, s tokens a sequence, a heads, b bytes a number:

=============  =================================================================================
products       2 m n k / (peak x efficiency) x (1 + depth / k) x (1 + wave / (m n)) for each product of
               m x k by k x n, forward once and backward twice; a wave is what all cores compute at once,
               in tiles of 128 x 256
attention      4 T s h / (peak x attention), where it is fused; else two products a head, and
               scores x a s T b / memory bandwidth
memory         passes x T h b / memory bandwidth: norms, sums, dropout and activation functions
launch         for each layer and pass
tensor         4 passes of a ring over T h b in each direction, 2 more where all is computed again
context        keys and values, gathered forward, gathered and scattered backward
stages         (M + (pp - 1) / interleave) micro-batches; the head belongs to the last stage
data           gradients, twice around the ring of replicas; ZeRO-3: weights twice, gradients once,
               each beside the computation of a layer: sqrt(compute^2 + gather^2)
update         24 bytes a weight
=============  =================================================================================

``efficiency`` is a product of parts of the accelerator at a precision, the program, and both; ``attention``
of parts of the kernel on the accelerator and of the program there; ``passes``, ``scores``, ``launch`` and
``exposed`` have a part of the program. ``depth`` is the same for all.

Source: Narayanan et al. 2021 (operations, pipelines, sums), Korthikanti et al. 2022 (recomputation,
sequence parallelism), Rajbhandari et al. 2020 (ZeRO); the form of the efficiency of products and the
constants from published runs. docs/throughput.md has the errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, hypot

from hocket.fitting.constants import Constant
from hocket.throughput.job import PRECISIONS, Job
from hocket.throughput.machine import Machine
from hocket.throughput.stack import Stack

_TILE = 128 * 256
"""Numbers of the result that a core computes at a time."""
_BYTES = 2
_WHOLE = 0.45
"""Share of memory passes that tensor parallelism does not cut: of 22 reads and writes of a token's numbers
in a layer 10 are of norms, dropout and sums (4 and 6), 12 of activation functions and heads (8 and 4)."""
_UPDATE = 24
"""Bytes that Adam moves for a weight: read and write of weight, mean and variance in 32 bits."""


CONSTANTS = {
    "efficiency": Constant(0.65, 0.3, "", "share of the peak of large products"),
    "depth": Constant(300.0, 0.1, "", "depth that costs as much again"),
    "attention": Constant(0.5, 0.5, "", "share of the peak of fused attention"),
    "passes": Constant(20.0, 0.6, "", "passes over a token's numbers in a layer"),
    "scores": Constant(5.0, 0.6, "", "passes over scores that are not fused"),
    "launch": Constant(1.2e-5, 0.1, "s", "launching a layer's pass"),
    "exposed": Constant(0.5, 0.5, "", "share of sums of gradients that does not hide"),
}
"""By name, with their priors."""


@dataclass(frozen=True)
class _Pass:
    """The time of each layer in one pass over a micro-batch [s]."""

    products: float
    attention: float
    memory: float
    launch: float

    @property
    def total(self) -> float:
        return self.products + self.attention + self.memory + self.launch


class _Law:
    """One job on one machine; all times in seconds."""

    def __init__(
        self, job: Job, machine: Machine, stack: Stack, values: Mapping[str, float]
    ) -> None:
        self.job, self.machine, self.stack, self.values = job, machine, stack, values
        self.spread, self.model = job.parallel, job.model
        self.tokens = job.micro_batch * job.model.sequence / self.spread.cp
        self.peak = machine.peak * machine.power
        self.rate = self.peak * PRECISIONS[job.precision] * values["efficiency"]
        self.memory_rate = machine.memory_bandwidth * machine.power
        self.wave = machine.cores * _TILE

    def product(self, rows: float, columns: float, depth: float) -> float:
        """Time of a product of rows x depth by depth x columns."""
        waste = (1 + self.values["depth"] / depth) * (1 + self.wave / (rows * columns))
        return 2 * rows * columns * depth * waste / self.rate

    def both_ways(self, columns: float, depth: float) -> tuple[float, float]:
        """Time of a product of all tokens, forward, and of both gradients."""
        tokens = self.tokens
        back = self.product(tokens, depth, columns) + self.product(columns, depth, tokens)
        return self.product(tokens, columns, depth), back

    def products(self) -> tuple[float, float]:
        """Time of the products of a layer, forward and backward."""
        hidden, inner, tp = self.model.hidden, self.job.feed_forward, self.spread.tp
        shapes = (
            ((hidden + 2 * self.job.keys) / tp, hidden),
            (hidden, hidden / tp),
            ((2 if self.model.gated else 1) * inner / tp, hidden),
            (hidden, inner / tp),
        )
        times = [self.both_ways(columns, depth) for columns, depth in shapes]
        return sum(each[0] for each in times), sum(each[1] for each in times)

    def attention(self) -> float:
        """Time of a layer's attention, forward; backward takes twice that."""
        model, tp = self.model, self.spread.tp
        flops = 4 * self.tokens * model.sequence * model.hidden / tp
        if self.stack.fused:
            return flops / (self.peak * self.values["attention"])
        scores = model.heads / tp * model.sequence * self.tokens
        moved = self.values["scores"] * scores * _BYTES
        return flops / self.rate + moved / self.memory_rate

    def memory(self) -> float:
        """Time of what only moves a layer's numbers, forward."""
        tp = self.spread.tp
        whole = _WHOLE / (tp if self.job.sequence_parallel else 1)
        moved = self.values["passes"] * self.tokens * self.model.hidden * _BYTES
        return moved * (whole + (1 - _WHOLE) / tp) / self.memory_rate

    def passes(self) -> tuple[_Pass, _Pass]:
        """Time of a layer for a micro-batch, forward and backward with what is computed again."""
        forward, backward = self.products()
        attention, memory = self.attention(), self.memory()
        launch = self.values["launch"]
        first = _Pass(forward, attention, memory, launch)
        again = self.job.recompute
        full = again == "full"
        last = _Pass(
            backward + full * forward,
            attention * (2 + (again != "none")),
            memory * (2 + full),
            launch * (2 + full),
        )
        return first, last

    def tensor(self) -> float:
        """Time of a layer's sums over the tensor-parallel group for a micro-batch."""
        tp, node = self.spread.tp, self.machine.hardware.npus
        size = self.tokens * self.model.hidden * _BYTES
        sums = 2 + 2 * (self.job.recompute == "full") + 2 * (not self.stack.hides_tensor)
        return sums * 2 * self.machine.pass_s(size, tp, min(tp, node))

    def context(self, attention: float) -> float:
        """Time that a layer waits for keys and values of the rest of its sequences."""
        cp = self.spread.cp
        if cp == 1:
            return 0.0
        near = max(1, self.machine.hardware.npus // self.spread.tp)
        size = self.tokens * cp * 2 * self.job.keys / self.spread.tp * _BYTES
        share = min(self.spread.tp, self.machine.hardware.npus)
        took = 3 * self.machine.pass_s(size, cp, min(near, cp), share)
        return hypot(took, attention) - attention

    def head(self) -> float:
        """Time of the scores of all words for a micro-batch, both ways."""
        if not (self.model.vocabulary and self.model.head):
            return 0.0
        words = self.model.vocabulary / self.spread.tp
        return sum(self.both_ways(words, self.model.hidden))

    def transfer(self) -> float:
        """Time in which stages pass a micro-batch on, both directions at once."""
        spread, hardware = self.spread, self.machine.hardware
        if spread.pp == 1:
            return 0.0
        size = self.tokens * self.model.hidden * _BYTES * spread.interleave
        size /= spread.tp if self.stack.scatters else 1
        if spread.npus <= hardware.npus:
            return size / (hardware.bandwidth * self.machine.inside)
        return size * hardware.npus / (hardware.nic_bandwidth * self.machine.nic)

    def weights(self) -> tuple[float, float]:
        """Weights of an NPU's stage, and of its embedding; both cut by tensor parallelism."""
        tp = self.spread.tp
        layers = self.model.layers / self.spread.pp * self.job.layer_parameters
        return layers / tp, self.model.vocabulary * self.model.hidden / tp

    def replicas(self) -> tuple[int, int, int]:
        """NPUs that sum gradients, how many of them a node has, and groups that share its NICs."""
        node = self.machine.hardware.npus
        size = self.spread.dp * self.spread.cp
        near = max(1, node // self.spread.tp)
        return size, min(near, size), min(self.spread.tp, node)

    def data(self) -> float:
        """Time of the sums of gradients that computation does not hide."""
        size = sum(self.weights()) * self.stack.gradient_bytes
        took = 2 * self.machine.pass_s(size, *self.replicas())
        hides = self.stack.hides_data and self.spread.tp == 1
        return took * (min(self.values["exposed"], 1.0) if hides else 1.0)

    def update(self) -> float:
        """Time in which weights are updated."""
        weights = sum(self.weights())
        parts = self.spread.dp * self.spread.cp if self.spread.zero else 1
        return _UPDATE * weights / parts / self.memory_rate

    def sharded(self) -> dict[str, float]:
        """Parts of an iteration with ZeRO-3: weights are gathered layer by layer."""
        forward, backward = self.passes()
        size, near, share = self.replicas()
        tensor = self.tensor()
        tp = self.spread.tp
        gather = self.machine.pass_s(self.job.layer_parameters / tp * _BYTES, size, near, share)
        waits = gather * 3
        if self.stack.hides_gathers:
            waits = hypot(forward.total, gather) - forward.total
            waits += hypot(backward.total, 2 * gather) - backward.total
        embedding = self.model.vocabulary * self.model.hidden / tp * _BYTES
        ends = 3 * self.machine.pass_s(embedding, size, near, share)
        times = self.job.micro_batches
        each = times * self.model.layers
        return {
            "products": each * (forward.products + backward.products),
            "attention": each * (forward.attention + backward.attention),
            "memory": each * (forward.memory + backward.memory),
            "launch": each * (forward.launch + backward.launch),
            "head": times * self.head(),
            "tensor": each * tensor,
            "data": each * waits + times * ends,
            "context": each * self.context(forward.attention + backward.attention),
            "update": self.update(),
        }

    def piped(self) -> dict[str, float]:
        """Parts of an iteration in stages; those of the slowest stage, and what it waits."""
        forward, backward = self.passes()
        spread, times = self.spread, self.job.micro_batches
        tensor = self.tensor()
        context = self.context(forward.attention + backward.attention)
        layer = forward.total + backward.total + tensor + context
        head, transfer = self.head(), self.transfer()
        # Where layers do not divide among the stages, the last has fewer, and time for the head.
        most = ceil(self.model.layers / spread.pp)
        spare = min(1, most * spread.pp - self.model.layers) * layer
        late = max(0.0, head - spare)
        fill = (spread.pp - 1) / spread.interleave
        each = times * most
        return {
            "products": each * (forward.products + backward.products),
            "attention": each * (forward.attention + backward.attention),
            "memory": each * (forward.memory + backward.memory),
            "launch": each * (forward.launch + backward.launch),
            "head": times * (head if spread.pp == 1 else late),
            "tensor": each * tensor,
            "context": each * context,
            "transfer": times * transfer,
            "bubble": fill * (self.model.layers / spread.pp * layer + transfer),
            "data": self.data(),
            "update": self.update(),
        }


def parts_of(
    job: Job, machine: Machine, stack: Stack, values: Mapping[str, float]
) -> dict[str, float]:
    """Return what an iteration consists of [s]; the sum of all is its time.

    Parameters
    ----------
    job
        What is trained.
    machine
        On what.
    stack
        By which program.
    values
        Constants by name, as in :data:`CONSTANTS`.
    """
    law = _Law(job, machine, stack, values)
    return law.sharded() if job.parallel.zero == 3 else law.piped()


def iteration_s(job: Job, machine: Machine, stack: Stack, values: Mapping[str, float]) -> float:
    """Return how long an iteration takes [s]; parameters as of :func:`parts_of`."""
    return sum(parts_of(job, machine, stack, values).values())
