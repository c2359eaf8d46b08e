"""Plans for any collective on any topology, on a time-expanded network."""

from hocket.synthesis.choices import SYNTHESIZERS, SynthesisOptions
from hocket.synthesis.compact import CompactTimetable, timetable
from hocket.synthesis.make import Synthesis, spread, synthesize

__all__ = [
    "SYNTHESIZERS",
    "CompactTimetable",
    "Synthesis",
    "SynthesisOptions",
    "spread",
    "synthesize",
    "timetable",
]
