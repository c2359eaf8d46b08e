"""Why ``auto`` chose a plan: in a line, and with ``--why`` as a table of all that was tried."""

from __future__ import annotations

from hocket import _core
from hocket.cli import options
from hocket.cli.numbers import TIMES, percent
from hocket.cli.table import Table
from hocket.plans.auto import SPARED
from hocket.plans.selection import Selection


def explain(selection: Selection, *, why: bool) -> None:
    """Print why auto chose a plan, and what it left out; with `why` also each time and refusal."""
    options.say(f"auto: {selection}{'' if why else ' (--why)'}")
    if why:
        options.output().print(table_of(selection))
        for reason, names in _by_reason(selection).items():
            options.say(f"left out: {', '.join(names)}: {reason}")
    late = _by_reason(selection).get(SPARED)
    if late and selection.ended in ("work", "time"):
        more = "--effort high" if selection.ended == "work" else "a longer --time-limit"
        options.note(f"not tried to the end: {', '.join(late)}; {more} gives more")


def table_of(selection: Selection) -> Table:
    """Make a table of the best time of each algorithm, the one that was chosen first."""
    table = Table()
    table.add_column("algorithm")
    table.add_column("time", units=TIMES)
    table.add_column("slower", justify="right", unit="%")
    table.add_column("gap", justify="right", unit="%")
    least, bound = selection.time_ps, selection.bound_ps
    for name, time_ps in selection.times_ps.items():
        slower = "–" if name == selection.algorithm else percent(_core.gap(time_ps, least))
        table.add_row(name, time_ps, slower, percent(_core.gap(time_ps, bound)))
    return table


def _by_reason(selection: Selection) -> dict[str, list[str]]:
    """Return the algorithms that made no plan, those with the same reason together."""
    found: dict[str, list[str]] = {}
    for name, reason in selection.left_out.items():
        found.setdefault(reason, []).append(name)
    return found
