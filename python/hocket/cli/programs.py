"""``hocket controller`` and ``hocket agent``: the programs of that name, which need no Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from hocket._programs import path_of_program, remedy_for
from hocket.cli.commands import COMMANDS
from hocket.cli.manual import group_help
from hocket.errors import SpecError


def controller(words: Sequence[str]) -> int:
    """Run the routing controller of a cluster: serve, certs, replay, queue-pairs, calibrate.

    For example: hocket controller serve --config controller.toml
    """
    return _become("hocket-controller", words)


def agent(words: Sequence[str]) -> int:
    """Run the controller's agent on a host.

    For example: hocket agent --config agent.toml
    """
    return _become("hocket-agent", words)


def _become(program: str, words: Sequence[str]) -> int:
    """Replace this process by a program; its help says at least how to get it."""
    try:
        found = path_of_program(program)
    except SpecError as error:
        if words[:1] not in (["--help"], ["-h"]):
            raise
        name = program.removeprefix("hocket-")
        print(f"{group_help(f'hocket {name}', COMMANDS[name])}\n\n{error}.")
        return 0
    sys.stdout.flush()
    try:
        os.execv(found, [program, *words])
    except OSError as error:
        why = f"{found} cannot be run: {(error.strerror or str(error)).lower()}"
        raise SpecError(None, why, remedy_for(program)) from None
