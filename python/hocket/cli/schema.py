"""Writes the JSON Schema of a kind of files, or of what commands print.

``python -m hocket.cli.schema [topology|workload|jobs|collective|sweep|deploy|results] [FILE]`` writes one,
``python -m hocket.cli.schema all FOLDER`` each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from hocket.cli.documents import json_schema as results_schema
from hocket.cluster.yaml import json_schema as jobs_schema
from hocket.collectives.yaml import json_schema as collective_schema
from hocket.deployment.manifest import json_schema as deploy_schema
from hocket.errors import SpecError
from hocket.files.atomic import write_text
from hocket.sweeps.schema import json_schema as sweep_schema
from hocket.topology.model import json_schema as topology_schema
from hocket.workload.yaml import json_schema as workload_schema

KINDS = {
    "topology": topology_schema,
    "workload": workload_schema,
    "jobs": jobs_schema,
    "results": results_schema,
    "collective": collective_schema,
    "sweep": sweep_schema,
    "deploy": deploy_schema,
}


def schema_text(kind: str = "topology") -> str:
    """Return the schema of a kind of file as it is written."""
    return json.dumps(KINDS[kind](), indent=2, ensure_ascii=False) + "\n"


def main(argv: Sequence[str]) -> int:
    """Write a schema, by default that of topologies, to the path given or to standard output."""
    kind, *rest = argv if argv and argv[0] in (*KINDS, "all") else ["topology", *argv]
    is_word = len(argv) == 1 and kind == "topology" and rest and not Path(rest[0]).suffix
    if is_word or len(rest) > 1 or (kind == "all" and not rest):
        usage = f"[{'|'.join(KINDS)}] [FILE], or all FOLDER"
        print(f"usage: python -m hocket.cli.schema {usage}", file=sys.stderr)
        return 2
    try:
        if kind == "all":
            Path(rest[0]).mkdir(parents=True, exist_ok=True)
            for each in KINDS:
                write_text(Path(rest[0]) / f"{each}.schema.json", schema_text(each))
        elif rest:
            write_text(Path(rest[0]), schema_text(kind))
        else:
            sys.stdout.write(schema_text(kind))
    except (OSError, SpecError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
