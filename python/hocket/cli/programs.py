"""``hocket controller`` and ``hocket agent``: the programs of that name, which need no Python."""

from __future__ import annotations

import os
import sys

import typer

from hocket._programs import path_of_program, remedy_for
from hocket.errors import SpecError

_EXAMPLE = "For example: hocket controller calibrate --src 10.1.0.1 --dst 10.1.0.2"


def controller(context: typer.Context) -> None:
    """Run the routing controller of a cluster: serve, certs, replay, queue-pairs, calibrate."""
    if context.args[:1] == ["calibrate"]:
        from hocket.cli.probes import calibrate

        alone = typer.Typer(add_completion=False)
        alone.command(epilog=_EXAMPLE)(calibrate)
        name = f"{context.command_path} calibrate"
        command = typer.main.get_command(alone)
        command.main(context.args[1:], prog_name=name, standalone_mode=False)
        return
    _become("hocket-controller", context.args)


def agent(context: typer.Context) -> None:
    """Run the controller's agent on a host."""
    _become("hocket-agent", context.args)


def _become(program: str, arguments: list[str]) -> None:
    """Replace this process by a program."""
    found = path_of_program(program)
    sys.stdout.flush()
    try:
        os.execv(found, [program, *arguments])
    except OSError as error:
        why = f"{found} cannot be run: {(error.strerror or str(error)).lower()}"
        raise SpecError(None, why, remedy_for(program)) from None
