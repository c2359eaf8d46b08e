"""``hocket measured``: what it prints, and one line for what is wrong."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.nccl import dumps
from tests.profiles.test_logs import Run, with_prefix
from tests.telemetry.recordings import flight, flight_entry, inspector_call, lines, log

import hocket as hk

GIB = 1 << 30


def test_what_is_printed(hocket: Any, folder: Path) -> None:
    (folder / "log.txt").write_text(log("all_gather", [(1 << 20, 55e-6), (GIB, 8.5e-3)]))
    (folder / "calls.json").write_text(lines([inspector_call("AllGather", GIB // 8, 4300)]))
    argv = ("measured", "log.txt", "calls.json", "-t", "dgx_a100_1box", "--no-plans")
    done = hocket(*argv, "-o", "measured.png")
    assert done.code == 0
    assert "all-gather among 8 NPUs of dgx_a100_1box, kernels alone" in done.out
    assert "all-gather of 1 GiB: the fabric is slow: it takes 1.99 times what is" in done.out
    assert "picture in measured.png" in done.out
    assert (folder / "measured.png").read_bytes().startswith(b"\x89PNG")
    found = hocket(*argv, "--json").json()
    assert [each["verdict"] for each in found["sizes"]] == ["neither", "fabric", "neither"]
    assert found["sizes"][0]["time_ps"] == 55_000_000
    loose = hocket(*argv, "--json", "--tolerance", "2").json()
    assert {each["verdict"] for each in loose["sizes"]} == {"neither"}


def test_a_profile_and_nodes_may_be_given(hocket: Any, folder: Path) -> None:
    (folder / "log.txt").write_text(log("all_gather", [(GIB, 8.5e-3)], 8, 2))
    network = (
        "-t",
        "fully_connected:8@300GB/s,1us",
        "--groups",
        "4",
        "--profile",
        "a100-mesh-slingshot",
    )
    done = hocket("measured", "log.txt", *network, "--no-plans", "--json")
    assert done.code == 0, done.err
    assert (done.json()["nodes"], done.json()["profile"]) == (2, "a100-mesh-slingshot")


def test_a_dump_stands_for_as_many_nodes_as_the_log_is_on(hocket: Any, folder: Path) -> None:
    (folder / "topo.xml").write_text(dumps.DGX_H100.topology())
    (folder / "log.txt").write_text(log("all_gather", [(GIB, 8.5e-3)], 16, 2))
    told = [
        hocket("measured", "log.txt", "-t", *network, "--no-plans", "--json").json()
        for network in (("topo.xml",), ("dump:topo.xml",), ("topo.xml", "--nodes", "2"))
    ]
    for each in told:
        assert (each["nodes"], each["npus"]) == (2, 16)
        assert each["sizes"] == told[-1]["sizes"]
    note = "2 nodes like that of topo.xml (--nodes 2): 1 of 1 time are among 16 NPUs"
    assert [note in each["notes"] for each in told] == [True, True, False]
    found = hk.measured("log.txt", "topo.xml", plans=False)
    assert (found.nodes, list(found.notes)) == (2, told[0]["notes"])
    for stated in (("--nodes", "1"), ("--nodes", "4"), ("--groups", "4")):
        done = hocket("measured", "log.txt", "-t", "topo.xml", *stated)
        assert (done.code, "among 16 NPUs on 2 nodes; the topology has" in done.err) == (2, True)
    both = log("all_gather", [(GIB, 8.5e-3)], 16, 2) + log("all_gather", [(GIB, 4e-3)])
    (folder / "log.txt").write_text(both)
    assert hk.measured("log.txt", "topo.xml", plans=False).nodes == 1


@pytest.mark.parametrize(
    ("content", "more", "words"),
    [
        (b"", (), "recording: has no measurements"),
        (
            log("all_gather", [(GIB, 1.0)], 16, 2).encode(),
            (),
            "among 16 NPUs on 2 nodes; the topology",
        ),
        (b'{"traceEvents": [', (), "recording, line 1: is no JSON"),
        (b"\x80\x02cos\nsystem\n.", (), "recording, byte 2: holds more than plain data (GLOBAL"),
        (
            pickle.dumps(flight([flight_entry("all_reduce", 4, 4, -1)])),
            (),
            "duration_ms: -1 is not",
        ),
        (json.dumps({"pg_config": 3}).encode(), (), "has no times of collectives"),
        (log("all_gather", [(GIB, 1.0)]).encode(), ("--tolerance", "-1"), "tolerance: -1.0 is no"),
        (
            log("all_gather", [(GIB, 1.0)]).encode(),
            ("--launch", "tpu"),
            "launch: there is no 'tpu'",
        ),
        (log("all_gather", [(GIB, 1.0)]).encode(), ("--gpu", "tpu"), "gpu: there is no 'tpu'"),
        (log("all_gather", [(GIB, 1.0)]).encode(), ("-o", "a.txt"), "a picture ends in .png"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    hocket: Any, folder: Path, content: bytes, more: tuple[str, ...], words: str
) -> None:
    (folder / "recording").write_bytes(content)
    done = hocket("measured", "recording", "-t", "dgx_a100_1box", "--no-plans", *more)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["recording"]


@pytest.mark.parametrize("machine", [dumps.DGX_H100, dumps.PCI_T4])
def test_a_profile_is_written_with_the_network_of_a_dump(
    hocket: Any, folder: Path, machine: dumps.Made
) -> None:
    (folder / "topo.xml").write_text(machine.topology())
    sizes = [(8192 << (3 * step), 30e-6 * 2**step) for step in range(6)]
    (folder / "log.txt").write_text(log("all_reduce", sizes, machine.gpus, 1))
    assert hocket("calibrate", "log.txt", "-t", "topo.xml", "-o", "mine.yml").code == 0
    old, new = hk.topology.load("topo.xml"), hk.topology.load("mine.yml")
    for what in ("device_names", "switch_offloads", "groups"):
        assert getattr(old, what) == getattr(new, what)
    facts = ("link_src", "link_dst", "link_bandwidth", "link_latency_ps")
    links = [
        sorted(zip(*(getattr(net, fact).tolist() for fact in facts), strict=True))
        for net in (old, new)
    ]
    assert links[0] == links[1]
    assert hocket("predict", "all-reduce", "-t", "mine.yml", "-s", "1MB").code == 0


def test_a_profile_of_a_slow_machine_says_so(hocket: Any, folder: Path) -> None:
    """Fitted to times of links at half their bandwidth, and then asked about the same times."""
    sizes = [8192 << (3 * step) for step in range(6)]
    times = hk.predict("all-reduce", "dgx_a100_1box", sizes=sizes).times
    where = ("log.txt", "-t", "dgx_a100_1box")

    def fitted(slow: float) -> Any:
        rows = [(each.size, each.seconds * (slow if each.size > 1 << 20 else 1)) for each in times]
        (folder / "log.txt").write_text(log("all_reduce", rows))
        return hocket("calibrate", *where, "-o", "mine.yml")

    assert "as quick as profile a100 predicts" in fitted(1.0).out
    told = fitted(2.0).out
    assert "slower than profile a100 predicts: all-reduce 1 to 64 MiB 2.00 times, all-" in told
    own = hocket("measured", "log.txt", "-t", "mine.yml", "--no-plans", "--json").json()
    assert any("was fitted to this file" in note for note in own["notes"])
    theirs = hocket("measured", *where, "--no-plans", "--json").json()
    assert not any("fitted to this file" in note for note in theirs["notes"])
    assert "fabric" in {each["verdict"] for each in theirs["sizes"]}
    ways = hocket("predict", "all-reduce", "-t", "dgx_a100_1box", "-s", "8KiB", "--json").json()
    first = theirs["sizes"][0]
    assert first["predicted_algorithm"] == ways["times"][0]["algorithm"]
    assert first["predicted_protocol"] == ways["times"][0]["protocol"]


@pytest.mark.parametrize("device", ["NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-32GB", None])
def test_a_log_of_another_gpu_is_told(hocket: Any, folder: Path, device: str | None) -> None:
    text = log("all_reduce", [(8192 << (3 * step), 30e-6 * 2**step) for step in range(6)])
    named = text if device is None else text.replace("NVIDIA A100-SXM4-40GB", device)
    assert device is None or named != text
    (folder / "log.txt").write_text(named)
    where = ("log.txt", "-t", "dgx_a100_1box")
    notes = hocket("measured", *where, "--no-plans", "--json").json()["notes"]
    said = f"names {device} as its device, and the topology has GPUs of ampere"
    assert any("as its device" in note for note in notes) == (device is not None)
    assert device is None or any(said in note for note in notes)
    assert (said in hocket("calibrate", *where).err) == (device is not None)


def test_files_of_other_tools_take_no_profile(hocket: Any, folder: Path) -> None:
    (folder / "log.txt").write_text(log("all_reduce", [(1 << 20, 55e-6)]))
    assert (
        hocket("topology", "export", "dgx1_v100", "--to", "infragraph", "-o", "net.yml").code == 0
    )
    done = hocket("calibrate", "log.txt", "-t", "net.yml", "-o", "mine.yml")
    assert done.code == 2
    assert (
        "net.yml: is a file of another tool, in which there is no place for a profile" in done.err
    )
    assert not (folder / "mine.yml").exists()


def test_calibrate_and_measured_leave_out_the_same(hocket: Any, folder: Path) -> None:
    """Behind a prefix, with a run between that has no model."""
    sizes = [8192 << (3 * step) for step in range(6)]
    times = hk.predict("all-reduce", "dgx_a100_1box", sizes=sizes).times
    rows = tuple((each.size, *2 * [round(each.seconds * 1e6, 2)]) for each in times)
    runs = [*Run("gather", 1, 8).lines(), *Run("all_reduce", 1, 8, rows).lines()]
    (folder / "log.txt").write_text("\n".join(with_prefix(runs, "kubectl --prefix")))
    where = ("log.txt", "-t", "dgx_a100_1box")
    said = "4 of gather_perf, whose collective has no model here"
    fitted = hocket("calibrate", *where, "--prior", "a100", "--json").json()
    assert fitted["left_out"] == [f"log: {said}"]
    assert fitted["errors"][0]["median"] < 0.01
    assert f"left out: log: {said}" in hocket("calibrate", *where, "--prior", "a100").out
    found = hocket("measured", *where, "--no-plans", "--json").json()
    assert any(said in note for note in found["notes"])
    assert [each["size_bytes"] for each in found["sizes"]] == sizes
