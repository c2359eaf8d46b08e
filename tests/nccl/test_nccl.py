"""NCCL's cost model: values worked out by hand from its source, picks that were observed, and bad input."""

from __future__ import annotations

import pytest

import hocket as hk
from hocket.nccl.constants import GENERATIONS, TREE_CORRECTION
from hocket.nccl.model import NcclChannels, choices, communicator_channels, search
from hocket.nccl.rccl import MACHINES
from hocket.profiles.hardware import Hardware

A100 = Hardware(300e9)


def choice(
    kind: str, topology: str, size: str, algorithm: str, protocol: str
) -> tuple[float, float]:
    for each in hk.nccl.predict(kind, topology, size=size).choices:
        if (each.algorithm, each.protocol) == (algorithm, protocol):
            return each.latency, each.bandwidth
    raise AssertionError(algorithm)


def test_channels_of_a_box() -> None:
    """12 NVLinks of 20 GB/s: 6 channels of 40 GB/s, each split into two."""
    assert search(GENERATIONS["ampere"], A100, 1) == NcclChannels(12, 20.0, 20.0)


def test_channels_are_held_to_the_nics() -> None:
    """8 NICs of 200 Gb/s count 24 GB/s each: a channel of 24 each, that are not alike."""
    two = Hardware(300e9, 200e9, nics=8)
    assert search(GENERATIONS["ampere"], two, 2) == NcclChannels(8, 24.0, 24.0, False)
    # Of Hopper's, as many of 48 are not split; all pass 7 of 8 GPUs' links, 18 of 20.6 GB/s.
    four = Hardware(450e9, 400e9, nics=8)
    assert search(GENERATIONS["hopper"], four, 2) == NcclChannels(8, 48.0, 48.0, False)
    # Of four NICs of 100 Gb/s none has a channel of more than 12.
    old = Hardware(150e9, 50e9, nics=4, is_switched=False)
    assert search(GENERATIONS["volta"], old, 2) == NcclChannels(4, 12.0, 12.0, False)
    assert search(GENERATIONS["volta"], old, 1) == NcclChannels(6, 20.0, 20.0, False)
    # NICs of 400 Gb/s: five channels of 48 are all 240 GB/s of a GPU, so that eleven of 24 are not tried.
    wide = Hardware(300e9, 400e9, nics=8)
    assert search(GENERATIONS["ampere"], wide, 2) == NcclChannels(10, 24.0, 24.0, False)


@pytest.mark.parametrize(
    ("kind", "algorithm", "protocol", "latency", "bandwidth"),
    [
        # Ring, 8 GPUs: base + steps x hop; 240 GB/s x n / steps.
        ("all-reduce", "ring", "LL", 6.6 + 14 * 0.6, 87.7 * 8 / 14),
        ("all-reduce", "ring", "LL128", 14 + 14 * 1.9, 0.92 * 240 * 8 / 14),
        ("all-reduce", "ring", "Simple", 8.4 + 14 * 3.4, 240 * 8 / 14),
        ("all-gather", "ring", "Simple", 8.4 + 7 * 3.4, 240 * 8 / 7),
        ("broadcast", "ring", "Simple", 8.4 + 3.4, 240.0),
        # Tree, one node: 2 (p - 1) hops; 0.92 of the ring, half of the bus.
        ("all-reduce", "tree", "Simple", 8.4 + 14 * 4.0, 0.92 * 240 / 2),
        ("all-reduce", "tree", "LL", 6.8 + 14 * 0.6, 0.92 * 240 / 3.8 / 2),
        ("all-reduce", "tree", "LL128", 14 + 14 * 1.25, 0.92 * 240 * 7 / 9 / 2),
    ],
)
def test_one_box_of_a100(
    kind: str, algorithm: str, protocol: str, latency: float, bandwidth: float
) -> None:
    found = choice(kind, "dgx_a100_1box", "1 GiB", algorithm, protocol)
    assert found == pytest.approx((latency, bandwidth))


def test_two_boxes_of_a100() -> None:
    """30 steps, 2 of them between boxes; Simple's latency times 1.4 above the plateau."""
    latency, bandwidth = choice("all-reduce", "dgx_a100_2box", "1 GiB", "ring", "Simple")
    assert latency == pytest.approx((8.4 + 28 * 3.4 + 2 * 14.0) * 1.4)
    assert bandwidth == pytest.approx(192 * 16 / 30)
    latency, _ = choice("all-reduce", "dgx_a100_2box", "1 GiB", "tree", "LL128")
    assert latency == pytest.approx(14 + 2 * (7 * 1.25 + 8.5))


def test_sums_in_switches() -> None:
    """A channel of 40 GB/s for each of 8 GPUs: 0.85 of them, 7 of 8 channels, twice for an all-reduce."""
    latency, bandwidth = choice("all-reduce", "hgx_h200_8gpu", "1 GiB", "nvls", "Simple")
    assert latency == pytest.approx(25.0)
    assert bandwidth == pytest.approx(40 * 0.85 * 7 / 8 * 2 * 8 * 8 / 14)


@pytest.mark.parametrize(
    ("gpu", "links", "npus", "speed"),
    [("hopper", 450e9, 6, 50), ("hopper", 450e9, 7, 40), ("blackwell", 900e9, 8, 80)],
)
def test_heads_of_sums_have_twice_the_speed(
    gpu: str, links: float, npus: int, speed: float
) -> None:
    """Each GPU heads one channel, and has the speed of all others once: 9 x 80 of 721.8 GB/s of 8 B200."""
    on, generation = Hardware(links, sums=True, npus=npus), GENERATIONS[gpu]
    found = choices("all-gather", 1 << 30, npus, 1, on, generation)
    sums = next(each for each in found if each.algorithm == "nvls")
    all_but_one = (npus - 1) / npus
    assert sums.bandwidth == pytest.approx(speed * generation.nvls * all_but_one**2 * npus)


def test_sums_that_links_cannot_carry_are_left_out() -> None:
    """Of Blackwell's speeds 18 GB/s is the least, and nine of these are more than two NVLinks."""
    on = Hardware(100e9, sums=True)
    found = choices("all-reduce", 1 << 30, 8, 1, on, GENERATIONS["blackwell"])
    assert {each.algorithm for each in found} == {"ring", "tree"}


def test_small_trees_are_corrected() -> None:
    """At 64 KiB, 2^10 times 64 bytes, a tree with LL reaches 0.6 of its bandwidth."""
    large = choice("all-reduce", "dgx_a100_1box", "1 GiB", "tree", "LL")[1]
    small = choice("all-reduce", "dgx_a100_1box", "64 KiB", "tree", "LL")[1]
    assert small == pytest.approx(0.6 * large)
    assert [len(each) for each in TREE_CORRECTION] == [24, 24, 24]


@pytest.mark.parametrize(
    ("size", "pick"),
    [("32 KiB", ("ring", "LL")), ("1 MiB", ("ring", "LL")), ("2 MiB", ("nvls", "Simple"))],
)
def test_what_was_observed_on_eight_h200(size: str, pick: tuple[str, str]) -> None:
    """Source: the logs of a PyTorch benchmark on 8 H200 (stas00/ml-engineering)."""
    found = hk.nccl.predict("all-reduce", "hgx_h200_8gpu", size=size)
    assert (found.algorithm, found.protocol) == pick


def test_a_prediction_is_data() -> None:
    found = hk.nccl.predict("all-reduce", "dgx_a100_2box", size="64 MiB")
    value = found.to_dict()
    assert (value["library"], value["library_version"]) == ("NCCL", "2.30.7")
    assert value["gpu"] == "ampere"
    assert value["time_s"] == found.seconds == min(each.seconds for each in found.choices)
    assert found.to_frame().num_rows == len(found.choices)


def test_bad_input() -> None:
    with pytest.raises(hk.SpecError, match="NCCL's model has no 'all-to-all'"):
        hk.nccl.predict("all-to-all", "dgx_a100_1box", size="1 MiB")
    with pytest.raises(hk.SpecError, match="gpu: there is no 'turing'"):
        hk.nccl.predict("all-reduce", "dgx_a100_1box", size="1 MiB", gpu="turing")
    with pytest.raises(hk.SpecError, match="cpu: there is no 'epyc'"):
        hk.nccl.predict("all-reduce", "dgx_a100_2box", size="1 MiB", cpu="epyc")
    with pytest.raises(hk.InfeasibleError, match="do not tell which GPU that is"):
        hk.nccl.predict("all-reduce", "ring:4@17GB/s,1us", size="1 MiB")


def test_links_of_xgmi_are_those_of_amd() -> None:
    """What the links of a MI100 carry is what NVLinks of a V100 do."""
    for machine in ("mi100_8p6l", "mi100_4p3l_ia", "mi250_1box"):
        with pytest.raises(hk.InfeasibleError, match="links of xGMI are those of AMD's GPUs"):
            hk.nccl.predict("all-reduce", machine, size="1 MiB")
    found = hk.compare("all-reduce", "mi100_8p6l", size="1 MiB", algorithms=["ring"])
    assert found.nccl is None
    assert hk.nccl.predict("all-reduce", "mi250_1box", size="1 MiB", gpu="mi250").library == "RCCL"


@pytest.mark.parametrize(
    ("machine", "gpu"),
    [("mi300x_8gpu", "mi300x"), ("hgx_h100_8gpu_validated", "hopper"), ("dgx2_1box", "volta")],
)
def test_a_profile_says_what_the_gpus_are(machine: str, gpu: str) -> None:
    """Their links have bandwidths that NVIDIA states of no GPU."""
    found = hk.nccl.predict("all-reduce", machine, size="64 MiB")
    assert (found.gpu, found.below_bound) == (gpu, None)


def rccl(
    kind: str, topology: str, size: str, gpu: str
) -> dict[tuple[str, str], tuple[float, float]]:
    found = hk.nccl.predict(kind, topology, size=size, gpu=gpu)
    assert (found.library, found.version) == ("RCCL", "2.21.5")
    return {
        (each.algorithm, each.protocol): (each.latency, each.bandwidth) for each in found.choices
    }


def test_rccl_on_one_box_of_mi300x() -> None:
    """7 links of 48 GB/s; no LL128, and no trees with Simple where all GPUs are linked."""
    found = rccl("all-reduce", "mi300x_8gpu", "64 MiB", "mi300x")
    assert set(found) == {("ring", "LL"), ("ring", "Simple"), ("tree", "LL")}
    assert found["ring", "Simple"] == pytest.approx((17 + 14 * 2.1, 336 * 8 / 14))
    assert found["ring", "LL"] == pytest.approx((12 + 14 * 0.8, 0.08 * 336 * 8 / 14))
    # 64 MiB are 2^20 times 64 bytes: trees with LL are held to a tenth.
    assert found["tree", "LL"] == pytest.approx((12 + 14 * 0.9, 0.06 * 336 / 2 / 10))
    rooted = rccl("broadcast", "mi300x_8gpu", "64 MiB", "mi300x")
    assert rooted["ring", "LL"] == pytest.approx((12 + 8 * 0.8, 0.08 * 336 * 1.65))
    assert rooted["ring", "Simple"] == pytest.approx((17 + 8 * 2.3, 336))


def test_rccl_over_two_boxes_of_mi250() -> None:
    """161.4 GB/s are stated; rings over nodes are corrected by size, and post to NICs."""
    found = rccl("all-reduce", "mi250_2box", "64 MiB", "mi250")
    assert len(found) == 6
    latency, bandwidth = found["ring", "Simple"]
    assert latency == pytest.approx(17 + (62 - 4) * 3.6 + 4 * 209.2)
    assert bandwidth == pytest.approx(161.4 * 0.9 * 32 / 62)
    latency, bandwidth = found["tree", "LL128"]
    assert latency == pytest.approx(12 + 2 * (15 * 1.4 + 34.4))
    assert bandwidth == pytest.approx(161.4 * 1.09 * 0.2 / 2)


def test_processors_count_between_nodes() -> None:
    """AMD's take 2 us to post where Intel's take 1, thrice that with Simple; LL 22.5 GB/s, not 39."""
    ways = {}
    for cpu in ("intel", "amd", "other", "mixed"):
        found = hk.nccl.predict("all-reduce", "dgx_a100_2box", size="1 GiB", cpu=cpu)
        ways[cpu] = {(each.algorithm, each.protocol): each for each in found.choices}
    one = {way: each.latency for way, each in ways["intel"].items()}
    for way, each in ways["amd"].items():
        # 28 steps inside nodes: LL 1 -> 2, LL128 1.9 -> 2, Simple 3.4 -> 6 (times 1.4 on the plateau).
        more = {"LL": 1.0, "LL128": 0.1, "Simple": 2.6 * 1.4}[way[1]] * 28
        assert each.latency - one[way] == pytest.approx(more if way[0] == "ring" else 0.0)
    latencies = {way: each.latency for way, each in ways["other"].items()}
    assert latencies == one == {way: each.latency for way, each in ways["mixed"].items()}
    for cpu, most in (("intel", 39.0), ("amd", 22.5), ("other", 39.0), ("mixed", 22.5)):
        assert ways[cpu]["ring", "LL"].bandwidth == pytest.approx(most * 16 / 30)
        assert ways[cpu]["ring", "Simple"].bandwidth == ways["intel"]["ring", "Simple"].bandwidth


def test_processors_do_not_count_inside_a_node() -> None:
    found = [
        hk.nccl.predict("all-reduce", "dgx_a100_1box", size="1 MiB", cpu=cpu).choices
        for cpu in ("intel", "amd")
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("gpu", "topology", "said"),
    [
        ("mi300x", "dgx_a100_1box", "has GPUs of ampere by its profile 'a100', not mi300x"),
        ("hopper", "dgx_a100_4box", "has GPUs of ampere by its profile 'a100-infiniband'"),
        ("ampere", "mi300x_8gpu", "has GPUs of mi300x by its profile"),
        ("mi250", "mi300x_8gpu", "has GPUs of mi300x by its profile"),
        ("volta", "mi100_8p6l", "has GPUs of AMD by its links of xGMI, not volta"),
        ("mi300x", "gb200_nvl72", "its switches sum, as NVIDIA's do"),
        ("mi300x", "ring:8@25GB/s,1us", "carry 50 GB/s from a GPU, those of mi300x 315 to 448"),
        ("mi300x", "switch:8@336GB/s,1us", "its GPUs are not linked to one another"),
    ],
)
def test_a_gpu_that_the_topology_does_not_have_is_refused(
    gpu: str, topology: str, said: str
) -> None:
    with pytest.raises(hk.SpecError, match="leave it out") as caught:
        hk.nccl.predict("all-reduce", topology, size="1 MiB", gpu=gpu)
    assert said in str(caught.value)


def test_a_gpu_that_the_topology_may_have_is_taken() -> None:
    """Links of 64 GB/s as AMD states them, one of them dead; the profile's own name."""
    linked = hk.topology.load("fc:8@64GB/s,1us").without(links=[("npu0", "npu7")])
    assert hk.nccl.predict("all-reduce", linked, size="1 MiB", gpu="mi300x").library == "RCCL"
    same = hk.nccl.predict("all-reduce", "dgx_a100_1box", size="1 MiB", gpu="ampere")
    assert same.choices == hk.nccl.predict("all-reduce", "dgx_a100_1box", size="1 MiB").choices


def test_tables_of_rccl_have_27_sizes() -> None:
    for machine in MACHINES.values():
        assert {len(each) for each in (*machine.trees, *machine.rings)} == {27}


@pytest.mark.slow
def test_compare_has_a_row_of_what_nccl_does() -> None:
    found = hk.compare("all-reduce", "dgx_a100_2box", size="64 MiB", time_limit="1 s")
    assert found.nccl is not None
    assert (
        found.nccl.choices == hk.nccl.predict("all-reduce", "dgx_a100_2box", size="64 MiB").choices
    )
    assert {"nccl-ring", "nccl-tree"} <= {each.algorithm for each in found}
    data = found.to_dict()["nccl"]
    assert data is not None
    assert data["algorithm"] == found.nccl.algorithm
    named = hk.compare("all-reduce", "dgx_a100_2box", size="64 MiB", algorithms=["ring"])
    assert named.nccl is None
    some = hk.compare(
        "all-reduce", "dgx_a100_1box", size="64 MiB", npus=[0, 1, 2], time_limit="1 s"
    )
    assert some.nccl is None


TOLD = {
    8: ("tree", "LL", 25.200924),
    256: ("tree", "LL", 25.229528),
    512: ("tree", "LL", 25.259054),
    1 << 16: ("tree", "LL", 37.798233),
    1 << 17: ("tree", "LL128", 51.603912),
    1 << 18: ("tree", "LL128", 54.707825),
    1 << 19: ("nvls-tree", "Simple", 59.5536),
}
"""Picks, and times [us], of a log of 3 nodes of 8 H100, 200 Gb/s for each (NVIDIA/nccl issue 1453)."""


@pytest.mark.parametrize("size", TOLD)
def test_an_older_version_picks_and_takes_what_its_log_states(size: int) -> None:
    """2.28.9 takes 14 us more for an NVLS tree of three nodes, and picks a tree for 512 KiB."""
    on, hopper = Hardware(450e9, 200e9, sums=True, nics=8), GENERATIONS["hopper"]
    found = [*choices("all-reduce", size, 24, 3, on, hopper, version="2.22.3")]
    best = min(found, key=lambda each: each.seconds)
    assert (best.algorithm, best.protocol) == TOLD[size][:2]
    assert best.seconds * 1e6 == pytest.approx(TOLD[size][2], rel=1e-6)


def test_versions_differ_where_their_sources_do() -> None:
    """Trees and rings from 2.23 on, NVLS from 2.23, 2.27 and 2.28 on, NVLS trees from 2.28.9 on."""
    on, hopper = Hardware(450e9, 400e9, sums=True, nics=8), GENERATIONS["hopper"]

    def found(kind: str, nodes: int, name: str, version: str) -> tuple[float, float]:
        ways = choices(kind, 1 << 30, 8 * nodes, nodes, on, hopper, version=version)
        way = next(each for each in ways if f"{each.algorithm} {each.protocol}" == name)
        return way.latency, way.bandwidth

    assert found("all-reduce", 1, "tree Simple", "2.22.3")[0] == pytest.approx(14 * 28)
    assert found("all-reduce", 1, "tree Simple", "2.23.4")[0] == pytest.approx(8.4 + 14 * 4)
    speeds = [
        found("all-gather", 1, "nvls Simple", each)[1] for each in ("2.22.3", "2.26.2", "2.27.7")
    ]
    assert speeds == pytest.approx([8 * 40 * 5 / 6, 8 * 40, 8 * 40 * 7 / 8])
    assert found("all-reduce", 1, "nvls Simple", "2.27.7")[1] == pytest.approx(8 * 40 * 5 / 6)
    assert found("all-reduce", 2, "nvls-tree Simple", "2.28.7")[0] == pytest.approx(25 + 2 * 14)
    assert found("all-reduce", 2, "nvls-tree Simple", "2.28.9")[0] == pytest.approx(25 + 2 * 20.9)
    assert found("all-reduce", 2, "ring LL", "2.22.3")[0] == pytest.approx(6.6 + 26 + 4 * 2.7)
    assert found("all-reduce", 2, "ring LL", "2.23.4")[0] == pytest.approx(6.6 + 28 + 2 * 2.7)
    assert found("all-reduce", 1, "tree Simple", "2.10.3")[0] == pytest.approx(14 * 28)
    old = hk.nccl.predict("all-reduce", "hgx_h200_8gpu", size="1 GiB", version="2.27.7")
    assert (old.version, old.choices[0].bandwidth) == ("2.27.7", pytest.approx(8 * 40 * 5 / 6))
    with pytest.raises(hk.SpecError, match=r"version: '2\.x' is no version of NCCL; give one as 2"):
        hk.nccl.predict("all-reduce", "hgx_h200_8gpu", size="1 GiB", version="2.x")


@pytest.mark.parametrize(
    ("topology", "gpu", "channels"),
    [
        ("dgx_a100_1box", None, (24, 0)),
        ("dgx_a100_2box", None, (16, 0)),
        ("hgx_h200_8gpu", None, (24, 16)),
        ("mi300x_8gpu", "mi300x", (None, None)),
    ],
)
def test_channels_are_those_that_logs_state(
    topology: str, gpu: str | None, channels: tuple[int | None, int | None]
) -> None:
    found = hk.nccl.predict("all-reduce", topology, size="1 MiB", gpu=gpu)
    assert (found.coll_channels, found.nvls_channels) == channels


def test_few_fast_channels_over_nodes_become_four() -> None:
    """Of Hopper and later: one 48 GB/s channel of a NIC is split in two, and these are doubled once."""
    one = Hardware(450e9, 50e9, npus=8, nics=1)
    many = Hardware(450e9, 400e9, sums=True, npus=8, nics=8)
    assert communicator_channels(GENERATIONS["hopper"], one, 2) == (4, 0)
    assert communicator_channels(GENERATIONS["hopper"], many, 2) == (16, 16)
    assert communicator_channels(GENERATIONS["blackwell"], many, 2) == (16, 32)
    two = Hardware(450e9, sums=True, npus=2)
    assert communicator_channels(GENERATIONS["hopper"], two, 1) == (24, 16)
    assert communicator_channels(GENERATIONS["hopper"], two, 1, "2.28.3") == (24, 0)
