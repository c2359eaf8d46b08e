"""What a file says of how its plan was made: how it was chosen, synthesized, and of which trees.

The claims are in the metadata, beside a hash of the plan and of themselves. They are read only if they
hold: the hash agrees, the plan takes the stated time, the bounds are those of the network, and the cut has
the stated bandwidth. Plans of more than 300,000 transfers are not simulated for this: there, the hash must
agree, and claims must not contradict each other. Claims that do not hold are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
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

if TYPE_CHECKING:
    from hocket.plans.plan import Plan

_CHECKED = 300_000
"""Transfers of a plan that is simulated to see whether it takes the stated time."""
_LARGEST = 1 << 64
_COLUMNS = ("chunk", "chunk_count", "src", "dst", "op", "chunk_offsets", "chunk_demand")


class Claims(NamedTuple):
    """How a plan was made; None where a file does not say, or what it says does not hold."""

    synthesis: Synthesis | None = None
    trees: Trees | None = None
    selection: Selection | None = None


def claims_to_json(plan: Plan, about: Sequence[str]) -> str | None:
    """Return what is known of how a plan was made, as JSON; None if nothing is.

    Parameters
    ----------
    about
        The other metadata of the plan, which the hash covers.
    """
    made = Claims(plan.synthesis, plan.trees, plan.selection)
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
            name: TypeAdapter(kinds[name]).validate_json(json.dumps(value), strict=True)
            for name, value in known.items()
        }
        if not all(0 <= number < _LARGEST for number in _numbers(known)):
            raise ValueError("a number is negative or too large")
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        why = "hocket.claims does not say how a plan was made"
        raise SpecError(None, why, "write the plan again with `hocket plan -o`") from None
    made = Claims(**read)
    if stated != _hash(core, about, known) or not _agree(made):
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


def _agree(made: Claims) -> bool:
    """Whether claims do not contradict themselves or each other."""
    synthesis, trees, selection = made
    fits = True
    if synthesis is not None:
        least = synthesis.least_ps
        fits &= least <= synthesis.time_ps and synthesis.status in ("optimal", "feasible")
        is_least = synthesis.time_ps <= least * (1 + ROUNDING)
        is_least |= synthesis.slots is not None and synthesis.slots == synthesis.least_slots
        fits &= is_least or synthesis.status == "feasible"
    if trees is not None:
        fits &= all(0 <= each.reached <= 1 for each in trees.packings)
    if selection is not None:
        fits &= selection.times_ps.get(selection.algorithm) == selection.time_ps
        fits &= selection.time_ps == min(selection.times_ps.values(), default=None)
        fits &= selection.bound_ps <= selection.time_ps
        fits &= selection.ended != "bound" or selection.bound_ps == selection.time_ps
    return fits


def _hold(made: Claims, core: _core.Plan) -> bool:
    """Whether claims are true of a plan: its time, the bounds, and the cuts of its trees."""
    _, trees, selection = made
    try:
        fits = any(_holds_under(latency, time, made, core) for latency, time in _times(core))
        if trees is not None:
            fits &= all(_is_cut(each, core.topology) for each in trees.packings)
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
    """Whether the stated times are those under a model of latency, and the least time is no larger."""
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

    def problem(pieces: int) -> core_synthesis.Problem:
        where = (core.topology, core.collective)
        return core_synthesis.Problem(*where, pieces, unwinding, latency, memory_limit())

    whole = problem(1)
    uncut = max(len(whole.sum_chunks), len(whole.copy_chunks), 1)
    return problem(max(core.chunks // uncut, 1)).least_ps


def _is_cut(packing: Packing, topology: _core.Topology) -> bool:
    """Whether the links into the parts that a certificate names have the bandwidth that it states."""
    if any(limit is not None for limit in topology.switch_limits):
        return True  # the cut may lead through switches, not only over links
    places = {name: i for i, name in enumerate(topology.device_names)}
    if not packing.parts or any(name not in places for part in packing.parts for name in part):
        return False
    ends = (topology.link_src, topology.link_dst)
    bandwidths = [0, 0]
    for part in packing.parts:
        is_inside = np.zeros(topology.device_count, dtype=bool)
        is_inside[[places[name] for name in part]] = True
        src, dst = (is_inside[end] for end in ends)
        for way, crosses in enumerate((~src & dst, src & ~dst)):
            bandwidths[way] += sum(topology.link_bandwidth[crosses].tolist())
    if packing.carries == "both":
        return bandwidths[0] == packing.bandwidth and packing.weight == len(packing.parts) - 1
    return packing.bandwidth in bandwidths
