"""The structure of the code as it is: crates, packages, what each needs, and a drawing of both.

``docs/architecture.md`` shows what these functions return; ``make accept`` writes it anew.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

from .test_packages import LOOSE, PACKAGES, arrows

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
DRAWING = ROOT / "docs" / "img" / "structure.svg"
BLOCK = re.compile(r"(<!-- (\w+), by make accept -->\n).*?(<!-- end -->)", re.DOTALL)

Needs = Mapping[str, frozenset[str]]


def crates() -> dict[str, frozenset[str]]:
    """Every crate, and the crates of the project that it needs to be built."""
    found = {}
    for file in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        built = re.split(r"^\[dev-dependencies\]", file.read_text(), flags=re.MULTILINE)[0]
        names = re.findall(r"^hocket-([\w-]+)(?:\.workspace)? *=", built, re.MULTILINE)
        found[file.parent.name.removeprefix("hocket-")] = frozenset(names)
    return found


def packages() -> dict[str, frozenset[str]]:
    """Every package of the Python package, and those that it imports."""
    needs: dict[str, set[str]] = {name: set() for name in PACKAGES}
    for package, other in arrows():
        needs[package].add(other)
    return {name: frozenset(found) for name, found in needs.items()}


def reduced(needs: Needs) -> dict[str, list[str]]:
    """Return what each needs, without what one of these needs itself: in the order of levels."""

    @cache
    def below(name: str) -> frozenset[str]:
        return needs[name].union(*(below(each) for each in needs[name]))

    height = levels(needs)
    return {
        name: sorted(
            (each for each in own if not any(each in below(other) for other in own)),
            key=lambda each: (height[each], each),
        )
        for name, own in needs.items()
    }


def levels(needs: Needs) -> dict[str, int]:
    """Return the level of each: one more than the highest level that it needs."""

    @cache
    def level(name: str) -> int:
        return 1 + max((level(each) for each in needs[name]), default=-1)

    return {name: level(name) for name in needs}


def purpose_of_crate(name: str) -> str:
    """Return what a crate is for: its description, or the first line of its documentation."""
    folder = ROOT / "crates" / f"hocket-{name}"
    manifest = (folder / "Cargo.toml").read_text()
    found = re.search(r'^description = "(.*)"', manifest, re.MULTILINE)
    return found[1] if found else (folder / "src" / "lib.rs").read_text()[4:].partition(".\n")[0]


def purpose_of_package(name: str) -> str:
    """Return the first sentence of a package's documentation."""
    if name in LOOSE:
        modules = ", ".join(f"`{each}`" for each in sorted(LOOSE[name]) if each)
        return f"Modules of `hocket` itself: {modules}"
    file = ROOT / "python" / "hocket" / name.replace(".", "/") / "__init__.py"
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return text.splitlines()[0].rstrip(".").replace("``", "`")


def modules_of_crate(name: str) -> list[str]:
    """Return the public modules of a crate, in their order."""
    lib = ROOT / "crates" / f"hocket-{name}" / "src" / "lib.rs"
    return re.findall(r"^pub mod (\w+);", lib.read_text(), re.MULTILINE) if lib.exists() else []


def table_of_crates() -> str:
    needs = reduced(crates())
    rows = [
        f"| `hocket-{name}` | {purpose_of_crate(name)} | "
        f"{', '.join(f'`{each}`' for each in modules_of_crate(name))} | {', '.join(needs[name])} |"
        for name in in_order(crates())
    ]
    return "\n".join(
        ["| crate | what it is | modules | needs |", "| --- | --- | --- | --- |", *rows]
    )


def table_of_packages() -> str:
    needs = reduced(packages())
    rows = [
        f"| `{name}` | {purpose_of_package(name)} | {', '.join(needs[name])} |" for name in PACKAGES
    ]
    return "\n".join(["| package | what it is | needs |", "| --- | --- | --- |", *rows])


def in_order(needs: Needs) -> list[str]:
    """Return all, those of lower levels first."""
    height = levels(needs)
    return sorted(needs, key=lambda name: (height[name], name))


BLOCKS = {"crates": table_of_crates, "packages": table_of_packages}


def page() -> str:
    """Return the page with its tables made anew."""
    text = PAGE.read_text(encoding="utf-8")
    return BLOCK.sub(lambda found: found[1] + BLOCKS[found[2]]() + "\n" + found[3], text)


WIDTH, ROW, HEIGHT, LETTER = 640, 58, 26, 7.6
"""Of one half of the drawing, a level, a box, and a letter [pixels]."""


def drawing() -> str:
    """Return the drawing: crates on the left, Python packages on the right, what is needed above."""
    lines, boxes, lowest = [], [], 0
    for left, title, needs in ((0, "crates", crates()), (WIDTH, "python/hocket", packages())):
        centres = placed(needs, left)
        lowest = max([lowest, *(y for _, y in centres.values())])
        boxes.append(f'<text x="{left + WIDTH / 2:.0f}" y="24" class="title">{title}</text>')
        for name, (x, y) in centres.items():
            wide = len(name) * LETTER + 18
            boxes.append(
                f'<rect x="{x - wide / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{wide:.1f}" '
                f'height="{HEIGHT}" rx="5"/><text x="{x:.1f}" y="{y + 4:.1f}">{escape(name)}</text>'
            )
        for name, own in reduced(needs).items():
            for other in own:
                if other == "ground" and name != "files":
                    continue  # every package needs it
                (x, y), (above_x, above_y) = centres[name], centres[other]
                top, bottom = above_y + HEIGHT / 2, y - HEIGHT / 2
                middle = (top + bottom) / 2
                lines.append(
                    f'<path d="M{above_x:.1f} {top:.1f}C{above_x:.1f} {middle:.1f} '
                    f'{x:.1f} {middle:.1f} {x:.1f} {bottom:.1f}"/>'
                )
    style = (
        "rect{fill:#fff;stroke:#4a6fa5}text{font:13px sans-serif;text-anchor:middle;fill:#222}"
        ".title{font-size:16px;font-weight:bold}path{fill:none;stroke:#9ab}"
    )
    size = f"0 0 {2 * WIDTH} {lowest + ROW / 2:.0f}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}"><style>{style}</style>'
    back = '<rect width="100%" height="100%" style="fill:#fff;stroke:none"/>'
    return "\n".join([head, back, *lines, *boxes, "</svg>", ""])


def placed(needs: Needs, left: float) -> dict[str, tuple[float, float]]:
    """Return the centre of each box: a row for each level, each box near what it needs."""
    centres: dict[str, tuple[float, float]] = {}
    height, direct = levels(needs), reduced(needs)
    for name in reversed(in_order(needs)):  # as near to what needs it as may be: lines are short
        height[name] = min(
            (height[each] - 1 for each in needs if name in needs[each]), default=height[name]
        )

    def wanted(name: str) -> float:
        over = [centres[each][0] for each in direct[name]]
        return sum(over) / len(over) if over else left + WIDTH / 2

    for level in range(max(height.values()) + 1):
        row = sorted(
            (each for each in needs if height[each] == level), key=lambda n: (wanted(n), n)
        )
        wide = [len(each) * LETTER + 38 for each in row]
        room = max(0.0, (WIDTH - sum(wide)) / (len(row) + 1))
        x = left + room
        for name, own in zip(row, wide, strict=True):
            centres[name] = (x + own / 2, 60 + ROW * level)
            x += own + room
    return centres
