"""Products of dimensions."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket import topology as tp
from hocket.topology.declared import KINDS

from .small_networks import GB, product


def test_products_are_named_as_astra_sim_names_them() -> None:
    rates = ["200 GB/s", "100 GB/s", "50 GB/s"]
    delays = ["50 ns", "500 ns", "2 us"]
    topology = product("Ring_FullyConnected_Switch", [2, 8, 4], rates, delays)
    assert topology.dimensions == [
        ("Ring", 2, 200 * GB, 50_000, False),
        ("FullyConnected", 8, 100 * GB, 500_000, False),
        ("Switch", 4, 50 * GB, 2_000_000, False),
    ]
    assert (topology.npu_count, len(topology.link_src)) == (64, 64 + 64 * 7 + 64 * 2)
    assert len(topology.device_names) == 64 + 16
    assert topology == product("r_FC_sw", [2, 8, 4], rates, delays)


@pytest.mark.parametrize(("alias", "kind"), KINDS.items())
def test_every_alias_of_a_dimension(alias: str, kind: str) -> None:
    for name in (alias, alias.upper()):
        assert [each[0] for each in product(f"{name}_Ring", [3, 2]).dimensions] == [kind, "Ring"]


def test_npus_vary_fastest_in_the_first_dimension() -> None:
    topology = product("Line_Line", [3, 2], ["1 GB/s", "2 GB/s"])
    of = {
        (int(a), int(b)): int(rate)
        for a, b, rate in zip(
            topology.link_src, topology.link_dst, topology.link_bandwidth, strict=True
        )
    }
    assert of[0, 1] == GB
    assert of[0, 3] == 2 * GB
    assert (2, 3) not in of


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("Ring_Foo", [2, 2]), "kinds: 'Foo' is not a dimension; use Ring, FullyConnected (FC)"),
        (("", [2]), "kinds: '' is not a dimension"),
        ((3, [2]), "kinds: 3 is not text; give it as 'Ring_FC_SW'"),
        (("Ring_Ring", [2]), "sizes: 1 given for the 2 dimensions of 'Ring_Ring'; give a list"),
        (("Ring_Ring", [2, 2], ["1 GB/s"]), "bandwidth: 1 given for the 2 dimensions"),
        (("Ring_Ring", [2, 2], "1 GB/s"), "bandwidth: only '1 GB/s' given for the 2 dimensions"),
        (("Ring_Ring", [2, 2], None, ["1 ns"] * 3), "latency: 3 given for the 2 dimensions"),
        (("Ring_Ring", [2, 2], ["1 GB/s", "1"]), "bandwidth[1]: '1' "),
        (("Ring_Ring", [2, 2], None, ["1", "1 ns"]), "latency[0]: '1' "),
        (("Ring_Ring", [2, 0]), "sizes[1]: 0 "),
    ],
)
def test_wrong_products(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        product(*arguments)
    assert str(error.value).startswith(says)


def test_sizes_that_are_no_list() -> None:
    with pytest.raises(hk.SpecError, match=r"^sizes: only 4 given for the 1 dimensions of 'Ring'"):
        tp.product("Ring", 4, bandwidth=["1 GB/s"], latency=["1 ns"])  # type: ignore[arg-type]
