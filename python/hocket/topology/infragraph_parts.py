"""The parts of InfraGraph files: keys, names, counts, alternatives, links."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

from hocket._checks import did_you_mean
from hocket.files.complaint import Located
from hocket.files.yaml_tree import Place
from hocket.topology.infragraph_names import named
from hocket.units import shown

NAMED = ("name", "description")
MOST = 1 << 20
"""Components, and edges, of a whole file."""
_RATES = {"gigabits_per_second": Fraction(10**9, 8), "gigabytes_per_second": Fraction(10**9)}
_TRANSFERS = "gigatransfers_per_second"
_DELAYS = {"ms": Fraction(10**9), "us": Fraction(10**6), "ns": Fraction(10**3)}


@dataclass
class Link:
    """A link's bandwidth [bytes/s] and latency [ps], where it has them."""

    name: str
    place: Place
    rate: int | None = None
    delay: int | None = None


class Parts(Located):
    """Reads parts of a file; an error names the line."""

    def __init__(self, lines: dict[Place, int], name: str) -> None:
        super().__init__(lines, name)
        self.all_links: dict[str, list[Link]] = {}

    def _keys(self, value: object, place: Place, keys: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(
                place, f"{shown(value)} is not a mapping", f"keys are {', '.join(keys)}"
            )
        for key in value:
            if key not in keys:
                hint = did_you_mean(str(key), keys, f"keys are {', '.join(keys)}")
                old = "InfraGraph 3 has edges: in its place" if key == "connections" else hint
                raise self.wrong((*place, key), "InfraGraph has no such key here", old)
        return value

    def _items(self, values: dict[str, Any], place: Place, key: str) -> Iterator[tuple[Any, Place]]:
        found = values.get(key) or []
        if not isinstance(found, list):
            raise self.wrong((*place, key), f"{shown(found)} is not a list", "write one")
        for i, item in enumerate(found):
            yield item, (*place, key, i)

    def _named(
        self, values: dict[str, Any], place: Place, key: str, keys: tuple[str, ...]
    ) -> Iterator[tuple[str, dict[str, Any], Place]]:
        seen: set[str] = set()
        for item, at in self._items(values, place, key):
            checked = self._keys(item, at, keys)
            title = self._text(checked, at, "name")
            if not named(title):
                wrong = f"{shown(title)} is not a name"
                raise self.wrong((*at, "name"), wrong, "use letters, digits, _ and -")
            if title in seen:
                raise self.wrong((*at, "name"), f"{title!r} is there twice", "give each its own")
            seen.add(title)
            yield title, checked, at

    def _text(self, values: dict[str, Any], place: Place, key: str) -> str:
        if key not in values:
            raise self.wrong(place, f"key {key!r} is missing", "add it")
        if not isinstance(values[key], str) or not values[key]:
            raise self.wrong((*place, key), f"{shown(values[key])} is not text", "quote it")
        return str(values[key])

    def _known(
        self, values: dict[str, Any], place: Place, key: str, known: Collection[str], what: str
    ) -> str:
        found = self._text(values, place, key)
        if found not in known:
            listed = ", ".join(list(known)[:8]) or "none"
            hint = did_you_mean(found, known, f"there are {listed}")
            raise self.wrong((*place, key), f"there is no {what} {shown(found)}", hint)
        return found

    def _count(self, values: dict[str, Any], place: Place) -> int:
        if "count" not in values:
            raise self.wrong(place, "key 'count' is missing", "add it")
        count = values["count"]
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST:
            right = f"give 0 to {MOST:,}"
            raise self.wrong((*place, "count"), f"{shown(count)} is not a number of them", right)
        return count

    def _choice(self, values: dict[str, Any], place: Place, known: tuple[str, ...]) -> str:
        """Return the chosen alternative, or the only one if none is named."""
        there = [key for key in known if key in values]
        if "choice" in values:
            return self._known(values, place, "choice", known, "choice")
        if len(there) != 1:
            raise self.wrong(place, "key 'choice' is missing", f"add one of {', '.join(known)}")
        return there[0]

    def _links(self, values: dict[str, Any], place: Place) -> dict[str, Link]:
        found = {}
        for title, link, at in self._named(values, place, "links", (*NAMED, "physical")):
            made = Link(title, at)
            if link.get("physical") is not None:
                inner: Place = (*at, "physical")
                physical = self._keys(link["physical"], inner, ("bandwidth", "latency"))
                made.rate = self._quantity(physical, inner, "bandwidth", _RATES, 1)
                made.delay = self._quantity(physical, inner, "latency", _DELAYS, 0)
            found[title] = made
            self.all_links.setdefault(title, []).append(made)
        return found

    def _quantity(
        self, values: dict[str, Any], place: Place, key: str, units: dict[str, Fraction], least: int
    ) -> int | None:
        if values.get(key) is None:
            return None
        place = (*place, key)
        known = (*units, _TRANSFERS) if key == "bandwidth" else tuple(units)
        given = self._keys(values[key], place, ("choice", *known))
        unit = self._choice(given, place, known)
        if unit == _TRANSFERS:
            why = "transfers per second are no bandwidth without the number of lanes"
            raise self.wrong((*place, unit), why, "give gigabytes_per_second")
        number = given.get(unit)
        if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number):
            right = "give a number"
            raise self.wrong((*place, unit), f"{shown(number)} is not a {key}", right)
        whole = round(Fraction(number) * units[unit])
        if not least <= whole < 1 << 62:
            right = "give more than 0" if whole < least else "make it smaller"
            raise self.wrong((*place, unit), f"{shown(number)} is not a {key}", right)
        return whole
