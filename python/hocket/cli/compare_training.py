"""``hocket train --compare``: networks, parallelism and algorithms for a training, ranked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from hocket._checks import did_you_mean, whole
from hocket.cli import complete, options
from hocket.cli.command import Argument, Option, Panel
from hocket.cli.form import Form
from hocket.cli.groups import RARE_IN_TRAINING, Given
from hocket.cli.table import NEVER, Table, table_of
from hocket.cli.wording import pasted
from hocket.collectives.collective import tell_step, within_step
from hocket.errors import SpecError
from hocket.topology.text import label_of
from hocket.training.options import TrainingOptions
from hocket.units import shown

if TYPE_CHECKING:
    from hocket._core import Topology
    from hocket.training.comparison import TrainingComparison, TrainingRow
    from hocket.training.search import ParallelSearch

Model = Annotated[
    str,
    Argument(
        metavar="MODEL",
        complete=complete.models,
        help="A shipped workload (see `hocket workload list`) or a file.",
    ),
]
Topologies = Annotated[
    list[str],
    options.topology_option("A network, as in `hocket compare`. Can be repeated."),
]
Algorithms = Annotated[
    list[str] | None,
    options.algorithm_option(
        "Algorithm of the collectives (see `hocket plan --list`), ideal or none. Can be "
        "repeated. Default: several that apply."
    ),
]
Parallels = Annotated[
    list[str] | None,
    Option(
        "--parallel",
        "-p",
        help="Parallelism of the model, such as dp=64,tp=16. Can be repeated. Default: one "
        "replica per NPU.",
    ),
]
SearchFor = Annotated[
    int | None,
    Option(
        "--search",
        help="Compare the N splits dp x tp x pp that are fastest with ideal collectives, "
        "instead of --parallel.",
    ),
]
Batch = Annotated[
    int | None,
    Option(
        "--batch", help="Samples of all replicas together in an iteration, instead of --samples."
    ),
]


@dataclass(frozen=True)
class Networks:
    """The networks."""

    panel: ClassVar[str] = "Network"

    topology: Topologies
    bandwidth: options.Bandwidth = None
    latency: options.LatencyText = None
    failed: options.Failed = None
    slow: options.SlowParts = None

    def build(self) -> dict[str, Topology]:
        """Make each, by what it is called: files by their names, others as given."""
        built: dict[str, Topology] = {}
        for text in dict.fromkeys(self.topology):
            network = options.read_topology(
                text, self.bandwidth, self.latency, self.failed, self.slow
            )
            is_named = text.endswith((".yml", ".yaml")) or label_of(text) is not None
            name = network.name if is_named else text
            if name in built:
                why = f"two networks are called {shown(name)}"
                raise SpecError("--topology", why, "give one another name, as NAME=NETWORK")
            built[name] = network
        return built


@dataclass(frozen=True)
class Combinations:
    """The combinations."""

    panel: ClassVar[str] = "Combinations"

    algorithms: Algorithms = None
    parallel: Parallels = None
    search: SearchFor = None
    batch: Batch = None


@dataclass(frozen=True)
class Ranking(Form):
    """Options for the output of the comparison."""

    plot: options.Plot = None
    all_algorithms: Annotated[
        bool,
        Option(
            "--all-algorithms",
            "--verbose",
            "-v",
            help="Show all algorithms instead of the best for each network, or for each split of "
            "one.",
        ),
    ] = False
    baseline: Annotated[
        str | None,
        Option(
            "--baseline",
            metavar="NETWORK",
            help="Network, named as in the table, with which the speed of the others is compared.",
        ),
    ] = None


def compare_training(
    model: Model,
    *,
    networks: Networks,
    combinations: Combinations,
    given: Annotated[Given, Panel("Training", rare=RARE_IN_TRAINING, of=TrainingOptions)],
    output: Ranking,
) -> None:
    """Compare training over networks, parallelism and algorithms.

    For example: hocket train --compare resnet152 --topology themis-3d-homo  ·  hocket
    train --compare transformer -t themis-3d-homo -t themis-3d-hetero --search 4
    """
    built = networks.build()
    if combinations.parallel and combinations.search is not None:
        raise SpecError("--search", "tries all splits", "leave --parallel out")
    if "samples" in given and combinations.batch is not None:
        raise SpecError("--batch", "is of all replicas, --samples of each", "leave one of them out")
    given_as = dict(zip(dict.fromkeys(networks.topology), built, strict=True))
    baseline = given_as.get(output.baseline or "", output.baseline)
    if baseline is not None and baseline not in built:
        hint = did_you_mean(baseline, built, f"networks are {', '.join(built)}")
        raise SpecError("--baseline", f"{shown(baseline)} is not compared", hint)
    plot = output.plot
    compared, searches = _run(model, built, combinations, TrainingOptions(**given), output)
    if plot is not None:
        from hocket.plot.compare_training import draw_training_comparison

        draw_training_comparison(compared, Path(plot), _base(compared, baseline))

    def document() -> dict[str, Any]:
        found = {name: each.to_dict() for name, each in zip(built, searches, strict=False)}
        return {**compared.to_dict(), "searches": found}

    if not output.prints("training-comparison", document, lambda: compared):
        is_brief = not (output.all_algorithms or combinations.algorithms)
        _print(compared, searches, baseline, is_brief=is_brief)


def _run(
    model: str,
    networks: dict[str, Topology],
    combinations: Combinations,
    given: TrainingOptions,
    output: Ranking,
) -> tuple[TrainingComparison, list[ParallelSearch]]:
    """Compare; with a search, on each network the splits that were found best there."""
    from hocket.training.comparison import (
        check_algorithms,
        compare_training,
        merged,
    )
    from hocket.training.search import SEARCHED, search_parallels

    algorithms, search = combinations.algorithms or None, combinations.search
    rows: list[TrainingRow] = []

    def note(row: TrainingRow) -> None:
        rows.append(row)
        rows.sort(key=lambda each: -each.samples_per_second)
        best = rows[0]
        watch.best(f"best {best.network}, {best.parallel}, {best.algorithm}", 0, 0)
        values = [each.to_dict() for each in rows]
        watch.so_far(output.so_far(lambda: values, lambda: table_of(rows, title="so far")))

    with options.watching() as watch:
        if search is None:
            compared = compare_training(
                model,
                networks,
                algorithms,
                combinations.parallel or None,
                batch=combinations.batch,
                options=given,
                on_row=note,
                progress=watch,
            )
            return compared, []
        searches, found = [], []
        check_algorithms(algorithms)
        whole("--search", search, *SEARCHED)
        options.starting(f"--search tries every split of {', '.join(networks)}")
        for place, (name, network) in enumerate(networks.items()):
            tell_step(watch, name, place, len(networks))
            best = search_parallels(
                model,
                network.with_name(name),
                batch=combinations.batch,
                most=search,
                options=given,
                on_row=note,
                progress=within_step(watch),
            )
            searches.append(best)
            found.append(
                compare_training(
                    model,
                    {name: network},
                    algorithms,
                    best.parallels,
                    batch=best.rows[0].batch,
                    options=given,
                    on_row=note,
                    progress=within_step(watch),
                )
            )
        return merged(found), searches


def _print(
    compared: TrainingComparison,
    searches: list[ParallelSearch],
    baseline: str | None,
    *,
    is_brief: bool,
) -> None:
    console = options.output()
    batches = sorted({row.batch for row in compared})
    batch = f", {batches[0]:,} samples per iteration" if len(batches) == 1 else ""
    rows = best_rows(compared) if is_brief else list(compared)
    table = Table(title=f"training {compared.workload.name}{batch}")
    table.add_rows(rows)
    base = _base(compared, baseline)
    if baseline is not None:
        ratios = ["–" if base is None else _ratio(row, base) for row in rows]
        table.add("x baseline", ratios, justify="right", leaves=NEVER)
    console.print(table)
    if baseline is not None:
        console.print(f"baseline: {baseline}")
    if len(rows) < len(compared):
        options.note(f"{len(compared) - len(rows)} more combinations (--all-algorithms)")
    for found in searches:
        name = found.rows[0].network
        console.print(
            f"{name}: {len(found.rows)} of {len(found.rows) + len(found.refused)} splits fit; compared: "
            f"{len(found.parallels)}, the fastest by {found.rows[0].algorithm}",
        )
    for line in _left_out(compared):
        console.note(f"left out: {line}")


def _base(compared: TrainingComparison, baseline: str | None) -> TrainingRow | None:
    """Return the best row of the network that the others are compared with."""
    return next((row for row in best_rows(compared) if row.network == baseline), None)


def best_rows(compared: TrainingComparison) -> list[TrainingRow]:
    """Return the best row of each network; for one network, of each split; for one split, all rows."""
    from hocket.training.network import IDEAL, NOTHING

    networks = {row.network for row in compared}
    splits = {str(row.parallel) for row in compared}
    if len(networks) == len(splits) == 1:
        return list(compared)
    real = [row for row in compared if row.algorithm not in (IDEAL, NOTHING)]
    found: dict[str, TrainingRow] = {}
    for row in real or list(compared):  # the best first
        found.setdefault(row.network if len(networks) > 1 else str(row.parallel), row)
    return list(found.values())


def _ratio(row: TrainingRow, base: TrainingRow) -> str:
    return f"{row.samples_per_second / max(base.samples_per_second, 1e-12):.3f}"


def _left_out(compared: TrainingComparison) -> list[str]:
    """Return a line for each reason on a network: which splits if not all, which algorithms if not all."""
    by_split: dict[tuple[str, str, str], list[str]] = {}
    for each in compared.refused:
        remedy = pasted(each.instead)
        reason = f"{each.why}; {remedy}" if remedy else each.reason
        key = (each.network, reason, str(each.parallel))
        by_split.setdefault(key, []).append(each.algorithm)
    ran = {(row.network, str(row.parallel)) for row in compared}
    splits: dict[tuple[str, str, str], list[str]] = {}
    for (network, reason, split), algorithms in by_split.items():
        names = ", ".join(algorithms) if (network, split) in ran else ""
        splits.setdefault((network, names, reason), []).append(split)
    tried = ran | {(each.network, str(each.parallel)) for each in compared.refused}
    count = Counter(network for network, _ in tried)
    return [
        ", ".join(
            [network]
            + (["; ".join(found)] if len(found) < count[network] or not names else [])
            + ([names] if names else [])
        )
        + f": {reason}"
        for (network, names, reason), found in splits.items()
    ]
