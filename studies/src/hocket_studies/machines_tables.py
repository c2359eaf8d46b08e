"""``hocket reproduce machines``: published sweeps of real machines, predicted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.numbers import percent
from hocket.cli.options import Watch
from hocket.cli.table import Table
from hocket.fitting.errors import BANDS, ErrorSummary
from hocket.units import format_size
from hocket_studies.harness import Into, Report, as_csv, markdown
from hocket_studies.machines import Check, MachinesResult, family_profiles, reproduce_machines
from hocket_studies.machines_catalogue import load_sets
from hocket_studies.machines_composed import class_files
from hocket_studies.machines_picks import WHATS

_MIB = 1 << 20
_WORST = 12
_SHOWN = 3
_LEGEND = (
    "Each cell: median / 90th percentile of the error in per cent, and of how many times. Every time was",
    "predicted without having been fitted: *alone*, a fifth of the sizes of each sweep; *family*, the same",
    "with one set of constants for all sweeps; *other machine*, all times of a set, with constants of the",
    "other sets of its family; *owner left out*, all times of an owner, with constants of classes, fitted",
    "to all others; *schedules*, a fifth of the sizes of known schedules of thread blocks;",
    "*other schedules*, numbers of channels and instances that were not fitted.",
)


def study(
    *,
    data: Annotated[
        str | None,
        Option(
            "--data",
            metavar="DIR",
            help="Folder with more published sets, as tables. Default: the shipped ones.",
        ),
    ] = None,
    profiles: Annotated[
        bool,
        Option("--profiles", help="Also write the fitted profiles of machines and classes there."),
    ] = False,
    into: Into,
) -> None:
    """Predict published sweeps of real machines from what was not fitted, and state the error.

    For example: hocket reproduce machines --output machines
    """

    def report(watch: Watch) -> Report:
        folder = None if data is None else Path(data)
        result = reproduce_machines(folder, on_case=watch)
        files = {"machines.csv": _csv(result), "machines.md": as_page(result)}
        if profiles:
            watch.note("fitting profiles")
            found = family_profiles(folder)
            files |= {f"machines/{name}.yml": own.as_yaml() for name, own in found.items()}
            if result.composed is not None:
                files |= class_files(load_sets(folder), result.composed, result.expected)
        from hocket_studies.machines_pictures import draw_errors

        pictures = {"machines.png": partial(draw_errors, result)}
        return Report(as_json(result), partial(_show, result), pictures, files)

    into.write("machines", report)


def _show(result: MachinesResult, console: Printer) -> None:
    table = Table(
        title="error of what was not fitted: median / 90th percentile (of how many times)"
    )
    table.add_column("question")
    table.add_column("of")
    for name in ("below 1 MiB", "from 1 MiB", "all"):
        table.add_column(name, justify="right", unit="%")
    for check in result.checks:
        below, above = check.split(_MIB)
        cells = [_cell(spread) for spread in (below, above, check.spread())]
        table.add_row(check.question, check.what, *cells)
    console.print(table)
    if result.expected:
        console.print(_stated(result))
    if result.picks:
        console.print(_picks(result))
    for line in _logged(result):
        console.print(line)
    for name in result.orders:
        console.print(_order(result, name))
    console.print(f"{len(result.sets)} sets")


def _stated(result: MachinesResult) -> Table:
    table = Table(title="machines of other owners: the error to expect, and how often it held")
    for name in ("machines", "sizes"):
        table.add_column(name)
    for name in ("owners", "times"):
        table.add_column(name, justify="right")
    for name in ("median factor", "9 of 10 within"):
        table.add_column(name, justify="right")
    table.add_column("held", justify="right", unit="%")
    for row in _stated_rows(result):
        table.add_row(*row)
    return table


def _stated_rows(result: MachinesResult) -> Iterator[list[str]]:
    for each in sorted(result.expected, key=lambda each: -each.factor):
        held, times = result.held[each.of, each.sizes]
        counts = [str(each.owners), str(each.times)]
        factors = [f"{each.median:.2f}", f"{each.factor:.2f}"]
        yield [each.of, each.sizes, *counts, *factors, percent(held / times)]


def _picks(result: MachinesResult) -> str:
    wrong = [each for each in result.picks if each.stated != each.modelled]
    text = f"NCCL's pick: {result.right_picks} of {len(result.picks)} as stated"
    first = [
        f"{each.row.kind} of {format_size(each.row.size)} on {each.row.npus} GPUs of {each.file}: "
        f"{each.modelled}, not {each.stated}"
        for each in wrong[:_SHOWN]
    ]
    return "; ".join([text, *first])


def _logged(result: MachinesResult) -> Iterator[str]:
    """Return how much of what logs state the model says, by nodes, and what it says otherwise."""
    for name, is_several in (("one node", False), ("several nodes", True)):
        facts = [each for each in result.logged if (each.nodes > 1) == is_several]
        if not facts:
            continue
        counts = []
        for what in WHATS:
            own = [each.is_right for each in facts if each.what == what]
            counts += [f"{what} {sum(own)} of {len(own)}"] if own else []
        owners = len({each.owner for each in facts})
        yield f"NCCL's logs, {name}, {owners} owners: {', '.join(counts)} as stated"
    for each in result.logged:
        if not each.is_right:
            yield f"{each.owner}, {each.where}: {each.what} {each.modelled}, not {each.stated}"


def _order(result: MachinesResult, name: str) -> str:
    order = result.orders[name]
    share = percent(order.right / order.pairs) if order.pairs else "–"
    pairs = f"{order.pairs:,} pairs that differ by more than a tenth"
    return f"order of schedules, {name}: {share} % of {pairs}"


def _cell(spread: ErrorSummary) -> str:
    if not spread.rows:
        return "–"
    return f"{percent(spread.median)} / {percent(spread.p90)} ({spread.rows})"


def as_json(result: MachinesResult) -> dict[str, Any]:
    """Return checks and predicted times as a JSON value."""
    return {
        "source": "Published sweeps; hocket_studies/machines_measured/README.md says whose",
        "checks": [_check_value(check) for check in result.checks],
        "picks": [
            {
                "set": each.file,
                "collective": each.row.kind,
                "gpus": each.row.npus,
                "size_bytes": each.row.size,
                "stated": each.stated,
                "modelled": each.modelled,
            }
            for each in result.picks
        ],
        "logged": [
            {
                "owner": each.owner,
                "where": each.where,
                "nodes": each.nodes,
                "what": each.what,
                "stated": each.stated,
                "modelled": each.modelled,
            }
            for each in result.logged
        ],
        "orders": [
            {"of": name, "pairs": order.pairs, "right": order.right}
            for name, order in result.orders.items()
        ],
        "expected": [
            {**each.to_dict(), "held": result.held[each.of, each.sizes][0]}
            for each in result.expected
        ],
        "sets": [each.name for each in result.sets],
    }


def _check_value(check: Check) -> dict[str, Any]:
    spreads = {band.name: check.spread(band) for band in BANDS}
    spreads["all"] = check.spread()
    return {
        "question": check.question,
        "of": check.what,
        "errors": {
            name: {"times": spread.rows, "median": spread.median, "p90": spread.p90}
            for name, spread in spreads.items()
            if spread.rows
        },
    }


_HEAD = [
    "question",
    "of",
    "set",
    "collective",
    "gpus",
    "nodes",
    "bytes",
    "measured_us",
    "predicted_us",
]


def _csv(result: MachinesResult) -> str:
    """Return every predicted time."""
    rows: list[list[object]] = []
    for check in result.checks:
        for each in check.predicted:
            row = each.row
            what = [check.question, check.what, each.file, row.kind, row.npus, row.nodes, row.size]
            rows.append([*what, f"{row.seconds * 1e6:.6g}", f"{each.seconds * 1e6:.6g}"])
    return as_csv(_HEAD, rows)


def as_page(result: MachinesResult) -> str:
    """Return the tables in Markdown, the worst cells first."""
    lines = ["# Predicted and measured", "", *_LEGEND, "", "## The worst", ""]
    worst = (
        (
            *(file, kind, band.name, f"{check.question}: {check.what}"),
            *(f"{percent(spread.median)} %", str(spread.rows)),
        )
        for check, file, kind, band, spread in result.worst(_WORST)
    )
    lines += markdown(["set", "collective", "sizes", "question"], ["median", "times"], worst)
    if result.expected:
        head = ["owners", "times", "median factor", "9 of 10 within", "held, %"]
        lines += ["", "## Machines of other owners", ""]
        lines += markdown(["machines", "sizes"], head, _stated_rows(result))
    if result.picks:
        lines += ["", _picks(result) + "."]
    for line in _logged(result):
        lines += ["", line + "."]
    lines += [line for name in result.orders for line in ("", _order(result, name) + ".")]
    lines += ["", "## All", ""]
    names = [*(band.name for band in BANDS), "all"]
    lines += markdown(
        ["question", "of"],
        names,
        (
            [check.question, check.what, *(_cell(check.spread(band)) for band in (*BANDS, None))]
            for check in result.checks
        ),
    )
    return "\n".join(lines) + "\n"
