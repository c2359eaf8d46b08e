"""The packages of the Python package and their order: a package imports only packages above it.

docs/architecture.md says what is in each. Every import counts, whether at the top of a file, in a function
or for types only.
"""

from __future__ import annotations

import ast
import pydoc
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import hocket as hk
from hocket._moved import MOVED

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "hocket"

PACKAGES = (
    "ground",
    "files",
    "topology",
    "collectives",
    "plans.slots",
    "plans.synthesis",
    "plans",
    "simulation",
    "runtime",
    "deployment",
    "distributed",
    "fitting",
    "profiles",
    "nccl",
    "telemetry",
    "comparison",
    "tuning",
    "workload",
    "workload.torch",
    "training",
    "throughput",
    "traces",
    "formats",
    "cluster",
    "steering",
    "routing",
    "sweeps",
    "layout",
    "plot",
    "explorer",
    "installation",
    "cli",
    "api",
)
"""From top to bottom. The modules of an outer package may import an inner one (a dot)."""

LOOSE = {
    "ground": {
        "errors",
        "units",
        "_checks",
        "_children",
        "_memory",
        "_moved",
        "_options",
        "_programs",
        "_results",
        "_schema",
        "_core",
    },
    "api": {"", "__main__", "_public", "from_torch"},
}
"""Packages that are no folder: modules that lie in the package itself, ``""`` being the package."""

BY_NAME = re.compile(r"\b(?:importlib|__import__|import_module|find_spec|runpy|sys\.modules)\b")
MAY_IMPORT_BY_NAME = {
    "plans/registry.py",  # algorithms of a user's own
    "__init__.py",  # the public API: public names when they are first asked for
    "cli/command.py",  # commands when they are called, by their places in cli/commands.py
    "cli/documents.py",  # what commands of other packages print
    "nccl/communicator.py",  # asks whether PyTorch is loaded, whose groups it then makes communicators for
    "distributed/cuda.py",  # an extension of a package that it does without
    "installation/components.py",  # asks which versions are installed, and packages for parts of their own
    "cli/route.py",  # asks whether a solver is installed
    "workload/torch/factory.py",  # a user's own module
}


def modules() -> dict[str, Path | None]:
    """Every module of the package, by its dotted name, with its file; the Rust core has none."""
    found: dict[str, Path | None] = {
        name: None for name in sys.modules if name.startswith("hocket._core")
    }
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = modules()


def package_of(module: str) -> str | None:
    """Name the package that a module lies in; ``None`` where no package claims it."""
    parts = module.split(".")[1:]
    for length in (2, 1):
        name = ".".join(parts[:length])
        if len(parts) >= length and name in PACKAGES and name not in LOOSE:
            return name
    first = parts[0] if parts else ""
    return next((package for package, names in LOOSE.items() if first in names), None)


def imports(source: str) -> set[str]:
    """Name the modules of the package that some code imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
            # Without "as", the name that is bound is the package: all of it can be reached.
            found.update(alias.name.partition(".")[0] for alias in node.names if not alias.asname)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where they go"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else str(node.module))
    return {name for name in found if name.partition(".")[0] == "hocket"}


def arrows() -> dict[tuple[str, str], set[str]]:
    """Which package imports which other, and the imports that do so."""
    found: dict[tuple[str, str], set[str]] = {}
    for module, file in MODULES.items():
        source = file.read_text() if file else ""
        for target in imports(PLOTS.sub("", source)):
            packages = (package_of(module), package_of(target))
            assert None not in packages, f"{module} imports {target}: no package claims one of them"
            if packages[0] != packages[1]:
                found.setdefault(packages, set()).add(f"{module} -> {target}")  # type: ignore[arg-type]
    return found


def test_every_kind_of_import_is_found() -> None:
    source = """
from hocket import _core, training
import hocket.plot.style
if TYPE_CHECKING:
    from hocket.cli import app
def lazy():
    from hocket.units import parse_size
    import numpy, hocket.traces.run as trace_run
"""
    assert imports(source) == {
        "hocket._core",
        "hocket.training",
        "hocket.plot.style",
        "hocket",
        "hocket.cli.app",
        "hocket.units",
        "hocket.traces.run",
    }


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("hocket", "api"),
        ("hocket.units", "ground"),
        ("hocket._core.trace", "ground"),
        ("hocket.plans", "plans"),
        ("hocket.plans.plan", "plans"),
        ("hocket.plans.slots.cuts", "plans.slots"),
        ("hocket.workload.torch", "workload.torch"),
        ("hocket.ground", None),
        ("hocket.helpers", None),
    ],
)
def test_modules_lie_in_packages(module: str, package: str | None) -> None:
    assert package_of(module) == package


def test_every_module_lies_in_a_package_and_every_package_has_one() -> None:
    packages = {module: package_of(module) for module in MODULES}
    assert not [module for module, package in packages.items() if package is None]
    assert set(packages.values()) == set(PACKAGES)
    assert {name.partition(".")[0] for names in LOOSE.values() for name in names} <= {
        module.partition(".")[2].partition(".")[0] for module in MODULES
    }


PLOTS = re.compile(r"\n    def plot\(self.*?(?=\n    def |\n    @|\n\n\n|\Z)", re.DOTALL)
"""Methods that draw a result. Pictures are below results, so these import upwards, and they alone."""


def test_packages_import_only_those_above_them() -> None:
    upward = {
        each
        for (package, other), names in arrows().items()
        if PACKAGES.index(other) > PACKAGES.index(package)
        for each in names
    }
    assert not upward


def test_nothing_is_imported_by_its_name_as_text() -> None:
    wrong = [
        name
        for name in sorted(str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py"))
        if name not in MAY_IMPORT_BY_NAME and BY_NAME.search((PACKAGE / name).read_text())
    ]
    assert not wrong


PUBLIC_PACKAGES = {
    "nccl",
    "routing",
    "steering",
    "topology",
    "traces",
    "training",
    "workload",
}


def test_no_module_takes_the_place_of_a_public_name() -> None:
    """Importing a module sets a name in its package, over a function of that name."""
    inner: dict[str, set[str]] = {}
    for module in MODULES:
        package, _, name = module.rpartition(".")
        inner.setdefault(package, set()).add(name)
    assert set(hk.__all__) & inner["hocket"] == PUBLIC_PACKAGES
    for package in PUBLIC_PACKAGES:
        public = getattr(hk, package)
        assert not set(public.__all__) & inner[f"hocket.{package}"]
        assert sorted(dir(public)) == sorted(public.__all__)


def test_tests_lie_in_the_packages_of_their_subjects() -> None:
    packages = {name.partition(".")[0] for name in PACKAGES} - {"ground", "api"}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert folders == packages | {"docs", "golden", "peer"}
    nested = {path.parent.name for path in PACKAGE.glob("*/*/__init__.py")}
    assert nested >= {path.parent.name for path in (ROOT / "tests").glob("*/*/test_*.py")}


def test_the_package_imports_none_of_the_packages_beside_it() -> None:
    """They are found by their entry points, where they are installed."""
    beside = re.compile(r"\bimport hocket_\w+|\bfrom hocket_\w+")
    assert not [file for file in MODULES.values() if file and beside.search(file.read_text())]


def test_what_has_moved_says_where_it_is() -> None:
    for name, where in MOVED.items():
        assert (ROOT / where.removeprefix("hocket_") / "src" / where).is_dir()
        with pytest.raises(ImportError, match=f"^hocket.{name} is the package {where} now; "):
            getattr(hk, name)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("routing.Certificate", "routing.LoadBound"),
        ("runtime.Measured", "runtime.TimedCalls"),
        ("training.Search", "training.ParallelSearch"),
        ("training.columns", "training.TrainingRun.columns"),
        ("training.stages.cut", "training.stages.partition"),
    ],
)
def test_an_old_name_is_answered_by_its_successor(old: str, new: str) -> None:
    module, _, name = f"hocket.{old}".rpartition(".")
    with pytest.raises(ImportError, match=f"^hocket.{old} is hocket.{new} now$"):
        getattr(import_module(module), name)
    owner, _, name = f"hocket.{new}".rpartition(".")
    found = pydoc.locate(owner)
    assert name in {*dir(found), *getattr(found, "__dataclass_fields__", ())}


def test_what_little_depends_on_is_what_the_page_says() -> None:
    into: dict[str, set[str]] = {}
    for above, below in arrows():
        into.setdefault(below, set()).add(above)
    assert into["cli"] == {"api"}
    assert into["plot"] == {"cli"}
    page = " ".join((ROOT / "docs" / "architecture.md").read_text().split())
    assert (
        "Only `hocket` itself imports `cli`, and only `cli` and the methods `plot` of results "
        "import `plot`."
    ) in page
