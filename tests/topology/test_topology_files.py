"""Topology files: the three forms, and every way to get one wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket.files.model import Source
from hocket.files.yaml_tree import parse_yaml, read_yaml
from hocket.topology.build import build_topology
from hocket.topology.model import Failures, Link, LinksFile
from hocket.topology.text import from_file

from .topology_files import (
    DIMS,
    GB,
    JARGON,
    KIND,
    MESH,
    NETWORK,
    PAIR,
    RING,
    links,
    load,
    refusal,
)

# The three forms.


@pytest.mark.parametrize(
    ("text", "npus", "switches", "count"),
    [
        ("builder: line\nnpus: 4\n", 4, 0, 6),
        ("builder: ring\nnpus: 4\n", 4, 0, 8),
        ("builder: ring\nnpus: 4\nboth_ways: false\n", 4, 0, 4),
        ("builder: fully_connected\nnpus: 4\n", 4, 0, 12),
        ("builder: switch\nnpus: 4\n", 4, 1, 8),
        ("builder: switch\nnpus: 4\nlimit: 3 GB/s\n", 4, 1, 8),
        ("builder: mesh\nsize: [3, 4]\n", 12, 0, 34),
        ("builder: torus\nsize: [3, 4]\n", 12, 0, 48),
        ("builder: hypercube\nlog2_npus: 3\n", 8, 0, 24),
        ("builder: dragonfly\ngroups: 4\ngroup_size: 5\n", 20, 0, 92),
        ("builder: clos\nspines: 2\ntors: 4\nhosts_per_tor: 3\n", 12, 6, 40),
        ("builder: bigraph\nswitches_per_side: 2\nnpus_per_switch: 3\n", 12, 4, 32),
        ("builder: fat_tree\nk: 4\n", 16, 20, 96),
    ],
)
def test_builders(tmp_path: Path, text: str, npus: int, switches: int, count: int) -> None:
    topology = load(tmp_path, text + "bandwidth: 2 GB/s\nlatency: 3 ns\n")
    found = topology.inspect()
    assert (found.npus, found.switches, found.links) == (npus, switches, count)
    assert found.connected
    assert {(rate, delay) for _, _, rate, delay in links(topology)} == {(2 * GB, 3000)}
    if "limit" in text:
        assert topology.switch_limits == [3 * GB]


def test_builders_with_two_kinds_of_links(tmp_path: Path) -> None:
    base = "bandwidth: 2 GB/s\nlatency: 3 ns\n"
    text = "builder: dragonfly\ngroups: 3\ngroup_size: 2\nglobal_bandwidth: 1 GB/s\n"
    far = load(tmp_path, base + text + "global_latency: 9 ns\n")
    assert {(r, d) for _, _, r, d in links(far)} == {(2 * GB, 3000), (GB, 9000)}
    text = "builder: clos\nspines: 2\ntors: 2\nhosts_per_tor: 2\nhost_bandwidth: 5 GB/s\n"
    clos = load(tmp_path, base + text)
    rates = [rate for _, _, rate, _ in links(clos)]
    assert rates.count(5 * GB) == 8
    assert rates.count(2 * GB) == 8


def test_dims(tmp_path: Path) -> None:
    more = "  - {kind: Switch, size: 2, bandwidth: 200 Gb/s, latency: 1.7 us}\n"
    topology = load(tmp_path, DIMS + more)
    assert topology.dimensions == [
        ("Ring", 4, GB, 1_000_000, False),
        ("Switch", 2, 25 * GB, 1_700_000, False),
    ]
    assert (topology.npu_count, len(topology.link_src)) == (8, 2 * 8 + 4 * 4)


def test_links_long_and_short(tmp_path: Path) -> None:
    topology = load(
        tmp_path,
        """
npus: [a, b, c]
switches: [s, {name: t, limit: 4 GB/s}]
link_kinds:
  fast: {bandwidth: 10 GB/s, latency: 5 ns}
links:
  - [a, s, fast]
  - [b, s, 1 GB/s, 7 ns]
  - {a: a, b: b, kind: fast, ways: one}
  - {a: b, b: c, kind: fast, latency: 6 ns, count: 2}
  - {a: c, b: t, bandwidth: 2 GB/s, latency: 1 ns, reverse: {bandwidth: 3 GB/s, latency: 4 ns}}
""",
    )
    assert topology.name == "net"  # of the file
    assert topology.device_names == ["a", "b", "c", "s", "t"]
    assert topology.npu_count == 3
    assert topology.switch_limits == [None, 4 * GB]
    assert sorted(links(topology)) == [
        ("a", "b", 10 * GB, 5000),
        ("a", "s", 10 * GB, 5000),
        ("b", "c", 10 * GB, 6000),
        ("b", "c", 10 * GB, 6000),
        ("b", "s", GB, 7000),
        ("c", "b", 10 * GB, 6000),
        ("c", "b", 10 * GB, 6000),
        ("c", "t", 2 * GB, 1000),
        ("s", "a", 10 * GB, 5000),
        ("s", "b", GB, 7000),
        ("t", "c", 3 * GB, 4000),
    ]


def test_opposite_links_of_their_own(tmp_path: Path) -> None:
    one = "  - {a: a, b: b, kind: k, ways: one}\n"
    topology = load(tmp_path, PAIR + one + one.replace("a: a, b: b", "a: b, b: a"))
    assert [(a, b) for a, b, _, _ in links(topology)] == [("a", "b"), ("b", "a")]


def test_number_of_npus_names_them(tmp_path: Path) -> None:
    topology = load(tmp_path, "npus: 2\nlinks:\n  - [npu0, npu1, 1 GB/s, 1 ns]\n")
    assert topology.device_names == ["npu0", "npu1"]


def test_defaults_are_noted_with_their_count(tmp_path: Path) -> None:
    file = tmp_path / "net.yml"
    file.write_text(
        "npus: [a, b, c]\nnotes: [mine]\nlinks:\n  - [a, b, default pcie, default pcie]\n"
        "  - {a: b, b: c, bandwidth: 1 GB/s, latency: default ib, count: 3}\n"
        "  - {a: a, b: c, bandwidth: 1 GB/s, latency: 1 ns,"
        " reverse: {bandwidth: 1 GB/s, latency: default ib}}\n"
    )
    spec = from_file(file)
    assert spec.notes[0] == "mine"
    counts = [note.partition(" is a default")[0] for note in spec.notes[1:]]
    assert sorted(counts) == [
        "bandwidth of 2 links",
        "latency of 2 links",
        "latency of 7 links",
    ]


def test_failures(tmp_path: Path) -> None:
    failed = "failed: {nodes: [npu4], links: [[npu0, npu1]]}\n"
    topology = load(tmp_path, "name: broken\n" + MESH + failed)
    assert "npu4" not in topology.device_names
    pairs = {(a, b) for a, b, _, _ in links(topology)}
    assert ("npu0", "npu1") not in pairs
    assert ("npu1", "npu0") not in pairs
    assert ("npu7", "npu8") in pairs  # the rest keeps its names
    assert len(pairs) == 24 - 8 - 2


def test_what_looks_like_a_date_is_text(tmp_path: Path) -> None:
    assert load(tmp_path, "npus: [2024-01-01, 2024-13-45]\nlinks: []\n").npu_count == 2


def test_byte_order_mark_and_carriage_returns_do_no_harm(tmp_path: Path) -> None:
    text = MESH.replace("\n", "\r\n").encode("utf-8-sig")
    assert load(tmp_path, text) == load(tmp_path, MESH)


# What is wrong with a file.


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty; begin with"),
        ("# only a comment\n", "is empty; begin with"),
        ("- a\n", "is not a mapping of keys to values; begin with"),
        ("hello\n", "is not a mapping of keys to values; begin with"),
        ("a:\n\t- b", "line 2: is not YAML: found character"),
        ("npus: [a, b\nlinks: []", "line 2: is not YAML: did not find expected ',' or ']'"),
        ("a: 1\n---\nb: 2\n", "line 2: a second document begins here; keep one"),
        (MESH + "size: [2]\n", "line 5: key 'size' stands twice; keep one"),
        ("npus: &x [a, b]\nlinks: *x\n", "line 1: anchors and aliases (& and *) are not used"),
        ("a: *x\n", "line 1: anchors and aliases (& and *) are not used"),
        ("x: 1\ny: &y [*y]\n", "line 2: anchors and aliases (& and *) are not used"),
        ("npus: !!python/name:os.system a\n", "line 1: tag "),
        ("npus: !mine a\n", "line 1: tag '!mine' is not used here; remove it"),
        ("? [a, b]\n: 1\n", "line 1: a key is not a word"),
        ("a: \0", "line 1: character U+0000 is not text; remove it"),
        ("a: 1\nb: \x01", "line 2: character U+0001 is not text; remove it"),
        ("a: " + "9" * 5000, "line 1: '999"),
    ],
    ids=lambda text: text[:20],
)
def test_wrong_yaml(tmp_path: Path, text: str, says: str) -> None:
    assert refusal(tmp_path, text).startswith(says)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "a:\n"])
def test_deep_nesting_is_refused(tmp_path: Path, opening: str) -> None:
    if opening == "a:\n":
        text = "".join("  " * i + "a:\n" for i in range(500))
    else:
        text = "a:\n  " + opening * 200_000
    assert "is nested too deeply" in refusal(tmp_path, text)


@pytest.mark.parametrize("raw", ["é".encode("latin-1"), MESH.encode("utf-16"), b"\xff\xfe\x00"])
def test_other_encodings_are_refused(tmp_path: Path, raw: bytes) -> None:
    assert refusal(tmp_path, raw) == "is not text in UTF-8; save it as UTF-8"


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(hk.SpecError, match=r"nope\.yml: there is no such file; check the path$"):
        hk.topology.load(tmp_path / "nope.yml")
    with pytest.raises(hk.SpecError, match=r"dgx1\.yml: there is no such .* 'dgx1_v100'"):
        hk.topology.load("dgx1.yml")
    (tmp_path / "folder.yml").mkdir()
    (tmp_path / "link.yml").symlink_to("link.yml")
    with pytest.raises(hk.SpecError, match=r"link\.yml: is a link that leads to no file; check"):
        hk.topology.load(tmp_path / "link.yml")
    for special in ("/dev/null", "/dev/zero"):
        with pytest.raises(
            hk.SpecError, match=f"{special}: is a pipe or a device; write what comes"
        ):
            hk.topology.load(special)
    with pytest.raises(hk.SpecError, match=r"folder\.yml: is a folder; "):
        hk.topology.load(tmp_path / "folder.yml")
    os.mkfifo(tmp_path / "pipe.yml")
    with pytest.raises(hk.SpecError, match=r"pipe\.yml: is a pipe or a device; write what comes"):
        hk.topology.load(tmp_path / "pipe.yml")
    with pytest.raises(hk.SpecError, match="cannot be read: Is a directory; give"):
        read_yaml(tmp_path)
    with pytest.raises(hk.SpecError, match="there is no such file") as error:
        hk.topology.load("x" * 5000 + ".yml")
    assert len(str(error.value)) < 500
    with pytest.raises(hk.SpecError, match=r"'a\\nb.yml': there is no such file"):
        hk.topology.load("a\nb.yml")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: a\n", "has no builder:, dims: or links:; add one of them"),
        ("name: a\ndim: []\n", "has no builder:, dims: or links:; did you mean 'dims' by 'dim'"),
        ("npus: [a]\n", "key 'links' is missing; add it"),
        ("npus: [a]\nlink: []\n", "line 2: there is no key 'link'; did you mean 'links'?"),
        ("npus: -1\n", "line 1: npus: -1 is too small"),
        (
            "npus: 2\nlink_kinds: {a: {latency: 5}}\n",
            "line 2: link_kinds.a: key 'bandwidth' is missing",
        ),
        (MESH + DIMS, "has builder and dims; keep one"),
        (MESH + "latancy: 1 us\n", "line 5: there is no key 'latancy'; did you mean 'latency'?"),
        (MESH + "Size: [1]\n", "line 5: there is no key 'Size'; did you mean 'size'?"),
        (MESH + "zzz: 1\n", "line 5: there is no key 'zzz'; keys are name, source, notes"),
        (
            MESH.replace("mesh", "mash"),
            "line 1: builder: there is no builder 'mash'; did you mean 'm",
        ),
        (MESH.replace("mesh", "xyz"), "line 1: builder: there is no builder 'xyz'; builders are "),
        (MESH.replace("bandwidth: 25 GB/s\n", ""), "key 'bandwidth' is missing; add it"),
        (RING.replace("4", "0"), "line 2: npus: 0 "),
        (RING.replace("4", "four"), "line 2: npus: 'four' "),
        (RING.replace("4", "[a, b]"), "line 2: npus: ['a', 'b'] "),
        (RING.replace("4", "1"), "size of the ring: is 1; give it at least 2"),
        (RING + "ways: one\n", "line 5: there is no key 'ways'; did you mean 'both_ways'?"),
        (RING + "both_ways: two\n", "line 5: both_ways: 'two' "),
        (MESH.replace("[3, 3]", "3x3"), "line 2: size: '3x3' "),
        (MESH.replace("[3, 3]", "[3, 0]"), "line 2: size[1]: 0 "),
        (MESH.replace("[3, 3]", "[-3]"), "line 2: size[0]: -3 "),
        (MESH.replace("[3, 3]", "[3.0]"), "line 2: size[0]: 3.0 "),
        (MESH.replace("[3, 3]", "['3']"), "line 2: size[0]: '3' "),
        (MESH.replace("[3, 3]", "[]"), "line 2: size: [] has 0 entries; write it as [4, 4]"),
        (MESH.replace("[3, 3]", "[5000000000]"), "line 2: size[0]: 5000000000 "),
        (MESH.replace("[3, 3]", str([1] * 33)), "line 2: size: [1, 1, 1"),
        ("builder: fat_tree\nk: 3\nbandwidth: 1 GB/s\nlatency: 0 s\n", "k of the fat tree: is 3; "),
        (MESH + "name: a b\n", "line 5: name: 'a b': a name has no spaces or commas; "),
        (MESH + "name: 3\n", "line 5: name: 3 is not text; quote it"),
        (MESH + "name: ''\n", "line 5: name: is empty; give"),
        (MESH + f"name: {'x' * 201}\n", "line 5: name: is longer than 200 characters; shorten it"),
        (MESH + "notes: hi\n", "line 5: notes: 'hi' "),
        (MESH + "source: me\n", "line 5: source: 'me' "),
        (MESH + "source: [{repo: x, url: y}]\n", "line 5: source[0]: there is no key 'url'; keys "),
        (MESH + "source: [{path: x}]\n", "line 5: source[0]: key 'repo' is missing; add it"),
    ],
)
def test_wrong_keys_and_builders(tmp_path: Path, text: str, says: str) -> None:
    assert refusal(tmp_path, text).startswith(says)


BANDWIDTHS = [
    ("25", "25 "),
    ("25.5", "25.5 "),
    (".nan", "nan "),
    (".inf", "inf "),
    ("nan GB/s", "'nan GB/s' "),
    ("-25 GB/s", "'-25 GB/s' "),
    ("-25", "-25 "),
    ("0 GB/s", "'0 GB/s' "),
    ("25 ns", "'25 ns': 'ns' "),
    ("25 GB", "'25 GB': 'GB' "),
    ("", "there is no value; write"),
    ("yes", "true "),
    ("[25 GB/s]", "['25 GB/s'] "),
    ("default pci", "'default pci' is not a default bandwidth; there are 'default pcie'"),
]


@pytest.mark.parametrize(("value", "says"), BANDWIDTHS)
def test_wrong_bandwidths_in_each_place(tmp_path: Path, value: str, says: str) -> None:
    places = [
        (KIND.replace("1 GB/s", value) + "links: []\n", "line 3: link_kinds.k.bandwidth: "),
        (PAIR + f"  - a: a\n    b: b\n    bandwidth: {value}\n", "line 7: links[0].bandwidth: "),
    ]
    if not value.startswith("default"):
        places += [
            (MESH.replace("25 GB/s", value), "line 3: bandwidth: "),
            (DIMS.replace("1 GB/s", value), "line 2: dims[0].bandwidth: "),
            (
                f"npus: 1\nlinks: []\nswitches: [{{name: s, limit: {value}}}]\n",
                "line 3: switches[0].limit: ",
            ),
        ]
    for text, where in places:
        if value == "" and ("limit" in where or "links[" in where):
            continue  # nothing is the same as leaving it out
        message = refusal(tmp_path, text)
        assert message.startswith(where + says), message


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("[a, b, -1 GB/s, 1 us]", "[2]: '-1 GB/s' "),
        ("[a, b, 0 GB/s, 1 us]", "[2]: '0 GB/s' "),
        ("[a, b, 25, 1]", "[2]: 25 "),
        ("[a, b, 25 GB/s, 1]", "[3]: 1 "),
        ("[a, b, .nan, 1 us]", "[2]: nan "),
        ("[a, b, 1 us, 25 GB/s]", "[2]: '1 us': 'us' "),
        ("[a, b, 25 GB/s, -1 us]", "[3]: '-1 us' "),
        ("[a, b, 25 GB/s, default foo]", "[3]: 'default foo' is not a default latency; "),
        ("[a, b]", ": ['a', 'b'] has 2 entries; write it as [a, b, kind] or [a, b, ban"),
        ("[a, b, k, k, k]", ": ['a', 'b', 'k', 'k', 'k'] has 5 entries; write it as [a, b, kind]"),
        ("[a, a, k]", ": joins 'a' to itself; remove it"),
        ("{a: b, b: b, kind: k}", ": joins 'b' to itself; remove it"),
        ("[a, c1, k]", ": there is no device 'c1'; list it under npus or switches"),
        ("[a, B, k]", ": there is no device 'B'; did you mean 'b'?"),
        ("[a, b, kk]", ": there is no link kind 'kk'; did you mean 'k'?"),
        ("[a, b, zz]", ": there is no link kind 'zz'; link_kinds are k"),
        ("[1, b, k]", "[0]: 1 is not text; quote it if it is a name"),
        ("a-b", ": 'a-b' is not valid; write a link as [a, b, kind]"),
        ("3", ": 3 is not valid; write a link as [a, b, kind]"),
        ("{a: a, b: b}", ": key 'bandwidth' is missing; add it, or a kind that has it"),
        ("{a: a, b: b, bandwidth: 1 GB/s}", ": key 'latency' is missing; add it"),
        ("{a: a, b: b, kind: k, way: one}", ": there is no key 'way'; did you mean 'ways'?"),
        ("{from: a, to: b, kind: k}", ": there is no key 'from'; keys are a, b, kind"),
        ("{a: a, kind: k}", ": key 'b' is missing; add it"),
        ("{a: a, b: b, kind: k, ways: two}", ".ways: there is no 'two'; use both or one"),
        ("{a: a, b: b, kind: k, count: 0}", ".count: 0 "),
        ("{a: a, b: b, kind: k, count: 1000000}", ".count: 1000000 "),
        ("{a: a, b: b, kind: k, count: x}", ".count: 'x' "),
        (
            "{a: a, b: b, kind: k, reverse: 3}",
            ".reverse: 3 is not a mapping; write it as key: value",
        ),
        (
            "{a: a, b: b, kind: k, reverse: {latency: 1 s}}",
            ".reverse: key 'bandwidth' is missing; ",
        ),
        (
            "{a: a, b: b, kind: k, reverse: {bandwidth: 1, latency: 1 s}}",
            ".reverse.bandwidth: 1 has",
        ),
        (
            "{a: a, b: b, kind: k, ways: one, reverse: {bandwidth: 1 GB/s, latency: 1 s}}",
            ": has reverse: but ways: one; keep one of them",
        ),
    ],
)
def test_wrong_links(tmp_path: Path, entry: str, says: str) -> None:
    assert refusal(tmp_path, PAIR + f"  - {entry}\n").startswith("line 5: links[0]" + says)


@pytest.mark.parametrize(
    ("second", "ends"),
    [
        ("[a, b, k]", "a -> b"),
        ("[b, a, k]", "b -> a"),
        ("{a: b, b: a, kind: k, ways: one}", "b -> a"),
        ("[a, b, 9 GB/s, 9 ns]", "a -> b"),
    ],
)
def test_duplicate_links(tmp_path: Path, second: str, ends: str) -> None:
    assert refusal(tmp_path, PAIR + f"  - [a, b, k]\n  - {second}\n") == (
        f"line 6: links[1]: {ends} stands already in links[0]; for parallel links use count:"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("npus: [a, a]\nlinks: []\n", "line 1: npus[1]: device 'a' is listed twice; give each its"),
        (
            "npus: [a, b]\nswitches: [b]\nlinks: []\n",
            "line 2: switches[0]: device 'b' is listed tw",
        ),
        (
            "npus: [a, b]\nswitches: 2\nlinks: []\n",
            "line 2: switches: 2 ",
        ),
        (
            "npus: [a]\nswitches: [1]\nlinks: []\n",
            "line 2: switches[0]: 1 is not valid; give a name",
        ),
        (
            "npus: [a]\nswitches: [{limit: 1 GB/s}]\nlinks: []\n",
            "line 2: switches[0]: key 'name' i",
        ),
        (
            "npus: [a]\nswitches: [{name: s, limt: 1}]\nlinks: []\n",
            "line 2: switches[0]: there is no",
        ),
        ("npus: []\nlinks: []\n", "line 1: npus: there is no NPU; list at least one"),
        ("npus: 0\nlinks: []\n", "line 1: npus: 0 "),
        ("npus: -4\nlinks: []\n", "line 1: npus: -4 "),
        (
            "npus: 4.0\nlinks: []\n",
            "line 1: npus: 4.0 is not valid; give a number of NPUs or a list",
        ),
        ("npus:\nlinks: []\n", "line 1: npus: has no value; give a number of NPUs or a list of"),
        (
            "npus: yes\nlinks: []\n",
            "line 1: npus: true is not valid; give a number of NPUs or a list",
        ),
        (
            "npus:\n- y\n- no\nlinks: []\n",
            "line 3: npus[1]: false is not text; quote it if it is a n",
        ),
        ("npus: [0, 1]\nlinks: []\n", "line 1: npus[0]: 0 is not text; quote it if it is a name"),
        ("npus: [[a]]\nlinks: []\n", "line 1: npus[0]: ['a'] is not text; "),
        ("npus: ['a,b']\nlinks: []\n", "line 1: npus[0]: 'a,b': a name has no spaces or commas; "),
        ("links: []\n", "key 'npus' is missing; add it"),
        ("npus: 2\nlinks:\n", "line 2: links: has no value; give it one or remove the key"),
        (
            "npus: 2\nlinks: {a: b}\n",
            "line 2: links: {'a': 'b'} is not a list; write it as [a, b, ki",
        ),
        (
            KIND.replace("bandwidth", "bandwith") + "links: []\n",
            "line 3: link_kinds.k: there is no",
        ),
        (
            KIND.replace(", latency: 1 us", "") + "links: []\n",
            "line 3: link_kinds.k: key 'latency'",
        ),
        (
            "npus: 2\nlink_kinds: [k]\nlinks: []\n",
            "line 2: link_kinds: ['k'] is not a mapping; write",
        ),
        (
            "npus: 2\nlink_kind: {}\nlinks: []\n",
            "line 2: there is no key 'link_kind'; did you mean",
        ),
    ],
)
def test_wrong_devices_and_kinds(tmp_path: Path, text: str, says: str) -> None:
    assert refusal(tmp_path, text).startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dims: 3\n", "line 1: dims: 3 "),
        ("dims: []\n", "line 1: dims: [] has 0 entries; write"),
        ("dims: [Ring]\n", "line 1: dims[0]: 'Ring' is not a mapping; write it as key: value"),
        (
            DIMS.replace("Ring", "Rng"),
            "line 2: dims[0].kind: there is no 'Rng'; did you mean 'Ring'?",
        ),
        (DIMS.replace("Ring", "FC"), "line 2: dims[0].kind: there is no 'FC'; use Ring, Fully"),
        (
            DIMS.replace("size", "sise"),
            "line 2: dims[0]: there is no key 'sise'; did you mean 'size'",
        ),
        (DIMS.replace("size: 4, ", ""), "line 2: dims[0]: key 'size' is missing; add it"),
        (DIMS.replace("4", "[4]"), "line 2: dims[0].size: [4] "),
    ],
)
def test_wrong_dims(tmp_path: Path, text: str, says: str) -> None:
    assert refusal(tmp_path, text).startswith(says)


@pytest.mark.parametrize(
    ("failed", "says"),
    [
        ("{node: [npu0]}", "line 5: failed: there is no key 'node'; did you mean 'nodes'?"),
        ("{nodes: [0]}", "line 5: failed.nodes[0]: 0 is not text; quote it"),
        ("{links: [[npu0]]}", "line 5: failed.links[0]: ['npu0'] has 1 entries; write it as pairs"),
        ("{links: [npu0, npu1]}", "line 5: failed.links[0]: 'npu0' "),
        ("npu0", "line 5: failed: 'npu0' is not a mapping; write it as key: value"),
        ("", "line 5: failed: has no value; give it one or remove the key"),
        ("{nodes: [npu99]}", 'line 5: failed: no device is called "npu99"; devices are'),
        (
            "{links: [[npu0, npu8]]}",
            'line 5: failed: there is no link "npu0" -> "npu8"; links of "npu0"',
        ),
    ],
)
def test_wrong_failures(tmp_path: Path, failed: str, says: str) -> None:
    assert refusal(tmp_path, MESH + f"failed: {failed}\n").startswith(says)


def test_nothing_is_left_after_failures(tmp_path: Path) -> None:
    text = RING.replace("4", "2") + "failed: {nodes: [npu0, npu1]}\n"
    assert "leave no NPU; keep at least one" in refusal(tmp_path, text)


HUGE = 10**9


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        (RING.replace("4", str(HUGE)), "150 GiB"),
        (RING.replace("ring", "fully_connected").replace("4", str(HUGE)), "35 EiB"),
        (DIMS.replace("4", str(HUGE)), "150 GiB"),
        (f"npus: {HUGE}\nlinks: []\n", "400 GB"),
        (NETWORK.replace("4, 2", f"{HUGE}, 2"), "522 GiB"),
        (
            "builder: hypercube\nlog2_npus: 40\nbandwidth: 1 GB/s\nlatency: 0 s\n",
            "2 PiB",
        ),
    ],
)
def test_huge_networks_are_refused_with_the_memory_they_need(
    tmp_path: Path, text: str, needs: str
) -> None:
    message = refusal(tmp_path, text)
    assert f"about {needs}" in message
    assert "of memory, more than the limit" in message


# Anything at all.

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**10),
    st.floats(),
    st.sampled_from(["a", "b", "Ring", "mesh", "1 GB/s", "1 us", "npu0", "default pcie", "both"]),
    st.text(max_size=5),
)
KEYS = st.sampled_from(
    sorted({"builder", "dims", "topology", "npus_count", "size", "bandwidth", "latency", "k"})
    + sorted(LinksFile.model_fields)
    + sorted(Link.model_fields)
    + sorted({*Failures.model_fields, *Source.model_fields, "limit"})
)
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
        max_leaves=12,
    ),
    max_size=6,
)


@given(values=TREES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_tree_is_a_topology_or_refused_in_one_line(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    file = tmp_path / "net.yml"
    file.write_text(
        json.dumps(values, ensure_ascii=False), encoding="utf-8"
    )  # JSON is YAML, but for some floats
    try:
        build_topology(from_file(file))
    except hk.Error as error:
        message = str(error)
        assert message.startswith(str(file))
        assert len(message.splitlines()) == 1
        assert not [word for word in JARGON[:5] if word in message.removeprefix(str(file))], message


@given(text=st.text(max_size=60) | st.text("abc:-[]{}&*!\n\t \"'#?|>%@", max_size=40))
def test_any_text_is_a_mapping_or_refused_in_one_line(text: str) -> None:
    try:
        values, lines = parse_yaml(text, "net.yml")
    except hk.SpecError as error:
        message = str(error)
        assert message.startswith("net.yml")
        assert len(message.splitlines()) == 1
    else:
        assert set(values) <= {place[0] for place in lines if place}
