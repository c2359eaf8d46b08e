"""The commands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, cast

import typer
from typer.core import TyperGroup

from hocket import _core
from hocket.cli import INTERRUPTED
from hocket.cli.commands import EXAMPLE, SUMMARY
from hocket.cli.console import QUIET
from hocket.cli.failure import print_error
from hocket.cli.lazy import Group, command_of
from hocket.cli.values import read_plainly
from hocket.cli.wording import COMMAND, of_options
from hocket.errors import Error, SpecError, VerificationError
from hocket.units import shown

_STDOUT = 1

app = typer.Typer(
    name="hocket",
    cls=Group,
    help=SUMMARY,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLE,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hocket {_core.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Take the options before the command."""


@cache
def _commands() -> TyperGroup:
    root = typer.main.get_command(app)
    read_plainly(root)
    return cast(TyperGroup, root)


def run(argv: Sequence[str]) -> int:
    """Run the command line and give its exit code."""
    if list(argv[:1]) == ["help"]:
        argv = [*argv[1:], "--help"]
    QUIET.set(False)
    try:
        COMMAND.set(command_of(_commands(), list(argv)))
        _check_once(argv)
        code = _commands()(args=list(argv), prog_name="hocket", standalone_mode=False)
        sys.stdout.flush()
    except VerificationError as error:
        print_error(argv, type(error).__name__, error)
        return 1
    except Error as error:
        print_error(argv, type(error).__name__, of_options(error))
        return 2
    except typer.TyperException as error:
        message = _usage_message(error)
        if message:  # without one, the help of a command that was given nothing is printed already
            path = getattr(getattr(error, "ctx", None), "command_path", "hocket")
            print_error(argv, "UsageError", f"{message}; see `{path} --help`")
        return 2
    except typer.Abort:
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Whoever read the output has gone: `hocket ... | head`. Nothing more can be written.
        # (Typer gives SystemExit for that, and for nothing else outside its standalone mode.)
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
        return 0
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        print_error(argv, "OSError", about + (error.strerror or str(error)))
        return 2
    except UnicodeEncodeError as error:
        # Bytes of the command line that are no UTF-8, where only the core looks at them.
        print_error(
            argv, "SpecError", f"{shown(error.object)} is not text in UTF-8; write it as such"
        )
        return 2
    except MemoryError:
        print_error(argv, "MemoryError", "not enough memory; use fewer NPUs or chunks")
        return 2
    return code if isinstance(code, int) else 0


def _check_once(argv: Sequence[str]) -> None:
    """Refuse an option that is taken once and given twice, rather than drop the first."""
    for param in getattr(COMMAND.get(), "params", ()):
        if param.param_type_name != "option" or param.multiple or getattr(param, "is_flag", False):
            continue
        names = {name for name in param.opts if name.startswith("-")}
        given = [word for word in argv if word.partition("=")[0] in names]
        if len(given) > 1:
            name = max(names, key=len)
            raise SpecError(name, f"is given {len(given)} times, and taken once", "give one")


def _usage_message(error: typer.TyperException) -> str:
    """Say what is wrong with the options, naming the option."""
    format_message = getattr(error, "format_message", None)
    message = str(error) if format_message is None else str(format_message())
    return message.rstrip(".")
