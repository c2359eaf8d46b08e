"""Plans for any collective on any topology, on a time-expanded network."""

from hocket.plans.synthesis.choices import SYNTHESIZERS, SynthesisOptions
from hocket.plans.synthesis.compact import CompactTimetable, timetable
from hocket.plans.synthesis.make import Synthesis, synthesize

__all__ = [
    "SYNTHESIZERS",
    "CompactTimetable",
    "Synthesis",
    "SynthesisOptions",
    "synthesize",
    "timetable",
]
