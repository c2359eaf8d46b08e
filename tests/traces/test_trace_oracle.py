"""Random traces against a slow replay: collectives of groups, messages, computation, dependencies."""

from __future__ import annotations

import os
from itertools import pairwise
from random import Random

import pytest

import hocket as hk
from hocket import traces
from hocket._core.trace import Draft, Trace

from . import chakra_files as chakra
from .chakra_files import Node, collective, receive, send
from .slow_trace import Key, SlowTrace, matched

CASES = int(os.environ.get("HOCKET_TRACE_CASES", "240"))
"""How many; a long run sets more."""
PARTS = 3
BANDWIDTH = 10**9
KINDS = (
    chakra.ALL_REDUCE,
    chakra.REDUCE,
    chakra.ALL_GATHER,
    chakra.GATHER,
    chakra.SCATTER,
    chakra.BROADCAST,
    chakra.ALL_TO_ALL,
    chakra.REDUCE_SCATTER,
    chakra.BARRIER,
)
COMPUTED = (
    chakra.METADATA,
    chakra.MEMORY_LOAD,
    chakra.MEMORY_STORE,
    chakra.COMPUTE,
    chakra.COMPUTE,
    chakra.COMPUTE,
)


def a_trace(random: Random) -> tuple[list[list[Node]], dict[str, list[int]]]:
    """Ranks of a few nodes each, every one after some earlier ones, in a file in any order."""
    count = random.randint(1, 5)
    groups = {"0": list(range(count))}
    for name in range(1, random.randint(1, 4)):
        groups[str(name)] = sorted(random.sample(range(count), random.randint(1, count)))
    ranks: list[list[Node]] = [[] for _ in range(count)]
    priorities = random.choice([(0,), (0, 0, 1, 5)])
    far = random.choice([1, 3, 30])
    for step in range(random.randint(0, 25)):
        add(random, ranks, groups, step, random.choice(priorities), far)
    for nodes in ranks:
        if random.random() < 0.5:
            random.shuffle(nodes)
    return ranks, groups


def add(
    random: Random,
    ranks: list[list[Node]],
    groups: dict[str, list[int]],
    step: int,
    priority: int,
    far: int,
) -> None:
    """Add a computation, a message or a collective, to all ranks that take part."""

    def before(rank: int) -> dict[str, list[int]]:
        ids = [node.id for node in ranks[rank]][-far:]
        picked = random.sample(ids, random.randint(0, min(2, len(ids))))
        return {random.choice(["data", "control"]): picked}

    what = random.random()
    rank = random.randrange(len(ranks))
    if what < 0.4:
        cpu = {"is_cpu_op": random.random() < 0.3}
        kind = random.choice(COMPUTED)
        node = Node(step, kind, micros=random.randint(1, 9), attributes=cpu, **before(rank))  # type: ignore[arg-type]
        ranks[rank].append(node)
    elif what < 0.65 and len(ranks) > 1:
        other = random.choice([each for each in range(len(ranks)) if each != rank])
        size = random.randint(1, 9000)
        ranks[rank].append(send(step, other, size, step, **before(rank)))
        ranks[other].append(receive(step, rank, size, step, **before(other)))
    else:
        name = random.choice(list(groups))
        kind, size = random.choice(KINDS), random.choice([1, random.randint(1, 9000)])
        for member in groups[name]:
            made = collective(step, kind, size, name, **before(member))
            if priority:
                made.attributes["comm_priority"] = priority
            ranks[member].append(made)


def link(ranks: list[list[Node]], groups: dict[str, list[int]]) -> Trace:
    files = [(f"t.{rank}.et", chakra.trace_bytes(nodes)) for rank, nodes in enumerate(ranks)]
    given = [(int(name), members) for name, members in groups.items() if name != "0"]
    return Draft(files, "all").link(given)


def numbers_of(trace: Trace, keys: list[Key]) -> dict[Key, int]:
    """The number of each node's call, by which ties go: collectives in their order, then messages."""
    found = {}
    first, nodes = trace.calls_first.tolist(), trace.calls_nodes.tolist()
    for call in range(len(first) - 1):
        for row in nodes[first[call] : first[call + 1]]:
            found[keys[row]] = call
    sends = [row for row, kind in enumerate(trace.kind) if traces.KINDS[kind] == "send"]
    found |= {keys[row]: len(first) - 1 + i for i, row in enumerate(sends)}
    return found


def both(seed: int) -> tuple[traces.TraceRun, SlowTrace, list[Key]]:
    """Run by hocket, all bandwidth of one switch for every collective; and slowly."""
    random = Random(seed)
    ranks, groups = a_trace(random)
    order = random.choice(["fifo", "fifo", "lifo"])
    trace = link(ranks, groups)
    keys = [(rank, node.id) for rank, nodes in enumerate(ranks) for node in nodes]
    first, nodes = trace.calls_first.tolist(), trace.calls_nodes.tolist()
    calls = [sorted(keys[row] for row in nodes[a:b]) for a, b in pairwise(first)]
    assert sorted(calls) == sorted(sorted(each) for each in matched(ranks, groups)), seed
    npus = max(len(ranks), 2)
    topology = hk.topology.product("SW", [npus], bandwidth=["1 GB/s"], latency=["0 ns"])
    run = traces.replay(trace, topology, algorithm="ideal", order=order)
    slowly = SlowTrace(
        ranks, groups, numbers_of(trace, keys), bandwidth=BANDWIDTH, is_lifo=order == "lifo"
    )
    return run, slowly, keys


@pytest.mark.parametrize("part", range(PARTS))
def test_random_traces(part: int) -> None:
    for seed in range(part, CASES, PARTS):
        run, slowly, keys = both(seed)
        assert run.outcome.end_ps.tolist() == [slowly.end[key] for key in keys], seed
        times = sorted((call.start_ps, call.end_ps) for call in run.calls)
        assert times == sorted((call.begun, call.ended) for call in slowly.calls), seed
        assert run.time_ps == max(slowly.end.values(), default=0), seed


def test_random_traces_meet_everything() -> None:
    """What is compared has every kind of call, calls that queue, and ranks that wait for each other."""
    kinds: dict[str, int] = {}
    queued = late = 0
    for seed in range(80):
        run, slowly, _ = both(seed)
        for call in run.calls:
            kinds[call.kind] = kinds.get(call.kind, 0) + 1
        for each in slowly.calls:
            assert each.ended is not None
            assert each.begun is not None
            queued += each.ended - each.begun > each.time
        late += sum(row.waited > 0 for row in run.ranks)
    assert min(kinds.values()) >= 5, kinds
    assert len(kinds) == 10, kinds
    assert queued > 50
    assert late > 50
