"""``hocket reproduce``: which studies there are, without importing any."""

from __future__ import annotations

from hocket.cli.command import Command

REPRODUCE = Command(
    about="Repeat a published evaluation and print the published numbers next to it.",
    example="For example: hocket reproduce themis --output themis",
    commands={
        name: Command(f"hocket_studies.{name}_tables:study")
        for name in (
            "themis",
            "tacos",
            "groups",
            "mesh",
            "routing",
            "optimal",
            "machines",
            "training",
            "moe",
        )
    },
)
