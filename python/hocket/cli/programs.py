"""``hocket controller`` and ``hocket agent``: the programs of that name, which need no Python."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import typer

from hocket.errors import SpecError


def controller(context: typer.Context) -> None:
    """Run the routing controller of a cluster, and what belongs to it: serve, certs, replay."""
    _become("hocket-controller", "HOCKET_CONTROLLER", context.args)


def agent(context: typer.Context) -> None:
    """Run the controller's agent on a host."""
    _become("hocket-agent", "HOCKET_AGENT", context.args)


def _become(program: str, variable: str, arguments: list[str]) -> None:
    """Replace this process by a program that a variable names, or that is beside Python or on the path."""
    named = os.environ.get(variable)
    beside = Path(sys.executable).parent
    found = named or shutil.which(program, path=beside) or shutil.which(program)
    wrong = f"there is no program {program}" if found is None else None
    try:
        if found is not None:
            sys.stdout.flush()
            os.execv(found, [program, *arguments])
    except OSError as error:
        wrong = f"{found} cannot be run: {(error.strerror or str(error)).lower()}"
    remedy = f"build it with `make controller`, or name it in {variable}"
    raise SpecError(None, str(wrong), remedy)
