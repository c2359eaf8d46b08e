"""``hocket compare --front``: the fastest plan of each size, as a table on which a runtime switches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from hocket.cli import options
from hocket.cli.command import Option, Panel
from hocket.cli.compare import FIDELITY_NOTES, print_refused
from hocket.cli.form import Form, csv_text
from hocket.cli.groups import Nodes, Planning, Simulation, Tasks
from hocket.cli.numbers import RATES, UNIT, common, share_of
from hocket.cli.table import Table, table_of
from hocket.collectives.collective import collective_on
from hocket.collectives.custom import is_own
from hocket.collectives.sizes import sizes_of
from hocket.comparison.pareto import SIZES, Pareto
from hocket.comparison.pareto import pareto as find_front
from hocket.comparison.size_table import ParetoOptions, ParetoPoint, ParetoRange
from hocket.errors import SpecError
from hocket.files.atomic import write_text
from hocket.topology.build import build_topology
from hocket.units import format_size, shown


@dataclass(frozen=True)
class Shown(Form):
    """Options for the output of a size table."""

    output: Annotated[
        str | None,
        options.output_file(
            "Write the table to this .csv file.", ".csv", more="; --json prints all there is"
        ),
    ] = None
    plot: options.Plot = None
    why: Annotated[
        bool, Option("--why", "--verbose", "-v", help="Explain why algorithms make no plan here.")
    ] = False


def pareto(
    kind: options.Kind = "all-reduce",
    *,
    network: Nodes,
    task: Tasks,
    algorithms: options.Algorithms = None,
    front: Annotated[ParetoOptions, Panel("Front", rare=True)],
    search: Planning,
    simulation: Simulation,
    output: Shown,
) -> None:
    """Find the fastest plan of each size, and the sizes at which another becomes the fastest.

    For example: hocket compare --front all-reduce --topology dgx1_v100 -o table.csv --plot front.png
    """
    planning, fidelity = simulation.planned(search)
    if is_own(kind):
        raise SpecError("COLLECTIVE", f"{shown(kind)} has a size of its own", "use hocket compare")
    spec = network.spec()
    if search.chunk_size is None:
        npus = task.npus or task.process_groups
        options.check_size(spec, kind, algorithms or None, search.chunks, npus=npus)
    topology = build_topology(spec)
    sizes = task.read() if task.size or task.sizes is not None else sizes_of(SIZES)
    if task.process_groups is None:
        first = collective_on(kind, topology, size=sizes[0], npus=task.npus, root=task.root)
        options.announce_plans(first, topology, algorithms or None, planning, len(sizes))
    points: list[ParetoPoint] = []

    def note(point: ParetoPoint) -> None:
        points.append(point)
        rows = sorted(points, key=lambda each: each.size)
        values = [each.to_dict() for each in rows]
        ranges = [ParetoRange(each, each) for each in rows]
        watch.so_far(output.so_far(lambda: values, lambda: table_of(ranges, title="so far")))

    with options.watching() as watch:
        found = find_front(
            kind,
            topology,
            sizes=sizes,
            algorithms=algorithms or None,
            fidelity=fidelity,
            options=planning,
            front=front,
            on_point=note,
            progress=watch,
            npus=task.npus,
            root=task.root,
            process_groups=task.process_groups,
        )
    if output.plot is not None:
        found.plot(output.plot)
    if output.output is not None:
        write_text(Path(output.output), csv_text(found))
    if output.prints("pareto", found.to_dict, lambda: found):
        return
    _print(found)
    print_refused(found.collective.kind, [found.refused], why=output.why or algorithms is not None)


def _print(found: Pareto) -> None:
    first, last = found.points[0], found.points[-1]
    ends = f"{format_size(first.size)} to {format_size(last.size)}"
    if found.collective.kind == "custom":  # several groups, each of this size
        ends += " each"
    title = options.title(found.collective, found.topology, size=ends)
    table = _table(found)
    table.title = title + FIDELITY_NOTES.get(found.fidelity, "")
    console = options.output()
    console.print(table)
    missing = "" if found.is_complete else "; not all was simulated in time (--within)"
    holes = [f"{format_size(low)} to {format_size(high)}" for low, high in found.holes]
    precision = f"switching sizes to {share_of(found.options.precision)}"
    sizes = "1 size" if len(found.points) == 1 else f"{len(found.points)} sizes"
    console.print(f"{sizes} simulated, {precision}; all plans proved{missing}")
    if found.missing:
        console.note(f"not simulated: {', '.join(map(format_size, found.missing))}")
    if holes:
        console.note(
            f"not known where the plan changes: {', '.join(holes)}; keep the row above there"
        )
    for each in dict.fromkeys((first, last)):
        console.note(f"bound of {format_size(each.size)}: {each.witness}")


def _table(found: Pareto) -> Table:
    rates = common(
        [rate for each in found for rate in (each.last.algbw, each.last.busbw)], RATES, UNIT
    )
    table = Table(by_row=True)
    table.add_rows(found, rates=rates)
    return table
