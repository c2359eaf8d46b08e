"""Jobs on a cluster, slowly: all rates are found from scratch at every moment.

Written for nothing but being right: no heap, no components, nothing kept from one moment to the next.
Rates are exact fractions, or, with ``is_rounded``, whole numbers of 2^-24 bytes/s as flow fidelity
documents; ends are rounded up to the next picosecond, once for each transfer. With rounded rates
everything is to be equal to the picosecond.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import hocket as hk

UNITS = 1 << 24
"""Rate units to a byte per second."""
BYTE = UNITS * 10**12
"""A byte, in rate units times picoseconds."""
GROUP = 1 << 31
NO_WAIT = (1 << 32) - 1


Way = tuple[int, ...]


class Transfer(NamedTuple):
    """What a rank sends to another when all of `after` have arrived."""

    src: int
    dst: int
    size: int
    after: frozenset[int]


@dataclass
class Given:
    """A job, less everything that was only needed to describe it."""

    arrival: int
    compute: Sequence[int]
    transfers: Sequence[Transfer] = ()
    rings: Sequence[Sequence[int]] = ()
    is_lock_step: bool = False


def transfers_of(plan: hk.Plan | None) -> list[Transfer]:
    """Transfers of a plan, its groups of waits taken apart."""
    if plan is None:
        return []
    rows = plan.transfers
    offsets, items = plan.core.group_offsets.tolist(), plan.core.group_items.tolist()

    def after(wait: int) -> frozenset[int]:
        if wait == NO_WAIT:
            return frozenset()
        if wait < GROUP:
            return frozenset([wait])
        group = wait - GROUP
        members = items[offsets[group] : offsets[group + 1]]
        return frozenset().union(*(after(member) for member in members))

    columns = (rows.src.tolist(), rows.dst.tolist(), rows.size_bytes.tolist(), rows.wait.tolist())
    return [
        Transfer(src, dst, size, after(wait)) for src, dst, size, wait in zip(*columns, strict=True)
    ]


def ring_of(ranks: int, part: int) -> list[Transfer]:
    """The ring written down: what comes in a step goes on in the next."""
    steps, all_ranks = range(2 * (ranks - 1)), range(ranks)
    return [
        Transfer(
            rank,
            (rank + 1) % ranks,
            part,
            frozenset([(step - 1) * ranks + (rank - 1) % ranks] if step else []),
        )
        for step in steps
        for rank in all_ranks
    ]


def depths(transfers: Sequence[Transfer]) -> list[int]:
    """How many waits deep each transfer is."""
    known: dict[int, int] = {}
    while len(known) < len(transfers):
        for i, transfer in enumerate(transfers):
            if i not in known and all(before in known for before in transfer.after):
                known[i] = 1 + max((known[before] for before in transfer.after), default=-1)
    return [known[i] for i in range(len(transfers))]


def given(placed: hk.routing.Placed, compute: Sequence[int] | None = None) -> Given:
    """What the simulation needs of a placed job."""
    job = placed.job
    times = [job.compute_ps] * job.iterations if compute is None else compute
    transfers = transfers_of(job.all_reduce())
    return Given(job.arrival_ps, times, transfers, placed.rings, job.rounds == "lock-step")


@dataclass
class Connection:
    """One rank's way to another, which sends one transfer at a time."""

    job: int
    group: int
    tors: tuple[int, int]
    up: int | None
    down: int | None
    """Links of the NICs; None inside a host."""
    links: list[int] = field(default_factory=list)
    way: Way | None = None
    """The links between its ToRs."""
    decided: Way | None = None
    """What the controller chose last, whether its answer is there or not."""
    waiting: deque[int] = field(default_factory=deque)
    sends: int | None = None
    began: int = 0
    left: Any = 0
    rate: Any = 0
    phase_left: int = 0
    """Bytes of the phase's transfers that it has not begun with."""
    most: Any = None
    """No faster than this, where hosts keep to their share."""

    @property
    def is_between_tors(self) -> bool:
        return self.up is not None and self.tors[0] != self.tors[1]


@dataclass
class Running:
    """Where a job is."""

    given: Given
    flows: dict[tuple[int, int, int], Connection]
    depths: list[int]
    state: str = "computing"
    index: int = 0
    alarm: int | None = None
    """When it has computed."""
    began: int = 0
    start: int = 0
    left: list[set[int]] = field(default_factory=list)
    """By group: transfers that have not arrived, and those that have not been given to a connection."""
    unsent: list[set[int]] = field(default_factory=list)
    counts: list[Any] = field(default_factory=lambda: [0, 0, 0.0, 0])

    @property
    def asks(self) -> bool:
        """Whether it needs paths."""
        return any(flow.is_between_tors for flow in self.flows.values())


class Row(NamedTuple):
    """An iteration, as the core has it: times in ps, sums over flows."""

    compute_start: int
    start: int
    end: int
    flows: int
    completion: int
    throughput: float
    slowest: int


class Choice(NamedTuple):
    """A decision."""

    time: int
    flows: int
    moved: int
    max_link_load: int
    bound: int


class Fluid:
    """Runs jobs; what they did is in `rows`, `choices` and `link_bytes`."""

    def __init__(
        self,
        cluster: hk.routing.Cluster,
        jobs: Sequence[Given],
        *,
        scheme: str = "greedy",
        reroute: str = "always",
        seed: int = 0,
        by_bytes: bool = False,
        answer: int = 0,
        host_rate: int = 300 * 10**9,
        outages: Sequence[tuple[int, str, str]] = (),
        slack_ppm: int | None = None,
        is_rounded: bool = True,
    ) -> None:
        self.cluster, self.scheme, self.reroute, self.seed = cluster, scheme, reroute, seed
        self.by_bytes, self.answer, self.is_rounded = by_bytes, answer, is_rounded
        self.host_rate = host_rate * UNITS
        self.slack_ppm = slack_ppm
        self.outages = list(outages)
        """Times, and the switches between which links fail then; always rerouted without answers."""
        self.failed: list[tuple[str, str]] = []
        self.fabric, self.has_failed = cluster.topology, False
        fabric = cluster.topology
        names = fabric.device_names
        ends = zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True)
        self.links = {(names[src], names[dst]): i for i, (src, dst) in enumerate(ends)}
        self.has_three_levels = "core0" in names
        self.capacity = [rate * UNITS for rate in fabric.link_bandwidth.tolist()]
        self.latency = fabric.link_latency_ps.tolist()
        self.carried: list[Any] = [0] * len(self.capacity)
        """By link: bytes, in rate units times picoseconds."""
        self.moves = 0
        self.now = 0
        self.rows: dict[tuple[int, int], Row] = {}
        self.choices: list[Choice] = []
        self.arrivals: list[tuple[int, Connection, int, int]] = []
        self.answers: list[tuple[int, list[tuple[Connection, Way]], list[int], int]] = []
        self.starting: list[int] = []
        self.routed: list[int] = []
        """Jobs that have paths for when they communicate together."""
        self.keeps = reroute == "always" and not by_bytes
        self.has_stopped = False
        self.jobs = [self._running(number, job) for number, job in enumerate(jobs)]
        self.flows = [flow for job in self.jobs for flow in job.flows.values()]
        self._run()

    @property
    def link_bytes(self) -> list[float]:
        """Bytes over each link."""
        return [float(Fraction(carried, BYTE)) for carried in self.carried]

    # Jobs.

    def _running(self, number: int, job: Given) -> Running:
        flows = {}
        for group, ring in enumerate(job.rings):
            for transfer in job.transfers:
                key = (group, transfer.src, transfer.dst)
                if key not in flows:
                    src, dst = ring[transfer.src], ring[transfer.dst]
                    flows[key] = self._connection(number, group, src, dst)
        return Running(job, flows, depths(job.transfers))

    def _connection(self, job: int, group: int, src: int, dst: int) -> Connection:
        hosts = [gpu // self.cluster.gpus_per_host for gpu in (src, dst)]
        tors = tuple(self.cluster.tors[host] for host in hosts)
        if hosts[0] == hosts[1]:
            return Connection(job, group, (tors[0], tors[1]), None, None)
        names = [self.cluster.topology.device_names[self.cluster.nic_of(gpu)] for gpu in (src, dst)]
        below = "edge" if self.has_three_levels else "tor"
        up = self.links[names[0], f"{below}{tors[0]}"]
        down = self.links[f"{below}{tors[1]}", names[1]]
        return Connection(job, group, (tors[0], tors[1]), up, down, [up, down])

    def _compute(self, number: int, time: int) -> None:
        job = self.jobs[number]
        if job.index == len(job.given.compute):
            job.state, job.alarm = "ended", None
            return
        job.state, job.began = "computing", time
        job.alarm = time + job.given.compute[job.index]
        for (_, src, dst), flow in job.flows.items():
            flow.phase_left = sum(
                each.size for each in job.given.transfers if (each.src, each.dst) == (src, dst)
            )

    def _computed(self, number: int) -> None:
        job = self.jobs[number]
        job.start, job.alarm = self.now, None
        if not job.flows:
            self._stop(number)
        elif job.asks:
            job.state = "asking"
            self.starting.append(number)
        else:
            self._start([number])

    def _stop(self, number: int) -> None:
        job = self.jobs[number]
        self.rows[number, job.index] = Row(job.began, job.start, self.now, *job.counts)
        job.counts = [0, 0, 0.0, 0]
        job.index += 1
        self.has_stopped |= job.asks
        self._compute(number, self.now)

    def _start(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            job = self.jobs[number]
            job.state = "communicating"
            everything = range(len(job.given.transfers))
            job.left = [set(everything) for _ in job.given.rings]
            job.unsent = [set(everything) for _ in job.given.rings]
            for group in range(len(job.given.rings)):
                self._send_ready(number, group)

    def _send_ready(self, number: int, group: int) -> None:
        """Give connections what may be sent, in the order of the plan."""
        job = self.jobs[number]
        left, unsent, transfers = job.left[group], job.unsent[group], job.given.transfers
        level = min((job.depths[i] for i in left), default=0)
        for i in sorted(unsent):
            is_due = (
                job.depths[i] == level if job.given.is_lock_step else not transfers[i].after & left
            )
            if is_due:
                unsent.remove(i)
                flow = job.flows[group, transfers[i].src, transfers[i].dst]
                flow.waiting.append(i)
                if flow.sends is None:
                    self._next(flow)

    # Flows.

    def _next(self, flow: Connection) -> None:
        flow.sends = flow.waiting.popleft() if flow.waiting else None
        if flow.sends is not None:
            size = self._size(flow)
            flow.began, flow.left = self.now, size * BYTE
            flow.phase_left -= size

    def _size(self, flow: Connection) -> int:
        assert flow.sends is not None
        return self.jobs[flow.job].given.transfers[flow.sends].size

    def _fill(self, sending: Sequence[Connection]) -> None:
        """Progressive filling: all links with the least for each of their flows settle these."""
        open_flows: dict[int, list[Connection]] = defaultdict(list)
        for flow in sending:
            flow.rate = self.host_rate if flow.up is None else None
            for link in flow.links:
                open_flows[link].append(flow)
        spare: dict[int, Any] = {link: self.capacity[link] for link in open_flows}
        while open_flows:
            shares = {link: self._share(spare[link], len(on)) for link, on in open_flows.items()}
            least = min(shares.values())
            held = [flow for on in open_flows.values() for flow in on if flow.most is not None]
            least = min([least, *(flow.most for flow in held)])
            full = [flow for flow in held if flow.most == least]
            full += [
                flow for link, on in open_flows.items() if shares[link] == least for flow in on
            ]
            for flow in full:
                if flow.rate is None:
                    flow.rate = least
                    for link in flow.links:
                        spare[link] -= least
            for link in list(open_flows):
                open_flows[link] = [flow for flow in open_flows[link] if flow.rate is None]
                if not open_flows[link]:
                    del open_flows[link]

    def _share(self, spare: Any, flows: int) -> Any:
        return spare // flows if self.is_rounded else Fraction(spare, flows)

    def _drain(self, flow: Connection, lasted: int) -> None:
        gone = min(flow.left, flow.rate * lasted)
        flow.left -= gone
        for link in flow.links:
            self.carried[link] += gone

    # Moments.

    def _run(self) -> None:
        for number, job in enumerate(self.jobs):
            self._compute(number, job.given.arrival)
        if self.reroute == "never":
            everyone = range(len(self.jobs))
            paths, choice = self._decide(everyone, everyone)
            self.choices.append(choice)
            for flow, way in paths:
                self._move(flow, way)
        while True:
            sending = [flow for flow in self.flows if flow.sends is not None]
            sending = [flow for flow in sending if not self._dead() & {*flow.links}]
            self._fill(sending)
            ends = [self.now - (-flow.left // flow.rate) for flow in sending]
            alarms = [job.alarm for job in self.jobs if job.alarm is not None]
            due = [time for time, *_ in (*self.arrivals, *self.answers, *self.outages)]
            if not [*ends, *alarms, *due]:
                return
            after = min([*ends, *alarms, *due])
            for flow in sending:
                self._drain(flow, after - self.now)
            self.now = after
            self._moment([flow for flow, end in zip(sending, ends, strict=True) if end == after])

    def _moment(self, sent: Sequence[Connection]) -> None:
        for flow in sent:
            assert flow.left == 0
            assert flow.sends is not None
            time = self.now + sum(self.latency[link] for link in flow.links)
            self.arrivals.append((time, flow, flow.sends, flow.began))
            self._next(flow)
        touched = set()
        for arrival in [arrival for arrival in self.arrivals if arrival[0] == self.now]:
            self.arrivals.remove(arrival)
            _, flow, transfer, began = arrival
            self._count(flow, transfer, self.now - began)
            self.jobs[flow.job].left[flow.group].remove(transfer)
            touched.add((flow.job, flow.group))
        for number, group in sorted(touched):
            self._send_ready(number, group)
        for number in sorted({number for number, _ in touched}):
            if not any(self.jobs[number].left):
                self._stop(number)
        while due := [i for i, job in enumerate(self.jobs) if job.alarm == self.now]:
            self._computed(due[0])
        for outage in [outage for outage in self.outages if outage[0] == self.now]:
            self._fail(*outage)
        for answer in [answer for answer in self.answers if answer[0] == self.now]:
            self.answers.remove(answer)
            self._answered(*answer[1:])
        if self.starting or self.has_stopped or self.has_failed:
            self._ask()

    def _fail(self, time: int, one: str, other: str) -> None:
        """Links both ways between two switches, if they are still there."""
        self.outages.remove((time, one, other))
        if {(one, other), (other, one)}.isdisjoint(self.failed):
            self.failed.append((one, other))
            self.fabric = self.cluster.topology.without(links=self.failed)
            self.has_failed = True

    def _dead(self) -> set[int]:
        pairs = [pair for one, other in self.failed for pair in ((one, other), (other, one))]
        return {self.links[pair] for pair in pairs}

    def _count(self, flow: Connection, transfer: int, lasted: int) -> None:
        if flow.up is not None:
            counts = self.jobs[flow.job].counts
            counts[0] += 1
            counts[1] += lasted
            counts[2] += self.jobs[flow.job].given.transfers[transfer].size * 1e12 / max(lasted, 1)
            counts[3] = max(counts[3], lasted)

    # The controller.

    def _ask(self) -> None:
        starting, stopped, failed = sorted(self.starting), self.has_stopped, self.has_failed
        self.starting, self.has_stopped, self.has_failed = [], False, False
        on_fabric = [i for i, job in enumerate(self.jobs) if job.asks]
        states = ("asking", "communicating")
        active = [i for i in on_fabric if self.jobs[i].state in states]
        is_due = {"always": True, "at-start": bool(starting), "never": False}[self.reroute]
        assert starting or stopped or failed
        if not active:
            self.routed = []
        if not is_due or not active or (active == self.routed and self.keeps and not failed):
            self._start(starting)
            return
        self.routed = active
        paths, choice = self._decide(active, starting if self.reroute == "at-start" else active)
        self.choices.append(choice)
        answer = (paths, starting, len(self.choices) - 1)
        if self.answer and self.reroute == "always":
            self.answers.append((self.now + self.answer, *answer))
        else:
            self._answered(*answer)

    def _decide(
        self, active: Sequence[int], starting: Sequence[int]
    ) -> tuple[list[tuple[Connection, Way]], Choice]:
        """Paths for the flows of jobs that start; the others keep theirs."""
        between = {
            i: [flow for flow in self.jobs[i].flows.values() if flow.is_between_tors]
            for i in active
        }
        kept = [flow for i in active if i not in starting for flow in between[i]]
        new = [flow for i in active if i in starting for flow in between[i]]
        flows = [(*flow.tors, self._weight(flow)) for flow in [*kept, *new]]
        made = hk.routing.assign(self.fabric, flows, scheme=self.scheme, seed=self.seed)
        ways = [self._ends(path.tolist(), made.topology) for path in made.paths]
        if kept:
            ways = self._after(flows, [flow.decided for flow in kept])
        for flow, way in zip([*kept, *new], ways, strict=True):
            flow.decided = way
        choice = self._choice(flows, ways, made.certificate.load)
        return list(zip(new, ways[len(kept) :], strict=True)), choice

    def _ends(self, path: Sequence[int], fabric: hk.Topology) -> Way:
        """Links of the whole fabric, of those of what is left of it."""
        names, src, dst = fabric.device_names, fabric.link_src, fabric.link_dst
        return tuple(self.links[names[src[link]], names[dst[link]]] for link in path)

    def _choice(
        self, flows: Sequence[tuple[int, int, int]], ways: Sequence[Way], bound: int
    ) -> Choice:
        loads: dict[int, int] = defaultdict(int)
        for (_, _, weight), way in zip(flows, ways, strict=True):
            for link in way:
                loads[link] += weight
        return Choice(self.now, len(flows), 0, max(loads.values(), default=0), bound)

    def _after(
        self, flows: Sequence[tuple[int, int, int]], fixed: Sequence[Way | None]
    ) -> list[Way]:
        """Least loaded: each flow to the uplink of its ToR that carries least, the lowest of several."""
        assert self.scheme == "least-loaded"
        assert not self.has_three_levels
        spines = {name for ends in self.links for name in ends if name.startswith("spine")}
        numbers = sorted(int(name.removeprefix("spine")) for name in spines)
        loads: dict[int, int] = defaultdict(int)
        chosen = []
        for i, (src, dst, weight) in enumerate(flows):
            way = fixed[i] if i < len(fixed) else None
            if way is None:
                ways = [self._over(src, dst, spine) for spine in numbers]
                way = min((each for each in ways if each), key=lambda each: loads[each[0]])
            loads[way[0]] += weight
            chosen.append(way)
        return chosen

    def _over(self, src: int, dst: int, spine: int) -> Way | None:
        ends = [(f"tor{src}", f"spine{spine}"), (f"spine{spine}", f"tor{dst}")]
        if any(end not in self.links for end in ends):
            return None
        return tuple(self.links[end] for end in ends)

    def _weight(self, flow: Connection) -> int:
        """Bytes that have not left, in whole ones."""
        if not self.by_bytes:
            return 1
        return flow.phase_left + (0 if flow.sends is None else -(-flow.left // BYTE))

    def _answered(
        self, paths: Sequence[tuple[Connection, Way]], starting: Sequence[int], choice: int
    ) -> None:
        moved = sum(self._move(flow, way) for flow, way in paths)
        self.choices[choice] = self.choices[choice]._replace(moved=moved)
        self._start(starting)
        if self.slack_ppm is not None:
            self._limit(self.slack_ppm)

    def _limit(self, slack_ppm: int) -> None:
        """Hold flows to what they would have if all of them sent at once, and a little more."""
        flows = [flow for flow in self.flows if self.jobs[flow.job].state == "communicating"]
        flows = [flow for flow in flows if flow.up is not None]
        for flow in flows:
            flow.most = None
        self._fill(flows)
        for flow in flows:
            flow.most = flow.rate + flow.rate // 10**6 * slack_ppm

    def _move(self, flow: Connection, way: Way) -> bool:
        if flow.way == way:
            return False
        assert flow.up is not None
        assert flow.down is not None
        flow.way, flow.links = way, [flow.up, *way, flow.down]
        self.moves += flow.sends is not None
        return flow.sends is not None
