"""The public names of :mod:`hocket`, which takes them from here."""

from hocket import nccl, routing, steering, topology, traces, training, workload
from hocket._core import Bound, Collective, Topology, __version__
from hocket.collectives.bounds import bound
from hocket.collectives.collective import collective_on
from hocket.collectives.custom import (
    Demand,
    all_to_all_v,
    collective,
    load_collective,
    neighbor_exchange,
    send_receive,
)
from hocket.collectives.outcome import DimensionUse, Outcome
from hocket.comparison.compare import Comparison, compare
from hocket.comparison.failures import Failure, FailureAdvice, advise_failures
from hocket.comparison.pareto import Pareto, pareto
from hocket.comparison.size_table import ParetoOptions, ParetoPoint, ParetoRange
from hocket.comparison.sizes import SizeComparison, compare_sizes
from hocket.errors import (
    Error,
    InfeasibleError,
    SimulationError,
    SpecError,
    TransportError,
    VerificationError,
)
from hocket.formats.checked import CheckedFile, check_file
from hocket.formats.exported import ExportedFile, export_plan
from hocket.formats.imported import import_plan
from hocket.formats.options import CheckOptions, ExportOptions, ImportOptions
from hocket.plans.advice import Advice, advise_dimensions
from hocket.plans.algorithms import Algorithm, algorithms
from hocket.plans.builder import PlanBuilder
from hocket.plans.dimension_run import DimensionRun
from hocket.plans.plan import Plan, merge_plans
from hocket.plans.planner import plan, plan_together
from hocket.plans.registry import algorithm
from hocket.plans.schedule import Lane, Schedule, schedule
from hocket.plans.selection import Selection
from hocket.plans.symmetric import SymmetricPlan, plan_symmetric
from hocket.plans.synthesis import CompactTimetable, PlanOptions, Synthesis, timetable
from hocket.plans.trees import Packing, Trees
from hocket.profiles.plans import PlanPrediction, predict_plan
from hocket.profiles.prediction import Prediction, predict
from hocket.profiles.profile import Profile
from hocket.simulation.options import (
    DimensionOptions,
    FlowOptions,
    LinkOptions,
    PacketOptions,
)
from hocket.simulation.run import Run, simulate
from hocket.sweeps.design import Design, Designed, design_network
from hocket.sweeps.design_options import DesignOptions
from hocket.sweeps.report import SweepReport, report_sweep
from hocket.sweeps.run import SweepRun, load_sweep, run_sweep
from hocket.sweeps.sweep import Sweep
from hocket.telemetry.judge import Measured, MeasuredRange, measured
from hocket.telemetry.options import MeasuredOptions
from hocket.telemetry.verdict import MeasuredSize
from hocket.throughput.options import TrainingPredictionOptions
from hocket.throughput.prediction import TrainingPrediction, predict_training
from hocket.training import Epoch, Iteration, Parallel, TrainingOptions, TrainingRun, train
from hocket.tuning.options import TuneOptions
from hocket.tuning.tune import TunedSize, TunedWay, Tuning, autotune
from hocket.workload.accelerators import Accelerator, accelerator
from hocket.workload.layers import Layer, Workload
from hocket.workload.systolic import Array, Chiplet

__all__ = [
    "Accelerator",
    "Advice",
    "Algorithm",
    "Array",
    "Bound",
    "CheckOptions",
    "CheckedFile",
    "Chiplet",
    "Collective",
    "CompactTimetable",
    "Comparison",
    "Demand",
    "Design",
    "DesignOptions",
    "Designed",
    "DimensionOptions",
    "DimensionRun",
    "DimensionUse",
    "Epoch",
    "Error",
    "ExportOptions",
    "ExportedFile",
    "Failure",
    "FailureAdvice",
    "FlowOptions",
    "ImportOptions",
    "InfeasibleError",
    "Iteration",
    "Lane",
    "Layer",
    "LinkOptions",
    "Measured",
    "MeasuredOptions",
    "MeasuredRange",
    "MeasuredSize",
    "Outcome",
    "PacketOptions",
    "Packing",
    "Parallel",
    "Pareto",
    "ParetoOptions",
    "ParetoPoint",
    "ParetoRange",
    "Plan",
    "PlanBuilder",
    "PlanOptions",
    "PlanPrediction",
    "Prediction",
    "Profile",
    "Run",
    "Schedule",
    "Selection",
    "SimulationError",
    "SizeComparison",
    "SpecError",
    "Sweep",
    "SweepReport",
    "SweepRun",
    "SymmetricPlan",
    "Synthesis",
    "Topology",
    "TrainingOptions",
    "TrainingPrediction",
    "TrainingPredictionOptions",
    "TrainingRun",
    "TransportError",
    "Trees",
    "TuneOptions",
    "TunedSize",
    "TunedWay",
    "Tuning",
    "VerificationError",
    "Workload",
    "__version__",
    "accelerator",
    "advise_dimensions",
    "advise_failures",
    "algorithm",
    "algorithms",
    "all_to_all_v",
    "autotune",
    "bound",
    "check_file",
    "collective",
    "collective_on",
    "compare",
    "compare_sizes",
    "design_network",
    "export_plan",
    "import_plan",
    "load_collective",
    "load_sweep",
    "measured",
    "merge_plans",
    "nccl",
    "neighbor_exchange",
    "pareto",
    "plan",
    "plan_symmetric",
    "plan_together",
    "predict",
    "predict_plan",
    "predict_training",
    "report_sweep",
    "routing",
    "run_sweep",
    "schedule",
    "send_receive",
    "simulate",
    "steering",
    "timetable",
    "topology",
    "traces",
    "train",
    "training",
    "workload",
]
