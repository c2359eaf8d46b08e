"""Tells of operations of the backward pass which layer's they are, and which of its gradients they are for.

Autograd's graph has a node for each operation of the forward pass, and runs it to get from the gradients
of its results to those of its operands. The operands that are fixed (weights, and what is made of them)
are the next nodes that lead to weights alone. Within a node, what is needed for the gradient of any
other operand is the input gradient; the rest is the weight gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hocket.workload.torch.pass_record import INPUT_GRADIENT, WEIGHT_GRADIENT, PassRecord
from hocket.workload.torch.products import Step
from hocket.workload.torch.storages import Effect, Storages

Maker = tuple[int, bool]
"""The part whose operation a node undoes, and whether that gave data."""


@dataclass(frozen=True)
class _Operation:
    flops: int
    effect: Effect
    gives: set[int]


class Backward:
    """Notes the operations of the backward pass.

    Parameters
    ----------
    tally
        Where they are noted.
    storages
        Of all tensors so far.
    makers
        Of the graph's nodes, as far as they are known.
    """

    def __init__(self, tally: PassRecord, storages: Storages, makers: dict[Any, Maker]) -> None:
        self._tally = tally
        self._storages = storages
        self._makers = makers
        self._place = len(tally.parts) - 1
        self._in_node: list[_Operation] | None = None
        self._of_weights: set[int] = set()

    def follow(self, ends: Iterable[Any]) -> None:
        """Watch all nodes of the graph that ends in these."""
        fixed = self._fixed(ends)
        for node in fixed:
            maker = self._makers.get(node)
            is_fixed = [other is not None and fixed[other] for other, _ in node.next_functions]
            before, after = self._hooks(maker and maker[0], is_fixed, fixed[node])
            node.register_prehook(before)
            node.register_hook(after)

    def note(self, step: Step, effect: Effect, *, is_sum: bool = False) -> None:
        """Note a step: at once, or when its node is done.

        Between nodes autograd adds gradients up, and sums those of what was broadcast.
        """
        gives = {self._storages.key(each) for each in step.gives}
        operation = _Operation(step.flops, effect, gives)
        if self._in_node is not None:
            self._in_node.append(operation)
        elif is_sum and not self._of_weights.isdisjoint(effect.reads):
            self._storages.data -= gives
            self._add(WEIGHT_GRADIENT, operation)
        else:
            self._add(INPUT_GRADIENT, operation)

    def _fixed(self, ends: Iterable[Any]) -> dict[Any, bool]:
        """Return for each node whether its result is fixed.

        A node that nobody knows is a view's, or one of the module's own: what leads to weights alone.
        """
        fixed: dict[Any, bool] = {}
        seen: set[Any] = set()
        stack = [(each, False) for each in ends]
        while stack:
            node, is_done = stack.pop()
            if is_done:
                known = self._makers.get(node)
                nexts = [other for other, _ in node.next_functions if other is not None]
                fixed[node] = all(fixed[each] for each in nexts) if known is None else not known[1]
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack += [(each, False) for each, _ in node.next_functions if each is not None]
        return fixed

    def _hooks(
        self, place: int | None, is_fixed: list[bool], all_fixed: bool
    ) -> tuple[Callable[[Any], None], Callable[[Any, Any], None]]:
        """Return what is done before a node runs, and after."""

        def before(_gradients: Any) -> None:
            self._in_node = []
            if place is not None:
                self._place = place

        def after(gradients: Any, _given: Any) -> None:
            operations, self._in_node = self._in_node or [], None
            of_inputs: set[int] = set()
            self._of_weights = set()
            for gradient, fixed in zip(gradients, is_fixed, strict=True):
                if gradient is not None:
                    wanted = self._of_weights if fixed or all_fixed else of_inputs
                    wanted.add(self._storages.key(gradient))
            made = {key for each in operations for key in each.effect.writes}
            self._storages.data -= (self._of_weights & made) - of_inputs
            self._settle(operations, of_inputs)

        return before, after

    def _settle(self, operations: list[_Operation], of_inputs: set[int]) -> None:
        """Note a node's operations, from the last to the first, as the gradients need them."""
        for each in reversed(operations):
            if each.gives.isdisjoint(of_inputs):
                self._add(WEIGHT_GRADIENT, each)
            else:
                of_inputs.update(each.effect.reads)
                self._add(INPUT_GRADIENT, each)

    def _add(self, kind: int, operation: _Operation) -> None:
        part = self._tally.parts[self._place]
        part.flops[kind] += operation.flops
        part.bytes[kind] += self._storages.count(operation.effect)
