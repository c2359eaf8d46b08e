"""``hocket reproduce``: which studies there are, without importing any."""

from __future__ import annotations

from hocket.cli.commands import Command

REPRODUCE = Command(
    "reproduce",
    "Repeat a published evaluation: tables and pictures beside the published numbers.",
    example="For example: hocket reproduce themis --output themis",
    commands=(
        Command(
            "themis",
            "Compute figures of Themis (ISCA 2022): 8 to 11 for all-reduce, 4 and 12 for training.",
            "hocket_studies.themis_tables:themis",
            "For example: hocket reproduce themis --output themis",
        ),
        Command(
            "tacos",
            "Compute tables I to V and figures 6, 19 and 21 of TACOS: synthesized plans and baselines.",
            "hocket_studies.tacos_tables:tacos",
            "For example: hocket reproduce tacos --table 3 --figure 6 --output tacos",
        ),
        Command(
            "mesh",
            "Compute table I and figures 8 to 14 of the RingBiOdd and TTO paper (HPCA 2024).",
            "hocket_studies.mesh_tables:mesh_study",
            "For example: hocket reproduce mesh --figure 12 --output mesh",
        ),
        Command(
            "routing",
            "Compute figures 4 to 8 of Cohen et al., Routing for large ML models.",
            "hocket_studies.routing_tables:routing_study",
            "For example: hocket reproduce routing --figure 7 --output routing",
        ),
        Command(
            "optimal",
            "Compute how far the best plans are from the lower bound, on all shipped machines.",
            "hocket_studies.optimal_tables:optimal_study",
            "For example: hocket reproduce optimal --machine dgx_a100_2box --size 1GB",
        ),
        Command(
            "machines",
            "Predict published sweeps of real machines from what was not fitted, and state the error.",
            "hocket_studies.machines_tables:machines_study",
            "For example: hocket reproduce machines --output machines",
        ),
        Command(
            "training",
            "Predict published training runs from what was not fitted, and state the error.",
            "hocket_studies.training_tables:training_study",
            "For example: hocket reproduce training --output training",
        ),
    ),
)
