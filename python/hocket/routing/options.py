"""Options of paths, of jobs and of the controller."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from hocket._checks import instance_of, list_of, one_of, share_hint, whole
from hocket._core import routing as core_routing
from hocket._core import steering as core_steering
from hocket._options import seconds
from hocket.cluster.hosts import MAX_SEED
from hocket.errors import SpecError
from hocket.steering.hashes import Header, SwitchHash
from hocket.units import Duration, Quantity, parse_bandwidth, parse_time, shown

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class SchemeKeywords(TypedDict, total=False):
        """The fields of :class:`SchemeOptions` as keywords of a call."""

        seed: int | None
        hash: str
        upstream: int
        salt: bool
        headers: Iterable[Header] | None
        switch_seeds: Iterable[int] | None
        steps: int | None
        time_limit: Duration | None
        workers: int

    class ClusterKeywords(SchemeKeywords, total=False):
        """The fields of :class:`ClusterOptions` as keywords of a call."""

        order: str
        weights: str
        answer: Duration
        look_ahead: int
        failover: bool
        outages: Iterable[str]
        max_moves: int
        rate_control: float | None
        jitter: float
        host_rate: Quantity
        keep_rates: bool


HASHES = ("crc32", "toeplitz", "linux")
ORDERS = ("job", "tor")
WEIGHTS = ("flows", "bytes")


@dataclass(frozen=True, kw_only=True)
class SchemeOptions:
    """The options of the schemes that give flows paths.

    Attributes
    ----------
    seed
        Seed of placements, hashes and random numbers. Default: the seed in the file of jobs, or 0.
    hash
        Hash function of ecmp: crc32, toeplitz, or linux, whose switches have seeds of their own.
    upstream
        For ecmp: number of paths over which the same hash has already distributed the flows.
    salt
        For ecmp: mix a switch's level into the hash above the ToRs.
    headers
        For ecmp with the hash linux, on two levels: the header of each flow between ToRs, in order, for
        jobs in that of :func:`fabric_flows`. Default: RoCEv2, UDP to port 4791 from ports 49152 to 65535
        drawn by `seed`, between hosts 10.t.t.1 of ToR t.
    switch_seeds
        Seeds of the ToRs by number, with `headers`. Default: drawn from `seed`.
    steps
        For annealing: number of swaps, with Hedera's energy and temperatures to suit it. Default: as
        released with the paper.
    time_limit
        Time limit of each assignment by ilp [s]; the best so far is the result.
    workers
        Threads of ilp. With more than one, or with a time limit, paths may differ and are as good.

    Without `salt`, switches above the ToRs see only flows of one remainder, so ecmp polarises. Seeds of the
    hash linux differ anyway.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    seed: int | None = None
    hash: str = "crc32"
    upstream: int = 1
    salt: bool = False
    headers: Iterable[Header] | None = None
    switch_seeds: Iterable[int] | None = None
    steps: int | None = None
    time_limit: Annotated[Duration, "TIME"] | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        if self.seed is not None:
            self._keep("seed", whole("seed", self.seed, 0, MAX_SEED))
        one_of("hash", self.hash, HASHES)
        self._keep("upstream", whole("upstream", self.upstream, 1, 2**16))
        if self.steps is not None:
            self._keep("steps", whole("steps", self.steps, 1, 2**32 - 1))
        if self.time_limit is not None:
            limit = seconds(self.time_limit, "time_limit")
            if not limit > 0:
                raise SpecError("time_limit", "0 leaves no time", "give more, as 10s")
            self._keep("time_limit", limit)
        self._keep("workers", whole("workers", self.workers, 1, 1024))
        self._check_headers()

    def _check_headers(self) -> None:
        """Check headers, and seeds of switches, which need them."""
        if self.headers is not None:
            if self.hash != "linux":
                raise SpecError(
                    "headers", f"the hash {self.hash} draws its own", 'give hash="linux"'
                )
            right = "make one by hk.steering.Header(...)"
            each = list_of("headers", self.headers)
            self._keep("headers", tuple(instance_of(Header, "headers", one, right) for one in each))
        if self.switch_seeds is not None:
            if self.headers is None:
                raise SpecError("switch_seeds", "there are no headers to be hashed", "give headers")
            seeds = list_of("switch_seeds", self.switch_seeds)
            most = 2**32 - 1
            self._keep("switch_seeds", tuple(whole("switch_seeds", one, 1, most) for one in seeds))

    def _keep(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def seconds(self) -> float | None:
        """The time limit of the solver [s]."""
        return None if self.time_limit is None else float(self.time_limit)  # type: ignore[arg-type]

    def choices(self, fabric: core_routing.Fabric, flows: core_routing.Flows) -> list[int] | None:
        """Return the spine that each flow's header leads to, or None if no headers are given."""
        if self.headers is None:
            return None
        seeds = self.switch_seeds
        if seeds is None:
            tors = 1 + max((max(src, dst) for src, dst, _ in flows.rows()), default=-1)
            seeds = [core_steering.switch_seed(self.seed or 0, 0, tor) for tor in range(tors)]
        hashes = [SwitchHash("linux", seed).core for seed in seeds]
        headers = [header.core for header in self.headers]
        return core_steering.hashed(fabric, flows, headers, hashes)

    @property
    def core(self) -> tuple[str, int, bool, int | None]:
        """Hash, upstream, salt and steps, for the schemes that have them."""
        return self.hash, self.upstream, bool(self.salt), self.steps


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(SchemeOptions):
    """The options of jobs on a cluster, and those of schemes (:class:`SchemeOptions`).

    Attributes
    ----------
    order
        Order in which flows get paths: job, or tor (the side with most flows first).
    weights
        Load of a link: its flows, or their bytes (those left in the phase).
    answer
        Time that the controller takes to answer [s], such as ``"10 ms"``. Flows start, and move, that much
        later.
    look_ahead
        Number of coming events for which the controller computes paths in advance.
    failover
        Compute paths in advance for every single failure.
    max_moves
        For controller: number of flows that may move to make a path for one more.
    outages
        A failure while jobs run, such as ``"spine3@12 s"``. Can be repeated.
    rate_control
        Limit flows to their fair share plus this share, such as 0.05.
    jitter
        Share by which compute times vary, such as 0.05.
    host_rate
        Rate of each flow between GPUs of one host [bytes/s].
    keep_rates
        Keep the rate of each job over time, for pictures.

    An outage of a link is ``"tor0,spine1@12 s"``. With `failover`, flows that lose a path move at once. A
    job below one ToR needs no paths, and does not wait for an answer. Rate control is (1 + rate_control) x
    in the paper's section 8; schemes without a controller ignore it.

    References
    ----------
    Cohen et al.: Routing for large ML models, sections 5.1 and 8.
    """

    order: str = "job"
    weights: str = "flows"
    answer: Annotated[Duration, "TIME"] = 0.0
    look_ahead: int = 0
    failover: bool = False
    max_moves: int = 8
    outages: Iterable[str] = ()
    rate_control: float | None = None
    jitter: float = 0.0
    host_rate: Annotated[Quantity, "RATE"] = 300e9
    keep_rates: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("order", self.order, ORDERS)
        one_of("weights", self.weights, WEIGHTS)
        self._keep("answer", seconds(self.answer, "answer"))
        self._keep("look_ahead", whole("look_ahead", self.look_ahead, 0, 10**6))
        self._keep("max_moves", whole("max_moves", self.max_moves, 0, 2**32 - 1))
        self._keep("outages", tuple(list_of("outages", self.outages)))
        if self.rate_control is not None:
            self._keep("rate_control", _share("rate_control", self.rate_control))
        self._keep("jitter", _share("jitter", self.jitter))
        self._keep("host_rate", parse_bandwidth(self.host_rate, field="host_rate"))

    @property
    def answer_ps(self) -> int:
        """Time that the controller takes [ps]."""
        return parse_time(self.answer, field="answer")


def _share(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        right = f"give a share from 0 to 1{share_hint(value)}"
        raise SpecError(field, f"{shown(value)} is not valid", right)
    return float(value)
