"""``hocket verify``: prove a plan from a file."""

from __future__ import annotations

from typing import Annotated

from hocket.cli import options
from hocket.cli.command import Argument
from hocket.cli.plan import describe
from hocket.plans.plan import Plan

PlanFile = Annotated[
    str, Argument(metavar="PLAN", help="A plan file, as written by `hocket plan -o`.")
]


def verify(plan: PlanFile, json: options.Json = False) -> None:
    """Prove that a plan does what its collective requires in every timing; exit code 1 if not.

    For example: hocket verify plan.parquet
    """
    made = Plan.load(plan)
    with options.watching() as watch:
        made.verify(progress=watch)
    if json:
        options.print_result("plan", made.to_dict())
    else:
        sums = made.transfers.op.any()
        options.output().print(f"{describe(made)}: proved")
        if sums and made.is_reproducible:
            options.output().print("reproducible: sums have the same bits in every timing")
