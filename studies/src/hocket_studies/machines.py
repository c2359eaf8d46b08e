"""Published sweeps of real machines, predicted: by what was not fitted, how far the law is from them.

Five questions, each answered on times that the fit has not seen:

- *alone*: every sweep with constants of its own; the sizes that were kept back.
- *family*: one set of constants for all sweeps of a family and a fabric; the sizes that were kept back.
- *other machine*: constants of the other sets of the family; nothing of the set itself, or (*one size*)
  its smallest times, one for each number of NPUs, in the fit beside the others.
- *switches that sum*: NVLS from 4 GiB, with constants of the other sets.
- *owner left out*: constants of classes of boxes, fabrics and launches, fitted to all other owners' sets
  together: :mod:`hocket_studies.machines_composed`.

Sets of known schedules of thread blocks have two questions more: :mod:`hocket_studies.machine_schedules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hocket.fitting.errors import BANDS, Band, ErrorSummary, summary_of
from hocket.nccl.model import choices, generation_of
from hocket.profiles.cost_model import cells_of, times
from hocket.profiles.expected import ExpectedError
from hocket.profiles.fit import Fit, FitOptions, fit
from hocket.profiles.measurement import MeasuredSeries, Measurement
from hocket.profiles.profile import Profile
from hocket_studies.machine_schedules import Order, study_schedules
from hocket_studies.machine_schedules_fit import fit_blocks, schedule_times
from hocket_studies.machines_catalogue import MeasuredSet, load_schedule_sets, load_sets
from hocket_studies.machines_composed import (
    Composed,
    compose,
    coverage,
    expected_errors,
    leave_owners_out,
)
from hocket_studies.machines_picks import Logged, logged_picks

__all__ = ["Check", "MachinesResult", "Pick", "Predicted", "family_profiles", "reproduce_machines"]

OnCase = Callable[[str, int, int], None]
"""Called as ``on_case(what, done, total)`` after each fit."""

POINT_TO_POINT = ("all-to-all", "send-receive")
_FEWEST = 10
"""Sizes that a sweep has that is fitted alone: less than that are too few to keep a fifth back."""
_LAW_OF_SWITCHES = 4 << 30
_ALONE_WIDTH = 2.0
_TELLING = 32 << 10
"""Size up to which the smallest time of a machine tells what launching takes [bytes]."""


@dataclass(frozen=True)
class Predicted:
    """A time that was predicted without having been fitted."""

    file: str
    row: Measurement
    seconds: float

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.seconds / self.row.seconds - 1


@dataclass(frozen=True)
class Check:
    """One question for one family or fabric.

    Attributes
    ----------
    question
        ``"alone"``, ``"family"``, ``"other machine"``, ``"other machine, one size"``,
        ``"switches that sum"``, ``"owner left out"``, ``"schedules"`` or ``"other schedules"``.
    what
        Of which sets.
    predicted
        All times that were not fitted.
    """

    question: str
    what: str
    predicted: tuple[Predicted, ...]

    def spread(self, band: Band | None = None) -> ErrorSummary:
        """Return median and 90th percentile of the errors, of a band of sizes or of all."""
        rows = [
            each for each in self.predicted if band is None or band.low <= each.row.size < band.high
        ]
        return summary_of(np.array([each.error for each in rows]))

    def split(self, at: int) -> tuple[ErrorSummary, ErrorSummary]:
        """Return the same of sizes below one, and from it on [bytes]."""
        below = [each.error for each in self.predicted if each.row.size < at]
        above = [each.error for each in self.predicted if each.row.size >= at]
        return summary_of(np.array(below)), summary_of(np.array(above))


@dataclass(frozen=True)
class Pick:
    """NCCL's pick as a set states it, and the pick of its model here."""

    file: str
    row: Measurement
    stated: str
    modelled: str


@dataclass
class MachinesResult:
    """All checks, and what else was found.

    Attributes
    ----------
    checks
        By question and sets.
    sets
        That they were made on.
    picks
        That sets state.
    logged
        What logs of NCCL state of its picks and channels.
    orders
        Of schedules.
    expected
        Errors to expect of machines that were not measured, of which owners were left out.
    held
        By class of machines and band of sizes, for how many times such an error held, and of how many.
    composed
        The constants of classes that were fitted to all sets.
    """

    checks: list[Check] = field(default_factory=list)
    sets: list[MeasuredSet] = field(default_factory=list)
    picks: list[Pick] = field(default_factory=list)
    logged: list[Logged] = field(default_factory=list)
    orders: dict[str, Order] = field(default_factory=dict)
    expected: list[ExpectedError] = field(default_factory=list)
    held: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    composed: Composed | None = None

    @property
    def right_picks(self) -> int:
        """The number of picks that are as stated."""
        return sum(each.stated == each.modelled for each in self.picks)

    def worst(self, count: int) -> list[tuple[Check, str, str, Band, ErrorSummary]]:
        """Return the worst medians by set, collective and band, the worst first."""
        found = []
        for check in self.checks:
            keys = dict.fromkeys((each.file, each.row.kind) for each in check.predicted)
            for file, kind in keys:
                own = [
                    each for each in check.predicted if (each.file, each.row.kind) == (file, kind)
                ]
                part = Check(check.question, check.what, tuple(own))
                for band in BANDS:
                    spread = part.spread(band)
                    if spread.rows:
                        found.append((check, file, kind, band, spread))
        found.sort(key=lambda each: -each[-1].median)
        return found[:count]


def reproduce_machines(
    data: Path | None = None, *, on_case: OnCase | None = None
) -> MachinesResult:
    """Predict every published set that is shipped, and those of a folder.

    Parameters
    ----------
    data
        A folder with more sets.
    on_case
        Called after each fit.
    """
    sets = load_sets(data)
    work = list(_work(_full(sets)))
    result = MachinesResult(sets=[each for each, _ in sets])
    checks: dict[tuple[str, str], list[Predicted]] = {}
    for done, (question, what, run) in enumerate(work, 1):
        checks.setdefault((question, what), []).extend(run())
        if on_case is not None:
            on_case(f"{question}: {what}", done, len(work))
    result.picks = [pick for each, sweeps in sets for pick in _picks(each, sweeps)]
    result.logged = logged_picks()
    result.checks = [
        Check(question, what, tuple(found)) for (question, what), found in checks.items() if found
    ]
    _leave_owners_out(result, sets, on_case)
    for family, rows in load_schedule_sets(data):
        study = study_schedules(rows)
        if study is not None:
            name = f"{family}, one node"
            for question, found in (("schedules", study.held), ("other schedules", study.other)):
                times = tuple(Predicted(file, row, time) for (file, row), time in found)
                result.checks.append(Check(question, name, times))
            result.orders[name] = study.order
    return result


def _leave_owners_out(result: MachinesResult, sets: Sets, on_case: OnCase | None) -> None:
    """Add what constants of classes predict of owners of whom nothing was fitted."""
    result.composed = compose(sets)
    left = leave_owners_out(sets, result.composed, on_case)
    result.expected, result.held = expected_errors(left), coverage(left)
    found: dict[str, list[Predicted]] = {}
    for each in left:
        where = each.of.joined if each.row.nodes > 1 else "one node"
        found.setdefault(where, []).append(Predicted(each.of.name, each.row, each.seconds))
    result.checks += [
        Check("owner left out", where, tuple(each)) for where, each in sorted(found.items())
    ]


def family_profiles(data: Path | None = None) -> dict[str, Profile]:
    """Fit a profile to all sets of each family and fabric, by name, as ``"a100-infiniband"``.

    Where several sets were launched alike, launching takes the median of theirs. Families of which times of
    known schedules are there have constants of thread blocks as well.
    """
    groups: dict[str, list[tuple[MeasuredSet, MeasuredSeries]]] = {}
    for each, sweeps in _full(load_sets(data)):
        name = f"{each.family} {each.joined}".strip().lower().replace(" ", "-")
        usual = sweeps.only_chosen()
        if len({row.size for row in usual}) >= _FEWEST:
            groups.setdefault(name, []).append((each, usual))
    made = {}
    for name, members in groups.items():
        found = _fitted_to(members)
        if found is None:
            continue
        starts: dict[str, list[float]] = {}
        for each, sweeps in members:
            if min(row.size for row in sweeps) <= _TELLING:
                starts.setdefault(each.launch, []).append(found.launch[each.name].value)
        launch = {kind: float(np.median(values)) for kind, values in starts.items()}
        source = ("fitted to " + ", ".join(each.name for each, _ in members),)
        (first, _), *_ = members
        profile = Profile.of_fit(name, found, source)
        made[name] = replace(profile, launch=launch, box=first.box, fabric=first.fabric)
    for family, rows in load_schedule_sets(data):
        name = family.lower()
        blocks = fit_blocks(schedule_times([row for _, row in rows]))
        note = "thread blocks fitted to " + ", ".join(dict.fromkeys(file for file, _ in rows))
        made[name] = replace(made[name], blocks=blocks, source=(*made[name].source, note))
    return made


def _full(sets: Sets) -> list[tuple[MeasuredSet, MeasuredSeries]]:
    """Return the sets of which whole sweeps are known."""
    return [pair for pair in sets if not (pair[0].is_few or "joint" in pair[0].facts)]


Sets = Sequence[tuple[MeasuredSet, MeasuredSeries]]
Work = tuple[str, str, Callable[[], list[Predicted]]]


def _work(sets: Sets) -> Iterator[Work]:
    for each, sweeps in sets:
        for sweep in _single(sweeps):
            yield "alone", each.joined or "one node", _later(_alone, each, sweep)
    groups: dict[tuple[str, str], list[tuple[MeasuredSet, MeasuredSeries]]] = {}
    for each, sweeps in sets:
        groups.setdefault((each.family, each.joined), []).append((each, _joint(sweeps)))
    for (family, fabric), members in groups.items():
        everything = [pair for pair in sets if (pair[0].family, pair[0].joined) == (family, fabric)]
        members = [(each, sweeps) for each, sweeps in members if len(sweeps)]
        name = f"{family}, {fabric or 'one node'}"
        if sum(len(sweeps) for _, sweeps in members) >= _FEWEST:
            yield "family", name, _later(_family, members)
        if len(members) > 1:
            for target in members:
                others = [member for member in members if member is not target]
                yield "other machine", name, _later(_other, others, target, False)
                yield "other machine, one size", name, _later(_other, others, target, True)
            for target in everything:
                others = [member for member in members if member[0] is not target[0]]
                yield "switches that sum", name, _later(_by_switches, others, target)


def _picks(each: MeasuredSet, sweeps: MeasuredSeries) -> Iterator[Pick]:
    """Return what a set states of the library's choice: each size of a collective once."""
    seen = set()
    for row in sweeps:
        stated = _stated(each, row)
        key = (row.kind, row.npus, row.size)
        if stated is None or key in seen:
            continue
        seen.add(key)
        gpu = generation_of(each.hardware)
        ways = choices(row.kind, row.size, row.npus, row.nodes, each.hardware, gpu)
        best = min(ways, key=lambda way: way.seconds)
        yield Pick(each.name, row, stated, best.algorithm)


def _stated(each: MeasuredSet, row: Measurement) -> str | None:
    """Return the algorithm that the library chose by itself, where that is stated."""
    if row.algorithm.startswith("auto:"):
        return row.algorithm.removeprefix("auto:")
    if row.algorithm.startswith("ring<=1mib/"):
        return "ring" if row.size <= 1 << 20 else row.algorithm.partition("/")[2]
    return row.algorithm if each.states_picks and "off" not in row.algorithm else None


def _later(run: Callable[..., list[Predicted]], *given: object) -> Callable[[], list[Predicted]]:
    return lambda: run(*given)


def _single(sweeps: MeasuredSeries) -> Iterator[MeasuredSeries]:
    """Return the sweeps of a set one by one, those that have enough sizes."""
    keys = dict.fromkeys(row.sweep for row in sweeps)
    for key in keys:
        rows = tuple(row for row in sweeps if row.sweep == key)
        if len({row.size for row in rows}) >= _FEWEST:
            yield MeasuredSeries(sweeps.name, rows, sweeps.facts)


def _joint(sweeps: MeasuredSeries) -> MeasuredSeries:
    """Leave out what the library was told to run, and all that goes from NPU to NPU directly."""
    rows = tuple(
        row for row in sweeps if row.kind not in POINT_TO_POINT and row.algorithm.startswith("auto")
    )
    return MeasuredSeries(sweeps.name, rows, sweeps.facts)


def _found(found: Fit, name: str) -> list[Predicted]:
    held = np.flatnonzero(found.held).tolist()
    return [Predicted(name, found.rows[at], float(found.predicted[at])) for at in held]


def _alone(each: MeasuredSet, sweep: MeasuredSeries) -> list[Predicted]:
    return _found(fit([(sweep, each.hardware)], FitOptions(width=_ALONE_WIDTH)), each.name)


def _family(members: Sets) -> list[Predicted]:
    found = fit([(sweeps, each.hardware) for each, sweeps in _enough(members)])
    names = [each.name for each, sweeps in _enough(members) for _ in sweeps]
    held = np.flatnonzero(found.held).tolist()
    return [Predicted(names[at], found.rows[at], float(found.predicted[at])) for at in held]


def _enough(members: Sets) -> Sets:
    return [(each, sweeps) for each, sweeps in members if len({row.size for row in sweeps}) >= 4]


def _fitted_to(others: Sets, few: Sets = ()) -> Fit | None:
    usable = _enough(others)
    if not usable:
        return None
    options = FitOptions(keep_back=False)
    known = [[(sweeps, each.hardware) for each, sweeps in sets] for sets in (usable, few)]
    return fit(known[0], options, known[1])


def _other(
    others: Sets, target: tuple[MeasuredSet, MeasuredSeries], is_told: bool
) -> list[Predicted]:
    """Predict a set by the others: with its smallest times among theirs, or by sets launched alike."""
    each, sweeps = target
    rows = list(sweeps)
    least: dict[int, Measurement] = {}
    if is_told:
        least = {npus: _smallest(rows, npus) for npus in dict.fromkeys(row.npus for row in rows)}
        if max(row.size for row in least.values()) > _TELLING:
            return []
        rows = [row for row in rows if row is not least[row.npus]]
    told = MeasuredSeries(sweeps.name, tuple(least.values()), sweeps.facts)
    found = _fitted_to(others, [(each, told)] if is_told else [])
    if found is None:
        return []
    alike = [other.name for other, _ in others if other.launch == each.launch]
    start = found.launch[sweeps.name].value if is_told else _usual_launch(found, alike)
    launch = np.array([start + found.launch_per_npu * row.npus for row in rows])
    took = times(cells_of(rows, each.hardware), found.values, launch) * 1e-6
    return [Predicted(each.name, row, float(time)) for row, time in zip(rows, took, strict=True)]


def _usual_launch(found: Fit, names: Sequence[str]) -> float:
    """Return the median of what launching takes [us] in files of these names, or in all."""
    told = {name: each.value for name, each in found.launch.items() if each.is_seen}
    known = [told[name] for name in names if name in told] or list(told.values())
    return float(np.median(known)) if known else 0.0


def _smallest(rows: Sequence[Measurement], npus: int) -> Measurement:
    own = [row for row in rows if row.npus == npus]
    return min(own, key=lambda row: (row.size, row.seconds))


def _is_by_switches(row: Measurement) -> bool:
    return "nvls" in row.algorithm and "off" not in row.algorithm


def _by_switches(others: Sets, target: tuple[MeasuredSet, MeasuredSeries]) -> list[Predicted]:
    each, sweeps = target
    rows = [
        row
        for row in sweeps
        if row.kind == "all-reduce"
        and row.npus > 4
        and row.nodes == 1
        and row.size >= _LAW_OF_SWITCHES
        and (row.algorithm == "auto" or _is_by_switches(row))
    ]
    if not (rows and each.hardware.sums):
        return []
    found = _fitted_to(others)
    if found is None:
        return []
    took = times(cells_of(rows, each.hardware), found.values, np.zeros(len(rows))) * 1e-6
    return [Predicted(each.name, row, float(time)) for row, time in zip(rows, took, strict=True)]
