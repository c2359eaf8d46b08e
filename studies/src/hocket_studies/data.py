"""The data that studies print with ``--json``."""

from __future__ import annotations

from typing import Any

from typing_extensions import NotRequired, TypedDict


class ReproductionData(TypedDict):
    """Figures and tables of a paper, computed again; which keys there are depends on what was asked for."""

    source: str
    pictures: list[str]
    cases: NotRequired[list[dict[str, Any]]]
    figures: NotRequired[list[int]]
    schedulers: NotRequired[list[str]]
    networks: NotRequired[list[str]]
    utilization: NotRequired[dict[str, Any]]
    speedups: NotRequired[dict[str, Any]]
    activity: NotRequired[dict[str, Any]]
    chunk_sweep: NotRequired[dict[str, Any]]
    training: NotRequired[dict[str, Any]]
    training_utilization: NotRequired[dict[str, Any]]
    experiments: NotRequired[dict[str, Any]]
    choices: NotRequired[list[dict[str, Any]]]
    cells: NotRequired[list[dict[str, Any]]]
    checks: NotRequired[list[dict[str, Any]]]
    sets: NotRequired[list[str]]
    picks: NotRequired[list[dict[str, Any]]]
    orders: NotRequired[list[dict[str, Any]]]
    seeds: NotRequired[int]
    released: NotRequired[list[dict[str, Any]]]
    table_1: NotRequired[dict[str, Any]]
    example: NotRequired[dict[str, Any]]
    figure_7: NotRequired[dict[str, Any]]
    figure_8: NotRequired[dict[str, Any]]
    figure_9: NotRequired[dict[str, Any]]
    figure_10: NotRequired[list[dict[str, Any]]]
    figure_11: NotRequired[list[dict[str, Any]]]
    figure_12: NotRequired[list[dict[str, Any]]]
    figure_13: NotRequired[list[dict[str, Any]]]
    figure_14: NotRequired[list[dict[str, Any]]]
