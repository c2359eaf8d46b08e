"""What follows from the families that the core declares: functions of Python, tables of the docs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hocket._core.families import Family, Parameter
from hocket.topology.declared import FAMILIES, described, is_left_out
from hocket.topology.text import named_form

ROOT = Path(__file__).parents[2]
_MARKS = ("<!-- families: written by `make accept` -->", "<!-- /families -->")
_TYPES = {"count": "int", "bandwidth": "Quantity", "latency": "Duration", "flag": "bool"}
_HEAD = '''"""Families of networks, a function each: written by ``make accept`` from the core's list."""

from __future__ import annotations

from collections.abc import Sequence

from hocket._core import Topology
from hocket.topology.declared import build
from hocket.units import Duration, Quantity

'''


def files() -> dict[Path, str]:
    """Return every file that is written, with what is to stand in it."""
    docs = ROOT / "docs"
    return {
        ROOT / "python" / "hocket" / "topology" / "families.py": _functions(),
        docs / "topology-files.md": _between(docs / "topology-files.md", _keys()),
        docs / "python.md": _between(docs / "python.md", _calls()),
    }


def _between(page: Path, table: list[str]) -> str:
    """Return a page with a table between its marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(_MARKS[0])
    _, end, after = rest.partition(_MARKS[1])
    assert end == _MARKS[1], f"{page} has no marks"
    return "\n".join([before + _MARKS[0], "", *table, "", _MARKS[1] + after])


def _keys() -> list[str]:
    """Make the table of keys in topology files."""
    rows = ["| builder | network | as text | keys |", "| --- | --- | --- | --- |"]
    for name, family in FAMILIES.items():
        others = [each for each in family.parameters if each.name not in ("bandwidth", "latency")]
        keys = ", ".join(f"`{each.name}`{_otherwise(each)}" for each in others)
        about = family.about.splitlines()[0]
        rows.append(f"| `{name}` | {about} | `{named_form(family)}` | {keys} |")
    return rows


def _otherwise(parameter: Parameter) -> str:
    """Return what holds where a parameter is left out."""
    if parameter.required:
        return ""
    if parameter.default is None:
        return " (optional)"
    if isinstance(parameter.default, str):
        return f" (as `{parameter.default}` by default)"
    return f" ({str(parameter.default).lower()} by default)"


def _calls() -> list[str]:
    """Make the table of functions."""
    rows = ["| call | network |", "| --- | --- |"]
    for name, family in FAMILIES.items():
        arguments = ", ".join(
            f"{'*' * (each.unit == 'counts')}{each.name}"
            if _is_positional(each)
            else f"{each.name}="
            for each in _in_order(family)
        )
        rows.append(f"| `hk.topology.{name}({arguments})` | {family.about.splitlines()[0]} |")
    return rows


def _is_positional(parameter: Parameter) -> bool:
    return parameter.unit in ("count", "counts")


def _in_order(family: Family) -> list[Parameter]:
    """Return positional parameters first, and those that must be given before the others."""
    return sorted(family.parameters, key=lambda each: (not _is_positional(each), not each.required))


def _functions() -> str:
    names = ", ".join(f'"{name}"' for name in sorted(FAMILIES))
    bodies = "\n\n".join(map(_function, FAMILIES.values()))
    source = f"{_HEAD}__all__ = [{names},]\n\n\n{bodies}"
    for step in (["check", "--fix", "--quiet", "--select=I"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *step, "--stdin-filename=families.py", "-"]
        run = subprocess.run(
            command, cwd=ROOT, input=source, capture_output=True, text=True, check=True
        )
        source = run.stdout
    return source


def _function(family: Family) -> str:
    """Make the function of a family."""
    positional = [_argument(each) for each in _in_order(family) if _is_positional(each)]
    keywords = [_argument(each) for each in _in_order(family) if not _is_positional(each)]
    star = [] if positional[0].startswith("*") else ["*"]
    signature = ", ".join([*positional, *star, *keywords])
    passed = ", ".join(f"{each.name}={each.name}" for each in _in_order(family))
    return (
        f"def {family.name}({signature},) -> Topology:\n{_docstring(family)}\n"
        f'    return build("{family.name}", {passed})\n'
    )


def _argument(parameter: Parameter) -> str:
    name, unit = parameter.name, parameter.unit
    if unit == "counts":
        return f"*{name}: int | Sequence[int]"
    kind = _TYPES[unit]
    if parameter.required:
        return f"{name}: {kind}"
    if is_left_out(parameter):
        return f"{name}: {kind} | None = None"
    return f"{name}: {kind} = {parameter.default}"


def _docstring(family: Family) -> str:
    about, _, source = family.about.partition("\n# Source\n")
    lines: list[str] = []
    is_drawn = False
    for line in about.rstrip().splitlines():
        if line.startswith("```"):
            is_drawn = not is_drawn
            lines += ["::", ""] if is_drawn else []
        else:
            lines.append(f"    {line}" if is_drawn else line)
    lines += ["", "Parameters", "----------"]
    for each in _in_order(family):
        lines += [each.name, *(f"    {line}" for line in described(each).splitlines())]
    if source:
        lines += ["", "References", "----------", *source.splitlines()]
    mark = 'r"""' if "\\" in family.about else '"""'
    text = "\n".join(f"    {line}".rstrip() for line in lines).strip()
    return f'    {mark}{text}\n    """'
