"""Workloads: models that are trained, as layers by their dimensions or by their costs."""

from __future__ import annotations

from dataclasses import fields
from os import PathLike
from typing import Any

from hocket._checks import did_you_mean, path_of
from hocket.errors import SpecError
from hocket.units import shown
from hocket.workload import models
from hocket.workload.costs import Block, Work
from hocket.workload.layers import Layer, Workload, blocks_of, check_workload
from hocket.workload.text import save, to_text
from hocket.workload.transformers import Transformer

__all__ = [
    "Block",
    "Layer",
    "Transformer",
    "Work",
    "Workload",
    "blocks_of",
    "load",
    "names",
    "save",
    "to_text",
    "transformer",
]


def load(name_or_path: str | PathLike[str]) -> Workload:
    """Return a shipped workload by name, or one from a YAML file (docs/workloads.md).

    Raises
    ------
    SpecError
        Naming what was wrong and what would be right; of a file its name, key and line.
    """
    from hocket.workload.yaml import from_file

    path = path_of("name_or_path", name_or_path)
    text = str(path)
    if path.suffix in (".yml", ".yaml") or "/" in text:
        return from_file(path)
    return from_file(models.path(text))


def as_transformer(value: object) -> Transformer:
    """Return the transformer that a caller means: itself, or a shipped workload or a file that is one.

    Raises
    ------
    SpecError
        If it is none.
    """
    if isinstance(value, Transformer):
        return value
    if not isinstance(value, str | PathLike):
        right = "give sizes, as hocket.workload.Transformer, or a workload's name"
        raise SpecError("model", f"{shown(value)} is no transformer", right)
    from hocket.workload.yaml import transformer_from_file

    text = str(value)
    if text.endswith((".yml", ".yaml")) or "/" in text:
        return transformer_from_file(path_of("model", value))
    return transformer_from_file(models.path(text))


def as_workload(value: object) -> Workload:
    """Return the workload that a caller means: the workload itself, or text as :func:`load` takes it.

    Anything with a name and layers is taken as a workload.

    Raises
    ------
    SpecError
        If it is neither, or there is no such workload.
    """
    if isinstance(value, str | PathLike):
        return load(value)
    return check_workload(value)


def names() -> list[str]:
    """Names of the shipped workloads."""
    return models.names()


def transformer(name: str = "transformer", **sizes: Any) -> Workload:
    """Return a transformer as a workload by its sizes; a sample is one sequence.

    Parameters
    ----------
    name
        What it is called.
    sizes
        Attributes of :class:`Transformer`, such as ``layers=96, hidden=12288, heads=96, sequence=2048,
        vocabulary=50257``.

    Raises
    ------
    SpecError
        Naming the size that makes no sense.
    """
    known = [field.name for field in fields(Transformer)]
    for key in sizes:
        if key not in known:
            hint = did_you_mean(key, known, f"sizes are {', '.join(known)}")
            raise SpecError("transformer", f"there is no {shown(key)}", hint)
    missing = [key for key in ("layers", "hidden", "heads", "sequence") if key not in sizes]
    if missing:
        raise SpecError("transformer", f"{missing[0]} is missing", "give it")
    return Workload(name, tuple(Transformer(**sizes).blocks()))


def __dir__() -> list[str]:
    return __all__
