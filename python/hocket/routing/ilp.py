"""The optimum of two-layer max-min fairness, by a constraint solver.

Every flow gets at least its share of the most loaded link that it crosses, and a job is as fast as its
slowest flow. So the largest load that a job meets is its cost: first the largest cost of all is
minimised, then, with that fixed, the second largest, the third, and so on: max-min fairness between
jobs. The slowest flow of all gets just that share. Flows of other jobs may get more than theirs, where
flows beside them are held up elsewhere: from the second job on, costs are what is promised, not rates.

Source: Cohen et al., Routing for large ML models, section 3.3, whose formula is the first step only:
the largest minimum of all flows' bandwidths. The steps after it are what it calls max-min fairness.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import gcd
from typing import Any

from hocket._core import Topology
from hocket._core import routing as core_routing
from hocket.errors import SpecError
from hocket.plans.slots.model import cp_model
from hocket.plans.slots.search import Clock, run_solver
from hocket.routing.options import SchemeOptions

_Flow = tuple[int, int, int]
_SEEDS = 2**31
_MAX_LOAD = 2**48
"""Weights in all, in their common unit, that the solver is trusted with."""


def optimum(
    topology: Topology,
    fabric: core_routing.Fabric,
    flows: Sequence[_Flow],
    start: core_routing.Assignment,
    jobs: Sequence[int] | None,
    options: SchemeOptions,
) -> tuple[list[int], int]:
    """Improve on an assignment until it is proved best, or time is up.

    Parameters
    ----------
    topology, fabric, flows, start
        What is assigned, and an assignment to start from.
    jobs : sequence of int, optional
        Job of each flow; all are one without it, and only the maximum counts.
    options : SchemeOptions
        Time limit, workers and seed of the solver.

    Returns
    -------
    list of int, int
        Choice of each flow, and a proved lower bound on the largest load.

    Raises
    ------
    SpecError
        When OR-Tools is needed and not there.
    """
    clock = Clock(options.seconds)
    names = sorted(set(jobs or [0]))
    of_flow = [names.index(job) for job in jobs] if jobs is not None else [0] * len(flows)
    unit = gcd(*(weight for _, _, weight in flows)) or 1
    flows = [(src, dst, weight // unit) for src, dst, weight in flows]
    paths = _Paths(topology, fabric)
    if sum(weight for _, _, weight in flows) * paths.largest_share > _MAX_LOAD:
        raise SpecError(
            None, f"the weights of all flows pass 2^48 times {unit}", "round them for ilp"
        )
    least, choices = -(-start.bound[0] // unit), start.choices.tolist()
    costs: list[int] = []
    if start.max_link_load == least * unit or not flows:
        costs.append(least)
    while len(costs) < len(names) and flows:
        if clock.over():
            break
        module = cp_model("the ilp scheme")
        model = _Model(paths, flows, of_flow, len(names), costs, choices, least)
        if clock.over():
            break
        solver = module.CpSolver()
        solver.parameters.num_workers = options.workers
        solver.parameters.random_seed = (options.seed or 0) % _SEEDS
        solver.parameters.catch_sigint_signal = False
        left = clock.left()
        if left is not None:
            solver.parameters.max_time_in_seconds = left
        status = run_solver(solver, model.model)
        if status in (module.OPTIMAL, module.FEASIBLE):
            choices = model.choices(solver)
        if not costs:
            least = max(least, round(solver.best_objective_bound))
        if status != module.OPTIMAL:
            break
        costs.append(round(solver.objective_value))
    return choices, least * unit


class _Paths:
    """The choices between two ToRs: links, and what a weight of 1 loads each with."""

    def __init__(self, topology: Topology, fabric: core_routing.Fabric) -> None:
        self.fabric = fabric
        ends = zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True)
        self.share = {
            link: fabric.reference // topology.link_bandwidth.item(link)
            for link, pair in enumerate(ends)
            if min(pair) >= topology.npu_count
        }
        self.largest_share = max(self.share.values())
        self.found: dict[tuple[int, int], dict[int, list[tuple[int, int]]]] = {}

    def between(self, src: int, dst: int) -> dict[int, list[tuple[int, int]]]:
        """Links with their shares, by choice."""
        if (src, dst) not in self.found:
            self.found[src, dst] = {
                choice: [(link, self.share[link]) for link in self.fabric.route(src, dst, choice)]
                for choice in self.fabric.choices_between(src, dst)
            }
        return self.found[src, dst]


def _job_costs(
    paths: _Paths,
    flows: Sequence[_Flow],
    jobs: Sequence[int],
    job_count: int,
    choices: Sequence[int],
) -> list[int]:
    """Largest load that each job meets, largest first."""
    taken = [
        paths.between(src, dst)[choice]
        for (src, dst, _), choice in zip(flows, choices, strict=True)
    ]
    loads: dict[int, int] = defaultdict(int)
    for (_, _, weight), path in zip(flows, taken, strict=True):
        for link, share in path:
            loads[link] += weight * share
    costs = [0] * job_count
    for job, path in zip(jobs, taken, strict=True):
        costs[job] = max(costs[job], *(loads[link] for link, _ in path))
    return sorted(costs, reverse=True)


class _Model:
    """Minimise cost k + 1 of the jobs, with the k largest as they are known.

    Flows alike (ends, weight, job) are counted, not told apart.
    """

    def __init__(
        self,
        paths: _Paths,
        flows: Sequence[_Flow],
        jobs: Sequence[int],
        job_count: int,
        costs: Sequence[int],
        choices: Sequence[int],
        least: int,
    ) -> None:
        self.model = cp_model().CpModel()
        self.alike: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
        for i, ((src, dst, weight), job) in enumerate(zip(flows, jobs, strict=True)):
            self.alike[src, dst, weight, job].append(i)
        self.sent: dict[tuple[int, int, int, int], dict[int, Any]] = {}
        on: dict[int, list[tuple[int, int, Any]]] = defaultdict(list)
        for group, members in self.alike.items():
            src, dst, weight, job = group
            counts = {}
            for choice, links in paths.between(src, dst).items():
                counts[choice] = count = self.model.new_int_var(0, len(members), "")
                self.model.add_hint(count, sum(choices[i] == choice for i in members))
                for link, share in links:
                    on[link].append((job, weight * share, count))
            self.model.add(sum(counts.values()) == len(members))
            self.sent[group] = counts
        most = paths.largest_share * sum(weight for _, _, weight in flows)
        cost = [self.model.new_int_var(0, most, "") for _ in range(job_count)]
        self._charge(on, cost)
        for worse, cost_known in enumerate(costs):
            self._all_but(worse, cost, cost_known)
        # A solver that runs out of time may find less than it was given to start from.
        known = _job_costs(paths, flows, jobs, job_count, choices)[len(costs)]
        goal = self.model.new_int_var(0 if costs else least, known, "")
        self._all_but(len(costs), cost, goal)
        self.model.minimize(goal)

    def _charge(self, on: dict[int, list[tuple[int, int, Any]]], cost: list[Any]) -> None:
        """Make a job's cost no less than the load of any link that it uses."""
        for carried in on.values():
            load = sum(weight * count for _, weight, count in carried)
            for job in {job for job, _, _ in carried}:
                if len(cost) == 1:
                    self.model.add(load <= cost[job])
                    continue
                used = self.model.new_bool_var("")
                own = sum(count for owner, _, count in carried if owner == job)
                self.model.add(own == 0).only_enforce_if(~used)
                self.model.add(load <= cost[job]).only_enforce_if(used)

    def _all_but(self, worse: int, cost: list[Any], limit: Any) -> None:
        """Keep the cost of all jobs but so many within a limit."""
        if worse == 0:
            for each in cost:
                self.model.add(each <= limit)
            return
        spared = [self.model.new_bool_var("") for _ in cost]
        self.model.add(sum(spared) <= worse)
        for each, spare in zip(cost, spared, strict=True):
            self.model.add(each <= limit).only_enforce_if(~spare)

    def choices(self, solver: Any) -> list[int]:
        """Choice of each flow."""
        found = [0] * sum(map(len, self.alike.values()))
        for group, members in self.alike.items():
            choices = [
                choice
                for choice, count in self.sent[group].items()
                for _ in range(int(solver.value(count)))
            ]
            for flow, choice in zip(members, choices, strict=True):
                found[flow] = choice
        return found
