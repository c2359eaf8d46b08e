"""``hocket compare``: every algorithm that applies, ranked."""

from __future__ import annotations

from pathlib import Path

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
        options.print_result("comparison", comparison.to_dict())
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
