"""Plans of one's own, transfer by transfer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from hocket import _core
from hocket._checks import check_name, one_of, whole
from hocket.collectives.timing import LinkOrder
from hocket.errors import SpecError
from hocket.plans.synthesis.options import checked_routing
from hocket.units import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self

    from hocket.plans.plan import Plan

OPS = ("copy", "reduce")
"""What the receiver does with chunks, by the numbers that stand for it in columns."""


class PlanBuilder(_core.PlanBuilder):
    """Makes a plan of one's own, transfer by transfer.

    The transfers are written down in an order in which they would be right if each ran alone, one after the
    other. By default each waits for the earlier ones that it conflicts with: what brought the chunk to its
    sender, and what still reads or writes the chunk at its receiver. So a plan that is right step by step
    is right in every order that its waits allow, and nothing else is held up. ``after=`` says otherwise.

    Building is linear in the transfers, and in the runs of chunks that they cut each other into. Half a
    million take a tenth of a second.

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
        transfers, ``"priority"`` where they serve by that order what waits.

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

    def __new__(
        cls,
        topology: _core.Topology,
        collective: _core.Collective,
        *,
        name: str | None = None,
        chunks: int = 1,
        link_order: str = "ready",
    ) -> Self:
        """Make a builder without transfers."""
        check_ends(topology, collective)
        if name is not None:
            check_name(name)
        one_of("link_order", link_order, get_args(LinkOrder))
        pieces = whole("chunks", chunks, 1, 1 << 31)
        return super().__new__(  # type: ignore[return-value]  # of the class that is asked for
            cls, topology, collective, name=name, chunks=pieces, link_order=link_order
        )

    def use_chunks(self, offsets: ArrayLike, demand: ArrayLike) -> None:
        """Take other chunks than even ones, before the first transfer.

        Parameters
        ----------
        offsets
            Running sum of their bytes from 0, (chunks + 1,).
        demand
            Demand that each belongs to, (chunks,).

        Raises
        ------
        SpecError
            If these are no chunks, or there is a transfer already.
        """
        given = {"offsets": (offsets, 64), "demand": (demand, 32)}
        columns = [_numbers(name, each, bits=bits) for name, (each, bits) in given.items()]
        for name, column in zip(given, columns, strict=True):
            if not column.ndim:
                raise SpecError(name, f"{column} is one number", "give a list of them")
        super().use_chunks(*columns)

    def extend(
        self,
        op: str | ArrayLike,
        chunk: ArrayLike,
        src: ArrayLike,
        dst: ArrayLike,
        *,
        chunk_count: ArrayLike = 1,
    ) -> range:
        """Send many messages, each as :meth:`copy` or :meth:`reduce` does, from arrays of equal length.

        A single value stands for an array of it. Each message waits for earlier ones that conflict with it.

        Parameters
        ----------
        op
            ``"copy"`` or ``"reduce"``; or for each message 0 for copy, 1 for reduce, (messages,).
        chunk
            First chunk of each message, (messages,).
        src, dst
            Numbers of the senders and receivers, (messages,).
        chunk_count
            How many consecutive chunks each message carries, (messages,).

        Returns
        -------
        range
            Their numbers, for ``after=``.

        Raises
        ------
        SpecError
            Naming the first transfer that is wrong, or the argument. Then nothing is sent.

        Examples
        --------
        >>> import hocket as hk
        >>> topo = hk.topology.ring(4, bandwidth="25 GB/s", latency="1 us")
        >>> builder = hk.PlanBuilder(topo, hk.collective_on("broadcast", topo, "1 MB"))
        >>> builder.extend("copy", 0, [0, 1, 2], [1, 2, 3])
        range(0, 3)
        """
        import numpy as np

        if isinstance(op, str):
            one_of("op", op, OPS)
            op = OPS.index(op)
        elif (sums := np.asarray(op)).dtype == bool:
            op = sums.astype(np.uint32)
        given = {"op": op, "chunk": chunk, "chunk_count": chunk_count, "src": src, "dst": dst}
        columns = [_numbers(name, values) for name, values in given.items()]
        sizes = {column.size for column in columns if column.ndim}
        if len(sizes) > 1:
            lengths = ", ".join(f"{name} {np.size(values)}" for name, values in given.items())
            raise SpecError(None, f"arrays differ in length: {lengths}", "give equal ones")
        if columns[0].max(initial=0) > 1:
            wrong = f"{columns[0].max()} is neither copy (0) nor reduce (1)"
            raise SpecError("op", wrong, 'give "copy", "reduce" or an array of 0 and 1')
        length = sizes.pop() if sizes else 1
        op, *rest = (np.broadcast_to(column, length) for column in columns)
        return range(*self._append(op.astype(np.uint8), *rest))

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
        from hocket.plans.plan import Plan

        return Plan(self._plan(name, checked_routing(routing)))


def _numbers(name: str, values: ArrayLike, bits: int = 32) -> NDArray[np.unsignedinteger[Any]]:
    """Return one or several whole numbers of 32 or 64 bits."""
    import numpy as np

    try:
        given = np.asarray(values)
    except ValueError:
        raise SpecError(
            name, "it holds lists of several lengths", "give a list of numbers"
        ) from None
    if given.dtype.kind not in "ui" and given.size:
        raise SpecError(name, f"it holds {given.dtype}", "give whole numbers")
    if given.ndim > 1:
        raise SpecError(name, f"it has {given.ndim} dimensions", "give a number or a list of them")
    if given.size and not 0 <= int(given.min()) <= int(given.max()) < 1 << bits:
        wrong = f"{shown(int(given.min() if given.min() < 0 else given.max()))} is out of range"
        raise SpecError(name, wrong, f"give whole numbers from 0 to 2^{bits} - 1")
    return given.astype(np.uint32 if bits == 32 else np.uint64)


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
