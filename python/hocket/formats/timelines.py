"""Plans as timelines for Perfetto: when each transfer is on each link."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hocket.collectives.collective import Progress
from hocket.files.perfetto import check_trace
from hocket.formats.judgement import Written
from hocket.simulation.run import simulate
from hocket.units import format_time_ps

if TYPE_CHECKING:
    from hocket.plans.plan import Plan


def write_timeline(
    plan: Plan, path: Path, _said: Mapping[str, Any], progress: Progress | None
) -> Written:
    """Simulate a plan at link fidelity and write what each link does when."""
    check_trace("output", path)
    run = simulate(plan, keep_services=True, progress=progress)
    run.save_perfetto(path)
    spans = len(run.core.service_link)
    return Written((path,), f"a timeline of {format_time_ps(run.time_ps)}: {spans:,} spans")
