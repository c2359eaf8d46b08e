"""The error of the user's own code."""

from __future__ import annotations

_LONGEST = 200


def describe_failure(error: BaseException) -> str:
    """Return an error's kind and message in one short line."""
    text = " ".join(str(error).split())
    text = "".join(each if each.isprintable() else "?" for each in text)
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
