"""Training iterations, slowly: what docs/training.md says of their order, moment by moment.

Written for nothing but being right. A stage is a worker that goes through a list of what it has to do; a
server passes its calls one after the other. All times and sizes are worked out here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hocket.workload.costs import Block

TERA = 10**12


@dataclass(frozen=True)
class Job:
    """What is trained and how: sizes of parallelism and the knobs of an iteration."""

    stages: Sequence[Sequence[Block]]
    dp: int = 1
    tp: int = 1
    ep: int = 1
    zero: int = 0
    parts: int = 1
    samples: int = 1
    iterations: int = 1
    bits: int = 16
    bucket: int | None = None
    recompute: bool = False
    overlap: bool = True
    bandwidth: int = 10**9
    """Of an NPU's one link to the switch [bytes/s]."""
    memory: int | None = None
    """Bandwidth of the NPU's memory [bytes/s]; None: the update takes no time."""


def up(value: Fraction) -> int:
    """Round up."""
    return -(-value.numerator // value.denominator)


class Moment:
    """Something that happens once; whoever waits for it is told."""

    def __init__(self) -> None:
        self.at: int | None = None


@dataclass
class Call:
    """What a server is to pass on: when all of `after` have happened."""

    after: list[Moment]
    time: int
    urgent: bool
    number: int
    done: Moment
    begun: int | None = None
    ends: int | None = None


@dataclass
class Stage:
    """A worker: its list, how far it is, and its server."""

    place: int
    blocks: Sequence[Block]
    todo: list[tuple[Any, ...]] = field(default_factory=list)
    next: int = 0
    until: int | None = None
    """When the computation that it is at ends."""
    last: list[Moment] = field(default_factory=list)
    """The end of its last computation."""
    carried: list[Moment] = field(default_factory=list)
    """What the next computation waits for."""
    due: list[Moment] = field(default_factory=list)
    """What the update waits for."""
    full: dict[str, int] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    named: dict[Any, list[Moment]] = field(default_factory=dict)
    """What entries of the list leave for later ones."""
    fetched: int = 0
    """How far down its list weights have been asked for."""
    listed: int = 0
    """Iterations that are on its list."""


class Slowly:
    """Runs a job; `end` is when its last call or computation ends."""

    def __init__(self, job: Job) -> None:
        self.job, self.now, self.end, self.numbers = job, 0, 0, 0
        self.samples = Fraction(job.samples, job.parts)
        self.sent: dict[Any, Moment] = {}
        self.stages = [Stage(i, blocks) for i, blocks in enumerate(job.stages)]
        for stage in self.stages:
            for _ in range(job.iterations):
                self._list(stage)
        self._run()

    # Sizes and times.

    def bytes_of(self, numbers: Fraction | int) -> int:
        """At least one."""
        return max(1, up(Fraction(numbers) * self.job.bits / 8))

    def part_of(self, block: Block) -> Fraction:
        """What tensor parallelism leaves an NPU of a layer's work."""
        return Fraction(1, 1 if block.split == "copied" else self.job.tp)

    def held(self, block: Block) -> Fraction:
        """Parameters of a layer that an NPU computes with."""
        dealt = self.job.ep if block.experts else 1
        return Fraction(block.parameters) * self.part_of(block) / dealt

    def sharers(self, block: Block) -> tuple[str, int]:
        """Who sums a layer's gradient: all replicas, or those that have the same experts."""
        if block.experts and self.job.ep > 1:
            return "replicas", self.job.dp // self.job.ep
        return "dp", self.job.dp

    def collective(self, kind: str, npus: int, size: int) -> int:
        """Bytes that an NPU sends, over its link."""
        rounds = 2 if kind == "all-reduce" else 1
        return up(Fraction(size * rounds * (npus - 1), npus) * TERA / self.job.bandwidth)

    def pass_time(self, block: Block, of: str) -> int:
        """Measured times are of a sample."""
        work = {"F": block.forward, "I": block.input_gradient, "W": block.weight_gradient}[of]
        assert work.time_ps is not None
        return up(work.time_ps * self.samples * self.part_of(block))

    # The list of an iteration.

    def _list(self, stage: Stage) -> None:
        parts, behind = self.job.parts, len(self.stages) - 1 - stage.place
        first = min(behind, parts)
        order = ["F"] * first + ["F", "B"] * (parts - first) + ["B"] * first
        done = {"F": 0, "B": 0}
        start = len(stage.todo)
        for way in order:
            (self._forward if way == "F" else self._backward)(stage, done[way])
            done[way] += 1
        stage.todo.append(("update",))
        iteration = stage.listed
        stage.listed += 1
        for i in range(start, len(stage.todo)):
            if stage.todo[i][0] in ("send", "receive"):
                stage.todo[i] = (*stage.todo[i], iteration)

    def _forward(self, stage: Stage, part: int) -> None:
        if stage.place > 0:
            stage.todo.append(("receive", "forward", stage.place - 1, part))
        for i in range(len(stage.blocks)):
            self._layer_forward(stage, i, again=False)
        if stage.place < len(self.stages) - 1:
            stage.todo.append(("send", "forward", stage.place, part))

    def _layer_forward(self, stage: Stage, i: int, *, again: bool) -> None:
        todo, block = stage.todo, stage.blocks[i]
        if not again:
            todo.append(("joined", i))
        todo += [("fetch", i), ("exchange", i), ("compute", i, "F"), ("exchange", i)]
        if block.split == "rows":
            todo.append(("sum", block.outputs))
        if block.is_table and not again:
            todo.append(("table out", i))

    def _backward(self, stage: Stage, part: int) -> None:
        if stage.place < len(self.stages) - 1:
            stage.todo.append(("receive", "backward", stage.place + 1, part))
        for i in reversed(range(len(stage.blocks))):
            if self.job.recompute:
                self._layer_forward(stage, i, again=True)
            self._layer_backward(stage, i, is_last=part == self.job.parts - 1)
        if stage.place > 0:
            stage.todo.append(("send", "backward", stage.place, part))
        stage.todo.append(("flush",))

    def _layer_backward(self, stage: Stage, i: int, *, is_last: bool) -> None:
        todo, block = stage.todo, stage.blocks[i]
        if not self.job.recompute:
            todo.append(("fetch", i))
        todo.append(("exchange", i))
        todo.append(("table back", i))
        collected = block.parameters and (is_last or self.job.zero >= 2)
        of_input = [] if block.is_table else [("compute", i, "I")]
        of_weights: list[tuple[Any, ...]] = [("compute", i, "W")] if block.parameters else []
        of_weights += [("collect", i)] if collected else []
        summed = [("sum", block.inputs)] if block.split == "columns" and of_input else []
        if summed and self.job.tp > 1 and not self.job.overlap:
            todo += [*of_weights, *of_input, *summed]
        elif summed:
            todo += [*of_input, ("sum beside", block.inputs), *of_weights, ("take beside",)]
        else:
            todo += [*of_input, *of_weights]
        todo += [("exchange", i), ("joins", i)]

    # What happens.

    def _run(self) -> None:
        while True:
            while self._anything():
                pass
            times = [stage.until for stage in self.stages if stage.until is not None]
            times += [
                call.ends
                for stage in self.stages
                for call in stage.calls
                if call.ends is not None and call.done.at is None
            ]
            if not times:
                break
            self.now = min(times)
            for stage in self.stages:
                for call in stage.calls:
                    if call.ends == self.now and call.done.at is None:
                        call.done.at = self.now
        assert all(stage.next == len(stage.todo) for stage in self.stages)
        assert all(call.done.at is not None for stage in self.stages for call in stage.calls)
        self.end = self.now

    def _anything(self) -> bool:
        moved = [self._step(stage) for stage in self.stages]
        return any(moved) or self._calls()

    def _calls(self) -> bool:
        """Begin what may begin; then servers that are free take the first."""
        moved = False
        for stage in self.stages:
            for call in stage.calls:
                if call.begun is None and all(each.at is not None for each in call.after):
                    call.begun, moved = self.now, True
        if moved:
            return True
        for stage in self.stages:
            if any(call.ends is not None and call.done.at is None for call in stage.calls):
                continue
            waiting = [call for call in stage.calls if call.begun is not None and call.ends is None]
            if waiting:
                first = min(waiting, key=lambda call: (not call.urgent, call.begun, call.number))
                first.ends = self.now + first.time
                moved = True
        return moved

    def call(
        self, stage: Stage, time: int, after: list[Moment], told: Moment | None = None
    ) -> Moment:
        """Ask a stage's server for something; a message, whose receiver is told, goes before others."""
        self.numbers += 1
        done = Moment() if told is None else told
        stage.calls.append(Call(list(after), time, told is not None, self.numbers, done))
        return done

    def _step(self, stage: Stage) -> bool:
        """Do the next thing on the list, if it can be done now."""
        if stage.until is not None:
            if stage.until > self.now:
                return False
            stage.until = None
            self._ended(stage)
            return True
        if stage.next == len(stage.todo):
            return False
        what, *rest = stage.todo[stage.next]
        if what in ("compute", "update"):
            self._fetch_ahead(stage)
            waits = stage.carried + (stage.due if what == "update" else [])
            if any(each.at is None for each in waits):
                return False
            stage.carried = []
            if what == "compute":
                stage.until = self.now + self.pass_time(stage.blocks[rest[0]], rest[1])
            else:
                stage.due = []
                stage.until = self.now + self._update_time(stage)
            return True
        stage.next += 1
        act: Callable[..., None] = getattr(self, "_do_" + what.replace(" ", "_"))
        act(stage, *rest)
        return True

    def _ended(self, stage: Stage) -> None:
        ended = Moment()
        ended.at = self.now
        stage.last = [ended]
        is_update = stage.todo[stage.next][0] == "update"
        stage.next += 1
        if is_update and self.job.zero in (1, 2):
            sizes: dict[tuple[str, int], int] = {}
            for block in stage.blocks:
                key = self.sharers(block)
                if block.parameters and not block.is_table and key[1] > 1:
                    sizes[key] = sizes.get(key, 0) + self.bytes_of(self.held(block))
            for (_, npus), size in sizes.items():
                time = self.collective("all-gather", npus, size)
                stage.carried.append(self.call(stage, time, [ended]))

    def _fetch_ahead(self, stage: Stage) -> None:
        """ZeRO 3: ask for weights up to those of the computation after the next; none past an update."""
        ahead = 0
        for i in range(stage.next, len(stage.todo)):
            what, *rest = stage.todo[i]
            if what == "fetch" and i >= stage.fetched:
                stage.fetched = i + 1
                self._fetch(stage, i, rest[0])
            if what == "update":
                return
            ahead += what == "compute"
            if ahead == 2:
                return

    def _fetch(self, stage: Stage, place: int, layer: int) -> None:
        block = stage.blocks[layer]
        _, npus = self.sharers(block)
        if self.job.zero == 3 and block.parameters and not block.is_table and npus > 1:
            time = self.collective("all-gather", npus, self.bytes_of(self.held(block)))
            stage.named["fetch", place] = [self.call(stage, time, [])]

    def _update_time(self, stage: Stage) -> int:
        """Adam: 12 bytes read and written, and gradient and weight of the training's precision."""
        if self.job.memory is None:
            return 0
        own = Fraction(0)
        for block in stage.blocks:
            if not block.is_table:
                same = self.sharers(block)[1] if self.job.zero else 1
                own += self.held(block) / same
        moved = own * (24 + Fraction(2 * self.job.bits, 8))
        return up(moved * TERA / self.job.memory)

    # Entries of the list but computations.

    def _do_fetch(self, stage: Stage, layer: int) -> None:
        if stage.next > stage.fetched:
            stage.fetched = stage.next
            self._fetch(stage, stage.next - 1, layer)
        stage.carried += stage.named.pop(("fetch", stage.next - 1), [])

    def _do_exchange(self, stage: Stage, layer: int) -> None:
        block = stage.blocks[layer]
        if self.job.ep > 1 and block.experts and block.routed:
            size = self.bytes_of(block.routed * self.samples * self.part_of(block))
            time = self.collective("all-to-all", self.job.ep, size)
            stage.carried.append(self.call(stage, time, stage.last + stage.carried))

    def _do_sum(self, stage: Stage, numbers: int) -> None:
        if self.job.tp > 1 and numbers:
            time = self.collective("all-reduce", self.job.tp, self.bytes_of(numbers * self.samples))
            stage.carried.append(self.call(stage, time, stage.last))

    def _do_sum_beside(self, stage: Stage, numbers: int) -> None:
        kept, stage.carried = stage.carried, []
        self._do_sum(stage, numbers)
        stage.named["beside"] = stage.carried
        stage.carried = kept

    def _do_take_beside(self, stage: Stage) -> None:
        stage.carried += stage.named.pop("beside")

    def _table_time(self, stage: Stage, layer: int) -> int:
        size = self.bytes_of(stage.blocks[layer].outputs * self.samples)
        return self.collective("all-to-all", self.job.dp, size)

    def _needed_at(self, stage: Stage, layer: int) -> int:
        """Where a table's outputs are needed: the layer that it joins, or the next."""
        names = [block.name for block in stage.blocks]
        joins = stage.blocks[layer].joins
        return names.index(joins) if joins else min(layer + 1, len(names) - 1)

    def _do_table_out(self, stage: Stage, layer: int) -> None:
        if self.job.dp > 1:
            done = self.call(stage, self._table_time(stage, layer), stage.last)
            key = ("out", self._needed_at(stage, layer))
            stage.named.setdefault(key, []).append(done)

    def _do_joined(self, stage: Stage, layer: int) -> None:
        stage.carried += stage.named.pop(("out", layer), [])

    def _do_joins(self, stage: Stage, layer: int) -> None:
        """A layer has gone back: the gradients of tables that it joined may be sent."""
        for i, block in enumerate(stage.blocks):
            if block.is_table and self._needed_at(stage, i) == layer and self.job.dp > 1:
                done = self.call(stage, self._table_time(stage, i), stage.last)
                stage.named["back", i] = [done]

    def _do_table_back(self, stage: Stage, layer: int) -> None:
        stage.carried += stage.named.pop(("back", layer), [])

    def _do_collect(self, stage: Stage, layer: int) -> None:
        block = stage.blocks[layer]
        name, npus = self.sharers(block)
        if block.is_table or npus == 1:
            return
        stage.full[name] = stage.full.get(name, 0) + self.bytes_of(self.held(block))
        if self.job.bucket is not None and stage.full[name] >= self.job.bucket:
            self._reduce(stage, name)

    def _do_flush(self, stage: Stage) -> None:
        for name in list(stage.full):
            self._reduce(stage, name)

    def _reduce(self, stage: Stage, name: str) -> None:
        npus = self.job.dp // self.job.ep if name == "replicas" else self.job.dp
        kind = "reduce-scatter" if self.job.zero else "all-reduce"
        time = self.collective(kind, npus, stage.full.pop(name))
        stage.due.append(self.call(stage, time, stage.last))

    def _message(self, way: str, source: int) -> int:
        blocks = self.stages[source].blocks
        block, numbers, cut = blocks[-1], blocks[-1].outputs, ("columns", "inside")
        if way == "backward":
            block, numbers, cut = blocks[0], blocks[0].inputs, ("rows", "inside")
        share = Fraction(1, self.job.tp if block.split in cut else 1)
        size = self.bytes_of(numbers * share * self.samples)
        return up(Fraction(size) * TERA / self.job.bandwidth)

    def _do_send(self, stage: Stage, way: str, source: int, part: int, iteration: int) -> None:
        told = self.sent.setdefault((way, source, part, iteration), Moment())
        self.call(stage, self._message(way, source), stage.last + stage.carried, told)

    def _do_receive(self, stage: Stage, way: str, source: int, part: int, iteration: int) -> None:
        stage.carried.append(self.sent.setdefault((way, source, part, iteration), Moment()))
