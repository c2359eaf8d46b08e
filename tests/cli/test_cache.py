"""``--no-cache``: every command that plans by ``auto`` has it, and then keeps no choice and takes none."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Hocket

TRACE = str(Path(__file__).parents[1] / "data" / "chakra" / "all_gather")
RING = ("-t", "line:4@1GB/s,1us")
COMMANDS = {
    "plan": ("plan", "all-gather", *RING, "-s", "4KB"),
    "compare": ("compare", "all-gather", *RING, "-s", "4KB", "-a", "auto"),
    "pareto": ("compare", "--front", "all-gather", *RING, "-s", "4KB", "-a", "auto"),
    "advise": ("topology", "advise", "--failures", "all-gather", *RING, "-s", "4KB", "-a", "auto"),
    "train": ("train", "ncf", *RING, "-a", "auto"),
    "compare-training": ("train", "--compare", "ncf", *RING, "-a", "auto"),
    "trace": ("trace", "run", TRACE, *RING, "-a", "auto"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_kept(
    name: str, hocket: Hocket, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOCKET_CACHE", str(folder / "cache"))
    argv = COMMANDS[name]
    assert hocket(*argv, "--no-cache").code == 0
    assert not (folder / "cache").exists()
    assert hocket(*argv).code == 0
    assert list((folder / "cache").glob("*/*.json"))
