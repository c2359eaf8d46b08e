"""Manifests for tests, without files beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hocket.deployment import MANIFEST
from hocket.deployment.manifest import PARTED, Deployment, Entry, digest, load_deployment

FILE = {"file": "a.json", "sha256": "0" * 64}


def row(collective: str, ranks: int, least: int, most: int, **more: Any) -> dict[str, Any]:
    """Return an entry of a manifest."""
    protocol = more.get("protocol", "Simple")
    return {
        "collective": collective,
        "from_bytes": least,
        "to_bytes": most,
        "id": f"{collective}-{ranks}-{least}-{protocol}",
        "ranks": ranks,
        "algorithm": "direct",
        "plan": FILE,
        "program": FILE,
        "name": "direct-0",
        "protocol": "Simple",
        "unit_bytes": 16 * (ranks if collective in PARTED else 1),
        "max_bytes": 1 << 30,
        "blocks": 8,
        "switches": False,
        "planned_bytes": most - 1,
        "predicted_ps": 1,
        "nccl_ps": None,
        "over_bound": 0.1,
        "over_best": 0.0,
        **more,
    }


def values(groups: list[dict[str, Any]], entries: list[dict[str, Any]], npus: int = 8) -> Any:
    """Return the values of a manifest, with its hash."""
    found = {
        "format": "hocket.deploy",
        "version": 1,
        "hocket": "0.1.0",
        "made_for": {"runtime": "mscclpp", "version": "0.9.0"},
        "machine": {
            "topology": "ring 8",
            "npus": [
                {"name": f"gpu{npu}", "node": npu // 8, "bus": f"0000:{npu % 8:02x}:00.0"}
                for npu in range(npus)
            ],
            "processors": 78,
            "gpu": None,
        },
        "estimates": {"launch_ps": 1, "copy_rate": 1, "tolerance": 0.05},
        "groups": [{"left_to_nccl": [], **each} for each in groups],
        "entries": entries,
        "fallback": {"tuner": None, "graphs": [], "max_ctas": 16},
    }
    return {**found, "sha256": digest(found)}


def saved(folder: Path, what: Any) -> Deployment:
    """Write values as a manifest, and read it."""
    (folder / MANIFEST).write_text(what if isinstance(what, str) else json.dumps(what))
    return load_deployment(folder)


def entry(collective: str, ranks: int, least: int, most: int, **more: Any) -> Entry:
    """Return an entry."""
    return Entry.model_validate(row(collective, ranks, least, most, **more))
