"""The modelling choices that move the figures of Laskar et al., found by trying each.

Each experiment runs the same all-reduces with one thing done otherwise, and gives a mean speed-up without
and with it beside the published one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import mean

from hocket_studies.mesh import MIB, SIDES, Case, OnCase, Study
from hocket_studies.mesh_published import (
    EPOCH_EXAMPLE,
    RING_BI_ODD_SPEEDUP,
    SIMBA_SPEEDUP,
    TTO_SPEEDUP,
)

SIZES = (MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB)
_RESNET_152 = 240_161_536
"""Bytes of its gradients."""


@dataclass(frozen=True)
class Choice:
    """One experiment."""

    what: str
    """What is done otherwise."""
    figure: str
    """Which figure that moves."""
    published: float
    without: float
    with_it: float


@dataclass(frozen=True)
class _Experiment:
    what: str
    figure: str
    published: float
    of: str
    over: str
    on_of: dict[str, str]
    on_over: dict[str, str]
    """What is done otherwise: fields of a case."""
    sides: tuple[int, ...] = SIDES
    sizes: tuple[int, ...] = SIZES


def _otherwise(variant: str) -> dict[str, str]:
    return {"variant": variant}


_EXPERIMENTS = (
    _Experiment(
        "tto's chunks by size, height, alpha and beta",
        "tto over ring",
        TTO_SPEEDUP["ring"],
        "tto",
        "ring",
        {"method": "tto-chosen"},
        {},
    ),
    _Experiment(
        "messages fill whole packets",
        "tto over ring",
        TTO_SPEEDUP["ring"],
        "tto",
        "ring",
        {},
        _otherwise("whole-packets"),
    ),
    _Experiment(
        "sums take time, at 100 GB/s",
        "tto over ring",
        TTO_SPEEDUP["ring"],
        "tto",
        "ring",
        _otherwise("sums"),
        _otherwise("sums"),
    ),
    _Experiment(
        "a header flit for each packet",
        "tto over ring",
        TTO_SPEEDUP["ring"],
        "tto",
        "ring",
        _otherwise("header"),
        _otherwise("header"),
    ),
    _Experiment(
        "these three: chunks, whole packets, sums",
        "tto over ring",
        TTO_SPEEDUP["ring"],
        "tto",
        "ring",
        {"method": "tto-chosen", "variant": "sums"},
        _otherwise("whole-packets+sums"),
    ),
    _Experiment(
        "NPUs store and forward what closes a row",
        "tto over ring-2d",
        TTO_SPEEDUP["ring-2d"],
        "tto",
        "ring-2d",
        {},
        _otherwise("relayed"),
    ),
    _Experiment(
        "NPUs store and forward what closes a row",
        "ring-bi-odd over ring-2d",
        RING_BI_ODD_SPEEDUP["ring-2d"],
        "bidirectional",
        "ring-2d",
        {},
        _otherwise("relayed"),
        sides=(5, 9),
    ),
    _Experiment(
        "trees in the order of the published code",
        "tto over multitree",
        TTO_SPEEDUP["multitree"],
        "tto",
        "multitree",
        {},
        {"method": "multitree-published"},
    ),
    _Experiment(
        "links serve in the order of arrival",
        "tto over multitree",
        TTO_SPEEDUP["multitree"],
        "tto",
        "multitree",
        {},
        _otherwise("ready"),
    ),
    _Experiment(
        "these two: order of trees, order of arrival",
        "tto over multitree",
        TTO_SPEEDUP["multitree"],
        "tto",
        "multitree",
        {},
        {"method": "multitree-published", "variant": "ready"},
    ),
    _Experiment(
        "trees in the order of the published code",
        "ring-bi-odd over multitree",
        RING_BI_ODD_SPEEDUP["multitree"],
        "bidirectional",
        "multitree",
        {},
        {"method": "multitree-published"},
        sides=(5, 9),
    ),
    _Experiment(
        "each tree in one chunk",
        "tto over double-binary-tree, 6 x 6, 16 MiB",
        SIMBA_SPEEDUP["double-binary-tree"],
        "tto",
        "double-binary-tree",
        {},
        _otherwise("unpipelined"),
        sides=(6,),
        sizes=(16 * MIB,),
    ),
)


def _pairs(each: _Experiment, *, with_it: bool) -> list[tuple[Case, Case]]:
    pairs = []
    for side in each.sides:
        for size in each.sizes:
            ours, theirs = Case(side, size, each.of), Case(side, size, each.over)
            if with_it:
                ours = replace(ours, **each.on_of)  # type: ignore[arg-type]
                theirs = replace(theirs, **each.on_over)  # type: ignore[arg-type]
            pairs.append((ours, theirs))
    return pairs


def choices(study: Study, on_case: OnCase | None = None) -> list[Choice]:
    """Run every experiment."""
    headers = [
        (method, Case(8, _RESNET_152, method), Case(8, _RESNET_152, method, variant="header"))
        for method in ("bidirectional", "tto")
    ]
    cases = [case for _, *both in headers for case in both]
    for each in _EXPERIMENTS:
        for with_it in (False, True):
            cases += [case for pair in _pairs(each, with_it=with_it) for case in pair]
    study.run(cases, on_case)
    found = [_measured(study, each) for each in _EXPERIMENTS]
    found += [_counted(study, each) for each in _EXPERIMENTS if each.over == "ring-2d"]
    found += [_with_header(study, *each) for each in headers]
    return found


def _measured(study: Study, each: _Experiment) -> Choice:
    without, with_it = (_speedup(study, each, with_it=is_so) for is_so in (False, True))
    return Choice(each.what, each.figure, each.published, without, with_it)


def _counted(study: Study, each: _Experiment) -> Choice:
    """Ring-2D with 2 n - 3 steps in a row of n, as in the published code, in place of n - 1."""
    ratios = [
        (study.times[theirs] / study.times[ours], (2 * theirs.side - 3) / (theirs.side - 1))
        for ours, theirs in _pairs(each, with_it=False)
    ]
    without = mean(ratio for ratio, _ in ratios)
    with_it = mean(ratio * longer for ratio, longer in ratios)
    what = "2 n - 3 steps in a row of n, not n - 1 (by closed form)"
    return Choice(what, each.figure, each.published, without, with_it)


def _with_header(study: Study, method: str, plain: Case, header: Case) -> Choice:
    published = EPOCH_EXAMPLE[method]
    cycles = (study.times[plain] / 1e9, study.times[header] / 1e9)
    figure = f"{method} of ResNet-152 on 8 x 8 [Mcycles]"
    return Choice("a header flit for each packet", figure, published / 1e6, *cycles)


def _speedup(study: Study, each: _Experiment, *, with_it: bool) -> float:
    pairs = _pairs(each, with_it=with_it)
    return mean(study.times[theirs] / study.times[ours] for ours, theirs in pairs)
