"""``hocket reproduce groups``: the questions of PCCL, its published figures beside hocket's plans."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.options import Watch, numbers
from hocket.cli.table import Table
from hocket.units import format_time_ps
from hocket_studies import groups_published as published
from hocket_studies.groups import EXPERIMENTS, METHODS, Row, reproduce_groups
from hocket_studies.harness import Into, Report, table

_LEGEND = (
    "Times in us; gap: the fastest plan over the bound; speedup: the faster of direct and ring over the "
    "fastest plan. direct and ring plan for each group alone. – no plan, or not published"
)


def study(
    *,
    experiment: Annotated[
        list[str] | None,
        Option(
            "--experiment",
            help="Only this: groups, kinds, switches or scale; as a list (a,b) or repeated.",
        ),
    ] = None,
    into: Into,
) -> None:
    """Plan collectives among process groups as PCCL does, and all-to-alls of up to 1,000 NPUs.

    For example: hocket reproduce groups --experiment groups --output groups
    """
    names = numbers("--experiment", experiment, list(EXPERIMENTS)) or list(EXPERIMENTS)

    def report(watch: Watch) -> Report:
        rows = reproduce_groups(names, on_case=watch)

        def show(console: Printer) -> None:
            for name in names:
                console.print(_table(name, rows[name]))
                for line in (*published.NOTES.get(name, ()), *_refusals(rows[name])):
                    console.print(line)
            console.print(_LEGEND)

        from hocket_studies.groups_pictures import draw_speedups

        pictures = {f"{name}.png": partial(draw_speedups, name, rows[name]) for name in names}
        return Report(as_json(rows), show, pictures)

    into.write("groups", report)


def _table(name: str, rows: list[Row]) -> Table:
    methods = [each for each in METHODS if any(row.cell(each) for row in rows)]
    heads = ["bound", *methods, "gap", "speedup", "published", "planned in", "published in"]
    is_timed = any(row.published.seconds is not None for row in rows)
    cells = [(row.target.name, *_words(row, methods, is_timed=is_timed)) for row in rows]
    kept = [0, *(i for i in range(1, len(heads) + 1) if any(row[i] not in "–" for row in cells))]
    shown = [[row[i] for i in kept] for row in cells]
    return table(
        f"{name}: {EXPERIMENTS[name].title}", [""], [heads[i - 1] for i in kept[1:]], shown
    )


def _words(row: Row, methods: list[str], *, is_timed: bool) -> list[str]:
    times = [row.cell(each) for each in methods]
    best = row.best
    return [
        f"{row.bound_ps / 1e6:,.1f}",
        *(f"{each.time_ps / 1e6:,.1f}" if each and each.time_ps else "–" for each in times),
        "–" if row.gap is None else f"{row.gap:.1%}",
        _ratio(row.speedup),
        _ratio(row.published.speedup),
        "–" if best is None or not is_timed else _seconds(best.seconds),
        "–" if row.published.seconds is None else _seconds(row.published.seconds),
    ]


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _seconds(seconds: float) -> str:
    return format_time_ps(round(seconds * 1e6) * 10**6) if seconds < 100 else f"{seconds:,.0f} s"


def _refusals(rows: list[Row]) -> list[str]:
    """Describe why cells are empty, once each."""
    found = {f"– {each.method}: {each.why}": None for row in rows for each in row.cells if each.why}
    return list(found)


def as_json(rows: dict[str, list[Row]]) -> dict[str, Any]:
    """Return all rows as JSON values; times of collectives in picoseconds."""
    return {
        "source": published.SOURCE,
        "experiments": {
            name: {
                "title": EXPERIMENTS[name].title,
                "rows": [_row_json(row) for row in each],
                "notes": " ".join(published.NOTES.get(name, ())),
            }
            for name, each in rows.items()
        },
    }


def _row_json(row: Row) -> dict[str, Any]:
    target = row.target
    return {
        "name": target.name,
        "kind": target.kind,
        "size_bytes": target.size,
        "npus": row.npus,
        "groups": [list(group) for group in target.groups],
        "bound_ps": row.bound_ps,
        "gap": row.gap,
        "speedup": row.speedup,
        "published_speedup": row.published.speedup,
        "published_seconds": row.published.seconds,
        "methods": {
            each.method: {
                "time_ps": each.time_ps,
                "seconds": each.seconds,
                "why": each.why or None,
            }
            for each in row.cells
        },
    }
