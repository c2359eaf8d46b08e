"""``hocket compare --table`` and ``hocket run --tune``: tables of plans that runtimes read."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from hocket.cli import options
from hocket.cli.command import Option, Panel
from hocket.cli.groups import Given
from hocket.cli.table import Table, table_of
from hocket.collectives.collective import collective_on
from hocket.collectives.custom import is_own
from hocket.collectives.sizes import sizes_of
from hocket.errors import Error, SpecError
from hocket.plans.synthesis import PlanOptions
from hocket.runtime.options import MeasureOptions
from hocket.runtime.programs import TOPOLOGY
from hocket.runtime.table import PlanTable
from hocket.topology.sources import as_topology
from hocket.tuning.options import TuneOptions
from hocket.tuning.tune import autotune
from hocket.units import shown

if TYPE_CHECKING:
    from hocket.tuning.tune import TunedSize, Tuning


@dataclass(frozen=True)
class Where:
    """Among how many ranks, and on which network."""

    panel: ClassVar[str] = "Ranks"

    ranks: Annotated[
        int | None,
        Option("--np", "-n", help="Number of ranks. Default: the NPUs of the topology."),
    ] = None
    topology: Annotated[
        str | None,
        options.topology_option(
            "Network for plans and predictions. Default: all ranks reach each other equally well."
        ),
    ] = None
    sizes: Annotated[
        str,
        Option("--sizes", metavar="SIZES", help="Bytes of the whole vector, such as 1K:64M:x8."),
    ] = "1K:64M:x8"


Output = Annotated[
    str | None,
    options.output_file(
        "Add the rows to the table in this .json file. Default: the table that hocket "
        "keeps for you.",
        ".json",
    ),
]


def predict_table(
    kind: options.Kind = "all-reduce",
    *,
    where: Where,
    algorithms: options.Algorithms = None,
    given: Annotated[TuneOptions, Panel("Picking", only=["tolerance"])],
    output: Output = None,
    json: options.Json = False,
) -> None:
    """Keep a table of the plan for each size, by which runtimes choose.

    For example: hocket compare --table -t mesh:2x2 -o table.json
    """
    _tuned(kind, where, algorithms, given, output, json=json)


def tune(
    kind: options.Kind = "all-reduce",
    *,
    where: Where,
    algorithms: options.Algorithms = None,
    given: Annotated[Given, Panel("Measuring", but=["measure"], of=TuneOptions)],
    output: Output = None,
    json: options.Json = False,
) -> None:
    """Measure the most promising plans in turns, and keep a table of the best for each size.

    For example: hocket run --tune --np 4
    """
    MeasureOptions(**{name: given[name] for name in ("dtype", "op") if name in given})
    chosen = TuneOptions(measure=True, **given)
    _tuned(kind, where, algorithms, chosen, output, json=json)


def _tuned(
    kind: str,
    where: Where,
    algorithms: list[str] | None,
    chosen: TuneOptions,
    output: str | None,
    *,
    json: bool,
) -> None:
    if is_own(kind):
        raise SpecError("COLLECTIVE", f"{shown(kind)} is a file", "name a kind, as all-reduce")
    if output is not None and Path(output).exists():
        PlanTable.load(output)
    picked: list[TunedSize] = []

    def note(size: TunedSize) -> None:
        picked.append(size)
        if json:
            rows = {"rows": [each.to_dict() for each in picked]}
            watch.so_far(options.result_text("stopped", rows))
        else:
            table = table_of(picked, title="so far", by_row=True)
            watch.so_far("\n".join(table.lines()))

    if not chosen.measure:
        with suppress(Error):  # which the prediction tells of
            _announce(kind, where, algorithms)
    with options.watching() as watch:
        sizes_of(where.sizes)
        found = autotune(
            kind,
            ranks=where.ranks,
            topology=where.topology,
            sizes=where.sizes,
            algorithms=algorithms or None,
            options=chosen,
            on_size=note,
            progress=watch,
        )
    file = found.save(output)
    if json:
        options.print_result("tuning", {**found.to_dict(), "file": str(file)})
        return
    console = options.output()
    console.print(_table(found))
    console.print(f"written to {file}")
    if output is None:
        console.note('use it by hk.runtime.connect(..., table="tuned") or HOCKET_TABLE=tuned')


def _announce(kind: str, where: Where, algorithms: list[str] | None) -> None:
    """Print what the plans of all sizes take, if their transfers are many."""
    topology = as_topology(where.topology or TOPOLOGY.format(where.ranks))
    sizes = sizes_of(where.sizes)
    largest = collective_on(kind, topology, size=max(sizes))
    names, planning = algorithms or None, PlanOptions()
    options.announce_plans(largest, topology, names, planning, len(sizes), may_cut=False)


def _table(found: Tuning) -> Table:
    how = "measured" if found.options.measure else f"predicted on {found.topology}"
    title = f"{found.collective} among {found.ranks} ranks, {how}"
    return table_of(found, title=title, by_row=True)
