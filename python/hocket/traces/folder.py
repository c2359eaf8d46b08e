"""The files of a folder for ASTRA-sim other than traces."""

from __future__ import annotations

import json
import re

MEMORY = {"memory-type": "NO_MEMORY_EXPANSION"}
"""ASTRA-sim's file of a memory beyond that of the NPUs, which there is none of."""
# "log" is what ASTRA-sim leaves.
_OWN = re.compile(r"(plan|workload)\.[0-9]+\.et|(system|memory|groups)\.json|network\.yml|log")


def is_trace_file(name: str) -> bool:
    """Return whether a file of a folder is one that is written here, by its name."""
    return _OWN.fullmatch(name) is not None


def json_text(values: object) -> str:
    """Write values as the text of a file beside the traces."""
    return json.dumps(values, indent=2) + "\n"
