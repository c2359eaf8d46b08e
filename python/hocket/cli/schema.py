"""Writes the JSON Schema of topology, workload or jobs files.

``python -m hocket.cli.schema [topology|workload|jobs] [FILE]``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from hocket.cluster import yaml as jobs_file
from hocket.errors import SpecError
from hocket.files.atomic import write_text
from hocket.topology import model
from hocket.workload import yaml as workload_file

_SCHEMAS = {
    "topology": model.json_schema,
    "workload": workload_file.json_schema,
    "jobs": jobs_file.json_schema,
}


def schema_text(kind: str = "topology") -> str:
    """Give the schema of a kind of file as it is written."""
    return json.dumps(_SCHEMAS[kind](), indent=2, ensure_ascii=False) + "\n"


def main(argv: Sequence[str]) -> int:
    """Write a schema, by default that of topologies, to the path given or to standard output."""
    kind = "topology"
    if argv and argv[0] in _SCHEMAS:
        kind, *argv = argv
    if len(argv) > 1:
        print("usage: python -m hocket.cli.schema [topology|workload|jobs] [FILE]", file=sys.stderr)
        return 2
    if argv:
        try:
            write_text(Path(argv[0]), schema_text(kind))
        except SpecError as error:
            print(error, file=sys.stderr)
            return 2
    else:
        sys.stdout.write(schema_text(kind))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
