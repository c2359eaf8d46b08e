"""Every door of the Python side, by the name of its archive in the corpus."""

from __future__ import annotations

import checks
import command
import frames
import graphs
import parquet
import texts

TARGETS: dict[str, checks.Door] = {
    name: checks.guarded(door)
    for name, door in {
        "topology_file": texts.topology,
        "jobs_file": texts.jobs,
        "workload_file": texts.workload,
        "schedule_file": texts.schedule,
        "quantity": texts.quantity,
        "value": texts.value,
        "spec": texts.spec,
        "plan_file": parquet.plan,
        "trace_file": parquet.trace,
        "graph": graphs.graph,
        "collective_file": texts.collective,
        "plan_frame": frames.frame,
        "own_algorithm": frames.registered,
        "groups": texts.groups,
        "sizes": texts.sizes,
        "sweep_file": texts.sweep,
        "recording_file": texts.recording,
        "completion": texts.completion,
    }.items()
}
TARGETS["command"] = checks.guarded(command.command, seconds=20.0)
