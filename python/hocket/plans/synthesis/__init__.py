"""Plans for any collective on any topology, on a time-expanded network."""

from hocket.plans.synthesis.compact import CompactTimetable, timetable
from hocket.plans.synthesis.make import Synthesis, synthesize
from hocket.plans.synthesis.options import SYNTHESIZERS, PlanOptions

__all__ = [
    "SYNTHESIZERS",
    "CompactTimetable",
    "PlanOptions",
    "Synthesis",
    "synthesize",
    "timetable",
]
