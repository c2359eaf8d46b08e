"""Options that the commands about traces share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Dependencies", "GroupsFile", "Prefix"]

Prefix = Annotated[
    str,
    typer.Argument(
        metavar="PREFIX", help="What .0.et, .1.et, ... follow, a folder of them, or one of them."
    ),
]
GroupsFile = Annotated[
    str | None,
    typer.Option("--groups", help='Groups of ranks, a JSON file such as {"1": [0, 2]}.'),
]
Dependencies = Annotated[
    str,
    typer.Option(
        "--dependencies", help="all, or data alone: control may be a stack of calls only."
    ),
]
