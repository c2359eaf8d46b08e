"""Path assignment: closed forms, the optimum, bad input."""

from __future__ import annotations

import random
import sys

import networkx
import numpy as np
import pytest

import hocket as hk

WHOLE = [scheme for scheme in hk.routing.SCHEMES if scheme != "spray"]
HEURISTICS = [scheme for scheme in WHOLE if scheme != "ilp"]


def clos(spines: int, tors: int, hosts: int = 4) -> hk.Topology:
    return hk.topology.clos(
        spines=spines, tors=tors, hosts_per_tor=hosts, bandwidth="100 Gb/s", latency="1 us"
    )


def pairs(count: int, tors: int, seed: int) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    return [tuple(draw.sample(range(tors), 2)) for _ in range(count)]  # type: ignore[misc]


def fat_tree(k: int) -> hk.Topology:
    return hk.topology.fat_tree(k, bandwidth="100 Gb/s", latency="1 us")


def permutations(count: int, tors: int, draw: random.Random) -> list[tuple[int, int]]:
    """Every ToR sends and receives so many flows, in no order."""
    flows: list[tuple[int, int]] = []
    while len(flows) < count * tors:
        order = draw.sample(range(tors), tors)
        if all(i != other for i, other in enumerate(order)):
            flows += enumerate(order)
    return draw.sample(flows, len(flows))


@pytest.mark.parametrize("scheme", WHOLE)
def test_paths_across_a_fat_tree(scheme: str) -> None:
    fab = fat_tree(4).without(nodes=["core1"], links=[("edge2", "agg3")])
    flows = [(src, dst, 1 + i % 2) for i, (src, dst) in enumerate(pairs(14, 8, 2))]
    made = hk.routing.assign(fab, flows, scheme=scheme, time_limit=20)
    names, load = fab.device_names, [0] * fab.link_count
    for (src, dst, weight), top, path in zip(flows, made.choices, made.paths, strict=True):
        stops = [names[fab.link_src[path[0]]], *(names[fab.link_dst[link]] for link in path)]
        assert [stops[0], stops[-1]] == [f"edge{src}", f"edge{dst}"]
        assert stops[len(path) // 2] == (f"agg{top}" if src // 2 == dst // 2 else f"core{top}")
        for link in path:
            load[link] += weight
    assert made.link_loads.tolist() == load
    assert made.max_link_load == max(load)
    assert made.loads.up.shape == (8, 2)
    assert made.job_loads == {0: max(load)}
    assert made.certificate.load <= made.max_link_load


def test_a_fat_tree_is_coloured_as_well_as_can_be() -> None:
    fab = fat_tree(6)
    flows = permutations(6, 18, random.Random(3))
    made = hk.routing.assign(fab, flows, scheme="edge-coloring")
    assert made.max_link_load == made.certificate.load == 2
    assert hk.routing.assign(fab, flows, scheme="ilp").max_link_load == 2


def test_a_salt_undoes_polarisation() -> None:
    flows = [(0, 20)] * 1000
    used = [
        len(set(hk.routing.assign(fat_tree(8), flows, scheme="ecmp", salt=salt).choices.tolist()))
        for salt in (False, True)
    ]
    assert used == [4, 16]


@pytest.mark.parametrize("heaviest", [1, 9])
def test_with_failures_colouring_is_near_the_optimum(heaviest: int) -> None:
    ratios, better = [], 0
    for seed in range(12):
        draw = random.Random(seed)
        spines, tors = draw.choice([(4, 8), (6, 10), (8, 12)])
        names = [(f"tor{tor}", f"spine{spine}") for tor in range(tors) for spine in range(spines)]
        for share in (0.01, 0.05, 0.1):
            lost = draw.sample(names, max(1, round(share * len(names))))
            degrees = [spines - sum(tor == f"tor{i}" for tor, _ in lost) for i in range(tors)]
            fab = clos(spines, tors).without(links=lost)
            chosen = permutations(min(degrees) * draw.randint(1, 2), tors, draw)
            flows = [(src, dst, draw.randint(1, heaviest)) for src, dst in chosen]
            best = hk.routing.assign(fab, flows, scheme="ilp", time_limit=1).max_link_load
            greedy, made = (
                hk.routing.assign(fab, flows, scheme=scheme).max_link_load
                for scheme in ("greedy", "edge-coloring")
            )
            ratios.append(made / best)
            better += made < greedy
    assert sum(ratios) / len(ratios) <= 1.03
    assert better > len(ratios) / 3


def uneven(bandwidths: dict[str, str]) -> hk.Topology:
    """Two ToRs below spines whose links have these bandwidths."""
    graph = networkx.Graph()
    for tor in (0, 1):
        graph.add_edge(f"npu{tor}", f"tor{tor}", bandwidth="1 GB/s", latency="1 us")
        for spine, bandwidth in bandwidths.items():
            graph.add_edge(f"tor{tor}", spine, bandwidth=bandwidth, latency="1 us")
    for node, data in graph.nodes(data=True):
        data["kind"] = "npu" if node.startswith("npu") else "switch"
    return hk.topology.from_networkx(graph)


@pytest.mark.parametrize("scheme", ["greedy", "least-loaded", "edge-coloring", "ilp"])
def test_links_of_other_bandwidths_count_by_what_they_carry(scheme: str) -> None:
    fab = uneven({"spine0": "40 GB/s", "spine1": "100 GB/s"})
    made = hk.routing.assign(fab, [(0, 1)] * 7, scheme=scheme)
    assert made.reference == 200 * 10**9
    # Two flows of 200 / 40 against five of 200 / 100.
    assert (made.max_link_load, made.certificate.load) == (10, 10)
    assert made.spines.tolist().count(0) == 2
    said = "one carries 10 or more, each times 200 GB/s over the link's bandwidth"
    assert made.certificate.witness.endswith(said)


def test_bandwidths_without_a_common_multiple_are_refused() -> None:
    fab = uneven({"spine0": "40 GB/s", "spine1": "39.999999999 GB/s"})
    with pytest.raises(hk.SpecError, match="have no common multiple up to 2\\^24 times the least"):
        hk.routing.assign(fab, [(0, 1)])


def test_spraying_divides_flows() -> None:
    made = hk.routing.assign(clos(4, 4), [(0, 1), (0, 2, 2)], scheme="spray")
    assert made.max_link_load == 0.75
    assert made.loads.up[0].tolist() == [0.75] * 4
    assert made.link_loads.sum() == 6.0
    assert made.gap < 0
    with pytest.raises(hk.SpecError, match="it has no one choice or path"):
        assert made.paths


def test_annealing_takes_its_steps() -> None:
    fab, flows = clos(8, 16, 8), permutations(8, 16, random.Random(1))
    released, long = (
        hk.routing.assign(fab, flows, scheme="annealing", steps=steps).max_link_load
        for steps in (None, 20_000)
    )
    assert 1 <= long < released


@pytest.mark.parametrize("scheme", WHOLE)
def test_paths_lead_from_source_to_destination_and_make_the_loads(scheme: str) -> None:
    fab = clos(3, 6).without(nodes=["spine1"], links=[("tor2", "spine0")])
    flows = [(src, dst, 1 + i % 3) for i, (src, dst) in enumerate(pairs(12, 6, 1))]
    made = hk.routing.assign(fab, flows, scheme=scheme, time_limit=20)
    names, load = fab.device_names, dict[int, int]()
    for (src, dst, weight), spine, path in zip(flows, made.spines, made.paths, strict=True):
        ends = [(names[fab.link_src[link]], names[fab.link_dst[link]]) for link in path]
        assert ends == [(f"tor{src}", f"spine{spine}"), (f"spine{spine}", f"tor{dst}")]
        for link in path:
            load[link] = load.get(link, 0) + weight
    assert (
        made.max_link_load == max(load.values()) == max(made.loads.up.max(), made.loads.down.max())
    )
    assert made.loads.up.shape == (6, 3)
    assert made.loads.up.sum() + made.loads.down.sum() == sum(load.values())
    assert made.certificate.load <= made.max_link_load
    assert made.gap == made.max_link_load / made.certificate.load - 1
    again = hk.routing.assign(fab, flows, scheme=scheme, time_limit=20)
    if scheme != "ilp":
        assert np.array_equal(made.spines, again.spines)


def test_a_permutation_has_a_link_each() -> None:
    tors = 16
    ring = [(tor, (tor + 1) % tors) for tor in range(tors)]
    for scheme in ("greedy", "edge-coloring", "ilp"):
        made = hk.routing.assign(clos(4, tors), ring * 4, scheme=scheme)
        assert (made.max_link_load, made.gap) == (1, 0.0)
    assert hk.routing.assign(clos(4, tors), ring * 4, scheme="ecmp").max_link_load > 1


def test_all_pairs_load_every_link_alike() -> None:
    everyone = [(a, b) for a in range(9) for b in range(9) if a != b]
    made = hk.routing.assign(clos(4, 9), everyone, scheme="edge-coloring")
    assert (made.loads.up == 2).all()
    assert (made.loads.down == 2).all()
    assert made.certificate.witness.endswith(
        "8 flows of 8 in all over 4 uplinks: one carries 2 or more"
    )


@pytest.mark.parametrize("seed", range(6))
def test_no_scheme_beats_the_solver(seed: int) -> None:
    fab = clos(3, 5).without(links=[("tor0", "spine0"), ("tor3", "spine2")])
    flows = pairs(14, 5, seed)
    best = hk.routing.assign(fab, flows, scheme="ilp")
    assert best.gap == 0.0
    for scheme in HEURISTICS:
        assert hk.routing.assign(fab, flows, scheme=scheme).max_link_load >= best.max_link_load
    colored = hk.routing.assign(fab, flows, scheme="edge-coloring")
    assert colored.max_link_load <= best.max_link_load + 1
    whole = clos(3, 5)
    colored = hk.routing.assign(whole, flows, scheme="edge-coloring")
    assert colored.max_link_load == colored.certificate.load
    assert hk.routing.assign(whole, flows, scheme="ilp").max_link_load == colored.max_link_load


def test_the_solver_proves_more_than_degrees() -> None:
    # Three flows of 2 and two of 3 on two links: 6 each, whole flows.
    flows = [(0, 1, weight) for weight in (4, 4, 4, 6, 6)]
    made = hk.routing.assign(clos(2, 2), flows, scheme="ilp")
    assert (made.max_link_load, made.gap) == (12, 0.0)


def test_a_solver_out_of_time_is_no_worse_than_where_it_began() -> None:
    draw = random.Random(2)
    flows = [(*pair, draw.randint(1, 9)) for pair in permutations(32, 24, draw)]
    fab = clos(16, 24).without(nodes=["spine3", "spine7"])
    best = hk.routing.assign(fab, flows, scheme="ilp", time_limit=0.5)
    assert best.max_link_load <= hk.routing.assign(fab, flows, scheme="edge-coloring").max_link_load


def test_the_second_layer_is_fair_between_jobs() -> None:
    # ToR 0 has 3 flows on 2 links: two must share. Both of job 0, so that job 1 is alone.
    flows, jobs = [(0, 1), (0, 2), (0, 3)], [0, 1, 0]
    made = hk.routing.assign(clos(2, 4), flows, scheme="ilp", jobs=jobs)
    assert made.job_loads == {0: 2, 1: 1}
    assert made.spines[0] == made.spines[2] != made.spines[1]


def test_one_hash_twice_polarises() -> None:
    flows = [(2, 1 if i % 2 else 3) for i in range(500)]
    for hash in ("crc32", "toeplitz", "linux"):
        once, twice = (
            hk.routing.assign(clos(8, 4), flows, scheme="ecmp", hash=hash, upstream=upstream)
            for upstream in (1, 2)
        )
        assert len(set(once.spines.tolist())) == 8
        assert len(set(twice.spines.tolist())) == 4


@pytest.mark.parametrize("scheme", ["greedy", "ecmp", "spray"])
@pytest.mark.parametrize("seed", range(5))
def test_arrays_are_routed_as_lists(scheme: str, seed: int) -> None:
    fab = clos(4, 8)
    draw = np.random.default_rng(seed)
    src = draw.integers(0, 8, 200)
    rows = np.stack([src, (src + draw.integers(1, 8, 200)) % 8, draw.integers(0, 9, 200)], axis=1)
    for width in (2, 3):
        flows = [tuple(row) for row in rows[:, :width].tolist()]
        right = hk.routing.assign(fab, flows, scheme=scheme)
        wide = np.zeros((400, 6), np.int32)
        wide[::2, 3 : 3 + width] = rows[:, :width]
        for given in (
            *(rows[:, :width].astype(kind) for kind in ("int64", "uint8", "uint64")),
            np.asfortranarray(rows[:, :width]),
            wide[::2, 3 : 3 + width],
            [list(flow) for flow in flows],
            (tuple(map(np.int64, flow)) for flow in flows),
        ):
            made = hk.routing.assign(fab, given, scheme=scheme)
            assert made.flows == right.flows == tuple((*flow, 1)[:3] for flow in flows)
            assert (made.link_loads == right.link_loads).all()
            assert made.certificate == right.certificate
            if scheme != "spray":
                assert (made.choices == right.choices).all()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((0, -1, 1), "flow 1: ToR -1 is negative; give it 0 or more"),
        ((0, 1, -3), "flow 1: weight -3 is negative; give it 0 or more"),
        ((0, 2**32, 1), "flow 1: ToR 4294967296 is too large; give it 0 or more"),
        ((0, 1, 1.5), "flow 0: ToR .*0.0.* is not a whole number"),
        ((0, 1, 2, 3), "flow 0 is .*; a flow is"),
    ],
)
def test_arrays_that_make_no_sense_are_refused(row: tuple[float, ...], message: str) -> None:
    given = np.array([(0, 1, 1, 1)[: len(row)], row])
    with pytest.raises(hk.SpecError, match=message):
        hk.routing.assign(clos(2, 4), given)
    if len(row) == 3 and row[2] == 1 and row[1] > 0:
        heavy = np.array([(0, 1, 2**63)], np.uint64)
        with pytest.raises(hk.SpecError, match="flow 0: weight 9223372036854775808 is too large"):
            hk.routing.assign(clos(2, 4), heavy)


def test_nothing_to_assign() -> None:
    for scheme in WHOLE:
        made = hk.routing.assign(clos(2, 2), [], scheme=scheme)
        assert (len(made.spines), made.max_link_load, made.gap) == (0, 0, 0.0)


def test_a_failed_spine_keeps_the_numbers_of_the_rest() -> None:
    fab = clos(4, 3).without(nodes=["spine0"])
    assert hk.routing.assign(fab, [(0, 1)] * 3).spines.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("flows", "options", "message"),
    [
        ([(0, 9)], {}, "flow 0: there is no ToR 9; ToRs are 0 to 3"),
        ([(0, 1), (2, 2)], {}, "flow 1 goes from ToR 2 to itself and needs no path; leave it out"),
        ([(0, 1, -1)], {}, "flow 0: weight -1 is negative; give it 0 or more"),
        ([(-1, 1)], {}, "flow 0: ToR -1 is negative; give it 0 or more"),
        ([(0, 1, 1.5)], {}, "flow 0: weight 1.5 is not a whole number"),
        ([(0,)], {}, "flow 0 is (0,); a flow is"),
        ([3], {}, "flow 0 is 3; a flow is"),
        ([(0, 1, 2**63 - 1)] * 2, {}, "the weights of all flows together pass 2^63"),
        (
            [(0, 1)],
            {"scheme": "best"},
            "scheme: there is no 'best'; use greedy, greedy-parallel",
        ),
        (
            [(0, 1)],
            {"hash": "md5", "scheme": "ecmp"},
            "hash: there is no 'md5'; use crc32, toeplitz or linux",
        ),
        ([(0, 1)], {"upstream": 0}, "upstream: 0 "),
        ([(0, 1)], {"steps": 0}, "steps: 0 "),
        ([(0, 1)], {"seed": -1}, "seed: -1 "),
        ([(0, 1)], {"jobs": [1, 2]}, "there are 2 jobs for 1 flows"),
        ([(0, 1)], {"scheme": "ilp", "time_limit": 0}, "time_limit: 0 leaves no time"),
        ([(0, 1)], {"scheme": "ilp", "workers": 0}, "workers: 0 "),
        ([(0, 1)], {"scheme": "ilp", "workers": "2"}, "workers: '2' "),
        ([(0, 1)], {"scheme": "ilp", "time_limit": "1"}, "time_limit: '1' "),
    ],
)
def test_what_makes_no_sense_is_refused(flows: list, options: dict, message: str) -> None:
    with pytest.raises(hk.SpecError) as refused:
        hk.routing.assign(clos(2, 4), flows, **options)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_other_networks_are_refused() -> None:
    mesh = hk.topology.mesh(3, 3, bandwidth="25 GB/s", latency="21 ns")
    with pytest.raises(hk.SpecError, match=r"is not a Clos or fat tree: .* make one with clos"):
        hk.routing.assign(mesh, [(0, 1)])


def test_a_fabric_that_is_cut_names_the_flows() -> None:
    fab = clos(2, 4).without(links=[("tor0", "spine0"), ("tor3", "spine1")])
    with pytest.raises(hk.InfeasibleError, match=r"no path joins the ends of flow 1 \(0 -> 3\)"):
        hk.routing.assign(fab, [(0, 1), (0, 3)])


def test_without_or_tools_only_what_the_bound_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    assert hk.routing.assign(clos(2, 3), [(0, 1), (0, 2)], scheme="ilp").gap == 0.0
    with pytest.raises(hk.SpecError, match="the ilp scheme needs OR-Tools: pip install"):
        hk.routing.assign(clos(2, 4), [(0, 1), (0, 2)], scheme="ilp", jobs=[0, 1])


def test_known_headers_lead_to_their_spines() -> None:
    """What ecmp with the kernel's hash gives, with headers and seeds of switches that are given."""
    fab = clos(4, 3)
    seeds = [11, 12, 13]
    flows = [(i % 3, (i + 1) % 3) for i in range(60)]
    headers = [hk.steering.Header("10.1.0.1", "10.2.0.1", 5000, 2000 + i) for i in range(60)]
    made = hk.routing.assign(
        fab, flows, scheme="ecmp", hash="linux", headers=headers, switch_seeds=seeds
    )
    hashes = [hk.steering.SwitchHash("linux", seed) for seed in seeds]
    expected = [hashes[i % 3].way(header, 4) for i, header in enumerate(headers)]
    assert made.spines.tolist() == expected
    drawn = hk.routing.assign(fab, flows, scheme="ecmp", hash="linux", headers=headers, seed=5)
    assert drawn.spines.tolist() != expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"headers": []}, "^headers: the hash crc32 draws its own"),
        ({"hash": "linux", "headers": [3]}, "^headers: 3 is not a Header"),
        ({"hash": "linux", "headers": []}, "there are 0 headers for 1 flows"),
        ({"hash": "linux", "switch_seeds": [1]}, "^switch_seeds: there are no headers"),
        ({"hash": "linux", "headers": [], "switch_seeds": [0]}, "^switch_seeds: 0 is too small"),
    ],
)
def test_headers_that_make_no_sense(options: dict[str, object], message: str) -> None:
    with pytest.raises(hk.SpecError, match=message):
        hk.routing.assign(clos(2, 2), [(0, 1)], scheme="ecmp", **options)  # type: ignore[arg-type]
