"""Mixture of experts: which token goes to which NPUs, and the collectives that take it there and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heapify, heapreplace
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, Tag, WithJsonSchema, model_validator

from hocket import _core
from hocket.errors import SpecError
from hocket.files.model import Count, Strict, one_of
from hocket.units import parse_size

Floats: TypeAlias = NDArray[np.float64]
Tokens: TypeAlias = Counter[tuple[int, tuple[int, ...]]]
"""How many tokens of a source go to the same other participants, both by rank."""

_SIZE = {"type": ["integer", "string"], "examples": ["7 KiB", 7168]}
_MOST = 1 << 28
"""Scores that are drawn at most: tokens times experts, over all NPUs."""
_MOST_EXPERTS = 1 << 16
_MOST_BYTES = 1 << 62
"""Of all tokens of a demand; the core counts no more of all of them."""


Ranks: TypeAlias = Annotated[
    Annotated[int, Tag("<int>")] | Annotated[list[int], Tag("<list>")],
    one_of("<int>", "<list>", right="give the rank of its NPU, or a list of ranks"),
]
Placement: TypeAlias = Annotated[
    Annotated[Literal["in-order", "balanced"], Tag("<str>")]
    | Annotated[list[Ranks], Tag("<list>")],
    one_of("<str>", "<list>", right="give in-order, balanced, or a rank for each expert"),
]


class Row(Strict):
    """Tokens of one NPU that go to the same experts."""

    npu: Annotated[int, Field(ge=0)] = Field(description="Rank of the NPU that has them.")
    experts: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = Field(
        description="Their experts, by number."
    )
    tokens: Count = Field(default=1, description="How many they are.")


class Experts(Strict):
    """A layer of experts, where they are, and which tokens they get."""

    size: Annotated[
        int,
        BeforeValidator(lambda value: parse_size(value, field=None)),
        WithJsonSchema(_SIZE),
    ] = Field(default=7168, description="Bytes of a token.")
    tokens: Count = Field(default=64, description="Tokens per NPU.")
    experts: Annotated[int, Field(ge=1, le=_MOST_EXPERTS)] = Field(
        default=256, description="How many experts there are."
    )
    top: Count = Field(default=8, description="Experts per token.")
    skew: Annotated[float, Field(ge=1, le=1e6, allow_inf_nan=False, strict=False)] = Field(
        default=1.0,
        description="How many times as popular as the least popular expert the most popular may be.",
    )
    nodes: Count | None = Field(
        default=None, description="Nodes per token: its experts are in so many at most."
    )
    replicas: Annotated[int, Field(ge=0, le=_MOST_EXPERTS)] = Field(
        default=0, description="Further copies, of the experts that are most popular per copy."
    )
    placement: Placement = Field(
        default="in-order",
        description="Where experts are: in order, spread by popularity, or of each its rank or ranks.",
    )
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = Field(
        default=0, description="Seed of the popularity and of the tokens."
    )
    routes: Annotated[list[Row], Field(min_length=1)] | None = Field(
        default=None, description="Which tokens go where, in place of a random choice."
    )

    @model_validator(mode="after")
    def _fits(self) -> Experts:
        if self.routes is None and self.top > self.experts:
            raise ValueError(f"top {self.top} is more than experts {self.experts}; give fewer")
        if not isinstance(self.placement, str):
            if self.replicas:
                raise ValueError("placement lists every copy; leave replicas out")
            if len(self.placement) != self.experts:
                have = f"placement has {len(self.placement)} entries for {self.experts} experts"
                raise ValueError(f"{have}; give one for each")
        return self


def routed(
    experts: Experts,
    topology: _core.Topology,
    npus: Sequence[int],
) -> Tokens:
    """Return which tokens go where.

    An expert is drawn with a chance by its popularity, 1 + (skew - 1) u^3 with a random u. With a limit
    of nodes, a token first takes the nodes whose best experts have the highest scores in sum. Of several
    copies of an expert, all tokens of an NPU take the same one, in their own node if there is one.

    Raises
    ------
    SpecError
        If ranks or experts do not exist, experts do not fit into the nodes, or it is too much to draw.

    References
    ----------
    Efraimidis, Spirakis: Weighted random sampling with a reservoir, 2006: scores. DeepSeek-AI: DeepSeek-V3
    Technical Report, 2024, section 2.1.2: limit of nodes.
    """
    random = np.random.RandomState(experts.seed)
    popularity = 1 + (experts.skew - 1) * random.random_sample(experts.experts) ** 3
    nodes = _nodes(topology, npus)
    copies = _placed(experts, popularity, nodes)
    found: Tokens = Counter()
    for source, chosen, count in _chosen(experts, popularity, nodes, copies, random):
        homes = _homes(copies, source, nodes)[chosen]
        for row in homes.tolist():
            found[source, tuple(sorted({*row} - {source}))] += count
    return found


def demands_of(
    kind: str, experts: Experts, topology: _core.Topology, npus: Sequence[int]
) -> list[tuple[int, bool, list[int], list[int]]]:
    """Return the demands of a dispatch or a combine, as the core takes them.

    Tokens of one NPU that go to the same NPUs are one demand. A combine sums what the experts of a token
    return, in the size of the token.

    Raises
    ------
    SpecError
        As :func:`routed`; and if no token leaves its NPU.
    """
    rows, total = [], 0
    for (source, takers), count in sorted(routed(experts, topology, npus).items()):
        if takers:
            total += count * experts.size
            ends = [npus[source]], [npus[taker] for taker in takers]
            holders, wanted = ends if kind == "dispatch" else ends[::-1]
            rows.append((count * experts.size, len(holders) > 1, holders, wanted))
    if total > _MOST_BYTES:
        raise SpecError(
            "size", "all tokens have more than 2^62 bytes", "give less, or fewer tokens"
        )
    if not rows:
        raise SpecError(kind, "no token leaves its NPU", "place the experts on other NPUs")
    return rows


def _nodes(topology: _core.Topology, npus: Sequence[int]) -> NDArray[np.int64]:
    """Return the node of each participant; each is one of its own if the network names none."""
    known = {npu: node for node, members in enumerate(topology.groups) for npu in members}
    return np.array([known.get(npu, -1 - npu) for npu in npus])


def _placed(experts: Experts, popularity: Floats, nodes: NDArray[np.int64]) -> list[list[int]]:
    """Return the ranks that have each expert."""
    ranks = len(nodes)
    if not isinstance(experts.placement, str):
        found = [[each] if isinstance(each, int) else each for each in experts.placement]
        for number, copies in enumerate(found):
            if not copies or not all(0 <= each < ranks for each in copies):
                why = f"expert {number} is on {copies}, and ranks are 0 to {ranks - 1}"
                raise SpecError("placement", why, "give one or more of these")
        return found
    counts = [1] * experts.experts
    queue = [(-load, expert) for expert, load in enumerate(popularity.tolist())]
    heapify(queue)
    for _ in range(experts.replicas):
        expert = queue[0][1]
        counts[expert] += 1
        heapreplace(queue, (-popularity[expert] / counts[expert], expert))
    slots = [expert for expert, count in enumerate(counts) for _ in range(count)]
    if experts.placement == "in-order":
        homes = [number * ranks // len(slots) for number in range(len(slots))]
    else:
        homes = _balanced([popularity[expert] / counts[expert] for expert in slots], nodes)
    made: list[list[int]] = [[] for _ in counts]
    for expert, home in zip(slots, homes, strict=True):
        made[expert].append(home)
    return made


def _balanced(loads: Sequence[float], nodes: NDArray[np.int64]) -> list[int]:
    """Return a rank for each load, the greatest first: in the node and on the NPU with least so far."""
    names = list(dict.fromkeys(nodes.tolist()))
    room = np.full(len(nodes), -(-len(loads) // len(nodes)))
    own, of_node = np.zeros(len(nodes)), dict.fromkeys(names, 0.0)
    found = [0] * len(loads)
    for number in sorted(range(len(loads)), key=lambda number: (-loads[number], number)):
        has_room = [name for name in names if room[nodes == name].any()]
        node = min(has_room, key=lambda name: of_node[name])
        there = np.flatnonzero((nodes == node) & (room > 0))
        home = int(there[own[there].argmin()])
        found[number] = home
        room[home] -= 1
        own[home] += loads[number]
        of_node[node] += loads[number]
    return found


def _homes(
    copies: Sequence[Sequence[int]], source: int, nodes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the rank of the copy of each expert that the tokens of one take."""

    def home(there: Sequence[int]) -> int:
        near = [each for each in there if nodes[each] == nodes[source]] or there
        return near[source % len(near)]

    return np.array([there[0] if len(there) == 1 else home(there) for there in copies])


def _chosen(
    experts: Experts,
    popularity: Floats,
    nodes: NDArray[np.int64],
    copies: Sequence[Sequence[int]],
    random: np.random.RandomState,
) -> Iterator[tuple[int, NDArray[np.int64], int]]:
    """Yield sources, experts by token, and how many tokens each row stands for."""
    if experts.routes is not None:
        for number, row in enumerate(experts.routes):
            if row.npu >= len(nodes):
                why = f"row {number}: there is no rank {row.npu}"
                raise SpecError("routes", why, f"ranks are 0 to {len(nodes) - 1}")
            if max(row.experts) >= experts.experts:
                why = f"row {number}: there is no expert {max(row.experts)}"
                raise SpecError("routes", why, f"experts are 0 to {experts.experts - 1}")
            if len(set(row.experts)) < len(row.experts):
                why = f"row {number}: an expert is there twice"
                raise SpecError("routes", why, "name each once")
            yield row.npu, np.array([row.experts]), row.tokens
        return
    if experts.tokens * experts.experts * len(nodes) > _MOST:
        why = f"{experts.tokens} tokens on {len(nodes)} NPUs for {experts.experts} experts are too many"
        raise SpecError("tokens", why, "let one stand for several: fewer tokens of a larger size")
    for source in range(len(nodes)):
        scores = -np.log(-np.log1p(-random.random_sample((experts.tokens, experts.experts))))
        scores += np.log(popularity)
        if experts.nodes is not None:
            _limit(experts, scores, nodes[_homes(copies, source, nodes)])
        yield source, np.argpartition(-scores, experts.top - 1, axis=1)[:, : experts.top], 1


def _limit(experts: Experts, scores: Floats, nodes: NDArray[np.int64]) -> None:
    """Keep, of each token, only the scores of experts in its nodes."""
    limit = experts.nodes or 1
    if nodes.min() < 0:
        why = "the network does not say which NPUs form a node"
        raise SpecError("nodes", why, "name them with --groups, or leave it out")
    names, sizes = np.unique(nodes, return_counts=True)
    if np.sort(sizes)[:limit].sum() < experts.top:
        least = int(np.sort(sizes)[:limit].sum())
        why = f"{limit} of them may have only {least} experts, and a token needs {experts.top}"
        raise SpecError("nodes", why, "give more nodes")
    best = max(1, experts.top // limit)
    sums = np.stack(
        [np.sort(scores[:, nodes == name], axis=1)[:, -best:].sum(axis=1) for name in names], axis=1
    )
    if limit < len(names):
        left = np.argpartition(-sums, limit - 1, axis=1)[:, limit:]
        for column, name in enumerate(names):
            rows = (left == column).any(axis=1)
            scores[np.ix_(rows, nodes == name)] = -np.inf
