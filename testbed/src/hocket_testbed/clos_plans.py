"""Plans over a Clos whose switches hash, run by the runtime: by ECMP, and steered by the controller.

Each rank is a process in the namespace of its host. It meets the others over the cables of the controller,
and sends over the fabric. Each of its connections carries numbers one way and is opened by the sender, so
that the source port says which spine they take. With the library ``hocket-preload`` the agent of the host
gives that port; without it, the kernel does.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from hocket._checks import check_function, list_of, whole
from hocket._programs import remedy_for, variable_of
from hocket._results import HIDDEN, Result, figure, picoseconds, said
from hocket.errors import SpecError
from hocket.plans.plan import Plan
from hocket.plans.planner import plan as make_plan
from hocket.runtime.processes import Place, run_processes
from hocket.runtime.store import serve as serve_store
from hocket.simulation.run import simulate
from hocket_testbed.clos import ClosSpec, OnClos, each_in_picoseconds
from hocket_testbed.counters import sent_up
from hocket_testbed.namespaces import inside
from hocket_testbed.plan_connections import check_same_network
from hocket_testbed.prediction import cluster_of
from hocket_testbed.service import Service, serve

__all__ = ["ClosPlan", "ClosPlans", "run_clos_plans"]

ECMP, CONTROLLER = "ecmp", "controller"
_WIDTH = 4
_TIMEOUT = 60.0
"""After which time without a byte a run is given up [s]."""
_PATIENCE_MS = "3000"
"""How long a question to the agent may take, however busy the machine is."""
_MAX_CALLS = 1000


@dataclass(frozen=True)
class ClosPlan(Result):
    """A plan, run several times by one kind of paths.

    Attributes
    ----------
    plan
        What ran.
    paths
        ``"ecmp"``: ports are those that the kernel draws; ``"controller"``: agents give them.
    times
        Of each call, until the last rank had its result [s].
    predicted
        By the simulation of flows, spread evenly over the spines [s].
    steered
        Connections that have an agent's port.
    connections
        Connections of the plan.
    fullest
        Bytes that the fullest link up carried, by those of the mean one.
    load
        Load average of the machine when it began.
    """

    plan: Plan = field(metadata=HIDDEN)
    paths: str
    times: tuple[float, ...] = field(metadata=said("times_ps", of=each_in_picoseconds, column=True))
    predicted: float = field(metadata=said("predicted_ps", of=picoseconds))
    steered: int
    connections: int
    fullest: float = field(metadata=said("fullest_link_to_mean"))
    load: float = field(metadata=said("load_average"))

    @property
    @figure()
    def algorithm(self) -> str:
        """The algorithm that made the plan."""
        return self.plan.algorithm

    @property
    @figure()
    def collective(self) -> str:
        """The collective that it carries out."""
        return self.plan.collective.name

    @property
    @figure()
    def size_bytes(self) -> int:
        """Size of its data."""
        return self.plan.collective.size

    @property
    @figure("measured_ps", of=picoseconds)
    def time(self) -> float:
        """The median [s]."""
        return median(self.times)


@dataclass(frozen=True)
class ClosPlans(OnClos):
    """Plans on a Clos; made by :func:`run_clos_plans`.

    Attributes
    ----------
    spec
        The network.
    runs
        For each plan, in the order in which they were given: by ECMP, then by the controller.
    """

    spec: ClosSpec = field(metadata=HIDDEN)
    runs: tuple[ClosPlan, ...]

    @property
    def gains(self) -> list[float]:
        """Time by ECMP over that by the controller, of each plan."""
        hashed, steered = (
            [run for run in self.runs if run.paths == each] for each in (ECMP, CONTROLLER)
        )
        return [one.time / other.time for one, other in zip(hashed, steered, strict=True)]

    def __repr__(self) -> str:
        """Return the number of plans, and the network."""
        return f"<ClosPlans: {len(self.runs) // 2} plans on {self.spec.host_count} hosts>"


def run_clos_plans(
    spec: ClosSpec,
    plans: Sequence[Plan | str],
    *,
    collective: str = "all-reduce",
    size: int | str = "8 MiB",
    calls: int = 5,
    progress: Callable[[str, int, int], None] | None = None,
) -> ClosPlans:
    """Run plans by :mod:`hocket.runtime` among the hosts of a Clos, by ECMP and by the controller.

    Parameters
    ----------
    spec
        A Clos that is there, with shaped links and one link between each ToR and each spine.
    plans
        Plans for its hosts, or names of algorithms that plan for them. Those go round hosts so that every
        next one is below another ToR.
    collective, size
        What algorithms plan.
    calls
        How often each plan is timed after some calls that are not.
    progress
        Called as ``progress(stage, done, total)``.

    Raises
    ------
    SpecError
        For a plan of another network, or what else makes no sense.
    InfeasibleError
        Where a plan cannot be made or run, or a program is missing.
    TransportError
        Where a rank stood still.
    """
    calls = whole("calls", calls, 1, _MAX_CALLS)
    check_function("progress", progress)
    library = _preload()
    made = _plans_for(spec, plans, collective, size)
    cases = [(plan, paths) for plan in made for paths in (ECMP, CONTROLLER)]
    runs = []
    with serve(spec) as service:
        for done, (plan, paths) in enumerate(cases):
            if progress is not None:
                progress(f"{plan.algorithm}, {paths}", done, len(cases))
            service.forget()
            runs.append(_run(service, plan, library if paths == CONTROLLER else None, calls))
    return ClosPlans(spec, tuple(runs))


def _preload() -> Path:
    """Return the library that a variable names, or that ``make controller`` has installed."""
    name = "hocket-preload"
    named = os.environ.get(variable_of(name))
    path = Path(named or Path(sys.prefix) / "lib" / "libhocket_preload.so")
    if not path.is_file():
        raise SpecError(None, f"there is no library {path}", remedy_for(name))
    return path.resolve()


def _plans_for(
    spec: ClosSpec, plans: Sequence[Plan | str], collective: str, size: int | str
) -> list[Plan]:
    topology = cluster_of(spec).topology
    # Host k of each ToR, then host k + 1.
    order = [tor * spec.hosts + k for k in range(spec.hosts) for tor in range(spec.tors)]
    made = []
    for each in list_of("plans", plans):
        if isinstance(each, Plan):
            check_same_network(each, topology)
            plan = each
        elif isinstance(each, str):
            plan = make_plan(collective, topology, size=size, algorithm=each, chunks=1, npus=order)
        else:
            raise SpecError("plans", f"{each!r} is no plan", "give plans, or names of algorithms")
        made.append(plan.verify())
    if not made:
        raise SpecError("plans", "there are none", "give plans, or names of algorithms")
    return made


def _run(service: Service, plan: Plan, library: Path | None, calls: int) -> ClosPlan:
    """Run a plan once more and more, steered if there is a library that asks the agents."""
    spec, load = service.spec, os.getloadavg()[0]
    npus = list(plan.collective.npus)
    secret = secrets.token_hex(16)
    file, report = service.folder / "plan.parquet", service.folder / "report"
    report.unlink(missing_ok=True)
    plan.save(file)
    with inside(spec.namespace("controller")):
        store = serve_store("0.0.0.0:0", secret=secret)
    port = store.address.rpartition(":")[2]
    places = []
    for host in npus:
        steers = {
            "LD_PRELOAD": str(library),
            "HOCKET_AGENT_SOCKET": str(service.socket(host)),
            "HOCKET_AGENT_PATIENCE_MS": _PATIENCE_MS,
            "HOCKET_PRELOAD_REPORT": str(report),
        }
        variables = [f"{name}={value}" for name, value in steers.items() if library is not None]
        places.append(
            Place(
                ("ip", "netns", "exec", spec.namespace(f"host{host}"), "env", *variables),
                {
                    "HOCKET_STORE": f"10.255.{host}.0:{port}",
                    "HOCKET_SECRET": secret,
                    "HOCKET_LOCAL": spec.address(host),
                },
            )
        )
    kind = plan.collective.kind
    given: dict[str, Any] = {
        "kind": kind,
        "root": npus.index(plan.collective.root) if plan.collective.root is not None else 0,
        "op": "sum",
        "dtype": "int32",
        "count": max(plan.collective.size // _WIDTH // len(npus), 1) * len(npus),
        "transport": "tcp",
        "outward": True,
        "plan": str(file),
        "calls": calls,
        "timeout": _TIMEOUT,
    }
    before = sent_up(spec)
    try:
        ended = run_processes(
            "hocket.runtime.rank", given, len(npus), None, ("run", calls), places=places
        )
    finally:
        with inside(spec.namespace("controller")):
            store.close()
    after = sent_up(spec)
    carried = [after[link] - before[link] for link in before]
    times = np.array([each["times"] for each in ended]).max(axis=0) / 1e9
    transfers = plan.transfers
    pairs = set(zip(transfers.src.tolist(), transfers.dst.tolist(), strict=True))
    return ClosPlan(
        plan,
        ECMP if library is None else CONTROLLER,
        tuple(times.tolist()),
        simulate(plan, fidelity="flow", routing="spray").time_ps / 1e12,
        _steered(report),
        len(pairs),
        max(carried) / max(mean(carried), 1),
        load,
    )


def _steered(report: Path) -> int:
    """Return how many connections got an agent's port, as the library has counted them."""
    if not report.exists():
        return 0
    steered = 0
    for line in report.read_text(encoding="utf-8").splitlines():
        words = line.split()[1:]
        steered += int(dict(zip(words[::2], words[1::2], strict=True)).get("steered", 0))
    return steered
