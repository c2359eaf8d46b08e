"""Packet fidelity against link fidelity, its knobs, and how it stops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from hocket import _core
from hocket.cli import run
from hocket.collectives.timing import LinkOrder


def mesh(side: int) -> hk.Topology:
    return hk.topology.mesh(side, side, bandwidth="25 GB/s", latency="21 ns")


def made(algorithm: str, topology: hk.Topology, size: str) -> hk.Plan:
    collective = hk.collective_on("all-reduce", topology, size)
    default = _core.registry.default_chunks(topology, collective, algorithm)
    given: dict[str, Any] = {"chunks": default}
    if algorithm.startswith("tto"):
        npus = topology.npu_count
        corner = npus - round(npus**0.5)
        given = {"npus": [npu for npu in range(npus) if npu != corner], "chunk_size": 98304}
    return hk.plan("all-reduce", topology, size=size, algorithm=algorithm, **given).verify()


def ratio(plan: hk.Plan, order: LinkOrder) -> float:
    """Give the time in packets in that of whole messages."""
    link = hk.simulate(plan, order=order)
    packet = hk.simulate(plan, fidelity="packet:mcm", order=order)
    return packet.time_ps / link.time_ps


@pytest.mark.parametrize("size", ["1 MiB", "4 MiB", "16 MiB"])
@pytest.mark.parametrize(
    ("algorithm", "side", "order"),
    [
        ("ring", 4, "ready"),
        ("ring", 8, "ready"),
        ("bidirectional-ring", 4, "ready"),
        ("bidirectional-ring", 8, "ready"),
        ("ring-bi-odd", 5, "ready"),
        ("ring-bi-odd", 7, "ready"),
        ("multitree", 4, "plan"),
        ("multitree", 5, "plan"),
        ("tto", 4, "ready"),
        ("tto", 5, "ready"),
        ("tto-overlapped", 4, "ready"),
        ("tto-overlapped", 5, "ready"),
    ],
)
def test_without_contention_packets_and_messages_take_as_long(
    algorithm: str, side: int, order: LinkOrder, size: str
) -> None:
    """Every message goes over one link that it has to itself: what is left is the routers' cycles, the
    rounding of a flit's 20.48 ns up to 21, and whether a message's latency overlaps the next one.
    """
    assert ratio(made(algorithm, mesh(side), size), order) == pytest.approx(1.015, abs=0.035)


@pytest.mark.parametrize("size", ["1 MiB", "4 MiB", "16 MiB"])
def test_direct_messages_take_as_long_in_packets(size: str) -> None:
    topology = hk.topology.fully_connected(8, bandwidth="25 GB/s", latency="21 ns")
    assert ratio(made("direct", topology, size), "ready") == pytest.approx(1.025, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["1 MiB", "4 MiB", "16 MiB"])
@pytest.mark.parametrize("side", [4, 5, 8])
def test_shared_links_differ(side: int, size: str) -> None:
    """Messages of a double binary tree go over several links, and share them.

    Packets share a link flit by flit and cut through; at link fidelity a link serves whole messages,
    each stored before it goes on, and in plan order it waits for those that come late.
    """
    assert ratio(made("double-binary-tree", mesh(side), size), "plan") < 0.9


@pytest.mark.slow
def test_the_same_again() -> None:
    plan = made("double-binary-tree", mesh(4), "300 kB")
    packets = hk.PacketOptions(
        packet_size="100 B", flit_size="7 B", header_flits=1, buffer_flits=16, virtual_channels=64
    )
    first, second = (hk.simulate(plan, fidelity=packets) for _ in range(2))
    assert first.core.end_ps.tolist() == second.core.end_ps.tolist()


def test_an_interrupt_stops_packets(interrupted: Callable[..., str]) -> None:
    script = """
import hocket as hk
mesh = hk.topology.mesh(4, 4, bandwidth="25 GB/s", latency="21 ns")
plan = hk.plan("all-reduce", mesh, size="100 TB", algorithm="double-binary-tree").verify()
print("made", flush=True)
try:
    hk.simulate(plan, fidelity="packet")
except KeyboardInterrupt:
    print("stopped")
"""
    assert interrupted(script, within=10) == "stopped\n"


BAD = {
    "--packet-size 0B": "--packet-size: '0B' ",
    "--packet-size 1.5B": "whole number of bytes",
    "--packet-size 1000000TB": "does not hold a packet of",
    "--packet-size 100B": "does not hold a flit of 512 B",
    "--flit-size x": "--flit-size: 'x' ",
    "--header-flits -1": "0 to 1000000",
    "--header-flits 303": "a packet of 319 flits (8192 B and a header)",
    "--virtual-channels 0": "--virtual-channels: 0 ",
    "--virtual-channels 65": "--virtual-channels: 65 ",
    "--buffer-flits 15": "a buffer of 15 flits does not hold a packet of 16 flits",
    "--buffer-flits 4294967296": "--buffer-flits: 4294967296 ",
    "--clock 3GHz": "not a whole number of picoseconds",
    "--clock 0Hz": "--clock: '0Hz' ",
    "--reduction-rate 0GB/s": "--reduction-rate: '0GB/s' ",
    "--preset x": "there is no 'x'; use mcm",
    "--switching store-and-forward": " packet fidelity ",
    "--latency-model occupying": " packet fidelity ",
    "--reduction-rate 1B/s": "213 days",
}


@pytest.mark.parametrize("options", BAD)
def test_bad_options_leave_one_line(
    options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made("ring", mesh(4), "400 MB").save(tmp_path / "plan.parquet")
    capsys.readouterr()
    argv = ["simulate", str(tmp_path / "plan.parquet"), "--fidelity", "packet", *options.split()]
    argv += ["--output", str(tmp_path / "out.parquet"), "--plot", str(tmp_path / "out.png")]
    assert run(argv) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert BAD[options] in err
    assert [path.name for path in tmp_path.iterdir()] == ["plan.parquet"]


@pytest.mark.parametrize(
    "packets",
    [
        hk.PacketOptions(packet_size="1 B", flit_size="1 B", buffer_flits=1),
        hk.PacketOptions(
            packet_size="513 B", flit_size="512 B", buffer_flits=2, virtual_channels=64
        ),
        hk.PacketOptions(packet_size="1 TB", flit_size="1 TB", buffer_flits=1, virtual_channels=1),
        hk.PacketOptions(header_flits=999_984, buffer_flits=1_000_000),
        hk.PacketOptions(clock="1 Hz"),
        hk.PacketOptions(clock="1000 GHz"),
        hk.PacketOptions(reduction_rate="1 B/s"),
        hk.PacketOptions(reduction_rate="1000 TB/s"),
    ],
)
def test_extreme_knobs_end_after_the_bound(packets: hk.PacketOptions) -> None:
    plan = made("ring", mesh(2), "4 kB")
    outcome = hk.simulate(plan, fidelity=packets)
    assert outcome.time_ps >= outcome.lower_bound.time_ps
    assert outcome.max_link_bytes == 6000


def test_algorithms_are_compared_packet_by_packet(capsys: pytest.CaptureFixture[str]) -> None:
    topology = hk.topology.mesh(3, 3, bandwidth="25 GB/s", latency="21 ns")
    names = ["ring", "ring-bi-odd", "multitree"]
    compared = hk.compare(
        "all-reduce", topology, size="1 MiB", algorithms=names, chunks=1, fidelity="packet"
    )
    assert {entry.run.fidelity for entry in compared} == {"packet"}
    for entry in compared:
        alone = hk.simulate(entry.plan, fidelity="packet")
        assert alone.time_ps == entry.run.time_ps
    argv = "compare all-reduce -t mesh:3x3 --size 1MiB --bandwidth 25GB/s --latency 21ns -a ring"
    assert run([*argv.split(), "--fidelity", "packet"]) == 0
    assert "packet by packet" in capsys.readouterr().out
    with pytest.raises(hk.SpecError, match="a buffer of 15 flits does not hold a packet"):
        hk.compare(
            "all-reduce",
            topology,
            size="1 MiB",
            fidelity=hk.PacketOptions(buffer_flits=15),
        )
    with pytest.raises(hk.SpecError, match=r"^fidelity: .*'cell'"):
        hk.compare("all-reduce", topology, size="1 MiB", fidelity="cell")  # type: ignore[arg-type]


def test_what_deadlocks_is_left_out_of_a_comparison() -> None:
    topology = hk.topology.ring(4, bandwidth="25 GB/s", latency="21 ns", both_ways=False)
    compared = hk.compare(
        "all-to-all",
        topology,
        size="16 MB",
        fidelity=hk.PacketOptions(virtual_channels=1, buffer_flits=16),
    )
    assert "wait for ever" in compared.refused["direct"]


@pytest.mark.parametrize(
    ("bandwidth", "latency", "size"),
    [
        ("25 GB/s", "21 ns", "512 B"),
        ("1 MB/s", "500 us", "512 B"),
        ("12.5 GB/s", "500 ns", "1 MB"),
        ("25 GB/s", "0 ns", "8192 B"),
    ],
)
def test_no_packet_run_is_below_the_bound(bandwidth: str, latency: str, size: str) -> None:
    """A link's latency covers its first flit: the bound does not count it twice."""
    topology = hk.topology.line(2, bandwidth=bandwidth, latency=latency)
    plan = hk.plan("broadcast", topology, size=size, algorithm="chain", chunks=1)
    run = hk.simulate(plan, fidelity="packet")
    assert run.gap >= 0
    assert run.lower_bound.time_ps <= hk.simulate(plan).lower_bound.time_ps
    compared = hk.compare("broadcast", topology, size=size, algorithms=["chain"], fidelity="packet")
    assert compared.bound.time_ps == run.lower_bound.time_ps
