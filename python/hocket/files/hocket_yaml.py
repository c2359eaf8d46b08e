"""hocket's own topology files.

Three forms: ``builder:`` with its parameters, ``dims:``, or ``npus:``, ``switches:`` and ``links:``.
"""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from hocket.errors import SpecError
from hocket.files.defaults import Default
from hocket.files.model import (
    BUILDERS,
    FIELD,
    Common,
    DimsFile,
    Link,
    Linked,
    LinksFile,
    Switch,
    Way,
)
from hocket.files.spec import BuilderSpec, DimensionSpec, LinkSpec, TopologySpec
from hocket.files.yaml_tree import Place
from hocket.units import parse_bandwidth, parse_time


def spec_from_values(
    values: dict[str, Any], lines: dict[Place, int], name: str, stem: str
) -> TopologySpec:
    """Check the values of a topology file and give what they describe.

    Parameters
    ----------
    values, lines
        What :func:`hocket.files.yaml_tree.read_yaml` gave.
    name
        The file, for messages.
    stem
        What the topology is called where the file gives no name.

    Raises
    ------
    SpecError
        Naming file, line, key and remedy.
    """
    reader = _Reader(lines, name)
    model = reader.form(values)
    try:
        file = model.model_validate(values)
    except ValidationError as error:
        raise reader.error(error, model) from None
    title = file.name or stem
    if isinstance(file, DimsFile):
        dimensions = tuple(
            DimensionSpec(each.kind, each.size, each.bandwidth, each.latency) for each in file.dims
        )
        return _common(file, TopologySpec(title, dimensions=dimensions))
    if isinstance(file, LinksFile):
        return _common(file, reader.links_file(file, title))
    if not isinstance(file, Linked):
        raise TypeError("a form is a builder, dims or links")
    builder = BuilderSpec(values["builder"], file.arguments())
    return _common(file, TopologySpec(title, builder=builder))


def _common(file: Common, spec: TopologySpec) -> TopologySpec:
    from dataclasses import replace

    source = tuple(
        " ".join(part for part in (each.repo, each.path, each.commit, each.licence) if part)
        for each in file.source
    )
    return replace(
        spec,
        failed_nodes=tuple(file.failed.nodes),
        failed_links=tuple((a, b) for a, b in file.failed.links),
        notes=(*file.notes, *spec.notes),
        source=source,
    )


class _Reader:
    def __init__(self, lines: dict[Place, int], name: str) -> None:
        self._lines = lines
        self._name = name

    def form(self, values: dict[str, Any]) -> type[Common]:
        """Which form a file has."""
        forms = [key for key in ("builder", "dims", "links") if key in values]
        if len(forms) != 1:
            found = " and ".join(forms) or "none of them"
            raise self.wrong((), f"give one of builder:, dims: and links:; there is {found}")
        if forms == ["dims"]:
            return DimsFile
        if forms == ["links"]:
            return LinksFile
        family = values["builder"]
        if not isinstance(family, str) or family not in BUILDERS:
            known = ", ".join(BUILDERS)
            raise self.wrong(("builder",), f"there is no builder {family!r}; builders are {known}")
        return BUILDERS[family]

    def wrong(self, place: Place, message: str) -> SpecError:
        """Make an error about a place."""
        at = place
        while at and at not in self._lines:
            at = at[:-1]
        line = f", line {self._lines[at]}" if at in self._lines and place else ""
        path = ""
        for part in place:
            path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
        return SpecError(f"{self._name}{line}: {path + ': ' if path else ''}{message}")

    def error(self, error: ValidationError, model: type[Common]) -> SpecError:
        """Make one line of the first thing that pydantic found."""
        found = self._deepest(error)
        place = tuple(part for part in found["loc"] if not self._is_tag(part))
        kind, given = found["type"], found.get("input")
        if kind == "extra_forbidden":
            known = self._keys_at(model, place)
            close = get_close_matches(str(place[-1]), known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"keys are {', '.join(known)}"
            return self.wrong(place[:-1], f"there is no key {place[-1]!r}; {hint}")
        if kind == "missing":
            return self.wrong(place[:-1], f"key {place[-1]!r} is missing; add it")
        message = found["msg"].removeprefix("Value error, ").removeprefix(f"{FIELD}: ")
        if not message.startswith(repr(given)) and kind != "value_error":
            shown = repr(given) if len(repr(given)) < 60 else repr(given)[:60] + "..."
            message = f"{shown}: {message[0].lower()}{message[1:]}"
        return self.wrong(place, " ".join(message.split()))

    def _deepest(self, error: ValidationError) -> Any:
        """Of the alternatives of a union, the one that got furthest is what was meant."""
        errors = error.errors(include_url=False, include_context=False)
        first = errors[0]
        head = first["loc"][:2]
        same = [each for each in errors if each["loc"][:2] == head]
        shape = ("_type", "_instance_of")
        return max(same, key=lambda each: (not each["type"].endswith(shape), len(each["loc"])))

    @staticmethod
    def _is_tag(part: str | int) -> bool:
        """Whether a part of a location names an alternative of a union rather than a key."""
        tags = ("Link", "Switch", "list[", "function-", "constrained-", "str", "int", "Default")
        return isinstance(part, str) and part.startswith(tags) and part not in ("links", "switches")

    @staticmethod
    def _keys_at(model: type[Common], place: Place) -> list[str]:
        words = [part for part in place[:-1] if isinstance(part, str)]
        inner = {"failed": "nodes links", "dims": "kind size bandwidth latency"}
        inner |= {"links": " ".join(Link.model_fields), "switches": " ".join(Switch.model_fields)}
        inner |= {"reverse": "bandwidth latency", "link_kinds": "bandwidth latency"}
        inner |= {"source": "repo path commit licence"}
        for word in reversed(words):
            if word in inner:
                return inner[word].split()
        return list(model.model_fields)

    def links_file(self, file: LinksFile, title: str) -> TopologySpec:
        """Give devices and links, checked against each other."""
        npus = [f"npu{i}" for i in range(file.npus)] if isinstance(file.npus, int) else file.npus
        switches = [
            (each.name, each.limit) if isinstance(each, Switch) else (each, None)
            for each in file.switches
        ]
        known: dict[str, Place] = {}
        places = [(name, ("npus", i)) for i, name in enumerate(npus)]
        places += [(name, ("switches", i)) for i, (name, _) in enumerate(switches)]
        for name, place in places:
            if name in known:
                raise self.wrong(place, f"device {name!r} is listed twice; give each its own name")
            known[name] = place
        if not npus:
            raise self.wrong(("npus",), "there is no NPU; list at least one")
        links: list[LinkSpec] = []
        defaults: Counter[Default] = Counter()
        pairs: dict[tuple[str, str], int] = {}
        for i, entry in enumerate(file.links):
            link = entry if isinstance(entry, Link) else self._short(entry, file, i)
            for end in (link.a, link.b):
                if end not in known:
                    close = get_close_matches(end, list(known), 1)
                    hint = (
                        f"did you mean {close[0]!r}?" if close else "list it under npus or switches"
                    )
                    raise self.wrong(("links", i), f"there is no device {end!r}; {hint}")
            for ends in ((link.a, link.b), (link.b, link.a))[: 2 if link.ways == "both" else 1]:
                if ends in pairs:
                    raise self.wrong(
                        ("links", i),
                        f"{ends[0]} -> {ends[1]} stands already in links[{pairs[ends]}]; "
                        "for parallel links use count:",
                    )
                pairs[ends] = i
            links.extend(self._expand(link, file, i, defaults))
        notes = tuple(
            f"{each.quantity} of {count} links is a default, not from the source: {each.reason}"
            for each, count in defaults.items()
        )
        return TopologySpec(
            title, npus=tuple(npus), switches=tuple(switches), links=tuple(links), notes=notes
        )

    def _short(self, entry: list[str], file: LinksFile, i: int) -> Link:
        a, b, *rest = entry
        if len(rest) == 1:
            return Link(a=a, b=b, kind=rest[0])
        try:
            return Link.model_construct(
                a=a,
                b=b,
                kind=None,
                bandwidth=parse_bandwidth(rest[0], field=FIELD),
                latency=parse_time(rest[1], field=FIELD),
                ways="both",
                count=1,
                reverse=None,
            )
        except SpecError as error:
            raise self.wrong(("links", i), str(error).removeprefix(f"{FIELD}: ")) from None

    def _expand(
        self, link: Link, file: LinksFile, i: int, defaults: Counter[Default]
    ) -> list[LinkSpec]:
        """Give the directed links of an entry, parallel ones too."""
        place: Place = ("links", i)
        if link.a == link.b:
            raise self.wrong(place, f"joins {link.a!r} to itself; remove it")
        if link.reverse is not None and link.ways == "one":
            raise self.wrong(place, "has reverse: but ways: one; keep one of them")
        kind = None
        if link.kind is not None:
            kind = file.link_kinds.get(link.kind)
            if kind is None and (link.bandwidth is None or link.latency is None):
                known = ", ".join(file.link_kinds) or "none"
                raise self.wrong(place, f"there is no link kind {link.kind!r}; link_kinds: {known}")
        ways = 2 if link.ways == "both" and link.reverse is None else 1
        values = []
        for key in ("bandwidth", "latency"):
            value = getattr(link, key)
            if value is None:
                value = None if kind is None else getattr(kind, key)
            if value is None:
                raise self.wrong(place, f"key {key!r} is missing; add it, or a kind that has it")
            if isinstance(value, Default):
                defaults[value] += ways * link.count
                value = value.value
            values.append(value)
        there = LinkSpec(link.a, link.b, values[0], values[1], link.kind)
        back: Way | None = link.reverse
        rate, delay = (values[0], values[1]) if back is None else (back.bandwidth, back.latency)
        here = LinkSpec(link.b, link.a, rate, delay, link.kind)
        both = [there, here] if link.ways == "both" else [there]
        return both * link.count
