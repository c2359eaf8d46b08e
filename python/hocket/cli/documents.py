"""The JSON of commands: results, and the additions of the command line."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Literal

from pydantic import TypeAdapter
from typing_extensions import NotRequired, TypedDict

from hocket._schema import also, typed
from hocket.cli.calibrate import FittedProfile
from hocket.cli.view import LinkHeat, Structures, TimeExpanded
from hocket.comparison.compare import Comparison
from hocket.comparison.failures import FailureAdvice
from hocket.comparison.pareto import Pareto
from hocket.formats.checked import CheckedFile
from hocket.formats.exported import ExportedFile
from hocket.installation.components import Installation
from hocket.nccl.design import GraphDesign
from hocket.nccl.plugin import AskedTuner
from hocket.nccl.prediction import NcclPrediction
from hocket.nccl.report import Audit
from hocket.nccl.tuner import TunerTable
from hocket.plans.advice import Advice
from hocket.plans.algorithms import Algorithm
from hocket.plans.dimension_run import DimensionRun
from hocket.plans.plan import Plan
from hocket.plans.symmetric import SymmetricPlan
from hocket.plans.synthesis.compact import CompactTimetable
from hocket.profiles.plans import PlanPrediction
from hocket.profiles.prediction import Prediction
from hocket.routing.result import ClusterRun
from hocket.runtime.launch import TimedCalls
from hocket.simulation.run import Run
from hocket.steering.calibration import Calibration
from hocket.sweeps.design import Design
from hocket.sweeps.report import SweepReport
from hocket.sweeps.run import SweepRun
from hocket.telemetry.judge import Measured
from hocket.throughput.prediction import TrainingPrediction
from hocket.topology.figures import Machine, NetworkFigures
from hocket.traces.files import Summary
from hocket.traces.result import TraceRun
from hocket.training.comparison import TrainingComparison
from hocket.training.result import TrainingRun
from hocket.training.search import ParallelSearch
from hocket.tuning.tune import Tuning
from hocket.workload.figures import CostFigures, CycleFigures, ListedWorkload, TracedFigures

VERSION = 1
"""Raised where a key goes or means something else."""


class PlanMore(TypedDict):
    """A plan."""

    time_ps: NotRequired[int | None]
    """Of ``hocket plan``: its time at link fidelity; None where it is too large to be simulated."""
    bound_ps: NotRequired[int]
    """Of ``hocket plan``: the lower bound on any plan's time."""
    file: NotRequired[str | None]
    """Of ``hocket plan``: where the plan was written."""


class SymmetricPlanMore(TypedDict):
    """A plan by symmetry."""

    file: str | None
    """Where the whole plan was written."""


class RunMore(TypedDict):
    """A plan in simulated time."""

    measured: NotRequired[PlanPrediction]
    """Of ``hocket simulate --profile``: what it takes on a real machine."""


class GraphDesignMore(TypedDict):
    """Rings and trees for a machine."""

    files: list[str]
    """What was written."""


class ComparisonsDocument(TypedDict):
    """One comparison for each size."""

    comparisons: list[Comparison]


class MachinesDocument(TypedDict):
    """The shipped machines."""

    machines: list[Machine]


class AlgorithmsDocument(TypedDict):
    """The algorithms, and the collectives that each does."""

    algorithms: list[Algorithm]


class SchedulesDocument(TypedDict):
    """Names of the schedules that were saved."""

    schedules: list[str]


class WorkloadsDocument(TypedDict):
    """The shipped workloads."""

    workloads: list[ListedWorkload]


class ComparedSchemes(TypedDict):
    """The same jobs by several schemes."""

    schemes: list[ClusterRun]


class FailureAdvicesDocument(TypedDict):
    """The cost of single failures, for each size."""

    sizes: list[FailureAdvice]


class SweepCountDocument(TypedDict):
    """The number of points of a sweep."""

    points: int


class DesignMore(TypedDict):
    """The best networks for a budget."""

    file: str | None
    """Where the best was written."""


class TrainingComparisonMore(TypedDict):
    """Combinations, the best first."""

    searches: dict[str, ParallelSearch]
    """By network, the splits that a search tried."""


class TuningMore(TypedDict):
    """A table of plans, and how each was picked."""

    file: str
    """Where the table was written."""


class IdentifiedData(TypedDict):
    """A hash that explains all answers."""

    algorithm: str
    fields: int
    seed: int
    switches: list[str | None]
    """The switch of each way, in the order of the next hops; null where no answer shows it."""


class CalibrationMore(TypedDict):
    """The switch that each probe reached, and the hashes that explain it."""

    identified: list[IdentifiedData]


DOCUMENTS: dict[str, Any] = {
    "plan": also(Plan, PlanMore),
    "symmetric-plan": also(SymmetricPlan, SymmetricPlanMore),
    "run": also(Run, RunMore),
    "dimension-run": DimensionRun,
    "timetable": CompactTimetable,
    "comparison": Comparison,
    "comparisons": ComparisonsDocument,
    "pareto": Pareto,
    "sweep": SweepRun,
    "sweep-count": SweepCountDocument,
    "sweep-report": SweepReport,
    "design": also(Design, DesignMore),
    "advice": Advice,
    "failure-advices": FailureAdvicesDocument,
    "failure-advice": FailureAdvice,
    "training-run": TrainingRun,
    "training-comparison": also(TrainingComparison, TrainingComparisonMore),
    "cluster-run": ClusterRun,
    "cluster-runs": ComparedSchemes,
    "machines": MachinesDocument,
    "topology": NetworkFigures,
    "algorithms": AlgorithmsDocument,
    "schedules": SchedulesDocument,
    "workloads": WorkloadsDocument,
    "workload": CostFigures,
    "workload-cycles": CycleFigures,
    "traced-workload": TracedFigures,
    "trace": Summary,
    "trace-run": TraceRun,
    "structures": also(Plan, Structures),
    "link-heat": also(Plan, LinkHeat),
    "time-expanded": also(Plan, TimeExpanded),
    "calibration": also(Calibration, CalibrationMore),
    "fitted-profile": FittedProfile,
    "prediction": Prediction,
    "timed-calls": TimedCalls,
    "tuning": also(Tuning, TuningMore),
    "training-prediction": TrainingPrediction,
    "nccl-prediction": NcclPrediction,
    "nccl-audit": Audit,
    "nccl-graph": also(GraphDesign, GraphDesignMore),
    "nccl-tuner": TunerTable,
    "nccl-asked-tuner": AskedTuner,
    "checked-file": CheckedFile,
    "exported-file": ExportedFile,
    "measured": Measured,
    "installation": Installation,
}
"""By what follows ``hocket.`` in ``format``."""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of what commands print with ``--json``, those of other packages included."""
    others = sorted(entry_points(group="hocket.documents"))
    documents = DOCUMENTS | {point.name: point.load() for point in others}
    adapters: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
        (name, "serialization", TypeAdapter(typed(kind))) for name, kind in documents.items()
    ]
    found, rest = TypeAdapter.json_schemas(adapters, ref_template="#/$defs/{model}")
    definitions = rest.get("$defs", {})
    kinds = []
    for name in documents:
        schema = found[name, "serialization"]
        target = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        document = {
            **target,
            "title": f"hocket.{name}",
            "properties": {
                "format": {"const": f"hocket.{name}"},
                "version": {"const": VERSION},
                **target["properties"],
            },
            "required": ["format", "version", *target.get("required", [])],
        }
        kinds.append(document)
    for each in (*kinds, *definitions.values()):
        if "properties" in each:
            each["additionalProperties"] = False
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hocket results",
        "description": "What hocket's commands print with --json. Names end in their unit.",
        "oneOf": kinds,
        "$defs": definitions,
    }
