"""Inputs that fuzzing kept: an archive for each target, which stores them as they are."""

from __future__ import annotations

import zipfile
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "corpus"
ARCHIVES = {path.stem: path for path in sorted(CORPUS.glob("*.zip"))}


def read(target: str) -> dict[str, bytes]:
    """Give the inputs of a target by name: none where it is new."""
    if target not in ARCHIVES:
        return {}
    with zipfile.ZipFile(ARCHIVES[target]) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(target: str, inputs: dict[str, bytes]) -> None:
    """Write the archive of a target: the same inputs give the same bytes on every machine."""
    with zipfile.ZipFile(CORPUS / f"{target}.zip", "w") as archive:
        for name, data in sorted(inputs.items()):
            # With the oldest date that there is, and no compression, which `fuzz/src/kept.rs` relies on.
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            archive.writestr(info, data)
