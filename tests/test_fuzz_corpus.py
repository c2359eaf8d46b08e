"""Every input that fuzzing kept, run once by the door that it is for: no engine is needed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent.parent / "fuzz"
sys.path.append(str(FUZZ / "python"))

import kept  # noqa: E402
import targets  # noqa: E402


@pytest.mark.parametrize("name", targets.TARGETS)
def test_the_corpus_of_a_target_passes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = kept.read(name)
    assert len(inputs) > 3
    for data in inputs.values():
        with capsys.disabled():
            targets.TARGETS[name](data)


def test_every_archive_of_the_corpus_has_a_target() -> None:
    doors = "".join(path.read_text() for path in (FUZZ / "src").glob("*.rs"))
    lists = re.findall(r"TARGETS: .*? = \[(.*?)\];", doors, re.DOTALL)
    in_core = set(re.findall(r'"(\w+)"', "".join(lists)))
    assert {path.stem for path in (FUZZ / "fuzz_targets").iterdir()} == in_core
    assert set(kept.ARCHIVES) == in_core | set(targets.TARGETS)


def test_an_archive_of_the_same_inputs_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archives = {path: path.read_bytes() for path in kept.ARCHIVES.values()}
    inputs = {name: kept.read(name) for name in kept.ARCHIVES}
    monkeypatch.setattr(kept, "CORPUS", tmp_path)
    for name, each in inputs.items():
        kept.write(name, each)
    assert {path: (tmp_path / path.name).read_bytes() for path in archives} == archives
