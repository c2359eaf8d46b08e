"""Every input that fuzzing kept, run once by the door that it is for: no engine is needed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent.parent / "fuzz"
sys.path.append(str(FUZZ / "python"))

import targets  # noqa: E402


@pytest.mark.parametrize("name", targets.TARGETS)
def test_the_corpus_of_a_target_passes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = sorted((FUZZ / "corpus" / name).iterdir())
    assert len(inputs) > 3
    for path in inputs:
        with capsys.disabled():
            targets.TARGETS[name](path.read_bytes())


def test_every_folder_of_the_corpus_has_a_target() -> None:
    doors = ("lib.rs", "service.rs", "protocol.rs", "between.rs", "host.rs", "nccl.rs", "files.rs")
    core = "".join((FUZZ / "src" / name).read_text() for name in doors)
    names = {path.name for path in (FUZZ / "corpus").iterdir()}
    in_core = {name for name in names if f'("{name}", ' in core}
    assert names == in_core | set(targets.TARGETS)
