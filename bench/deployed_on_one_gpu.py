"""Deployed plans in PyTorch, four processes on one GPU: every part of docs/gpu.md in at most 240 s.

    python bench/deployed_on_one_gpu.py            # needs a GPU, PyTorch 2.15, MSCCL++ 0.9.0
    HOCKET_ENGINE=hocket python bench/deployed_on_one_gpu.py    # by hocket's interpreter: no MSCCL++
    python bench/deployed_on_one_gpu.py --double   # the same parts on the CPU: a test of this script

It prints one line per part and a JSON report. A part that cannot run is skipped by name, with the reason.
The exit code is 0 if all parts that ran are right, 1 if one is wrong, and 77 if nothing could run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RANKS = 4
KINDS = "all-reduce,all-gather,reduce-scatter,broadcast,all-to-all"
SKIPPED = 77
LIMIT = 5.0
"""Seconds of a group in which a call is left out."""


def together(kind: str, given: list[Any], rank: int) -> Any:
    """Return what a rank gets, in 64 bits."""
    import torch

    if kind == "all-gather":
        return torch.cat(given)
    total = torch.stack([each.double() for each in given]).sum(0)
    return total if kind == "all-reduce" else total.chunk(RANKS)[rank]


def numbers(job: Job) -> str:
    """Three collectives, in and out of place, four types, three sizes, at offsets that differ by rank."""
    import torch
    import torch.distributed as dist

    import hocket.distributed

    checked = 0
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32):
        for count in (1024, 4 * 2003, (1 << 20) // RANKS):
            given = [
                ((torch.arange(count) * 7 + 13 * each) % 61 + 1).to(dtype) for each in range(RANKS)
            ]
            for kind in ("all-reduce", "all-gather", "reduce-scatter"):
                for in_place in (True, False):
                    wanted = together(kind, given, job.rank)
                    shift = 8 * job.rank + 8
                    room = torch.full((count * RANKS + 64,), 3, dtype=dtype, device=job.device)
                    where = room[shift : shift + len(wanted)]
                    own = given[job.rank].to(job.device)
                    if kind == "all-reduce":
                        where.copy_(own)
                        dist.all_reduce(where)
                    elif kind == "all-gather":
                        part = where.chunk(RANKS)[job.rank] if in_place else own
                        part.copy_(own)
                        dist.all_gather_into_tensor(where, part)
                    else:
                        whole = room[shift : shift + count] if in_place else own
                        whole.copy_(own)
                        where = whole.chunk(RANKS)[job.rank] if in_place else where
                        dist.reduce_scatter_tensor(where, whole)
                    found = where.cpu().double()
                    ulp = {torch.float16: 2**-10, torch.bfloat16: 2**-7}.get(dtype, 2**-23)
                    room_for = 0 if dtype == torch.int32 else 2 * ulp
                    wrong = (found - wanted.double()).abs() > room_for * wanted.double().abs()
                    assert not wrong.any(), f"{kind} of {count} {dtype}, in place: {in_place}"
                    assert (room[:shift] == 3).all()
                    assert (room[shift + count * RANKS :] == 3).all()
                    checked += 1
    taken = hocket.distributed.deployed().taken
    others = {
        name: count for name, count in taken.items() if not name.startswith(("all-", "reduce-"))
    }
    assert not others, others
    return f"{checked} calls, by {', '.join(taken)}"


def train(job: Job, way: str, steps: int) -> str:
    """Train by plans and by the fallback alone; the losses are equal within rounding."""
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    losses: dict[str, list[float]] = {}
    for planned in (True, False):
        group = None if planned else job.plain
        torch.manual_seed(0)
        net: Any = torch.nn.Sequential(
            torch.nn.Linear(256, 256), torch.nn.BatchNorm1d(256), torch.nn.Linear(256, 64)
        )
        net.register_buffer("seen", torch.tensor([True, False]))
        net = net.to(job.device)
        if way == "ddp":
            net = torch.nn.parallel.DistributedDataParallel(net, process_group=group)
        else:
            kind = job.device.type
            mesh = dist.device_mesh.DeviceMesh.from_group(group or dist.group.WORLD, kind)
            net = fully_shard(net, mesh=mesh)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        data = torch.Generator().manual_seed(job.rank)
        said = losses.setdefault("planned" if planned else "plain", [])
        for step in range(steps):
            if way == "ddp" and step % 3 == 2:
                with net.no_sync():
                    net(
                        torch.randn(32, 256, generator=data).to(job.device)
                    ).square().mean().backward()
            loss = net(torch.randn(32, 256, generator=data).to(job.device)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            said.append(loss.item())
    pairs = list(zip(losses["planned"], losses["plain"], strict=True))
    assert all(abs(one - other) <= 1e-4 * abs(other) for one, other in pairs), pairs
    return f"{steps} steps, last loss {pairs[-1][0]:.6f} and {pairs[-1][1]:.6f}"


def ddp(job: Job) -> str:
    """DistributedDataParallel with buffers of 64 bits and bool, and no_sync."""
    return train(job, "ddp", 20)


def fsdp2(job: Job) -> str:
    """FSDP2."""
    return train(job, "fsdp2", 10)


def mesh(job: Job) -> str:
    """Groups of a mesh with plans of their own; no packets from then on; mixed calls."""
    import torch
    import torch.distributed as dist

    import hocket.distributed

    made = dist.init_device_mesh(job.device.type, (2, 2), mesh_dim_names=("dp", "tp"))
    for turn in range(25):
        for name, wanted in (("dp", 2 * (job.rank % 2) + 2), ("tp", 4 * (job.rank // 2) + 1)):
            tensor = torch.full((700 + turn,), float(job.rank), device=job.device)
            dist.all_reduce(tensor, group=made[name].get_group())
            assert tensor[5].item() == wanted, name
    for name in ("dp", "tp"):
        deployed = hocket.distributed.deployed(made[name].get_group())
        assert not deployed.reason, deployed.reason
        assert not deployed.packets
    return "50 calls of two groups each of two ranks"


def routes(job: Job) -> str:
    """Calls without plans, by the fallback."""
    import torch
    import torch.distributed as dist

    def sums(dtype: Any, op: Any, wanted: int) -> None:
        tensor = torch.full((3000,), 2, dtype=dtype, device=job.device)
        dist.all_reduce(tensor, op)
        assert tensor[7].item() == wanted, (dtype, op)

    sums(torch.float32, dist.ReduceOp.MAX, 2)
    sums(torch.float32, dist.ReduceOp.PRODUCT, 16)
    sums(torch.int64, dist.ReduceOp.SUM, 8)
    sums(torch.float64, dist.ReduceOp.SUM, 8)
    dist.all_reduce(torch.ones(0, device=job.device))
    tensor = torch.full((300,), float(job.rank), device=job.device)
    if job.rank < 2:
        (dist.send if job.rank == 0 else dist.recv)(tensor, 1 - job.rank)
        assert tensor[0].item() == 0
    dist.broadcast(tensor.fill_(job.rank), 1)
    assert tensor[3].item() == 1
    objects = [{"rank": job.rank}]
    dist.broadcast_object_list(objects, 2)
    assert objects == [{"rank": 2}]
    dist.barrier()
    return "max, product, i64, f64, no bytes, send and recv, another root, objects, barrier"


def growth(job: Job) -> str:
    """500 calls of random sizes and offsets: the GPU's memory stays as it is after the first of each."""
    import torch
    import torch.distributed as dist

    def calls(seed: int) -> None:
        some = torch.Generator().manual_seed(seed)
        for count in torch.randint(300, 30_000, (500,), generator=some).tolist():
            tensor = torch.full((count + 9,), float(job.rank), device=job.device)[job.rank * 2 :]
            dist.all_reduce(tensor[:count])

    calls(1)
    before = job.used()
    calls(1)
    assert job.used() <= before, f"{job.used()} bytes used after {before}"
    return f"{before} bytes used before and after"


def graph(job: Job) -> str:
    """A captured call, replayed 20 times with new data."""
    import torch
    import torch.distributed as dist

    import hocket.distributed

    tensor = torch.zeros(20_000, device=job.device)
    dist.all_reduce(tensor)
    job.synchronize()
    replay = job.capture(lambda: dist.all_reduce(tensor))
    taken = hocket.distributed.deployed().taken
    assert not [each for each in taken if "capture" in each], dict(taken)
    for turn in range(20):
        tensor.fill_(job.rank + turn)
        replay()
        assert tensor[7].item() == 6 + 4 * turn, f"replay {turn} gives {tensor[7].item()}"
    return "20 replays"


def left_out(job: Job) -> str:
    """Rank 1 leaves out a call: every process ends with 87 within 5 s of the limit."""
    import torch
    import torch.distributed as dist

    dist.all_reduce(torch.ones(1000, device=job.device))
    if job.rank != 1:
        dist.all_reduce(torch.ones(20_000, device=job.device))
    time.sleep(60)
    return "no process ended"


PARTS: tuple[tuple[Callable[[Job], str], int], ...] = (
    (numbers, 40),
    (ddp, 30),
    (fsdp2, 30),
    (routes, 15),
    (growth, 15),
    (graph, 15),
    (mesh, 25),
    (left_out, 20),
)
"""Parts and the seconds of each; one after `mesh` runs without packets."""
START = 35


class Job:
    """What a part needs of its process."""

    def __init__(self, double: bool) -> None:
        import torch
        import torch.distributed as dist

        self.rank = int(os.environ["RANK"])
        sys.path[:0] = [str(ROOT)]
        torch.set_num_threads(1)
        if double:
            from tests.distributed import double as module

            self._double: Any = module.install()
            backend, self.device = "cpu:hocket", torch.device("cpu")
        else:
            import hocket.distributed  # noqa: F401

            torch.cuda.set_device(0)
            backend, self.device = "cpu:gloo,cuda:hocket", torch.device("cuda:0")
        limit = timedelta(seconds=float(os.environ["HOCKET_LIMIT"]))
        more: dict[str, Any] = {} if double else {"device_id": self.device}
        dist.init_process_group(backend, timeout=limit, **more)
        self.plain = dist.new_group(backend="gloo" if double else "nccl")
        self._is_double = double

    def synchronize(self) -> None:
        """Wait for the GPU."""
        import torch

        if not self._is_double:
            torch.cuda.synchronize()

    def used(self) -> int:
        """Return the GPU's memory in use, or the plans of the double."""
        import torch

        if self._is_double:
            return sum(len(each.device_plans) for each in self._double.executors)
        self.synchronize()
        torch.cuda.empty_cache()
        torch.distributed.barrier()  # the GPU is that of all ranks
        free, total = torch.cuda.mem_get_info()
        torch.distributed.barrier()
        return total - free

    def capture(self, work: Callable[[], Any]) -> Callable[[], None]:
        """Return what replays a captured call."""
        import torch

        if self._is_double:
            self._double.capturing = True
            work()
            self._double.capturing = False
            return self._double.replay
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made):
            work()

        def replay() -> None:
            made.replay()
            torch.cuda.synchronize()

        return replay


def worker(names: list[str], double: bool) -> None:
    """Run parts in one of the processes; each rank prints a line when it has ended one."""
    import torch.distributed as dist

    import hocket.distributed

    job = Job(double)
    reason = hocket.distributed.deployed().reason
    print(json.dumps({"part": "start", "said": reason, "right": not reason}), flush=True)
    if reason:
        os._exit(SKIPPED)
    known = {part.__name__: part for part, _ in PARTS}
    for name in names:
        try:
            said, right = known[name](job), True
        except Exception as error:
            traceback.print_exc()
            said, right = f"{type(error).__name__}: {error}".splitlines()[0], False
        print(json.dumps({"part": name, "said": said, "right": right}), flush=True)
        dist.barrier()
    os._exit(0)


def started(names: list[str], folder: Path, double: bool) -> list[subprocess.Popen[str]]:
    """Start the processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(RANKS),
        "OMP_NUM_THREADS": "1",
        "HOCKET_DEPLOY": str(folder),
        "HOCKET_STAGE": "1MiB" if double else "64MiB",
        "HOCKET_TEST_ONE_GPU": "1",
        "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES": "1",
        "HOCKET_LIMIT": str(LIMIT * (4 if double else 1) if names == ["left_out"] else 120),
        "NCCL_MULTI_RANK_GPU_ENABLE": "1",
        "NCCL_MAX_CTAS": "2",
        "MSCCLPP_FORCE_DISABLE_NVLS": "1",
    }
    command = [sys.executable, "-W", "ignore", __file__, "--worker", ",".join(names)]
    return [
        subprocess.Popen(
            command + ["--double"] * double,
            env={**environment, "RANK": str(rank), "LOCAL_RANK": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for rank in range(RANKS)
    ]


def run(names: list[str], seconds: float, folder: Path, double: bool) -> list[dict[str, Any]]:
    """Run parts in one set of processes; what each part came to. A part that does not end is wrong."""
    began = time.monotonic()
    processes = started(names, folder, double)
    outs, errors, codes = [], [], []
    for process in processes:
        left = max(0.1, began + seconds - time.monotonic())
        try:
            out, err = process.communicate(timeout=left)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        outs.append([json.loads(line) for line in out.splitlines() if line.startswith("{")])
        errors.append(err)
        codes.append(process.returncode)
    found = []
    for place, name in enumerate(["start", *names]):
        said = [each[place] for each in outs if len(each) > place]
        if name == "left_out" and codes == [87] * RANKS:
            lines = [each for err in errors for each in err.splitlines() if "did not end" in each]
            took = time.monotonic() - began
            found.append({"part": name, "right": bool(lines), "said": lines[:1], "seconds": took})
        elif len(said) == RANKS:
            wrong = [each for each in said if not each["right"]]
            found.append((wrong or said)[0])
        else:
            last = [err.strip().splitlines()[-1:] for err in errors]
            why = f"ended with {codes}; {last}"
            found.append({"part": name, "right": False, "said": why})
        if not found[-1]["right"]:
            for rank, error in enumerate(errors):
                print(f"what rank {rank} wrote:\n{error}", file=sys.stderr)
            break
    return found


def why_not(double: bool) -> str:
    """Return why nothing can run here; empty if it can."""
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    if tuple(int(each) for each in torch.__version__.split(".")[:2]) < (2, 15):
        return f"PyTorch {torch.__version__} has no backends in Python: 2.15 has"
    if double:
        return ""
    if not torch.cuda.is_available():
        return "there is no GPU here"
    from hocket.distributed import cuda
    from hocket.errors import Error

    try:
        if not cuda.is_own():
            cuda.bindings()
    except Error as error:
        return str(error)
    return ""


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    words.add_argument("--double", action="store_true", help="run on the CPU, by a double")
    words.add_argument("--parts", help="names, separated by commas; by default all")
    words.add_argument("--report", type=Path, help="write the JSON report there")
    words.add_argument("--worker", help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.worker:
        worker(given.worker.split(","), given.double)
    every = {part.__name__: seconds for part, seconds in PARTS}
    chosen = given.parts.split(",") if given.parts else list(every)
    if unknown := [each for each in chosen if each not in every]:
        words.error(f"--parts: {unknown[0]} is no part; choose from {', '.join(every)}")
    reason = why_not(given.double)
    report: dict[str, Any] = {"double": given.double, "skipped": {}, "parts": []}
    if reason:
        report["skipped"] = dict.fromkeys(chosen, reason)
        print(f"skipped: {reason}")
    else:
        import hocket as hk

        began = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "deploy"
            hk.deploy(
                "fc:4@25GB/s,1us",
                folder,
                process_groups="world,dp=2,tp=2",
                collectives=KINDS,
                sizes="1K:4M:x64",
                launch="100ns",  # so that plans beat NCCL's prediction at every size
            )
            left = [each for each in chosen if each != "left_out"]  # which ends the processes
            slow = 4 if given.double else 1
            while left:
                seconds = slow * (START + sum(every[each] for each in left))
                found = run(left, seconds, folder, given.double)
                report["parts"] += found
                if len(found) == 1:  # not even the start
                    report["skipped"] |= dict.fromkeys(left, f"start: {found[0]['said']}")
                    break
                left = left[len(found) - 1 :]
            if "left_out" in chosen and not report["skipped"]:
                report["parts"] += run(["left_out"], slow * START, folder, given.double)[-1:]
        report["seconds"] = round(time.monotonic() - began, 1)
    for each in report["parts"]:
        print(f"{each['part']}: {'right' if each['right'] else 'WRONG'}: {each['said']}")
    for name, why in report["skipped"].items():
        print(f"{name}: skipped: {why}")
    text = json.dumps(report, indent=1)
    if given.report:
        given.report.write_text(text + "\n")
    else:
        print(text)
    if not report["parts"]:
        return SKIPPED
    return 0 if all(each["right"] for each in report["parts"]) else 1


if __name__ == "__main__":
    sys.exit(main())
