"""Commands that are imported when they run, or when their own help or completion is asked for."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from hocket._moved import REMEDY
from hocket.cli.commands import COMMANDS, Command
from hocket.cli.console import QUIET
from hocket.cli.values import read_plainly
from hocket.errors import SpecError

_PASSED_ON = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}


class Group(TyperGroup):
    """A group of commands that are not imported yet."""

    entries: tuple[Command, ...] = COMMANDS

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        for each in self.entries:
            self.add_command(Later(each))


class Later(TyperCommand):
    """A command of which only its name and its summary are known; it stands aside once it is called."""

    def __init__(self, entry: Command) -> None:
        super().__init__(entry.name, help=entry.summary)
        self._entry = entry

    @cached_property
    def real(self) -> TyperCommand | TyperGroup:
        """The command itself, imported."""
        return _made(self._entry)

    def make_context(self, *given: Any, **more: Any) -> typer.Context:
        """Take the arguments as the command itself does."""
        return cast(typer.Context, self.real.make_context(*given, **more))


def _made(entry: Command) -> TyperCommand | TyperGroup:
    """Import a command."""
    made: Any
    found: Any
    if entry.package:
        found = _of_package(entry)
        if isinstance(found, Command):
            return _made(found)
    elif entry.commands:
        kind = type("Group", (Group,), {"entries": entry.commands})
        made = kind(name=entry.name, help=entry.summary, epilog=entry.example)
        made.no_args_is_help = True
        read_plainly(made)
        return cast(TyperGroup, made)
    else:
        module, _, name = entry.place.partition(":")
        found = getattr(import_module(module if "." in module else f"hocket.cli.{module}"), name)
    if isinstance(found, typer.Typer):
        made = typer.main.get_group(found)
        made.name = entry.name
    else:
        alone = typer.Typer(add_completion=False)
        settings = _PASSED_ON if entry.is_program else None
        alone.command(entry.name, epilog=entry.example, context_settings=settings)(found)
        made = typer.main.get_command(alone)
    if not entry.is_program:
        _quiet_too(made)
    read_plainly(made)
    return cast(TyperCommand, made)


def _of_package(entry: Command) -> object:
    """Load a command of another package by its entry point."""
    from importlib.metadata import entry_points  # takes as long as a whole start

    for point in entry_points(group="hocket.commands", name=entry.name):
        return point.load()
    why = f"`{entry.name}` is a command of {entry.package}, which is not installed"
    raise SpecError(None, why, REMEDY)


def _quiet_too(command: Any) -> None:
    """Give every command the option that leaves progress and notes out."""
    for under in getattr(command, "commands", {}).values():
        _quiet_too(under)
    if hasattr(command, "commands"):
        return
    alone = typer.Typer(add_completion=False)
    alone.command()(_quiet)
    (option,) = (each for each in typer.main.get_command(alone).params if "--quiet" in each.opts)
    option.expose_value = False
    command.params.append(option)


def _be_quiet(quiet: bool) -> None:
    QUIET.set(quiet)


def _quiet(
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print the result alone: no progress, no notes.",
            callback=_be_quiet,
            rich_help_panel="Output",
        ),
    ] = False,
) -> None:
    """Have an option that every command has."""


def command_of(root: TyperGroup, words: list[str]) -> Any:
    """Give the command that these words call, as far as they call any."""
    found: Any = root
    for word in words:
        under = getattr(found, "commands", {}).get(word)
        if under is None:
            under = getattr(found, "commands", {}).get(getattr(found, "default_command", None))
        if under is not None:
            found = under.real if isinstance(under, Later) else under
    return found
