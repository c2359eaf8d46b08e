"""Algorithms over nodes, against closed forms and on six odd servers."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocket as hk

SIZE = 256_000_000


def odd(folder: Path, *, failed: bool) -> hk.Topology:
    """Six servers of four GPUs and two NICs on a 2:1 fat tree of two spines; one NIC may be down."""
    names = [f"n{n}g{g}" for n in range(6) for g in range(4)]
    nics = [f"nic{n}_{k}" for n in range(6) for k in range(2)]
    leaves = [f"leaf{i}" for i in range(4)]
    switches = [*(f"pcie{n}" for n in range(6)), *nics, *leaves, "spine0", "spine1"]
    links = []
    for n in range(6):
        for g in range(4):
            links += [f"[n{n}g{g}, n{n}g{h}, 100 GB/s, 700 ns]" for h in range(g)]
            links.append(f"[n{n}g{g}, pcie{n}, 32 GB/s, 350 ns]")
        for k in range(2):
            links.append(f"[pcie{n}, nic{n}_{k}, 32 GB/s, 350 ns]")
            links.append(f"[nic{n}_{k}, leaf{2 * (n // 3) + k}, 25 GB/s, 1 us]")
    links += [f"[{leaf}, spine{s}, 18.75 GB/s, 1 us]" for leaf in leaves for s in range(2)]
    text = f"name: odd\nnpus: [{', '.join(names)}]\nswitches: [{', '.join(switches)}]\ngroups: 4\n"
    text += "links:\n" + "".join(f"  - {link}\n" for link in links)
    text += "failed: {links: [[nic4_1, leaf3]]}\n" if failed else ""
    (folder / "odd.yml").write_text(text)
    return hk.topology.load(folder / "odd.yml")


def best(topology: hk.Topology, algorithm: str) -> hk.Run:
    return hk.compare("all-reduce", topology, size=SIZE, algorithms=[algorithm]).best.run


@pytest.mark.parametrize("failed", [False, True])
def test_six_odd_servers(tmp_path: Path, failed: bool) -> None:
    topology = odd(tmp_path, failed=failed)
    for kind in ("all-reduce", "reduce-scatter", "all-gather"):
        for algorithm in ("hierarchical", "multi-ring"):
            plan = hk.plan(kind, topology, size=SIZE, algorithm=algorithm).verify()
            assert hk.simulate(plan).gap >= 0
    rings = best(topology, "multi-ring")
    if failed:  # all that the node sends has to leave by one NIC
        least = 2 * (23 / 24) * SIZE / 25e9
        assert least < rings.time < 1.01 * least
    else:
        assert rings.time < 0.75 * best(topology, "ring").time


def test_a_server_less_a_gpu(tmp_path: Path) -> None:
    uneven = odd(tmp_path, failed=False).without(["n2g1"])
    hk.plan("all-reduce", uneven, size=SIZE, algorithm="multi-ring").verify()
    with pytest.raises(hk.InfeasibleError, match="are unlike: the first has 4 NPUs, node 2 3"):
        hk.plan("all-reduce", uneven, size=SIZE, algorithm="hierarchical")


@pytest.mark.parametrize(("nodes", "npus"), [(2, 4), (4, 8), (4, 2)])
def test_rings_fill_every_rail(nodes: int, npus: int) -> None:
    pod = hk.topology.rail(nodes, npus, bandwidth=50e9, latency=1e-6, node_bandwidth=900e9)
    count = nodes * npus
    # A ring moves 2 (n - 1) / n of its share of the data over each link between nodes.
    least = 2 * (count - 1) / count * SIZE / (npus * 50e9)
    assert least <= best(pod, "multi-ring").time < 1.03 * least


@pytest.mark.parametrize("nodes", [2, 4])
def test_hierarchical_sends_only_shares_between_nodes(nodes: int) -> None:
    pod = hk.topology.rail(nodes, 4, bandwidth=10e9, latency=1e-6, node_bandwidth=900e9)
    least = 2 * (nodes - 1) / nodes * SIZE / 4 / 10e9
    assert least <= best(pod, "hierarchical").time < 1.1 * least
