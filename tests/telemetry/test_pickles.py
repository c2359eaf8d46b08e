"""Pickles of plain data are read as Python reads them; others are refused, and nothing in them runs."""

from __future__ import annotations

import collections
import os
import pickle
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket.telemetry.pickles import is_pickle, load_plain

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(), inner) | st.lists(inner, max_size=5).map(tuple)
    ),
    max_leaves=30,
)


@given(VALUES, st.integers(2, 5))
def test_plain_data_is_read_as_it_was(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    assert is_pickle(data)
    assert load_plain(data, "dump") == value


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_code_does_not_run(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "made"
    data = pickle.dumps({"pg_config": Evil(path)}, protocol)
    with pytest.raises(hk.SpecError) as caught:
        load_plain(data, "dump")
    assert not path.exists()
    assert "holds more than plain data" in str(caught.value)
    assert "\n" not in str(caught.value)
    pickle.loads(data)
    assert path.exists()


@pytest.mark.parametrize(
    "value",
    [collections.OrderedDict(a=1), {1, 2}, frozenset("a"), 1j, Path("a"), bytearray(b"a"), len],
)
def test_only_plain_types_are_read(value: Any) -> None:
    with pytest.raises(hk.SpecError, match="plain data"):
        load_plain(pickle.dumps(value, 4), "dump")


@pytest.mark.parametrize(
    "steps",
    [
        b"ccollections\nOrderedDict\n.",
        b"(ios\nsystem\n.",
        b"\x8c\x02os\x8c\x06system\x93.",
        b"Nb.",
        b"P1\n.",
        b"\x82\x01.",
        b"N\x97.",
        b"}r" + struct.pack("<I", 2**31 - 1) + b".",  # a memo of 16 GiB
        b"]\x94" * 3 + b"h\x09.",
        b"\x8d" + struct.pack("<Q", 2**62) + b"a.",
        b"\x8b" + struct.pack("<i", 2**31 - 1) + b"a.",
        b"0.",
        b"N",
        b"L" + b"9" * 5000 + b"L\n.",
        b"(NN}u.",
        b"(]Nd.",
        b"\xff.",
        b"",
    ],
)
def test_every_other_step_is_refused(steps: bytes) -> None:
    with pytest.raises(hk.SpecError, match="dump, byte") as caught:
        load_plain(b"\x80\x02" + steps, "dump")
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=60), st.integers(0, 200))
def test_changed_bytes_give_a_value_or_a_refusal(noise: bytes, place: int) -> None:
    data = pickle.dumps({"pg_config": {"0": {"ranks": "[0, 1]"}}, "entries": [1, 2.5, None]}, 4)
    data = data[:2] + (data[2:place] + noise + data[place:] if place > 2 else noise)
    with suppress(hk.SpecError):
        load_plain(data, "dump")
