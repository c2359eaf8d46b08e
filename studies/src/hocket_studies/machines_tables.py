"""``hocket reproduce machines``: published sweeps of real machines, predicted."""

from __future__ import annotations

import csv
import io
import json as json_text
from pathlib import Path
from typing import Annotated, Any

from hocket.cli import options
from hocket.cli.command import Option
from hocket.cli.numbers import percent
from hocket.cli.table import Table
from hocket.files.atomic import write_text
from hocket.fitting.errors import BANDS, Spread
from hocket.units import format_size
from hocket_studies.machines import Check, MachinesResult, family_profiles, reproduce_machines
from hocket_studies.themis_tables import make_folder

_MIB = 1 << 20
_WORST = 12
_SHOWN = 3
_LEGEND = (
    "Each cell: median / 90th percentile of the error in per cent, and of how many times. Every time was",
    "predicted without having been fitted: *alone*, a fifth of the sizes of each sweep; *family*, the same",
    "with one set of constants for all sweeps; *other machine*, all times of a set, with constants of the",
    "other sets of its family; *schedules*, a fifth of the sizes of known schedules of thread blocks;",
    "*other schedules*, numbers of channels and instances that were not fitted.",
)


def machines_study(
    *,
    output: Annotated[
        str,
        Option("--output", "-o", help="Folder for page, picture and data; created if missing."),
    ] = "reproduce-machines",
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
        Option("--profiles", help="Also fit a profile to each family and write it there."),
    ] = False,
    json: options.Json = False,
) -> None:
    """Predict published sweeps of real machines from what was not fitted, and state the error.

    For example: hocket reproduce machines --output machines
    """
    folder = Path(output)
    make_folder(folder)
    with options.watching() as watch:
        result = reproduce_machines(None if data is None else Path(data), on_case=watch)
        watch.note("drawing")
        from hocket_studies.machines_pictures import draw_errors

        picture = folder / "machines.png"
        draw_errors(result, picture)
        if profiles:
            watch.note("fitting profiles")
            for name, profile in family_profiles(None if data is None else Path(data)).items():
                write_text(folder / f"{name}.yml", profile.as_yaml())
    value = as_json(result, picture)
    write_text(folder / "machines.json", json_text.dumps(value, indent=2) + "\n")
    write_text(folder / "machines.csv", as_csv(result))
    write_text(folder / "machines.md", as_page(result))
    if json:
        options.print_result("reproduction", value)
        return
    console = options.output()
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
    if result.picks:
        console.print(_picks(result))
    for name in result.orders:
        console.print(_order(result, name))
    console.print(f"{len(result.sets)} sets; files in {folder}: machines.png, .json, .csv and .md")


def _picks(result: MachinesResult) -> str:
    wrong = [each for each in result.picks if each.stated != each.modelled]
    text = f"NCCL's pick: {result.right_picks} of {len(result.picks)} as stated"
    first = [
        f"{each.row.kind} of {format_size(each.row.size)} on {each.row.npus} GPUs of {each.file}: "
        f"{each.modelled}, not {each.stated}"
        for each in wrong[:_SHOWN]
    ]
    return "; ".join([text, *first])


def _order(result: MachinesResult, name: str) -> str:
    order = result.orders[name]
    share = percent(order.right / order.pairs) if order.pairs else "–"
    pairs = f"{order.pairs:,} pairs that differ by more than a tenth"
    return f"order of schedules, {name}: {share} % of {pairs}"


def _cell(spread: Spread) -> str:
    if not spread.rows:
        return "–"
    return f"{percent(spread.median)} / {percent(spread.p90)} ({spread.rows})"


def as_json(result: MachinesResult, picture: Path) -> dict[str, Any]:
    """Return checks and predicted times as a JSON value."""
    return {
        "source": "Published sweeps; profiles/measured/README.md says whose",
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
        "orders": [
            {"of": name, "pairs": order.pairs, "right": order.right}
            for name, order in result.orders.items()
        ],
        "sets": [each.name for each in result.sets],
        "pictures": [str(picture)],
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


def as_csv(result: MachinesResult) -> str:
    """Return every predicted time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = [
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
    writer.writerow(head)
    for check in result.checks:
        for each in check.predicted:
            row = each.row
            what = [check.question, check.what, each.file, row.kind, row.npus, row.nodes, row.size]
            writer.writerow([*what, f"{row.seconds * 1e6:.6g}", f"{each.seconds * 1e6:.6g}"])
    return text.getvalue()


def as_page(result: MachinesResult) -> str:
    """Return the tables in Markdown, the worst cells first."""
    lines = ["# Predicted and measured", "", *_LEGEND, "", "## The worst", ""]
    lines += [
        "| set | collective | sizes | question | median | times |",
        "| --- | --- | --- | --- | ---: | ---: |",
    ]
    for check, file, kind, band, spread in result.worst(_WORST):
        cells = [file, kind, band.name, f"{check.question}: {check.what}"]
        lines.append(f"| {' | '.join(cells)} | {percent(spread.median)} % | {spread.rows} |")
    if result.picks:
        lines += ["", _picks(result) + "."]
    lines += [line for name in result.orders for line in ("", _order(result, name) + ".")]
    lines += ["", "## All", ""]
    names = [band.name for band in BANDS]
    lines.append(f"| question | of | {' | '.join(names)} | all |")
    lines.append("| --- | --- |" + " ---: |" * (len(names) + 1))
    for check in result.checks:
        cells = [_cell(check.spread(band)) for band in (*BANDS, None)]
        lines.append(f"| {check.question} | {check.what} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
