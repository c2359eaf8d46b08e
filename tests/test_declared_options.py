"""Options are declared by their classes alone: what follows from that, and what has to agree with it."""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import dataclass, fields
from typing import Annotated, Literal

import pytest

import hocket as hk
from hocket._options import Size, Time, declared
from hocket.cluster.hosts import HostOptions
from hocket.formats.options import CheckOptions, ExportOptions, ImportOptions
from hocket.routing.options import ClusterOptions, SchemeOptions
from hocket.runtime.options import MeasureOptions
from hocket.sweeps.design_options import DesignOptions
from hocket.telemetry.options import MeasuredOptions
from hocket.throughput.options import TrainingPredictionOptions
from hocket.traces.options import ReplayOptions
from hocket.training.options import TrainingOptions
from hocket.tuning.options import TuneOptions

CLASSES = (
    *(hk.PlanOptions, hk.LinkOptions, hk.FlowOptions, hk.PacketOptions, hk.DimensionOptions),
    *(CheckOptions, ImportOptions, ExportOptions, HostOptions, SchemeOptions, ClusterOptions),
    *(MeasureOptions, DesignOptions, MeasuredOptions, TrainingPredictionOptions, ReplayOptions),
    *(TrainingOptions, TuneOptions),
)


@dataclass(frozen=True)
class Few:
    """Few options.

    Attributes
    ----------
    count
        Number of things.
    size
        Bytes of all [bytes], such as ``"1 MB"``, instead of `count`.
    wait
        Time to wait
        before the first.
    names
        A name. Can be repeated.
    shares
        Shares, see :class:`Few`.
    how
        ``slow`` or ``fast``.
    """

    count: int
    size: Size | None = None
    wait: Time = "1 s"
    names: list[str] | None = None
    shares: Annotated[str | tuple[float, ...], "SHARE,..."] = (0.5, 1.0)
    how: Literal["slow", "fast"] = "slow"


def test_a_class_says_all_of_its_options() -> None:
    found = declared(Few)
    assert list(found) == ["count", "size", "wait", "names", "shares", "how"]
    kinds = [(each.kind, each.is_many, each.unit) for each in found.values()]
    assert kinds == [
        (int, False, ""),
        (str, False, "SIZE"),
        (str, False, "TIME"),
        (str, True, ""),
        (str, False, "SHARE,..."),
        (str, False, ""),
    ]
    assert found["size"].doc == 'Bytes of all, such as "1 MB", instead of `count`.'
    assert found["wait"].doc == "Time to wait before the first."
    assert (found["shares"].doc, found["how"].doc) == ("Shares, see Few.", "slow or fast.")
    assert found["wait"].default == "1 s"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_option_has_its_words(kind: type) -> None:
    for each in declared(kind).values():
        assert each.doc.endswith(".")
        assert each.doc[0].isupper()


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_keywords_of_calls_are_the_options(kind: type) -> None:
    """Types of keywords are written out, since type checkers read nothing else."""
    name = kind.__name__.replace("Options", "Keywords")
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    keywords = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    if name not in keywords:
        return
    found = {
        each.target.id
        for owner in (
            name,
            *(base.id for base in keywords[name].bases if isinstance(base, ast.Name)),
        )
        for each in (keywords[owner].body if owner in keywords else ())
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    assert found == {each.name for each in fields(kind)}
