"""Results are those of the golden table, to the picosecond; ``make golden`` where others are meant."""

from __future__ import annotations

import pytest

import hocket as hk

from .table import KINDS, LEFT_OUT, NETWORKS, SIZES, read, rows_of

ROWS = read()


@pytest.mark.parametrize("network", NETWORKS)
def test_results_of_a_network(network: str) -> None:
    kept = [row for row in ROWS if row[0] == network]
    assert list(rows_of(network)) == kept


def test_the_table_has_every_case() -> None:
    assert {row[0] for row in ROWS} == set(NETWORKS)
    assert {row[1:3] for row in ROWS} == {(kind, size) for kind in KINDS for size in SIZES}
    in_core = {each.name for each in hk.algorithms()} - LEFT_OUT
    assert {row[3] for row in ROWS} == in_core, "each runs somewhere"


def test_no_row_is_below_its_bound() -> None:
    assert all(int(row[7]) >= int(row[8]) > 0 for row in ROWS)
