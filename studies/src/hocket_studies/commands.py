"""``hocket reproduce``: which studies there are, without importing any."""

from __future__ import annotations

from hocket.cli.command import Command

REPRODUCE = Command(
    about="Repeat a published evaluation: tables and pictures beside the published numbers.",
    example="For example: hocket reproduce themis --output themis",
    commands={
        "themis": Command("hocket_studies.themis_tables:themis"),
        "tacos": Command("hocket_studies.tacos_tables:tacos"),
        "mesh": Command("hocket_studies.mesh_tables:mesh_study"),
        "routing": Command("hocket_studies.routing_tables:routing_study"),
        "optimal": Command("hocket_studies.optimal_tables:optimal_study"),
        "machines": Command("hocket_studies.machines_tables:machines_study"),
        "training": Command("hocket_studies.training_tables:training_study"),
    },
)
