"""Quantities: what each unit means, exactly, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hocket.errors import SpecError
from hocket.units import (
    format_bandwidth,
    format_estimate,
    format_size,
    format_time_ps,
    parse_bandwidth,
    parse_count,
    parse_frequency,
    parse_operations,
    parse_size,
    parse_time,
    parse_written,
    shown,
)

PARSERS: dict[str, Callable[..., int]] = {
    "size": parse_size,
    "bandwidth": parse_bandwidth,
    "time": parse_time,
    "frequency": parse_frequency,
    "speed": parse_operations,
}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1 B", 1),
        ("98304 B", 98304),
        ("7 byte", 7),
        ("7 bytes", 7),
        ("1 kB", 1000),
        ("1 KB", 1000),
        ("64KiB", 65536),
        ("256 MB", 256_000_000),
        ("256 MiB", 268_435_456),
        ("0.5 KiB", 512),
        ("1.5 GB", 1_500_000_000),
        ("1 GiB", 2**30),
        ("2 TB", 2 * 10**12),
        ("2 TiB", 2**41),
        ("1e9 B", 10**9),
        ("1.25e-3 MB", 1250),
        ("  4 MB  ", 4_000_000),
        ("0.1 kB", 100),  # 0.1 is a tenth, not the nearest binary fraction
        ("9223372036854775807 B", 2**63 - 1),
        ("8K", 8 << 10),  # as nccl-tests
        ("8k", 8 << 10),
        ("1M", 1 << 20),
        ("1.5 m", 3 << 19),
        ("2G", 2 << 30),
        ("2g", 2 << 30),
        (98304, 98304),
        (1e6, 10**6),
        (np.int32(7), 7),
        (np.float64(2**40), 2**40),
        (Fraction(6, 2), 3),
        (Decimal("1e9"), 10**9),
    ],
)
def test_sizes_are_exact(text: object, size: int) -> None:
    assert parse_size(text, field="size") == size


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("25 GB/s", 25 * 10**9),
        ("200 Gb/s", 25 * 10**9),
        ("200 Gbit/s", 25 * 10**9),
        ("200Gbps", 25 * 10**9),
        ("25GBps", 25 * 10**9),
        ("1 GiB/s", 2**30),
        ("8 Gib/s", 2**30),
        ("1 TB/s", 10**12),
        ("100 Mb/s", 12_500_000),
        ("8 kb/s", 1000),
        ("8 b/s", 1),
        ("1 B/s", 1),
        ("3 B/s", 3),
        ("16 b/s", 2),
        ("33.3333333333 GB/s", 33_333_333_333),  # within a billionth
        ("1 KiB / s", 1024),
        (25e9, 25 * 10**9),
        (25, 25),
        (12.345, 12),  # what a program computes is rounded
        (np.uint64(25 * 10**9), 25 * 10**9),
        (Fraction(100, 3), 33),
    ],
)
def test_bandwidths_are_exact(text: object, rate: int) -> None:
    assert parse_bandwidth(text, field="bandwidth") == rate


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("0 ns", 0),
        ("1 ps", 1),
        ("700 ns", 700_000),
        ("936.25 ns", 936_250),
        ("1.7 us", 1_700_000),
        ("1.7 µs", 1_700_000),
        ("1.7 μs", 1_700_000),
        ("0.35us", 350_000),
        ("2 ms", 2 * 10**9),
        ("1 s", 10**12),
        ("999.5 ps", 1000),  # rounded up, by less than a thousandth
        ("1.0001 ns", 1001),
        (0, 0),
        (0.0, 0),
        (30, 30 * 10**12),
        (700e-9, 700_000),
        (0.1 + 0.2, 3 * 10**11),  # 0.30000000000000004
        (1e-9 / 3, 334),
        (np.float32(700e-9), 700_000),
        (np.int64(2), 2 * 10**12),
        (Decimal("1e-12"), 1),
        (Fraction(1, 10**9), 1000),
        (timedelta(milliseconds=2), 2 * 10**9),
        (np.timedelta64(3, "s"), 3 * 10**12),
        (np.timedelta64(3, "ns"), 3000),
        (np.timedelta64(3, "ps"), 3),
    ],
)
def test_times_are_exact_or_rounded_up(text: object, time: int) -> None:
    assert parse_time(text, field="latency") == time


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1 Hz", 1),
        ("1GHz", 10**9),
        ("940 MHz", 940 * 10**6),
        ("1.5 kHz", 1500),
        ("1.6e9 Hz", 16 * 10**8),
        (940e6, 940 * 10**6),
    ],
)
def test_frequencies_are_exact_or_rounded(text: object, rate: int) -> None:
    assert parse_frequency(text, field="clock") == rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("312 TFLOP/s", 312 * 10**12),
        ("312TFLOPS", 312 * 10**12),
        ("1.5 PFLOP/s", 1_500 * 10**12),
        ("1 FLOP/s", 1),
        ("2.6e1 FLOP/s", 26),
        (312e12, 312 * 10**12),
    ],
)
def test_speeds_are_exact_or_rounded(text: object, rate: int) -> None:
    assert parse_operations(text, field="peak") == rate


@pytest.mark.parametrize(
    ("read", "text", "right"),
    [
        (parse_bandwidth, "9 b/s", "is 1.125 bytes per second; give a whole number"),
        (parse_bandwidth, "12 b/s", "is 1.5 bytes per second"),
        (parse_bandwidth, "1.0000001 kB/s", "is 1000.0001 bytes per second"),
        (parse_time, "0.1 ps", "is 0.1 picoseconds; give a whole number"),
        (parse_time, "500.4 ps", "is 500.4 picoseconds"),
        (parse_frequency, "1.6 Hz", "is 1.6 hertz"),
        (parse_operations, "2.6 FLOP/s", "is 2.6 operations per second"),
    ],
)
def test_what_rounding_would_change_is_refused(
    read: Callable[..., int], text: str, right: str
) -> None:
    with pytest.raises(SpecError, match=f"^field: '{text}' {right}"):
        read(text, field="field")


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("13e9", 13 * 10**9),
        ("1.76e11", 176 * 10**9),
        (" 7 ", 7),
        (13e9, 13 * 10**9),
        (70_000_000_000, 70 * 10**9),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_counts_are_exact(value: object, count: int) -> None:
    assert parse_count(value, field="parameters") == count


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0, "0 is too small"),
        (-3, "-3 is too small"),
        (2**63, "is too large"),
        ("1e300", "'1e300' is too large"),
        ("1e9999", "'1e9999' is not a whole number"),
        pytest.param(10**6000, "is too large", id="huge"),
        (1.5, "1.5 is not a whole number"),
        ("1.5", "'1.5' is not a whole number"),
        (float("nan"), "nan is not a whole number"),
        (float("inf"), "inf is not a whole number"),
        (True, "true is not a whole number"),
        (None, "None is not a whole number"),
        ([], "[] is not a whole number"),
        ("13 B", "'13 B' is not a whole number"),
        ("", "'' is not a whole number"),
        ("1" * 65, "is not a whole number"),
    ],
)
def test_wrong_counts_say_what_would_be_right(value: object, says: str) -> None:
    with pytest.raises(SpecError) as error:
        parse_count(value, field="parameters")
    assert str(error.value).startswith("parameters: ")
    assert says in str(error.value)
    assert str(error.value).endswith("; give a whole number of 1 or more, such as 13e9")


@pytest.mark.parametrize("what", PARSERS)
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("25", "'25' has no unit"),
        ("2.5e9", "'2.5e9' has no unit"),
        pytest.param(10**6000, "is too large", id="huge"),
        pytest.param(-(10**6000), "is negative", id="huge below 0"),
        (Decimal("1e999999999"), "is too large"),
        (Decimal("-1e999999999"), "is negative"),
        (Decimal("inf"), "is no"),
        (float("nan"), "nan is no"),
        (float("inf"), "inf is no"),
        (-float("inf"), "-inf is no"),
        (np.float32("nan"), "is no"),
        (np.bool_(True), "is no"),
        (np.timedelta64("NaT", "s"), "is no"),
        (np.timedelta64(1, "M"), "is no"),
        (-1, "-1 is negative"),
        (-0.5, "-0.5 is negative"),
        (1j, "1j is no"),
        (np.array([1, 2]), "is no"),
        ("", "'' is no"),
        (" ", "' ' is no"),
        ("GB", "'GB' is no"),
        ("nan GB/s", "'nan GB/s' is no"),
        ("inf s", "'inf s' is no"),
        ("1,5 GB", "is no"),
        ("1 000 MB", "is no"),
        ("0x10 B", "is no"),
        ("1 parsec", "'parsec' is not a unit of"),
        ("1 mB", "'mB' is not a unit of"),
        ("1 GB\n/s", "is no"),
        (None, "there is no value"),
        (True, "true is no"),
        ([1], "[1] is no"),
        (b"1 GB", "is no"),
        pytest.param("9" * 1000 + " s", "is no", id="long"),
        ("٣ GB", "is no"),  # digits of other scripts
    ],
)
def test_wrong_values_are_refused(what: str, value: object, says: str) -> None:
    with pytest.raises(SpecError) as error:
        PARSERS[what](value, field="dims[0].x")
    message = str(error.value)
    assert message.startswith("dims[0].x: ")
    assert says in message
    assert "write" in message or "give it" in message
    assert '"' in message  # an example
    assert "\n" not in message
    assert len(message) < 250


@pytest.mark.parametrize(
    ("what", "text", "says"),
    [
        ("size", "-1 MB", "is negative"),
        ("size", "0 MB", "is 0; give it more than 0"),
        ("size", "0.0 B", "is 0; give it more than 0"),
        ("size", "1.5 B", "is 1.5 bytes; give a whole number of bytes"),
        ("size", "0.3 KiB", "is 307.2 bytes; give a whole number of bytes"),
        ("size", "256 Mb", "(b is bit, B is byte)"),
        ("size", "25 GB/s", "'GB/s' is not a unit of size"),
        ("size", "9223372036854775808 B", "is too large"),
        ("size", "1e999 TB", "is too large"),
        ("bandwidth", "-25 GB/s", "is negative"),
        ("bandwidth", "0 GB/s", "is 0; give it more than 0"),
        ("bandwidth", "0.4 B/s", "is less than a byte per second"),
        ("bandwidth", "7 b/s", "is less than a byte per second"),
        ("bandwidth", "25 GB", "'GB' is not a unit of bandwidth (b is bit, B is byte)"),
        ("bandwidth", "25 ns", "'ns' is not a unit of bandwidth"),
        ("bandwidth", "1e30 GB/s", "is too large"),
        ("time", "-1 us", "is negative"),
        ("time", "1 GB/s", "'GB/s' is not a unit of time; "),
        ("time", "1 m", "'m' is not a unit of time"),
        ("time", "1e9 s", "is too large"),
        ("size", 1.5, "1.5 is 1.5 bytes; give a whole number of bytes"),
        ("size", 0, "0 is 0; give it more than 0"),
        ("size", "8T", "'T' is not a unit of size"),
        ("size", timedelta(1), "is not a size"),
        ("size", np.timedelta64(1, "s"), "is not a size"),
        ("bandwidth", 0.4, "0.4 is less than a byte per second"),
        ("bandwidth", "8K", "'K' is not a unit of bandwidth"),
        ("time", 1e-13, "1e-13 is less than a picosecond"),
        ("time", timedelta(-1), "is negative"),
        ("time", 1e9, "1000000000.0 is too large"),
    ],
)
def test_what_is_wrong_is_said(what: str, text: object, says: str) -> None:
    with pytest.raises(SpecError, match=r"^f: ") as error:
        PARSERS[what](text, field="f")
    assert says in str(error.value)


ANYTHING = st.one_of(
    st.text(max_size=80),
    st.from_regex(r"-?[0-9]{0,25}\.?[0-9]{0,5}([eE][+-]?[0-9]{1,4})? ?[kKMGT]?i?[bBs](/s|ps)?"),
    st.integers(),
    st.floats(),
    st.none(),
    st.booleans(),
    st.binary(max_size=9),
    st.decimals(),
    st.fractions(),
    st.timedeltas(),
    st.lists(st.integers(), max_size=40),
)


@given(value=ANYTHING, what=st.sampled_from(sorted(PARSERS)))
def test_anything_parses_or_is_refused_in_one_line(value: object, what: str) -> None:
    try:
        number = PARSERS[what](value, field="field")
    except SpecError as error:
        message = str(error)
        assert message.startswith("field: ")
        assert len(message.splitlines()) == 1
        assert len(message) < 300
    else:
        assert not isinstance(value, bool)
        assert (0 if what == "time" else 1) <= number <= 2**63


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (65536, "64 KiB"),
        (9999 * 1024, "9999 KiB"),
        (256_000_000, "256 MB"),
        (2**28, "256 MiB"),
        (1_500_000_000, "1.5 GB"),
        (2**30, "1 GiB"),
        (10**12, "1 TB"),
    ],
)
def test_sizes_are_written_and_read_back(value: int, text: str) -> None:
    assert format_size(value) == text
    assert parse_size(text, field="size") == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1 B/s"),
        (12_500_000, "12.5 MB/s"),
        (25 * 10**9, "25 GB/s"),
        (15_760_000_000, "15.76 GB/s"),
        (10**12, "1000 GB/s"),
    ],
)
def test_bandwidths_are_written_and_read_back(value: int, text: str) -> None:
    assert format_bandwidth(value) == text
    assert parse_bandwidth(text, field="bandwidth") == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ps"),
        (999, "999 ps"),
        (350_000, "350 ns"),
        (936_250, "936.25 ns"),
        (1_500_000, "1.5 us"),
        (2 * 10**9, "2 ms"),
        (10**12, "1 s"),
    ],
)
def test_times_are_written_and_read_back(value: int, text: str) -> None:
    assert format_time_ps(value) == text
    assert parse_time(text, field="time") == value


@pytest.mark.parametrize("what", PARSERS)
@pytest.mark.parametrize("value", [25, 25.5, 1e9])
def test_a_number_of_a_file_has_no_unit(what: str, value: float) -> None:
    with pytest.raises(SpecError, match=f"^x: {value} has no unit; write a {what} as"):
        parse_written(PARSERS[what], value, field="x")
    assert parse_written(parse_time, "2 ns", field="x") == 2000


@given(time=st.integers(0, 10**15))
def test_seconds_that_hocket_gives_are_read_back(time: int) -> None:
    assert parse_time(time * 1e-12, field="time") == time
    assert parse_time(time / 1e12, field="time") == time


@pytest.mark.parametrize(
    ("value", "text"),
    [(14_423 * 1024, "14.769 MB"), (14_769_000, "14.769 MB"), (10_001 * 2**20, "10.487 GB")],
)
def test_sizes_that_differ_little_have_the_same_unit(value: int, text: str) -> None:
    assert format_size(value) == text


@given(digits=st.integers(1, 9999), zeros=st.integers(0, 14))
def test_four_digits_survive_writing_and_reading(digits: int, zeros: int) -> None:
    value = digits * 10**zeros
    assert parse_size(format_size(value), field="f") == value
    assert parse_bandwidth(format_bandwidth(value), field="f") == value
    assert parse_time(format_time_ps(value), field="f") == value


def test_wrong_values_are_shown_short() -> None:
    assert shown(False) == "false"
    assert shown("x" * 500).endswith("...")
    assert len(shown(["x"] * 500)) < 80
    assert shown(10**6000) == "a number of thousands of digits"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1024, "1.024 kB"),
        (120_080_768, "120.1 MB"),
        (733_344_189_440, "733.3 GB"),
        (10**13, "10 TB"),
    ],
)
def test_estimates_of_bytes(size: int, text: str) -> None:
    assert format_estimate(size) == text
