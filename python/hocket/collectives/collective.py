"""Collectives: what has to be done, among which NPUs, on how many bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hocket import _core
from hocket._checks import did_you_mean, index_of, instance_of, is_decimal, list_of, truth
from hocket.errors import SpecError
from hocket.topology.sources import TopologyLike, as_topology
from hocket.units import Quantity, parse_size, shown

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class CollectiveKeywords(TypedDict, total=False):
        """Keywords of :func:`collective_on` in calls that make a collective."""

        npus: Sequence[int | str] | str | None
        root: int | str | None
        in_place: bool


_MAX_CHUNKS = 1 << 32
_MAX_DIGITS = 20

Progress = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)`` a few times a second during long work.

If it has methods `step` and `best` with these arguments, they hear of the steps of all the work, and of the
best result so far.
"""

KINDS = (
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all-to-all",
)
"""The kinds of collectives."""
ROOTED = ("broadcast", "reduce", "gather", "scatter")
"""Those in which one rank has, or gets, what the others do not."""
_SPELLINGS = {kind.replace("-", ""): kind for kind in KINDS}
"""Kinds by their names without hyphens: allreduce and all_reduce are all-reduce."""


def tell_step(progress: Progress | None, what: str, done: int, total: int) -> None:
    """Tell that `done` of `total` steps of all the work are done, and what comes now."""
    if progress is not None:
        getattr(progress, "step", progress)(what, done, total)


def tell_best(progress: Progress | None, text: str, done: int, total: int) -> None:
    """Tell what is the best so far, after `done` of `total` steps of all the work."""
    if progress is not None:
        getattr(progress, "best", progress)(text, done, total)


class StepsOf:
    """Hears of the steps of one of several equal parts of all the work, as steps of all."""

    def __init__(self, progress: Progress, place: int, count: int, about: str = "") -> None:
        self._progress, self._place, self._count, self._about = progress, place, count, about

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Pass on a stage."""
        self._progress(stage, done, total)

    def step(self, what: str, done: int, total: int) -> None:
        """Pass on a step."""
        done, total = self._place * total + done, self._count * total
        tell_step(self._progress, self._about + what, done, total)


def within_step(progress: Progress | None) -> Progress | None:
    """Return what hears of the stages of a step, and takes steps in it for such stages."""
    if progress is None or not hasattr(progress, "step"):
        return progress
    return lambda stage, done, total: progress(stage, done, total)


def collective_on(
    kind: str,
    topology: TopologyLike,
    size: Quantity,
    *,
    npus: Sequence[int | str] | str | None = None,
    root: int | str | None = None,
    in_place: bool = True,
) -> _core.Collective:
    """Make a collective among NPUs of a topology.

    Parameters
    ----------
    kind
        ``all-reduce``, ``reduce-scatter``, ``all-gather``, ``broadcast``, ``reduce``, ``gather``,
        ``scatter`` or ``all-to-all``.
    size
        Bytes, or text such as ``"256 MB"`` or, as nccl-tests has it, ``"256M"`` (MiB).
    npus
        Participants in rank order, by number or name, or as text: ``"0-3,gpu7"``; all NPUs by default.
    root
        The root, by number or name; the first participant by default.
    in_place
        Whether the result overwrites the input.

    Raises
    ------
    SpecError
        If anything of it makes no sense.
    """
    topology = as_topology(topology)
    kind = kind_of(kind)
    if isinstance(npus, str):
        npus = _listed(npus, topology)
    numbers = (
        list(range(topology.npu_count))
        if npus is None
        else [npu_number(topology, npu, "npus") for npu in list_of("npus", npus)]
    )
    rank = None
    if root is not None:
        if (
            isinstance(root, str)
            and is_decimal(root, _MAX_DIGITS)
            and root not in topology.device_names
        ):
            root = int(root)
        number = npu_number(topology, root, "root")
        if number not in numbers:
            raise SpecError(
                "root", f"NPU {root!r} does not take part", "choose one of the participants"
            )
        rank = numbers.index(number)
    nothing = isinstance(size, int | float) and not isinstance(size, bool) and size == 0
    size = 0 if nothing else parse_size(size, field="size")
    return _core.Collective(kind, numbers, size, rank, truth("in_place", in_place))


def _listed(text: str, topology: _core.Topology) -> list[int | str]:
    """Read names, numbers and ranges of numbers, separated by commas."""
    names = set(topology.device_names)
    npus: list[int | str] = []
    for item in (part.strip() for part in text.split(",")):
        first, dash, last = item.partition("-")
        if item in names:
            npus.append(item)
        elif is_decimal(item, _MAX_DIGITS):
            npus.append(int(item))
        elif (
            dash
            and is_decimal(first, _MAX_DIGITS)
            and is_decimal(last, _MAX_DIGITS)
            and int(first) <= int(last)
        ):
            if int(last) >= topology.npu_count:
                raise SpecError(
                    "npus", f"there is no NPU {last}", f"NPUs are 0 to {topology.npu_count - 1}"
                )
            npus.extend(range(int(first), int(last) + 1))
        else:
            wrong = f"{shown(item)} is neither a name, a number nor a range such as 0-3"
            raise SpecError("npus", wrong)
    return npus


KEYWORDS = ("npus", "root", "in_place")
"""What a call that makes a collective may say by keyword."""


def collective_of(
    kind: str | _core.Collective,
    topology: _core.Topology,
    size: int | str | None,
    keywords: Mapping[str, Any],
) -> tuple[_core.Collective, dict[str, Any]]:
    """Return the collective that a call names or hands in, and the keywords that are not about it.

    Raises
    ------
    SpecError
        As :func:`collective_on`; and where a collective that is made is given what it has.
    """
    own = {name: keywords[name] for name in KEYWORDS if name in keywords}
    rest = {name: value for name, value in keywords.items() if name not in own}
    if not isinstance(kind, _core.Collective):
        if size is None:
            raise SpecError("size", "there is none", 'give bytes, or text such as "256 MB"')
        return collective_on(kind, topology, size, **own), rest
    for name in (*own, *(() if size is None else ("size",))):
        raise SpecError(name, "a collective that is made has its own", "leave it out")
    if kind.npus and max(kind.npus) >= topology.npu_count:
        raise SpecError(
            "kind",
            f"the collective is among NPUs up to {max(kind.npus)}",
            f"NPUs of topology {topology.name!r} are 0 to {topology.npu_count - 1}",
        )
    return kind, rest


def kind_of(text: str) -> str:
    """Return a kind as the core names it.

    Raises
    ------
    SpecError
        If there is no such kind.
    """
    kind = spelled(text)
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS, f"kinds are {', '.join(KINDS)}")
        raise SpecError(None, f"there is no collective {shown(text)}", hint)
    return kind


def spelled(text: str) -> str:
    """Return a kind as the core writes it; what is none is left as it is."""
    return _SPELLINGS.get(str(text).lower().replace("_", "").replace("-", ""), str(text))


def joined(collectives: Sequence[_core.Collective]) -> _core.Collective:
    """Make one custom collective that has the demands of several.

    Raises
    ------
    SpecError
        If there is none.
    """
    several = list_of("collectives", collectives)
    if not several:
        raise SpecError("collectives", "there is none", "give one or more")
    for each in several:
        instance_of(_core.Collective, "collectives", each, "make one with hk.collective_on(...)")
    made = _core.Collective.joined(several)
    names = {each.name for each in several}
    if len(several) == 1 or len(names) > 1:
        return made
    name = f"{len(several)} x {names.pop()}"
    return _core.Collective.custom(made.npus, made.demands(), made.in_place, name)


def npu_number(topology: _core.Topology, npu: int | str, field: str) -> int:
    """Return the number of an NPU that ``field`` names by number or name.

    Raises
    ------
    SpecError
        If there is no such NPU.
    """
    if isinstance(npu, str):
        try:
            number = topology.device_index(npu)
        except UnicodeEncodeError:
            raise SpecError(field, f"{npu!r} is not text in UTF-8", "name an NPU") from None
        except SpecError as error:
            raise SpecError(field, str(error)) from None
        if number >= topology.npu_count:
            raise SpecError(field, f"{npu!r} is a switch", "name an NPU")
        return number
    try:
        number = index_of(npu)
    except TypeError:
        number = -1
    if not 0 <= number < topology.npu_count:
        raise SpecError(
            field, f"there is no NPU {shown(npu)}", f"NPUs are 0 to {topology.npu_count - 1}"
        )
    return number


def check_chunks(chunks: int | None) -> None:
    """Refuse what is not a number of chunks.

    Raises
    ------
    SpecError
        If it is none, or 2^32 or more.
    """
    if chunks is None:
        return
    if type(chunks) is not int or chunks < 1:
        raise SpecError("chunks", f"{chunks!r} is not a number of chunks", "give 1 or more")
    if chunks >= _MAX_CHUNKS:
        raise SpecError("chunks", f"{chunks} is 2^32 or more", "give fewer")
