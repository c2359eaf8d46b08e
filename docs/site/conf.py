"""How the documentation site is built: ``make site`` writes it to ``target/site``.

The pages are those of ``docs/``, as they are. The reference is made of the docstrings: for each public
module a page that lists its names, and a page for each name.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import hocket

ROOT = Path(__file__).parents[2]

project = "hocket"
author = "the authors of hocket"
copyright = "the authors of hocket"
version = release = hocket.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["site", "schema"]
html_theme = "furo"
html_title = "hocket"
html_static_path: list[str] = []
html_theme_options = {"navigation_with_keys": True}

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
copybutton_prompt_text = "$ "

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what each is
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

MODULES = [
    "hocket",
    "hocket.topology",
    "hocket.workload",
    "hocket.training",
    "hocket.traces",
    "hocket.routing",
    "hocket.steering",
    "hocket.nccl",
    "hocket.formats",
    "hocket.runtime",
    "hocket_testbed",
]
"""Public modules, in the order of the reference."""


def names(module: ModuleType) -> list[str]:
    """Give the public names of a module that are no modules themselves."""
    public = getattr(module, "__all__", None) or dir(module)
    return [
        name
        for name in sorted(public, key=lambda name: (name[0].islower(), name.lower()))
        if not name.startswith("_") and not inspect.ismodule(getattr(module, name))
    ]


def described(module: ModuleType, name: str, seen: set[int]) -> str:
    """Give the page of a name; what another page has too is in the index once.

    The module's page leads to it. In the tree of contents, which each page has whole, names would be most
    of the site.
    """
    value: Any = getattr(module, name)
    full = f"{module.__name__}.{name}"
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
    options = ["   :members:"] if kind == "class" else []
    if kind == "class" and issubclass(value, BaseException):
        options.append("   :show-inheritance:")
    if kind == "class" and id(value) in seen:
        options.append("   :no-index:")
    seen.add(id(value))
    return "\n".join(
        [":orphan:", "", full, "=" * len(full), "", f".. auto{kind}:: {full}", *options, ""]
    )


def reference(folder: Path) -> None:
    """Write the pages of the reference."""
    folder.mkdir(exist_ok=True)
    figures = (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8")
    wanted = {"results.md": figures.replace("](../docs/", "](../")}
    seen: set[int] = set()
    for name in MODULES:
        module = importlib.import_module(name)
        rows = names(module)
        first = (module.__doc__ or name).strip().partition("\n\n")[0].replace("\n", " ")
        listed = "\n".join(f"   {name}.{row}" for row in rows)
        wanted[f"{name}.rst"] = (
            f"{name}\n{'=' * len(name)}\n\n{first}\n\n.. autosummary::\n\n{listed}\n"
        )
        wanted |= {f"{name}.{row}.rst": described(module, row, seen) for row in rows}
    modules = "\n".join(f"   {name}" for name in MODULES)
    wanted["index.rst"] = (
        "Reference\n=========\n\nWhat the package has, from its docstrings.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{modules}\n"
    )
    for page in folder.iterdir():
        if page.name not in wanted:
            page.unlink()
    for page_name, text in wanted.items():
        page = folder / page_name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


NAMED_BY_FILE = re.compile(r"\[[\w./-]+\.md\]\(([^)]+)\)")
"""A link whose text is the name of a file, as is best where pages are read as files."""


def pointed(app: Any, name: str, source: list[str]) -> None:
    """Point links to files outside ``docs/`` at their pages, and call pages by their titles."""
    text = source[0].replace("](../bench/RESULTS.md", "](reference/results.md")
    source[0] = NAMED_BY_FILE.sub(r"[](\1)", text)


def setup(app: Any) -> None:
    """Let Sphinx write the reference before it reads the pages."""
    app.connect("builder-inited", lambda app: reference(Path(app.srcdir) / "reference"))
    app.connect("source-read", pointed)
