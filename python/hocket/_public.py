"""The public names of :mod:`hocket`, which takes them from here."""

from hocket import routing, topology, traces, training, workload
from hocket._core import Bound, Collective, Topology, __version__, bound
from hocket.advice import Advice, advise_dimensions
from hocket.collectives import collective_on
from hocket.comparing import Comparison, compare
from hocket.compute import Array, Chiplet
from hocket.errors import (
    Error,
    InfeasibleError,
    SimulationError,
    SpecError,
    VerificationError,
)
from hocket.naming import Algorithm, algorithms
from hocket.outcome import DimensionUse, Outcome
from hocket.packets import Packets
from hocket.planning import Plan, merge_plans, plan, plan_collective, plan_together
from hocket.roofline import Accelerator, accelerator
from hocket.running import Run, simulate
from hocket.scheduling import DimensionRun, Lane, Schedule, schedule
from hocket.synthesis import CompactTimetable, Synthesis, SynthesisOptions, timetable
from hocket.training import Epoch, Iteration, Parallel, TrainingRun, train
from hocket.workload import Layer, Workload

__all__ = [
    "Accelerator",
    "Advice",
    "Algorithm",
    "Array",
    "Bound",
    "Chiplet",
    "Collective",
    "CompactTimetable",
    "Comparison",
    "DimensionRun",
    "DimensionUse",
    "Epoch",
    "Error",
    "InfeasibleError",
    "Iteration",
    "Lane",
    "Layer",
    "Outcome",
    "Packets",
    "Parallel",
    "Plan",
    "Run",
    "Schedule",
    "SimulationError",
    "SpecError",
    "Synthesis",
    "SynthesisOptions",
    "Topology",
    "TrainingRun",
    "VerificationError",
    "Workload",
    "__version__",
    "accelerator",
    "advise_dimensions",
    "algorithms",
    "bound",
    "collective_on",
    "compare",
    "merge_plans",
    "plan",
    "plan_collective",
    "plan_together",
    "routing",
    "schedule",
    "simulate",
    "timetable",
    "topology",
    "traces",
    "train",
    "training",
    "workload",
]
