"""Workload files: layers, groups of layers that are repeated, and architectures by their sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.files.model import Reader, Strict, last_key, schema_of
from hocket.files.yaml_tree import FileKind, Place, parse_yaml, read_yaml
from hocket.units import shown
from hocket.workload.costs import Block
from hocket.workload.entries import (
    TAGS,
    CostEntry,
    Entry,
    GroupEntry,
    LayerEntry,
    TransformerEntry,
    WorkloadFile,
    model_of,
    near_keys,
)
from hocket.workload.layers import Layer, Workload, not_routed
from hocket.workload.transformers import Transformer

KIND = FileKind("workload", "layers:", "use repeat:")
MAX_LAYERS = 100_000
"""Of a workload, those that are repeated counted as often."""
_DEEPEST = 4


def from_file(path: Path) -> Workload:
    """Read a workload file.

    Raises
    ------
    SpecError
        Naming file, line, key and remedy.
    """
    return _workload(*read_yaml(path, KIND), shown_path(path), path.stem)


def from_text(text: str, name: str) -> Workload:
    """Read a text as :func:`from_file` reads a file; ``name`` stands for it in messages."""
    return _workload(*parse_yaml(text, name, KIND), name, Path(name).stem)


def transformer_from_file(path: Path) -> Transformer:
    """Read the sizes of the transformer that a workload file consists of.

    Raises
    ------
    SpecError
        If it cannot be read, or has other layers.
    """
    values, lines = read_yaml(path, KIND)
    reader = _Reader(lines, shown_path(path))
    file = reader.file(values)
    if len(file.layers) == 1 and isinstance(file.layers[0], TransformerEntry):
        return cast(Transformer, file.layers[0].sizes.architecture())
    right = (
        'name a file with a single "transformer:" entry, or a shipped workload such as gpt3-175b'
    )
    raise reader.wrong(("layers",), "there are other layers than one transformer", right)


def _workload(values: dict[str, Any], lines: dict[Place, int], name: str, stem: str) -> Workload:
    reader = _Reader(lines, name)
    file = reader.file(values)
    count = _count(file.layers)
    if count > MAX_LAYERS:
        raise reader.wrong(
            ("layers",), f"are {count} with all repeats", f"make it at most {MAX_LAYERS}"
        )
    source = tuple(
        " ".join(
            part for part in (each.paper, each.repo, each.path, each.commit, each.licence) if part
        )
        for each in file.source
    )
    expansion = _Expansion(reader, file.measured_samples)
    expansion.add(file.layers, (), ("",))
    try:
        return Workload(file.name or stem, expansion.layers(), tuple(file.notes), source)
    except SpecError as error:
        raise reader.wrong(("layers",), str(error)) from None


def _count(entries: list[Entry]) -> int:
    total = 0
    for each in entries:
        if isinstance(each, GroupEntry):
            total += each.repeat * _count(each.layers)
        elif isinstance(each, LayerEntry | CostEntry):
            total += each.repeat
        else:
            total += each.repeat * each.sizes.architecture().count
    return total


@dataclass(frozen=True)
class _Placed:
    """A layer of a file; ``scopes`` are what its name may begin with, the innermost first."""

    layer: Layer | Block
    place: Place
    scopes: tuple[str, ...]


class _Expansion:
    """All layers of a file in order; what is repeated gets its number from 1 after its name."""

    def __init__(self, reader: _Reader, samples: int | None) -> None:
        self._reader = reader
        self._samples = samples
        self._found: list[_Placed] = []

    def add(self, entries: list[Entry], place: Place, scopes: tuple[str, ...]) -> None:
        """Add the layers of some entries, all of one group or of none."""
        for i, each in enumerate(entries):
            here = (*place, "layers", i)
            for turn in range(1, each.repeat + 1):
                name = f"{scopes[0]}{each.name or ''}" + (f".{turn}" if each.repeat > 1 else "")
                inside = (f"{name}/", *scopes) if each.name else scopes
                if isinstance(each, GroupEntry):
                    self.add(each.layers, here, inside)
                elif isinstance(each, LayerEntry):
                    self._append(each.layer(name), here, scopes)
                elif isinstance(each, CostEntry):
                    self._append(self._block(each, name, here), here, scopes)
                else:
                    for block in each.sizes.architecture().blocks():
                        named = replace(block, name=inside[0] + block.name)
                        self._append(named, here, inside)

    def _block(self, entry: CostEntry, name: str, place: Place) -> Block:
        if entry.is_measured and self._samples is None:
            raise self._reader.wrong(
                place,
                "has a measured time, but of how many samples is not said",
                "add measured_samples: at the top",
            )
        return entry.block(name, first=not self._found, samples=self._samples or 1)

    def _append(self, layer: Layer | Block, place: Place, scopes: tuple[str, ...]) -> None:
        before = self._found[-1].layer if self._found else None
        wrong = not_routed(before, layer)
        if wrong is not None:
            raise self._reader.wrong(place, wrong)
        self._found.append(_Placed(layer, place, scopes))

    def layers(self) -> tuple[Layer | Block, ...]:
        """Return what was added, ``joins`` as whole names of layers."""
        last = {each.layer.name: i for i, each in enumerate(self._found)}
        found = []
        for i, each in enumerate(self._found):
            layer = each.layer
            if isinstance(layer, Block) and layer.joins is not None:
                names = (scope + layer.joins for scope in each.scopes)
                later = [name for name in names if last.get(name, -1) > i]
                if not later:
                    message = (
                        f"{shown(layer.joins)} is not a later layer; name one that comes after"
                    )
                    raise self._reader.wrong((*each.place, "joins"), message)
                layer = replace(layer, joins=later[0])
            found.append(layer)
        return tuple(found)


class _Reader(Reader):
    tags = TAGS

    def file(self, values: dict[str, Any]) -> WorkloadFile:
        """Return what a file says, unless it has groups in groups without end."""
        level: list[tuple[Place, object]] = [((), values)]
        for depth in range(_DEEPEST + 2):
            level = [
                ((*place, "layers", i), inner)
                for place, value in level
                if isinstance(value, dict) and isinstance(value.get("layers"), list)
                for i, inner in enumerate(value["layers"])
            ]
            if depth == _DEEPEST + 1 and level:
                raise self.wrong(
                    level[0][0], f"groups are {_DEEPEST + 1} deep", f"make it at most {_DEEPEST}"
                )

        return self.checked(WorkloadFile, values)

    def keys_at(self, model: type[Strict], location: Place) -> list[str]:
        """Return the keys that the mapping at a location may have."""
        del model
        return list(model_of(location).model_fields)

    def near(self, word: str, known: list[str]) -> list[str]:
        """Return the keys that a misspelt one may stand for."""
        return near_keys(word, known)

    def fault(self, place: Place, found: Any) -> SpecError | None:
        """Return an error about a list, or about a value that a check of its own refused."""
        kind, given, context = found["type"], found["input"], found.get("ctx", {})
        key = last_key(place)
        if kind == "value_error" and isinstance(wrong := context["error"], SpecError):
            inner = (*place, str(wrong.field).rpartition(": ")[2])
            if inner in self._lines:  # a size of an architecture, which its class refuses
                return self.wrong(inner, wrong.why, wrong.remedy)
            own = wrong.but(field=None) if key and wrong.field == key else wrong
            return self.wrong(place, str(own))
        if kind in ("list_type", "too_short", "too_long") and given is not None and key in _LISTS:
            many = "is not a list"
            if kind != "list_type":
                many = f"has {context['actual_length']} entries"
            return self.wrong(place, f"{shown(given)} {many}", f"write it as {_LISTS[key]}")
        return None


_LISTS = {
    "layers": "lines of - {name: fc, channels: 2048, filters: 1000}, at least one",
    "input": "[height, width]",
    "filter": "[height, width]",
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of workload files, for editors."""
    return schema_of(WorkloadFile, "hocket workload")
