"""hocket's own topology files.

Three forms: ``builder:`` with its parameters, ``dims:``, or ``npus:``, ``switches:`` and ``links:``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from hocket._checks import did_you_mean
from hocket.errors import SpecError
from hocket.files.model import Reader, Source
from hocket.files.yaml_tree import Place
from hocket.topology.cost_model import Costs, CostsFile, Price
from hocket.topology.defaults import Default
from hocket.topology.model import (
    BUILDERS,
    Common,
    DimsFile,
    FamilyFile,
    Link,
    LinksFile,
    Profile,
    ProfileFile,
    Switch,
    Way,
    delay_or_default,
    rate_or_default,
)
from hocket.topology.slow import Slow, read_slow
from hocket.topology.spec import (
    BuilderSpec,
    CostsSpec,
    DimensionSpec,
    Groups,
    LinkSpec,
    OffloadSpec,
    PriceSpec,
    ProfileSpec,
    TopologySpec,
    skipped,
)
from hocket.units import format_bandwidth, shown


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
    file = reader.checked(reader.form(values), values)
    title = file.name or stem
    if isinstance(file, DimsFile):
        dimensions = tuple(
            DimensionSpec(each.kind, each.size, each.bandwidth, each.latency, each.offload)
            for each in file.dims
        )
        spec = TopologySpec(title, dimensions=dimensions, notes=skipped(dimensions))
        reader.check_costs(file, dimensions=len(dimensions))
        return _common(file, spec, reader)
    if isinstance(file, LinksFile):
        reader.check_costs(file, kinds=tuple(file.link_kinds))
        return _common(file, reader.links_file(file, title), reader)
    reader.check_costs(file)
    if not isinstance(file, FamilyFile):
        raise TypeError("a form is a builder, dims or links")
    builder = BuilderSpec(file.builder, file.arguments())
    return _common(file, TopologySpec(title, builder=builder), reader)


def profile_from_values(values: dict[str, Any], lines: dict[Place, int], name: str) -> ProfileSpec:
    """Check the values of a file that has a profile alone.

    Raises
    ------
    SpecError
        Naming file, line, key and remedy.
    """
    spec = _profile(_Reader(lines, name).checked(ProfileFile, values).profile)
    return ProfileSpec() if spec is None else spec


def costs_from_values(values: dict[str, Any], lines: dict[Place, int], name: str) -> CostsSpec:
    """Check the values of a file that has costs alone.

    Raises
    ------
    SpecError
        Naming file, line, key and remedy.
    """
    return costs_spec(_Reader(lines, name).checked(CostsFile, values).costs)


def costs_spec(given: Costs) -> CostsSpec:
    """Return what a section ``costs:`` says."""

    def price(each: Price) -> PriceSpec:
        return PriceSpec(each.each, each.bandwidth)

    return CostsSpec(
        given.npu,
        price(given.link),
        price(given.switch),
        {kind: price(each) for kind, each in given.kinds.items()},
        tuple((price(each.link), price(each.switch)) for each in given.dimensions),
    )


def _common(file: Common, spec: TopologySpec, reader: _Reader) -> TopologySpec:
    return replace(
        spec,
        failed_nodes=tuple(file.failed.nodes),
        failed_links=tuple((a, b) for a, b in file.failed.links),
        slow=reader.slow(file),
        switching=file.switching,
        named=file.name is not None,
        groups=_groups(file),
        offloads=tuple(
            OffloadSpec(
                None if each.switches == "all" else tuple(each.switches),
                tuple(each.operations),
                each.rate,
                each.trees,
            )
            for each in file.offload
        ),
        profile=_profile(file.profile),
        costs=None if file.costs is None else costs_spec(file.costs),
        gpu=file.gpu,
        notes=(*file.notes, *spec.notes),
        source=_sources(file.source),
        lines=reader.kept_lines(),
    )


def _sources(given: list[Source]) -> tuple[str, ...]:
    parts = [(each.paper, each.repo, each.path, each.commit, each.licence) for each in given]
    return tuple(" ".join(part for part in each if part is not None) for each in parts)


def _profile(given: Profile | str | None) -> ProfileSpec | None:
    if given is None or isinstance(given, str):
        return None if given is None else ProfileSpec(given)
    return ProfileSpec(
        None,
        dict(given.launch),
        given.launch_per_npu,
        {name: tuple(values) for name, values in given.constants.items()},
        (*_sources(given.source), *given.notes),
        blocks={name: tuple(values) for name, values in given.blocks.items()},
        fitted_to=dict(given.fitted_to),
        box=given.box or "",
        fabric=given.fabric or "",
        errors={band: (pair[0], pair[1]) for band, pair in given.errors.items()},
    )


def _groups(file: Common) -> Groups:
    """Return the nodes that a file states; groups that are a parameter of a family are its own."""
    is_own = isinstance(file, FamilyFile) and "groups" in file.arguments()
    if file.groups is None or is_own:
        return ()
    if isinstance(file.groups, int):
        return file.groups
    return tuple(tuple(group) for group in file.groups)


class _Reader(Reader):
    def form(self, values: dict[str, Any]) -> type[Common]:
        """Return the form of a file."""
        forms = [key for key in _FORMS if key in values]
        if len(forms) > 1:
            found = " and ".join(forms)
            raise self.wrong((), f"has {found}", "keep one of builder:, dims: and links:")
        if not forms and _DEVICES & values.keys():
            return (
                LinksFile  # whose reader says what is wrong first, which may be the missing links
            )
        if not forms:
            raise self.wrong((), "has no builder:, dims: or links:", _form_hint(values))
        if forms == ["dims"]:
            return DimsFile
        if forms == ["links"]:
            return LinksFile
        family = values["builder"]
        if not isinstance(family, str) or family not in BUILDERS:
            hint = f"builders are {', '.join(BUILDERS)}"
            raise self.wrong(
                ("builder",),
                f"there is no builder {shown(family)}",
                did_you_mean(str(family), BUILDERS, hint),
            )
        return BUILDERS[family]

    def fault(self, place: Place, found: Any) -> SpecError | None:
        """Return an error about the bandwidth or the latency of a link that is a list."""
        if found["type"] == "string_type" and place[0] == "links" and place[2:] in ((2,), (3,)):
            try:
                (rate_or_default if place[2] == 2 else delay_or_default)(found["input"])
            except SpecError as error:
                return self.wrong(place, str(error))
        return None

    def kept_lines(self) -> dict[Place, int]:
        """Return the lines of what is checked when the network is built."""
        kept = ("failed", "slow", "groups", "offload")
        return {place: line for place, line in self._lines.items() if place and place[0] in kept}

    def slow(self, file: Common) -> tuple[Slow, ...]:
        """Return the slow devices and links."""
        found: list[Slow] = []
        for i, each in enumerate(file.slow):
            try:
                found += read_slow([each], option="slow")
            except SpecError as error:
                raise self.wrong(("slow", i), error.why, error.remedy) from None
        return tuple(found)

    def check_costs(
        self, file: Common, *, kinds: tuple[str, ...] = (), dimensions: int = 0
    ) -> None:
        """Refuse costs of kinds of links, or of dimensions, that the network does not have."""
        if file.costs is None:
            return
        for kind in file.costs.kinds:
            if kind not in kinds:
                hint = did_you_mean(kind, kinds, f"link_kinds are {', '.join(kinds) or 'none'}")
                raise self.wrong(("costs", "kinds", kind), "there is no such kind of links", hint)
        priced = len(file.costs.dimensions)
        if priced and priced != dimensions:
            right = "price each of them" if dimensions else "price link and switch instead"
            why = f"these are {priced}, and the network has {dimensions or 'none'}"
            raise self.wrong(("costs", "dimensions"), why, right)

    def links_file(self, file: LinksFile, title: str) -> TopologySpec:
        """Return devices and links, checked against each other."""
        if isinstance(file.npus, int) and file.npus * _NPU_BYTES > _MEMORY:
            raise self.wrong(
                ("npus",),
                f"{file.npus} NPUs need about {format_bandwidth(file.npus * _NPU_BYTES)[:-2]} "
                f"of memory, more than the limit of {_MEMORY >> 30} GiB",
                "make it fewer",
            )
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
                raise self.wrong(
                    place, f"device {name!r} is listed twice", "give each its own name"
                )
            known[name] = place
        if not npus:
            raise self.wrong(("npus",), "there is no NPU", "list at least one")
        links: list[LinkSpec] = []
        defaults: Counter[Default] = Counter()
        pairs: dict[tuple[str, str], int] = {}
        for i, entry in enumerate(file.links):
            link = entry if isinstance(entry, Link) else self._short(entry, i)
            for end in (link.a, link.b):
                if end not in known:
                    hint = did_you_mean(end, known, "list it under npus or switches")
                    raise self.wrong(("links", i), f"there is no device {end!r}", hint)
            if link.a == link.b:
                raise self.wrong(("links", i), f"joins {link.a!r} to itself", "remove it")
            for ends in ((link.a, link.b), (link.b, link.a))[: 2 if link.ways == "both" else 1]:
                if ends in pairs:
                    raise self.wrong(
                        ("links", i),
                        f"{ends[0]} -> {ends[1]} stands already in links[{pairs[ends]}]",
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

    def _short(self, entry: list[str], i: int) -> Link:
        a, b, *rest = entry
        kind = rest[0] if len(rest) == 1 else None
        rate = delay = None
        if kind is None:
            try:
                rate = rate_or_default(rest[0])
                delay = delay_or_default(rest[1])
            except SpecError as error:
                place = ("links", i, 2 if rate is None else 3)
                raise self.wrong(place, str(error)) from None
        return Link.model_construct(a=a, b=b, kind=kind, bandwidth=rate, latency=delay)

    def _expand(
        self, link: Link, file: LinksFile, i: int, defaults: Counter[Default]
    ) -> list[LinkSpec]:
        """Return the directed links of an entry, parallel ones too."""
        place: Place = ("links", i)
        if link.reverse is not None and link.ways == "one":
            raise self.wrong(place, "has reverse: but ways: one", "keep one of them")
        kind = None
        if link.kind is not None:
            kind = file.link_kinds.get(link.kind)
            if kind is None and (link.bandwidth is None or link.latency is None):
                known = ", ".join(file.link_kinds) or "none"
                hint = did_you_mean(link.kind, file.link_kinds, f"link_kinds are {known}")
                raise self.wrong(place, f"there is no link kind {link.kind!r}", hint)
        ways = 2 if link.ways == "both" and link.reverse is None else 1

        def number(value: int | Default, ways: int) -> int:
            if isinstance(value, Default):
                defaults[value] += ways * link.count
                return value.value
            return value

        values = []
        for key in ("bandwidth", "latency"):
            value = getattr(link, key)
            if value is None:
                value = None if kind is None else getattr(kind, key)
            if value is None:
                raise self.wrong(place, f"key {key!r} is missing", "add it, or a kind that has it")
            values.append(number(value, ways))
        there = LinkSpec(link.a, link.b, values[0], values[1], link.kind)
        back: Way | None = link.reverse
        if back is not None:
            values = [number(back.bandwidth, 1), number(back.latency, 1)]
        here = LinkSpec(link.b, link.a, values[0], values[1], link.kind)
        both = [there, here] if link.ways == "both" else [there]
        return both * link.count


def _form_hint(values: dict[str, Any]) -> str:
    for key in values:
        close = get_close_matches(key.lower(), _FORMS, 1)
        if close:
            return f"did you mean {close[0]!r} by {shown(key)}?"
    return "add one of them"


_FORMS = ("builder", "dims", "links")
_DEVICES = {"npus", "switches", "link_kinds"}
_NPU_BYTES = 400  # its name here, and what the core keeps of it
_MEMORY = 16 << 30  # as the core's builders
