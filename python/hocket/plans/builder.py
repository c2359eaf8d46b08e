"""Plans of one's own, transfer by transfer."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn

from hocket import _core
from hocket._checks import check_name, one_of, whole
from hocket.collectives.collective import npu_number
from hocket.errors import SpecError
from hocket.plans.places import COPY, READ, SUM, Places
from hocket.plans.synthesis.options import checked_routing
from hocket.units import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hocket.plans.plan import Plan

_NOTHING = _core.Plan.NO_WAIT
_GROUP = _core.Plan.GROUP
_MAX_CHUNKS = 1 << 31
_COLUMNS = ("chunk", "chunk_count", "src", "dst", "op", "wait", "path")


class PlanBuilder:
    """Makes a plan of one's own, transfer by transfer.

    The transfers are written down in an order in which they would be right if each ran alone, one after the
    other. By default each waits for the earlier ones that it conflicts with: what brought the chunk to its
    sender, and what still reads or writes the chunk at its receiver. So a plan that is right step by step
    is right in every order that its waits allow, and nothing else is held up. ``after=`` says otherwise.

    Building is linear in the transfers (and the runs of chunks that they cut each other into); half a
    million take a few seconds.

    Parameters
    ----------
    topology
        The network.
    collective
        What the plan has to do, from :func:`hocket.collective_on` or :func:`hocket.collective`.
    name
        What the plan is called where an algorithm's name stands; by default as the algorithm of your own
        that makes it, or ``own``.
    chunks
        Into how many pieces each demand of the collective is cut. Piece q of demand d is chunk
        ``d * chunks + q``. An all-reduce, a broadcast and a reduce have one demand, the vector; the others
        one block for each participant, in rank order; an all-to-all one for each pair, sender first; a
        collective of your own its demands.
    link_order
        ``"ready"`` where links serve what comes first, ``"plan"`` where they keep to the order of the
        transfers.

    Raises
    ------
    SpecError
        If any of it makes no sense, or a demand has fewer bytes than pieces.

    Examples
    --------
    >>> import hocket as hk
    >>> topo = hk.topology.ring(3, bandwidth="25 GB/s", latency="1 us")
    >>> builder = hk.PlanBuilder(topo, hk.collective_on("reduce", topo, "1 MB"), name="by hand")
    >>> first = builder.reduce(0, 2, 1)
    >>> second = builder.reduce(0, 1, 0)  # waits for the first, which brings it what it sends
    >>> builder.build().verify()
    <Plan by hand reduce on "ring 3": 2 transfers>
    """

    def __init__(
        self,
        topology: _core.Topology,
        collective: _core.Collective,
        *,
        name: str | None = None,
        chunks: int = 1,
        link_order: str = "ready",
    ) -> None:
        check_ends(topology, collective)
        if name is not None:
            check_name(name)
        one_of("link_order", link_order, ("ready", "plan"))
        self._topology = topology
        self._collective = collective
        self._name = name
        self._link_order = link_order
        self._offsets, self._demand = even_chunks(collective, whole("chunks", chunks, 1, 1 << 31))
        self._npus: dict[object, int] = {i: i for i in range(topology.npu_count)}
        for i, can in enumerate(topology.switch_offloads, topology.npu_count):
            if can is not None:
                self._npus[i] = i
        self._npus.update({topology.device_names[i]: i for i in tuple(self._npus.values())})
        self._rows = array("I")
        self._count = 0
        self._groups: list[tuple[int, ...]] = []
        self._known_groups: dict[tuple[int, ...], int] = {}
        self._paths: list[list[int]] = []
        self._known_paths: dict[tuple[object, ...], int] = {}
        self._links: dict[tuple[int, int], int] | None = None
        self._places: dict[int, Places] = {}
        self._barrier = (0, _NOTHING)

    @property
    def topology(self) -> _core.Topology:
        """The network."""
        return self._topology

    @property
    def collective(self) -> _core.Collective:
        """The collective of the plan."""
        return self._collective

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self._demand)

    def copy(
        self,
        chunk: int | range,
        src: int | str,
        dst: int | str,
        *,
        after: int | Iterable[int] | None = None,
        path: Sequence[int | str] | None = None,
    ) -> int:
        """Send chunks that the receiver stores.

        Parameters
        ----------
        chunk
            A chunk, or a ``range`` of consecutive ones that travel as one message.
        src, dst
            Sending and receiving NPU, by number or name; or a switch that can sum or multicast (see
            :func:`hocket.topology.offloaded`).
        after
            What must have ended before it starts: one transfer or barrier, several, or ``()`` for nothing.
            By default the earlier transfers that it conflicts with: those that wrote the chunks at the
            sender, and those that read or wrote them at the receiver.
        path
            The devices on its way, by number or name, from the sender to the receiver; of several links
            between two devices the one with the lowest number. By default the shortest way, or one of
            several equal ones.

        Returns
        -------
        int
            Its number, for ``after=`` and as errors name it.

        Raises
        ------
        SpecError
            Naming the transfer and the argument that is wrong.
        """
        return self._add(chunk, src, dst, COPY, after, path)

    def reduce(
        self,
        chunk: int | range,
        src: int | str,
        dst: int | str,
        *,
        after: int | Iterable[int] | None = None,
        path: Sequence[int | str] | None = None,
    ) -> int:
        """Send chunks that the receiver adds to what it has; see :meth:`copy`.

        Two sums into one place do not wait for each other by default: they may come in any order.
        """
        return self._add(chunk, src, dst, SUM, after, path)

    def barrier(self, after: Iterable[int] | None = None) -> int:
        """Return something to wait for that stands for several transfers, shared by all that wait for it.

        Parameters
        ----------
        after
            Transfers and barriers; all transfers so far by default.

        Returns
        -------
        int
            For ``after=``.
        """
        if after is not None:
            return self._wait(after)
        first, before = self._barrier
        joined = self._join([*([] if before == _NOTHING else [before]), *range(first, len(self))])
        self._barrier = (len(self), joined)
        return joined

    def use_chunks(self, offsets: NDArray[np.uint64], demand: NDArray[np.uint32]) -> None:
        """Take other chunks than even ones, before the first transfer.

        Parameters
        ----------
        offsets
            Running sum of their bytes from 0, (chunks + 1,).
        demand
            Demand that each belongs to, (chunks,).
        """
        self._offsets, self._demand = offsets, demand

    def build(self, name: str = "own", *, routing: str = "balanced") -> Plan:
        """Make the plan of the transfers so far, not yet verified.

        Parameters
        ----------
        name
            What it is called where the builder has no name.
        routing
            How transfers without a path of their own are spread over equal paths: ``balanced``, ``ecmp``,
            ``spray`` or ``single``, as in :class:`hocket.PlanOptions`.

        Raises
        ------
        SpecError
            For another routing.
        """
        import numpy as np

        from hocket.plans.plan import Plan

        rows = np.array(self._rows, np.uint32).reshape(-1, len(_COLUMNS)).T
        columns: dict[str, Any] = {
            name: np.ascontiguousarray(rows[i], np.uint8 if name == "op" else np.uint32)
            for i, name in enumerate(_COLUMNS)
        }
        group_offsets, group_items = _packed(self._groups)
        path_offsets, path_items = _packed(self._paths)
        core = _core.Plan.from_columns(
            self._topology,
            self._collective,
            self._name or name,
            chunk_offsets=self._offsets,
            chunk_demand=self._demand,
            group_offsets=group_offsets,
            group_items=group_items,
            path_offsets=path_offsets,
            path_items=path_items,
            link_order=self._link_order,
            **columns,
        )
        checked = checked_routing(routing)
        return Plan(core.routed(checked) if self._topology.may_have_equal_paths else core)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        what, where = self._collective.name, self._topology.name
        return f"<PlanBuilder {self._name or 'own'} {what} on {where!r}: {len(self)} transfers>"

    def _add(
        self,
        chunk: int | range,
        src: int | str,
        dst: int | str,
        kind: int,
        after: int | Iterable[int] | None,
        path: Sequence[int | str] | None,
    ) -> int:
        number = self._count
        try:
            first, end = self._range(chunk)
            sender, receiver = self._npu(src, "src"), self._npu(dst, "dst")
            if sender == receiver:
                raise SpecError("dst", f"NPU {dst} is the sender, too", "name another NPU")
            given = None if after is None else self._wait(after)
            taken = _NOTHING if path is None else self._path(path, sender, receiver)
        except SpecError as error:
            raise error.within(f"transfer {number}") from None
        waits: list[int] = []
        self._at(sender).enter(first, end, READ, number, waits)
        self._at(receiver).enter(first, end, kind, number, waits)
        wait = self._union(waits) if given is None else given
        self._rows.extend((first, end - first, sender, receiver, kind == SUM, wait, taken))
        self._count = number + 1
        return number

    def _at(self, npu: int) -> Places:
        places = self._places.get(npu)
        if places is None:
            places = self._places[npu] = Places(self.chunks, _NOTHING, self._join)
        return places

    def _range(self, chunk: int | range) -> tuple[int, int]:
        if isinstance(chunk, range):
            if chunk.step != 1 or not chunk:
                raise SpecError(
                    "chunk", f"{chunk} is not a run of chunks", "give one such as range(4, 8)"
                )
            first, end = chunk.start, chunk.stop
        else:
            try:
                first = index(chunk)
            except TypeError:
                raise SpecError(
                    "chunk", f"{shown(chunk)} is not a chunk", "give its number, or a range"
                ) from None
            end = first + 1
        if not 0 <= first < end <= len(self._demand):
            raise SpecError(
                "chunk", f"there is no chunk {shown(chunk)}", f"chunks are 0 to {self.chunks - 1}"
            )
        return first, end

    def _npu(self, npu: int | str, field: str) -> int:
        try:
            return self._npus[npu]
        except (KeyError, TypeError):
            return npu_number(self._topology, npu, field)

    def _wait(self, after: int | Iterable[int]) -> int:
        """Return the wait for what a caller names."""
        if isinstance(after, Iterable) and not isinstance(after, str):
            return self._union([self._handle(each) for each in after])
        return self._handle(after)

    def _handle(self, after: object) -> int:
        try:
            number = index(after)  # type: ignore[arg-type]
        except TypeError:
            _stray(after, len(self))
        is_group = number >= _GROUP
        if number == _NOTHING or (is_group and number - _GROUP < len(self._groups)):
            return number
        if is_group or not 0 <= number < len(self):
            _stray(number, len(self))
        return number

    def _union(self, waits: list[int]) -> int:
        """Return the wait for all of several waits."""
        if len(waits) == 2:  # one chunk, by far the most frequent
            first, second = waits
            if first == second or second == _NOTHING:
                return first
            if first == _NOTHING:
                return second
        return self._join([wait for wait in dict.fromkeys(waits) if wait != _NOTHING])

    def _join(self, waits: list[int]) -> int:
        if not waits:
            return _NOTHING
        if len(waits) == 1:
            return waits[0]
        key = tuple(waits)
        known = self._known_groups.get(key)
        if known is None:
            known = self._known_groups[key] = _GROUP + len(self._groups)
            self._groups.append(key)
        return known

    def _path(self, path: Sequence[int | str], src: int, dst: int) -> int:
        """Return the position of an explicit path, which is found once."""
        devices = () if isinstance(path, str) else tuple(path)
        known = self._known_paths.get(devices)
        if known is None:
            numbers = [self._device(device) for device in devices]
            links = [self._link(*ends) for ends in pairwise(numbers)]
            if len(numbers) < 2 or (numbers[0], numbers[-1]) != (src, dst):
                right = "name the devices from the sender to the receiver, both included"
                raise SpecError("path", f"{shown(path)} does not join them", right)
            known = self._known_paths[devices] = len(self._paths)
            self._paths.append(links)
        elif (self._device(devices[0]), self._device(devices[-1])) != (src, dst):
            right = "name the devices from the sender to the receiver, both included"
            raise SpecError("path", f"{shown(path)} does not join them", right)
        return known

    def _device(self, device: int | str) -> int:
        if isinstance(device, str):
            try:
                return self._topology.device_index(device)
            except SpecError as error:
                raise error.but(field="path") from None
        return whole("path", device, 0, self._topology.device_count - 1)

    def _link(self, src: int, dst: int) -> int:
        if self._links is None:
            ends = zip(
                self._topology.link_src.tolist(), self._topology.link_dst.tolist(), strict=True
            )
            self._links = {}
            for number, each in enumerate(ends):
                self._links.setdefault(each, number)
        found = self._links.get((src, dst))
        if found is None:
            names = self._topology.device_names
            raise SpecError("path", f"there is no link from {names[src]!r} to {names[dst]!r}")
        return found


def check_ends(topology: object, collective: object) -> None:
    """Refuse what is not a topology, no collective, or a collective of NPUs that there are not.

    Raises
    ------
    SpecError
        Naming the one that is wrong.
    """
    if not isinstance(topology, _core.Topology):
        right = "make one, as by hk.topology.load(...)"
        raise SpecError("topology", f"{shown(topology)} is not a Topology", right)
    if not isinstance(collective, _core.Collective):
        right = "make one by hk.collective_on(...) or hk.collective(...)"
        raise SpecError("collective", f"{shown(collective)} is not a Collective", right)
    if max(collective.npus) >= topology.npu_count:
        raise SpecError(
            "collective",
            f"NPU {max(collective.npus)} takes part",
            f"NPUs of topology {topology.name!r} are 0 to {topology.npu_count - 1}",
        )


def even_chunks(
    collective: _core.Collective, pieces: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Cut every demand into pieces whose sizes differ by a byte at most.

    Returns
    -------
    offsets
        Running sum of the chunks' bytes from 0, (chunks + 1,).
    demand
        Demand that each chunk belongs to, (chunks,).

    Raises
    ------
    SpecError
        If a demand has fewer bytes than pieces, or there are too many chunks.
    """
    import numpy as np

    demands = collective.demands()
    if len(demands) * pieces >= _MAX_CHUNKS:
        raise SpecError("chunks", f"{pieces} for each of {len(demands)} demands are 2^31 or more")
    cuts: dict[int, NDArray[np.uint64]] = {}
    for number, (size, *_) in enumerate(demands):
        if size in cuts:
            continue
        if size < pieces:
            raise SpecError(
                "chunks", f"demand {number} has {size} B, too few for {pieces}", "give fewer"
            )
        ends = [size * piece // pieces for piece in range(pieces + 1)]
        lengths = [end - start for start, end in pairwise(ends)]
        cuts[size] = np.array(lengths, np.uint64)
    sizes = np.concatenate([cuts[size] for size, *_ in demands])
    offsets = np.concatenate([np.zeros(1, np.uint64), np.cumsum(sizes, dtype=np.uint64)])
    return offsets, np.repeat(np.arange(len(demands), dtype=np.uint32), pieces)


def _packed(
    lists: Sequence[Sequence[int]],
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return lists as offsets and items."""
    import numpy as np

    offsets = np.zeros(len(lists) + 1, np.uint32)
    np.cumsum([len(each) for each in lists], out=offsets[1:], dtype=np.uint32)
    items = np.fromiter((item for each in lists for item in each), np.uint32, int(offsets[-1]))
    return offsets, items


def _stray(after: object, transfers: int) -> NoReturn:
    right = "give what copy, reduce or barrier returned"
    raise SpecError("after", f"{shown(after)} is none of the {transfers} transfers so far", right)
