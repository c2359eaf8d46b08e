"""The path of a command line's words and errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from hocket import _core
from hocket._checks import did_you_mean
from hocket.cli import INTERRUPTED
from hocket.cli.command import Call, Command, UnknownOptionError, UsageError, at
from hocket.cli.commands import COMMANDS, GONE, RENAMED
from hocket.cli.console import QUIET
from hocket.cli.failure import print_error
from hocket.cli.wording import COMMAND, of_options
from hocket.errors import Error, SpecError, VerificationError
from hocket.units import shown

_STDOUT = 1
_HELP = ("--help", "-h", "--help-all")


def run(argv: Sequence[str]) -> int:
    """Run the command line and give its exit code."""
    words = list(argv)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    QUIET.set(False)
    COMMAND.set(None)
    path = ["hocket"]
    try:
        code = _run(words, path)
        sys.stdout.flush()
        return code
    except VerificationError as error:
        print_error(argv, type(error).__name__, error)
        return 1
    except Error as error:
        print_error(argv, type(error).__name__, of_options(error))
    except UsageError as error:
        print_error(argv, "UsageError", f"{error}; see `{' '.join(path)} --help`")
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone: `hocket ... | head`. Nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
        return 0
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        print_error(argv, "OSError", about + (error.strerror or str(error)))
    except UnicodeEncodeError as error:
        # Bytes of the command line that are no UTF-8, where only the core looks at them.
        print_error(
            argv, "SpecError", f"{shown(error.object)} is not text in UTF-8; write it as such"
        )
    except MemoryError:
        print_error(argv, "MemoryError", "not enough memory; use fewer NPUs or chunks")
    return 2


def _run(words: list[str], path: list[str]) -> int:
    """Call the command that words name; `path` becomes its name, as far as there is one."""
    command = Command(commands=COMMANDS)
    while words and words[0] in command.commands:
        path.append(words[0])
        command = command.under(words.pop(0))
    if command.is_program:
        return at(command.place)(words) or 0
    if not command.place or (command.commands and words[:1] in ([], *([each] for each in _HELP))):
        return _group(words, path, command)
    _check_gone(words, path)
    mode, place = command.mode(words)
    call = Call(" ".join(path), place, mode)
    path += [mode] * mode.startswith("--")
    COMMAND.set(call)
    try:
        values = call.values(words)
    except UnknownOptionError as error:
        new = RENAMED.get(error.option)
        if new in call.options:
            raise SpecError(error.option, "is not its name any more", f"use {new}") from None
        named = {error.option, new}
        modes = [m for m, at in command.modes.items() if named & {*Call("", at).options}]
        if new is not None:
            where = modes[0] if modes else "other commands"
            why = f"is not its name any more, and it is of {where}"
            raise SpecError(error.option, why, f"use {new} there") from None
        raise UsageError(f"{error}; it is of {modes[0]}" if modes else str(error)) from None
    if values.get("help") is True or values.get("help_all") is True:
        from hocket.cli.manual import help_of

        print(help_of(call, command, everything=bool(values.get("help_all"))))
        return 0
    QUIET.set(values.pop("quiet", False))
    return call(values)


def _group(words: list[str], path: list[str], command: Command) -> int:
    """Answer words that name a group alone, or nothing in it."""
    from hocket.cli.manual import group_help, root_help

    is_root = len(path) == 1
    if not words or words[0] in _HELP:
        print(root_help() if is_root else group_help(" ".join(path), command))
        return 0 if words else 2
    if is_root and words[0] in ("--version", "-V"):
        print(f"hocket {_core.__version__}")
    elif is_root and words[0] in ("--install-completion", "--show-completion"):
        from hocket.cli.complete import install, script

        print(install() if words[0] == "--install-completion" else script(*words[1:2]))
    elif words[0].startswith("-"):
        raise UsageError(f"No such option: {words[0]}")
    else:
        _check_gone(words, path)
        near = did_you_mean(words[0], command.commands, "")
        raise UsageError(f"No such command {words[0]!r}{near and '; '}{near}")
    return 0


def _check_gone(words: list[str], path: list[str]) -> None:
    """Answer old words of a command by the new ones."""
    for count in (2, 1):
        old = " ".join([*path[1:], *words[:count]])
        if words and old in GONE:
            right = f"use `hocket {GONE[old]}`"
            raise SpecError(None, f"there is no `hocket {old}` any more", right)
