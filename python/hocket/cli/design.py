"""``hocket sweep design``: the best network for a budget."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from hocket.cli import complete, options
from hocket.cli.command import Argument, Option, Panel
from hocket.cli.form import Form
from hocket.cli.groups import Given
from hocket.cli.numbers import share_of
from hocket.cli.table import Table, table_of
from hocket.sweeps.design_options import TRAINED, DesignOptions
from hocket.units import format_time_ps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hocket.sweeps.design import Design, Designed

_MOST_ROWS = 10
_MOST_REASONS = 3


@dataclass(frozen=True)
class Bought:
    """The wanted network and its budget."""

    panel: ClassVar[str] = "Network"

    npus: Annotated[
        int, Option("--npus", metavar="N", help="Number of NPUs that the network joins.")
    ]
    budget: Annotated[
        float,
        Option("--budget", "-b", help="Largest cost of the network, in the units of the prices."),
    ]
    costs: Annotated[
        str,
        Option("--costs", help="A .yml file with prices of links and switches (docs/sweeps.md)."),
    ]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The model that is trained, instead of a collective."""

    panel: ClassVar[str] = "Training"

    workload: Annotated[
        str | None,
        Option(
            "--workload",
            metavar="MODEL",
            complete=complete.models,
            help="A shipped workload or a file; its training iteration is timed.",
        ),
    ] = None
    given: Annotated[Given, Panel("Training", only=TRAINED, of=DesignOptions)]


@dataclass(frozen=True)
class Written(Form):
    """The file of the best network, and options for the output; the rows of CSV are the networks."""

    output: Annotated[
        str | None,
        options.output_file("Write the best network to this .yml topology file.", ".yml", ".yaml"),
    ] = None


def design(
    kind: Annotated[
        str,
        Argument(
            metavar="COLLECTIVE",
            complete=complete.collectives,
            help="all-reduce, reduce-scatter, all-gather, broadcast, reduce, gather, scatter, all-to-all.",
        ),
    ] = "all-reduce",
    *,
    bought: Bought,
    size: options.FileOrSize = None,
    trained: Trained,
    given: Annotated[Given, Panel("Candidates", but=TRAINED, of=DesignOptions)],
    output: Written,
) -> None:
    """Find the network within a budget on which a collective or training iteration is fastest.

    For example: hocket sweep design all-reduce --npus 16 --size 64MB --costs prices.yml --budget 9000
    -o best.yml
    """
    from hocket.sweeps.design import design_network
    from hocket.topology.costs import costs_from_file

    asked = DesignOptions(**trained.given, **given)
    so_far: dict[str, Designed] = {}

    def note(one: Designed) -> None:
        so_far[one.network] = one
        rows = sorted(so_far.values(), key=lambda each: each.time_ps)
        watch.best(f"best {rows[0].network} {format_time_ps(int(rows[0].time_ps))}", 0, 0)
        values = [each.to_dict() for each in rows]
        watch.so_far(output.so_far(lambda: values, lambda: _table("so far", rows[:_MOST_ROWS])))

    with options.watching() as watch:
        found = design_network(
            kind,
            npus=bought.npus,
            budget=bought.budget,
            costs=costs_from_file(Path(bought.costs)),
            size=size,
            workload=trained.workload,
            options=asked,
            on_design=note,
            progress=watch,
        )
    if output.output is not None:
        found.save(output.output)

    def document() -> dict[str, Any]:
        return {**found.to_dict(), "file": output.output}

    if not output.prints("design", document, lambda: found):
        _print(found, output.output)


def _print(found: Design, file: str | None) -> None:
    console = options.output()
    title = f"{found.task} among {found.npus} NPUs, for {found.budget:,g}"
    console.print(_table(title, found.designs[:_MOST_ROWS]))
    if len(found.pareto_front) > 1:
        console.print(_table("time against cost", found.pareto_front))
    faster = f"{share_of(found.worth)} faster" if found.worth else "faster"
    sure = f"none of the others can be {faster} than the first"
    if not found.is_exhausted:
        sure = "others may be faster (--most-evaluated)"
    if found.best.bound_ps is None:
        sure = "all of them" if found.is_exhausted else "others may be faster (--most-evaluated)"
    console.print(f"{found.candidates:,} candidates, {found.evaluated:,} planned for: {sure}")
    for reason, count in [*found.refused.items()][:_MOST_REASONS]:
        console.note(f"no plan for {count:,}: {reason}")
    if file is not None:
        console.print(f"the first is in {file}")


def _table(title: str, rows: Sequence[Designed]) -> Table:
    return table_of(rows, *(["gap"] if rows[0].bound_ps is None else []), title=title)
