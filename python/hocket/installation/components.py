"""Optional parts: which are here, and how to get the others."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, entry_points, version

from hocket import _core
from hocket._moved import REMEDY
from hocket._programs import path_of_program
from hocket._results import Column, Result, said
from hocket.deployment.manifest import RUNTIME
from hocket.errors import SpecError

_PACKAGES = (
    ("networkx", "networks from graphs", "networkx"),
    ("ortools", "`exact` and the routing scheme `ilp`", "exact"),
    ("scipy", "`calibrate`: constants of machines from measurements", "fit"),
    ("ray", "`sweep` on a cluster", "ray"),
    ("torch", "layers of PyTorch modules, and the backend of torch.distributed", "torch"),
)
"""Distribution, what it is for, and the extra that installs it."""

_BESIDE = (
    ("hocket-studies", "`reproduce`: published evaluations"),
    ("hocket-testbed", "`testbed`: plans and jobs on real packets"),
)
"""Distributions of the same repository, and what they are for."""

_PROGRAMS = (
    ("hocket-controller", "the routing controller of a cluster"),
    ("hocket-agent", "the controller's agent on a host"),
)
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox")


@dataclass(frozen=True)
class Part(Result):
    """Something that may be installed.

    Attributes
    ----------
    name, purpose
        What it is called, and what hocket does with it.
    found
        Its version or place; None where it is missing.
    remedy
        How to get it, where it is missing.
    """

    name: str = field(metadata=said(column=Column("part", leaves=0)))
    purpose: str = field(metadata=said(column=Column("for", is_prose=True)))
    found: str | None = field(
        metadata=said(column=Column("here", is_prose=True, leaves=0, nothing="no"))
    )
    remedy: str | None = field(
        default=None, metadata=said(column=Column("to get it", is_prose=True, nothing=""))
    )


@dataclass(frozen=True)
class Installation(Result):
    """The installed parts.

    Attributes
    ----------
    hocket, python, platform
        Versions, and what the machine is.
    cores
        Cores that this process may use.
    parts
        What is optional.
    """

    hocket: str
    python: str
    platform: str
    cores: int
    parts: tuple[Part, ...]


def examine() -> Installation:
    """Look what is installed here; nothing that is found is imported or run.

    Returns
    -------
    Installation
        The package itself, and each optional part with what it is for and how to get it.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Installation(
        _core.__version__,
        platform.python_version(),
        f"{platform.system()} {platform.machine()}",
        cores or 1,
        (
            *(
                _package(name, what, f"pip install 'hocket[{extra}]'")
                for name, what, extra in _PACKAGES
            ),
            _engine(),
            *(_package(name, what, REMEDY) for name, what in _BESIDE),
            *map(_program, _PROGRAMS),
            *(point.load()() for point in entry_points(group="hocket.parts")),
            _memory(),
            _browser(),
        ),
    )


def _package(name: str, purpose: str, remedy: str) -> Part:
    try:
        return Part(name, purpose, version(name))
    except PackageNotFoundError:
        return Part(name, purpose, None, remedy)


def _engine() -> Part:
    name, wanted = RUNTIME["runtime"], RUNTIME["version"]
    purpose = "deployed plans on GPUs: the engine in place of hocket's own"
    part = _package(name, purpose, f"install MSCCL++ {wanted}")
    if part.found in (None, wanted):
        return part
    remedy = f"install MSCCL++ {wanted}: {part.found} has other bindings"
    return replace(part, found=None, remedy=remedy)


def _program(program: tuple[str, str]) -> Part:
    name, purpose = program
    try:
        return Part(name, purpose, path_of_program(name))
    except SpecError as error:
        return Part(name, purpose, None, error.remedy)


def _memory() -> Part:
    purpose = "`run` and `hk.runtime` through shared memory of a host"
    if os.access("/dev/shm", os.W_OK):
        free = shutil.disk_usage("/dev/shm").free
        return Part("shared memory", purpose, f"/dev/shm, {free / 1e9:.1f} GB free")
    return Part("shared memory", purpose, None, "mount a tmpfs at /dev/shm, or use --transport tcp")


def _browser() -> Part:
    purpose = "pages of `show -o FILE.html`"
    for name in _BROWSERS:
        path = shutil.which(name)
        if path is not None:
            return Part("browser", purpose, path)
    return Part("browser", purpose, None, "open the page on another machine: it is one file")
