"""Algorithms run where they did, to the picosecond; ``make accept`` where other results are meant."""

from __future__ import annotations

from functools import cache

import pytest

import hocket as hk

from .table import HEAD, KINDS, LEFT_OUT, NETWORKS, TIMED, Row, letters, read, runs_of, write

runs = cache(runs_of)


@pytest.fixture(scope="module", autouse=True)
def _accepted(accept: bool) -> None:
    """Write both files anew where that is asked for."""
    if accept:
        found = {name: letters(runs(name)) for name in NETWORKS}
        names = sorted(found[NETWORKS[0]])
        rows = [(name, *(found[network][name] for network in NETWORKS)) for name in names]
        write("applies.csv", [("algorithm", *NETWORKS), *rows])
        write("results.csv", [HEAD, *(row for name in TIMED for row in kept(name))])


def kept(network: str) -> list[Row]:
    """Runs of a small message and of a large one."""
    return [*runs(network, "8 KB"), *runs(network)]


@pytest.mark.parametrize("network", NETWORKS)
def test_algorithms_run_as_they_did(network: str) -> None:
    head, *rows = read("applies.csv")
    assert head == ("algorithm", *NETWORKS)
    column = head.index(network)
    assert {row[0]: row[column] for row in rows} == letters(runs(network))
    if network in TIMED:
        head, *rows = read("results.csv")
        assert head == HEAD
        assert [row for row in rows if row[0] == network] == kept(network)


def test_every_algorithm_runs_somewhere_and_none_below_its_bound() -> None:
    _, *rows = read("results.csv")
    assert {row[0] for row in rows} == set(TIMED)
    assert {row[1] for row in rows} == set(KINDS.values())
    assert {row[3] for row in rows} == {each.name for each in hk.algorithms()} - LEFT_OUT
    assert all(int(row[7]) >= int(row[8]) > 0 for row in rows)
