"""Printing of errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hocket.errors import Error, VerificationError
from hocket.units import printable


def print_error(argv: Sequence[str], kind: str, error: Error | str) -> None:
    """Print an error: one line on standard error, and JSON on standard output where that was asked."""
    message = printable(" ".join(str(error).split()))
    print(f"hocket: {message}", file=sys.stderr)
    if "--json" not in argv:
        return
    value: dict[str, Any] = {"error": kind, "message": message}
    if isinstance(error, Error):
        parts = {name: getattr(error, name) for name in ("field", "why", "remedy", "origin")}
        value |= {name: text for name, text in parts.items() if text is not None}
    if isinstance(error, VerificationError):
        value["violations"] = [
            {
                "code": violation.code,
                "transfer": violation.transfer,
                "chunk": violation.chunk,
                "npu": violation.npu,
                "detail": violation.detail,
            }
            for violation in error.violations
        ]
    with suppress(OSError):  # which may be what went wrong
        print(json.dumps(value, indent=2))
