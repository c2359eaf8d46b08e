"""``hocket explore``: a page that shows a plan move over its network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hocket.cli import options
from hocket.cli.verify import PlanFile
from hocket.errors import SpecError
from hocket.files.atomic import check_target
from hocket.plans.plan import Plan
from hocket.simulation.run import simulate


def explore(
    plan: PlanFile,
    file: Annotated[str, typer.Option("--output", "-o", help="Write the page to this .html file.")],
) -> None:
    """Write a page that shows a plan move over its network, for any browser."""
    target = Path(file)
    check_target(target)
    if target.resolve() == Path(plan).resolve():
        raise SpecError("--output", f"{file} is the plan", "name another file")
    made = Plan.load(plan)
    with options.watching() as watch:
        run = simulate(made, keep_services=True, progress=watch)
    from hocket.explorer.page import write_page

    write_page(run, target)
    print(f"{len(made)} transfers written to {file}")
