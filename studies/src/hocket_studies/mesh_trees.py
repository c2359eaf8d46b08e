"""MultiTree with trees grown as in the code that was published with Laskar et al.

hocket's own ``multitree`` lets every tree take its turn until no tree finds a free link, and turns begin
with another tree in each step: 8, 12, 32 and 40 steps on 4 x 4, 5 x 5, 8 x 8 and 9 x 9. The published code
(github.com/sabuj7177/TTO_HPCA_2024, commit 5c54fbe) tries neighbours north, south, west, east; lets
trees take turns by a measure of their root's distance from the corners; and ends a step as soon as the
*last* tree of a round finds nothing, whatever the others might. That makes 6, 10, 14, 34 and 44 steps on
3 x 3 to 9 x 9, and 64 x 63 / (34 x 224) = 53 % and 81 x 80 / (44 x 288) = 51 % of links used: table I.
"""

from __future__ import annotations

from hocket import _core
from hocket.plans.plan import Plan
from hocket.plans.planner import plan

Edge = tuple[int, int, int]
"""Root, parent, child."""

_REDUCE, _COPY = 1, 0
_GROUP = _core.Plan.GROUP


def grow(side: int) -> list[list[Edge]]:
    """Grow the trees of a square mesh: for each step the links that it adds.

    Raises
    ------
    ValueError
        For a side below 2.
    """
    if side < 2:
        raise ValueError(f"side: a mesh has 2 NPUs a side or more, not {side}")
    count = side * side
    neighbours = [_neighbours(npu, side) for npu in range(count)]
    order = _turns(side)
    trees = [[root] for root in range(count)]
    has = [{root} for root in range(count)]
    steps: list[list[Edge]] = []
    while any(len(tree) < count for tree in trees):
        # The first step goes through the roots by number, and orders them for what follows.
        turns = list(range(count)) if not steps else order
        steps.append(_step(trees, has, neighbours, turns, order))
    return steps


def _step(
    trees: list[list[int]],
    has: list[set[int]],
    neighbours: list[list[int]],
    turns: list[int],
    order: list[int],
) -> list[Edge]:
    count = len(trees)
    parents = [list(tree) for tree in trees]
    used: set[tuple[int, int]] = set()
    added: list[Edge] = []
    while True:
        found = False
        for root in turns:
            link = _free(parents[root], has[root], neighbours, used)
            found = link is not None
            if link is not None:
                used.add(link)
                trees[root].append(link[1])
                has[root].add(link[1])
                added.append((root, *link))
            if all(len(tree) == count for tree in trees):
                return added
        if not found:  # by the last of them
            return added
        turns = order


def _free(
    parents: list[int], has: set[int], neighbours: list[list[int]], used: set[tuple[int, int]]
) -> tuple[int, int] | None:
    if len(has) == len(neighbours):
        return None
    for parent in parents:
        for child in neighbours[parent]:
            if child not in has and (parent, child) not in used:
                return parent, child
    return None


def _neighbours(npu: int, side: int) -> list[int]:
    """North, south, west, east."""
    x, y = npu % side, npu // side
    near = [(x, y - 1), (x, y + 1), (x - 1, y), (x + 1, y)]
    return [a + side * b for a, b in near if 0 <= a < side and 0 <= b < side]


def _turns(side: int) -> list[int]:
    """Order roots by what the code takes for their greatest distance to a corner, farthest first."""
    corners = [(0, 0), (0, side - 1), (side - 1, 0), (side - 1, side - 1)]

    def depth(root: int) -> int:
        row, _ = divmod(root, side)
        # It measures the corner's own row against its column in place of the columns.
        return max(abs(row - a) + abs(a - b) for a, b in corners)

    return sorted(range(side * side), key=lambda root: (depth(root), root), reverse=True)


def published_multitree(topology: _core.Topology, size: str) -> Plan:
    """Plan an all-reduce with these trees on a square mesh; links serve in plan order."""
    import numpy as np  # slow to import

    side = topology.dimensions[0][1]
    steps = grow(side)
    like = plan("all-reduce", topology, size=size, algorithm="multitree", chunks=1).core
    rows: list[tuple[int, int, int, int, int]] = []
    groups: list[list[int]] = []
    into: dict[tuple[int, int], list[int]] = {}

    def wait_for(members: list[int]) -> int:
        if not members:
            return _core.Plan.NO_WAIT
        if len(members) == 1:
            return members[0]
        groups.append(members)
        return _GROUP | (len(groups) - 1)

    for step in reversed(steps):
        for root, parent, child in step:
            wait = wait_for(into.get((root, child), []))
            into.setdefault((root, parent), []).append(len(rows))
            rows.append((root, child, parent, _REDUCE, wait))
    summed = {root: wait_for(into[root, root]) for root in range(topology.npu_count)}
    came: dict[tuple[int, int], int] = {}
    for step in steps:
        for root, parent, child in step:
            wait = summed[root] if parent == root else came[root, parent]
            came[root, child] = len(rows)
            rows.append((root, parent, child, _COPY, wait))
    chunk, src, dst, op, wait_column = (list(column) for column in zip(*rows, strict=True))
    lengths = np.cumsum([0, *(len(group) for group in groups)])
    made = _core.Plan.from_columns(
        topology,
        like.collective,
        "multitree-published",
        chunk_offsets=like.chunk_offsets,
        chunk_demand=like.chunk_demand,
        chunk=np.array(chunk, np.uint32),
        chunk_count=np.ones(len(rows), np.uint32),
        src=np.array(src, np.uint32),
        dst=np.array(dst, np.uint32),
        op=np.array(op, np.uint8),
        wait=np.array(wait_column, np.uint32),
        path=np.full(len(rows), _core.Plan.DEFAULT_ROUTE, np.uint32),
        group_offsets=lengths.astype(np.uint32),
        group_items=np.array([each for group in groups for each in group], np.uint32),
        path_offsets=np.zeros(1, np.uint32),
        path_items=np.zeros(0, np.uint32),
        link_order="plan",
    )
    return Plan(made).verify()
