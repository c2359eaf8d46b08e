"""NCCL's logs are told by its model as docs/machines-accuracy.md says."""

from __future__ import annotations

from hocket_studies.machines_picks import WHATS, Logged, logged_picks

ASKED = {"algorithm": (0.95, 0.85), "protocol": (0.95, 0.85), "coll channels": (0.7, 0.7)}
"""The share that is right at least, on one node and on several."""


def right(facts: list[Logged], what: str) -> float:
    own = [each.is_right for each in facts if each.what == what]
    return sum(own) / len(own)


def test_logs_of_many_owners_are_told() -> None:
    facts = logged_picks()
    assert len(facts) >= 60
    assert len({each.owner for each in facts}) >= 15
    assert {each.what for each in facts} == set(WHATS)
    for several in (False, True):
        own = [each for each in facts if (each.nodes > 1) == several]
        for what, shares in ASKED.items():
            assert right(own, what) >= shares[several]


def test_what_is_not_told_says_so() -> None:
    """Four A100 joined by four NVLinks a pair: NCCL found 4 channels where as many as 12 fit."""
    wrong = [each for each in logged_picks() if not each.is_right]
    assert [(each.where, each.stated, each.modelled) for each in wrong] == [
        ("1 x 4 A100", "8", "24")
    ]
