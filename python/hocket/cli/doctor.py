"""``hocket doctor``: what is installed here."""

from __future__ import annotations

from hocket.cli import options
from hocket.cli.table import NEVER, Table
from hocket.installation.components import examine


def doctor(*, json: options.Json = False) -> None:
    """Check which optional parts are installed and how to get the rest.

    For example: hocket doctor
    """
    found = examine()
    if json:
        options.print_result("installation", found.to_dict())
        return
    plural = "" if found.cores == 1 else "s"
    table = Table(
        title=f"hocket {found.hocket}, Python {found.python}, {found.platform}, {found.cores} core{plural}"
    )
    table.add_column("part", leaves=NEVER)
    table.add_column("for", prose=True)
    table.add_column("here", prose=True, leaves=NEVER)
    table.add_column("to get it", prose=True)
    for part in found.parts:
        table.add_row(part.name, part.purpose, part.found or "no", part.remedy or "")
    options.output().print(table)
