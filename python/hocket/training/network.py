"""The times of a training iteration's collectives: shapes for groups, by algorithm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from hocket import _core
from hocket._core import multirail
from hocket._core.iteration import Shape
from hocket.collectives.collective import Progress, check_chunks, collective_on, joined
from hocket.collectives.custom import ROUTED
from hocket.errors import Error, SpecError
from hocket.plans.algorithms import PREFIX, SCHEDULERS, algorithms, check_name
from hocket.plans.choice import STEINER, numbers_of_chunks
from hocket.plans.planner import plan, plan_together
from hocket.plans.schedule import check_rails, schedule_collective
from hocket.plans.synthesis import PlanOptions
from hocket.simulation.run import simulate
from hocket.training.candidates import (
    AUTO,
    GREEDY,
    MOST_PIECES,
    Remembered,
    candidates,
    is_at_size,
    pieces_of,
    transfers_of,
)
from hocket.training.contention import Use, at_once, servers, use_of
from hocket.training.parallel import Group, Portion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hocket.collectives.experts import Experts

IDEAL, NOTHING = "ideal", "none"
"""In place of an algorithm: all bandwidth of the group's dimensions used all the time; no time at all."""
ON_DIMENSIONS = "themis"
"""What schedules dimensions where no algorithm is named."""
CHUNKS = 64
_LEAST = 8
"""Bytes of a chunk for each NPU, at least; what is less has fewer chunks, and counts as one of so many."""
DIRECT = "direct"
"""What plans all-to-alls that the algorithm does not do, and messages: quick on any network."""
_NEVER = (1 << 64) - 1
"""A time that the core refuses."""
_MAX_FOUND, _MAX_PIECES = 1 << 13, 1 << 17
"""Chunks x NPUs x NPUs up to which numbers of chunks are tried, by greedy and by others: about a second."""
_LEADERS = 3
"""Algorithms, the fastest and those at most a quarter slower, with which ``auto`` tries more chunks."""
_JOINT = (GREEDY, "blind", STEINER)
"""What plans all groups of an axis together."""
FLOWS = "flows"
TOKENS = "dispatch or combine"
"""What experts get, or return, as a kind of exchange."""
_MOST_TOKENS, _LEAST_TOKENS, _MOST_PER_NPU = 1 << 13, 8, 128
"""Copies of tokens that are planned, about, and tokens per NPU; each stands for several of the model."""
_CLOSE = 1.03
"""At size nothing else is tried where the best takes no more than so many times the bound."""
_MOST_MADE = 1 << 23
"""Transfers that are planned at size for one collective, about, unless there is no plan yet."""
_NEAR = 1.02
"""How close to the bound others' plans are where ``auto`` does not try steiner, which takes longer."""


def check_uses(algorithm: str, chunks: int | None) -> None:
    """Refuse a number of chunks where nothing is cut into any: bandwidth alone counts, or nothing does.

    Raises
    ------
    SpecError
        If the algorithm is ``ideal`` or ``none``, and there is a number.
    """
    if chunks is not None and algorithm in (IDEAL, NOTHING):
        raise SpecError("chunks", f"{algorithm} does not use it", "leave it out")


def is_on_dimensions(topology: _core.Topology, algorithm: str) -> bool:
    """Return whether an algorithm works on dimensions, and these are whole.

    Raises
    ------
    SpecError
        If the algorithm schedules dimensions and the topology has none, or not whole ones.
    """
    if algorithm == NOTHING:
        return has_dimensions(topology)
    if algorithm not in (*SCHEDULERS, IDEAL) and not algorithm.startswith(PREFIX):
        check_name(algorithm)
        return False
    if not topology.dimensions:
        raise SpecError(
            "algorithm",
            f"{algorithm} works on dimensions, and topology {topology.name!r} has none",
            "use another, such as greedy or ring",
        )
    try:
        check_rails(topology)
    except SpecError as error:
        raise SpecError(
            "algorithm",
            f"{algorithm} works on whole dimensions: {error.why}",
            "use another, such as greedy",
        ) from None
    return True


def has_dimensions(topology: _core.Topology) -> bool:
    """Return whether a topology has dimensions that are whole."""
    try:
        return bool(topology.dimensions) and is_on_dimensions(topology, IDEAL)
    except SpecError:
        return False


def default_algorithm(topology: _core.Topology) -> str:
    """Return the algorithm of training and of traces where none is named."""
    return ON_DIMENSIONS if has_dimensions(topology) else AUTO


def network_of(
    topology: _core.Topology,
    algorithm: str,
    chunks: int | None = None,
    progress: Progress | None = None,
    *,
    cache: bool = True,
    experts: Experts | None = None,
) -> Network:
    """Return what tells how collectives go on a topology by an algorithm.

    With `cache`, what ``auto`` chooses is kept from one run to the next. `experts` says which tokens go to
    which experts, without what a model says; ``None``: all-to-all.

    Raises
    ------
    SpecError
        As :func:`is_on_dimensions`, and for what is not a number of chunks.
    """
    check_chunks(chunks)
    if is_on_dimensions(topology, algorithm):
        return DimensionNetwork(topology, algorithm, CHUNKS if chunks is None else chunks, progress)
    return PlanNetwork(topology, algorithm, chunks, progress, cache=cache, experts=experts)


class Routing(NamedTuple):
    """How tokens go to experts: to how many of how many each."""

    experts: int
    top: int


class Exchange(NamedTuple):
    """The subject of a shape: the kind of a collective or ``message``, its NPUs, and its bytes.

    Of a dispatch and a combine a token counts once for each of its experts.
    """

    kind: str
    npus: int
    size: int


@dataclass
class Network(ABC):
    """The shape of each collective; equal collectives have equal shapes.

    Attributes
    ----------
    topology, algorithm, chunks, progress
        As of :func:`network_of`.
    shapes, exchanges
        Those that were asked for, and what each is of.
    makers
        Which algorithm ``auto`` chose, by the place of the shape.
    """

    topology: _core.Topology
    algorithm: str
    chunks: int | None
    progress: Progress | None = None
    shapes: list[Shape] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    makers: dict[int, str] = field(default_factory=dict)
    _known: dict[object, int] = field(default_factory=dict)

    def collective(self, kind: str, group: Group, size: int) -> int:
        """Return the index in `shapes` of a collective of a group; `size` as of :func:`collective_on`."""
        exchange = Exchange(kind, group.size, size)
        return self._shape(
            (kind, group, size), exchange, lambda: self._collective(kind, group, size)
        )

    def routing(self, experts: int, top: int) -> Routing | None:
        """Return how tokens go to experts; ``None`` if all-to-all."""
        del experts, top
        return None

    def tokens(self, group: Group, size: int, routing: Routing) -> int:
        """Return the place among `shapes` of a dispatch or a combine; `size` as of :class:`Exchange`.

        Each dispatch has its combine: both take the mean of their times.
        """
        exchange = Exchange(TOKENS, group.size, size)
        key = (TOKENS, group, size, routing)
        return self._shape(key, exchange, lambda: self._tokens(group, size, routing))

    def message(self, group: Group, rank: int, to: int, size: int) -> int:
        """Return the place among `shapes` of a message between two ranks of a group."""
        exchange = Exchange("message", 2, size)
        return self._shape(
            (group, rank, to, size), exchange, lambda: self._message(group, rank, to, size)
        )

    def _shape(self, key: object, exchange: Exchange, make: Callable[[], Shape]) -> int:
        if key not in self._known:
            made = make()  # which may fail, and again
            self._known[key] = len(self.shapes)
            self.shapes.append(made)
            self.exchanges.append(exchange)
        return self._known[key]

    def placed(self) -> list[Shape]:
        """Return the shapes as calls are to be served, once all have been asked for."""
        return self.shapes

    @abstractmethod
    def _collective(self, kind: str, group: Group, size: int) -> Shape: ...

    @abstractmethod
    def _message(self, group: Group, rank: int, to: int, size: int) -> Shape: ...

    def _tokens(self, group: Group, size: int, routing: Routing) -> Shape:
        """Return the shape of a dispatch and of its combine, if :meth:`routing` is not ``None``."""
        raise NotImplementedError


@dataclass
class DimensionNetwork(Network):
    """Groups are portions of dimensions; an NPU has a server or two for each dimension."""

    _networks: dict[tuple[Portion, ...], _core.Topology] = field(default_factory=dict)
    _servers: dict[tuple[int, int], int] = field(default_factory=dict)
    """The first of an NPU's two servers for each dimension, and stride of a full connection's portion."""

    def _network(self, portions: tuple[Portion, ...]) -> _core.Topology:
        if portions not in self._networks:
            self._networks[portions] = _portion_network(self.topology, portions)
        return self._networks[portions]

    def _collective(self, kind: str, group: Group, size: int) -> Shape:
        assert group.portions is not None
        if self.algorithm == NOTHING:
            return Shape.timed(0, 0)
        network = self._network(group.portions)
        first = [self._first(portion) for portion in group.portions]
        if self.algorithm == IDEAL:
            return Shape.timed(_ideal_ps(kind, network, group.size, size), first[0])
        if kind == "all-to-all":
            size, chunks = _cut(size, group.size, self.chunks)
            return Shape.all_to_all(network, size, chunks or 1, network.switching, first)
        size, chunks = _cut(size, group.size, self.chunks)
        collective = collective_on(kind, network, size)
        chunks = None if self.algorithm.startswith(PREFIX) else chunks
        made = schedule_collective(
            collective, network, algorithm=self.algorithm, chunks=chunks, progress=self.progress
        )
        return Shape.of_schedule(made.core, first)

    def _message(self, group: Group, rank: int, to: int, size: int) -> Shape:
        assert group.portions is not None
        if self.algorithm == NOTHING:
            return Shape.timed(0, 0)
        network = self._network(group.portions)
        ways = []
        for kind, portion in zip(_kinds(network), group.portions, strict=True):
            steps = abs(rank % portion.size - to % portion.size)
            if kind == "Ring":
                steps = min(steps, portion.size - steps)
            ways.append(min(steps, 1) if kind in ("Switch", "FullyConnected") else steps)
            rank, to = rank // portion.size, to // portion.size
        first = [self._first(portion) for portion in group.portions]
        return Shape.message(network, ways, size, network.switching, first)

    def _first(self, portion: Portion) -> int:
        """Return the first of an NPU's servers for a portion.

        Portions of a full connection have links of their own; those of other dimensions share them.
        """
        is_shared = self.topology.dimensions[portion.dimension][0] != "FullyConnected"
        links = (portion.dimension, 0 if is_shared else portion.stride)
        return self._servers.setdefault(links, 2 * len(self._servers))


def _kinds(network: _core.Topology) -> list[str]:
    return [kind for kind, *_ in network.dimensions]


def _portion_network(topology: _core.Topology, portions: tuple[Portion, ...]) -> _core.Topology:
    """Return the network of one group.

    Neighbours of a ring that are together are a line; those that are apart share the links between them
    with the groups between, and have as many steps to go.
    """
    dimensions = []
    for dimension, size, stride in portions:
        kind, whole_size, bandwidth, latency, offload = topology.dimensions[dimension]
        if kind == "Ring" and size < whole_size:
            kind = "Line" if stride * size < whole_size else "Ring"
        if kind in ("Ring", "Line"):
            bandwidth, latency = max(bandwidth // stride, 1), latency * stride
        dimensions.append((kind, size, bandwidth, latency, offload))
    made = _core.build_product(dimensions)
    return made.with_switching(topology.switching)


def does(algorithm: str, kind: str) -> bool:
    """Return whether an algorithm makes plans for collectives of a kind."""
    return any(each.name == algorithm and kind in each.kinds for each in algorithms())


def _cut(size: int, npus: int, chunks: int | None) -> tuple[int, int | None]:
    """Return the bytes and chunks of a collective, so that every chunk has bytes for every NPU."""
    least = _LEAST * npus
    if chunks is None:
        return max(size, least), chunks
    return max(size, least), min(chunks, max(1, size // least))


def _ideal_ps(kind: str, network: _core.Topology, npus: int, size: int) -> int:
    """Return the time of a collective at all bandwidth of all dimensions, latencies apart [ps].

    Bytes that an NPU must send or receive / its bandwidth: twice S (n - 1) / n of an all-reduce, S of a
    broadcast or reduce, of which an NPU receives or sends all, and S (n - 1) / n of others; S of an
    all-reduce where a switch sums.
    """
    rails = multirail.rails(network)
    bandwidth = sum(row[3] for row in rails)
    parts = npus - 1
    if kind in ("broadcast", "reduce"):
        parts = npus
    elif kind == "all-reduce":
        parts = npus if any(row[6] for row in rails) else 2 * parts
    return min(-(-size * parts * 10**12 // (npus * max(bandwidth, 1))), _NEVER)


class _Found(NamedTuple):
    """The times of the plans of all groups of an axis, by an algorithm with so many chunks."""

    algorithm: str
    chunks: int | None
    use: Use

    def time(self) -> int:
        """Until the last of them is done [ps]."""
        return self.use.time_ps


@dataclass
class PlanNetwork(Network):
    """Any network: what the plans of all groups of an axis take at link fidelity when they begin together.

    Without a number of chunks several are tried, as long as plans are small, and the fastest counts;
    algorithms that search for long take their own.
    An all-to-all is planned by `direct` where the algorithm makes none. ``auto`` takes the fastest of
    several algorithms for each collective, and with `cache` what it took in an earlier run.
    """

    cache: bool = True
    experts: Experts | None = None
    _uses: dict[int, NDArray[np.bool_]] = field(default_factory=dict)
    """What shapes use, by their places."""

    def placed(self) -> list[Shape]:
        """Return the shapes, those that share a link, directly or through others, on one server of an NPU.

        Calls of an NPU on one server follow each other; those on different ones go on at once.
        """
        found = list(self.shapes)
        for place, server in zip(self._uses, servers(self._uses.values()), strict=True):
            found[place] = Shape.timed(self.shapes[place].lone_ps, server)
        return found

    def _collective(self, kind: str, group: Group, size: int) -> Shape:
        if self.algorithm == NOTHING:
            return Shape.timed(0, 0)
        if self.algorithm == AUTO:
            return self._quickest(kind, group, size)
        algorithm, given = self.algorithm, self.chunks
        if kind == "all-to-all" and not does(algorithm, kind):
            algorithm, given = DIRECT, None
        most = _MAX_FOUND if algorithm == GREEDY else _MAX_PIECES
        counts = self._counts(kind, group, size, algorithm, given, most)
        found = [self._found(kind, group, size, algorithm, count) for count in counts]
        return self._timed(min(found, key=_Found.time).use)

    def _quickest(self, kind: str, group: Group, size: int) -> Shape:
        """Return the shape of the fastest plans of all algorithms worth trying, or of those kept before."""
        names = candidates(kind, self.topology, group)
        choice = Remembered(None)
        if self.cache:
            choice = Remembered.of(kind, self.topology, group, size, self.chunks)
        known, best = choice.recall(names), None
        if known is not None:
            with suppress(Error):
                best = self._found(kind, group, size, *known)
        if best is None:
            best = self._searched(kind, group, size, names)
            choice.keep(best.algorithm, best.chunks)
        self.makers[len(self.shapes)] = best.algorithm
        return self._timed(best.use)

    def _searched(self, kind: str, group: Group, size: int, names: Sequence[str]) -> _Found:
        """Return the fastest that these find, the first of equals; the leaders may try more chunks."""
        found: list[_Found] = []
        whys: list[Error] = []
        together = joined(self._collectives(kind, group, max(size, _LEAST * group.size)))
        enough = 0
        if is_at_size(self.topology, group):
            enough = round(_CLOSE * _core.bound(self.topology, together).time_ps)

        def is_enough(name: str) -> bool:
            if not found or not enough:
                return False
            made = [transfers_of(kind, self.topology, group, *each[:2]) for each in found]
            is_spent = sum(made) >= _MOST_MADE or name == GREEDY
            return is_spent or min(map(_Found.time, found)) <= enough

        def attempt(names: Sequence[str], most: int) -> None:
            for name in names:
                largest = _MAX_FOUND if name == GREEDY else most
                done = {each.chunks for each in found if each.algorithm == name}
                try:
                    counts = self._counts(kind, group, size, name, self.chunks, largest)
                    for count in counts:
                        if is_enough(name):
                            return
                        if count not in done:
                            found.append(self._found(kind, group, size, name, count))
                except Error as error:
                    whys.append(error)

        attempt([name for name in names if name != STEINER], MOST_PIECES)
        if STEINER in names:
            best = min((each.time() for each in found), default=_NEVER)
            if best > _NEAR * _core.bound(self.topology, together).time_ps:
                attempt([STEINER], MOST_PIECES)
        if not found:
            raise whys[-1 if enough else 0]
        found.sort(key=_Found.time)
        near = [each for each in found if each.time() * 4 <= found[0].time() * 5]
        attempt(list(dict.fromkeys(each.algorithm for each in near))[:_LEADERS], _MAX_PIECES)
        return min(found, key=_Found.time)

    def _counts(
        self, kind: str, group: Group, size: int, algorithm: str, given: int | None, most: int
    ) -> list[int | None]:
        """Return the number of chunks that is given, or those to try, with `most` pieces."""
        if given is not None:
            return [_cut(size, group.size, given)[1]]
        least = max(size, _LEAST * group.size)
        first = collective_on(kind, self.topology, least, npus=group.members[0])
        largest = min(most // pieces_of(group), least // (_LEAST * group.size))
        return numbers_of_chunks(first, self.topology, algorithm, PlanOptions(), largest=largest)

    def _found(
        self, kind: str, group: Group, size: int, algorithm: str, chunks: int | None
    ) -> _Found:
        """Return what the plans of an algorithm take, with so many chunks."""
        least = max(size, _LEAST * group.size)
        return _Found(algorithm, chunks, self._use(kind, group, least, algorithm, chunks))

    def _collectives(self, kind: str, group: Group, size: int) -> list[_core.Collective]:
        """Return that of each group of the axis."""
        return [collective_on(kind, self.topology, size, npus=npus) for npus in group.members]

    def _use(self, kind: str, group: Group, size: int, algorithm: str, chunks: int | None) -> Use:
        """Return what all groups of the axis take together."""
        collectives = self._collectives(kind, group, size)
        if len(collectives) > 1 and algorithm in _JOINT:
            together = plan_together(
                collectives,
                self.topology,
                algorithm=algorithm,
                chunks=chunks,
                progress=self.progress,
            )
            return use_of(simulate(together, progress=self.progress))
        plans = [
            plan(
                collective,
                self.topology,
                algorithm=algorithm,
                chunks=chunks,
                progress=self.progress,
            )
            for collective in collectives
        ]
        return at_once(plans, self.progress)

    def routing(self, experts: int, top: int) -> Routing | None:
        """Return how tokens go to experts; ``None``: all-to-all, which some algorithms plan alone."""
        if self.experts is None or self.algorithm not in (AUTO, *_JOINT):
            return None
        is_plain = top == 1 and not self.experts.model_fields_set
        return None if is_plain else Routing(experts, top)

    def _tokens(self, group: Group, size: int, routing: Routing) -> Shape:
        """Return the shape of a dispatch and of its combine."""
        there, back = (self._planned(self._routed(kind, group, size, routing)) for kind in ROUTED)
        mean = -(-(there.time_ps + back.time_ps) // 2)
        return self._timed(Use(mean, there.servers | back.servers))

    def _planned(self, collectives: list[_core.Collective]) -> Use:
        """Return what dispatches or combines of all groups of the axis take together."""
        # Steiner trees need somebody to share a token; without, flows are faster than greedy.
        names = (STEINER, FLOWS, GREEDY) if self.algorithm == AUTO else (self.algorithm,)
        whys: list[Error] = []
        for name in names:
            try:
                together = plan_together(
                    collectives,
                    self.topology,
                    algorithm=name,
                    chunks=None if name == FLOWS else self.chunks or 1,
                    progress=self.progress,
                )
            except Error as error:
                whys.append(error)
                continue
            if self.algorithm == AUTO:
                self.makers[len(self.shapes)] = name
            return use_of(simulate(together, progress=self.progress))
        raise whys[0]

    def _routed(
        self, kind: str, group: Group, size: int, routing: Routing
    ) -> list[_core.Collective]:
        """Return the dispatch or combine of each group; a planned token stands for several."""
        from hocket.collectives.experts import demands_of  # its library is loaded where it is used

        assert self.experts is not None, "there is a routing"
        given = {name: getattr(self.experts, name) for name in self.experts.model_fields_set}
        npus = group.size * len(group.members)
        tokens = _MOST_TOKENS // (npus * min(routing.top, group.size))
        given.setdefault("tokens", min(max(tokens, _LEAST_TOKENS), _MOST_PER_NPU))
        each = max(1, -(-size // (routing.top * given["tokens"])))
        layer = type(self.experts)(**given, **routing._asdict(), size=each)
        made = []
        for members in group.members:
            try:
                rows = demands_of(kind, layer, self.topology, members)
            except SpecError as error:
                raise SpecError("dispatch", f"{error.field}: {error.why}", error.remedy) from None
            made.append(_core.Collective.custom(list(members), rows, True, kind))
        return made

    def _message(self, group: Group, rank: int, to: int, size: int) -> Shape:
        if self.algorithm == NOTHING:
            return Shape.timed(0, 0)
        plans = [
            plan(
                "broadcast",
                self.topology,
                size=size,
                npus=[members[rank], members[to]],
                root=members[rank],
                algorithm=DIRECT,
                chunks=1,
            )
            for members in group.members
        ]
        return self._timed(at_once(plans, self.progress))

    def _timed(self, use: Use) -> Shape:
        self._uses[len(self.shapes)] = use.servers
        return Shape.timed(use.time_ps, 0)
