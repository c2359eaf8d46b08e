"""What is said to be installed is, and what is missing comes with a remedy."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version

import pytest

import hocket as hk
from hocket.cli import run
from hocket.installation import components, examine


def test_each_part_is_here_or_comes_with_a_remedy() -> None:
    found = examine()
    assert found.hocket == hk.__version__
    assert found.python == platform.python_version()
    assert found.cores >= 1
    assert len({part.name for part in found.parts}) == len(found.parts) > 5
    for part in found.parts:
        assert part.purpose
        assert (part.found is None) == (part.remedy is not None), part


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(components, "version", nothing)
    monkeypatch.setattr(components.shutil, "which", lambda *_, **__: None)
    monkeypatch.delenv("HOCKET_AGENT", raising=False)
    found = {part.name: part for part in examine().parts}
    assert found["torch"].remedy == "pip install 'hocket[torch]'"
    assert (
        found["hocket-agent"].remedy
        == "build it with `make controller` in a checkout of hocket, or name it in HOCKET_AGENT"
    )
    assert found["browser"].found is None


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0
    assert version("networkx") in capsys.readouterr().out
    assert run(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "hocket.installation"
    assert {part["name"] for part in document["parts"]} >= {"networkx", "torch", "browser"}
