"""The least slots of tiny problems: tries every plan, slot by slot, without any of the tested code."""

from __future__ import annotations

from itertools import product

from hocket.plans.slots import SlotProblem

State = tuple[frozenset[tuple[int, int]], tuple[tuple[int, int, int], ...]]


def fewest_slots(problem: SlotProblem, limit: int = 20) -> int:
    """Breadth first over who holds what and what is on its way (edge, chunk, slots to go)."""
    if problem.backwards.all() and len(problem.backwards):
        ends = problem.edge_dst.tolist(), problem.edge_src.tolist()
    else:
        assert not problem.backwards.any()
        ends = problem.edge_src.tolist(), problem.edge_dst.tolist()
    goal = {(c, n) for c in range(problem.chunks) for n in problem.wanted[c]}
    start = frozenset((c, n) for c in range(problem.chunks) for n in problem.holders[c])
    states: set[State] = {(start, ())}
    for slot in range(limit):
        if any(goal <= held for held, _ in states):
            return slot
        states = maximal({after for state in states for after in steps(problem, ends, state)})
    raise AssertionError("the oracle gave up")


def steps(problem: SlotProblem, ends: tuple[list[int], list[int]], state: State) -> set[State]:
    held, moving = state
    busy = {edge for edge, _, _ in moving}
    choices: list[list[int | None]] = []
    for edge in range(problem.edges):
        options: list[int | None] = [None]
        if edge not in busy:
            src, dst = ends[0][edge], ends[1][edge]
            options += [
                c for c in range(problem.chunks) if (c, src) in held and (c, dst) not in held
            ]
        choices.append(options)
    found: set[State] = set()
    for choice in product(*choices):
        now = list(moving)
        for edge, chunk in enumerate(choice):
            if chunk is not None:
                slots = int(problem.edge_slots[edge, problem.chunk_class[chunk]])
                now.append((edge, chunk, slots))
        landed = {(c, ends[1][edge]) for edge, c, left in now if left == 1}
        going = tuple(sorted((edge, c, left - 1) for edge, c, left in now if left > 1))
        found.add((held | landed, going))
    return found


def maximal(states: set[State]) -> set[State]:
    """Leave out states that hold less than another with the same on its way."""
    by_moving: dict[tuple[tuple[int, int, int], ...], list[frozenset[tuple[int, int]]]] = {}
    for held, moving in sorted(states, key=lambda state: -len(state[0])):
        kept = by_moving.setdefault(moving, [])
        if not any(held <= other for other in kept):
            kept.append(held)
    return {(held, moving) for moving, kept in by_moving.items() for held in kept}


def fewest_slots_mixed(problem: SlotProblem, limit: int = 20) -> int:
    """Horizon by horizon, every assignment of every chunk; for a handful of sends."""
    for horizon in range(limit):
        if fits(problem, horizon, 0, frozenset()):
            return horizon
    raise AssertionError("the oracle gave up")


def fits(problem: SlotProblem, horizon: int, chunk: int, taken: frozenset[tuple[int, int]]) -> bool:
    if chunk == problem.chunks:
        return True
    start = dict.fromkeys(problem.holders[chunk], 0)
    return grow(problem, horizon, chunk, start, taken)


def grow(
    problem: SlotProblem,
    horizon: int,
    chunk: int,
    held: dict[int, int],
    taken: frozenset[tuple[int, int]],
) -> bool:
    """Extend a tree by one send; in the mirror where the chunk goes backwards."""
    if all(npu in held for npu in problem.wanted[chunk]):
        return fits(problem, horizon, chunk + 1, taken)
    back = bool(problem.backwards[chunk])
    for edge in range(problem.edges):
        src, dst = int(problem.edge_src[edge]), int(problem.edge_dst[edge])
        if back:
            src, dst = dst, src
        if src not in held or dst in held:
            continue
        slots = int(problem.edge_slots[edge, problem.chunk_class[chunk]])
        for begin in range(held[src], horizon - slots + 1):
            real = horizon - begin - slots if back else begin
            used = frozenset((edge, slot) for slot in range(real, real + slots))
            if used & taken:
                continue
            if grow(problem, horizon, chunk, {**held, dst: begin + slots}, taken | used):
                return True
    return False
