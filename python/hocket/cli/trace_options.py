"""Options that the commands about traces share."""

from __future__ import annotations

from typing import Annotated

from hocket.cli.command import Argument, Option

__all__ = ["Dependencies", "GroupsFile", "Prefix"]

Prefix = Annotated[
    str,
    Argument(
        metavar="PREFIX",
        help="The beginning of the file names PREFIX.0.et, PREFIX.1.et, ..., their folder, or one file.",
    ),
]
GroupsFile = Annotated[
    str | None,
    Option("--groups", help='JSON file with the groups of ranks, such as {"1": [0, 2]}.'),
]
Dependencies = Annotated[
    str,
    Option(
        "--dependencies",
        help="Dependencies to follow: all, or data (control dependencies may be only the call stack).",
    ),
]
