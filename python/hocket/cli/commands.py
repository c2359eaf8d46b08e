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


def _at(place: str, **modes: str) -> Command:
    """Make a command of ``hocket.cli``; a mode named ``front`` is asked for by ``--front``."""
    places = {f"--{name.replace('_', '-')}": f"hocket.cli.{each}" for name, each in modes.items()}
    return Command(f"hocket.cli.{place}", modes=places)


GROUPS: dict[str, dict[str, Command]] = {
    "plan": {
        "plan": _at("plan:plan", dimension_only="schedule:schedule", list="plan:algorithms"),
        "compare": _at("compare:compare", front="pareto:pareto", table="autotune:predict_table"),
        "show": Command(
            "hocket.cli.view:view",
            modes={
                "-o FILE.html": "hocket.cli.explore:explore",
                "--live": "hocket.cli.serve:serve",
            },
        ),
        "export": _at("formats:export"),
        "import": _at("formats:import_"),
        "deploy": _at("deploy:deploy"),
    },
    "judge": {
        "check": _at("formats:check"),
        "simulate": _at("simulate:simulate"),
        "run": _at("run_plan:run", tune="autotune:tune"),
    },
    "machines": {
        "predict": _at(
            "predict:predict", training="predict_training:predict_training", nccl="nccl:predict"
        ),
        "measured": _at("measured:measured"),
        "calibrate": _at("calibrate:calibrate"),
        "nccl": Command(
            about="Predict, audit and change what NCCL runs.",
            example="For example: hocket nccl audit topo.xml graph.xml",
            commands={
                "audit": _at("nccl_audit:audit_files"),
                "graph": _at("nccl_graph:graph"),
                "tuner": Command(
                    about="Write a table for NCCL tuner plugins, or ask a plugin what it picks.",
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
        "train": _at("train:train", compare="compare_training:compare_training"),
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
            about="List, inspect, draw and export networks, and say what limits them.",
            example="For example: hocket topology show dgx1_v100 --failed gpu0,gpu1",
            commands={
                "list": _at("topology:list_machines"),
                "show": _at("topology:show"),
                "draw": _at("topology:draw"),
                "export": _at("topology:export"),
                "advise": _at("advise:dims", failures="advise:failures"),
            },
        ),
        "route": _at("route:route"),
        "controller": Command(
            "hocket.cli.programs:controller",
            commands={"calibrate": _at("probes:calibrate")},
            is_program=True,
        ),
        "agent": Command(
            "hocket.cli.programs:agent",
            commands={"launch": _at("launch:launch")},
            is_program=True,
        ),
    },
    "studies": {
        "sweep": Command(
            "hocket.cli.sweep:run",
            about="Run a command over a grid or a list of networks, sizes, algorithms and so on.",
            example="For example: hocket sweep sweep.yml -o results  ·  hocket sweep report results  ·  "
            "`hocket sweep FILE` is `hocket sweep run FILE`",
            commands={
                "run": _at("sweep:run"),
                "report": _at("sweep:report"),
                "design": _at("design:design"),
            },
        ),
        "doctor": _at("doctor:doctor"),
        "testbed": Command(
            about="Build networks of Linux namespaces on this machine, and measure on them.",
            package="hocket-testbed",
        ),
        "reproduce": Command(
            about="Repeat a published evaluation and print the published numbers next to it.",
            package="hocket-studies",
        ),
    },
}
"""By what they are for, in the order of the help."""
COMMANDS = {name: each for commands in GROUPS.values() for name, each in commands.items()}
GONE = {
    "algorithms": "plan --list",
    "pareto": "compare --front",
    "autotune": "compare --table` or `hocket run --tune",
    "schedule": "plan --dimension-only",
    "view": "show",
    "explore": "show -o FILE.html",
    "serve": "show --live",
    "verify": "check",
    "predict-training": "predict --training",
    "compare-training": "train --compare",
    "advise dims": "topology advise",
    "topology advise dims": "topology advise",
    "topology advise failures": "topology advise --failures",
    "advise failures": "topology advise --failures",
    "advise": "topology advise",
    "design": "sweep design",
    "launch": "agent launch",
    "nccl predict": "predict --nccl",
}
"""What has another name now: the old words, and the new ones."""
RENAMED = {
    "--precision": "--precision-bits",
    "--dimensions": "--most-dimensions",
    "--most": "--most-evaluated",
    "--pes": "--processing-elements",
    "--out-of-place": "--no-in-place",
    "-n": "--npus",
    "-s": "--scheme",
}
"""The same of options, for the commands that have the new one."""
