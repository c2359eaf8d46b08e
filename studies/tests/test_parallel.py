"""Runs on all cores: each result once, and an end to all when the loop ends."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest

from hocket.collectives.collective import Progress
from hocket_studies.parallel import in_parallel


def test_every_key_gives_its_result_once() -> None:
    found = dict(in_parallel(lambda key, progress: key * key, range(20)))
    assert found == {key: key * key for key in range(20)}


def test_an_error_comes_out_and_stops_the_rest() -> None:
    began, ended = threading.Event(), threading.Event()

    def work(key: int, progress: Progress) -> int:
        if key == 0:
            began.wait(5)
            raise LookupError("wrong")
        began.set()
        try:
            while True:
                progress("working", 0, 1)
                time.sleep(0.001)
        finally:
            ended.set()

    with pytest.raises(LookupError, match="wrong"):
        list(in_parallel(work, range(2)))
    assert ended.is_set() == began.is_set()  # on one core the other never begins


def test_leaving_the_loop_stops_what_runs() -> None:
    def work(key: int, progress: Progress) -> int:
        while key:
            progress("working", 0, 1)
            time.sleep(0.001)
        return key

    with closing(in_parallel(work, range(50))) as results:
        assert next(results) == (0, 0)
    assert threading.active_count() == 1
