"""The commands: name, summary, and where each is, without importing any."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command that is imported when it is called, or a group of such commands.

    Parameters
    ----------
    name
        As it is typed.
    summary
        The first line of its help. For a function, that of its docstring (a test compares them).
    place
        Module and name in it, as ``"plan:algorithms"``; without a dot, the module is of ``hocket.cli``.
    example
        How it is called.
    commands
        What it has instead of a place, if it is a group.
    package
        Distribution that has it instead: its entry point of this name in the group ``hocket.commands``
        is the command, a ``Command`` or an application of Typer.
    is_program
        Whether all that is typed after its name, ``--help`` too, is for a program that it runs.
    """

    name: str
    summary: str
    place: str = ""
    example: str | None = None
    commands: tuple[Command, ...] = ()
    package: str = ""
    is_program: bool = False


SUMMARY = "Plan, prove, bound and simulate collective communication on any network."
EXAMPLE = "For example: hocket compare all-reduce --topology dgx1_v100 --size 256MB"

COMMANDS = (
    Command(
        "compare",
        "Plan, prove and simulate a collective with every algorithm that applies, fastest first.",
        "compare:compare",
        "For example: hocket compare all-reduce --topology dgx1_v100 --size 256MB "
        "--failed gpu0,gpu1  ·  hocket compare all-gather --topology mesh:9x9 "
        '--bandwidth "25 GB/s" --latency "21 ns" --size 64MB --plot mesh.png',
    ),
    Command(
        "pareto",
        "Find the quickest plan of each size, and the sizes at which another becomes the quickest.",
        "pareto:pareto",
        "For example: hocket pareto all-reduce --topology dgx1_v100 -o table.csv --plot front.png",
    ),
    Command(
        "sweep",
        "Run a command over a grid or a list of networks, sizes, algorithms and so on.",
        "sweep:sweep",
    ),
    Command(
        "design",
        "Find the network for a budget on which a collective or a training iteration takes the least time.",
        "design:design",
        "For example: hocket design all-reduce --npus 16 --size 64MB --costs prices.yml --budget 9000 "
        "-o best.yml",
    ),
    Command(
        "plan",
        "Plan a collective with one algorithm, prove the plan, and write it to a file.",
        "plan:plan",
        "For example: hocket plan all-reduce --topology dgx1_v100 --size 64MB "
        "--algorithm bidirectional-ring -o plan.parquet",
    ),
    Command(
        "schedule",
        "Schedule a collective on a product topology, and run the schedule at dimension fidelity.",
        "schedule:schedule",
        "For example: hocket schedule all-reduce --topology themis-3d-homo --size 1GB "
        "--algorithm themis --save homo  ·  hocket plan all-reduce --topology themis-3d-homo "
        "--size 1GB --algorithm schedule:homo",
    ),
    Command(
        "verify",
        "Prove that a plan does what its collective requires in every timing; exit code 1 if not.",
        "verify:verify",
        "For example: hocket verify plan.parquet",
    ),
    Command(
        "export",
        "Prove a plan and write it as a file of a runtime.",
        "formats:export",
        "For example: hocket export plan.parquet --to msccl -o plan.xml",
    ),
    Command(
        "check",
        "Judge a file of a runtime: its rules, deadlocks, races and results; exit code 1 if it is wrong.",
        "formats:check",
        "For example: hocket check plan.xml",
    ),
    Command(
        "import",
        "Read a file of a runtime as a plan, or say what it is.",
        "formats:import_",
        "For example: hocket import plan.xml -t dgx1_v100 -o plan.parquet",
    ),
    Command(
        "simulate",
        "Prove a plan and run it in simulated time.",
        "simulate:simulate",
        "For example: hocket simulate plan.parquet --switching cut-through --plot heat.png",
    ),
    Command(
        "explore",
        "Write a page for any browser: plans that move over networks, sweeps, iterations or jobs.",
        "explore:explore",
        "For example: hocket explore plan.parquet -o page.html  ·  hocket explore a.parquet b.parquet -o "
        "both.html",
    ),
    Command(
        "serve",
        "Show plans live in a browser: a form says what is planned; Ctrl-C ends it.",
        "serve:serve",
        "For example: hocket serve --topology torus:8x8@25GB/s,700ns",
    ),
    Command(
        "autotune",
        "Find the plan for each size, by prediction or measurement, and keep a table of them.",
        "autotune:autotune",
        "For example: hocket autotune --np 4 --measure  ·  hocket autotune -t mesh:2x2 -o table.json",
    ),
    Command(
        "run",
        "Run a plan between processes of this machine, check the result, and time it.",
        "run_plan:run",
        "For example: hocket run plan.parquet  ·  hocket run --np 4 --size 16MB --algorithm ring",
    ),
    Command(
        "view",
        "Draw a plan on its network: its rings and trees, how busy links are, or its transfers over time.",
        "view:view",
        "For example: hocket view plan.parquet -o trees.png  ·  hocket view plan.parquet --heat "
        "-o heat.png  ·  hocket view plan.parquet --ten --latency-model occupying -o ten.png",
    ),
    Command(
        "train",
        "Simulate training iterations of a model on a network.",
        "train:train",
        "For example: hocket train resnet152 --topology themis-3d-homo --npu a100 --efficiency 0.5  ·  "
        "hocket train resnet152 --topology themis-3d-homo --parallel dp=256,pp=4 --timeline train.png",
    ),
    Command(
        "compare-training",
        "Compare training on networks, with several ways to distribute the model and several algorithms.",
        "compare_training:compare_training",
        "For example: hocket compare-training resnet152 --topology themis-3d-homo  ·  "
        "hocket compare-training transformer -t themis-3d-homo -t themis-3d-hetero --search 4",
    ),
    Command(
        "route",
        "Place jobs on a fabric, give their flows paths, and run them in simulated time.",
        "route:route",
        "For example: hocket route examples/jobs.yml --fabric clos:32x64 --compare",
    ),
    Command(
        "controller",
        "Run the routing controller of a cluster: serve, certs, replay, queue-pairs, calibrate.",
        "programs:controller",
        "For example: hocket controller serve --config controller.toml",
        is_program=True,
    ),
    Command(
        "agent",
        "Run the controller's agent on a host.",
        "programs:agent",
        "For example: hocket agent --config agent.toml",
        is_program=True,
    ),
    Command(
        "launch",
        "Run a program whose connections leave from the ports that the agent gives (Linux, root).",
        "launch:launch",
        "For example: hocket launch --to 10.1.0.1:5201 -- iperf3 -c 10.1.0.1",
    ),
    Command(
        "predict",
        "Say what a collective takes with NCCL or RCCL on a real machine, from its profile.",
        "predict:predict",
        "For example: hocket predict all-reduce --topology hgx_h200_8gpu --sizes 8K:4G:x8",
    ),
    Command(
        "predict-training",
        "Say what a training iteration takes on a real machine, and the error to expect.",
        "predict_training:predict_training",
        "For example: hocket predict-training gpt3-175b --npu a100 --stack megatron-2021 "
        "--parallel dp=8,tp=8,pp=12,interleave=2 --batch 1536",
    ),
    Command(
        "nccl",
        "Say what NCCL would do and does, and write the files by which it does something else.",
        "nccl:nccl",
    ),
    Command(
        "calibrate",
        "Fit what real runs cost on a machine to sweeps measured there, and write its topology with it.",
        "calibrate:calibrate",
        "For example: hocket calibrate nccl-tests.txt --topology dgx_a100_1box -o mine.yml",
    ),
    Command(
        "measured",
        "Set what real runs took beside prediction, bound and best plan, and say what is slow.",
        "measured:measured",
        "For example: hocket measured nccl-tests.txt --topology dgx_a100_1box  ·  "
        "hocket measured trace-*.json.gz --topology dgx_a100_1box -o measured.png",
    ),
    Command(
        "doctor",
        "Say what is installed here, what is missing of what hocket may use, and how to get it.",
        "doctor:doctor",
        "For example: hocket doctor",
    ),
    Command(
        "algorithms",
        "List the algorithms, what they do, and their collectives.",
        "plan:algorithms",
        "For example: hocket algorithms --json",
    ),
    Command("advise", "Say what limits a network, and what failures cost.", "advise:advise"),
    Command("topology", "List, inspect, draw and export networks.", "topology:topology"),
    Command(
        "workload",
        "List models to be trained, show their layers, and make them from PyTorch modules.",
        "workload:workload",
    ),
    Command(
        "trace",
        "Show execution traces in MLCommons Chakra's format, and run them on networks.",
        "trace:trace",
    ),
    Command(
        "testbed",
        "Build networks of Linux namespaces on this machine, and measure on them.",
        package="hocket-testbed",
    ),
    Command(
        "reproduce",
        "Repeat a published evaluation: tables and pictures beside the published numbers.",
        package="hocket-studies",
    ),
)
"""In the order of the help."""
