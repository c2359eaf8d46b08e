"""A module from the user's own code, named as ``package.module:factory``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from hocket._checks import did_you_mean
from hocket.errors import SpecError
from hocket.units import shown
from hocket.workload.torch.failure import describe_failure

_FORM = "write mypkg.models:make_model"


@contextmanager
def own_code() -> Iterator[None]:
    """Make code of the current folder importable, and send what it prints to standard error."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if here in sys.path:
            sys.path.remove(here)


def make(text: str) -> tuple[Any, Any]:
    """Call the factory that a text names, within :func:`own_code`.

    It is called on PyTorch's meta device, so that no memory is taken; where it needs numbers, again
    without.

    Returns
    -------
    module, inputs
        What it gives; inputs are ``None`` where it gives a module alone.

    Raises
    ------
    SpecError
        If there is no such factory, it fails, or gives no module.
    """
    import torch

    factory = _found(text)
    if isinstance(factory, torch.nn.Module):
        return factory, None
    if not callable(factory):
        raise SpecError(
            None,
            f"{shown(factory)} cannot be called",
            "name a function or a class",
            origin=str(text),
        )
    try:
        try:
            with torch.device("meta"):
                made = factory()
        except Exception:  # it may need numbers, which the meta device does not have
            made = factory()
    except (Exception, SystemExit) as error:
        why = f"fails: {describe_failure(error)}"
        raise SpecError(None, why, "make it work without arguments", origin=str(text)) from None
    module, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(module, torch.nn.Module):
        raise SpecError(
            None,
            f"gives {shown(module)}, no torch.nn.Module",
            "give one, or one and its inputs",
            origin=str(text),
        )
    return module, inputs


def _found(text: str) -> Any:
    where, colon, name = text.partition(":")
    if not colon or not all(part.isidentifier() for part in (*where.split("."), *name.split("."))):
        raise SpecError(None, "names no factory", str(_FORM), origin=shown(text))
    try:
        found: Any = importlib.import_module(where)
    except ModuleNotFoundError as error:
        is_own = error.name is not None and f"{where}.".startswith(f"{error.name}.")
        right = "run from the folder that it lies in" if is_own else "install it first"
        raise SpecError(
            None, f"there is no module {shown(error.name)}", right, origin=str(text)
        ) from None
    except (Exception, SystemExit) as error:
        raise SpecError(
            None,
            f"{where} cannot be imported: {describe_failure(error)}",
            "mend it",
            origin=str(text),
        ) from None
    for part in name.split("."):
        if not hasattr(found, part):
            known = [each for each in vars(found) if not each.startswith("_")]
            right = did_you_mean(part, known, _FORM)
            raise SpecError(None, f"there is no {shown(part)} in {where}", right, origin=str(text))
        found = getattr(found, part)
    return found
