"""The command line: a table of commands, the words of a call as options, help, and what is printed.

A command takes some tenths of a second to import; a signal in that time ends in one line as any other.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing itself takes longer to import than this file
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells count it: 128 + SIGINT."""
_BY_SIGNAL = 128


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 a plan is wrong, 2 bad input, 130 and 143 interrupted."""
    _listen()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115  (nobody reads it)
    if sys.stdout is None:
        sys.stderr.write("hocket: standard output is closed; leave it open, or give >/dev/null\n")
        sys.exit(2)
    from hocket.cli.interrupt import guard

    guard(_end)
    code = run(sys.argv[1:] if argv is None else argv)
    _deafen()
    sys.exit(code)


def run(argv: Sequence[str]) -> int:
    """Run the command line and give its exit code."""
    if list(argv) in (["--version"], ["-V"]):
        from hocket._core import __version__

        print(f"hocket {__version__}")
        return 0
    if "_HOCKET_COMPLETE" in os.environ:
        from hocket.cli.complete import answer

        answer()
        return 0
    from hocket.cli.app import run

    return run(argv)


def _listen() -> None:
    """End at Ctrl-C and SIGTERM from here on; where a signal is ignored (``nohup``), it stays so."""
    # signal itself imports enough to be interrupted in the midst
    import _signal  # type: ignore[import-not-found]

    own = ((_signal.SIGINT, _signal.default_int_handler), (_signal.SIGTERM, _signal.SIG_DFL))
    for number, handler in own:
        if _signal.getsignal(number) == handler:
            try:
                _signal.signal(number, _end)
            except ValueError:
                return  # not the main thread, which alone hears signals


def _deafen() -> None:
    """Hear no Ctrl-C from here on: the work is done, and Python's end would take it as a failure."""
    import signal

    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:
        return  # not the main thread, which alone hears signals


def _end(number: int, frame: object) -> None:
    """End the process while nothing is there that could be half done."""
    os.write(2, b"hocket: stopped\n")
    os._exit(_BY_SIGNAL + number)
