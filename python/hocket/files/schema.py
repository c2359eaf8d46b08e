"""Writes the JSON Schema of topology files: ``python -m hocket.files.schema [FILE]``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from hocket.errors import SpecError
from hocket.files.atomic import write_text
from hocket.files.model import json_schema


def schema_text() -> str:
    """Give the schema as it is written."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def main(argv: Sequence[str]) -> int:
    """Write the schema to the path given, or to standard output."""
    if len(argv) > 1:
        print("usage: python -m hocket.files.schema [FILE]", file=sys.stderr)
        return 2
    if argv:
        try:
            write_text(Path(argv[0]), schema_text())
        except SpecError as error:
            print(error, file=sys.stderr)
            return 2
    else:
        sys.stdout.write(schema_text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
