"""``hocket compare``: every algorithm that applies, ranked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hocket import _core
from hocket.cli import options
from hocket.cli.groups import Network, Output, Search, Simulation, Task, grouped
from hocket.cli.table import Table
from hocket.comparison.compare import Comparison, Entry
from hocket.comparison.compare import compare as run_comparison
from hocket.plans.algorithms import algorithms as known_algorithms
from hocket.simulation.run import Run
from hocket.topology.build import build_topology
from hocket.units import format_bandwidth, format_size, format_time_ps

FIDELITY_NOTES = {"flow": ", as flows that share links", "packet": ", packet by packet"}
"""What a title says of a fidelity other than link."""


@grouped
def compare(
    kind: options.Kind = "all-reduce",
    *,
    network: Network,
    task: Task,
    algorithm: options.Algorithms = None,
    search: Search,
    simulation: Simulation,
    output: Output,
) -> None:
    """Plan, prove and simulate a collective by every algorithm that applies, fastest first."""
    fidelity = simulation.transfers()
    planning = search.planning(simulation.latency_model)
    spec = network.spec()
    if search.chunk_size is None:
        options.check_size(spec, kind, algorithm or None, search.chunks, npus=task.npus)
    topology = build_topology(spec)
    if output.plot is not None:
        from hocket.plot.style import check_picture

        check_picture(Path(output.plot))
    with options.watching() as watch:

        def note(name: str, count: int, _: Run) -> None:
            watch.note(f"{name}, {count} chunks")

        comparison = run_comparison(
            task.collective(kind, topology),
            topology,
            algorithms=algorithm or None,
            fidelity=fidelity,
            options=planning,
            on_result=note,
            progress=watch,
        )
    if output.plot is not None:
        from hocket.plot.compare import draw_comparison

        draw_comparison(comparison, Path(output.plot))
    if output.json:
        options.print_json(as_json(comparison))
    else:
        _print(comparison, planning.routing)


def _print(comparison: Comparison, routing: str) -> None:
    collective = comparison.collective
    console = options.output()
    title = options.title(collective, comparison.topology)
    title += FIDELITY_NOTES.get(comparison.best.run.fidelity, "")
    table = Table(title=title)
    table.add_column("algorithm")
    for name in (
        "chunks",
        "time",
        "algbw",
        "busbw",
        "bound",
        "gap",
        "busiest link",
        "max link load",
    ):
        table.add_column(name, justify="right")
    table.add_column("verified")
    for entry in comparison:
        table.add_row(*_row(comparison, entry))
    console.print(table)
    bound = comparison.bound
    console.print(f"bound {format_time_ps(bound.time_ps)}: {bound.witness}", highlight=False)
    if any(entry.run.equal_links[0] for entry in comparison):
        console.print(f"equal paths: {routing}; idle links: {_idle(comparison)}", highlight=False)
    kinds = {each.name: each.kinds for each in known_algorithms()}
    left_out: dict[str, list[str]] = {}
    for name, reason in comparison.refused.items():
        if collective.kind in kinds.get(name, [collective.kind]):
            left_out.setdefault(reason.removeprefix(f"{name} cannot run here: "), []).append(name)
    for reason, names in left_out.items():
        console.print(f"left out: {', '.join(names)}: {reason}", highlight=False)


def _idle(comparison: Comparison) -> str:
    """Say which algorithms leave links of equal paths idle."""
    idle = [
        f"{entry.algorithm} {options.idle_links(entry.run)}"
        for entry in comparison
        if entry.run.equal_links[1]
    ]
    return ", ".join(idle) or "none"


def _row(comparison: Comparison, entry: Entry) -> list[str]:
    run, busiest = entry.run, entry.run.busiest_link
    return [
        entry.algorithm,
        str(entry.chunks),
        format_time_ps(run.time_ps),
        format_bandwidth(round(run.algbw)),
        format_bandwidth(round(run.busbw)),
        format_time_ps(comparison.bound.time_ps),
        f"{_core.gap(run.time_ps, comparison.bound.time_ps):.1%}",
        "–" if busiest is None else f"{busiest[0]}→{busiest[1]} {busiest[2]:.0%}",
        format_size(run.max_link_bytes),
        "proved" if entry.plan.is_verified else "no",
    ]


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Give a comparison as JSON values; times in picoseconds, rates in bytes per second."""
    collective, bound = comparison.collective, comparison.bound
    return {
        "collective": collective.name,
        "topology": comparison.topology.name,
        "npus": collective.npus,
        "root": None if collective.root is None else collective.npus[collective.root],
        "size_bytes": collective.size,
        "bound": bound_json(bound),
        "algorithms": [
            {"algorithm": entry.algorithm, "chunks": entry.chunks, **run_json(entry.run)}
            for entry in comparison
        ],
        "refused": comparison.refused,
    }


def bound_json(bound: Any) -> dict[str, Any]:
    """Give a bound as JSON values."""
    return {
        "time_ps": bound.time_ps,
        "witness": bound.witness,
        "components_ps": dict(bound.components),
        "exact_cut": bound.exact_cut,
        "exact_partition": bound.exact_partition,
    }


def run_json(run: Run) -> dict[str, Any]:
    """Give a run's figures as JSON values."""
    busiest = run.busiest_link
    return {
        "time_ps": run.time_ps,
        "algbw_bytes_per_s": run.algbw,
        "busbw_bytes_per_s": run.busbw,
        "bound_ps": run.lower_bound.time_ps,
        "gap": run.gap,
        "utilization": run.utilization,
        "busiest_link": None
        if busiest is None
        else {"src": busiest[0], "dst": busiest[1], "busy_share": busiest[2]},
        "max_link_bytes": run.max_link_bytes,
        "fidelity": run.fidelity,
        "order": run.order,
        "switching": run.switching,
        "cycle_ps": run.cycle_ps,
        "packets": options.packets_json(run),
        "transfers": len(run.plan),
        "routing": run.plan.routing,
        "equal_links": dict(zip(("links", "idle"), run.equal_links, strict=True)),
        "verified": run.plan.is_verified,
    }
