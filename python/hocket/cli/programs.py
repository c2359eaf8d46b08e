"""``hocket controller`` and ``hocket agent``: the programs of that name, which need no Python."""

from __future__ import annotations

import os
import sys

import typer

from hocket._programs import path_of_program, remedy_for
from hocket.errors import SpecError


def controller(context: typer.Context) -> None:
    """Run the routing controller of a cluster: serve, certs, replay, queue-pairs, calibrate."""
    if context.args[:1] == ["calibrate"]:
        from hocket.cli.testbed import testbed

        group = typer.main.get_command(testbed)
        group.main(context.args, prog_name=context.command_path, standalone_mode=False)
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
