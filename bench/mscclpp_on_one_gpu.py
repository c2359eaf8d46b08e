"""Plans run by MSCCL++'s own executor, all ranks as processes on one GPU.

    python bench/mscclpp_on_one_gpu.py plans FOLDER
    python bench/mscclpp_on_one_gpu.py run FOLDER --mscclpp PREFIX

The first writes execution plans and what to do with them, and needs hocket. The second compiles
``mscclpp_executor.cpp`` against MSCCL++ as it is installed under PREFIX (``include/``, ``lib/``), runs
every plan with integers and floats of each rank's own, and says which results are right. It needs a
GPU, g++, CUDA's headers and no hocket; where there is no MSCCL++ or no GPU it says so and skips.
``--executor FILE`` takes a program compiled before.

Kernels of processes on one GPU take turns, so that the times say nothing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("mscclpp_executor.cpp")
TYPES = ("i32", "f32", "f16", "bf16", "u8")
WORDS = {
    "all-reduce": "allreduce",
    "all-gather": "allgather",
    "reduce-scatter": "reducescatter",
    "all-to-all": "alltoall",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
PASSES = {
    "all-reduce": ("ring", "direct", "halving-doubling", "double-binary-tree", "greedy"),
    "all-gather": ("ring", "direct", "greedy"),
    "reduce-scatter": ("ring", "direct", "greedy"),
    "all-to-all": ("direct", "pairwise"),
    "broadcast": ("direct", "binomial", "chain"),
    "reduce": ("binomial", "chain"),
}


@dataclass(frozen=True)
class Job:
    """One plan, or several that take turns, and the sizes with which it is run."""

    name: str
    ranks: int
    plans: tuple[str, ...]
    collective: str
    in_place: bool
    sizes: tuple[int, ...]
    kind: str = "i32"
    packet: str = "LL16"
    calls: int = 5
    offset: int = 0
    seconds: float = 20
    expected: str = "right"

    def line(self, folder: Path) -> str:
        """Write it as the executor's program reads it."""
        plans = "+".join(str(folder / each) for each in self.plans)
        place = "in" if self.in_place else "out"
        sizes = ",".join(map(str, self.sizes))
        words = (self.name, plans, self.collective, place, self.kind, self.packet, sizes)
        return " ".join(map(str, (*words, self.calls, self.offset, self.seconds)))


def granule(file: Path, collective: str) -> int:
    """Bytes of whose multiples messages must be: the executor refuses others."""
    text = json.loads(file.read_text())
    gpu = text["gpus"][0]
    chunks = gpu["output_chunks"] if collective == "all-gather" else gpu["input_chunks"]
    return int(chunks * text["buffer_alignment"])


class Maker:
    """Writes plans into a folder, and the jobs that run them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.jobs: list[Job] = []

    def add(
        self,
        network: str,
        collective: str,
        algorithm: str,
        given: dict[str, Any],
        **more: Any,
    ) -> None:
        """Plan, write the file in the ways asked for, and note its jobs."""
        import hocket as hk
        from hocket.formats import ExportOptions, export_plan

        keywords: dict[str, Any] = {"chunks": 1, **more}
        try:
            topology = hk.topology.load(network)
            if "groups" in keywords:
                topology = hk.topology.grouped(topology, keywords.pop("groups"))
            plan = hk.plan(collective, topology, size="1 MB", algorithm=algorithm, **keywords)
            options = ExportOptions(**given)
            name = "-".join(
                [network.partition("@")[0], collective, algorithm]
                + [f"{key}{value}" for key, value in given.items()]
                + [f"{key}{value}" for key, value in more.items()]
            )
            name = "".join(each if each.isalnum() else "-" for each in name)
            file = self.folder / f"{name}.json"
            made = export_plan(plan, file, to="mscclpp", options=options)
        except (hk.InfeasibleError, hk.SpecError) as error:
            print(f"{network} {collective} {algorithm} {given}: {error}", file=sys.stderr)
            return
        ranks = len(plan.collective.npus)
        unit = granule(file, collective)
        near = max(1, 65536 // unit)
        in_place = made.written.program is not None and made.written.program.in_place
        number = len(self.jobs)
        job = Job(
            name, ranks, (file.name,), WORDS[collective], in_place, (unit, 3 * unit, near * unit)
        )
        packet = ("LL16", "LL8")[number % 2]
        self.jobs.append(replace(job, kind=TYPES[number % len(TYPES)], packet=packet))

    def save(self) -> None:
        """Write the list of jobs."""
        text = json.dumps([asdict(job) for job in self.jobs], indent=1)
        (self.folder / "jobs.json").write_text(text)
        print(f"{len(self.jobs)} jobs in {self.folder}")


def write_plans(folder: Path) -> None:
    """Write plans of 2, 4 and 8 ranks in all the ways that are written."""
    maker = Maker(folder)
    full = {2: "mesh:2@25GB/s,700ns", 4: "dgx_a100_1box", 8: "dgx_a100_1box"}
    for ranks, network in full.items():
        npus = {"npus": "0-3"} if ranks == 4 else {}
        for collective, algorithms in PASSES.items():
            for i, algorithm in enumerate(algorithms):
                if ranks != 8 and i > 1:
                    continue
                ways: list[dict[str, Any]] = [{"in_place": True}, {"in_place": False}]
                ways += [{"protocol": "LL"}, {"protocol": "LL", "in_place": False}]
                for way in ways:
                    if collective == "all-to-all" and way.get("in_place", True):
                        continue
                    if "protocol" in way and collective in ("broadcast", "reduce"):
                        continue
                    maker.add(network, collective, algorithm, way, **npus)
    for network in ("dgx1_v100", "mi300x_8gpu", "hgx_h100_8gpu_validated"):
        for collective in ("all-reduce", "all-gather", "broadcast"):
            maker.add(network, collective, "trees", {})
            if collective != "broadcast":
                maker.add(network, collective, "greedy", {"protocol": "LL"})
    for given in (
        {"channels": 8},
        {"channels": 16},
        {"instances": 2},
        {"instances": 3, "protocol": "LL"},
    ):
        maker.add("dgx_a100_1box", "all-reduce", "ring", given, chunks=4)
        maker.add("dgx_a100_1box", "all-gather", "direct", given, chunks=2)
    # Two nodes: ports between them.
    for collective in PASSES:
        for algorithm in PASSES[collective][:2]:
            if collective != "all-to-all":
                maker.add("dgx_a100_1box", collective, algorithm, {"in_place": True}, groups=4)
            maker.add("dgx_a100_1box", collective, algorithm, {"in_place": False}, groups=4)
    # Sizes that chunks do not divide, buffers behind the start of their allocation, and more blocks.
    ring = maker.jobs[next(i for i, job in enumerate(maker.jobs) if job.ranks == 8)]
    maker.jobs.append(replace(ring, name="uneven", sizes=(ring.sizes[0] + 16,), expected="refused"))
    apart = [job for job in maker.jobs if job.ranks == 8 and "groups" not in job.name][:40:7]
    ported = [job for job in maker.jobs if "groups" in job.name][::4]
    for job in apart + ported:
        # Ports read what they send from where its allocation starts.
        expected = "wrong" if job in ported else "right"
        named = replace(job, name=f"{job.name}-offset", expected=expected)
        maker.jobs.append(replace(named, offset=4 << 20))
    maker.add("dgx_a100_1box", "all-reduce", "direct", {"channels": 16}, chunks=16)
    maker.save()


def compile_driver(prefix: Path, folder: Path, flags: list[str]) -> Path:
    """Compile the program that is one rank."""
    to = folder / "mscclpp_executor"
    cuda = Path("/usr/local/cuda")
    command = ["g++", "-O2", "-std=c++20", "-DMSCCLPP_USE_CUDA", str(SOURCE), "-o", str(to)]
    command += [
        f"-I{each}" for each in (prefix / "include", cuda / "include", cuda / "include/cccl")
    ]
    command += [f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lmscclpp", f"-L{cuda}/lib64"]
    subprocess.run([*command, "-lcudart", "-lcuda", "-lpthread", *flags], check=True)
    return to


def free_port() -> int:
    """Find a port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def run_together(
    driver: Path, folder: Path, jobs: list[Job], ranks: int, end: float
) -> dict[str, list[str]]:
    """Run jobs of as many ranks up to the first that does not end; what each rank says of each."""
    listed = folder / "jobs.txt"
    listed.write_text("".join(job.line(folder) + "\n" for job in jobs))
    port = free_port()
    files = [folder / f"results{rank}.txt" for rank in range(ranks)]
    started = [
        subprocess.Popen([driver, str(rank), str(ranks), str(port), listed, files[rank]])
        for rank in range(ranks)
    ]
    while any(each.poll() is None for each in started) and time.monotonic() < end:
        if any(each.poll() not in (None, 0) for each in started):
            time.sleep(1)  # The others may have the same to say.
            break
        time.sleep(0.01)
    for each in started:
        each.kill()
        each.wait()
    said: dict[str, list[str]] = {}
    for rank, file in enumerate(files):
        for line in file.read_text().splitlines() if file.exists() else ():
            said.setdefault(line.split()[0], []).append(f"{rank} {line}")
        file.unlink(missing_ok=True)
    return said


def run_all(driver: Path, folder: Path, jobs: list[Job], seconds: float) -> list[str]:
    """Run all jobs, anew behind one that did not end, for so long at most; a line for each."""
    lines = []
    end = time.monotonic() + seconds
    for ranks in sorted({job.ranks for job in jobs}):
        left = [job for job in jobs if job.ranks == ranks]
        while left and time.monotonic() < end:
            said = run_together(driver, folder, left, ranks, end)
            done = [job for job in left if job.name in said]
            if time.monotonic() >= end:
                done = done[:-1]
            for job in done:
                lines.append(judge(job, said[job.name]))
                print(lines[-1], flush=True)
            if not done and time.monotonic() < end:
                lines.append(f"{left[0].name} {ranks} failed: {said.get('-', ['no word'])[0]}")
                print(lines[-1], flush=True)
                done = left[:1]
            left = left[left.index(done[-1]) + 1 :] if done else left
        lines += [f"{job.name} skipped: no time was left" for job in left]
    return lines


def judge(job: Job, said: list[str]) -> str:
    """One line of what the ranks said of a job."""
    words = [line.split(maxsplit=5) for line in said]
    took = sum(int(each[4]) for each in words if each[0] == "0")
    what = f"{job.name} {job.ranks} {job.kind} {job.packet} {took} ms:"
    bad = [each for each in words if each[3] != "right"]
    if not bad and len(said) == job.ranks * len(job.sizes):
        return f"{what} right"
    first = bad[0] if bad else words[-1]
    if job.expected != "right" and {each[3] for each in bad} == {job.expected}:
        return f"{what} {job.expected}, as it must be: {' '.join(first[5:])}"
    kinds = ", ".join(sorted({each[3] for each in words}))
    return f"{what} {kinds}; rank {first[0]}, {first[2]} bytes: {' '.join(first[5:])}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["plans", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mscclpp", type=Path, help="where MSCCL++ is installed")
    parser.add_argument("--executor", type=Path, help="the program, compiled before")
    parser.add_argument("--flags", nargs="*", default=[], help="more for the compiler")
    parser.add_argument("--only", default="", help="jobs whose names have this in them")
    parser.add_argument("--jobs", default="jobs.json", help="the list of jobs in FOLDER")
    parser.add_argument("--seconds", type=float, default=3600, help="start nothing after these")
    given = parser.parse_args()
    if given.what == "plans":
        write_plans(given.folder)
        return
    if shutil.which("nvidia-smi") is None:
        print("skipped: there is no NVIDIA GPU")
        return
    driver = given.executor
    if driver is None:
        if given.mscclpp is None or not (given.mscclpp / "include/mscclpp/executor.hpp").exists():
            print("skipped: there is no MSCCL++; name its folder by --mscclpp")
            return
        driver = compile_driver(given.mscclpp, given.folder, given.flags)
    listed = json.loads((given.folder / given.jobs).read_text())
    jobs = [
        Job(**{**each, "plans": tuple(each["plans"]), "sizes": tuple(each["sizes"])})
        for each in listed
    ]
    jobs = [job for job in jobs if given.only in job.name]
    lines = run_all(driver.resolve(), given.folder.resolve(), jobs, given.seconds)
    right = sum(line.endswith(" right") for line in lines)
    refused = sum(" as it must be: " in line for line in lines)
    print(f"{len(lines)} jobs: {right} right, {refused} wrong or refused as they must be")


if __name__ == "__main__":
    main()
