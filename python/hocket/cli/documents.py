"""The JSON of commands: results, and the additions of the command line."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated, Any, Literal

from pydantic import Field as Described
from pydantic import TypeAdapter
from typing_extensions import NotRequired

from hocket._schema import also, dictionary, typed
from hocket.cli.calibrate import FittedProfile, MeasurementAdvice
from hocket.cli.view import LinkHeat, Structures, TimeExpanded
from hocket.comparison.compare import Comparison
from hocket.comparison.failures import FailureAdvice
from hocket.comparison.pareto import Pareto
from hocket.formats.checked import CheckedFile
from hocket.formats.deployed import Deployed
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
from hocket.plans.fit import Fit
from hocket.plans.groups import NamedGroups
from hocket.plans.pipelined import PipelinedPlan
from hocket.plans.plan import Plan
from hocket.plans.symmetric import SymmetricPlan
from hocket.plans.synthesis.compact import CompactTimetable
from hocket.profiles.plans import PlanPrediction
from hocket.profiles.prediction import Prediction
from hocket.routing.result import ClusterRun
from hocket.runtime.launch import TimedCalls
from hocket.simulation.run import Run
from hocket.steering.calibration import Calibration, Identified
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


def _told(kind: Any, doc: str) -> Any:
    return Annotated[kind, Described(description=doc)]


def _with(kind: Any, doc: str, **keys: Any) -> Any:
    """Return what a command prints of a result, with further keys."""
    return also(kind, dictionary(f"{kind.__name__}More", keys, doc))


def _holding(name: str, doc: str, **keys: Any) -> Any:
    """Return what a command prints that has nothing but these keys."""
    return dictionary(f"{name}Document", keys, doc)


_FILE = _told(str | None, "Where it was written.")
_TIMED = {
    "time_ps": _told(
        int | None,
        "Of ``hocket plan``: its time at link fidelity; None where it is too large to be simulated.",
    ),
    "bound_ps": _told(int, "Of ``hocket plan``: the lower bound on any plan's time."),
    "file": _told(str | None, "Of ``hocket plan``: where the plan was written."),
    "cut": _told(
        Literal["work", "time", "signal"],
        "Of ``hocket plan``: what ended its search early: its effort's work, the time limit or a signal.",
    ),
    "groups": _told(
        list[NamedGroups], "Of ``hocket plan --process-groups``: the groups of each name."
    ),
    "fit": _told(Fit, "Of ``hocket plan --runtime``: what it takes of the runtime."),
}
_PREDICTED = _told(
    PlanPrediction, "Of ``hocket simulate --profile``: what it takes on a real machine."
)
_SEARCHES = _told(dict[str, ParallelSearch], "By network, the splits that a search tried.")

DOCUMENTS: dict[str, Any] = {
    "plan": _with(Plan, "A plan.", **{name: NotRequired[key] for name, key in _TIMED.items()}),
    "pipelined-plan": _with(PipelinedPlan, "A plan of one piece of each tree.", file=_FILE),
    "symmetric-plan": _with(SymmetricPlan, "A plan by symmetry.", file=_FILE),
    "run": _with(Run, "A plan in simulated time.", measured=NotRequired[_PREDICTED]),
    "dimension-run": DimensionRun,
    "timetable": CompactTimetable,
    "comparison": Comparison,
    "comparisons": _holding(
        "Comparisons", "One comparison for each size.", comparisons=list[Comparison]
    ),
    "pareto": Pareto,
    "sweep": SweepRun,
    "sweep-count": _holding("SweepCount", "The number of points of a sweep.", points=int),
    "sweep-report": SweepReport,
    "design": _with(Design, "The best networks for a budget.", file=_FILE),
    "advice": Advice,
    "failure-advices": _holding(
        "FailureAdvices", "The cost of single failures, for each size.", sizes=list[FailureAdvice]
    ),
    "failure-advice": FailureAdvice,
    "training-run": TrainingRun,
    "training-comparison": _with(
        TrainingComparison, "Combinations, the best first.", searches=_SEARCHES
    ),
    "cluster-run": ClusterRun,
    "cluster-runs": _holding(
        "ClusterRuns", "The same jobs by several schemes.", schemes=list[ClusterRun]
    ),
    "machines": _holding("Machines", "The shipped machines.", machines=list[Machine]),
    "topology": NetworkFigures,
    "algorithms": _holding(
        "Algorithms",
        "The algorithms, and the collectives that each does.",
        algorithms=list[Algorithm],
    ),
    "schedules": _holding(
        "Schedules", "Names of the schedules that were saved.", schedules=list[str]
    ),
    "workloads": _holding("Workloads", "The shipped workloads.", workloads=list[ListedWorkload]),
    "workload": CostFigures,
    "workload-cycles": CycleFigures,
    "traced-workload": TracedFigures,
    "trace": Summary,
    "trace-run": TraceRun,
    "structures": also(Plan, Structures),
    "link-heat": also(Plan, LinkHeat),
    "time-expanded": also(Plan, TimeExpanded),
    "calibration": _with(
        Calibration,
        "The switch that each probe reached, and the hashes that explain it.",
        identified=list[Identified],
    ),
    "measurement-advice": MeasurementAdvice,
    "fitted-profile": FittedProfile,
    "prediction": Prediction,
    "timed-calls": TimedCalls,
    "tuning": _with(
        Tuning,
        "A table of plans, and how each was picked.",
        file=_told(str, "Where the table was written."),
    ),
    "training-prediction": TrainingPrediction,
    "nccl-prediction": NcclPrediction,
    "nccl-audit": Audit,
    "nccl-graph": _with(
        GraphDesign, "Rings and trees for a machine.", files=_told(list[str], "What was written.")
    ),
    "nccl-tuner": TunerTable,
    "nccl-asked-tuner": AskedTuner,
    "checked-file": CheckedFile,
    "exported-file": ExportedFile,
    "deployed": Deployed,
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
