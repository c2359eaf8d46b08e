"""``hocket compare``: every algorithm that applies, ranked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hocket import _core
from hocket._results import picoseconds
from hocket.cli import options
from hocket.cli.certificate import RATE_ONLY
from hocket.cli.command import Option
from hocket.cli.form import Form, Rows
from hocket.cli.groups import Nodes, Planning, Simulation, Tasks
from hocket.cli.numbers import RATES, common, share_of
from hocket.cli.table import NEVER, Table, cell_of, row_of, shown_of
from hocket.collectives.bounds import assumed
from hocket.collectives.collective import StepsOf
from hocket.comparison.compare import Comparison, Entry
from hocket.comparison.compare import compare as run_comparison
from hocket.comparison.sizes import SizeComparison
from hocket.nccl.gpus import check_gpu
from hocket.nccl.prediction import NcclPrediction
from hocket.plans.algorithms import algorithms as known_algorithms
from hocket.plans.algorithms import unheeded
from hocket.simulation.run import Run
from hocket.topology.build import build_topology
from hocket.units import counted, format_size, format_time_ps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_BOUNDS = 4
"""Sizes of which the bound's reason is printed for each; of more, for the smallest and the largest."""
FIDELITY_NOTES = {"flow": ", as flows that share links", "packet": ", packet by packet"}
"""What a title says of a fidelity other than link."""
ALONE = ", links alone (hocket predict: with launch and kernels)"
"""What it says of link fidelity, if there is a profile."""


@dataclass(frozen=True)
class Shown(Form):
    """Options for the output of a comparison."""

    plot: options.Plot = None
    why: Annotated[
        bool,
        Option(
            "--why",
            "--verbose",
            "-v",
            help="Explain why algorithms make no plan here.",
        ),
    ] = False


def compare(
    kind: options.Kind = "all-reduce",
    *,
    network: Nodes,
    task: Tasks,
    algorithms: options.Algorithms = None,
    search: Planning,
    simulation: Simulation,
    output: Shown,
) -> None:
    """Plan, prove and simulate a collective with every algorithm that applies, fastest first.

    For example: hocket compare all-reduce --topology dgx1_v100 --size 256MB --failed gpu0,gpu1  ·
    hocket compare all-gather --topology mesh:9x9 --bandwidth "25 GB/s" --latency "21 ns" --size
    64MB --plot mesh.png
    """
    planning, fidelity = simulation.planned(search)
    spec = network.spec()
    if search.chunk_size is None:
        options.check_size(
            spec, kind, algorithms or None, search.chunks, npus=task.npus or task.process_groups
        )
    topology = build_topology(spec)
    collectives = task.collectives(kind, topology)
    comparisons = []
    options.announce_plans(collectives[0], topology, algorithms or None, planning, len(collectives))
    found: dict[tuple[int, str], Entry] = {}
    with options.watching() as watch:
        for place, collective in enumerate(collectives):
            about = f"{format_size(collective.size)}, " if len(collectives) > 1 else ""

            def note(name: str, count: int, run: Run, size: int = collective.size) -> None:
                before = found.get((size, name))
                if before is None or run.time_ps < before.run.time_ps:
                    found[size, name] = Entry(name, count, run)
                rows = sorted(found.items(), key=lambda row: (row[0][0], row[1].run.time_ps))
                best = next(entry for (of, _), entry in rows if of == size)
                what = f"best {best.algorithm} {format_time_ps(best.run.time_ps)}"
                watch.best(what, 0, 0)
                watch.so_far(_so_far(rows, output))

            comparisons.append(
                run_comparison(
                    collective,
                    topology,
                    algorithms=algorithms or None,
                    fidelity=fidelity,
                    options=planning,
                    on_result=note,
                    progress=StepsOf(watch, place, len(collectives), about),
                    gpu=check_gpu(spec, None),
                )
            )
    if output.plot is not None:
        _draw(comparisons, Path(output.plot))
    if output.prints(*_data(comparisons)):
        return
    links = ALONE if spec.profile is not None else ""
    _print(comparisons, planning.routing, links, why=output.why or algorithms is not None)
    options.note_limit(algorithms or [], planning)
    for option, names in unheeded(algorithms or [], planning).items():
        options.note(f"--{option.replace('_', '-')} is not for {', '.join(names)}")


def _so_far(rows: Sequence[tuple[tuple[int, str], Entry]], output: Shown) -> str:
    """Return what each algorithm that is done has come to, without bounds, which take longer."""
    figures = ("chunks", "transfers", "time_ps", "algbw_bytes_per_s")
    values = [
        {"size_bytes": size, "algorithm": name}
        | dict(
            zip(
                figures,
                (each.chunks, each.transfers, each.run.time_ps, each.run.algbw),
                strict=True,
            )
        )
        for (size, name), each in rows
    ]

    def shown() -> Table:
        table = Table(title="so far")
        if len({size for (size, _), _ in rows}) > 1:
            table.add("size", [format_size(size) for (size, _), _ in rows], justify="right")
        table.add_rows([each for _, each in rows], "bound_ps", "gap")
        return table

    return output.so_far(lambda: values, shown)


def _data(
    comparisons: Sequence[Comparison],
) -> tuple[str, Callable[[], Mapping[str, Any]], Callable[[], Rows]]:
    """Return them as data: the format and the document of JSON, and the rows of a table."""

    def rows() -> Rows:
        return [
            {"size_bytes": each.collective.size, **row}
            for each in comparisons
            for row in each.to_frame().to_pylist()
        ]

    if len(comparisons) == 1:
        return "comparison", comparisons[0].to_dict, rows
    return "comparisons", lambda: {"comparisons": [each.to_dict() for each in comparisons]}, rows


def _draw(comparisons: Sequence[Comparison], path: Path) -> None:
    if len(comparisons) == 1:
        from hocket.plot.compare import draw_comparison

        draw_comparison(comparisons[0], path)
    else:
        SizeComparison(tuple(comparisons)).plot(path)


def _span(comparisons: Sequence[Comparison]) -> str:
    sizes = [each.collective.size for each in comparisons]
    ends = f"{format_size(min(sizes))} to {format_size(max(sizes))}"
    return f"{len(comparisons)} sizes from {ends}"


def _print(comparisons: Sequence[Comparison], routing: str, links: str, *, why: bool) -> None:
    first = comparisons[0]
    collective = first.collective
    title = options.title(collective, first.topology)
    if len(comparisons) > 1:
        title = options.title(collective, first.topology, size=_span(comparisons))
    table = _table(comparisons)
    table.title = title + FIDELITY_NOTES.get(first.best.run.fidelity, links)
    console = options.output()
    console.print(table)
    proved = all(entry.plan.is_verified for each in comparisons for entry in each)
    proof = "all plans proved" if proved else "not all plans proved"
    if len(comparisons) == 1:
        bound = first.bound
        reason = f"{bound.witness}{assumed(bound, collective, first.topology)}"
        console.print(f"bound {format_time_ps(bound.time_ps)}: {reason}; {proof}")
        if first.auto is not None:
            above = share_of(_core.gap(first.best.run.time_ps, bound.time_ps))
            console.print(f"auto picks {first.auto}, {above} above the bound")
    else:
        console.print(
            f"{crossover([(c.collective.size, c.best.algorithm) for c in comparisons])}; {proof}"
        )
        few = len(comparisons) <= MAX_BOUNDS
        for each in comparisons if few else (first, comparisons[-1]):
            console.note(f"bound of {format_size(each.collective.size)}: {each.bound.witness}")
    for each in comparisons:
        if each.best.plan.fit is not None:
            about = f"{format_size(each.collective.size)}: " if len(comparisons) > 1 else ""
            console.print(f"{about}{each.best.algorithm} {each.best.plan.fit}")
    for each in comparisons if len(comparisons) <= MAX_BOUNDS else (first, comparisons[-1]):
        if each.nccl is not None:
            about = f"{format_size(each.collective.size)}: " if len(comparisons) > 1 else ""
            console.note(f"nccl: {about}{_pick(each.nccl)}")
    if len(comparisons) == 1:
        for entry in first:
            for packing in entry.plan.trees.packings if entry.plan.trees is not None else ():
                console.note(f"{entry.algorithm}: {packing}")
        if any(entry.plan.trees is not None for entry in first):
            console.note(RATE_ONLY)
    for each in comparisons:
        if any(entry.run.equal_links[0] for entry in each):
            about = f"{format_size(each.collective.size)}: " if len(comparisons) > 1 else ""
            console.note(f"{about}equal paths: {routing}; idle links: {_idle(each)}")
    print_refused(collective.kind, [each.refused for each in comparisons], why=why)


def print_refused(kind: str, refused: Sequence[Mapping[str, str]], *, why: bool) -> None:
    """Return how many algorithms make no plan of a kind, and why where that was asked."""
    kinds = {each.name: each.kinds for each in known_algorithms()}
    left_out: dict[str, list[str]] = {}
    for reasons in refused:
        for name, reason in reasons.items():
            names = left_out.setdefault(reason, [])
            if kind in kinds.get(name, [kind]) and name not in names:
                names.append(name)
    count = len({name for names in left_out.values() for name in names})
    if why:
        for reason, names in left_out.items():
            if names:
                options.say(f"left out: {', '.join(names)}: {reason}")
    elif count:
        plural = " does" if count == 1 else "s do"
        options.note(f"{count} algorithm{plural} not apply here (--why)")


def crossover(best: Sequence[tuple[int, str]]) -> str:
    """Return which algorithm is the fastest at which sizes [bytes], from small ones to large ones."""
    runs: list[tuple[str, list[int]]] = []
    for size, name in sorted(best):
        if not runs or runs[-1][0] != name:
            runs.append((name, []))
        runs[-1][1].append(size)
    if len(runs) == 1:
        return f"fastest at every size: {runs[0][0]}"
    parts = []
    for i, (name, sizes) in enumerate(runs):
        if i == 0:
            where = f"up to {format_size(sizes[-1])}"
        elif i == len(runs) - 1:
            where = f"from {format_size(sizes[0])}"
        elif len(sizes) == 1:
            where = f"at {format_size(sizes[0])}"
        else:
            where = f"from {format_size(sizes[0])} to {format_size(sizes[-1])}"
        parts.append(f"{name} {where}")
    return f"fastest: {', '.join(parts)}"


def _idle(comparison: Comparison) -> str:
    """Return which algorithms leave links of equal paths idle."""
    idle = [
        f"{entry.algorithm} {options.idle_links(entry.run)}"
        for entry in comparison
        if entry.run.equal_links[1]
    ]
    return ", ".join(idle) or "none"


def _table(comparisons: Sequence[Comparison]) -> Table:
    """Make the table of one size or several; each column has one unit."""
    several = len(comparisons) > 1
    runs = [entry.run for each in comparisons for entry in each]
    shown = shown_of(Entry, *(["bound_ps"] if not several else []))
    table = Table(by_section=True)
    if several:
        table.add_column("size", justify="right", leaves=NEVER)
    table.add_columns(
        shown, common([rate for run in runs for rate in (run.algbw, run.busbw)], RATES)
    )
    for each in comparisons:
        head = [format_size(each.collective.size)] * several
        for entry in each:
            table.add_row(*head, *row_of(shown, entry))
        if each.nccl is not None:
            if not several:
                table.add_section()
            predicted = _predicted(each, each.nccl)
            table.add_row(*head, *(cell_of(field, predicted.get(field.key)) for field in shown))
        if several:
            table.add_section()
    return table


def _predicted(comparison: Comparison, nccl: NcclPrediction) -> dict[str, Any]:
    """Return what NCCL predicts, which is not the time of a plan of ours."""
    time_ps = picoseconds(nccl.seconds)
    algbw = comparison.collective.size / nccl.seconds
    run = comparison.best.run
    bound = comparison.bound.time_ps
    return {
        "algorithm": "nccl",
        "time_ps": time_ps,
        "algbw_bytes_per_s": algbw,
        "busbw_bytes_per_s": algbw * run.busbw / run.algbw,
        "bound_ps": bound,
        "gap": _core.gap(time_ps, bound),
    }


def _pick(nccl: NcclPrediction) -> str:
    plan = "nccl-nvls" if nccl.algorithm.startswith("nvls") else f"nccl-{nccl.algorithm}"
    below = "" if nccl.below_bound is None else f"; it stands below the bound: {nccl.below_bound}"
    return (
        f"{nccl.library} {nccl.version} picks {nccl.algorithm} with {nccl.protocol} on "
        f"{counted(nccl.channels, 'channel')} and predicts this; "
        f"{plan} is the plan, without its protocol{below}"
        f"{''.join(f'; {note}, as in the plan' for note in nccl.notes)}"
    )
