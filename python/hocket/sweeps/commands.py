"""Commands that a sweep can run: the keys of each, the columns that it fills, and what runs a point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from hocket import _core
from hocket._checks import one_of
from hocket._options import names_of
from hocket._results import Field, Result, columns_of, fields_of
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.plan import Plan
from hocket.plans.planner import choose
from hocket.plans.synthesis import PlanOptions
from hocket.simulation.options import (
    KEYWORDS,
    FlowOptions,
    LinkOptions,
    PacketOptions,
    TransferOptions,
    fidelity_options,
)
from hocket.simulation.run import Run, simulate
from hocket.sweeps.inputs import SweepInputs
from hocket.sweeps.keys import (
    DELAY,
    FAILED,
    NETWORK,
    PARALLEL,
    PLANNING,
    RATE,
    SIZE,
    TASK,
    TEXT,
    Column,
    Key,
    Value,
    numbers,
    of_options,
    training_algorithm,
    wholes,
    words,
)

Point: TypeAlias = Mapping[str, Value]
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class SweptCommand:
    """A command that a sweep can run.

    Attributes
    ----------
    name
        As on the command line.
    keys
        What a point may say.
    required
        What it must say.
    columns
        What its results fill, with types.
    run
        Runs a point, and gives its rows.
    """

    name: str
    keys: Mapping[str, Key]
    required: tuple[str, ...]
    columns: Mapping[str, Column]
    run: Callable[[Point, SweepInputs], list[Row]]


_NETWORK_COLUMNS: dict[str, Column] = {"npu_count": "whole", "cost": "number"}
_PLAN_COLUMNS: dict[str, Column] = {
    "planned_by": "text",
    "used_chunks": "whole",
    "transfers": "whole",
    "verified": "truth",
}


def _run_fields() -> list[Field]:
    """Return what a row has of a run."""
    return [each for each in fields_of(Run) if each.path[0] != "_plan" and each.is_column]


def _taken(kind: type[Result], *keys: str) -> list[Field]:
    """Return what a row has of a result; parts of objects have the object's name before theirs."""
    found = {each.key: each for each in columns_of(kind)}
    return [found[key] for key in keys]


def _columns(fields: Iterable[Field]) -> dict[str, Column]:
    return {each.key: cast("Column", each.kind) for each in fields}


def _row(result: Result, fields: Iterable[Field]) -> Row:
    seen: dict[tuple[str, ...], Any] = {(): result}
    return {each.key: each.value(seen) for each in fields}


def _fidelity(name: str) -> None:
    fidelity_options(name, {})


def _simulation() -> dict[str, Key]:
    """Return the keys that are options of the fidelities at which transfers are simulated."""
    kinds = (LinkOptions, FlowOptions, PacketOptions)
    found = {name: key for kind in reversed(kinds) for name, key in of_options(kind).items()}
    return {"fidelity": words(_fidelity), **found}


def _of_network(point: Point, inputs: SweepInputs, key: str = "topology") -> Row:
    network = inputs.network(point, key)
    return {"npu_count": network.topology.npu_count, "cost": network.cost}


def _given(point: Point, names: Iterable[str]) -> dict[str, Any]:
    """Return what a point says of some keys."""
    return {name: point[name] for name in names if name in point}


def _planning(point: Point) -> PlanOptions:
    """Return the options of planning that a point states; ``auto`` keeps nothing unless it is asked to."""
    return PlanOptions(**{"cache": False, **_given(point, names_of(PlanOptions))})


def _transfers(point: Point) -> TransferOptions:
    found = fidelity_options(str(point.get("fidelity", "link")), _given(point, KEYWORDS))
    if found.fidelity == "dimension":
        raise SpecError("fidelity", "dimension has no links", "use link, flow or packet")
    return found


def _planned(point: Point, inputs: SweepInputs) -> tuple[Plan, int | None]:
    topology = inputs.network(point).topology
    collective = inputs.collective(point, topology)
    name = str(point.get("algorithm", "auto"))
    found = choose(collective, topology, name, _planning(point), is_timed=False)
    return found.plan.verify(), found.slices


def _of_plan(plan: Plan, slices: int | None) -> Row:
    chosen = plan.selection.algorithm if plan.selection is not None else plan.algorithm
    return {
        "planned_by": chosen,
        "used_chunks": slices,
        "transfers": len(plan),
        "verified": plan.is_verified,
    }


def _plan(point: Point, inputs: SweepInputs) -> list[Row]:
    plan, slices = _planned(point, inputs)
    bound = _core.bound(plan.topology, plan.collective).time_ps
    return [{**_of_network(point, inputs), **_of_plan(plan, slices), "bound_ps": bound}]


def _bound(point: Point, inputs: SweepInputs) -> list[Row]:
    topology = inputs.network(point).topology
    found = _core.bound(topology, inputs.collective(point, topology))
    return [
        {**_of_network(point, inputs), "bound_ps": found.time_ps, "witness": found.witness},
    ]


def _simulate(point: Point, inputs: SweepInputs) -> list[Row]:
    fidelity = _transfers(point)
    plan, slices = _planned(point, inputs)
    run = simulate(plan, fidelity=fidelity)
    return [{**_of_network(point, inputs), **_of_plan(plan, slices), **_row(run, _run_fields())}]


def _compare(point: Point, inputs: SweepInputs) -> list[Row]:
    from hocket.comparison.compare import compare

    topology = inputs.network(point).topology
    found = compare(
        inputs.collective(point, topology),
        topology,
        algorithms=[str(point["algorithm"])] if "algorithm" in point else None,
        fidelity=_transfers(point),
        options=_planning(point),
    )
    network = _of_network(point, inputs)
    return [
        {
            **network,
            "rank": rank,
            **_of_plan(entry.plan, entry.chunks),
            "planned_by": entry.algorithm,
            **_row(entry.run, _run_fields()),
        }
        for rank, entry in enumerate(found, 1)
    ]


def _design(point: Point, inputs: SweepInputs) -> list[Row]:
    """Return the fastest plan of a candidate; not for users, since points do not name the algorithms."""
    topology = inputs.network(point).topology
    collective = inputs.collective(point, topology)
    name, time_ps = _fastest(collective, topology, inputs.loaded.algorithms)
    return [{**_of_network(point, inputs), "planned_by": name, "time_ps": time_ps}]


def _fastest(
    collective: _core.Collective, topology: _core.Topology, names: Sequence[str]
) -> tuple[str, int]:
    """Return the fastest of some algorithms and its time [ps]; symmetry alone, where it applies."""
    from hocket.comparison.compare import compare
    from hocket.plans.symmetric import NAME, shift

    others = [each for each in names if each != NAME]
    if len(others) < len(names):
        try:
            return NAME, shift(collective, topology, PlanOptions()).time_ps
        except (InfeasibleError, SpecError):
            if not others:
                raise
    best = compare(collective, topology, algorithms=others).best
    return best.algorithm, best.run.time_ps


def _train(point: Point, inputs: SweepInputs) -> list[Row]:
    from hocket.training.options import TrainingOptions
    from hocket.training.run import train

    given = {"cache": False, **_given(point, names_of(TrainingOptions))}
    run = train(
        inputs.loaded.workloads[str(point["workload"])],
        inputs.network(point).topology,
        parallel=None if "parallel" not in point else str(point["parallel"]),
        algorithm=None if "algorithm" not in point else str(point["algorithm"]),
        options=TrainingOptions(**given),
    )
    of_run, of_parts = _trained()
    return [
        {
            **_of_network(point, inputs),
            "planned_by": run.algorithm,
            **_row(run, of_run),
            **_row(run.breakdown, of_parts),
            "exposed_ps": run.breakdown.communication,
            "memory_bytes": run.memory.total,
        }
    ]


def _trained() -> tuple[list[Field], list[Field]]:
    """Return what a row has of a training run, and of where its time went."""
    from hocket.training.result import Breakdown, TrainingRun

    parts = ("forward_ps", "backward_ps", "update_ps", "waiting_ps")
    of_run = _taken(TrainingRun, "time_ps", "samples_per_s", "hidden_share")
    return of_run, _taken(Breakdown, *parts)


def _predict(point: Point, inputs: SweepInputs) -> list[Row]:
    from hocket.profiles.prediction import predict
    from hocket.profiles.profile import as_profile, profile_for

    network = inputs.network(point)
    named = point.get("profile")
    profile = (
        profile_for(network.topology, network.spec) if named is None else as_profile(str(named))
    )
    launch = point.get("launch")
    found = predict(
        str(point.get("collective", "all-reduce")),
        network.topology,
        sizes=int(point["size"]),  # type: ignore[arg-type]
        profile=profile,
        launch=None if launch is None else str(launch),
    ).times[0]
    more = {"planned_by": found.algorithm, **_row(found, _predicted_fields())}
    return [{**_of_network(point, inputs), **more}]


def _predicted_fields() -> list[Field]:
    """Return what a row has of a prediction."""
    from hocket.profiles.prediction import PredictedTime

    figures = ("launch_share", "busbw_bytes_per_s", "below_bound")
    return _taken(PredictedTime, "time_s", "protocol", *figures)


def _predict_training(point: Point, inputs: SweepInputs) -> list[Row]:
    from hocket.throughput.options import TrainingPredictionOptions
    from hocket.throughput.prediction import predict_training

    found = predict_training(
        inputs.loaded.transformers[str(point["workload"])],
        inputs.network(point).topology if "topology" in point else None,
        parallel=str(point["parallel"]),
        batch=int(point["batch"]),  # type: ignore[arg-type]
        options=TrainingPredictionOptions(**_given(point, names_of(TrainingPredictionOptions))),
    )
    cost = inputs.network(point).cost if "topology" in point else None
    return [
        {
            "npu_count": found.job.parallel.npus,
            "cost": cost,
            **_row(found, _predicted_training()),
            "expected_error": None if found.error is None else found.error.within,
        }
    ]


def _predicted_training() -> list[Field]:
    """Return what a row has of a predicted training iteration."""
    from hocket.throughput.prediction import TrainingPrediction

    figures = ("tokens_per_s_per_npu", "tflops_per_npu", "share_of_peak")
    return _taken(TrainingPrediction, "time_s", *figures)


_HOSTS = ("gpus_per_host", "nics_per_host", "hosts_per_tor", "oversubscription", "bandwidth")
_HOST_KEYS = (*_HOSTS, "host_bandwidth", "latency")
_NOT_SWEPT = ("headers", "switch_seeds", "workers", "outages", "host_rate", "keep_rates")


def _route(point: Point, inputs: SweepInputs) -> list[Row]:
    from hocket.cluster.hosts import cluster
    from hocket.routing.options import ClusterOptions
    from hocket.routing.simulation import simulate as run_jobs
    from hocket.topology.build import build_topology

    text = str(point["fabric"])
    known = inputs.loaded.topologies.get(text)
    failed = point.get("failed", ())
    made = cluster(
        text if known is None else build_topology(known),
        failed=failed if isinstance(failed, tuple) else (),
        failed_spines=int(point.get("failed_spines", 0)),  # type: ignore[arg-type]
        **_given(point, _HOST_KEYS),
    )
    jobs = inputs.loaded.jobs[str(point["jobs"])]
    run = run_jobs(
        made,
        jobs,
        scheme=str(point.get("scheme", "greedy")),
        options=ClusterOptions(**{"seed": jobs.seed, **_given(point, names_of(ClusterOptions))}),
    )
    return [{"npu_count": made.gpu_count, "cost": None, **_row(run, _routed_fields())}]


def _routed_fields() -> list[Field]:
    """Return what a row has of jobs on a fabric."""
    from hocket.routing.result import ClusterRun

    means = ("mean_slowdown", "worst_slowdown", "mean_iteration_ps")
    return _taken(ClusterRun, "time_ps", "max_link_load", *means)


def _training() -> dict[str, Key]:
    """Return the keys that are options of training."""
    from hocket.training.options import TrainingOptions

    bucket = words(lambda text: TrainingOptions(bucket=text))
    return {**of_options(TrainingOptions), "bucket": bucket}


def _predicted() -> dict[str, Key]:
    """Return the keys of ``predict`` besides the network."""
    from hocket.profiles.cost_model import KINDS
    from hocket.profiles.profile import load_profile

    return {
        "collective": words(lambda kind: one_of("collective", kind, KINDS)),
        "size": SIZE,
        "profile": words(load_profile),
        "launch": TEXT,
    }


def _routed() -> dict[str, Key]:
    """Return the keys of ``route``."""
    from hocket.routing.options import ClusterOptions
    from hocket.routing.simulation import CLUSTER_SCHEMES

    return {
        "jobs": TEXT,
        "fabric": TEXT,
        "scheme": words(lambda name: one_of("scheme", name, CLUSTER_SCHEMES)),
        "failed": FAILED,
        "failed_spines": wholes(),
        "gpus_per_host": wholes(least=1),
        "nics_per_host": wholes(least=1),
        "hosts_per_tor": wholes(least=1),
        "oversubscription": numbers(),
        "bandwidth": RATE,
        "host_bandwidth": RATE,
        "latency": DELAY,
        **of_options(ClusterOptions, _NOT_SWEPT),
    }


def _make(name: str) -> SweptCommand:
    plain = {**NETWORK, **TASK, **PLANNING}
    if name == "plan":
        columns: dict[str, Column] = {**_NETWORK_COLUMNS, **_PLAN_COLUMNS, "bound_ps": "whole"}
        return SweptCommand(name, plain, ("topology",), columns, _plan)
    if name == "bound":
        columns = {**_NETWORK_COLUMNS, "bound_ps": "whole", "witness": "text"}
        return SweptCommand(name, {**NETWORK, **TASK}, ("topology",), columns, _bound)
    if name == "design":
        columns = {**_NETWORK_COLUMNS, "planned_by": "text", "time_ps": "whole"}
        return SweptCommand(name, {**NETWORK, **TASK}, ("topology",), columns, _design)
    if name in ("simulate", "compare"):
        keys = {**plain, **_simulation()}
        rank: dict[str, Column] = {"rank": "whole"} if name == "compare" else {}
        columns = {**_NETWORK_COLUMNS, **rank, **_PLAN_COLUMNS, **_columns(_run_fields())}
        run = _simulate if name == "simulate" else _compare
        return SweptCommand(name, keys, ("topology",), columns, run)
    if name == "train":
        keys = {
            "workload": TEXT,
            **NETWORK,
            "parallel": PARALLEL,
            "algorithm": training_algorithm(),
        }
        of_run, of_parts = _trained()
        columns = {**_NETWORK_COLUMNS, "planned_by": "text", **_columns([*of_run, *of_parts])}
        columns |= {"exposed_ps": "number", "memory_bytes": "whole"}
        return SweptCommand(name, keys | _training(), ("workload", "topology"), columns, _train)
    if name == "predict":
        keys = {**NETWORK, **_predicted()}
        columns = {**_NETWORK_COLUMNS, "planned_by": "text", **_columns(_predicted_fields())}
        return SweptCommand(name, keys, ("topology", "size"), columns, _predict)
    if name == "predict --training":
        from hocket.throughput.options import TrainingPredictionOptions

        keys = {"workload": TEXT, **NETWORK, "parallel": PARALLEL, "batch": wholes(least=1)}
        columns = {**_NETWORK_COLUMNS, **_columns(_predicted_training())}
        columns["expected_error"] = "number"
        needed = ("workload", "parallel", "batch")
        keys |= of_options(TrainingPredictionOptions)
        return SweptCommand(name, keys, needed, columns, _predict_training)
    columns = {**_NETWORK_COLUMNS, **_columns(_routed_fields())}
    return SweptCommand(name, _routed(), ("jobs", "fabric"), columns, _route)


NAMES = ("simulate", "compare", "plan", "bound", "train", "predict", "predict --training", "route")
"""Commands that a sweep can run."""
_MADE: dict[str, SweptCommand] = {}


def command_named(name: str) -> SweptCommand:
    """Return one of :data:`NAMES`."""
    if name not in _MADE:
        _MADE[name] = _make(name)
    return _MADE[name]
