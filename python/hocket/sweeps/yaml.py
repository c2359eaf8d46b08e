"""Sweep files: a command, and a grid or a list of what it is given."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

from hocket._checks import did_you_mean, hint_of
from hocket.collectives.custom import is_in_words, is_own
from hocket.errors import Error
from hocket.files.complaint import Located, shown_path
from hocket.files.raw import read_bytes, read_text
from hocket.files.yaml_tree import FileKind, Place, parse_yaml, read_yaml
from hocket.sweeps.commands import NAMES, SweptCommand, command_named
from hocket.sweeps.inputs import Loaded, names_file
from hocket.sweeps.keys import Key, Value
from hocket.sweeps.sweep import Axis, Sweep
from hocket.topology.costs import costs_from_file
from hocket.topology.spec import CostsSpec, TopologySpec
from hocket.topology.text import dumps_in, from_dumps, is_dumps
from hocket.topology.text import from_file as topology_from_file
from hocket.topology.text import from_text as topology_from_text
from hocket.units import shown

KIND = FileKind("sweep", "command: and grid: or list:", "use grid: instead of a long list")
_ELSEWHERE = {"pareto": "use `hocket compare --front`", "design": "use `hocket sweep design`"}
"""Commands that search for the best of many themselves."""
_KEYS = ("command", "set", "grid", "list", "costs")


def from_file(path: Path) -> Sweep:
    """Read a sweep file; files that it names are looked for from its folder.

    Raises
    ------
    SpecError
        Naming file, line, key and remedy.
    """
    return _Reader(*read_yaml(path, KIND), shown_path(path), path.parent).sweep()


def from_text(text: str, name: str, folder: Path = Path()) -> Sweep:
    """Read a text as :func:`from_file` reads a file; ``name`` stands for it in messages."""
    return _Reader(*parse_yaml(text, name, KIND), name, folder).sweep()


@dataclass
class _Files:
    """Files that a sweep names, as they are read."""

    topologies: dict[str, Any] = field(default_factory=dict)
    workloads: dict[str, Any] = field(default_factory=dict)
    transformers: dict[str, Any] = field(default_factory=dict)
    jobs: dict[str, Any] = field(default_factory=dict)
    collectives: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)

    def loaded(self, costs: CostsSpec | None) -> Loaded:
        return Loaded(
            self.topologies, self.workloads, self.transformers, self.jobs, self.collectives, costs
        )


class _Reader(Located):
    def __init__(
        self, values: dict[str, Any], lines: dict[Place, int], name: str, folder: Path
    ) -> None:
        super().__init__(lines, name)
        self._values = values
        self._folder = folder
        self._files = _Files()
        self._places: dict[str, Place] = {}

    def sweep(self) -> Sweep:
        """Return what the file describes."""
        for key in self._values:
            if key not in _KEYS:
                hint = did_you_mean(key, _KEYS, f"keys are {', '.join(_KEYS)}")
                raise self.wrong((), f"there is no key {shown(key)}; {hint}", line_of=(key,))
        command = self._command()
        fixed = self._mapping(command, ("set",), self._values.get("set", {}))
        entries = self._entries(command)
        axes = self._axes(command)
        self._check_once(fixed, entries, axes)
        self._check_required(command, fixed, entries, axes)
        costs = self._costs()
        count = len(entries) * prod(len(axis.values) for axis in axes)
        made = Sweep(command.name, fixed, entries, axes, origin=self._name)
        made.check_count()
        if count == 0:
            raise self.wrong((), "there is no point", "give each key of grid: a value")
        self._load(command, fixed, entries, axes)
        return replace(made, loaded=self._files.loaded(costs), files=self._files.hashes)

    def _command(self) -> SweptCommand:
        if "command" not in self._values:
            raise self.wrong((), "key 'command' is missing", f"add it: {', '.join(NAMES)}")
        name = self._values["command"]
        if not isinstance(name, str) or name not in NAMES:
            why = f"no sweep runs {shown(name)}"
            raise self.wrong(("command",), why, _ELSEWHERE.get(str(name)) or hint_of(name, NAMES))
        return command_named(name)

    def _key(self, command: SweptCommand, name: object, place: Place) -> Key:
        if name in command.keys:
            return command.keys[str(name)]
        known = list(command.keys)
        hint = did_you_mean(str(name), known, f"keys are {', '.join(known)}")
        why = f"{command.name} has no key {shown(name)}; {hint}"
        raise self.wrong(place, why, line_of=(*place, str(name)))

    def _mapping(self, command: SweptCommand, place: Place, given: object) -> dict[str, Value]:
        """Read one value of each key."""
        if not isinstance(given, dict):
            raise self.wrong(place, f"{shown(given)} is not a mapping", "write it as key: value")
        found: dict[str, Value] = {}
        for name, value in given.items():
            key = self._key(command, name, place)
            found[name] = self._value(key, value, (*place, name))
            self._places.setdefault(name, (*place, name))
        return found

    def _value(self, key: Key, value: object, place: Place) -> Value:
        if value is None:
            raise self.wrong(place, "has no value", "give it one or remove the key")
        if isinstance(value, list) and not key.is_list:
            right = "values to try stand below grid:" if place[0] != "grid" else "give one"
            raise self.wrong(place, f"{shown(value)} is a list", right)
        try:
            return key.read(value)
        except Error as error:
            raise self.wrong(place, error.why, error.remedy) from None

    def _entries(self, command: SweptCommand) -> tuple[dict[str, Value], ...]:
        if "list" not in self._values:
            return ({},)
        given = self._values["list"]
        if not isinstance(given, list) or not given:
            why = "is empty" if given in ([], None) else f"{shown(given)} is not a list"
            raise self.wrong(("list",), why, "give a point a line, as - {size: 1 MB, chunks: 4}")
        return tuple(self._mapping(command, ("list", i), entry) for i, entry in enumerate(given))

    def _axes(self, command: SweptCommand) -> tuple[Axis, ...]:
        given = self._values.get("grid", {})
        if not isinstance(given, dict):
            why = f"{shown(given)} is not a mapping"
            raise self.wrong(("grid",), why, "write it as key: [value, value]")
        axes = []
        for name, values in given.items():
            place: Place = ("grid", name)
            key = self._key(command, name, ("grid",))
            self._places.setdefault(name, place)
            axes.append(Axis(name, self._several(key, values, place)))
        return tuple(axes)

    def _several(self, key: Key, given: object, place: Place) -> tuple[Value, ...]:
        """Read the values of an axis: a list, of which texts may stand for several, or one of them."""
        items = given if isinstance(given, list) else [given]
        if not items:
            raise self.wrong(place, "has no values", "give one at least")
        found: dict[Value, None] = {}
        for i, item in enumerate(items):
            at = (*place, i) if isinstance(given, list) else place
            if key.several is not None and isinstance(item, str) and ":" in item:
                try:
                    found.update(dict.fromkeys(key.several(item)))
                except Error as error:
                    raise self.wrong(at, error.why, error.remedy) from None
                continue
            value = self._value(key, item, at)
            if value in found:
                raise self.wrong(at, f"{shown(item)} stands twice", "keep one")
            found[value] = None
        return tuple(found)

    def _check_once(
        self,
        fixed: Mapping[str, Value],
        entries: tuple[Mapping[str, Value], ...],
        axes: tuple[Axis, ...],
    ) -> None:
        """Refuse a key that is said in two places."""
        listed = {key for entry in entries for key in entry}
        swept = {axis.key for axis in axes}
        for one, other, names in (
            ("set", "list", fixed.keys() & listed),
            ("set", "grid", fixed.keys() & swept),
            ("list", "grid", listed & swept),
        ):
            for name in sorted(names):
                place: Place = ("grid", name) if other == "grid" else ("list",)
                raise self.wrong(place, f"{name} is in {one}: too", "say it in one place")

    def _check_required(
        self,
        command: SweptCommand,
        fixed: Mapping[str, Value],
        entries: tuple[Mapping[str, Value], ...],
        axes: tuple[Axis, ...],
    ) -> None:
        swept = {axis.key for axis in axes}
        for name in command.required:
            for i, entry in enumerate(entries):
                if name not in fixed and name not in swept and name not in entry:
                    place: Place = ("list", i) if entry else ()
                    why = f"{command.name} needs a key {name!r}"
                    raise self.wrong(place, why, "add it to set: or grid:")

    def _costs(self) -> CostsSpec | None:
        """Read prices: a mapping as in a topology file, or the name of a file with ``costs:``."""
        given = self._values.get("costs")
        if given is None:
            return None
        if isinstance(given, str):
            path = self._folder / given
            self._keep(given, path)
            return costs_from_file(path)
        from hocket.topology.yaml import costs_from_values

        return costs_from_values({"costs": given}, dict(self._lines), self._name)

    def _load(
        self,
        command: SweptCommand,
        fixed: Mapping[str, Value],
        entries: tuple[Mapping[str, Value], ...],
        axes: tuple[Axis, ...],
    ) -> None:
        """Read the files that points name, each once; networks in text are read to see that they can be."""
        values: dict[str, dict[Value, Place]] = {}
        for name, value in fixed.items():
            values.setdefault(name, {})[value] = ("set", name)
        for i, entry in enumerate(entries):
            for name, value in entry.items():
                values.setdefault(name, {}).setdefault(value, ("list", i, name))
        for axis in axes:
            is_list = isinstance(self._values["grid"][axis.key], list)
            for i, value in enumerate(axis.values):
                place: Place = ("grid", axis.key, i) if is_list else ("grid", axis.key)
                values.setdefault(axis.key, {}).setdefault(value, place)
        firsts = {name: str(next(iter(each))) for name, each in values.items() if each}
        for name in ("topology", "fabric", "workload", "jobs", "collective"):
            for value, at in values.get(name, {}).items():
                try:
                    self._read(command.name, name, str(value), firsts)
                except Error as error:
                    if error.origin is not None and not error.origin.startswith(name):
                        raise
                    why = (
                        error.why if error.field in (None, name) else f"{error.field}: {error.why}"
                    )
                    raise self.wrong(at, why, error.remedy) from None

    def _read(self, command: str, name: str, text: str, firsts: Mapping[str, str]) -> None:
        if name in ("topology", "fabric"):
            if names_file(text):
                label, equals, rest = text.partition("=")
                named = bool(equals) and "/" not in label and not is_dumps(text) and rest != ""
                spec = self._network(name, text, rest if named else text)
                self._files.topologies[text] = replace(
                    spec,
                    origin=text,
                    name=label if named else spec.name,
                    named=named or spec.named,
                )
            elif name == "topology":
                rates, delays = (
                    [firsts[each]] if each in firsts else None for each in ("bandwidth", "latency")
                )
                topology_from_text(text, option=name, bandwidth=rates, latency=delays)
        elif name == "collective":
            if is_own(text) and not is_in_words(text):
                path = self._folder / text
                self._keep(text, path)
                self._files.collectives[text] = read_text(path, "a file of a collective")
        elif name == "jobs":
            from hocket.cluster.yaml import from_file as jobs_from_file

            path = self._folder / text
            self._keep(text, path)
            self._files.jobs[text] = jobs_from_file(path)
        else:
            self._read_workload(command, text)

    def _read_workload(self, command: str, text: str) -> None:
        from hocket.workload import as_transformer, load

        given = text
        if text.endswith((".yml", ".yaml")) or "/" in text:
            path = self._folder / text
            self._keep(text, path)
            given = str(path)
        if command == "train":
            self._files.workloads[text] = load(given)
        else:
            self._files.transformers[text] = as_transformer(given)

    def _network(self, name: str, text: str, file: str) -> TopologySpec:
        """Read the network that a file describes, or the dumps of its nodes; keep their hashes."""
        if not is_dumps(file):
            self._keep(text, self._folder / file)
            return topology_from_file(self._folder / file)
        files, nodes = dumps_in(name, file)
        for each in files:
            self._keep(f"{text}: {each}" if len(files) > 1 else text, self._folder / each)
        return from_dumps([self._folder / each for each in files], nodes, text)

    def _keep(self, name: str, path: Path) -> None:
        """Keep the hash of a file that a sweep names."""
        raw = read_bytes(path, "a file that is there")
        self._files.hashes[name] = hashlib.sha256(raw).hexdigest()
