"""What users install: the wheel in a bare environment, and the workflows that build and publish it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(file: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflows_run_what_there_is(file: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    found = steps(file)
    assert found
    for step in found:
        assert ("uses" in step) != ("run" in step), step
        if "uses" in step:
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[\w./]+", step["uses"]), step
            continue
        for target in re.findall(r"\bmake ([a-z-]+)", step["run"]):
            assert target in targets, f"{file.name}: make {target}"
        for script in re.findall(r"(?:^|\s)(\.ci/\w+)", step["run"]):
            assert os.access(ROOT / script, os.X_OK), f"{file.name}: {script}"


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflows_take_no_more_rights_than_they_need(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        if "permissions" in job:
            assert name in {"publish", "site"}
            assert "refs/tags/v" in job["if"]


def test_a_tag_publishes_after_all_is_built() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    assert workflow[True] == {
        "push": {"tags": ["v*"]},
        "workflow_dispatch": None,
    }  # "on" is a truth in YAML
    jobs = workflow["jobs"]
    assert set(jobs["publish"]["needs"]) == {"wheels", "sdist", "programs"}
    targets = {row["target"] for row in jobs["wheels"]["strategy"]["matrix"]["include"]}
    assert targets == {"x86_64", "aarch64"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel and a source distribution, and give their folder."""
    folder = tmp_path_factory.mktemp("dist")
    maturin = [str(Path(sys.executable).with_name("maturin"))]
    wheel = ["build", "--release", "--locked", "--generate-stubs", "--quiet"]
    for command in (wheel, ["sdist"]):
        subprocess.run([*maturin, *command, "--out", str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.mark.long
def test_the_wheel_has_all_that_the_package_reads(built: Path) -> None:
    (wheel,) = built.glob("hocket-*-cp310-abi3-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "python/hocket"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    missing = [name for name in tracked if name.removeprefix("python/") not in names]
    assert not missing
    assert any(name.endswith("_core.abi3.so") for name in names)
    assert {"hocket/_core/__init__.pyi", "hocket/_core/routing.pyi"} <= names
    assert {Path(name).name for name in names} >= {"LICENSE-MIT", "LICENSE-APACHE"}


@pytest.mark.long
def test_the_source_distribution_has_what_builds_it(built: Path) -> None:
    (sdist,) = built.glob("hocket-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"Cargo.lock", "Cargo.toml", "pyproject.toml", "crates/hocket-plan/src/lib.rs"} <= names
    assert {"python/hocket/py.typed", "python/hocket/_core/__init__.pyi"} <= names


@pytest.mark.long
def test_the_wheel_works_in_a_bare_environment(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("hocket-*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "bare")], check=True)
    binaries = tmp_path / "bare" / "bin"
    install = [str(binaries / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode != 0 and "No matching distribution" in done.stderr:
        pytest.skip("the packages that hocket needs cannot be had here")
    assert done.returncode == 0, done.stderr
    where = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False}
    for command in (
        ["doctor"],
        ["compare", "all-reduce", "--topology", "dgx1_v100", "--size", "256MB", "-a", "ring"],
        [
            "plan",
            "all-reduce",
            "-t",
            "mesh:2x2@25GB/s,1us",
            "-s",
            "1MB",
            "-a",
            "ring",
            "-o",
            "p.parquet",
        ],
        ["show", "p.parquet", "-o", "p.html"],
    ):
        found = subprocess.run([str(binaries / "hocket"), *command], **where)  # type: ignore[call-overload]
        assert found.returncode == 0, found.stderr
    assert (tmp_path / "p.html").stat().st_size > 10_000
