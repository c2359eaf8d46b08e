"""The commands, by where they are, without importing any."""

from __future__ import annotations

from hocket.cli.command import Command

SUMMARY = "Plan, prove, bound and simulate collective communication on any network."
EXAMPLE = "For example: hocket compare all-reduce --topology dgx1_v100 --size 256MB"
ROOT_OPTIONS = {
    "--version, -V": "Print the version.",
    "--install-completion": "Have the shell complete commands, options and names from now on.",
    "--show-completion": "Print what completes them, for the shell to read.",
    "--help, -h": "Show this, and exit.",
}


def _at(place: str) -> Command:
    return Command(f"hocket.cli.{place}")


GROUPS: dict[str, dict[str, Command]] = {
    "plan": {
        "plan": _at("plan:plan"),
        "compare": _at("compare:compare"),
        "pareto": _at("pareto:pareto"),
        "autotune": _at("autotune:autotune"),
        "schedule": _at("schedule:schedule"),
        "view": _at("view:view"),
        "explore": _at("explore:explore"),
        "serve": _at("serve:serve"),
        "export": _at("formats:export"),
        "import": _at("formats:import_"),
        "algorithms": _at("plan:algorithms"),
    },
    "judge": {
        "verify": _at("verify:verify"),
        "check": _at("formats:check"),
        "simulate": _at("simulate:simulate"),
        "run": _at("run_plan:run"),
    },
    "machines": {
        "predict": _at("predict:predict"),
        "predict-training": _at("predict_training:predict_training"),
        "measured": _at("measured:measured"),
        "calibrate": _at("calibrate:calibrate"),
        "nccl": Command(
            about="Say what NCCL would do and does, and write the files by which it does something else.",
            example="For example: hocket nccl audit topo.xml graph.xml",
            commands={
                "audit": _at("nccl_audit:audit_files"),
                "graph": _at("nccl_graph:graph"),
                "predict": _at("nccl:predict"),
                "tuner": Command(
                    about="Write a table for tuners of NCCL, or say what a tuner plugin picks.",
                    example="For example: hocket nccl tuner write --topology dgx_a100_2box -o tuner.csv",
                    commands={
                        "write": _at("nccl_tuner:write"),
                        "show": _at("nccl_tuner:show"),
                    },
                ),
            },
        ),
    },
    "training": {
        "train": _at("train:train"),
        "compare-training": _at("compare_training:compare_training"),
        "workload": Command(
            about="List models to be trained, show their layers, and make them from PyTorch modules.",
            example="For example: hocket workload show resnet152",
            commands={
                "list": _at("workload:list_workloads"),
                "show": _at("workload:show"),
                "from-torch": _at("workload_torch:from_torch"),
            },
        ),
        "trace": Command(
            about="Show execution traces in MLCommons Chakra's format, and run them on networks.",
            example="For example: hocket trace show traces/llama",
            commands={"show": _at("trace:show"), "run": _at("trace_run:run")},
        ),
    },
    "fabric": {
        "topology": Command(
            about="List, inspect, draw and export networks.",
            example="For example: hocket topology show dgx1_v100 --failed gpu0,gpu1",
            commands={
                "list": _at("topology:list_machines"),
                "show": _at("topology:show"),
                "draw": _at("topology:draw"),
                "export": _at("topology:export"),
            },
        ),
        "advise": Command(
            about="Say what limits a network, and what failures cost.",
            example="For example: hocket advise dims --topology themis-3d-fc-ring-sw",
            commands={"dims": _at("advise:dims"), "failures": _at("advise:failures")},
        ),
        "route": _at("route:route"),
        "controller": Command(
            "hocket.cli.programs:controller",
            commands={"calibrate": _at("probes:calibrate")},
            is_program=True,
        ),
        "agent": Command("hocket.cli.programs:agent", is_program=True),
        "launch": _at("launch:launch"),
    },
    "studies": {
        "sweep": Command(
            "hocket.cli.sweep:run",
            about="Run a command over a grid or a list of networks, sizes, algorithms and so on.",
            example="For example: hocket sweep sweep.yml -o results  ·  hocket sweep report results  ·  "
            "`hocket sweep FILE` is `hocket sweep run FILE`",
            commands={"run": _at("sweep:run"), "report": _at("sweep:report")},
        ),
        "design": _at("design:design"),
        "doctor": _at("doctor:doctor"),
        "testbed": Command(
            about="Build networks of Linux namespaces on this machine, and measure on them.",
            package="hocket-testbed",
        ),
        "reproduce": Command(
            about="Repeat a published evaluation: tables and pictures beside the published numbers.",
            package="hocket-studies",
        ),
    },
}
"""By what they are for, in the order of the help."""
COMMANDS = {name: each for commands in GROUPS.values() for name, each in commands.items()}
