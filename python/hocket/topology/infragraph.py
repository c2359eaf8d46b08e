"""InfraGraph: devices made of components, instances of devices, and edges between their components.

A file is an ``Infrastructure``, or what ``get_graph`` gives: one with ``annotations``. XPUs are NPUs,
whatever else has an edge forwards, and an edge is a link each way.

References
----------
Keysight/infragraph at 2701fa5 (package 3.1.0), artifacts/openapi.yaml; what schemes and slices mean:
src/infragraph/infragraph_service.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from hocket._checks import did_you_mean, is_decimal
from hocket.errors import SpecError
from hocket.files.yaml_tree import Place
from hocket.topology.defaults import LATENCY_PS
from hocket.topology.infragraph_names import endpoints, sliced
from hocket.topology.infragraph_parts import MOST, NAMED, Link, Parts
from hocket.topology.spec import LinkSpec, TopologySpec
from hocket.units import parse_bandwidth, parse_time, shown

_INFRASTRUCTURE = (*NAMED, "devices", "links", "instances", "edges")
_KINDS = ("custom", "device", "cpu", "xpu", "nic", "memory", "port", "switch")
_ABBREVIATED = {"Gbps": "Gb/s", "GBps": "GB/s"}
"""As InfraGraph's service writes units of edges."""
_DEEPEST = 16


def is_infragraph(values: dict[str, Any]) -> bool:
    """Return whether the values of a file look like InfraGraph's."""
    return "infrastructure" in values or ("devices" in values and "instances" in values)


def spec_from_infragraph(
    values: dict[str, Any], lines: dict[Place, int], name: str, stem: str
) -> TopologySpec:
    """Return the network that an InfraGraph file describes.

    Raises
    ------
    SpecError
        Naming file, line, key and remedy.
    """
    return _Reader(lines, name).network(values, stem)


@dataclass
class _Edge:
    """An edge as it is: its own values are those of annotations."""

    link: Link
    place: Place
    rate: int | None = None
    delay: int | None = None


@dataclass
class _Device:
    place: Place
    components: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Kind and number of each."""
    links: dict[str, Link] = field(default_factory=dict)
    edges: list[tuple[str, str, _Edge]] = field(default_factory=list)


class _Reader(Parts):
    def network(self, values: dict[str, Any], stem: str) -> TopologySpec:
        root: Place = ()
        annotations: dict[str, Any] = {}
        if "infrastructure" in values:
            self._keys(values, (), ("infrastructure", "annotations"))
            annotations = values.get("annotations") or {}
            root, values = ("infrastructure",), values["infrastructure"]
        self._keys(values, root, _INFRASTRUCTURE)
        self._notes: list[str] = []
        self._devices: dict[str, _Device] = {}
        self._nodes: dict[str, str] = {}
        self._edges: dict[tuple[str, str], _Edge] = {}
        listed = list(self._named(values, root, "devices", _device_keys()))
        for title, device, place in listed:
            self._devices[title] = self._components(device, place)
        for title, device, place in listed:
            self._device_edges(self._devices[title], title, device, place)
        self._instances: dict[str, tuple[str, int]] = {}
        for title, instance, place in self._named(
            values, root, "instances", (*NAMED, "device", "count")
        ):
            kind = self._known(instance, place, "device", self._devices, "device")
            self._instances[title] = (kind, self._count(instance, place))
            for index in range(self._instances[title][1]):
                self._expand(f"{title}.{index}", kind, place, 0)
        self._fabric(values, root)
        notes = self._annotate(annotations, ("annotations",))
        called = self._text(values, root, "name") if "name" in values else ""
        called = notes.get("name", called)
        return self._spec(called or stem, named=bool(called), switching=notes.get("switching"))

    def _components(self, device: dict[str, Any], place: Place) -> _Device:
        made = _Device(place)
        for title, component, at in self._named(
            device, place, "components", (*NAMED, "count", "choice", *_KINDS)
        ):
            kind = self._choice(component, at, _KINDS)
            made.components[title] = (kind, self._count(component, at))
        made.links = self._links(device, place)
        return made

    # Edges

    def _edge(
        self, item: object, place: Place, keys: tuple[str, ...], links: dict[str, Link]
    ) -> tuple[dict[str, Any], dict[str, Any], str, _Edge]:
        edge = self._keys(item, place, ("ep1", "ep2", "scheme", "link"))
        ends = []
        for key in ("ep1", "ep2"):
            if key not in edge:
                raise self.wrong(place, f"key {key!r} is missing", "add it")
            ends.append(self._keys(edge[key], (*place, key), keys))
        scheme = self._known(edge, place, "scheme", ("one2one", "many2many", "ring"), "scheme")
        if scheme == "ring":
            why = "InfraGraph 3.1.0 does not say what a ring joins"
            raise self.wrong((*place, "scheme"), why, "write its edges one2one")
        link = links[self._known(edge, place, "link", links, "link")]
        return ends[0], ends[1], scheme, _Edge(link, place)

    def _pairs(
        self, first: list[str], second: list[str], scheme: str, place: Place
    ) -> Iterator[tuple[str, str]]:
        if scheme == "many2many":
            if len(first) * len(second) > MOST:
                raise self.wrong(place, f"joins more than {MOST:,} pairs", "make it fewer")
            yield from (pair for pair in product(first, second) if pair[0] != pair[1])
            return
        if len(first) != len(second):
            at = self.wrong(place, "").origin
            counts = f"{len(first)} components with {len(second)}"
            self._notes.append(f"{at}: one2one joins {counts}; those beyond are not joined")
        yield from (pair for pair in zip(first, second, strict=False) if pair[0] != pair[1])

    def _endpoint(self, device: str, text: str, place: Place) -> list[str]:
        """Return the components that an endpoint names, as they are called within a device."""

        def lookup(kind: str, component: str) -> tuple[str, int] | None:
            found = self._devices.get(kind)
            return None if found is None else found.components.get(component)

        try:
            return endpoints(lookup, device, text, MOST)
        except SpecError as error:
            raise self.wrong(place, error.why, error.remedy) from None

    def _device_edges(
        self, device: _Device, title: str, values: dict[str, Any], place: Place
    ) -> None:
        for item, at in self._items(values, place, "edges"):
            one, two, scheme, edge = self._edge(item, at, ("device", "component"), device.links)
            ends = []
            for key, end in (("ep1", one), ("ep2", two)):
                text = self._text(end, (*at, key), "component")
                outer = end.get("device")
                text = text if outer is None else f"{outer}.{text}"
                ends.append(self._endpoint(title, text, (*at, key, "component")))
            device.edges += [(a, b, edge) for a, b in self._pairs(ends[0], ends[1], scheme, at)]
            if len(device.edges) > MOST:
                raise self.wrong(at, f"are more than {MOST:,} edges", "make them fewer")

    def _expand(self, prefix: str, kind: str, place: Place, depth: int) -> None:
        """Add the components and edges of an instance, and of devices within it."""
        if depth > _DEEPEST:
            why = f"device {kind!r} is within itself, or deeper than {_DEEPEST} devices"
            raise self.wrong(self._devices[kind].place, why, "make it less deep")
        device = self._devices[kind]
        for name, (what, count) in device.components.items():
            if what == "device" and name not in self._devices:
                hint = "a component that is a device has the device's name"
                raise self.wrong(device.place, f"there is no device {name!r}", hint)
            if what != "device" and len(self._nodes) + count > MOST:
                raise self.wrong(place, f"makes more than {MOST:,} components", "make them fewer")
            for index in range(count):
                path = f"{prefix}.{name}.{index}"
                if what == "device":
                    self._expand(path, name, place, depth + 1)
                else:
                    self._nodes[path] = what
        for a, b, edge in device.edges:
            self._join(f"{prefix}.{a}", f"{prefix}.{b}", edge)

    def _join(self, a: str, b: str, edge: _Edge) -> None:
        """Add an edge; between two components there is one, and the last is it."""
        ends = (b, a) if (b, a) in self._edges else (a, b)
        self._edges[ends] = _Edge(edge.link, edge.place)
        if len(self._edges) > MOST:
            raise self.wrong(edge.place, f"makes more than {MOST:,} edges", "make them fewer")

    def _fabric(self, values: dict[str, Any], root: Place) -> None:
        links = self._links(values, root)
        for item, at in self._items(values, root, "edges"):
            one, two, scheme, edge = self._edge(item, at, ("instance", "component"), links)
            ends = []
            for key, end in (("ep1", one), ("ep2", two)):
                place: Place = (*at, key)
                text = self._text(end, place, "instance")
                title, _ = sliced(text, None)
                if title not in self._instances:
                    hint = did_you_mean(title, self._instances, "list it under instances")
                    wrong = f"there is no instance {shown(title)}"
                    raise self.wrong((*place, "instance"), wrong, hint)
                kind, count = self._instances[title]
                try:
                    _, numbers = sliced(text, count)
                except SpecError as error:
                    raise self.wrong((*place, "instance"), error.why, error.remedy) from None
                inner = self._endpoint(
                    kind, self._text(end, place, "component"), (*place, "component")
                )
                if len(numbers) * len(inner) > MOST:
                    raise self.wrong(place, f"names more than {MOST:,} components", "name fewer")
                ends.append([f"{title}.{number}.{each}" for number in numbers for each in inner])
            for a, b in self._pairs(ends[0], ends[1], scheme, at):
                self._join(a, b, edge)

    # Annotations

    def _annotate(self, values: object, place: Place) -> dict[str, str]:
        """Take from annotations what they say of links, ranks and names; give those of the graph."""
        given = self._keys(values, place, ("nodes", "edges", "links", "graph"))
        self._said: dict[str, dict[str, tuple[str, Place]]] = {}
        for item, at in self._items(given, place, "links"):
            link = self._keys(item, at, ("name", "attributes"))
            title = self._known(link, at, "name", self.all_links, "link")
            for each in self.all_links[title]:
                self._measure(each, self._attributes(link, at, "attributes"))
        for item, at in self._items(given, place, "edges"):
            edge = self._keys(item, at, ("ep1", "ep2", "attributes"))
            said = self._attributes(edge, at, "attributes")
            ends = [self._nodes_of(edge, at, key) for key in ("ep1", "ep2")]
            for a, b in self._pairs(ends[0], ends[1], "many2many", at):
                found = self._edges.get((a, b)) or self._edges.get((b, a))
                if found is not None:
                    self._measure(found, said)
        for item, at in self._items(given, place, "nodes"):
            node = self._keys(item, at, ("name", "attributes"))
            for path in self._nodes_of(node, at, "name"):
                self._said.setdefault(path, {}).update(self._attributes(node, at, "attributes"))
        return {key: value for key, (value, _) in self._attributes(given, place, "graph").items()}

    def _attributes(
        self, values: dict[str, Any], place: Place, key: str
    ) -> dict[str, tuple[str, Place]]:
        found = {}
        for item, at in self._items(values, place, key):
            pair = self._keys(item, at, ("attribute", "value"))
            value = pair.get("value")
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise self.wrong((*at, "value"), f"{shown(value)} is not text", "quote it")
            found[self._text(pair, at, "attribute")] = (str(value), (*at, "value"))
        return found

    def _nodes_of(self, values: dict[str, Any], place: Place, key: str) -> list[str]:
        text = self._text(values, place, key)
        if text in self._nodes:
            return [text]
        first, _ = sliced(text.partition(".")[0], None)
        found = []
        if "." not in text and first in self._instances:
            # Written without dots: server[0:2]xpu[0].
            head, bracket, tail = text.partition("]")
            kind, count = self._instances[first]
            if bracket and tail:
                try:
                    _, numbers = sliced(head + bracket, count)
                except SpecError as error:
                    raise self.wrong((*place, key), error.why, error.remedy) from None
                inner = self._endpoint(kind, tail.replace("]", "].").rstrip("."), (*place, key))
                found = [f"{first}.{number}.{each}" for number in numbers for each in inner]
        return found

    def _measure(self, what: Link | _Edge, said: dict[str, tuple[str, Place]]) -> None:
        for key, parse in (("bandwidth", parse_bandwidth), ("latency", parse_time)):
            if key not in said:
                continue
            text, place = said[key]
            number, _, unit = text.strip().rpartition(" ")
            text = f"{number} {_ABBREVIATED.get(unit, unit)}".strip()
            try:
                value = parse(text, field=key)
            except SpecError as error:
                raise self.wrong(place, error.why, error.remedy) from None
            if key == "bandwidth":
                what.rate = value
            else:
                what.delay = value

    # The network

    def _spec(self, title: str, *, named: bool, switching: str | None) -> TopologySpec:
        joined = {end for pair in self._edges for end in pair}
        npus = self._ranked([path for path, kind in self._nodes.items() if kind == "xpu"])
        switches = [path for path, kind in self._nodes.items() if kind != "xpu" and path in joined]
        left = len(self._nodes) - len(npus) - len(switches)
        if left:
            self._notes.append(
                f"{left:,} components that are no XPUs have no edges and are left out"
            )
        if not npus:
            raise self.wrong((), "has no component of choice xpu", "NPUs are those")
        called = {path: self._about(path, "name", path) for path in (*npus, *switches)}
        twice = [name for name, count in Counter(called.values()).items() if count > 1]
        if twice:
            raise self.wrong((), f"two components are called {twice[0]!r}", "annotate other names")
        self._check_rates()
        links = []
        media: Counter[str] = Counter()
        for (a, b), edge in self._edges.items():
            rate = edge.rate or edge.link.rate or 0
            delay = edge.link.delay if edge.delay is None else edge.delay
            if delay is None:
                medium = _medium(edge.link.name, is_direct={a, b} <= set(npus))
                media[medium] += 1
                delay = LATENCY_PS[medium][0]
            for src, dst in ((a, b), (b, a)):
                links.append(LinkSpec(called[src], called[dst], rate, delay, edge.link.name))
        nodes: dict[str, list[str]] = {}
        for path in npus:
            nodes.setdefault(".".join(path.split(".")[:2]), []).append(called[path])
        groups = tuple(map(tuple, nodes.values()))
        is_grouped = len(groups) > 1 and max(map(len, groups)) > 1
        latencies = [f"latency of {count} edges: {LATENCY_PS[m][1]}" for m, count in media.items()]
        if switching not in (None, "store-and-forward", "cut-through"):
            raise self.wrong(("annotations", "graph"), f"switching {shown(switching)} is not known")
        return TopologySpec(
            title,
            npus=tuple(called[path] for path in npus),
            switches=tuple((called[path], self._limit(path)) for path in switches),
            links=tuple(links),
            groups=groups if is_grouped else (),
            switching=switching,
            notes=(*self._notes, *latencies),
            named=named,
        )

    def _check_rates(self) -> None:
        lacking = [edge for edge in self._edges.values() if not (edge.rate or edge.link.rate)]
        if lacking:
            names = list(dict.fromkeys(repr(edge.link.name) for edge in lacking))
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            which = f"link{'s'[: len(names) != 1]} {', '.join(names[:8])}{more}"
            why = f"no bandwidth is given for {which}"
            place = lacking[0].link.place
            raise self.wrong(place, why, "add physical: bandwidth:, or annotate it")

    def _about(self, path: str, key: str, otherwise: str) -> str:
        return self._said.get(path, {}).get(key, (otherwise, ()))[0]

    def _limit(self, path: str) -> int | None:
        found = self._said.get(path, {}).get("limit")
        if found is None:
            return None
        text, place = found
        try:
            return parse_bandwidth(text, field="limit")
        except SpecError as error:
            raise self.wrong(place, error.why, error.remedy) from None

    def _ranked(self, npus: list[str]) -> list[str]:
        """Put XPUs in the order of their ranks, if those are annotated."""
        ranks = {}
        for path in npus:
            found = self._said.get(path, {}).get("rank")
            if found is not None:
                text, place = found
                is_rank = is_decimal(text)
                if not is_rank or int(text) >= len(npus) or int(text) in ranks:
                    right = f"give each of {len(npus)} XPUs its own, from 0"
                    raise self.wrong(place, f"{shown(text)} is not a rank of its own", right)
                ranks[int(text)] = path
        if not ranks:
            return npus
        if len(ranks) < len(npus):
            lacking = next(path for path in npus if path not in set(ranks.values()))
            raise self.wrong(
                ("annotations",), f"{lacking} has no rank, and others do", "give all one"
            )
        return [ranks[rank] for rank in range(len(npus))]


def _device_keys() -> tuple[str, ...]:
    return (*NAMED, "components", "links", "edges")


def _medium(name: str, *, is_direct: bool) -> str:
    """Return the medium whose latency a link has that states none, by its name."""
    name = name.lower()
    if "nvl" in name:
        return "nvlink" if is_direct else "nvswitch"
    for words, medium in (
        (("xgmi", "infinity"), "xgmi"),
        (("pci",), "pcie"),
        (("upi", "qpi"), "upi"),
    ):
        if any(word in name for word in words):
            return medium
    return "ib"
