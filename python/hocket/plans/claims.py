"""A file's claims about the origin of its plan: choice, synthesis and trees.

The claims are in the metadata, beside a hash of the plan and of themselves. They are read only if they
hold: the hash agrees, the plan takes the stated time, the bounds are those of the network, and the cut has
the stated bandwidth and as many roots. Plans of more than 300,000 transfers are not simulated for this:
there, the hash must agree, and claims must not contradict each other or the plan. Claims that do not hold
are left out. What share of a cut trees reach, and the least number of slots, is taken from the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from hocket import _core
from hocket._core import synthesis as core_synthesis
from hocket._memory import memory_limit
from hocket.collectives.timing import Latency
from hocket.errors import Error, SpecError
from hocket.plans.selection import Selection
from hocket.plans.synthesis import Synthesis
from hocket.plans.synthesis.options import ROUNDING
from hocket.plans.trees import Packing, Trees
from hocket.units import format_bandwidth

if TYPE_CHECKING:
    from hocket.plans.plan import Plan

_CHECKED = 300_000
"""Transfers of a plan that is simulated to see whether it takes the stated time."""
_LARGEST = 1 << 64
_OLD_WORDS = (" a root, up to", " per root, up to")
"""Words of a certificate in files of earlier versions, and today's."""
_LISTED = 8
"""Names that the core lists before it leaves some out."""
_CARRIED = {
    "all-reduce": (("sums", "copies"), ("both",)),
    "reduce-scatter": (("sums",),),
    "reduce": (("sums",),),
    "all-gather": (("copies",),),
    "broadcast": (("copies",),),
}
"""What trees of each kind of collective carry."""
_COLUMNS = ("chunk", "chunk_count", "src", "dst", "op", "chunk_offsets", "chunk_demand")


class Claims(NamedTuple):
    """The origin of a plan; each part is None if a file does not state it, or states what does not hold."""

    synthesis: Synthesis | None = None
    trees: Trees | None = None
    selection: Selection | None = None


def claims_to_json(plan: Plan, about: Sequence[str]) -> str | None:
    """Return what is known of how a plan was made, as JSON; None if nothing is.

    How long it took is left out: the same command writes the same file.

    Parameters
    ----------
    about
        The other metadata of the plan, which the hash covers.
    """
    synthesis = None if plan.synthesis is None else replace(plan.synthesis, seconds=0.0)
    made = Claims(synthesis, plan.trees, plan.selection)
    known = {name: asdict(value) for name, value in made._asdict().items() if value is not None}
    if not known:
        return None
    return json.dumps({"hash": _hash(plan.core, about, known), **known})


def claims_from_json(text: str, core: _core.Plan, about: Sequence[str]) -> Claims:
    """Return what :func:`claims_to_json` was given, if it holds of the plan.

    Raises
    ------
    SpecError
        If the text does not say what claims say, whether they hold or not.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        known = json.loads(text)
        stated = known.pop("hash")
        kinds: dict[str, Any] = {"synthesis": Synthesis, "trees": Trees, "selection": Selection}
        read = {
            name: TypeAdapter(kinds[name]).validate_json(
                json.dumps(value).replace(*_OLD_WORDS), strict=True
            )
            for name, value in known.items()
        }
        if not all(0 <= number < _LARGEST for number in _numbers(known)):
            raise ValueError("a number is negative or too large")
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        why = "hocket.claims does not say how a plan was made"
        raise SpecError(None, why, "write the plan again with `hocket plan -o`") from None
    made = Claims(**read)
    if stated != _hash(core, about, known) or not _agree(made) or not _fit(made, core):
        return Claims()
    return made if len(core) > _CHECKED or _hold(made, core) else Claims()


def _hash(core: _core.Plan, about: Sequence[str], known: dict[str, Any]) -> str:
    """Hash a plan, where it runs, and what is said of it."""
    digest = hashlib.sha256()
    for text in (*about, json.dumps(known)):
        digest.update(f"{len(text)} {text}".encode(errors="surrogatepass"))
    for name in _COLUMNS:
        digest.update(getattr(core, name).tobytes())
    return digest.hexdigest()


def _numbers(value: object) -> Iterator[float]:
    """Return every number within values of JSON."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _numbers(each)
    elif isinstance(value, int | float):
        yield value


def _texts(value: object) -> Iterator[str]:
    """Return every text within values of dataclasses."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _texts(each)


def _agree(made: Claims) -> bool:
    """Return whether claims do not contradict themselves or each other, and can be shown."""
    synthesis, trees, selection = made
    fits = all(
        text.isprintable() for each in made if each is not None for text in _texts(asdict(each))
    )
    if synthesis is not None:
        least, least_slots = synthesis.least_ps, synthesis.least_slots or 0
        slots = synthesis.slots or 0
        fits &= least <= synthesis.time_ps and synthesis.status in ("optimal", "feasible")
        given = [
            each is not None for each in (synthesis.slots, synthesis.least_slots, synthesis.slot_ps)
        ]
        fits &= not any(given) or (
            all(given) and synthesis.method == "exact" and slots >= least_slots
        )
        is_least = synthesis.time_ps <= least * (1 + ROUNDING)
        is_least |= given[0] and slots == least_slots
        fits &= is_least or synthesis.status == "feasible"
    if trees is not None:
        fits &= all(0 <= each.reached <= 1 for each in trees.packings)
        fits &= all(each.certificate == _certificate(each) for each in trees.packings)
    if selection is not None:
        fits &= selection.times_ps.get(selection.algorithm) == selection.time_ps
        fits &= selection.time_ps == min(selection.times_ps.values(), default=None)
        fits &= selection.bound_ps <= selection.time_ps
        fits &= selection.ended != "bound" or selection.bound_ps == selection.time_ps
    return fits


def _fit(made: Claims, core: _core.Plan) -> bool:
    """Return whether claims are of such a plan: of its algorithm, its kind of collective, and its size."""
    synthesis, trees, selection = made
    fits = selection is None or selection.algorithm == core.algorithm
    if synthesis is not None:
        # Where greedy is faster than exact's timetable, its plan is taken: slots say nothing of that.
        is_greedy = (synthesis.method, core.algorithm) == ("exact", "greedy")
        fits &= synthesis.method == core.algorithm or is_greedy
        is_least = synthesis.time_ps <= synthesis.least_ps * (1 + ROUNDING)
        fits &= synthesis.status == "feasible" or is_least or not is_greedy
        fits &= synthesis.simulated or len(core) > _CHECKED
        fits &= synthesis.unwind.count(",") < max(len(core.topology.dimensions), 1)
    if trees is not None:
        carries = tuple(each.carries for each in trees.packings)
        fits &= carries in ((), *_CARRIED.get(core.collective.kind, ()))
        fits &= all(_is_cut(each, core) for each in trees.packings)
    return fits


def _certificate(packing: Packing) -> str:
    """Write what a packing states as the core writes it."""

    def listed(items: Sequence[str]) -> str:
        if len(items) <= _LISTED:
            return ", ".join(items)
        return f"{', '.join(items[:4])}, ... {items[-1]} ({len(items)} in all)"

    def counted(count: int, what: str) -> str:
        return f"{count} {what}{'s'[: count != 1]}"

    sets = [f"{{{listed(part)}}}" for part in packing.parts]
    is_single = all(len(part) == 1 for part in packing.parts)
    share = f"{round(packing.reached * 1e6) / 10_000}".removesuffix(".0")
    where = f"up to {packing.height} deep, at {share} % of what the"
    bandwidth = format_bandwidth(packing.bandwidth)
    if packing.carries == "both":
        parts = f"into {len(sets)} single NPUs" if is_single else listed(sets)
        how = f"sums and copies at once over {counted(packing.trees, 'tree')}, {where} partition"
        return f"{how} {parts} lets through: {bandwidth}"
    how = f"{packing.carries} over {counted(packing.trees_a_root, 'tree')} per root, {where} cut"
    roots = counted(packing.weight, "root")
    return f"{how} {listed(sets)} lets through: {bandwidth} for {roots}"


def _hold(made: Claims, core: _core.Plan) -> bool:
    """Return whether claims are true of a plan: its time, and the bounds."""
    selection = made.selection
    try:
        fits = any(_holds_under(latency, time, made, core) for latency, time in _times(core))
        if selection is not None:
            fits &= selection.bound_ps == _core.bound(core.topology, core.collective).time_ps
    except (Error, ValueError):
        return False
    return fits


def _times(core: _core.Plan) -> Iterator[tuple[str, int]]:
    """Return how long a plan takes at link fidelity, under each model of latency [ps].

    The plan itself stays as it was read: what is proved is a copy.
    """
    made_by: Any = core.__reduce__()
    copy: _core.Plan = made_by[0](*made_by[1])
    _core.verify(copy)
    for latency in get_args(Latency):
        yield latency, _core.simulate(copy, latency=latency).time_ps


def _holds_under(latency: str, time_ps: int, made: Claims, core: _core.Plan) -> bool:
    """Return whether the stated times hold under a model of latency, the least time being no larger."""
    synthesis, trees, selection = made
    fits = selection is None or selection.time_ps == time_ps
    if trees is not None:
        is_exact = core.algorithm == "trees"
        fits &= trees.time_ps == time_ps if is_exact else trees.time_ps >= time_ps
    if synthesis is not None and fits:
        fits &= not synthesis.simulated or synthesis.time_ps == time_ps
        fits = fits and synthesis.least_ps <= _least(synthesis, core, latency)
    return fits


def _least(synthesis: Synthesis, core: _core.Plan, latency: str) -> int:
    """Return the least time that any timetable of a plan's chunks takes [ps]."""
    unwinding = [each for each in synthesis.unwind.split(",") if each]

    _, counts = np.unique(core.chunk_demand, return_counts=True)
    pieces = int(counts.max(initial=1))
    if core.collective.kind == "all-reduce":  # what each NPU sums is cut, of a single demand
        pieces //= len(core.collective.npus)
    where = (core.topology, core.collective, max(pieces, 1))
    return core_synthesis.Problem(*where, unwinding, latency, memory_limit()).least_ps


def _is_cut(packing: Packing, core: _core.Plan) -> bool:
    """Return whether the parts that a certificate names have the links and roots that it states."""
    topology = core.topology
    places = {name: i for i, name in enumerate(topology.device_names)}
    members = [[places.get(name, -1) for name in part] for part in packing.parts]
    listed = [place for part in members for place in part]
    if -1 in listed or len(set(listed)) < len(listed) or not all(members):
        return False
    part_of = np.full(topology.device_count, -1)
    for part, inside in enumerate(members):
        part_of[inside] = part
    src, dst = part_of[topology.link_src], part_of[topology.link_dst]
    enters, leaves = (
        sum(topology.link_bandwidth[(end >= 0) & (src != dst)].tolist()) for end in (dst, src)
    )
    # Where switches have limits, a cut may lead through them, not only over links.
    is_limited = any(limit is not None for limit in topology.switch_limits)
    if packing.carries == "both":
        fits = len(members) > 1 and packing.weight == len(members) - 1
        fits &= bool((part_of[: topology.npu_count] >= 0).all())
        return fits and (is_limited or packing.bandwidth == enters)
    collective = core.collective
    roots = collective.npus if collective.root is None else [collective.root]
    within = sum(part_of[root] >= 0 for root in roots)
    ways = [(enters, len(roots) - within), (leaves, within)]
    if packing.carries == "sums":
        ways = [(leaves, len(roots) - within), (enters, within)]
    return len(members) == 1 and any(
        packing.weight == weight and (is_limited or packing.bandwidth == bandwidth)
        for bandwidth, weight in ways
    )
