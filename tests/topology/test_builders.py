"""Builders: how many of what they make, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hocket as hk
from hocket import topology as tp

from .small_networks import GB, LINK


@pytest.mark.parametrize(
    ("topology", "npus", "switches", "links"),
    [
        (tp.line(5, **LINK), 5, 0, 8),
        (tp.ring(5, **LINK), 5, 0, 10),
        (tp.ring(5, both_ways=False, **LINK), 5, 0, 5),
        (tp.ring(2, **LINK), 2, 0, 2),
        (tp.fully_connected(5, **LINK), 5, 0, 20),
        (tp.switch(5, **LINK), 5, 1, 10),
        (tp.mesh(3, 4, **LINK), 12, 0, 34),
        (tp.mesh(2, 3, 4, **LINK), 24, 0, 92),
        (tp.torus(3, 4, **LINK), 12, 0, 48),
        (tp.torus(2, 2, **LINK), 4, 0, 8),
        (tp.torus(3, 3, 3, **LINK), 27, 0, 162),
        (tp.hypercube(4, **LINK), 16, 0, 64),
        (tp.dragonfly(4, 5, **LINK), 20, 0, 92),
        (tp.clos(spines=2, tors=4, hosts_per_tor=3, **LINK), 12, 6, 40),
        (tp.bigraph(2, 3, **LINK), 12, 4, 32),
        (tp.fat_tree(4, **LINK), 16, 20, 96),
    ],
    ids=lambda value: value.name if isinstance(value, hk.Topology) else "",
)
def test_builders(topology: hk.Topology, npus: int, switches: int, links: int) -> None:
    found = topology.inspect()
    assert (found.npus, found.switches, found.links) == (npus, switches, links)
    assert found.connected
    assert set(topology.link_bandwidth.tolist()) == {2 * GB}
    assert set(topology.link_latency_ps.tolist()) == {3000}


def test_builders_with_two_kinds_of_links() -> None:
    far = tp.dragonfly(3, 2, global_bandwidth="8 Gb/s", global_latency="1 us", **LINK)
    assert set(far.link_bandwidth.tolist()) == {2 * GB, GB}
    assert set(far.link_latency_ps.tolist()) == {3000, 1_000_000}
    clos = tp.clos(spines=2, tors=2, hosts_per_tor=3, host_bandwidth="1 GB/s", **LINK)
    assert (clos.link_bandwidth == GB).sum() == 12
    assert tp.switch(4, limit="6 GB/s", **LINK).switch_limits == [6 * GB]
    assert tp.switch(4, **LINK).switch_limits == [None]


def test_numpy_integers_are_sizes() -> None:
    assert tp.mesh(np.int64(3), np.uint8(3), **LINK) == tp.mesh(3, 3, **LINK)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: tp.ring(-1, **LINK), "npus: -1 "),
        (lambda: tp.ring(0, **LINK), "npus: 0 "),
        (lambda: tp.ring(True, **LINK), "npus: true "),
        (lambda: tp.ring(4.0, **LINK), "npus: 4.0 "),  # type: ignore[arg-type]
        (lambda: tp.ring("4", **LINK), "npus: '4' "),  # type: ignore[arg-type]
        (lambda: tp.ring(2**32, **LINK), "npus: 4294967296 "),
        (lambda: tp.ring(1, **LINK), "size of the ring: is 1; give it at least 2"),
        (lambda: tp.mesh(3, 0, **LINK), "size 1: 0 "),
        (lambda: tp.mesh(**LINK), "mesh"),
        (lambda: tp.fat_tree(3, **LINK), "k of the fat tree: is 3; give it an even number"),
        (lambda: tp.ring(4, bandwidth="2", latency="3 ns"), "bandwidth: '2' "),
        (lambda: tp.ring(4, bandwidth=True, latency="3 ns"), "bandwidth: true "),
        (lambda: tp.ring(4, bandwidth=-2, latency="3 ns"), "bandwidth: -2 "),
        (lambda: tp.ring(4, bandwidth=2, latency=float("nan")), "latency: nan "),
        (lambda: tp.ring(4, bandwidth="2 GB/s", latency="-1 ns"), "latency: '-1 ns' "),
        (lambda: tp.switch(4, limit="0 B/s", **LINK), "limit: '0 B/s' "),
        (lambda: tp.dragonfly(4, 5, global_bandwidth="x", **LINK), "global_bandwidth: 'x' is no"),
        (lambda: tp.dragonfly(4, 5, global_latency="x", **LINK), "global_latency: 'x' "),
        (
            lambda: tp.clos(spines=1, tors=0, hosts_per_tor=1, **LINK),
            "tors: 0 ",
        ),
        (
            lambda: tp.bigraph(0, 4, **LINK),
            "switches_per_side: 0 ",
        ),
        (lambda: tp.bigraph(4, 2.0, **LINK), "npus_per_switch: 2.0 "),  # type: ignore[arg-type]
        (lambda: tp.bigraph(10**6, 4, **LINK), "of memory, more than the limit"),
        (lambda: tp.ring(10**9, **LINK), "needs about 150 GiB of memory"),
        (lambda: tp.fully_connected(10**9, **LINK), "of memory, more than the limit"),
        (lambda: tp.mesh(10**5, 10**5, **LINK), "of memory, more than the limit"),
        (lambda: tp.fat_tree(10**5, **LINK), "of memory, more than the limit"),
        (lambda: tp.hypercube(40, **LINK), "of memory, more than the limit"),
        (lambda: tp.load("mesh:9x9"), 'bandwidth: mesh:9x9 needs one; give bandwidth="25 GB/s"'),
        (lambda: tp.load("dgx1"), "name_or_path: there is no 'dgx1'; did you mean 'dgx1_v100'"),
        (lambda: tp.load(""), "name_or_path: there is no ''; give a shipped machine"),
    ],
)
def test_wrong_arguments(build: Callable[[], hk.Topology], says: str) -> None:
    with pytest.raises(hk.SpecError) as error:
        build()
    assert says in str(error.value)
    assert len(str(error.value).splitlines()) == 1
