"""Runs one target under libFuzzer by way of atheris: ``engine.py TARGET [CORPUS...] [-OPTION=...]``."""

from __future__ import annotations

import importlib
import pkgutil
import random
import sys

import atheris

_ELSEWHERE = (
    "hocket.from_torch",
    "hocket.workload.torch",
    "hocket.plot",
    "hocket._core",
)

with atheris.instrument_imports(include=["hocket"]):
    import targets
    from mutate import MUTATORS

    import hocket

    # What functions import when they are called is to be seen as well.
    for found in pkgutil.walk_packages(hocket.__path__, "hocket."):
        if not found.name.startswith(_ELSEWHERE):
            importlib.import_module(found.name)


def main(argv: list[str]) -> None:
    """Fuzz until an option of libFuzzer or a fault ends it."""
    if len(argv) < 2 or argv[1] not in targets.TARGETS:
        sys.exit(f"name a target: {', '.join(targets.TARGETS)}")
    mutator = MUTATORS.get(argv[1])

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        draw = random.Random(seed)
        changed = data
        if mutator is not None and draw.random() < 0.75:
            changed = mutator(data, draw)
        return atheris.Mutate(changed, most) if changed == data else changed[:most]

    own = {"custom_mutator": mutate} if mutator else {}
    atheris.Setup([argv[0], *argv[2:]], targets.TARGETS[argv[1]], **own)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
