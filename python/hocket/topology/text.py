"""The values of ``--topology``: a file, a shipped machine, or a builder such as ``mesh:9x9``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from hocket._checks import did_you_mean, is_decimal, list_of, nearest, whole
from hocket._core.families import Family
from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.topology import machines
from hocket.topology.declared import FAMILIES, KINDS, NAMES
from hocket.topology.spec import BuilderSpec, DimensionSpec, TopologySpec, skipped
from hocket.units import Duration, Quantity, parse_bandwidth, parse_time, shown

UNWRITABLE = re.compile("[\ud800-\udfff]")
"""What arguments hold for bytes that are no text."""
_YAML = (".yml", ".yaml")
_DUMPS = (".xml", ".txt")
"""Of what NCCL and nvidia-smi write, as :mod:`hocket.topology.dump` reads it."""
_SEVERAL = "dump:"
"""Before the dumps of several nodes: ``dump:a.xml,b.xml`` or ``dump:a.xml,nodes=2``."""
MOST_NODES = 65_536
"""Nodes that are like the one whose dump is given."""
_LABEL = re.compile(r"\w[\w .+-]{0,59}")

_EXAMPLE = "mesh:4x4@25GB/s,700ns"
_MOST_SIZES = 32


def _form(family: Family) -> str:
    """Return how a family is written: an example, or the names of its sizes if some are optional."""
    sizes = [each for each in family.parameters if each.unit == "count"]
    if all(each.required for each in sizes):
        is_named = len(sizes) == 1 and sizes[0].name != "npus"
        name = f" ({sizes[0].name.upper()})" if is_named else ""
        return f"{family.name}:{family.example}{name}"
    return named_form(family)


def named_form(family: Family) -> str:
    """Return how a family is written, by the names of its sizes: ``clos:SPINESxTORS[xHOSTS_PER_TOR]``."""
    sizes = [each for each in family.parameters if each.unit == "count"]
    if len(sizes) < 2:
        more = "" if sizes else f", 1 to {_MOST_SIZES} sizes"
        return _form(family) + more
    must = "x".join(each.name.upper() for each in sizes if each.required)
    may = "".join(f"[x{each.name.upper()}]" for each in sizes if not each.required)
    return f"{family.name}:{must}{may}"


FORMS = (
    "a shipped machine (`hocket topology list`), a .yml file, "
    + ", ".join(map(_form, FAMILIES.values()))
    + ", a product such as Ring_FC_SW:2x8x4, or dump:FILE,nodes=2"
)


def is_machine_file(path: Path) -> bool:
    """Return whether a file is read as a dump of NCCL, or as text of nvidia-smi."""
    from hocket.topology.dump import is_dump

    return path.suffix in _DUMPS or (path.suffix not in _YAML and is_dump(path))


def from_file(path: Path, nodes: int = 1) -> TopologySpec:
    """Read a topology file: hocket's, ASTRA-sim's, InfraGraph's, a dump of NCCL, a matrix of nvidia-smi.

    Parameters
    ----------
    path
        The file.
    nodes
        How many nodes are like the machine of a dump or of a matrix.

    Raises
    ------
    SpecError
        Naming file, line, key and remedy.
    """
    from hocket.files.yaml_tree import read_yaml
    from hocket.topology.astra import is_astra, spec_from_astra
    from hocket.topology.dump import spec_from_dumps
    from hocket.topology.infragraph import is_infragraph, spec_from_infragraph
    from hocket.topology.yaml import spec_from_values

    if is_machine_file(path):
        return spec_from_dumps([path], nodes)

    values, lines = read_yaml(path)
    read = spec_from_astra if is_astra(values) else spec_from_values
    if is_infragraph(values):
        read = spec_from_infragraph
    return replace(read(values, lines, shown_path(path), path.stem), origin=shown_path(path))


def _several(value: Any) -> list[Any]:
    """Return a list of one, or what there is several of as a list."""
    is_one = isinstance(value, str) or not hasattr(value, "__len__")
    try:
        return [value] if is_one else list(value)
    except TypeError:  # an array without dimensions
        return [value]


def from_text(
    text: str,
    *,
    bandwidth: Quantity | Sequence[Quantity] | None,
    latency: Duration | Sequence[Duration] | None,
    option: str = "--topology",
    nodes: int | None = None,
) -> TopologySpec:
    """Read a topology given as text.

    Parameters
    ----------
    text
        A path, the name of a shipped machine, dumps of several nodes (``dump:a.xml,b.xml`` or
        ``dump:a.xml,nodes=2``), or a builder with its sizes, which may have bandwidth and latency:
        ``mesh:4x4@25GB/s,700ns``. A name may stand before it: ``pod=mesh:4x4@25GB/s,700ns``.
    bandwidth, latency
        For a builder without: one value, or for a product one per dimension.
    option
        Where the text stood, for messages.
    nodes
        How many nodes are like the machine whose dump the text names.

    Raises
    ------
    SpecError
        If it is none of these, or bandwidth, latency or nodes are missing or superfluous.
    """
    bandwidth, latency = (None if each is None else _several(each) for each in (bandwidth, latency))
    label = label_of(text)
    if label is not None:
        rest = text.partition("=")[2]
        spec = from_text(rest, bandwidth=bandwidth, latency=latency, option=option, nodes=nodes)
        return replace(spec, name=label, named=True)
    if nodes is not None:
        whole(_mark(option) + "nodes", nodes, 1, MOST_NODES)
    if is_dumps(text):
        _leave_out(text, bandwidth, latency, option)
        files, count = dumps_in(option, text, nodes)
        return from_dumps([Path(file) for file in files], count, f"{option} {text}")
    path = Path(text)
    head, at, link = text.partition("@") if is_builder(text) else (text, "", "")
    looks_like_file = Path(head).suffix in (*_YAML, *_DUMPS) or "/" in head
    family, colon, sizes = head.partition(":")
    if looks_like_file or not colon:
        is_file = _is(Path.is_file, path)
        if looks_like_file and not is_file:
            raise _no_file(path)
        is_machine = not looks_like_file and machines.known(text)
        if not is_machine and not is_file:
            raise SpecError(option, f"there is no {shown(text)}", str(_near(text)))
        _leave_out(shown_path(path), bandwidth, latency, option)
        if is_machine:
            if nodes not in (None, 1):
                raise _not_of_nodes(_mark(option) + "nodes", text, nodes)
            return replace(from_file(machines.path(text)), origin=text)
        is_node = is_machine_file(path)
        if nodes not in (None, 1) and not is_node:
            raise _not_of_nodes(_mark(option) + "nodes", text, nodes)
        found = from_file(path, 1 if nodes is None else nodes)
        return replace(found, node=path) if is_node and nodes is None else found
    if nodes is not None:
        raise _not_of_nodes(_mark(option) + "nodes", text, nodes)
    if at:
        if bandwidth or latency:
            raise SpecError(
                option, f"{shown(text)} has its own bandwidth and latency", "leave the others out"
            )
        bandwidth, latency = _links_in(option, text, link)
    spec = _built(option, head, family, _sizes(option, head, sizes), bandwidth, latency)
    return replace(spec, origin=f"{option} {text}")


def _no_file(path: Path, hint: str = "") -> SpecError:
    """Return what is wrong with a path that leads to no file."""
    what, hint = "there is no such file", hint or _near(path.stem, "check the path")
    if _is(Path.is_dir, path):
        what = "is a folder"
    elif _is(Path.exists, path):
        what, hint = "is a pipe or a device", "write what comes from it to a file"
    elif _is(Path.is_symlink, path):
        what, hint = "is a link that leads to no file", "check the path"
    return SpecError(None, what, hint, origin=shown_path(path))


def _leave_out(
    name: str,
    bandwidth: Sequence[Quantity] | None,
    latency: Sequence[Duration] | None,
    option: str,
) -> None:
    """Refuse bandwidth and latency for a network that has them."""
    for of, given in (("bandwidth", bandwidth), ("latency", latency)):
        if given:
            where = _mark(option) + of
            raise SpecError(None, f"{name} has its own", "leave the option out", origin=where)


def _not_of_nodes(field: str, name: str, nodes: object) -> SpecError:
    """Return why a network that is no dump cannot stand for several nodes."""
    why = f"{shown(nodes)} nodes like {shown(name)}, which is no dump of a node"
    return SpecError(
        field, why, "leave it out: only a dump of NCCL or text of nvidia-smi stands for a node"
    )


def is_dumps(text: str) -> bool:
    """Return whether a text names dumps of nodes: ``dump:a.xml,b.xml``."""
    return text.startswith(_SEVERAL)


def dumps_in(option: str, text: str, nodes: int | None = None) -> tuple[list[str], int | None]:
    """Return the files that ``dump:`` names, and how many nodes are like the only one, if it is said.

    Raises
    ------
    SpecError
        If there is no file, or several numbers of nodes.
    """
    parts = text.removeprefix(_SEVERAL).split(",")
    settings = [
        part for part in parts if re.match(r"\w+=", part) and not _is(Path.is_file, Path(part))
    ]
    files = [part for part in parts if part not in settings]
    form = "write dump:a.xml,b.xml or dump:a.xml,nodes=2"
    if len(settings) + (nodes is not None) > 1:
        raise SpecError(option, f"{shown(text)} has several numbers of nodes", "state it once")
    for setting in settings:
        name, _, number = setting.partition("=")
        if name != "nodes" or not is_decimal(number):
            raise SpecError(option, f"{shown(setting)} is no number of nodes", form)
        nodes = whole(f"{option} nodes", int(number), 1, MOST_NODES)
    if not files or not all(files):
        raise SpecError(option, f"{shown(text)} names no file", form)
    if nodes is not None and len(files) > 1:
        why = f"{shown(text)} has {len(files)} nodes of its own, and {nodes} like one are asked for"
        raise SpecError(option, why, form)
    return files, nodes


def like_node(spec: TopologySpec, nodes: int) -> TopologySpec:
    """Return the network of so many nodes like the one whose dump a network is (its ``node``).

    What has failed or is slow, and its name, stay.
    """
    assert spec.node is not None
    many = from_file(spec.node, nodes)
    of = ("npus", "switches", "links", "groups", "offloads", "notes", "assumed", "dumps")
    return replace(spec, node=None, **{name: getattr(many, name) for name in of})


def from_dumps(paths: Sequence[Path], nodes: int | None, origin: str) -> TopologySpec:
    """Read the dump of each node, or of one that some nodes are like: one, if nothing says how many.

    Raises
    ------
    SpecError
        Naming file, line and remedy.
    """
    from hocket.topology.dump import spec_from_dumps

    for path in paths:
        if not _is(Path.is_file, path):
            hint = "give a file that NCCL or nvidia-smi wrote"
            if machines.known(str(path)):
                hint = f"leave 'dump:' out for the shipped machine {path}, or {hint}"
            raise _no_file(path, hint)
    node = paths[0] if nodes is None and len(paths) == 1 else None
    return replace(spec_from_dumps(paths, nodes or 1), origin=origin, node=node)


def _links_in(option: str, text: str, links: str) -> tuple[list[Quantity], list[Duration]]:
    """Read what follows the first ``@``: bandwidth and latency of each kind of links, ``@`` between them.

    The latency is stated once for all kinds, or for each.
    """
    kinds = [each.partition(",") for each in links.split("@")]
    delays: list[Duration] = [delay for _, comma, delay in kinds if comma]
    if not kinds[0][1]:
        raise SpecError(option, f"{shown(text)} has no latency", f"write it as {_EXAMPLE}")
    if len(delays) not in (1, len(kinds)):
        right = "give one for all kinds of links, or one for each"
        raise SpecError(option, f"{shown(text)} has {len(delays)} latencies", right)
    return [rate for rate, _, _ in kinds], delays


def label_of(text: str) -> str | None:
    """Return the name that stands before a network, as in ``pod=mesh:4x4@25GB/s,700ns``; None without."""
    label, equals, _ = text.partition("=")
    return label if equals and _LABEL.fullmatch(label) else None


def is_builder(text: str) -> bool:
    """Return whether a text is a builder with its sizes, not a name or a path."""
    head = text.partition("@")[0]
    if label_of(head) is not None:
        head = head.partition("=")[2]
    if is_dumps(head):
        return False
    return ":" in head and "/" not in head and Path(head).suffix not in (*_YAML, *_DUMPS)


def read_failures(
    items: Iterable[str], *, option: str = "--failed"
) -> tuple[list[str], list[tuple[str, str]]]:
    """Read what has failed: ``A`` is a device, ``A,B`` a link.

    Returns
    -------
    nodes, links
        Names of devices, and of both ends of links.

    Raises
    ------
    SpecError
        If it is neither.
    """
    nodes: list[str] = []
    links: list[tuple[str, str]] = []
    given: Iterable[object] = items
    for item in given:
        is_text = isinstance(item, str) and not UNWRITABLE.search(item)
        ends = [end.strip() for end in str(item).split(",")] if is_text else []
        if not 1 <= len(ends) <= 2 or not all(ends):
            raise SpecError(
                option, f"{shown(item)} is neither a device nor a link", "give A or A,B"
            )
        if len(ends) == 1:
            nodes.append(ends[0])
        else:
            links.append((ends[0], ends[1]))
    return nodes, links


def _mark(option: str) -> str:
    """Return what the names of other options begin with, where this one is called so."""
    return "--" if option.startswith("--") else ""


def _is(what: Callable[[Path], bool], path: Path) -> bool:
    """Return the system's answer to a question about a path; False for an impossible path."""
    try:
        return what(path)
    except (OSError, ValueError):
        return False


def _near(name: str, otherwise: str = "") -> str:
    """Name what was meant, or every form."""
    name = name[:100].lower()
    if name in NAMES and not otherwise:
        return f"write it with its size, as {named_form(NAMES[name])}"
    known = machines.names()
    begin = [each for each in known if name and each.startswith(name)]
    close = [each for each in get_close_matches(name, known, 3, 0.5) if each not in begin]
    near = [repr(each) for each in (begin + close)[:3]]
    return f"did you mean {' or '.join(near)}?" if near else otherwise or f"give {FORMS}"


def _near_product(names: Sequence[str]) -> str:
    """Return which kinds are meant of a product with at least one, or nothing if it is no product."""
    kinds = list(dict.fromkeys(KINDS.values()))
    wrong = [name for name in names if name.lower() not in KINDS]
    if len(wrong) == len(names):
        return ""
    near = {name: nearest(name, kinds) for name in wrong}
    if not all(near.values()):
        return f"kinds of dimensions are {', '.join(kinds)}"
    return f"did you mean {'_'.join(near.get(name) or name for name in names)!r}?"


def _sizes(option: str, text: str, sizes: str) -> list[int]:
    parts = sizes.lower().split("x")
    if not all(is_decimal(part, 18) for part in parts):
        raise SpecError(
            option,
            f"{shown(text)}: {shown(sizes)} is not a size",
            "write sizes as 9x9, 1 or more each",
        )
    numbers = [int(part) for part in parts if len(part) <= 20]
    if len(numbers) != len(parts) or max(numbers) >= 1 << 32:
        raise SpecError(option, f"{shown(text)}: a size is 2^32 or more", "make it smaller")
    return numbers


def _built(
    option: str,
    text: str,
    family: str,
    sizes: list[int],
    bandwidth: Sequence[Quantity] | None,
    latency: Sequence[Duration] | None,
) -> TopologySpec:
    declared = NAMES.get(family.replace("-", "_"))
    if declared is not None:
        arguments = _arguments(option, text, declared, sizes, bandwidth, latency)
        return TopologySpec(text, builder=BuilderSpec(declared.name, arguments))
    names = family.split("_")
    kinds = [KINDS.get(name.lower()) for name in names]
    if None in kinds:
        hint = _near_product(names) or did_you_mean(family, NAMES, f"give {FORMS}")
        raise SpecError(option, f"there is no {shown(family)} to build", hint)
    wanted = len(names)
    if len(sizes) != wanted:
        right = f"give one for each of {wanted} dimensions"
        raise _wrong_count(option, text, sizes, right)
    rates = _rates(option, text, bandwidth, wanted, "dimensions")
    delays = _delays(option, text, latency, wanted, "dimensions")
    dimensions = tuple(
        DimensionSpec(str(kind), size, rate, delay)
        for kind, size, rate, delay in zip(kinds, sizes, rates, delays, strict=True)
    )
    return TopologySpec(text, dimensions=dimensions, notes=skipped(dimensions))


def _wrong_count(option: str, text: str, sizes: list[int], right: str) -> SpecError:
    count = f"{len(sizes)} size{'s'[: len(sizes) != 1]}"
    return SpecError(option, f"{shown(text)} has {count}", right)


def _arguments(
    option: str,
    text: str,
    family: Family,
    sizes: list[int],
    bandwidth: Sequence[Quantity] | None,
    latency: Sequence[Duration] | None,
) -> dict[str, object]:
    """Return parameters by name: sizes, then bandwidth and latency of each kind of links."""
    named: dict[str, list[str]] = {unit: [] for unit in ("count", "counts", "bandwidth", "latency")}
    least = 0
    for each in family.parameters:
        is_of_links = each.required or isinstance(each.default, str)
        if each.unit == "count" or (each.unit in named and is_of_links):
            named[each.unit].append(each.name)
            least += each.unit == "count" and each.required
    counts = named["count"]
    if not (least <= len(sizes) <= len(counts) if counts else len(sizes) <= _MOST_SIZES):
        raise _wrong_count(option, text, sizes, f"write it as {named_form(family)}")
    kinds = named["bandwidth"]
    of = f"kinds of links: {', '.join(kinds)}"
    rates = _rates(option, text, bandwidth, len(kinds), of)
    delays = _delays(option, text, latency, len(named["latency"]), of)
    arguments: dict[str, object] = dict.fromkeys(named["counts"], sizes)
    arguments.update(zip(counts, sizes, strict=False))
    arguments.update(zip(kinds, rates, strict=True))
    arguments.update(zip(named["latency"], delays, strict=True))
    return arguments


def _rates(
    option: str, text: str, given: Sequence[Quantity] | None, wanted: int, of: str
) -> list[int]:
    each = _each(_mark(option) + "bandwidth", "25 GB/s", text, given, wanted, of)
    return [parse_bandwidth(rate, field=field) for field, rate in each]


def _delays(
    option: str, text: str, given: Sequence[Duration] | None, wanted: int, of: str
) -> list[int]:
    each = _each(_mark(option) + "latency", "700 ns", text, given, wanted, of)
    return [parse_time(delay, field=field) for field, delay in each]


def _each(
    option: str, example: str, text: str, values: Sequence[Duration] | None, wanted: int, of: str
) -> list[tuple[str, Duration]]:
    """Return one value a dimension, and where it stood for messages."""
    values = None if values is None else list_of(option, values)
    if not values:
        name = option.partition(",")[0]
        value = f"{name} " if name.startswith("--") else f"{name}="
        raise SpecError(
            option, f"{text} needs one", f'give {value}"{example}", or write {text}@25GB/s,700ns'
        )
    lists = [value.split(",") if isinstance(value, str) else [value] for value in values]
    split: list[Duration] = [part for each in lists for part in each]
    if len(split) == 1:
        return [(option, split[0])] * wanted
    if len(split) != wanted:
        right = "give one" if wanted == 1 else f"give one, or one for each of {wanted} {of}"
        raise SpecError(option, f"{len(split)} given for {text}", right)
    return [
        (f"{option}, {of.partition(' ')[0].removesuffix('s')} {i}", each)
        for i, each in enumerate(split, 1)
    ]
