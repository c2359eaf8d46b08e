"""Rules of the project that no other tool checks: module direction, paths, versions."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import hocket

ROOT = Path(__file__).parent.parent
PYTHON = (ROOT / "python", ROOT / "studies" / "src", ROOT / "testbed" / "src")
MODULE = re.compile(r"^(?:pub )?mod (\w+);", re.MULTILINE)
EXPORT = re.compile(r"^pub(?:\(crate\))? use (\w+)::(?:(\w+)|\{([^}]*)\});", re.MULTILINE)
CRATES = [
    lib.parent
    for lib in sorted((ROOT / "crates").glob("*/src/lib.rs"))
    if MODULE.search(lib.read_text())
]
"""Crates of several modules."""

# Paths of one machine. They would not be there on another.
MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:home|mnt|opt|root|tmp|work|workspace|Users)/\w")
TESTS = re.compile(
    r"^#\[cfg\(test\)\]\n(?:pub(?:\(\w+\))? )?mod \w+ \{\n.*?^\}", re.DOTALL | re.MULTILINE
)
ROOT_PATH = re.compile(r"\b(crate|super(?:::super)*)::(?:\{|(\w+))")


def tracked() -> list[Path]:
    """Files under version control that are there."""
    git = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if git.returncode != 0:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in git.stdout.decode().split("\0") if name]
    return [file for file in files if file.is_file()]


@cache
def parsed() -> dict[Path, ast.Module]:
    """Every module of the package as a tree."""
    files = sorted(file for folder in PYTHON for file in folder.rglob("*.py"))
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}


def text_of(file: Path) -> str:
    """Contents of a text file; nothing of a binary one."""
    raw = file.read_bytes()
    return "" if b"\0" in raw else raw.decode(errors="replace")


def module_order(crate: Path) -> list[str]:
    """Modules of a crate, those of other crates first, then in the order that lib.rs declares."""
    lib = (crate / "lib.rs").read_text()
    taken = re.findall(r"^use hocket_\w+(?: as (\w+)|::\{([\w, ]+)\}|::(\w+));", lib, re.MULTILINE)
    below = [name for found in taken for name in ", ".join(filter(None, found)).split(", ")]
    return below + MODULE.findall(lib)


def exported(crate: Path) -> dict[str, str]:
    """Module of each name that lib.rs passes on: ``crate::Fabric`` is of ``fabric``."""
    found = EXPORT.findall((crate / "lib.rs").read_text())
    return {
        name: module for module, one, several in found for name in re.findall(r"\w+", one + several)
    }


def code_of(source: str) -> str:
    """Rust code without comments and without the modules of tests in it, with as many lines."""
    code = re.sub(r"//.*", "", source)
    return TESTS.sub(lambda found: "\n" * found[0].count("\n"), code)


def in_braces(source: str, at: int) -> list[str]:
    """First names of what a brace lists, with other braces in it or not."""
    names, depth, is_first = [], 0, True
    for found in re.compile(r"[{},]|\w+").finditer(source, at):
        if found[0] in "{}":
            depth += 1 if found[0] == "{" else -1
            if depth == 0:
                break
        elif found[0] == "," and depth == 1:
            is_first = True
        elif depth == 1 and is_first and found[0] != ",":
            names.append(found[0])
            is_first = False
    return names


def crate_modules(source: str, depth: int = 0) -> set[str]:
    """Top modules that some Rust code names, as crate::x or from so deep a module through super."""
    source = code_of(source)
    names: set[str] = set()
    for found in ROOT_PATH.finditer(source):
        above = 0 if found[1] == "crate" else found[1].count("super")
        if above in (0, depth):
            names.update([found[2]] if found[2] else in_braces(source, found.end() - 1))
    return names


def test_crate_modules_are_found() -> None:
    source = "use crate::{id::LinkId, units};\n// crate::report\nlet x = crate::plan::Op::Copy;"
    assert crate_modules(source) == {"id", "units", "plan"}
    nested = "use crate::{\n    plan::{Op, Plan},\n    units,\n    verify::{self, Proof},\n};"
    assert crate_modules(nested) == {"plan", "units", "verify"}
    upward = (
        "use super::super::{bound, simulate::link};\nuse super::ways;\nuse super::super::report;"
    )
    assert crate_modules(upward, 2) == {"bound", "simulate", "report"}
    assert crate_modules(upward, 1) == {"ways"}
    tests = "#[cfg(test)]\nmod tests {\n    use crate::trace::Trace;\n    fn f() {\n    }\n}\n"
    assert crate_modules(tests + "use crate::plan::Op;") == {"plan"}
    declared = "#[cfg(test)]\nmod tests;\nuse crate::replay::Replay;"
    assert crate_modules(declared) == {"replay"}


def test_crate_modules_are_found_in_all_of_every_file() -> None:
    """Whatever a file has, what stands at its beginning and at its end is seen, and no test is."""
    for file in (file for crate in CRATES for file in sorted(crate.rglob("*.rs"))):
        source = file.read_text()
        around = f"use crate::first;\n{source}\nuse crate::last::X;\n"
        assert crate_modules(around) - crate_modules(source) == {"first", "last"}, file
        lines = {line.strip() for line in code_of(source).splitlines()}
        assert not lines & {"#[test]", "proptest! {"} or "tests" in (*file.parts, file.stem), file


def test_modules_use_only_those_above_them() -> None:
    orders = {crate.parent.name: module_order(crate) for crate in CRATES}
    assert len(orders) > 12
    assert orders["hocket-base"][:2] == ["units", "id"]
    assert orders["hocket-plan"][-3:] == ["simulate", "report", "multirail"]
    assert exported(ROOT / "crates/hocket-fabric/src")["RoutingError"] == "error"
    wrong = []
    for crate in CRATES:
        order, modules = orders[crate.parent.name], exported(crate)
        for file in sorted(crate.rglob("*.rs")):
            parts = file.relative_to(crate).with_suffix("").parts
            if parts[0] in ("lib", "main") or "tests" in parts:
                continue
            own = order.index(parts[0])
            deep = len(parts) - (parts[-1] == "mod")
            used = {modules.get(name, name) for name in crate_modules(file.read_text(), deep)}
            below = used & set(order[own + 1 :])
            wrong += [f"{file.relative_to(ROOT)} uses crate::{name}" for name in sorted(below)]
    assert not wrong


DEBUG = re.compile(r"\{(\w*):#?\?\}")
# Variables that hold text, which is quoted so, and lists of numbers.
QUOTED = {
    "name",
    "given",
    "topology",
    "src",
    "dst",
    "first",
    "other",
    "order",
    "stuck",
    "",
    "_0",
    "numbers",
} | {
    *("text", "word", "key", "mode"),
}


def test_errors_have_no_debug_text() -> None:
    """What Rust prints for debugging (`Transfer(TransferId(3))`) is for nobody who reads an error."""
    wrong = []
    for file in sorted((ROOT / "crates").rglob("src/**/*.rs")):
        if "tests" in (*file.parts, file.stem):
            continue
        for number, line in enumerate(code_of(file.read_text()).splitlines(), 1):
            names = set(DEBUG.findall(re.sub(r"assert\w*!.*", "", line)))
            if names - QUOTED:
                wrong.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not wrong


def test_no_file_names_a_path_of_one_machine() -> None:
    wrong = []
    for file in tracked():
        for number, line in enumerate(text_of(file).splitlines(), 1):
            if MACHINE_PATH.search(line):
                wrong.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert not wrong


def test_there_is_one_version() -> None:
    pattern = re.compile(r'^version = "([^"]+)"', re.MULTILINE)
    found = {name: pattern.search((ROOT / name).read_text()) for name in TOML}
    assert {name: match and match[1] for name, match in found.items()} == dict.fromkeys(
        TOML, hocket.__version__
    )
    assert f"[{hocket.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_release_notes_are_one_page() -> None:
    """What a user gets, release by release; the history of each change is git's."""
    releases = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    assert [each.partition("\n")[0] for each in releases if len(each.splitlines()) > 60] == []


TOML = ["Cargo.toml", "pyproject.toml", "studies/pyproject.toml", "testbed/pyproject.toml"]


def test_every_dependency_is_explained() -> None:
    """Each must earn its place: its line says what for."""
    project = (ROOT / "pyproject.toml").read_text().split("[tool.maturin]")[0]
    python = re.findall(r'^.*"[\w-]+>=.*$', project.split("dependencies = [")[1], re.MULTILINE)
    workspace = (ROOT / "Cargo.toml").read_text().split("[workspace.dependencies]")[1]
    rust = re.findall(r"^(?!hocket-)[\w-]+ = .*$", workspace.split("\n[")[0], re.MULTILINE)
    assert len(python) > 20
    assert len(rust) > 20
    assert not [line for line in (*python, *rust) if not re.search(r" # \w", line)]


def test_the_fuzz_targets_lock_what_the_crates_depend_on() -> None:
    """Else ``make fuzz`` refuses the file: cargo metadata in fuzz/ writes it anew."""
    read = pytest.importorskip("tomllib").loads
    stale = {}
    for each in read((ROOT / "fuzz" / "Cargo.lock").read_text())["package"]:
        file = ROOT / "crates" / each["name"] / "Cargo.toml"
        if not file.exists():
            continue
        manifest = read(file.read_text())
        needs = {
            name: isinstance(how, dict) and how.get("optional", False)
            for part in (manifest, *manifest.get("target", {}).values())
            for kind in ("dependencies", "build-dependencies")
            for name, how in part.get(kind, {}).items()
        }
        locked = {name.split()[0] for name in each.get("dependencies", ())}
        stale[each["name"]] = {name for name in needs.keys() ^ locked if not needs.get(name)}
    assert len(stale) > 10
    assert {name: wrong for name, wrong in stale.items() if wrong} == {}


def imported(tree: ast.Module) -> set[str]:
    """Packages of others that code imports when it runs, those for type checkers left out."""
    names: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            names.update(each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
        waiting += ast.iter_child_nodes(node)
    return {
        name
        for name in names
        if name not in sys.stdlib_module_names and not name.startswith("hocket")
    }


def test_imports_are_found() -> None:
    source = "import os, numpy.linalg\nif TYPE_CHECKING:\n    import mypy\nelse:\n    import rich\n"
    source += (
        "def f():\n    from yaml.reader import Reader\nfrom hocket import errors\nfrom . import x\n"
    )
    assert imported(ast.parse(source)) == {"numpy", "rich", "yaml"}


def test_every_package_that_is_imported_is_declared() -> None:
    """A package that is there only because another needs it may be gone with the next version of that."""
    project = (ROOT / "pyproject.toml").read_text().split("[project.scripts]")[0]
    declared = {name.lower() for name in re.findall(r'"([\w-]+)>=', project)}
    called = {"yaml": "pyyaml"}
    missing: dict[str, list[str]] = {}
    for path, tree in parsed().items():
        for name in imported(tree):
            if called.get(name, name) not in declared:
                missing.setdefault(name, []).append(path.name)
    assert not missing


def test_every_check_is_explained_by_make_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    checks = " ".join(re.findall(r"^(?:BUILDS|RUNS) := (.*)$", makefile, re.MULTILINE)).split()
    assert {"clippy", "pytest"} <= set(checks)
    for target in [*checks, "demo", "test", "examples", "bench"]:
        assert re.search(rf"^{target}:.*## \w", makefile, re.MULTILINE), target


def test_the_command_line_starts_without_what_is_slow_to_import() -> None:
    slow = ("matplotlib", "numpy", "pyarrow", "pydantic", "rich", "scipy", "yaml")
    code = f"import sys, hocket.cli; print(*(name for name in {slow} if name in sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []


def test_lists_of_algorithms_name_those_of_the_table() -> None:
    """What a list in Python calls an algorithm is in the core's table; papers have names of their own."""
    known = {each.name for each in hocket.algorithms()}
    wrong, lists = [], 0
    for path, tree in parsed().items():
        for node in [] if "hocket_studies" in path.parts else ast.walk(tree):
            if not isinstance(node, ast.Tuple | ast.List | ast.Set):
                continue
            names = [
                each.value
                for each in node.elts
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            ]
            if len(names) > 2 and 3 * len(known & set(names)) > 2 * len(names):
                lists += 1
                wrong += [f"{path.name}: {name}" for name in names if name not in known]
    assert lists > 3
    assert not wrong


def test_unsafe_code_of_the_binding_is_where_it_says() -> None:
    folder = ROOT / "crates" / "hocket-py" / "src"
    files = {file.stem: code_of(file.read_text()) for file in sorted(folder.rglob("*.rs"))}
    used = {name for name, code in files.items() if re.search(r"\bunsafe\b", code)}
    said = (folder / "arrays.rs").read_text().splitlines()[0]
    assert "Unsafe code is here, in " in said
    assert {"arrays", *re.findall(r"`(\w+)`", said)} == used


def test_no_text_of_an_error_of_the_core_is_parsed() -> None:
    """Errors have parts; only the runtime takes the number off the system's text."""
    whose, cuts = (
        "(?:error|err|wrong|fault|self)",
        "(?:strip_|split|contains|starts|ends|find|trim)",
    )
    cut = re.compile(
        rf"\b{whose}\.to_string\(\)\s*\.\s*{cuts}"
        rf"|let (\w+) = {whose}\.to_string\(\);[\s\S]{{0,400}}?\b\1\.{cuts}"
    )
    found = {
        str(file.relative_to(ROOT / "crates"))
        for file in sorted((ROOT / "crates").rglob("src/**/*.rs"))
        if "tests" not in (*file.parts, file.stem) and cut.search(code_of(file.read_text()))
    }
    assert found <= {"hocket-runtime/src/lib.rs"}


def test_no_text_of_an_error_is_parsed() -> None:
    """Errors have fields; what they print is for people."""
    cut = re.compile(r"str\((?:error|wrong|caught)\)\s*\.\s*(?:removeprefix|partition|replace)\(")
    found = [
        f"{path.name}: {match.group()}"
        for path in parsed()
        for match in cut.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found
