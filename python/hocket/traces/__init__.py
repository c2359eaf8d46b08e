"""Execution traces of real or made-up jobs, in MLCommons Chakra's format.

A trace is a file for each rank, ``PREFIX.{rank}.et``: what it computed, sent and received, and what
waited for what. It is written (:func:`write`, and :func:`write_training` of iterations), read
(:func:`load`), counted (:func:`summarize`) and run on any network (:func:`replay`).
"""

from hocket._core.trace import Trace
from hocket.traces.files import CALLS, DEPENDENCIES, KINDS, Summary, load, summarize
from hocket.traces.options import ReplayOptions
from hocket.traces.result import RankTime, TraceCall, TraceRun
from hocket.traces.run import replay
from hocket.traces.steps import Call, Compute, Receive, Send, write
from hocket.traces.training import WrittenTraining, write_training

__all__ = [
    "CALLS",
    "DEPENDENCIES",
    "KINDS",
    "Call",
    "Compute",
    "RankTime",
    "Receive",
    "ReplayOptions",
    "Send",
    "Summary",
    "Trace",
    "TraceCall",
    "TraceRun",
    "WrittenTraining",
    "load",
    "replay",
    "summarize",
    "write",
    "write_training",
]


def __dir__() -> list[str]:
    return __all__
