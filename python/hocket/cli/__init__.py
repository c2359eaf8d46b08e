"""The command line: ``hocket compare``, ``plan``, ``schedule``, ``verify``, ``simulate``, ...

The commands take a good part of a second to import; a Ctrl-C in that time ends in one line as any other.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing itself takes longer to import than this file
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells count it: 128 + SIGINT."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 a plan is wrong, 2 bad input, 130 interrupted."""
    end = _end
    try:
        from hocket.cli.interrupt import end, guard

        guard()
        code = run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        end()
    sys.exit(code)


def run(argv: Sequence[str]) -> int:
    """Run the command line and give its exit code; an interrupt is raised.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    """
    from hocket.cli.app import run

    return run(argv)


def _end() -> None:
    """End the process where the guard is not there yet."""
    os.write(sys.stderr.fileno(), b"hocket: stopped\n")
    os._exit(INTERRUPTED)
