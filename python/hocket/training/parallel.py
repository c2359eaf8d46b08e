"""Parallelism: its sizes, and the NPUs of each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd, prod
from typing import NamedTuple

from hocket import _core
from hocket._checks import did_you_mean, is_decimal, list_of, whole
from hocket._core import iteration
from hocket._results import HIDDEN, Result, figure
from hocket.errors import SpecError
from hocket.units import shown

AXES = ("tp", "dp", "pp")
"""The order in which NPUs are dealt out by default, neighbours first (that of Megatron-LM)."""
CAUSES = tuple(iteration.causes())
"""What a call is for."""
PASSES = tuple(iteration.passes())
"""What a node is part of: forward, recompute, input gradient, weight gradient, update."""
_KEYS = ("dp", "tp", "pp", "ep", "cp", "interleave", "zero", "micro-batches")
_MAX_NPUS = 1 << 24


@dataclass(frozen=True)
class Parallel(Result):
    """Sizes of parallelism. ``dp * tp * pp * cp`` NPUs take part; ``ep`` divides ``dp``.

    Attributes
    ----------
    dp
        Replicas (data parallelism).
    tp
        NPUs that share every layer (tensor parallelism).
    pp
        Stages of consecutive layers (pipeline parallelism), 1F1B.
    ep
        NPUs, of different replicas, over which experts are dealt out (expert parallelism).
    cp
        NPUs that share every sequence (context parallelism); only :func:`hocket.predict_training` knows it.
    interleave
        Groups of consecutive layers that each stage of a pipeline has; more than 1 is interleaved 1F1B.
    zero
        What replicas do not keep copies of (ZeRO stages; 3 is FSDP): 0 nothing; 1 optimizer states; 2
        gradients as well; 3 weights as well.
    micro_batches
        Into how many parts a replica cuts its batch; None: 4 for each stage of a pipeline, else 1.
    order
        Axes in the order in which NPUs are dealt out, neighbours first.
    dimensions
        Of axes that shall have dimensions of their own: which, numbered from 1.

    References
    ----------
    Narayanan et al.: Efficient large-scale language model training on GPU clusters using Megatron-LM, SC
    2021 (tensor, pipeline, 1F1B). Rajbhandari et al.: ZeRO, SC 2020. Lepikhin et al.: GShard, 2020
    (experts). Huang et al.: GPipe, 2019, section 2.3: 4 micro-batches for each stage. Liu et al.: Ring
    Attention, 2023 (context).
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    ep: int = 1
    zero: int = 0
    micro_batches: int | None = field(default=None, metadata=HIDDEN)
    order: tuple[str, ...] = field(default=AXES, metadata=HIDDEN)
    dimensions: Mapping[str, Sequence[int]] = field(default_factory=dict, metadata=HIDDEN)
    cp: int = 1
    interleave: int = 1

    def __post_init__(self) -> None:
        for name in ("dp", "tp", "pp", "ep", "cp", "interleave"):
            whole(f"parallel: {name}", getattr(self, name), 1, _MAX_NPUS)
        if self.interleave > 1 and self.pp == 1:
            raise SpecError(
                "parallel", f"interleave={self.interleave}: there is no pipeline", "give pp as well"
            )
        whole("parallel: zero", self.zero, 0, 3)
        if self.micro_batches is not None:
            whole("parallel: micro-batches", self.micro_batches, 1, _MAX_NPUS)
        if self.dp % self.ep:
            raise SpecError(
                "parallel",
                f"ep={self.ep} does not divide dp={self.dp}",
                "experts are dealt out over NPUs of different replicas",
            )
        object.__setattr__(self, "order", tuple(list_of("parallel: order", self.order)))
        if sorted(map(str, self.order)) != sorted(AXES):
            raise SpecError(
                "parallel",
                f"order: {shown(self.order)} is not valid",
                f"name each of {', '.join(AXES)} once",
            )
        given_dimensions: object = self.dimensions
        if not isinstance(given_dimensions, Mapping):
            wrong = f"dimensions: {shown(given_dimensions)} is not a mapping"
            raise SpecError("parallel", wrong, 'give one, as {"tp": [1]}')
        for axis, given in self.dimensions.items():
            if not isinstance(given, Sequence):
                raise SpecError(
                    "parallel",
                    f"dimensions: {axis}: {shown(given)} is not a list",
                    "give one, such as [1]",
                )
            if axis not in AXES:
                raise SpecError(
                    "parallel",
                    f"dimensions: there is no axis {shown(axis)}",
                    did_you_mean(str(axis), AXES, f"use {', '.join(AXES)}"),
                )

    @property
    def npus(self) -> int:
        """NPUs that take part."""
        return self.dp * self.tp * self.pp * self.cp

    @property
    @figure("micro_batches")
    def parts(self) -> int:
        """Micro-batches of a replica."""
        if self.micro_batches is not None:
            return self.micro_batches
        return 4 * self.pp if self.pp > 1 else 1

    @classmethod
    def parse(cls, text: str) -> Parallel:
        """Read sizes as ``"dp=64,tp=16,zero=2"``.

        Keys are dp, tp, pp, ep, cp, interleave, zero and micro-batches.

        Raises
        ------
        SpecError
            For any other text.
        """
        right = "write sizes as dp=64,tp=16; keys are " + ", ".join(_KEYS)
        values: dict[str, int] = {}
        for part in text.split(","):
            key, equals, value = (each.strip() for each in part.partition("="))
            if not equals or key not in _KEYS:
                hint = did_you_mean(key, _KEYS, right) if equals else right
                raise SpecError("parallel", f"{shown(part.strip())} is not valid", hint)
            digits = value.removeprefix("-")
            if not is_decimal(digits):
                raise SpecError("parallel", f"{key}: {shown(value)} is not a whole number", right)
            if digits != value:
                raise SpecError("parallel", f"{key}={value} is negative", "give 1 or more")
            if key in values:
                raise SpecError("parallel", f"{key} is given twice", "give it once")
            values[key] = int(value)
        return cls(
            dp=values.get("dp", 1),
            tp=values.get("tp", 1),
            pp=values.get("pp", 1),
            ep=values.get("ep", 1),
            zero=values.get("zero", 0),
            micro_batches=values.get("micro-batches"),
            cp=values.get("cp", 1),
            interleave=values.get("interleave", 1),
        )

    def __str__(self) -> str:
        sizes = [f"{name}={getattr(self, name)}" for name in ("dp", "tp", "pp", "ep", "cp")]
        sizes.append(f"interleave={self.interleave}")
        kept = [size for size in sizes if not size.endswith("=1")] or ["dp=1"]
        kept += [f"zero={self.zero}"] if self.zero else []
        kept += [] if self.micro_batches is None else [f"micro-batches={self.micro_batches}"]
        return ",".join(kept)


class Portion(NamedTuple):
    """NPUs along a dimension that make (part of) a group: ``size`` of them, ``stride`` apart."""

    dimension: int
    size: int
    stride: int


@dataclass(frozen=True)
class Group:
    """The groups of an axis: one like the others.

    Attributes
    ----------
    size
        NPUs of a group.
    portions
        Where they lie on a product of dimensions, neighbours first; None on other networks.
    members
        NPUs of every group; empty on a product, where all are alike.
    """

    size: int
    portions: tuple[Portion, ...] | None
    members: tuple[tuple[int, ...], ...] = field(default=(), hash=False)


def _filling(parallel: Parallel, npus: int) -> Parallel:
    """Return sizes of so many NPUs that keep what they can, tensor parallelism first."""
    tp = max(size for size in range(1, min(parallel.tp, npus) + 1) if npus % size == 0)
    left = npus // tp
    pp = max(size for size in range(1, min(parallel.pp, left) + 1) if left % size == 0)
    dp = npus // (tp * pp)
    return replace(parallel, dp=dp, tp=tp, pp=pp, ep=gcd(parallel.ep, dp))


def groups(
    parallel: Parallel, topology: _core.Topology, *, on_dimensions: bool
) -> dict[str, Group]:
    """Return the groups of every axis: tp, dp, pp, ``ep`` (within dp) and ``replicas`` (dp without ep).

    Parameters
    ----------
    on_dimensions
        Whether groups are to be portions of the topology's dimensions, else lists of NPUs.

    Raises
    ------
    SpecError
        If sizes do not multiply to the NPUs that there are, or do not fit the dimensions.
    """
    if parallel.cp > 1:
        raise SpecError(
            "parallel",
            f"cp={parallel.cp}: iterations are not simulated with it",
            "leave it out, or ask hocket predict --training",
        )
    if parallel.npus != topology.npu_count:
        sizes = " x ".join(f"{axis} {getattr(parallel, axis)}" for axis in ("dp", "tp", "pp"))
        raise SpecError(
            "parallel",
            f"{sizes} make {parallel.npus:,} NPUs, and topology {topology.name!r} has "
            f"{topology.npu_count:,}",
            instead=[{"parallel": str(_filling(parallel, topology.npu_count))}],
        )
    of = {"tp": parallel.tp, "pp": parallel.pp, "ep": parallel.ep}
    of["replicas"] = parallel.dp // parallel.ep
    order = [
        (name, of[name])
        for axis in parallel.order
        for name in (("ep", "replicas") if axis == "dp" else (axis,))
    ]
    if on_dimensions:
        return _on_dimensions(parallel, topology, order)
    if parallel.dimensions:
        raise SpecError(
            "parallel", "dimensions: groups are lists of NPUs here, in their order", "leave it out"
        )
    return _by_rank(topology.npu_count, order)


def _on_dimensions(
    parallel: Parallel, topology: _core.Topology, order: list[tuple[str, int]]
) -> dict[str, Group]:
    """Deal dimensions out to axes: those with dimensions of their own, then the others in turn."""
    sizes = [size for _, size, *_ in topology.dimensions]
    left = list(sizes)
    found: dict[str, tuple[Portion, ...]] = {}
    ordered = sorted(order, key=lambda each: _axis_of(each[0]) not in parallel.dimensions)
    for name, size in ordered:
        own = parallel.dimensions.get(_axis_of(name))
        places = range(len(sizes)) if own is None else [_place(name, i, sizes) for i in own]
        portions = []
        need = size
        for place in places:
            part = gcd(need, left[place])
            if part > 1:
                portions.append(Portion(place, part, sizes[place] // left[place]))
                left[place] //= part
                need //= part
        if need > 1:
            shape = " x ".join(map(str, sizes))
            raise SpecError(
                "parallel",
                f"{_axis_of(name)}={size} does not fit what is left of the dimensions {shape} "
                f"of topology {topology.name!r}",
                "give sizes that divide them",
            )
        found[name] = tuple(portions)
    found["dp"] = _merged(found["ep"] + found["replicas"])
    size_of = {**dict(order), "dp": parallel.dp}
    return {name: Group(size_of[name], portions) for name, portions in found.items()}


def _merged(portions: Sequence[Portion]) -> tuple[Portion, ...]:
    """Return one portion for each dimension: replicas of experts lie beyond those that share them."""
    found: dict[int, Portion] = {}
    for portion in portions:
        before = found.get(portion.dimension)
        size = portion.size if before is None else before.size * portion.size
        stride = portion.stride if before is None else before.stride
        found[portion.dimension] = Portion(portion.dimension, size, stride)
    return tuple(found.values())


def _axis_of(name: str) -> str:
    return "dp" if name in ("ep", "replicas") else name


def _place(name: str, given: int, sizes: Sequence[int]) -> int:
    return whole(f"parallel: dimensions: {_axis_of(name)}", given, 1, len(sizes)) - 1


def _by_rank(npus: int, order: list[tuple[str, int]]) -> dict[str, Group]:
    """List the NPUs of every group, numbers being dealt out to axes in turn."""
    strides = {name: prod(size for _, size in order[:i]) for i, (name, size) in enumerate(order)}
    of = dict(order)
    axes = {name: (name,) for name in of} | {"dp": ("ep", "replicas")}
    found = {}
    for name, parts in axes.items():
        offsets = [0]
        for part in parts:
            offsets = [base + i * strides[part] for i in range(of[part]) for base in offsets]
        offsets.sort()
        firsts = [
            npu
            for npu in range(npus)
            if all(npu // strides[part] % of[part] == 0 for part in parts)
        ]
        members = tuple(tuple(first + offset for offset in offsets) for first in firsts)
        found[name] = Group(len(offsets), None, members)
    return found
