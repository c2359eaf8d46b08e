"""A group of processes, and the collectives that it does on arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from hocket._checks import index_of, instance_of, whole
from hocket._core.runtime import Group, Program, Store
from hocket._options import seconds
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.plan import Plan
from hocket.runtime.arrays import DTYPES, OF_BOOLS, Bytes, Numbers, check_op, numbers, target
from hocket.runtime.pending import Pending, Worker
from hocket.runtime.programs import Programs, program_for

if TYPE_CHECKING:
    from typing_extensions import Self

    from hocket.runtime.table import PlanTable

T = TypeVar("T")
Array = npt.NDArray[Any]


@dataclass(slots=True)
class Call:
    """A collective on bytes: what it reads and what it writes, of which either may be none here."""

    kind: str
    root: int
    op: str
    dtype: str
    elements: int
    """Numbers of the whole vector."""
    source: Bytes | None
    result: Bytes | None
    plan: Plan | None


class Communicator:
    """A group of processes; :func:`hocket.runtime.connect` makes it.

    All ranks make the same calls in the same order. Each returns when this rank has its result. A call that
    fails raises :class:`hocket.TransportError` at every rank and ends the group: all later calls raise
    the same, the arrays of the failed one hold anything, and :meth:`survivors` makes a new group.

    Arrays are those of NumPy, or anything with DLPack or the buffer protocol in this host's memory. One
    that is only read may be strided, and is copied then; one that is written must lie in one piece.
    Nothing is assumed of alignment.

    In every method, `plan` is a plan of that collective for as many ranks: it is run as it is, at any
    size, over TCP, or through shared memory if `connect` was told so. Without, the group's table of
    plans says what is run; where it says nothing, memory is shared if that is possible, and otherwise
    a plan is chosen by size. `dtype` says what elements are that NumPy does not know, as ``bfloat16`` in
    an array of ``uint16``.
    """

    def __init__(
        self,
        group: Group,
        *,
        store: Store | None = None,
        join: Callable[[str, int, int], Group] | None = None,
        by_memory: bool = False,
        table: PlanTable | None = None,
        outward: bool = False,
    ) -> None:
        self._outward = outward
        self._group = group
        self._store = store
        self._join = join
        self._by_memory = by_memory
        self._table = table
        self._programs = Programs(outward=outward)
        self._worker = Worker()
        self._groups = 0
        self._needs_no_plan = table is None and group.shares
        self._own: Callable[[Call], bool] | None = None

    @property
    def rank(self) -> int:
        """The rank of this process, from 0."""
        return self._group.rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._group.size

    @property
    def transport(self) -> str:
        """The transport of calls that name no plan: ``shared`` or ``tcp``."""
        return "shared" if self._group.shares else "tcp"

    @property
    def plan_transport(self) -> str:
        """The transport of calls that name a plan: ``shared`` or ``tcp``."""
        return "shared" if self._by_memory and self._group.shares else "tcp"

    @property
    def table(self) -> PlanTable | None:
        """The plan table for calls that name no plan."""
        return self._table

    @property
    def old_ranks(self) -> tuple[int, ...]:
        """The rank of each in the group that failed before; in a first group, its own."""
        return tuple(self._group.old_ranks)

    def check_shared(self) -> None:
        """Refuse to go on without shared memory.

        Raises
        ------
        InfeasibleError
            If the ranks share none.
        """
        if not self._group.shares:
            self.close()
            raise InfeasibleError("transport", "the ranks cannot share memory", "use tcp")

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = "float32") -> Array:
        """Make an array in memory that all ranks see: collectives on it copy nothing through the window.

        All ranks call it alike, and each gets an array of its own. Where ranks share no memory it is an
        array like any other. Its memory is freed when all ranks have forgotten their arrays.

        Parameters
        ----------
        shape, dtype
            As of :func:`numpy.empty`.

        Raises
        ------
        SpecError
            If there are no such arrays.
        InfeasibleError
            If a rank cannot map so much memory.
        TransportError
            If ranks ask for different sizes, or as :meth:`all_reduce`.
        """
        try:
            kind = np.dtype(dtype)
            like = np.broadcast_to(np.zeros((), kind), shape)
        except (TypeError, ValueError) as error:
            raise SpecError("shape", f"makes no array: {error}", "give lengths of axes") from None
        if kind.hasobject:
            raise SpecError("dtype", "holds objects of Python", "give numbers")
        if not kind.isnative:
            raise SpecError("dtype", f"{kind} is not in this machine's order of bytes", "turn it")
        if not self._group.shares:
            return np.empty(like.shape, kind)
        memory = self._in_order(lambda: self._group.allocate(like.nbytes))
        if memory is None:
            raise InfeasibleError("shape", f"a rank cannot map {like.nbytes} bytes for each")
        return np.asarray(memory[: like.nbytes].view(kind).reshape(like.shape))

    def all_reduce(
        self,
        array: Any,
        op: str = "sum",
        *,
        out: Any = None,
        plan: Plan | None = None,
        dtype: str | None = None,
    ) -> Array:
        """Combine arrays of one shape from all ranks; every rank gets the result.

        Parameters
        ----------
        array
            This rank's.
        op
            ``sum``, ``product``, ``min``, ``max`` or ``average``; integers wrap and have no average.
            A sum of truth values is whether any is true, a product whether all are.
        out
            Where the result goes; it may be `array` itself. By default a new array.
        plan, dtype
            See the class.

        Returns
        -------
        array
            `out` as NumPy sees it, or the new array.

        Raises
        ------
        SpecError
            For arrays or options that make no sense.
        TransportError
            If a rank died, stood still, or called something else.
        """
        check_op(op)
        if (
            out is array
            and plan is None
            and dtype is None
            and self._needs_no_plan
            and self._worker.is_idle
            and self._group.reduce_in_place(op, array)
        ):
            done: Array = array
            return done
        given = numbers("array", array, dtype, op)
        result = self._target(given, out, given.array.shape)
        source = given.bytes
        into = source if result.array is given.array else result.bytes
        self._do("all-reduce", 0, op, given, source, into, given.count, plan)
        return result.array

    def reduce(
        self,
        array: Any,
        root: int = 0,
        op: str = "sum",
        *,
        out: Any = None,
        plan: Plan | None = None,
        dtype: str | None = None,
    ) -> Array | None:
        """Combine arrays of one shape from all ranks; `root` gets the result, the others None.

        See :meth:`all_reduce` for parameters and errors; `out` counts at the root only.
        """
        check_op(op)
        given = numbers("array", array, dtype, op)
        result = self._target(given, out, given.array.shape) if self._is(root) else None
        into = None if result is None else result.bytes
        self._do("reduce", root, op, given, given.bytes, into, given.count, plan)
        return None if result is None else result.array

    def reduce_scatter(
        self,
        array: Any,
        op: str = "sum",
        *,
        out: Any = None,
        plan: Plan | None = None,
        dtype: str | None = None,
    ) -> Array:
        """Combine arrays of one shape, and give each rank its part of the result along the first axis.

        The first axis must have a multiple of as many elements as there are ranks. See :meth:`all_reduce`.
        """
        check_op(op)
        given = numbers("array", array, dtype, op)
        result = self._target(given, out, self._part(given))
        self._do("reduce-scatter", 0, op, given, given.bytes, result.bytes, given.count, plan)
        return result.array

    def all_gather(
        self, array: Any, *, out: Any = None, plan: Plan | None = None, dtype: str | None = None
    ) -> Array:
        """Put arrays of one shape after each other along the first axis; every rank gets the result.

        See :meth:`all_reduce`.
        """
        given = numbers("array", array, dtype)
        result = self._target(given, out, self._whole(given))
        count = given.count * self.size
        self._do("all-gather", 0, "sum", given, given.bytes, result.bytes, count, plan)
        return result.array

    def gather(
        self,
        array: Any,
        root: int = 0,
        *,
        out: Any = None,
        plan: Plan | None = None,
        dtype: str | None = None,
    ) -> Array | None:
        """Put arrays of one shape after each other along the first axis at `root`; the others get None.

        See :meth:`all_reduce`; `out` counts at the root only.
        """
        given = numbers("array", array, dtype)
        result = self._target(given, out, self._whole(given)) if self._is(root) else None
        into = None if result is None else result.bytes
        count = given.count * self.size
        self._do("gather", root, "sum", given, given.bytes, into, count, plan)
        return None if result is None else result.array

    def scatter(
        self,
        array: Any,
        root: int = 0,
        *,
        out: Any = None,
        plan: Plan | None = None,
        dtype: str | None = None,
    ) -> Array:
        """Send to each rank its share of the root's array along the first axis.

        Parameters
        ----------
        array
            At the root what is given; elsewhere None.
        root
            Who gives.
        out
            Where the part goes; needed at all ranks but the root, which learn its shape from it.
        plan, dtype
            See the class.

        Returns
        -------
        array
            The part.

        Raises
        ------
        SpecError, TransportError
            As :meth:`all_reduce`.
        """
        if self._is(root):
            given = numbers("array", array, dtype)
            result = self._target(given, out, self._part(given))
            source, count = given.bytes, given.count
        else:
            if out is None:
                raise SpecError(
                    "out", "is missing", "ranks that give nothing must say what they get"
                )
            given = numbers("out", out, dtype)
            result = target("out", out, given, given.array.shape)
            source, count = None, result.count * self.size
        self._do("scatter", root, "sum", given, source, result.bytes, count, plan)
        return result.array

    def all_to_all(
        self, array: Any, *, out: Any = None, plan: Plan | None = None, dtype: str | None = None
    ) -> Array:
        """Send part i of the array along its first axis to rank i; part i of the result is from rank i.

        The first axis must have a multiple of as many elements as there are ranks. `out` may not be
        `array`. See :meth:`all_reduce`.
        """
        given = numbers("array", array, dtype)
        self._part(given)
        result = self._target(given, out, given.array.shape)
        if result.array.nbytes and np.may_share_memory(given.array, result.array):
            raise SpecError("out", "lies over the array", "give another, or none")
        self._do("all-to-all", 0, "sum", given, given.bytes, result.bytes, given.count, plan)
        return result.array

    def broadcast(
        self, array: Any, root: int = 0, *, plan: Plan | None = None, dtype: str | None = None
    ) -> Array:
        """Copy the root's array over those of all other ranks, which are of the same shape and type.

        See :meth:`all_reduce` for the errors.
        """
        given = numbers("array", array, dtype)
        if self._is(root):
            source = given.bytes
            # A plan's steps may write where the root has its numbers: what it has already.
            room = source if source.flags.writeable else source.copy()
        else:
            source, room = None, target("array", array, given, given.array.shape).bytes
        self._do("broadcast", root, "sum", given, source, room, given.count, plan)
        return given.array

    def barrier(self) -> None:
        """Return when all ranks have called it.

        Raises
        ------
        TransportError
            As :meth:`all_reduce`.
        """
        one = numbers("array", bytes(1), None)
        self._do("all-reduce", 0, "max", one, one.bytes, one.copy().bytes, 1, None)

    def start(self, method: Callable[..., Any], *args: Any, **keywords: Any) -> Pending:
        """Start a call and go on; it is made after those that were started before.

        Parameters
        ----------
        method
            A method of this communicator, as ``comm.all_reduce``.
        args, keywords
            What it gets. Its arrays may be neither read nor written until the call has ended.

        Returns
        -------
        Pending
            Whose :meth:`~Pending.wait` gives the result.
        """
        owner: object = getattr(method, "__self__", None)
        if owner is not self:
            raise SpecError("method", "is not of this communicator", "give comm.all_reduce")
        return self.start_work(lambda: method(*args, **keywords))

    def start_work(self, work: Callable[[], Any]) -> Pending:
        """Start a function that makes calls of this communicator; see :meth:`start`."""
        return self._worker.start(work)

    def run_by(self, own: Callable[[Call], bool]) -> None:
        """Let a function run calls that name no plan; if it returns False, they go on as before."""
        self._own, self._needs_no_plan = own, False

    def group(self, ranks: Iterable[int]) -> Communicator | None:
        """Make a group of some ranks, in that order; all ranks of this one call it alike.

        Parameters
        ----------
        ranks
            Which, each once.

        Returns
        -------
        Communicator or None
            The group, or None at ranks that are not in it.

        Raises
        ------
        SpecError
            If one is not of this group, or is there twice.
        TransportError
            If not all come.
        """
        self._worker.check_open()
        try:
            chosen = [index_of(rank) for rank in ranks]
        except TypeError:
            raise SpecError("ranks", f"{ranks!r} are no ranks", "give a list, as [0, 2]") from None
        for rank in chosen:
            if not 0 <= rank < self.size:
                raise SpecError("ranks", f"{rank!r} is not a rank of 0 to {self.size - 1}")
        if len(set(chosen)) != len(chosen) or not chosen:
            raise SpecError("ranks", "are none, or one is there twice", "give each once")
        if self._join is None:
            raise InfeasibleError("group", "this group was not made by connect")
        self._groups += 1
        if self.rank not in chosen:
            return None
        name = f"{self._group.number}.{self._groups}"
        made = self._join(name, chosen.index(self.rank), len(chosen))
        return self._like(made)

    def abort(self, why: str = "it was asked to") -> None:
        """End the group: calls of all ranks, under way or later, fail and name this rank."""
        self._group.abort(why)

    def survivors(self, timeout: str | float = "5 s") -> Communicator:
        """Make a group of the ranks that are left after a failure; all of them call it.

        Parameters
        ----------
        timeout
            How long a rank that is alive may take to come; without those that do not, the others go on.

        Returns
        -------
        Communicator
            Its :attr:`old_ranks` says who is in it. Ranks keep their order.

        Raises
        ------
        TransportError
            If the store is gone: it then should have run in a process of its own.
        """
        return self._like(self._group.shrink(seconds(timeout, "timeout")))

    def close(self) -> None:
        """Leave the group, after calls that were started."""
        self._worker.close()
        self._group.close()
        self._store = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not self._worker.is_idle:
            self.abort(f"it raised {kind.__name__}")  # a call under way might wait for long
        self.close()

    def __repr__(self) -> str:
        return f"<Communicator: rank {self.rank} of {self.size}, {self.transport}>"

    def _like(self, group: Group) -> Communicator:
        return Communicator(
            group,
            store=self._store,
            join=self._join,
            by_memory=self._by_memory,
            table=self._table,
            outward=self._outward,
        )

    def _is(self, root: object) -> bool:
        return self.rank == whole("root", root, 0, self.size - 1)

    def _target(self, like: Numbers, out: Any, shape: tuple[int, ...]) -> Numbers:
        return like.empty(shape) if out is None else target("out", out, like, shape)

    def _part(self, given: Numbers) -> tuple[int, ...]:
        shape = given.array.shape
        if not shape or shape[0] % self.size:
            first = "no axis" if not shape else f"{shape[0]} elements along its first axis"
            raise SpecError("array", f"has {first}", f"give a multiple of {self.size}")
        return (shape[0] // self.size, *shape[1:])

    def _whole(self, given: Numbers) -> tuple[int, ...]:
        shape = given.array.shape or (1,)
        return (shape[0] * self.size, *shape[1:])

    def _do(
        self,
        kind: str,
        root: int,
        op: str,
        given: Numbers,
        source: Bytes | None,
        result: Bytes | None,
        elements: int,
        plan: Plan | None,
    ) -> None:
        """Make a call now, after those that were started."""
        if plan is not None:
            instance_of(Plan, "plan", plan, "give what hk.plan gives")
        op = OF_BOOLS.get(op, op) if given.array.dtype.kind == "b" else op
        source = self._apart(kind, source, result)
        call = Call(kind, root, op, given.dtype, elements, source, result, plan)
        self._in_order(lambda: self._run(call))

    def _apart(self, kind: str, source: Bytes | None, result: Bytes | None) -> Bytes | None:
        """Return the source, or a copy if the result would overwrite data that is still to be read."""
        if source is None or result is None or kind in ("all-reduce", "broadcast"):
            return source
        if not np.may_share_memory(source, result):
            return source
        place = result
        if kind == "all-gather":
            place = result[self.rank * len(source) : (self.rank + 1) * len(source)]
        is_in_place = kind in ("all-gather", "reduce") and _is_same(source, place)
        return source if is_in_place else source.copy()

    def _in_order(self, work: Callable[[], T]) -> T:
        """Do something now, after the calls that were started."""
        if self._worker.is_idle or self._worker.is_inside:
            return work()
        done: T = self._worker.start(work).wait()
        return done

    def _run(self, call: Call) -> None:
        if call.plan is not None or self._own is None or not self._own(call):
            self.run_call(call)

    def run_call(self, call: Call) -> None:
        """Make a call at once, by its plan or as the group's table and transport say."""
        numbers_of = (call.dtype, call.op, call.elements)
        program, by_memory = self._chosen(call)
        if program is None:
            self._group.exchange(call.kind, call.root, *numbers_of, call.source, call.result)
            return
        if not program.in_place:
            arrays = (call.source, call.result)
            self._group.run(program, *numbers_of, *arrays, by_memory=by_memory)
            return
        work, part = call.result, slice(None)
        if call.kind == "all-gather":
            assert call.source is not None
            part = slice(self.rank * len(call.source), (self.rank + 1) * len(call.source))
        elif call.kind == "reduce-scatter" or work is None:
            assert call.source is not None
            work = call.source.copy()
        assert work is not None
        into = work[part]
        if call.source is not None and not _is_same(call.source, into):
            into[:] = call.source
        self._group.run(program, *numbers_of, work, by_memory=by_memory)
        if call.kind == "reduce-scatter":
            assert call.result is not None
            own = self.rank * len(call.result)
            call.result[:] = work[own : own + len(call.result)]

    def _chosen(self, call: Call) -> tuple[Program | None, bool]:
        """Return what a call runs, none for an exchange through the window, and whether by memory."""
        shares = self._group.shares
        if call.plan is not None:
            program = self._programs.of(call.plan, call.kind, self.size, call.root)
            return program, shares and self._by_memory
        size = call.elements * DTYPES[call.dtype]
        if self._table is not None:
            choice = self._table.choice(call.kind, self.size, call.root, size)
            if choice is not None and (choice.program is not None or shares):
                return choice.program, shares and choice.transport == "shared"
        if shares:
            return None, True
        return program_for(call.kind, self.size, call.root, size, outward=self._outward), False


def _is_same(one: Bytes, other: Bytes) -> bool:
    places = (each.__array_interface__["data"][0] for each in (one, other))
    return len(one) == len(other) and len(set(places)) == 1
