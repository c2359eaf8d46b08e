"""Programs of the Rust crates, as the crates' own tests left them."""

from __future__ import annotations

import os
from pathlib import Path

_BUILT = Path(__file__).parent.parent / "target" / "debug"
_NAMES = ("hocket-controller", "hocket-agent")


def programs() -> dict[str, str]:
    """Give what the environment is to name so that hocket finds them; nothing where they are not built."""
    places = {name.replace("-", "_").upper(): str(_BUILT / name) for name in _NAMES}
    given = {name: os.environ.get(name, path) for name, path in places.items()}
    return given if all(Path(path).exists() for path in given.values()) else {}
