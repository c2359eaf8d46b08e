"""The section ``profile:`` of a topology file, put in as text so that the rest stays as it was written."""

from __future__ import annotations

import re


def with_profile(text: str, section: str) -> str:
    """Return the text of a topology file with another section ``profile:``, at its end.

    Parameters
    ----------
    text
        Of the file; a section that it has goes.
    section
        The new one, with its key.
    """
    lines = text.splitlines()
    kept: list[str] = []
    is_old = False
    for line in lines:
        if re.match(r"profile\s*:", line):
            is_old = True
        elif is_old and re.match(r"[^\s#-]", line):
            is_old = False
        if not is_old:
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    return "\n".join(kept) + "\n" + section
