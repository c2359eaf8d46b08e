"""``hocket sweep design``: the best network for a budget."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from hocket.cli import complete, options
from hocket.cli.command import Argument, Option
from hocket.cli.form import Form
from hocket.cli.numbers import TIMES, percent, significant
from hocket.cli.table import NEVER, Table
from hocket.errors import SpecError
from hocket.files.atomic import check_target
from hocket.units import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hocket.sweeps.design import Design, Designed
    from hocket.sweeps.design_options import DesignOptions

_MOST_ROWS = 10
_MOST_REASONS = 3


@dataclass(frozen=True)
class Candidates:
    """Which networks are tried."""

    panel: ClassVar[str] = "Candidates"

    kinds: Annotated[
        str | None,
        Option(
            "--kinds",
            metavar="KIND,...",
            help="Kinds of dimensions: Ring, FullyConnected, Switch; and clos, two or three "
            "levels of switches. Default: all.",
        ),
    ] = None
    dimensions: Annotated[
        int, Option("--dimensions", help="Largest number of dimensions of a product.")
    ] = 3
    steps: Annotated[
        int,
        Option(
            "--steps",
            help="How finely to split the bandwidth budget between dimensions: N equal steps.",
        ),
    ] = 4
    oversubscription: Annotated[
        str,
        Option(
            "--oversubscription",
            metavar="RATIO,...",
            help="Oversubscription of a Clos: bandwidth below a ToR divided by the bandwidth "
            "above it.",
        ),
    ] = "1,2,4"
    link_latency: Annotated[
        str, Option("--latency", help='Latency of each link, such as "700 ns".')
    ] = "700 ns"
    max_bandwidth: Annotated[
        str | None,
        Option("--max-bandwidth", help='Largest bandwidth of a link, such as "50 GB/s".'),
    ] = None
    levels: Annotated[
        str,
        Option(
            "--levels",
            metavar="SHARE,...",
            help="Shares of the budget that are also searched, for the Pareto front of time and "
            "cost.",
        ),
    ] = "0.25,0.5"
    most_evaluated: Annotated[
        int,
        Option("--most", help="Largest number of candidates that get plans, at each level."),
    ] = 400


@dataclass(frozen=True)
class Bought:
    """The wanted network and its budget."""

    panel: ClassVar[str] = "Network"

    npus: Annotated[int, Option("--npus", "-n", help="Number of NPUs that the network joins.")]
    budget: Annotated[
        float,
        Option("--budget", "-b", help="Largest cost of the network, in the units of the prices."),
    ]
    costs: Annotated[
        str, Option("--costs", help="A .yml file with the prices of links and switches.")
    ]


@dataclass(frozen=True)
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
    parallel: Annotated[
        str | None,
        Option(
            "--parallel",
            "-p",
            help="Parallelism of the model, such as dp=8,tp=2. Default: one replica per NPU.",
        ),
    ] = None
    samples: Annotated[
        int | None, Option("--samples", help="Samples per replica. Default: 32.")
    ] = None
    npu: Annotated[
        str | None,
        Option(
            "--npu",
            complete=complete.devices,
            help="Accelerator that computes, such as h100. Default: a100.",
        ),
    ] = None
    recompute: Annotated[
        bool,
        Option(
            "--recompute", help="Compute forward passes again in the backward pass, to save memory."
        ),
    ] = False


@dataclass(frozen=True)
class Written(Form):
    """The file of the best network, and options for the output; the rows of CSV are the networks."""

    output: Annotated[
        str | None,
        Option("--output", "-o", help="Write the best network to this .yml topology file."),
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
    algorithm: options.Algorithms = None,
    trained: Trained,
    candidates: Candidates,
    workers: Annotated[
        int | None,
        Option("--workers", "-w", help="Number of processes. Default: one per core."),
    ] = None,
    output: Written,
) -> None:
    """Find the network within a budget on which a collective or training iteration is fastest.

    For example: hocket sweep design all-reduce --npus 16 --size 64MB --costs prices.yml --budget 9000
    -o best.yml
    """
    from hocket.sweeps.design import design_network
    from hocket.topology.costs import costs_from_file

    if output.output is not None:
        if Path(output.output).suffix not in (".yml", ".yaml"):
            why = f"{shown(output.output)} does not end in .yml"
            raise SpecError("--output", why, "name a .yml file")
        check_target(Path(output.output))
    asked = _options(candidates, trained, algorithm, workers)
    with options.watching() as watch:
        found = design_network(
            kind,
            npus=bought.npus,
            budget=bought.budget,
            costs=costs_from_file(Path(bought.costs)),
            size=size,
            workload=trained.workload,
            options=asked,
            progress=watch,
        )
    if output.output is not None:
        found.save(output.output)

    def document() -> dict[str, Any]:
        return {**found.to_dict(), "file": output.output}

    if not output.prints("design", document, lambda: found):
        _print(found, output.output)


def _options(
    given: Candidates, trained: Trained, algorithm: list[str] | None, workers: int | None
) -> DesignOptions:
    from hocket.sweeps.design_options import DesignOptions

    more: dict[str, Any] = {}
    if given.kinds is not None:
        more["kinds"] = [each.strip() for each in given.kinds.split(",")]
    return DesignOptions(
        most_dimensions=given.dimensions,
        steps=given.steps,
        oversubscription=_numbers("--oversubscription", given.oversubscription),
        latency=given.link_latency,
        max_bandwidth=given.max_bandwidth,
        algorithms=algorithm or None,
        levels=_numbers("--levels", given.levels),
        most_evaluated=given.most_evaluated,
        parallel=trained.parallel,
        samples=trained.samples,
        npu=trained.npu,
        recompute=trained.recompute,
        workers=workers,
        **more,
    )


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(each) for each in text.split(",") if each.strip()]
    except ValueError:
        right = "write numbers with commas between them, as 1,2,4"
        raise SpecError(option, f"{shown(text)} is not a list of numbers", right) from None


def _print(found: Design, file: str | None) -> None:
    console = options.output()
    title = f"{found.task} among {found.npus} NPUs, for {found.budget:,g}"
    console.print(_table(title, found.designs[:_MOST_ROWS]))
    if len(found.front) > 1:
        console.print(_table("time against cost", found.front))
    sure = "no other of them can be quicker than the first"
    if not found.is_exhausted:
        sure = "others may be quicker (--most)"
    if found.best.bound_ps is None:
        sure = "all of them" if found.is_exhausted else "others may be quicker (--most)"
    console.print(f"{found.candidates:,} candidates, {found.evaluated:,} planned for: {sure}")
    for reason, count in [*found.refused.items()][:_MOST_REASONS]:
        console.note(f"no plan for {count:,}: {reason}")
    if file is not None:
        console.print(f"the first is in {file}")


def _table(title: str, rows: Sequence[Designed]) -> Table:
    table = Table(title=title)
    has_bound = rows[0].bound_ps is not None
    table.add_column("network", leaves=NEVER)
    table.add_column("cost", justify="right", leaves=NEVER)
    table.add_column("time", units=TIMES, leaves=NEVER)
    if has_bound:
        table.add_column("above bound", justify="right", unit="%")
    table.add_column("algorithm")
    for each in rows:
        gap = []
        if each.bound_ps is not None:
            gap = [percent(each.time_ps / max(each.bound_ps, 1) - 1)]
        table.add_row(each.network, significant(each.cost), each.time_ps, *gap, each.algorithm)
    return table
