"""What networks cost: closed forms, products against their links, and wrong prices."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

import hocket as hk
from hocket.topology import costs as module
from hocket.topology.spec import CostsSpec, DimensionSpec, PriceSpec, TopologySpec
from hocket.topology.text import from_file

LINK = "link: {each: 10, bandwidth: 2 per GB/s}"


def cost_of(text: str, tmp_path: Path) -> module.NetworkCost:
    file = tmp_path / "net.yml"
    file.write_text(text)
    found = module.cost_of(from_file(file))
    assert found is not None
    return found


def test_a_torus_costs_its_cables(tmp_path: Path) -> None:
    found = cost_of(
        f"builder: torus\nsize: [4, 4]\nbandwidth: 50 GB/s\nlatency: 1 us\ncosts: {{npu: 5, {LINK}}}",
        tmp_path,
    )
    assert (found.npus, found.links, found.switches) == (16 * 5, 32 * (10 + 100), 0)
    assert (found.cables, found.switch_count, found.total) == (32, 0, 3600)


def test_a_switch_costs_by_what_leaves_it(tmp_path: Path) -> None:
    found = cost_of(
        "builder: clos\nspines: 2\ntors: 4\nhosts_per_tor: 3\nbandwidth: 50 GB/s\n"
        "host_bandwidth: 20 GB/s\nlatency: 1 us\n"
        "costs: {switch: {each: 100, bandwidth: 1 per 10 GB/s}}",
        tmp_path,
    )
    # A ToR sends 3 x 20 down and 2 x 50 up, a spine 4 x 50 down.
    assert found.switches == 4 * (100 + 16) + 2 * (100 + 20)
    assert (found.links, found.cables) == (0, 12 + 8)


def test_kinds_parallel_links_and_one_way(tmp_path: Path) -> None:
    found = cost_of(
        "npus: [a, b]\nswitches: [s]\n"
        "link_kinds: {nv: {bandwidth: 100 GB/s, latency: 1 us}}\n"
        "links:\n"
        "  - {a: a, b: b, kind: nv, count: 3}\n"
        "  - [a, s, 10 GB/s, 1 us]\n"
        "  - {a: b, b: s, bandwidth: 10 GB/s, latency: 1 us,\n"
        "     reverse: {bandwidth: 40 GB/s, latency: 1 us}}\n"
        "failed: {links: [[a, b]]}\n"
        "costs: {link: {bandwidth: 1 per GB/s}, kinds: {nv: {each: 7}}}",
        tmp_path,
    )
    # Three cables of a kind, paid for though they failed; one of 10; one of the dearer of 10 and 40.
    assert (found.links, found.cables) == (3 * 7 + 10 + 40, 5)


def test_dimensions_may_have_prices_of_their_own(tmp_path: Path) -> None:
    found = cost_of(
        "dims:\n"
        "  - {kind: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us}\n"
        "  - {kind: Switch, size: 2, bandwidth: 25 GB/s, latency: 1 us}\n"
        "costs:\n  dimensions:\n"
        "    - {link: {each: 1}}\n"
        "    - {link: {each: 10}, switch: {each: 100, bandwidth: 1 per GB/s}}\n",
        tmp_path,
    )
    assert (found.links, found.switches) == (8 * 1 + 8 * 10, 4 * (100 + 50))


def test_products_cost_what_their_links_do() -> None:
    costs = CostsSpec(3.0, PriceSpec(7.0, Fraction(1, 10**9)), PriceSpec(11.0, Fraction(2, 10**9)))
    kinds = ("Ring", "Line", "FullyConnected", "Switch")
    for chosen, sizes in product(product(kinds, repeat=2), ((2, 3), (4, 2), (1, 5), (3, 4))):
        rates = (25 * 10**9, 50 * 10**9)
        dimensions = tuple(
            DimensionSpec(kind, size, rate, 1000)
            for kind, size, rate in zip(chosen, sizes, rates, strict=True)
        )
        spec = TopologySpec("x", dimensions=dimensions, costs=costs)
        one, other = module.cost_of(spec), module._of_links(spec, costs)
        assert one is not None
        assert one == other


def test_cables_are_pairs_matched_by_hand() -> None:
    np = pytest.importorskip("numpy")
    draw = random.Random(5)
    for _ in range(50):
        count = draw.randrange(0, 25)
        ends = [draw.sample(range(4), 2) for _ in range(count)]
        prices = [draw.randrange(1, 9) for _ in range(count)]
        total, cables = 0, 0
        for a in range(4):
            for b in range(a):
                there = sorted(
                    (p for e, p in zip(ends, prices, strict=True) if e == [a, b]), reverse=True
                )
                back = sorted(
                    (p for e, p in zip(ends, prices, strict=True) if e == [b, a]), reverse=True
                )
                most = max(len(there), len(back))
                there += [0] * (most - len(there))
                back += [0] * (most - len(back))
                total += sum(map(max, there, back))
                cables += most
        src = np.array([a for a, _ in ends], dtype=np.int64)
        dst = np.array([b for _, b in ends], dtype=np.int64)
        made = module._cables(src, dst, np.array(prices, dtype=np.int64))
        assert (made.sum(), len(made)) == (total, cables)


HEAD = "builder: torus\nsize: [4, 4]\nbandwidth: 50 GB/s\nlatency: 1 us\ncosts:\n"
WRONG = [
    (
        "  link: {each: 1, bandwith: 2 per GB/s}",
        "line 6: costs.link: there is no key 'bandwith'; did you mean",
    ),
    ("  lnk: {each: 1}", "line 6: costs: there is no key 'lnk'; did you mean 'link'?"),
    (
        "  link: {bandwidth: 2 GB/s}",
        "costs.link.bandwidth: '2 GB/s' is not a price of bandwidth; write units",
    ),
    ("  link: {bandwidth: 2 per GB}", "line 6: costs.link.bandwidth: "),
    ("  link: {bandwidth: -2 per GB/s}", "is not a price of bandwidth"),
    ("  link: {bandwidth: 1e999 per GB/s}", "is not a price of bandwidth"),
    ("  link: {each: -1}", "line 6: costs.link.each: -1 is too small; give at least 0"),
    ("  npu: .inf", "line 6: costs.npu: "),
    (
        "  kinds: {nv: {each: 1}}",
        "line 6: costs.kinds.nv: there is no such kind of links; link_kinds are none",
    ),
    (
        "  dimensions: [{link: {each: 1}}]",
        "costs.dimensions: these are 1, and the network has none; price link",
    ),
    ("  dimensions: [{lnk: {each: 1}}]", "there is no key 'lnk'; did you mean 'link'?"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text for text, _ in WRONG])
def test_wrong_prices_are_one_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "n.yml").write_text(HEAD + text)
    with pytest.raises(hk.SpecError) as caught:
        hk.topology.load(tmp_path / "n.yml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_prices_may_stand_alone(tmp_path: Path) -> None:
    file = tmp_path / "prices.yml"
    file.write_text(f"costs: {{{LINK}}}")
    assert hk.topology.price("ring:4@25GB/s,1us", costs=file).total == 4 * (10 + 50)
    with pytest.raises(hk.SpecError, match="nothing says what"):
        hk.topology.price("ring:4@25GB/s,1us")
    file.write_text(f"costs: {{{LINK}}}\nnpu: 3")
    with pytest.raises(hk.SpecError, match="line 2: there is no key 'npu'"):
        hk.topology.price("ring:4@25GB/s,1us", costs=file)
    file.write_text("costs: {dimensions: [{link: {each: 1}}]}")
    with pytest.raises(hk.SpecError, match=r"costs\.dimensions: the network has none"):
        hk.topology.price("ring:4@25GB/s,1us", costs=file)
    assert hk.topology.price("Ring:4@25GB/s,1us", costs=file).total == 4
