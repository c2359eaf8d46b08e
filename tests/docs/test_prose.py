"""Pages, help texts and docstrings keep the style sheet of CONTRIBUTING.md, as far as a program can tell.

``python tests/docs/test_prose.py [PAGE...]`` lists what a page, or each page, still has to mend.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").glob("**/*.md")) if "reference" not in page.parts),
]
"""Pages that people write; those in docs/reference are generated."""
LONG, LONGEST, SHARE = 25, 40, 0.05
"""Words that make a sentence long, words that no sentence exceeds, and the share that may be long."""
BANNED = re.compile(
    r"\b(rooms?|house|face|doors?|of which|of whose|thrice|anew|alike|unasked|dear(er|est)?|quickest"
    r"|besides?|speaks? of|in all(?= [0-9.,;:)]|[.,;:)])|is any|it is there that|that is said)\b"
)


FIRST = re.compile(r"(Give|Say|Of|What|Whose|Whether|Where|As|By|None)\b")
FORMS = re.compile(r"by default|may be repeated|; default|\b(\w+ \w+) \1\b", re.IGNORECASE)
"""Help texts say "Default: X." and "Can be repeated.", last and once."""


END = re.compile(
    r"""(?:(?<=[.?!:;])|(?<=[.?!:;][")*])|(?<=[.?!:;]\*\*)) (?=[A-Z`*("]|hocket |[a-z-]+\.md )"""
)
"""Where a sentence ends: at a stop, a colon or a semicolon, before a capital, a mark or a name."""


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(text: str) -> str:
    """Return a page without code, tables, headings, generated parts and the addresses of its links."""
    text = re.sub(r"<!-- commands: .*?<!-- end of commands -->", "", text, flags=re.DOTALL)
    text = re.sub(
        r"```.*?^\s*```|<summary>.*?</summary>|<[/a-z]+>", "", text, flags=re.DOTALL | re.MULTILINE
    )
    text = re.sub(r"^(?:[|#]| {4}).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page, which end with their paragraph or list item at the latest."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", prose(text)):
        line = re.sub(r"^(?:[-*]|\d+\.) ", "", " ".join(block.split()))
        yield from (part for part in END.split(line) if part)


def banned(text: str) -> Iterator[str]:
    """Yield each banned word of a page, with the words around it."""
    line = " ".join(re.sub(r"`[^`]*`", "``", prose(text)).split())
    for found in BANNED.finditer(line):
        yield f"{found[0]}: ...{line[max(0, found.start() - 40) : found.end() + 30]}..."


def faults(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    long = [each for each in sentences(text) if len(each.split()) > LONGEST]
    return [*(f"{len(each.split())} words: {each}" for each in long), *banned(text)]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page(page: Path) -> None:
    assert not faults(page)


def test_few_sentences_are_long() -> None:
    counts = [len(each.split()) for page in PAGES for each in sentences(page.read_text("utf-8"))]
    assert sum(count > LONG for count in counts) <= SHARE * len(counts)


def test_readme_fits_on_200_lines() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 200


def test_help_texts() -> None:
    page = (ROOT / "docs/command-line.md").read_text("utf-8").partition("<!-- commands: ")[2]
    rows = re.findall(r"^\| `(.+?)` \| (.+?)(?: \[[^\]]+\])? \|$", page, re.MULTILINE)
    assert len(rows) > 100
    found = []
    for option, text in rows:
        if FIRST.match(text) or FORMS.search(text) or BANNED.search(text):
            found.append(f"{option}: {text}")
        elif len(text.split()) > LONG:
            found.append(f"{option}: {len(text.split())} words: {text}")
    assert not found


def test_docstrings_of_functions_begin_with_what_they_do() -> None:
    found = []
    for folder in ("python/hocket", "testbed/src", "studies/src"):
        for path in sorted((ROOT / folder).glob("**/*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    first = (ast.get_docstring(node) or "").partition("\n")[0]
                    if re.match(r"(Give|Say)\b", first):
                        found.append(f"{name(path)}:{node.lineno}: {first}")
    assert not found


def test_a_word_has_one_row_in_the_glossary() -> None:
    rows = re.findall(r"^\| (.+?) \|", (ROOT / "docs/glossary.md").read_text("utf-8"), re.MULTILINE)
    words = [
        word for row in rows for word in row.split(", ") if word not in ("word", "code", "---")
    ]
    assert len(words) > 100
    assert sorted(words) == sorted(set(words))


def report(names: list[str]) -> None:
    """Print the faults and the long sentences of pages."""
    every = long = 0
    for page in PAGES:
        if names and not any(each in name(page) for each in names):
            continue
        found = list(sentences(page.read_text("utf-8")))
        over = [each for each in found if len(each.split()) > LONG]
        every, long = every + len(found), long + len(over)
        bad = faults(page)
        if bad or over:
            print(
                f"{name(page)}: {len(over)} of {len(found)} sentences are long, {len(bad)} faults"
            )
        if names:
            print(*(f"  {each}" for each in [*over, *bad]), sep="\n")
    print(f"{long} of {every} sentences have more than {LONG} words ({long / max(every, 1):.1%})")


if __name__ == "__main__":
    report(sys.argv[1:])
