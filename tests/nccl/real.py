"""Runs a real NCCL on machines that are not there: processes on one GPU stand for their GPUs.

Each rank is a process of ``one_rank.py`` under ``one_gpu.c``, which lets it pass for one GPU of a machine.
NCCL gets the machine's topology by NCCL_TOPO_FILE, and decides from it what it would decide there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCES = ("one_gpu", "says_costs", "still_net")
PICK = re.compile(
    r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}"
)
LOADED = re.compile(r"Search (\d+) : (\d+) channels loaded from XML graph")


def build(folder: Path, options: Sequence[str] = ()) -> dict[str, Path]:
    """The three libraries, built by gcc."""
    made = {}
    for name in SOURCES:
        made[name] = folder / f"{name}.so"
        command = [
            "gcc",
            "-O2",
            *options,
            "-shared",
            "-fPIC",
            "-o",
            made[name],
            HERE / f"{name}.c",
            "-ldl",
        ]
        subprocess.run(command, check=True)
    return made


@dataclass(frozen=True)
class Node:
    """A machine of a run: the file of its topology, and perhaps one of graphs."""

    topology: Path
    graph: Path | None = None
    ranks: int | None = None
    """Of its first GPUs; by default of all."""

    @property
    def buses(self) -> list[str]:
        """PCI addresses of its GPUs, by number."""
        text = self.topology.read_text()
        found = re.findall(r'<pci busid="([^"]+)"[^>]*>\s*<gpu dev="(\d+)"', text)
        return [bus for bus, _ in sorted(found, key=lambda each: int(each[1]))]

    @property
    def places(self) -> range:
        """Its GPUs that have a rank."""
        return range(len(self.buses) if self.ranks is None else self.ranks)

    @property
    def sm(self) -> str:
        """Compute capability."""
        found = re.search(r'\bsm="(\d+)"', self.topology.read_text())
        assert found is not None
        return found[1]

    @property
    def nics(self) -> list[tuple[str, int]]:
        """Names and Mbit/s, by number."""
        text = self.topology.read_text()
        found = re.findall(r'<net name="([^"]+)" dev="(\d+)"[^>]* speed="(\d+)"', text)
        found.sort(key=lambda each: int(each[1]))
        return [(name, int(speed)) for name, _, speed in found]


@dataclass(frozen=True)
class Job:
    """What the ranks of some nodes are to do: collectives of ``run`` move data, others none."""

    nodes: Sequence[Node]
    predict: Sequence[tuple[str, int]] = ()
    plan: Sequence[tuple[str, int]] = ()
    run: Sequence[tuple[str, int]] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """What came of it."""

    folder: Path
    ranks: Sequence[Mapping[str, Any]]
    seconds: float

    @property
    def version(self) -> str:
        number = self.ranks[0]["version"]
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    @property
    def errors(self) -> list[str]:
        return [
            f"rank {n}: {rank['error']}" for n, rank in enumerate(self.ranks) if "error" in rank
        ]

    def log(self, rank: int = 0) -> str:
        """What NCCL said there."""
        return (self.folder / f"rank{rank}.log").read_text(errors="replace")

    def loaded(self, rank: int = 0) -> dict[int, int]:
        """Graphs that NCCL took from a file, and their channels."""
        return {int(number): int(channels) for number, channels in LOADED.findall(self.log(rank))}

    def picks(self) -> list[tuple[str, int, str, str, int]]:
        """Collective, bytes of its buffer as NCCL's log counts them, algorithm, protocol and channels."""
        return [
            (kind, int(size), algorithm, protocol, int(last) - int(first) + 1)
            for kind, size, algorithm, protocol, first, last in PICK.findall(self.log())
        ]

    def costs(self) -> list[list[float]]:
        """Lines of ``says_costs.c``."""
        lines = (self.folder / "costs.txt").read_text().splitlines()[1:]
        return [[float(each) for each in line.split()] for line in lines]


def see(
    folder: Path,
    libraries: Mapping[str, Path],
    nccl: str,
    job: Job,
    *,
    python: str = sys.executable,
    timeout: float = 60,
) -> Seen:
    """Run a job in an empty folder."""
    folder.mkdir(parents=True)
    places = [(number, index) for number, node in enumerate(job.nodes) for index in node.places]
    work = {"library": nccl, "ranks": len(places)}
    work |= {"predict": job.predict, "plan": job.plan, "run": job.run}
    (folder / "job.json").write_text(json.dumps(work))
    begun = time.monotonic()
    children = []
    for rank, (number, index) in enumerate(places):
        environment = _environment(folder, libraries, job, number, index)
        if rank == 0:
            environment.setdefault("NCCL_TUNER_PLUGIN", str(libraries["says_costs"]))
            environment["SAYS_COSTS"] = str(folder / "costs.txt")
        first = places.index((number, 0))
        environment["NCCL_GRAPH_DUMP_FILE_RANK"] = environment["NCCL_TOPO_DUMP_FILE_RANK"] = str(
            first
        )
        with (folder / f"rank{rank}.log").open("wb") as log:
            command = [python, HERE / "one_rank.py", str(rank), folder / "job.json"]
            children.append(
                subprocess.Popen(
                    command, env=environment, stdout=log, stderr=log, start_new_session=True
                )
            )
    for child in children:
        try:
            child.wait(max(0.1, timeout - (time.monotonic() - begun)))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    results = []
    for rank in range(len(places)):
        file = folder / f"rank{rank}.json"
        results.append(
            json.loads(file.read_text()) if file.exists() else {"error": "did not come to an end"}
        )
    return Seen(folder, results, time.monotonic() - begun)


def _environment(
    folder: Path, libraries: Mapping[str, Path], job: Job, number: int, index: int
) -> dict[str, str]:
    node = job.nodes[number]
    made = {name: value for name, value in os.environ.items() if not name.startswith("NCCL_")}
    names = [name for name, _ in node.nics] or ["eth0"]
    made |= {
        "LD_PRELOAD": str(libraries["one_gpu"]),
        "ONE_GPU_BUSES": ",".join(node.buses),
        "ONE_GPU_INDEX": str(index),
        "ONE_GPU_SM": node.sm,
        "ONE_GPU_NICS": ",".join(names),
        "NCCL_HOSTID": f"{folder}/{number}",
        "NCCL_TOPO_FILE": str(node.topology),
        "NCCL_TOPO_DUMP_FILE": str(folder / f"topo{number}.xml"),
        "NCCL_GRAPH_DUMP_FILE": str(folder / f"dump{number}.xml"),
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH,TUNING",
        "NCCL_GRAPH_REGISTER": "0",
        "NCCL_NVLS_ENABLE": "0",
    }
    if job.run:
        if int(node.sm) < 80:
            # NCCL gives kernels of older GPUs less shared memory than those of this one use.
            del made["ONE_GPU_SM"]
        # Data goes by sockets between nodes, and these have no access to memory of a GPU.
        made |= {"NCCL_NET": "Socket", "NCCL_NET_GDR_LEVEL": "LOC"}
    elif node.nics:
        made["NCCL_NET_PLUGIN"] = str(libraries["still_net"])
        made["STILL_NET"] = ",".join(f"{name}={speed}" for name, speed in node.nics)
    if node.graph is not None:
        made["NCCL_GRAPH_FILE"] = str(node.graph)
    return made | dict(job.environment)


def absent() -> str | None:
    """Why no real NCCL can be run here, if so."""
    if shutil.which("gcc") is None:
        return "no gcc"
    if not Path("/dev/nvidiactl").exists():
        return "no GPU of NVIDIA"
    return None
