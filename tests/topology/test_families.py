"""Every family that the core declares: as a function, as text, in a file, and in the docs."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import hocket as hk
from hocket import topology as tp
from hocket._core.families import Family
from hocket.topology.build import build_topology, counts_of
from hocket.topology.declared import FAMILIES
from hocket.topology.text import from_text

from .generated import files
from .small_networks import LINK

EACH = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_what_is_written_of_them_is_current(path: Path, accept: bool) -> None:
    if accept:
        path.write_text(files()[path], encoding="utf-8")
    assert path.read_text(encoding="utf-8") == files()[path]


def sizes(family: Family) -> list[int]:
    """Twos: every family has a network of them."""
    given = [each for each in family.parameters if each.unit in ("count", "counts")]
    return [2 for each in given if each.required]


@EACH
def test_function_text_and_file_make_the_same(family: Family, tmp_path: Path) -> None:
    made: hk.Topology = getattr(tp, family.name)(*sizes(family), **LINK)
    text = f"{family.name}:{'x'.join(map(str, sizes(family)))}@2GB/s,3ns"
    assert tp.load(text) == made
    lines = [f"builder: {family.name}", *(f"{key}: {value}" for key, value in LINK.items())]
    for each in family.parameters:
        if each.required and each.name not in LINK:
            lines.append(f"{each.name}: {'[2]' if each.unit == 'counts' else 2}")
    (tmp_path / "net.yml").write_text("\n".join(lines))
    assert tp.load(tmp_path / "net.yml") == made


@EACH
def test_the_example_is_counted_before_it_is_built(family: Family) -> None:
    spec = from_text(f"{family.name}:{family.example}@1GB/s,1us", bandwidth=None, latency=None)
    counts, made = counts_of(spec), build_topology(spec)
    assert (counts.npus, counts.links) == (made.npu_count, made.link_count)
    assert counts.npus + counts.switches == made.device_count
    assert list(counts.dimensions) == made.dimensions


@EACH
def test_the_function_says_what_it_takes(family: Family) -> None:
    function = getattr(tp, family.name)
    parameters = inspect.signature(function).parameters
    assert set(parameters) == {each.name for each in family.parameters}
    assert all(each.name in function.__doc__ for each in family.parameters)
    for each in family.parameters:
        if not each.required and isinstance(each.default, int):
            assert parameters[each.name].default == each.default


@EACH
def test_numbers_that_are_none_are_refused_by_name(family: Family) -> None:
    function = getattr(tp, family.name)
    for each in family.parameters:
        if each.unit in ("count", "counts"):
            continue
        with pytest.raises(hk.SpecError, match=f"^{each.name}: "):
            function(*sizes(family), **LINK | {each.name: "much"})
    for i in range(len(sizes(family))):
        wrong = [*sizes(family)[:i], -1, *sizes(family)[i + 1 :]]
        with pytest.raises(hk.SpecError, match=r"-1 is not a whole number"):
            function(*wrong, **LINK)
