"""Programs of the Rust crates, as their own tests left them, and the libraries that others load."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from shutil import which

_ROOT = Path(__file__).parents[1]
_BUILT = _ROOT / "target" / "debug"
_NAMES = ("hocket-controller", "hocket-agent")


def programs() -> dict[str, str]:
    """Give what the environment is to name so that hocket finds them; nothing where they are not built."""
    places = {name.replace("-", "_").upper(): str(_BUILT / name) for name in _NAMES}
    given = {name: os.environ.get(name, path) for name, path in places.items()}
    return given if all(Path(path).exists() for path in given.values()) else {}


@cache
def built_library(crate: str) -> Path | None:
    """Give a crate's library, built if it is not yet; None where it cannot be."""
    if sys.platform != "linux" or which("cargo") is None:
        return None
    built = subprocess.run(
        ["cargo", "build", "--locked", "--quiet", "-p", crate, "--profile", "preload"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    target = Path(os.environ.get("CARGO_TARGET_DIR", _ROOT / "target"))
    return target / "preload" / f"lib{crate.replace('-', '_')}.so"


def preload() -> Path | None:
    """Give the library that asks the agent for ports."""
    return built_library("hocket-preload")
