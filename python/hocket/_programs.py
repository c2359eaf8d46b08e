"""The places of hocket's own programs, which are not written in Python."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from hocket.errors import SpecError


def path_of_program(name: str) -> str:
    """Return the path of a program: named by a variable, next to Python, or on the path.

    The variable is the name in capitals: ``HOCKET_CONTROLLER`` for ``hocket-controller``.

    Raises
    ------
    SpecError
        Where it is nowhere.
    """
    beside = Path(sys.executable).parent
    found = (
        os.environ.get(variable_of(name)) or shutil.which(name, path=beside) or shutil.which(name)
    )
    if not found:
        raise SpecError(None, f"there is no program {name}", remedy_for(name))
    return found


def variable_of(name: str) -> str:
    """Name the variable that says where a program is."""
    return name.replace("-", "_").upper()


def remedy_for(name: str) -> str:
    """Describe what to do if a program is missing or does not run."""
    return f"build it with `make controller` in a checkout of hocket, or name it in {variable_of(name)}"
