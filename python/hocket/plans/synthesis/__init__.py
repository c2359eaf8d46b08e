"""Plans for any collective on any topology, on a time-expanded network."""

from hocket.plans.synthesis.compact import CompactTimetable, timetable
from hocket.plans.synthesis.make import Synthesis
from hocket.plans.synthesis.options import PlanOptions

__all__ = [
    "CompactTimetable",
    "PlanOptions",
    "Synthesis",
    "timetable",
]
