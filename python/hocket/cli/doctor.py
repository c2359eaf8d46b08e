"""``hocket doctor``: what is installed here."""

from __future__ import annotations

from hocket.cli import options
from hocket.cli.table import table_of
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
    title = f"hocket {found.hocket}, Python {found.python}, {found.platform}, {found.cores} core{plural}"
    options.output().print(table_of(found.parts, title=title))
