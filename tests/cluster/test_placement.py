"""Clusters, and which GPUs of them jobs get."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket.cluster.seeded_random import SeededRandom
from hocket.routing import Cluster, Job, JobList, Placed, cluster, place

STUDY = cluster("clos:32x64")
SMALL = cluster("clos:16x4")  # 4 ToRs of 2 hosts
POLICIES = hk.routing.POLICIES


def job(name: str = "a", *, tensor: int = 8, data: int = 1, **keys: object) -> Job:
    return Job(name, parameters=10**9, tensor=tensor, data=data, compute="1 s", **keys)  # type: ignore[arg-type]


def hosts_of(on: Cluster, gpus: tuple[int, ...]) -> list[str]:
    """Hosts of some GPUs, each once, in order."""
    return list(dict.fromkeys(on.host_of(gpu) for gpu in gpus))


def tors_of(on: Cluster, gpus: tuple[int, ...]) -> Counter[int]:
    """How many of some GPUs are below each ToR."""
    return Counter(on.tor_of(on.host_of(gpu)) for gpu in gpus)


# Clusters.


def test_the_study_has_2048_gpus() -> None:
    assert STUDY.gpu_count == STUDY.topology.npu_count == 2048
    assert STUDY.hosts == tuple(f"host{i}" for i in range(256))
    assert [STUDY.nic_of(gpu) for gpu in (0, 9, 2047)] == [0, 9, 2047]
    assert [STUDY.tor_of(host) for host in ("host0", "host3", "host4", "host255")] == [0, 0, 1, 63]
    assert STUDY.gpus_of("host2") == range(16, 24)
    assert STUDY.host_of(23) == "host2"
    assert set(STUDY.topology.link_bandwidth.tolist()) == {12_500_000_000}
    assert set(STUDY.topology.link_latency_ps.tolist()) == {0}
    hk.routing.assign(STUDY.topology, [(0, 63)])


@pytest.mark.parametrize(
    ("fabric", "keys", "tors", "hosts", "ports"),
    [
        ("clos:4x8x16", {}, 8, 16, 16),
        ("clos:16x3", {}, 3, 6, 16),
        ("clos:16x3", {"oversubscription": 1.5}, 3, 9, 24),
        ("clos:16x3", {"oversubscription": 0.5}, 3, 3, 8),
        ("clos:30x3", {"hosts_per_tor": 2}, 3, 6, 16),
        ("clos:16x3", {"nics_per_host": 4}, 3, 12, 16),
        ("fat-tree:16", {}, 128, 128, 8),
        ("fat_tree:8", {"nics_per_host": 2}, 32, 64, 4),
    ],
)
def test_shapes(fabric: str, keys: dict[str, float], tors: int, hosts: int, ports: int) -> None:
    made = cluster(fabric, **keys)  # type: ignore[arg-type]
    assert len(made.hosts) == hosts
    assert sorted(set(made.tors)) == list(range(tors))
    assert set(Counter(made.tors).values()) == {hosts // tors}
    assert made.topology.npu_count == tors * ports
    assert [npu for nics in made.nics for npu in nics] == list(range(tors * ports))


@pytest.mark.parametrize(("gpus", "nics"), [(8, 8), (8, 4), (8, 2), (4, 8), (6, 4), (1, 8)])
def test_gpus_share_nics_evenly(gpus: int, nics: int) -> None:
    made = cluster("clos:8x2", gpus_per_host=gpus, nics_per_host=nics)
    assert made.gpu_count == len(made.hosts) * gpus
    for host, own in zip(made.hosts, made.nics, strict=True):
        used = [made.nic_of(gpu) for gpu in made.gpus_of(host)]
        assert used == [own[g * nics // gpus] for g in range(gpus)]
        shares = Counter(used).values()
        assert max(shares) - min(shares) <= 1


def test_links_are_what_was_asked_for() -> None:
    made = cluster("clos:8x2", bandwidth="400 Gb/s", host_bandwidth="200 Gb/s", latency="1 us")
    rates = Counter(made.topology.link_bandwidth.tolist())
    assert rates == {25_000_000_000: 32, 50_000_000_000: 32}
    assert set(made.topology.link_latency_ps.tolist()) == {1_000_000}


def test_a_topology_and_a_file_are_fabrics_too(tmp_path: Path) -> None:
    link = {"bandwidth": "100 Gb/s", "latency": "0 ns"}
    of_topology = cluster(hk.topology.clos(spines=16, tors=4, hosts_per_tor=16, **link))
    assert of_topology == SMALL
    file = tmp_path / "fabric.yml"
    file.write_text(
        "builder: clos\nspines: 16\ntors: 4\nhosts_per_tor: 16\nbandwidth: 100 Gb/s\n"
        "latency: 0 ns\nfailed: {nodes: [spine3]}\n",
        encoding="utf-8",
    )
    of_file = cluster(file, failed=["npu17"])
    assert of_file.hosts == ("host0", "host1", *(f"host{i}" for i in range(3, 8)))
    assert of_file.topology == SMALL.topology.without(["spine3", "npu17"])


def test_hosts_that_lost_a_nic_are_left_out() -> None:
    made = cluster("clos:16x4", failed=["npu17", "tor3", "npu0,tor0", "tor1,spine2", "spine15"])
    assert made.hosts == ("host1", "host3", "host4", "host5")
    assert made.tors == (0, 1, 2, 2)
    assert made.gpu_count == 32
    names = made.topology.device_names
    for host, nics in zip(made.hosts, made.nics, strict=True):
        first = 8 * int(host.removeprefix("host"))
        assert [names[nic] for nic in nics] == [f"npu{i}" for i in range(first, first + 8)]
    assert made.host_of(8) == "host3"
    assert names[made.nic_of(8)] == "npu24"
    with pytest.raises(hk.SpecError, match="there is no host 'host0'; hosts are host1 to host5"):
        made.tor_of("host0")


def spines(made: Cluster) -> set[str]:
    return {name for name in made.topology.device_names if name.startswith(("spine", "core"))}


def test_failed_spines_are_the_highest_or_random() -> None:
    every = {f"spine{i}" for i in range(16)}
    assert every - spines(cluster("clos:16x4", failed_spines=3)) == {
        "spine13",
        "spine14",
        "spine15",
    }
    both = cluster("clos:16x4", failed=["spine15"], failed_spines=2)
    assert every - spines(both) == {"spine13", "spine14", "spine15"}
    drawn = [every - spines(cluster("clos:16x4", failed_spines=3, seed=seed)) for seed in range(40)]
    assert all(len(lost) == 3 for lost in drawn)
    assert set().union(*drawn) == every
    assert drawn[7] == every - spines(cluster("clos:16x4", failed_spines=3, seed=7))
    tree = cluster("fat-tree:4", nics_per_host=2, failed_spines=1)
    assert spines(tree) == {"core0", "core1", "core2"}


BAD_CLUSTERS = [
    ("clos:30x4", {}, ["30 NIC ports", "30 spines", "hosts of 8 NICs", "give hosts_per_tor"]),
    ("clos:4x8x12", {}, ["12 NIC ports below tor0", "hosts of 8 NICs", "nics_per_host"]),
    ("clos:16x4", {"oversubscription": 0.3}, ["4.8 NIC ports"]),
    ("clos:16x4", {"oversubscription": 0}, ["oversubscription", "0 ", "above 0"]),
    ("clos:16x4", {"oversubscription": "2"}, ["oversubscription", "'2' "]),
    ("clos:16x4", {"oversubscription": float("nan")}, ["oversubscription", "nan "]),
    ("clos:16x4", {"oversubscription": 2, "hosts_per_tor": 2}, ["hosts_per_tor says as much"]),
    ("clos:16x4", {"hosts_per_tor": 0}, ["hosts_per_tor", "0 "]),
    ("clos:4x8x16", {"hosts_per_tor": 2}, ["hosts_per_tor", "has its own", "leave it out"]),
    ("fat-tree:16", {"oversubscription": 2}, ["oversubscription", "has its own"]),
    ("fat-tree:16", {"host_bandwidth": "1 GB/s"}, ["host_bandwidth", "has its own"]),
    ("fat-tree:4", {}, ["2 NIC ports below edge0", "hosts of 8 NICs"]),
    ("dgx1_v100", {}, ["dgx1_v100", "neither a Clos nor a fat tree"]),
    ("fc:8", {}, ["fc:8", "neither a Clos nor a fat tree"]),
    ("clos:32", {}, ["fabric", "has 1 size", "clos:SPINESxTORS"]),
    ("clos:axb", {}, ["fabric", "not a size"]),
    ("clo:16x4", {}, ["fabric", "did you mean 'clos'?"]),
    ("nowhere.yml", {}, ["nowhere.yml", "there is no such file"]),
    ("clos:16x4", {"bandwidth": "5"}, ["bandwidth", "5' has no unit"]),
    ("clos:16x4", {"latency": "1 GB"}, ["latency", "not a unit of time"]),
    ("clos:16x4", {"gpus_per_host": 0}, ["gpus_per_host", "0 "]),
    ("clos:16x4", {"nics_per_host": 1.5}, ["nics_per_host", "1.5 "]),
    ("clos:16x4", {"failed": ["spine16"]}, ["failed", '"spine16"']),
    ("clos:16x4", {"failed": ["a,b,c"]}, ["failed", "'a,b,c'", "give A or A,B"]),
    ("clos:16x4", {"failed": [("tor0", "spine1")]}, ["failed", "give A or A,B"]),
    ("clos:16x4", {"hosts_per_tor": 1 << 40}, ["hosts_per_tor", "too large"]),
    ("clos:16x4", {"oversubscription": 1 << 19}, ["oversubscription", "8.38861e+06", "too many"]),
    ("clos:4000000000x4", {}, ["oversubscription", "4e+09 NIC ports", "too many"]),
    ("clos:16x4", {"failed": "spine1"}, ["failed", "is not a list", "['spine1']"]),
    ("clos:16x4", {"failed_spines": 16}, ["failed_spines", "16 ", "0 to 15"]),
    ("clos:16x4", {"failed_spines": 1, "seed": -1}, ["seed", "-1 "]),
    ("clos:8x1", {"failed": ["tor0"]}, ["no host is left"]),
    ("clos:8x1", {"failed": ["npu1"]}, ["no host is left"]),
]


@pytest.mark.parametrize(("fabric", "keys", "parts"), BAD_CLUSTERS)
def test_bad_cluster(fabric: str, keys: dict[str, object], parts: list[str]) -> None:
    with pytest.raises(hk.SpecError) as error:
        cluster(fabric, **keys)  # type: ignore[arg-type]
    message = str(error.value)
    assert len(message.splitlines()) == 1
    assert [part for part in parts if part not in message] == []


def test_bad_topologies() -> None:
    link = {"bandwidth": "1 GB/s", "latency": "0 ns"}
    with pytest.raises(hk.SpecError, match="bandwidth: a Topology has its own; leave it out"):
        cluster(SMALL.topology, bandwidth="1 GB/s")
    with pytest.raises(hk.SpecError, match=r"7 NIC ports below tor0 .* as failed"):
        cluster(hk.topology.clos(spines=2, tors=2, hosts_per_tor=8, **link).without(["npu3"]))
    with pytest.raises(hk.SpecError, match="GPU: 64 "):
        SMALL.nic_of(64)
    with pytest.raises(hk.SpecError, match="there is no host 'tor0'"):
        SMALL.tor_of("tor0")


# Placements.


@given(st.data())
def test_no_gpu_is_used_twice(data: st.DataObject) -> None:
    tors = data.draw(st.integers(1, 6))
    per_tor = data.draw(st.integers(1, 4))
    gpus = data.draw(st.sampled_from([4, 8]))
    npus = st.integers(0, 8 * tors * per_tor - 1)
    lost = data.draw(st.lists(npus, max_size=min(3, tors * per_tor - 1)))
    fabric = f"clos:4x{tors}x{8 * per_tor}"
    on = cluster(fabric, gpus_per_host=gpus, failed=[f"npu{i}" for i in lost])
    count = data.draw(st.integers(1, 5))
    jobs = [
        job(
            f"job{i}",
            tensor=data.draw(st.integers(1, 20)),
            data=data.draw(st.integers(1, 4)),
            placement=data.draw(st.sampled_from(POLICIES)),
            arrival=f"{data.draw(st.integers(0, 3))} s",
        )
        for i in range(count)
    ]
    wanted = [-(-each.gpus // gpus) for each in jobs]
    seed = data.draw(st.integers(0, 5))
    if sum(wanted) > len(on.hosts):
        with pytest.raises(hk.SpecError, match="are free"):
            place(on, jobs, seed)
        return
    placed = place(on, jobs, seed)
    assert [each.job for each in placed] == jobs
    used: set[str] = set()
    for each, hosts in zip(placed, wanted, strict=True):
        assert len(each.replicas) == each.job.data
        assert all(len(copy) == each.job.gpus_per_replica for copy in each.replicas)
        assert len(set(each.gpus)) == each.job.gpus
        own = set(hosts_of(on, each.gpus))
        assert len(own) == hosts
        assert not own & used
        used |= own
        assert len(each.rings) == each.job.gpus_per_replica
        for i, ring in enumerate(each.rings):
            assert ring == tuple(copy[i] for copy in each.replicas)
    assert place(on, jobs, seed) == placed


def test_copies_of_a_job_meet_in_a_host() -> None:
    placed = place(SMALL, [job("a", tensor=3, data=3), job("b", tensor=1)])
    assert placed[0].replicas == ((0, 1, 2), (3, 4, 5), (6, 7, 8))
    assert placed[0].rings == ((0, 3, 6), (1, 4, 7), (2, 5, 8))
    assert placed[1].replicas == ((16,),)  # host 1 is the first job's, though it has room


def test_packed_fills_tors_one_after_the_other() -> None:
    placed = place(SMALL, [job("a", data=3), job("b", data=2)])
    assert hosts_of(SMALL, placed[0].gpus) == ["host0", "host1", "host2"]
    assert hosts_of(SMALL, placed[1].gpus) == ["host3", "host4"]


def test_jobs_choose_in_order_of_arrival() -> None:
    late, early, same = (
        job("a", arrival="2 s"),
        job("b", arrival="1999 ms"),
        job("c", arrival="2 s"),
    )
    placed = place(SMALL, [late, early, same])
    assert [each.gpus[0] for each in placed] == [8, 0, 16]


def test_listed_hosts_are_kept_in_order() -> None:
    listed = job("b", data=2, hosts=["host3", "host0"], arrival="9 s")
    placed = place(SMALL, [job("a", data=2), listed])
    assert placed[1].replicas == (tuple(range(24, 32)), tuple(range(8)))
    assert hosts_of(SMALL, placed[0].gpus) == ["host1", "host2"]


def test_random_takes_every_host_as_often() -> None:
    counts: Counter[str] = Counter()
    rounds = 1000
    for seed in range(rounds):
        counts.update(
            hosts_of(SMALL, place(SMALL, [job(data=3, placement="random")], seed)[0].gpus)
        )
    share = rounds * 3 / 8
    assert set(counts) == set(SMALL.hosts)
    # Six standard deviations of a binomial.
    assert all(abs(count - share) < 6 * (share * 5 / 8) ** 0.5 for count in counts.values())


@pytest.mark.parametrize(
    ("model", "shares"), [("bloom", [32, 16]), ("gpt3-175b", [32, 32]), ("llama2-70b", [32] * 4)]
)
@pytest.mark.parametrize("seed", range(5))
def test_random_tors_are_those_of_the_study(model: str, shares: list[int], seed: int) -> None:
    jobs = [Job(f"job{i}", model=model, data=4, placement="random-tors") for i in range(2)]
    placed = place(STUDY, jobs, seed)
    for each in placed:
        assert [sorted(tors_of(STUDY, copy).values(), reverse=True) for copy in each.replicas] == (
            [shares] * 4
        )
    full = [
        tor
        for each in placed
        for copy in each.replicas
        for tor, gpus in tors_of(STUDY, copy).items()
        if gpus == 32
    ]
    assert len(set(full)) == len(full)
    assert place(STUDY, jobs, seed + 1) != placed


def test_random_tors_put_what_is_left_below_any_tor_with_room() -> None:
    # Host 0 is taken, so that tor0 has room for one host and is not wholly free.
    taken = job("a", hosts=["host0"])
    seen = set()
    for seed in range(60):
        placed = place(SMALL, [taken, job("b", tensor=24, placement="random-tors")], seed)[1]
        used = tors_of(SMALL, placed.replicas[0])
        assert sorted(used.values()) == [8, 16]
        assert used[0] in (0, 8)
        seen.add(tuple(sorted(used.items())))
    # Two of three ToRs in either part, or one of them and tor0.
    assert len(seen) == 3 * 2 + 3


def test_random_tors_take_what_room_there_is() -> None:
    taken = [job(f"t{i}", hosts=[f"host{2 * i}"]) for i in range(4)]  # half of every ToR
    placed = place(SMALL, [*taken, job("b", tensor=16, data=2, placement="random-tors")], 3)[-1]
    assert set(tors_of(SMALL, placed.gpus).values()) == {8}


def best_fit(rooms: dict[int, int], wanted: list[int]) -> list[dict[int, int]]:
    """What best fit may leave, by trying all: hosts that each copy takes below each ToR."""
    taken = []
    for hosts in wanted:
        own: dict[int, int] = {}
        while hosts:
            fits = [(room, tor) for tor, room in rooms.items() if room >= hosts]
            most = max(rooms.values())
            tor = min(fits)[1] if fits else min(t for t, room in rooms.items() if room == most)
            own[tor] = min(hosts, rooms[tor])
            hosts -= own[tor]
            rooms[tor] -= own[tor]
        taken.append(own)
    return taken


@given(
    st.lists(st.integers(0, 31), max_size=20, unique=True),
    st.integers(1, 6),
    st.integers(1, 3),
)
def test_best_fit_takes_the_least_room_that_is_enough(
    busy: list[int], hosts: int, copies: int
) -> None:
    on = cluster("clos:4x8x32")  # 8 ToRs of 4 hosts
    before = [job(f"t{i}", hosts=[f"host{i}"]) for i in busy]
    rooms = {tor: 4 - sum(i // 4 == tor for i in busy) for tor in range(8)}
    if hosts * copies > 32 - len(busy):
        return
    made = job("b", tensor=8 * hosts, data=copies, placement="best-fit")
    placed = place(on, [*before, made])[-1]
    expected = best_fit(dict(rooms), [hosts] * copies)
    assert [
        {tor: gpus // 8 for tor, gpus in tors_of(on, copy).items()} for copy in placed.replicas
    ] == expected
    # No copy is below more ToRs than it must be.
    first, need = sorted(rooms.values(), reverse=True), 0
    while sum(first[:need]) < hosts:
        need += 1
    assert len(expected[0]) == need


def test_draws_stay_what_they_are() -> None:
    draw = SeededRandom(7)
    assert [draw.below(100) for _ in range(8)] == [32, 15, 65, 7, 53, 36, 5, 50]
    assert SeededRandom(1).some("abcdefgh", 8) == list("bgaefchd")
    assert sorted(SeededRandom(2).some(range(50), 50)) == list(range(50))
    assert SeededRandom(3).some("abc", 0) == []


def test_a_list_has_a_seed() -> None:
    jobs = [job(data=4, placement="random")]
    by_list = place(STUDY, JobList(tuple(jobs), 5))
    assert by_list == place(STUDY, jobs, 5) != place(STUDY, jobs)
    assert place(STUDY, JobList(tuple(jobs), 5), seed=0) == place(STUDY, jobs)


BAD_PLACEMENTS: list[tuple[list[Job], list[str]]] = [
    ([], ["jobs: there is none"]),
    ([job(), job()], ["job 'a'", "name of an earlier job"]),
    ([job(data=9)], ["job 'a'", "wants 9 hosts of 8 GPUs, and 8 of 8 are free"]),
    ([job("x", data=7), job("y", tensor=9)], ["job 'y'", "wants 2 hosts", "1 of 8 are free"]),
    ([job(hosts=["host8"])], ["job 'a'", "hosts", "no host 'host8'", "host0 to host7"]),
    ([job(data=2, hosts=["host1"])], ["job 'a'", "1 host listed", "16 GPUs are 2", "list 2"]),
    ([job(hosts=["host1", "host2"])], ["2 hosts listed", "list 1"]),
    (
        [job("x", hosts=["host1"]), job("y", hosts=["host1"])],
        ["job 'y'", "host1 is taken by job 'x'", "list another"],
    ),
    (["a"], ["'a' at position 0 is not a Job"]),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("jobs", "parts"), BAD_PLACEMENTS)
def test_bad_placement(jobs: list[Job], parts: list[str]) -> None:
    with pytest.raises(hk.SpecError) as error:
        place(SMALL, jobs)
    assert [part for part in parts if part not in str(error.value)] == []


def test_bad_seed() -> None:
    with pytest.raises(hk.SpecError, match="seed: -1 "):
        place(SMALL, [job()], -1)


def test_a_job_from_a_file_says_where_it_was_read() -> None:
    lost = replace(job(hosts=["host9"]), origin="jobs.yml, line 4")
    with pytest.raises(hk.SpecError, match=r"^jobs\.yml, line 4: job 'a': hosts: there is no host"):
        place(SMALL, [lost])


def test_rings_of_one_copy() -> None:
    placed = place(SMALL, [job(tensor=3)])[0]
    assert placed == Placed(placed.job, ((0, 1, 2),))
    assert placed.rings == ((0,), (1,), (2,))
