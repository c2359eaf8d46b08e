"""Collectives of one's own: any demands, and the patterns that have no kind of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TypeAlias

from hocket import _core
from hocket._checks import check_name, list_of, path_of, truth
from hocket.collectives.collective import npu_number
from hocket.errors import SpecError
from hocket.topology.sources import TopologyLike, as_topology
from hocket.units import Quantity, parse_size, shown

Npus: TypeAlias = int | str | Sequence[int | str] | None
"""One NPU by number or name, several, or ``None`` for all participants."""


@dataclass(frozen=True)
class Demand:
    """Some bytes, who has them before and who must have them after.

    Attributes
    ----------
    size
        Bytes, or text such as ``"1 MB"``.
    holders
        Who has them before: an NPU by number or name, several, or ``None`` for all participants.
    wanted
        Who must have them after, likewise.
    sum
        Whether each holder has a vector of its own, and those who want it must get the sum of all.
        Otherwise every holder has the same bytes.
    """

    size: Quantity
    holders: Npus
    wanted: Npus
    sum: bool = False


def collective(
    topology: TopologyLike,
    demands: Iterable[Demand],
    *,
    npus: Sequence[int | str] | None = None,
    name: str = "custom",
    in_place: bool = True,
) -> _core.Collective:
    """Make a collective of one's own.

    Parameters
    ----------
    topology
        The network whose NPUs take part.
    demands
        What has to be done, each a :class:`Demand`.
    npus
        Participants, by number or name; by default all that a demand names, or all NPUs where one says
        ``None``.
    name
        What it is called in what is printed.
    in_place
        Whether the result overwrites the input.

    Raises
    ------
    SpecError
        Naming the demand and what is wrong with it.

    Examples
    --------
    >>> import hocket as hk
    >>> topo = hk.topology.ring(4, bandwidth="25 GB/s", latency="1 us")
    >>> wanted = [hk.Demand("1 MB", 0, [2, 3]), hk.Demand(500_000, None, 1, sum=True)]
    >>> hk.collective(topo, wanted, name="mix")
    <Collective mix: 4 NPUs, 1500000 B>
    """
    topology = as_topology(topology)
    check_name(name)
    truth("in_place", in_place)
    rows: list[tuple[int, bool, list[int] | None, list[int] | None]] = []
    for number, demand in enumerate(list_of("demands", demands)):
        try:
            rows.append(_row(topology, demand))
        except SpecError as error:
            raise error.within(f"demand {number}") from None
    if not rows:
        raise SpecError("demands", "there is none", "give one or more")
    return _core.Collective.custom(_participants(topology, npus, rows), rows, in_place, name)


def all_to_all_v(
    topology: TopologyLike,
    sizes: Sequence[Sequence[Quantity]],
    *,
    npus: Sequence[int | str] | None = None,
    name: str = "all-to-all-v",
) -> _core.Collective:
    """Make an all-to-all in which each pair has a size of its own.

    Parameters
    ----------
    topology
        The network.
    sizes
        A matrix: ``sizes[i][j]`` is what participant i sends to participant j, bytes or text with a unit.
        Zeros send nothing, and the diagonal stays where it is.
    npus
        Participants in the order of rows and columns; the first NPUs by default.
    name
        What it is called.

    Raises
    ------
    SpecError
        Naming the row and column that is wrong.
    """
    topology = as_topology(topology)
    rows = [list_of("sizes", row) for row in list_of("sizes", sizes)]
    given = range(len(rows)) if npus is None else list_of("npus", npus)
    who = [npu_number(topology, npu, "npus") for npu in given]
    if len(who) != len(rows):
        raise SpecError(
            "sizes", f"there are {len(rows)} rows for {len(who)} NPUs", "give one for each"
        )
    demands = []
    for i, row in enumerate(rows):
        if len(row) != len(rows):
            why = f"row {i} has {len(row)} entries, and there are {len(rows)} rows"
            raise SpecError("sizes", why, "give a square matrix")
        for j, entry in enumerate(row):
            size = _size(entry, f"sizes[{i}][{j}]")
            if size and i != j:
                demands.append(Demand(size, who[i], who[j]))
    return collective(topology, demands, npus=who, name=name)


def send_receive(
    topology: TopologyLike,
    sends: Iterable[tuple[int | str, int | str, Quantity]],
    *,
    name: str = "send-receive",
) -> _core.Collective:
    """Make a list of messages, all at once.

    Parameters
    ----------
    topology
        The network.
    sends
        Sender, receiver and size of each, as ``(0, "gpu3", "1 MB")``.
    name
        What it is called.

    Raises
    ------
    SpecError
        Naming the message that is wrong.
    """
    topology = as_topology(topology)
    demands = []
    for number, row in enumerate(list_of("sends", sends)):
        try:
            src, dst, size = row
        except (TypeError, ValueError):
            right = 'give its sender, receiver and size, as (0, 1, "1 MB")'
            raise SpecError(f"sends[{number}]", f"{shown(row)} is not a send", right) from None
        if npu_number(topology, src, "src") == npu_number(topology, dst, "dst"):
            raise SpecError(f"sends[{number}]", f"NPU {src} sends to itself", "name another")
        demands.append(Demand(size, src, dst))
    return collective(topology, demands, name=name)


def neighbor_exchange(
    topology: TopologyLike,
    size: Quantity,
    *,
    neighbors: Mapping[int | str, Sequence[int | str]] | None = None,
    same: bool = False,
    name: str = "neighbor-exchange",
) -> _core.Collective:
    """Make an exchange between neighbours, as of halos.

    Parameters
    ----------
    topology
        The network.
    size
        Bytes that each sends to each of its neighbours.
    neighbors
        To whom each sends; by default those that it has a link to.
    same
        Whether a sender's neighbours all get the same bytes, instead of different ones.
    name
        What it is called.

    Raises
    ------
    SpecError
        If nobody has a neighbour, or a neighbour is not an NPU.
    """
    topology = as_topology(topology)
    truth("same", same)
    given: Mapping[int | str, Sequence[int | str]] = {}
    given = _linked(topology) if neighbors is None else neighbors
    if not isinstance(given, Mapping):
        right = "give a mapping of each to those it sends to"
        raise SpecError("neighbors", f"{shown(given)} is not a mapping", right)
    demands = []
    for npu, others in given.items():
        npu = npu_number(topology, npu, "neighbors")
        them = [npu_number(topology, each, "neighbors") for each in list_of("neighbors", others)]
        if them and same:
            demands.append(Demand(size, npu, them))
        elif not same:
            demands += [Demand(size, npu, other) for other in them]
    if not demands:
        raise SpecError("neighbors", "nobody has any", "name them: {0: [1, 2], ...}")
    return collective(topology, demands, name=name)


ROUTED = ("dispatch", "combine")
"""Collectives of experts, which their words say alone: ``dispatch:experts=256,top=8``."""


def is_in_words(text: str) -> bool:
    """Return whether what stands for a collective says all of it."""
    return text.partition(":")[0] in ROUTED


def is_own(text: str) -> bool:
    """Return whether what stands for a collective is a file, by its ending, or says all of it."""
    return is_in_words(text) or text.lower().endswith((".yml", ".yaml", ".json"))


def load_collective(path: str | PathLike[str], topology: TopologyLike) -> _core.Collective:
    """Read a collective of one's own from a YAML or JSON file, or from the words of one.

    Parameters
    ----------
    path
        The file; docs/own-plans.md says what it may have, and ``python -m hocket.cli.schema collective``
        says it to editors. Or ``dispatch:`` or ``combine:`` and what docs/moe.md lists, as
        ``"dispatch:experts=256,top=8"``.
    topology
        The network whose NPUs it names.

    Raises
    ------
    SpecError
        With the file, the line and the key that is wrong.
    """
    from hocket.collectives.yaml import collective_from_words, read_collective

    if isinstance(path, str) and is_in_words(path):
        return collective_from_words(path, as_topology(topology))
    return read_collective(path_of("path", path), as_topology(topology))


def _linked(topology: _core.Topology) -> dict[int | str, Sequence[int | str]]:
    """Whom each NPU has a link to, through no switch."""
    found: dict[int | str, dict[int | str, None]] = {npu: {} for npu in range(topology.npu_count)}
    ends = zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True)
    for src, dst in sorted(ends):
        if src < topology.npu_count and dst < topology.npu_count:
            found[src][dst] = None
    return {npu: list(others) for npu, others in found.items()}


def _row(
    topology: _core.Topology, demand: object
) -> tuple[int, bool, list[int] | None, list[int] | None]:
    if not isinstance(demand, Demand):
        right = "write it as hk.Demand(size, holders, wanted)"
        raise SpecError(None, f"{shown(demand)} is not a Demand", right)
    truth("sum", demand.sum)
    size = parse_size(demand.size, field="size")
    holders = _numbers(topology, demand.holders, "holders")
    return size, demand.sum, holders, _numbers(topology, demand.wanted, "wanted")


def _numbers(topology: _core.Topology, npus: Npus, field: str) -> list[int] | None:
    if npus is None:
        return None
    many = [npus] if isinstance(npus, str) or not isinstance(npus, Iterable) else npus
    try:
        numbers = [npu_number(topology, npu, field) for npu in many]
    except (TypeError, ValueError) as error:
        if isinstance(error, SpecError):
            raise
        right = "give an NPU by number or name, or several"
        raise SpecError(field, f"{shown(npus)} names no NPU", right) from None
    if not numbers:
        raise SpecError(field, "there is nobody", "name one NPU or more, or None for all")
    return numbers


def _participants(
    topology: _core.Topology,
    npus: Sequence[int | str] | None,
    rows: Sequence[tuple[int, bool, list[int] | None, list[int] | None]],
) -> list[int]:
    if npus is not None:
        return [npu_number(topology, npu, "npus") for npu in list_of("npus", npus)]
    if any(holders is None or wanted is None for _, _, holders, wanted in rows):
        return list(range(topology.npu_count))
    return sorted({npu for _, _, *sets in rows for each in sets for npu in each or ()})


def _size(entry: Quantity, field: str) -> int:
    """Read a size, of which 0 is one too."""
    if isinstance(entry, str):
        return parse_size(entry, field=field)
    try:
        return parse_size(entry, field=field) if float(entry) != 0 else 0
    except (TypeError, ValueError) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(field, f"{shown(entry)} is not a size", 'give bytes, or "1 MB"') from None
