"""Constants of boxes, fabrics and launches, fitted to all published sets together.

The logarithm of each constant is a sum: a part that all machines share, and one of the class of its box or
fabric. What launching takes has a part of its class and one of the set. A part without data stays at 0 with
its prior width, which makes a class that nobody measured answerable, and its interval wide. Latencies of a
fabric share one factor more. Sets with more times than most count as if they had that many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from hocket.files.yaml_tree import dump_yaml
from hocket.fitting.constants import Fitted
from hocket.fitting.errors import of_new_sources
from hocket.fitting.solve import solve
from hocket.profiles.advice import SPREAD
from hocket.profiles.classes import FABRICS
from hocket.profiles.cost_model import CONSTANTS, cells_of, joined, times
from hocket.profiles.expected import TWO_KNOWN, Evidence, ExpectedError, band_of
from hocket.profiles.fit import FitOptions, fit
from hocket.profiles.hardware import Hardware
from hocket.profiles.measurement import MeasuredSeries, Measurement
from hocket.profiles.profile import Profile
from hocket_studies.machines_catalogue import MeasuredSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "Composed",
    "LeftOut",
    "class_files",
    "compose",
    "coverage",
    "evidence_of",
    "expected_errors",
    "fitted_rows",
    "leave_owners_out",
]

Sets = Sequence[tuple[MeasuredSet, MeasuredSeries]]
Key = tuple[str, ...]

_LAUNCHES = {"process": (29.0, 0.5), "mpi": (12.0, 0.5), "torch": (35.0, 0.5)}
"""Priors of what launching takes [us], by kind of program, with their widths."""
_SET_WIDTH = 0.45
_PER_NPU, _PER_NPU_WIDTH = 1.0, 0.8
_LATENCY_WIDTH = 0.4
_LATENCIES = ("hop", "far")
_SMALLEST = 4 << 10
"""Size from which times are fitted [bytes]: smaller ones take as long."""
_MOST = 20
"""Times of a set that count in full."""
_MOST_STEPS = 200
_ENOUGH = 1e-5
_STEP = 1e-5

_RATIOS = {"ll128.efficiency": (0.8, 0.15), "ll128.nic": (0.8, 0.2)}
"""Shares of LL128 over those of Simple, with widths: of 128 bytes it moves 120, so none is above 0.94."""
_CLASS_WIDTHS = {
    **{f"{each}.fixed": 0.4 for each in ("ll", "nvls")},
    **{f"{each}.efficiency": 0.1 for each in ("simple", "nvls", "p2p")},
    "ll.step": 0.4,
    "ll.efficiency": 0.25,
    "ll128.efficiency": 0.05,
    "simple.nic": 0.15,
    "p2p.nic": 0.15,
    "ll.nic": 0.3,
}
"""How far classes lie apart in the logarithm of a constant; others are alike in all."""


@dataclass(frozen=True)
class Composed:
    """Constants by class.

    Attributes
    ----------
    boxes, fabrics
        Constants by name for each class, ``"any"`` among them.
    launches
        What launching takes by kind of program [us].
    launch_per_npu
        What each NPU of a process adds to that [us].
    point
        Logarithms of all parts by their keys, from which another fit may start.
    """

    boxes: dict[str, dict[str, Fitted]]
    fabrics: dict[str, dict[str, Fitted]]
    launches: dict[str, Fitted]
    launch_per_npu: float
    point: dict[Key, float] = field(default_factory=dict)

    def values(self, box: str, fabric: str) -> dict[str, float]:
        """Return the constants of a box on a fabric; of a class that is not known those of any."""
        parts = (
            self.boxes.get(box, self.boxes["any"]),
            self.fabrics.get(fabric, self.fabrics["any"]),
        )
        return {name: each.value for part in parts for name, each in part.items()}

    def predict(self, each: MeasuredSet, rows: Sequence[Measurement]) -> Floats:
        """Return what rows of a set take with constants of its classes [s]; nothing of the set is used."""
        took = np.empty(len(rows))
        keys = [(row.nodes > 1, "sharp" in row.algorithm) for row in rows]
        for key in dict.fromkeys(keys):
            places = [at for at, own in enumerate(keys) if own == key]
            own = [rows[at] for at in places]
            fabric = each.fabric if key[0] else ""
            cells = cells_of(own, on_fabric(each, own[0]))
            launch = np.full(len(own), self.launches[each.launch].value)
            if each.launch == "process" and not key[0]:
                launch += self.launch_per_npu * cells.npus
            took[places] = times(cells, self.values(each.box, fabric), launch) * 1e-6
        return took


def on_fabric(each: MeasuredSet, row: Measurement) -> Hardware:
    """Return the hardware of a set with what the class of its fabric says."""
    if row.nodes == 1 or each.fabric not in FABRICS:
        return each.hardware
    fabric = FABRICS[each.fabric]
    nics = each.hardware.nic_bandwidth
    return replace(
        each.hardware,
        nic_bandwidth=min(nics, fabric.most) if fabric.most else nics,
        without=fabric.without,
        by_processor=fabric.by_processor,
        sums_between="sharp" in row.algorithm,
    )


def fitted_rows(each: MeasuredSet, sweeps: MeasuredSeries) -> list[Measurement]:
    """Return the times of a set that are the library's own choice, but for the smallest.

    A set that was published because it was slow has none.
    """
    if "slow" in each.facts:
        return []
    return [row for row in sweeps if row.size >= _SMALLEST and _is_chosen(each, row)]


def _is_chosen(each: MeasuredSet, row: Measurement) -> bool:
    name = row.algorithm
    if "off" in name:
        return False
    usual = ("auto", "ring<=", "socket", "collnet", "nccl_default", "rccl_default")
    return name.startswith(usual) or each.states_picks


def compose(sets: Sets, start: Composed | None = None) -> Composed:
    """Fit constants of all classes to sets.

    Parameters
    ----------
    sets
        Of any classes; the times used are those of :func:`fitted_rows`.
    start
        A fit to sets that are much the same, from which to start.
    """
    return _Problem(sets).solve(start)


class _Problem:
    """The parts of all constants, and which of them each row has."""

    def __init__(self, sets: Sets) -> None:
        rows = [(each, row) for each, sweeps in sets for row in fitted_rows(each, sweeps)]
        self.cells = joined([cells_of([row], on_fabric(each, row)) for each, row in rows])
        self.measured = np.array([row.seconds for _, row in rows]) * 1e6
        counts = Counter(each.name for each, _ in rows)
        self.weights = np.sqrt([min(1.0, _MOST / counts[each.name]) for each, _ in rows])
        self.boxes = [each.box for each, _ in rows]
        self.fabrics = [each.fabric if row.nodes > 1 else "" for each, row in rows]
        self.keys: dict[Key, int] = {}
        self.prior: list[float] = []
        self.width: list[float] = []
        self._add_parts(counts)
        self.places = {name: self._places_of(name) for name in CONSTANTS}
        launches = [("launch", each.launch) for each, _ in rows]
        own = [("launch", "", each.name) for each, _ in rows]
        self.launches = np.array([[self.keys[key] for key in part] for part in (launches, own)])
        is_one = [each.launch == "process" and row.nodes == 1 for each, row in rows]
        self.npus = np.where(is_one, self.cells.npus, 0.0)

    def _add(self, key: Key, prior: float, width: float) -> None:
        self.keys[key] = len(self.prior)
        self.prior.append(float(np.log(prior)))
        self.width.append(width)

    def _add_parts(self, names: Iterable[str]) -> None:
        boxes, fabrics = sorted({*self.boxes}), sorted({*self.fabrics} - {""})
        for name, constant in CONSTANTS.items():
            self._add((name,), *_RATIOS.get(name, (constant.prior, constant.width)))
            if name in _CLASS_WIDTHS:
                for one in fabrics if constant.of == "fabric" else boxes:
                    self._add((name, one), 1.0, _CLASS_WIDTHS[name])
        for one in fabrics:
            self._add(("latency", one), FABRICS[one].latency, _LATENCY_WIDTH)
        for kind, (value, width) in _LAUNCHES.items():
            self._add(("launch", kind), value, width)
        for name in names:
            self._add(("launch", "", name), 1.0, _SET_WIDTH)
        self._add(("launch per NPU",), _PER_NPU, _PER_NPU_WIDTH)

    def _parts(self, name: str, one: str) -> list[Key]:
        """Return the keys of all parts that a class may have of a constant."""
        found: list[Key] = [(name,), (name, one)]
        if name in _RATIOS:
            simple = name.replace("ll128", "simple")
            found += [(simple,), (simple, one)]
        if CONSTANTS[name].of == "fabric" and name.endswith(_LATENCIES):
            found.append(("latency", one))
        return found

    def _places_of(self, name: str) -> NDArray[np.int64]:
        """Return which parts each row has of a constant, (parts, rows); -1: none."""
        of = self.fabrics if CONSTANTS[name].of == "fabric" else self.boxes
        places = [[self.keys.get(key, -1) for key in self._parts(name, one)] for one in of]
        found: NDArray[np.int64] = np.array(places, np.int64).T.copy()
        return found

    def _values(self, point: Floats) -> tuple[dict[str, float | Floats], Floats]:
        """Return the constants of each row, and what launching it takes."""
        padded = np.append(point, 0.0)
        values: dict[str, float | Floats] = {
            name: np.exp(padded[places].sum(axis=0)) for name, places in self.places.items()
        }
        launch = np.exp(point[self.launches].sum(axis=0))
        return values, launch + np.exp(point[self.keys["launch per NPU",]]) * self.npus

    def off(self, point: Floats) -> Floats:
        found: Floats = np.log(times(self.cells, *self._values(point)) / self.measured)
        return found

    def slopes(self, point: Floats) -> Floats:
        """Return how `off` changes with each part: all parts of a constant change it alike."""
        values, launch = self._values(point)
        base = np.log(times(self.cells, values, launch))
        rows = np.arange(len(base))
        found = np.zeros((len(base), len(point) + 1))

        def add(places: Iterable[NDArray[np.int64]], changed: Floats) -> None:
            slope = (np.log(changed) - base) / _STEP
            for each in places:
                found[rows, each] += slope

        more = np.exp(_STEP)
        for name, places in self.places.items():
            add(places, times(self.cells, {**values, name: values[name] * more}, launch))
        per_npu = np.exp(point[self.keys["launch per NPU",]]) * self.npus
        add(self.launches, times(self.cells, values, (launch - per_npu) * more + per_npu))
        last = np.full(len(base), self.keys["launch per NPU",])
        add([last], times(self.cells, values, launch + per_npu * (more - 1)))
        return found[:, :-1]

    def solve(self, start: Composed | None) -> Composed:
        prior = np.array(self.prior)
        begin = prior.copy()
        for key, at in self.keys.items():
            begin[at] = prior[at] if start is None else start.point.get(key, prior[at])
        width = np.array(self.width)
        found = solve(
            self.off,
            prior,
            width,
            steps=_MOST_STEPS,
            start=begin,
            slopes=self.slopes,
            weights=self.weights,
            enough=_ENOUGH,
        )
        self.found = found
        boxes = {one: self._constants("", one) for one in [*sorted({*self.boxes}), "any"]}
        fabrics = sorted({*self.fabrics} - {""})
        return Composed(
            boxes,
            {one: self._constants("fabric", one) for one in [*fabrics, "any"]},
            {kind: self._fitted([("launch", kind)]) for kind in _LAUNCHES},
            self._fitted([("launch per NPU",)]).value,
            {key: float(found.point[at]) for key, at in self.keys.items()},
        )

    def _constants(self, of: str, one: str) -> dict[str, Fitted]:
        names = [name for name, constant in CONSTANTS.items() if constant.of == of]
        return {name: self._fitted(self._parts(name, one)) for name in names}

    def _fitted(self, keys: Sequence[Key]) -> Fitted:
        """Return the product of some parts, with its interval."""
        own = [self.keys[key] for key in keys if key in self.keys]
        at = float(self.found.point[own].sum())
        far = float(np.sqrt(max(self.found.covariance[np.ix_(own, own)].sum(), 0.0)))
        wide = float(np.sqrt((np.array(self.width)[own] ** 2).sum()))
        return Fitted.between(at, far, wide)


@dataclass(frozen=True)
class LeftOut:
    """A time that was predicted without anything of its owner.

    Attributes
    ----------
    of, row
        Its set, and what was measured.
    seconds
        What was predicted.
    machines
        Its class of machines, by what the others are.
    narrowed
        What was predicted with two all-reduces of its machine known, where there are two others [s].
    """

    of: MeasuredSet
    row: Measurement
    seconds: float
    machines: str
    narrowed: float | None = None

    @property
    def factor(self) -> float:
        """How many times as long or as short as predicted it was; from 1 up."""
        ratio = self.seconds / self.row.seconds
        return max(ratio, 1 / ratio)

    def with_two_known(self) -> LeftOut | None:
        """Return it as predicted with two all-reduces of its machine known, or ``None`` if it was not."""
        if self.narrowed is None:
            return None
        return replace(self, seconds=self.narrowed, machines=self.machines + TWO_KNOWN)


def evidence_of(sets: Sets) -> Evidence:
    """Return which boxes and fabrics sets have, by how many owners and on how many nodes; no errors."""
    owners: dict[str, set[str]] = {}
    joined: dict[str, set[str]] = {}
    nodes: dict[str, int] = {}
    for each, sweeps in sets:
        for row in fitted_rows(each, sweeps):
            owners.setdefault(each.box, set()).add(each.owner)
            if row.nodes > 1:
                joined.setdefault(each.fabric, set()).add(each.owner)
                nodes[each.fabric] = max(nodes.get(each.fabric, 0), row.nodes)
    boxes = {box: len(who) for box, who in sorted(owners.items())}
    fabrics = {name: (len(who), nodes[name]) for name, who in sorted(joined.items())}
    return Evidence(boxes, fabrics, {})


def leave_owners_out(
    sets: Sets, full: Composed, on_case: Callable[[str, int, int], None] | None = None
) -> list[LeftOut]:
    """Predict the times of each owner with constants fitted to all others'."""
    found = []
    owners = sorted({each.owner for each, _ in sets})
    for done, owner in enumerate(owners, 1):
        others = [pair for pair in sets if pair[0].owner != owner]
        fitted, known = compose(others, full), evidence_of(others)
        for each, sweeps in sets:
            rows = fitted_rows(each, sweeps) if each.owner == owner else []
            narrowed = _with_two_known(fitted, each, rows)
            for row, time in zip(rows, fitted.predict(each, rows).tolist(), strict=True):
                fabric = each.fabric if row.nodes > 1 else ""
                machines = known.class_of(each.box, fabric, row.nodes, row.npus // row.nodes)
                found.append(LeftOut(each, row, time, machines, narrowed.get(row)))
        if on_case is not None:
            on_case(f"leaving out {owner}", done, len(owners))
    return found


def _with_two_known(
    fitted: Composed, each: MeasuredSet, rows: Sequence[Measurement]
) -> dict[Measurement, float]:
    """Predict the all-reduces of a set's largest machine with its smallest and its largest known."""
    own = [row for row in rows if row.kind == "all-reduce"]
    most = max(((row.nodes, row.npus) for row in own), default=None)
    own = sorted((row for row in own if (row.nodes, row.npus) == most), key=lambda row: row.size)
    given, others = [*own[:1], *own[1:][-1:]], own[1:-1]
    if not others or band_of(given[0].size) == band_of(given[1].size):
        return {}
    fabric = each.fabric if given[0].nodes > 1 else ""
    hardware = on_fabric(each, given[0])
    options = FitOptions(SPREAD, fewest=1, keep_back=False, priors=fitted.values(each.box, fabric))
    found = fit([(MeasuredSeries(each.name, tuple(given)), hardware)], options)
    launch = np.full(len(others), found.launch[each.name].value)
    took = times(cells_of(others, hardware), found.values, launch) * 1e-6
    return dict(zip(others, took.tolist(), strict=True))


def _and_narrowed(left: Sequence[LeftOut]) -> list[LeftOut]:
    return [*left, *(near for each in left if (near := each.with_two_known()) is not None)]


def expected_errors(left: Sequence[LeftOut]) -> list[ExpectedError]:
    """Return the errors to expect by class of machines and band of sizes; each owner weighs the same.

    What was predicted with two all-reduces known is a class of its own.
    """
    parts: dict[tuple[str, str], list[LeftOut]] = {}
    for each in _and_narrowed(left):
        parts.setdefault((each.machines, band_of(each.row.size)), []).append(each)
    return [_expected(of, sizes, own) for (of, sizes), own in sorted(parts.items())]


def class_files(sets: Sets, found: Composed, errors: Sequence[ExpectedError]) -> dict[str, str]:
    """Return the files of all classes, as they are shipped, by their paths."""
    files = {}
    for kind, classes in (("boxes", found.boxes), ("fabrics", found.fabrics)):
        for name, constants in classes.items():
            names = [each.name for each, sweeps in sets if _is_told(each, sweeps, kind, name)]
            source = f"fitted to {len(names)} published sets" if names else "fitted to all sets"
            head = "".join(f"# {each}\n" for each in names)
            profile = Profile(name, constants, {}, source=(source,))
            files[f"{kind}/{name}.yml"] = head + profile.as_yaml()
    launches = {kind: each.value for kind, each in found.launches.items()}
    usual = {kind: launches[kind] for kind in ("mpi", "process", "torch")}
    files["launches.yml"] = Profile("launches", {}, usual, found.launch_per_npu).as_yaml()
    known = evidence_of(sets)
    told = {
        "boxes": known.boxes,
        "fabrics": {name: list(each) for name, each in known.fabrics.items()},
        "errors": [_rounded(each) for each in errors],
    }
    files["evidence.yml"] = dump_yaml(told, width=100)
    return files


def _is_told(each: MeasuredSet, sweeps: MeasuredSeries, kind: str, name: str) -> bool:
    return name == (each.box if kind == "boxes" else each.fabric) and bool(
        fitted_rows(each, sweeps)
    )


def _rounded(each: ExpectedError) -> dict[str, object]:
    return {**asdict(each), "median": round(each.median, 3), "factor": round(each.factor, 3)}


def _expected(of: str, sizes: str, own: Sequence[LeftOut]) -> ExpectedError:
    owners = [each.of.owner for each in own]
    median, factor = of_new_sources(np.array([each.factor for each in own]), owners)
    return ExpectedError(of, sizes, len({*owners}), len(own), median, factor)


def coverage(left: Sequence[LeftOut]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return of how many times the stated error held, by class and band: held, and all.

    What is stated for an owner comes from all others' errors.
    """
    held: dict[tuple[str, str], tuple[int, int]] = {}
    for owner in dict.fromkeys(each.of.owner for each in left):
        others = [each for each in left if each.of.owner != owner]
        stated = {(each.of, each.sizes): each for each in expected_errors(others)}
        known = Evidence({}, {}, stated)
        for each in _and_narrowed(left):
            if each.of.owner == owner:
                error = known.of_class(each.machines, each.row.size)
                key = each.machines, band_of(each.row.size)
                right, total = held.get(key, (0, 0))
                held[key] = right + (each.factor <= error.factor), total + 1
    return held
