"""Any topology as namespaces: addresses and routes on odd ones, and plans that run on them."""

from __future__ import annotations

import ipaddress
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import hocket as hk
import hocket_testbed
from hocket import _core
from hocket.cli import run
from hocket.cli.documents import json_schema
from hocket_testbed import network, rank_threads, rights
from hocket_testbed.calibrated import Calibration, model_of, predicted
from hocket_testbed.namespaces import names_of
from hocket_testbed.network import carried
from hocket_testbed.plan_connections import (
    Connection,
    check_same_network,
    load_of,
    on_network,
    passed_on,
    routes_of,
    ways_of,
)
from hocket_testbed.plan_runs import LEAST_MESSAGE

T = hk.topology


def custom(npus: int, switches: int, links: list[tuple[int, int]]) -> _core.Topology:
    """A network of these links, all alike."""
    names = [f"n{i}" for i in range(npus)] + [f"s{i}" for i in range(switches)]
    src, dst = zip(*links, strict=True)
    return _core.Topology.from_arrays(
        "odd",
        names,
        npus,
        [None] * switches,
        list(src),
        list(dst),
        [10**9] * len(links),
        [10**6] * len(links),
    )


def both(*pairs: tuple[int, int]) -> list[tuple[int, int]]:
    return [each for a, b in pairs for each in ((a, b), (b, a))]


ODD = {
    "ring": T.ring(5, bandwidth="1 GB/s", latency="1 us"),
    "one-way ring": custom(4, 0, [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "parallel": custom(2, 0, [*both((0, 1)), *both((0, 1)), (1, 0)]),
    "mesh": T.mesh(3, 3, bandwidth="1 GB/s", latency="1 us"),
    "switches": custom(4, 2, both((0, 4), (1, 4), (4, 5), (4, 5), (2, 5), (3, 5))),
    "box": T.box(2, 2, bandwidth="1 GB/s", latency="1 us"),
    "clos": T.clos(spines=2, tors=2, hosts_per_tor=2, bandwidth="1 GB/s", latency="1 us"),
}


@pytest.fixture(params=list(ODD))
def odd(request: pytest.FixtureRequest) -> _core.Topology:
    return ODD[request.param]


def plan_on(topology: _core.Topology, algorithm: str = "direct", **options: object) -> hk.Plan:
    return hk.plan("all-reduce", topology, size="1 MB", algorithm=algorithm, **options)  # type: ignore[arg-type]


def walked(
    spec: hocket_testbed.NetworkSpec, lines: dict[str, list[str]], namespace: str, to: str
) -> list[str]:
    """Forward a packet by the commands alone, as a kernel does; the interfaces that it leaves by."""
    cables = {}
    for cable in spec.cables():
        for near, far in (cable.ends, cable.ends[::-1]):
            cables[near.namespace, near.interface] = (near, far)
    left = []
    while f"addr add {to}/32 dev lo" not in lines[namespace]:
        routes = [line for line in lines[namespace] if line.startswith(f"route add {to}/32 ")]
        assert len(routes) == 1, (namespace, to, routes)
        words = routes[0].split()
        interface, via = words[words.index("dev") + 1], words[words.index("via") + 1]
        near, far = cables[namespace, interface]
        assert far.address == via
        left.append(near.interface)
        namespace = far.namespace
        assert len(left) < 20, "it goes round in circles"
    return left


def test_cables_of_odd_networks(odd: _core.Topology) -> None:
    spec = hocket_testbed.NetworkSpec(topology=odd)
    ends = [end for cable in spec.cables() for end in cable.ends]
    ends += [end for npu in range(odd.npu_count) for end in spec.meeting(npu).ends]
    assert len({end.address for end in ends}) == len(ends)
    assert len({(end.namespace, end.interface) for end in ends}) == len(ends)
    assert all(len(end.interface) < 16 for end in ends)
    for cable in spec.cables():
        one, other = (int(ipaddress.IPv4Address(end.address)) for end in cable.ends)
        assert one ^ other == 1
    names = spec.namespaces()
    for link in range(odd.link_count):
        near, far = spec.ends(link)
        assert near.namespace == names[odd.link_src[link]]
        assert far.namespace == names[odd.link_dst[link]]
        assert near.interface == f"l{link}"
        back = spec.reverse[link]
        if back is None:
            assert far.interface == f"r{link}"
        else:
            assert spec.reverse[back] == link
            assert spec.ends(back) == (far, near)


@pytest.mark.parametrize("algorithm", ["direct", "ring", "greedy", "trees"])
def test_packets_take_the_routes_of_the_plan(odd: _core.Topology, algorithm: str) -> None:
    plan = plan_on(odd, algorithm)
    spec, ways = hocket_testbed.NetworkSpec(topology=odd), ways_of(plan)
    lines = network.commands(spec, ways.connections)
    rank_of = {device: rank for rank, device in enumerate(plan.collective.npus)}
    found = {}
    for number, each in enumerate(ways.connections):
        low, high = network.addresses_of(number)
        names = [spec.namespace(spec.device(device)) for device in each.devices]
        forth, back = (walked(spec, lines, *leg) for leg in ((names[0], high), (names[1], low)))
        found[each.ranks[0], each.ranks[1], each.stream] = forth
        found[each.ranks[1], each.ranks[0], each.stream] = back
        if each.back is None:
            far = [spec.ends(link)[1].interface for link in each.forth or ()]
            assert back == far[::-1]
    pairs = zip(plan.transfers.src.tolist(), plan.transfers.dst.tolist(), strict=True)
    for pair, route, channel in zip(pairs, routes_of(plan), ways.channel_of, strict=True):
        src, dst = (rank_of[device] for device in pair)
        assert found[src, dst, channel % ways.streams] == [f"l{link}" for link in route]
    addresses = [
        line.split()[2] for each in lines.values() for line in each if line.startswith("addr")
    ]
    assert len(set(addresses)) == len(addresses) == 2 * len(ways.connections)


def test_parallel_links_are_connections_of_their_own() -> None:
    ways = ways_of(plan_on(ODD["parallel"], "greedy", chunks=6))
    assert ways.streams > 1
    routes = {each.forth for each in ways.connections}, {each.back for each in ways.connections}
    assert routes == ({(0,), (2,)}, {(1,), (3,), (4,)})
    assert [each.stream for each in ways.connections] == [0, 1, 2]


def test_channels_serve_in_plan_order_or_by_readiness() -> None:
    ready = plan_on(ODD["ring"], "ring", chunks=2)
    assert ready.link_order == "ready"
    ways = ways_of(ready)
    pairs = zip(ready.transfers.src.tolist(), ready.transfers.dst.tolist(), strict=True)
    each = Counter(zip(pairs, ways.channel_of, strict=True))
    assert set(each.values()) == {1}
    assert not ways.in_plan_order
    planned = plan_on(ODD["ring"], "greedy", chunks=2)
    assert planned.link_order == "plan"
    ways = ways_of(planned)
    assert set(ways.channel_of) == set(range(ways.streams))
    assert ways.in_plan_order


def test_acknowledgements_go_back_over_one_way_links() -> None:
    ways = ways_of(plan_on(ODD["one-way ring"], "ring"))
    assert ways.connections[0] == Connection((0, 1), (0, 1), 0, (0,), None)
    assert ways.connections[1] == Connection((0, 3), (0, 3), 0, None, (3,))


def test_a_plan_keeps_its_routes_on_a_network_of_other_rates() -> None:
    topology = ODD["clos"]
    spec = hocket_testbed.NetworkSpec(topology=topology, rate="80 Mb/s")
    model = model_of(spec, Calibration(1.0, (), 50e-6))
    assert model.switching == "cut-through"
    assert set(model.link_bandwidth.tolist()) == {round(10_000_000 * 1448 / 1514)}
    assert set(model.link_latency_ps.tolist()) == {50_000_000}
    plan = plan_on(topology)
    moved = on_network(plan, model).verify()
    assert routes_of(moved) == routes_of(plan)
    assert moved.topology == model
    assert load_of(moved) == load_of(plan)
    total = sum(
        size * len(route)
        for size, route in zip(plan.transfers.size_bytes.tolist(), routes_of(plan), strict=True)
    )
    assert sum(load_of(plan)) == total


def test_packets_pass_an_npu_that_only_passes_on() -> None:
    """A corner of the mesh has no data in TTO; transfers that end there become ways through it."""
    topology = ODD["mesh"]
    npus = [0, 1, 2, 3, 4, 5, 7, 8]
    plan = plan_on(topology, "tto", chunks=4, npus=npus)
    assert 6 in plan.transfers.dst
    passed = passed_on(plan).verify()
    assert len(passed) == len(plan) - np.count_nonzero(plan.transfers.dst == 6)
    assert 6 not in passed.transfers.dst
    assert 6 not in passed.transfers.src
    assert load_of(passed) == load_of(plan)
    # Stored there, messages take as long as before.
    stored = [hk.simulate(each, switching="store-and-forward") for each in (plan, passed)]
    assert stored[0].time_ps == stored[1].time_ps
    assert {len(route) for route in routes_of(passed)} == {1, 2}
    whole = plan_on(topology, "greedy")
    assert passed_on(whole) is whole
    sums = T.offloaded(T.switch(4, bandwidth="1 GB/s", latency="1 us"))
    with pytest.raises(
        hk.SpecError, match="sw0 takes no part in the collective, and does not only"
    ):
        passed_on(plan_on(sums, "in-network"))


def test_slower_links_are_slower_in_proportion() -> None:
    topology = T.load("Ring_Ring:2x4", bandwidth=["25 GB/s", "100 GB/s"], latency="1 us")
    spec = hocket_testbed.NetworkSpec(topology=topology, rate="200 Mb/s")
    assert Counter(spec.rates).keys() == {6_250_000, 25_000_000}
    fast = topology.link_bandwidth == topology.link_bandwidth.max()
    assert (np.array(spec.rates)[fast] == 25_000_000).all()


def limited() -> _core.Topology:
    return _core.Topology.from_arrays(
        "limited", ["a", "b", "s"], 2, [5], [0, 2, 1, 2], [2, 1, 2, 0], [9] * 4, [0] * 4
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"topology": "ring"},
            "^topology: 'ring' is ",
        ),
        ({"topology": T.ring(200, bandwidth=1, latency=0)}, "^topology: .* has 200 devices; "),
        (
            {"topology": T.fully_connected(30, bandwidth=1, latency=0)},
            "^topology: .* has 870 links; give a network of 512 at most",
        ),
        ({"topology": limited()}, "^topology: switch s has a limit of its own"),
        ({"rate": "0.1 Mb/s"}, "^rate: its slowest link would have 0.1 Mb/s"),
        ({"rate": "fast"}, "^rate: "),
        ({"prefix": "My bed"}, "^prefix: 'My bed' does not name"),
    ],
)
def test_a_network_that_makes_no_sense(given: dict[str, object], says: str) -> None:
    with pytest.raises(hk.SpecError, match=says):
        hocket_testbed.NetworkSpec(**{"topology": ODD["ring"], **given})  # type: ignore[arg-type]


def test_plans_that_cannot_run_here() -> None:
    mesh = plan_on(ODD["mesh"])
    with pytest.raises(
        hk.SpecError, match=r"^plan: direct was planned for 9 NPUs, this network has 5"
    ):
        check_same_network(mesh, ODD["ring"])
    other = custom(5, 0, both((0, 1), (1, 2), (2, 3), (3, 4), (0, 2)))
    with pytest.raises(hk.SpecError, match=r"^plan: link \d+ of the network of ring leads from"):
        check_same_network(plan_on(ODD["ring"], "ring"), other)
    sums = T.switch(4, bandwidth="1 GB/s", latency="1 us")
    sums = T.offloaded(sums)
    with pytest.raises(hk.SpecError, match="takes no part in the collective; only participants"):
        ways_of(plan_on(sums, "in-network"))
    spread = plan_on(ODD["clos"], routing="spray")
    with pytest.raises(hk.SpecError, match="sprays transfers over several paths"):
        ways_of(spread)
    spec = hocket_testbed.NetworkSpec(topology=ODD["ring"])
    with pytest.raises(hk.SpecError, match=r"^plans: 7 is no plan"):
        hocket_testbed.run_plans(spec, [7])  # type: ignore[list-item]
    with pytest.raises(hk.SpecError, match="there is no algorithm 'rnig'"):
        hocket_testbed.run_plans(spec, ["rnig"])
    with pytest.raises(hk.SpecError, match=r"^repeats: 0"):
        hocket_testbed.run_plans(spec, ["ring"], repeats=0)


@pytest.mark.parametrize("name", list(ODD))
def test_plans_run_and_each_link_carries_their_bytes(name: str, prefix: str) -> None:
    """Results are checked while they run; frames are what the plan sends, and headers."""
    topology = ODD[name]
    spec = hocket_testbed.NetworkSpec(topology=topology, prefix=prefix, rate="400 Mb/s")
    model = model_of(spec, Calibration(1.0, (), 0.0))
    with hocket_testbed.build_network(spec):
        for algorithm in ("ring", "greedy", "direct"):
            plan = on_network(plan_on(topology, algorithm, chunks=1), model).verify()
            with rank_threads.gathered(spec, plan) as ranks:
                runs = []
                for _ in range(5):
                    before = carried(spec)
                    ranks.run()
                    runs.append(
                        [late - early for early, late in zip(before, carried(spec), strict=True)]
                    )
            for link, data in enumerate(load_of(plan)):
                # On a busy machine TCP sends some frames twice: what each run has is what is needed.
                frames = min(run[link] for run in runs)
                # Each message has a header and a last frame that is not full; greetings are few.
                assert data * 1.04 <= frames <= data * 1.08 + 20_000, (
                    algorithm,
                    link,
                    data,
                    [run[link] for run in runs],
                )
                assert data or frames < 2_000, (algorithm, link)


def test_every_kind_runs_and_what_is_wrong_is_noticed(prefix: str) -> None:
    topology = ODD["switches"]
    spec = hocket_testbed.NetworkSpec(topology=topology, prefix=prefix, rate="400 Mb/s")
    rooted = ("broadcast", "reduce", "gather", "scatter")
    with hocket_testbed.build_network(spec):
        for kind in ("all-gather", "reduce-scatter", "all-to-all", *rooted):
            root = 2 if kind in rooted else None
            plan = hk.plan(kind, topology, size=400_000, algorithm="greedy", root=root).verify()
            with rank_threads.gathered(spec, plan) as ranks:
                assert ranks.run() > 0
                right = ranks._right
                assert right is not None
                assert any(each is not None for each in right)
                ranks._right = [None if each is None else each + 1 for each in right]
                with pytest.raises(hk.SimulationError, match="result of greedy is wrong at"):
                    ranks.run()


def test_plans_are_set_beside_their_simulation(prefix: str, tmp_path: Path) -> None:
    topology = T.mesh(2, 2, bandwidth="1 GB/s", latency="1 us")
    file = tmp_path / "plan.parquet"
    plan_on(topology, "ring").save(file)
    spec = hocket_testbed.NetworkSpec(topology=topology, prefix=prefix, rate="400 Mb/s")
    told: list[str] = []
    with hocket_testbed.build_network(spec):
        study = hocket_testbed.run_plans(
            spec,
            [hk.Plan.load(file), "greedy"],
            size="1 MB",
            repeats=2,
            progress=lambda stage, *_: told.append(stage),
        )
    assert told == ["calibrate", "ring", "greedy"]
    assert [row.plan.algorithm for row in study.runs] == ["ring", "greedy"]
    assert study.predicted_ranks == [2, 1]
    assert sorted(study.measured_ranks) == [1, 2]
    for row in study.runs:
        assert len(row.times) == 2
        # A plan cannot be much quicker than links are; a busy machine only makes it longer.
        exact = Calibration(1.0, (), 0.0)
        assert row.time > 0.9 * predicted(
            on_network(row.plan, model_of(spec, exact)).verify(), exact
        )
        assert 1.04 < row.overhead < 1.15  # 1.06, and what TCP sends twice on a busy machine
    assert int(study.runs[1].plan.transfers.size_bytes.min()) >= LEAST_MESSAGE
    assert 0.5 < study.calibration.alone < 1.1
    assert len(study.calibration.together) == topology.link_count
    assert -0.005 < study.calibration.delay < 1
    assert len(study.to_frame()) == 2


def test_a_rank_that_fails_ends_all(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = hocket_testbed.NetworkSpec(topology=ODD["one-way ring"], prefix=prefix)
    plan = plan_on(ODD["one-way ring"], "ring").verify()
    with hocket_testbed.build_network(spec), rank_threads.gathered(spec, plan) as ranks:
        ranks.run()
        monkeypatch.setattr(rank_threads, "_SETTLES", 0)
        ranks.ranks[2].group.abort("it was asked to")
        with pytest.raises(hk.TransportError, match="rank 2 gave up"):
            ranks.run()


def test_a_command_that_is_interrupted_leaves_nothing(prefix: str) -> None:
    command = ["testbed", "run", "-t", "ring:4@1GB/s,1us", "ring", "--size", "100MB"]
    code = (
        f"import sys; from hocket.cli import run; sys.exit(run({[*command, '--prefix', prefix]}))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as process:
        for _ in range(1000):
            if len(names_of(prefix)) == 5:
                break
            time.sleep(0.02)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode != 0
    for _ in range(500):
        if not names_of(prefix):
            break
        time.sleep(0.02)
    assert names_of(prefix) == []


def test_the_command_prints_what_the_schema_says(
    prefix: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    network = ["-t", "ring:3@1GB/s,1us", "--link-bandwidth", "400 Mb/s", "--prefix", prefix]
    command = ["testbed", "run", "ring", *network, "--size", "600KB", "--repeats", "1"]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json_schema())
    assert found["runs"][0]["size_bytes"] == 600_000
    assert run(command) == 0
    said = capsys.readouterr()
    assert "all-reduce of 600 kB on ring 3, links of 400 Mb/s" in said.out


def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "plan.parquet"
    plan_on(ODD["ring"], "ring").save(file)
    ring = ["-t", "ring:4@1GB/s,1us"]
    for arguments, says in (
        ([*ring, "rnig"], "there is no algorithm 'rnig'; did you mean 'ring'"),
        ([*ring, str(tmp_path / "none.parquet")], "none.parquet"),
        ([*ring, str(file)], "ring was planned for 5 NPUs, this network has 4"),
        ([*ring, str(file), "--size", "1MB"], "--size: plan files have their own; leave it out"),
        (["-t", "ring:200@1GB/s,1us", "ring"], "--topology: ring 200 has 200 devices; give a"),
        ([*ring, "ring", "--link-bandwidth", "1 B/s"], "--link-bandwidth: its slowest link"),
        ([*ring, "ring", "--repeats", "0"], "--repeats: 0"),
        ([*ring, "tto"], "tto: "),
        ([*ring, "ring", "--size", "3B"], "of 3 B cannot be cut into 4 chunks"),
    ):
        assert run(["testbed", "run", *arguments]) == 2, arguments
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert says in said

    def refused() -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(rights, "leave_for_new", refused)
    monkeypatch.setattr(rights, "which", lambda program: program)
    says = r"network namespaces need root \(Operation not permitted\); run it as root"
    with (
        pytest.raises(hk.InfeasibleError, match=says),
        hocket_testbed.build_network(hocket_testbed.NetworkSpec(topology=ODD["ring"])),
    ):
        pass
