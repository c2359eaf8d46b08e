"""Profiles of classes: every box on every fabric, what is known besides, and what errors to expect."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from hocket.cli import run
from hocket.profiles.classes import BOXES, FABRICS
from hocket.profiles.cost_model import CONSTANTS
from hocket.profiles.expected import FEWEST_OWNERS, FURTHER, ONE_BOX, OTHER, Evidence, evidence
from hocket.profiles.facts import read_facts
from hocket.profiles.profile import load_profile, profile_for, profile_names
from hocket.topology.text import from_text

RAIL = "rail:4x8@450GB/s,350ns@50GB/s,1us"
SIZES = ["8 KiB", "64 KiB", "1 MiB", "64 MiB", "1 GiB"]


@pytest.mark.parametrize("fabric", ["", *FABRICS])
@pytest.mark.parametrize("box", BOXES)
def test_every_box_on_every_fabric_is_predicted(box: str, fabric: str) -> None:
    network = RAIL if fabric else "switch:8@450GB/s,350ns"
    profile = f"{box}+{fabric}" if fabric else box
    found = hk.predict("all-reduce", network, sizes=SIZES, profile=profile)
    took = [each.seconds for each in found.times]
    assert np.isfinite(took).all()
    assert took == sorted(took)
    assert all(1 < each.factor < 10 for each in found.times)
    assert found.profile.name == profile
    assert found.profile.box == box
    assert found.profile.fabric == fabric


@pytest.mark.parametrize("kind", ["boxes", "fabrics"])
def test_class_files_have_all_constants_of_their_kind(kind: str) -> None:
    of = "" if kind == "boxes" else "fabric"
    names = {name for name, each in CONSTANTS.items() if each.of == of}
    for one in BOXES if kind == "boxes" else FABRICS:
        profile = load_profile(f"{one}+ib" if kind == "boxes" else f"h100+{one}")
        assert names <= set(profile.constants)
        for each in profile.constants.values():
            assert not each.is_seen or each.low <= each.value <= each.high


@pytest.mark.parametrize(
    ("network", "profile"),
    [
        (RAIL, "h100+ib"),
        ("rail:4x8@900GB/s,350ns@50GB/s,1us", "b200+ib"),
        ("box:2x8x4@300GB/s,1us@25GB/s", "a100+ib"),
        ("switch:8@300GB/s,1us", "a100"),
        ("switch:8@900GB/s,1us", "b200"),
        ("hgx_h100_2box_rails", "h100+ib"),
    ],
)
def test_a_network_without_a_profile_has_that_of_its_links(network: str, profile: str) -> None:
    found = hk.predict("all-gather", network, sizes="1 GiB").profile
    assert found.name == profile
    assert "links of" in found.source[0]
    assert ("fabric ib is assumed" in found.source[0]) == ("+" in profile)


@pytest.mark.parametrize(
    "network", ["mesh:4x4@50GB/s,1us", "ring:8@25GB/s,1us", "switch:8@75GB/s,1us"]
)
def test_other_networks_are_refused_with_what_would_do(network: str) -> None:
    with pytest.raises(hk.SpecError, match=r"no class of boxes .* give --profile, as h100\+ib"):
        hk.predict("all-reduce", network, sizes="1 MiB")


@pytest.mark.parametrize(
    ("gpu", "network", "box"),
    [
        ("sm90", "switch:8@200GB/s,1us", "h100"),
        ("sm90", "fc:4@150GB/s,1us", "gh200"),
        ("sm80", "fc:4@100GB/s,1us", "a100-mesh"),
        ("gfx942", "fc:8@48GB/s,1us", "mi300x"),
        ("gfx950", "fc:8@57.6GB/s,1us", "mi350x"),
    ],
)
def test_a_gpu_that_is_named_says_which_box_it_is(gpu: str, network: str, box: str) -> None:
    """As in dumps of NCCL and RCCL."""
    spec = replace(from_text(network, bandwidth=None, latency=None, option="topology"), gpu=gpu)
    assert profile_for(hk.topology.load(network), spec).name == box


def _time(
    profile: str, network: str = RAIL, size: str = "1 GiB", kind: str = "all-reduce"
) -> float:
    return hk.predict(kind, network, sizes=size, profile=profile).times[0].seconds


def test_facts_change_what_they_say() -> None:
    assert _time("h100+ib,nvls=off", "hgx_h100_2box_rails") > _time(
        "h100+ib", "hgx_h100_2box_rails"
    )
    assert _time("h100+ib,sharp=on") < _time("h100+ib")
    assert _time("h100+ib,ll=off", size="8 KiB") > _time("h100+ib", size="8 KiB")
    assert _time("h100+ib,ll128=off", size="1 MiB") > _time("h100+ib", size="1 MiB")
    slow, fast = (_time(f"h100+ib,launch={each}", size="8 KiB") for each in ("torch", "mpi"))
    assert slow > fast
    by_process = _time("h100+tcp")
    assert by_process > 2 * (1 << 30) / 3.4e9 / 2


def test_facts_of_a_machine_with_its_own_profile() -> None:
    assert _time("a100-infiniband,ll128=off", "dgx_a100_2box", "1 MiB") > _time(
        "a100-infiniband", "dgx_a100_2box", "1 MiB"
    )


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("h100+efa", "there is no fabric 'efa'; did you mean 'efa"),
        ("H100+IB,ll=maybe", "'ll=maybe' states nothing; give ll=on or ll=off"),
        ("h1000+ib", "there is no 'h1000\\+ib'; did you mean 'h100'"),
        ("h100+", "there is no fabric ''; fabrics are ib"),
        ("+ib", "there is no '\\+ib'; .* a box may have a fabric, as h100\\+ib"),
        ("h100+ib,nvsl=off", "there is no fact 'nvsl'; did you mean 'nvls'"),
        ("h100+ib,nvls", "'nvls' states nothing; give nvls=on or nvls=off"),
        ("h100+ib,nvls=yes", "'nvls=yes' states nothing; give nvls=on or nvls=off"),
        ("h100+ib,nvls=off,nvls=on", "nvls is given twice; give each fact once"),
        ("h100+ib,launch=", "'launch=' states nothing; give launch=mpi"),
        ("h100+ib,launch=slurm", "launch: .*slurm.*mpi"),
        ("h100+efa3,sharp=on", "sharp=on: efa3 has no switches that sum; .* h100\\+ib"),
        ("mi300x+roce-amd,sharp=on", "sharp=on: roce-amd has no switches that sum"),
        ("h100,sharp=on", "sharp=on: a profile of one node has no switches that sum"),
        ("a100+ib,nvls=on", "nvls=on: switches of a100 do not sum"),
        ("mi300x,nvls=on", "nvls=on: switches of mi300x do not sum"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(profile: str, message: str) -> None:
    with pytest.raises(hk.SpecError, match=message):
        load_profile(profile)


@pytest.mark.parametrize(
    ("network", "profile", "remark"),
    [
        (RAIL, "h100+ib", "switches of this network do not sum; those of h100 may: nvls=on"),
        ("hgx_h100_2box_rails", "a100+ib", "links of 450 GB/s from an NPU are not those of a100"),
        ("dgx_a100_1box", "a100+ib", "a single node, so nothing of the fabric ib counts"),
        ("hgx_h100_2box_rails", "h100", "says nothing of what joins nodes, .* h100\\+ib has them"),
    ],
)
def test_what_does_not_fit_a_network_is_said(network: str, profile: str, remark: str) -> None:
    found = hk.predict("all-reduce", network, sizes="1 MiB", profile=profile)
    assert re.search(remark, " ".join(found.about))
    own = hk.predict("all-reduce", "hgx_h100_2box_rails", sizes="1 MiB", profile="h100+ib")
    assert not re.search(remark, " ".join(own.about))


def test_nvls_may_be_switched_on() -> None:
    assert _time("h100+ib,nvls=on", RAIL) < _time("h100+ib", RAIL)
    assert _time("mi300x", "hgx_h200_8gpu") > _time("h100", "hgx_h200_8gpu")


def test_a_file_states_facts(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(
        "dims:\n  - {kind: Switch, size: 8, bandwidth: 450GB/s, latency: 350ns}\n"
        "  - {kind: Switch, size: 2, bandwidth: 50GB/s, latency: 1us}\n"
        "groups: 8\nprofile: h100+efa3,nvls=off\n"
    )
    assert hk.predict("all-reduce", str(path), sizes="1 MiB").profile.name == "h100+efa3,nvls=off"


def test_a_kind_of_launch_is_said_once() -> None:
    with pytest.raises(hk.SpecError, match="it is 'torch', but the profile says launch=mpi"):
        hk.predict("all-reduce", RAIL, sizes="1 MiB", profile="h100+ib,launch=mpi", launch="torch")
    own = hk.predict("all-reduce", "dgx_a100_1box", sizes="8 KiB", profile="a100,launch=mpi")
    assert own.launch == load_profile("h100+ib").launch["mpi"] + own.profile.launch_per_npu * 8
    with pytest.raises(hk.SpecError, match="sharp=on: there is one node"):
        hk.predict("all-reduce", "dgx_a100_1box", sizes="8 KiB", profile="a100+ib,sharp=on")


def test_racks_are_joined_by_less_than_their_nics() -> None:
    """Tables of CoreWeave and Oracle: racks of GB200 reach 400 GB/s with one another."""
    racks = _time("b200+ib,nvls=on", "rail:2x72@900GB/s,350ns@50GB/s,1us", "8 GiB")
    assert racks > (8 << 30) / 400e9
    assert (
        hk.predict(
            "all-reduce", "rail:2x72@900GB/s,350ns@50GB/s,1us", sizes="8 GiB", profile="b200+ib"
        )
        .expected[0]
        .of
        == OTHER
    )


def test_facts_are_written_as_they_are_read() -> None:
    text = "nvls=off,sharp=on,ll=on,ll128=off,launch=torch"
    assert read_facts(text.split(",")).written() == f",{text}"
    assert read_facts([]).written() == ""


def test_classes_of_machines_follow_the_rules() -> None:
    known = Evidence({"h100": 9}, {"ib": (FEWEST_OWNERS, 46), "tcpx": (1, 2)}, {})
    assert known.class_of("h100", "", 1) == ONE_BOX
    assert known.class_of("b200", "", 1) == OTHER
    assert known.class_of("h100", "ib", 2) == "ib"
    assert known.class_of("h100", "ib", FURTHER * 46) == "ib"
    assert known.class_of("h100", "ib", FURTHER * 46 + 1) == OTHER
    assert known.class_of("h100", "tcpx", 2) == OTHER
    assert known.class_of("h100", "efa2", 2) == OTHER
    assert known.class_of("b200", "ib", 2) == OTHER


def test_shipped_evidence_has_an_error_for_every_question() -> None:
    known = evidence()
    assert set(known.boxes) <= set(BOXES)
    assert set(known.fabrics) <= set(FABRICS)
    for of in (ONE_BOX, OTHER):
        for size in (1 << 10, 1 << 30):
            found = known.of_class(of, size)
            assert found.of == of
            assert found.owners >= FEWEST_OWNERS
            assert 1 < found.median < found.factor


def test_every_prediction_states_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", "all-reduce", "-t", RAIL, "--size", "8KiB,1GiB"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    small, large = (evidence().of_class("ib", size) for size in (8 << 10, 1 << 30))
    assert (
        f"below 1 MiB: 9 of 10 within a factor of {small.factor:.2f} (ib, {small.owners} owners)"
        in printed
    )
    assert (
        f"from 1 MiB: 9 of 10 within a factor of {large.factor:.2f} (ib, {large.owners} owners)"
        in printed
    )


@pytest.mark.parametrize("name", profile_names())
def test_machines_with_their_own_profile_say_their_class(name: str) -> None:
    profile = load_profile(name)
    assert profile.box in BOXES
    assert not profile.fabric or profile.fabric in FABRICS


def test_nodes_of_one_gpu_are_predicted() -> None:
    network = hk.topology.load("switch:10@50GB/s,1us", groups=1)
    found = hk.predict("all-reduce", network, sizes="1 GiB", profile="h100+ib")
    wire = 2 * 9 / 10 * (1 << 30) / 50e9
    assert wire < found.times[0].seconds < 1.3 * wire


def test_a_calibrated_machine_states_the_error_of_what_was_kept_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("scipy")
    kinds = ("all-reduce", "all-gather", "reduce-scatter")
    sizes = [1 << at for at in range(12, 34)]
    lines = ["collective,gpus,nodes,bytes,time_us"]
    for kind in kinds:
        found = hk.predict(kind, "dgx_a100_1box", sizes=sizes)
        lines += [f"{kind},8,1,{each.size},{each.seconds * 1e6:.3f}" for each in found.times]
    log, mine = tmp_path / "measured.csv", tmp_path / "mine.yml"
    log.write_text("\n".join(lines))
    assert run(["calibrate", str(log), "-t", "dgx_a100_1box", "-o", str(mine)]) == 0
    profile = load_profile(str(mine))
    assert profile.box == "a100"
    (_, within) = profile.errors["from 1 MiB"]
    assert within < 0.1
    capsys.readouterr()
    assert run(["predict", "all-reduce", "-t", str(mine), "--size", "1GiB"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        f"from 1 MiB: 9 of 10 within a factor of {1 + within:.2f} (dgx_a100_1box, sizes of it kept back)"
        in printed
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("errors: {below: [0.1, 0.2]}", "below"),
        ("errors: {below 1 MiB: [0.1]}", "errors"),
        ("errors: {below 1 MiB: [-0.1, 0.2]}", "errors"),
        ("box: h1000", "profile.box: there is no 'h1000'; did you mean 'h100'"),
        ("fabric: infiniband", "profile.fabric: there is no 'infiniband'; classes are ib"),
    ],
)
def test_a_wrong_profile_of_a_file_is_refused(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(
        "dims:\n  - {kind: Switch, size: 8, bandwidth: 300GB/s, latency: 1us}\n"
        f"profile:\n  launch: {{mpi: 10}}\n  {line}\n"
    )
    with pytest.raises(hk.SpecError, match=message):
        hk.predict("all-reduce", str(path), sizes="1 MiB")
