"""How flows get paths, and how jobs and the controller go, where users may choose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    """How schemes give flows paths.

    Attributes
    ----------
    seed
        Of random placements, of hashes, of swaps (annealing) and of the solver; by default that of the
        jobs' file, or 0.
    hash
        Of ecmp: ``"crc32"``, ``"toeplitz"``, or ``"linux"``, whose switches each have a seed of their own,
        drawn from `seed`.
    upstream
        Of ecmp: ways over which the same hash has spread flows already; more than 1 polarises.
    salt
        Of ecmp: whether switches above the ToRs mix their level into the hash. They do not by default,
        and then see only flows of one remainder. With the hash ``"linux"`` their seeds differ anyway.
    headers
        Of ecmp with the hash ``"linux"``, on two levels: the header of each flow between ToRs, in order,
        for jobs in that of :func:`fabric_flows`. By default flows are of RoCEv2: UDP to port 4791, from
        ports 49152 to 65535 drawn by `seed`, between hosts 10.t.t.1 of ToR t.
    switch_seeds
        Seeds of the ToRs by number, with `headers`; by default they are drawn from `seed`.
    steps
        Of annealing: swaps, with Hedera's energy and temperatures to suit it. By default it is as
        released with the paper.
    time_limit
        Of ``"ilp"``, for one assignment [s]; the best so far is the result.
    workers
        Threads of ``"ilp"``. With more than one it is faster, and may give other paths that are as good;
        so it may with a time limit.

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
    time_limit: Duration | None = None
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

    def choices(
        self, fabric: core_routing.Fabric, flows: list[tuple[int, int, int]]
    ) -> list[int] | None:
        """Return the spine that each flow's header leads to, or None if no headers are given."""
        if self.headers is None:
            return None
        seeds = self.switch_seeds
        if seeds is None:
            tors = 1 + max((max(src, dst) for src, dst, _ in flows), default=-1)
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
    """How jobs run on a cluster; besides, how schemes give flows paths, see :class:`SchemeOptions`.

    Attributes
    ----------
    order
        In which flows are taken: ``"job"`` by job, or ``"tor"`` by ToR, the side with most flows first.
    weights
        What counts on a link: ``"flows"``, or the ``"bytes"`` that they have left in the phase.
    answer
        Time that the controller takes where it has not foreseen what happened [s]: flows start, and move,
        that much later. Jobs below one ToR need no paths and do not wait.
    look_ahead
        Of how many coming events assignments are computed ahead, where all flows are given paths at
        each. Most jobs end sooner for it; not all, since what starts sooner may meet other flows.
    failover
        Compute paths ahead for the failure of each link and each switch above the ToRs; flows that lose
        theirs then move at once.
    max_moves
        Of ``"controller"``: how many flows may move so that one more finds room on a link; where it takes
        more, the link carries one flow too many until others end.
    outages
        What fails while jobs run, and when: ``"spine3@12 s"``, or ``"tor0,spine1@12 s"`` for a link.
    rate_control
        Hosts hold each flow to its fair share of what the controller assigned, and this share of it more:
        (1 + rate_control) x in the paper's section 8. Schemes without a controller ignore it.
    jitter
        By which share computation is longer or shorter at random, from one iteration to the next.
    host_rate
        Of each flow between GPUs of one host, however many there are [bytes/s].
    keep_rates
        Keep the rate of each job over time, for pictures.

    References
    ----------
    Cohen et al.: Routing for large ML models, sections 5.1 and 8.
    """

    order: str = "job"
    weights: str = "flows"
    answer: Duration = 0.0
    look_ahead: int = 0
    failover: bool = False
    max_moves: int = 8
    outages: Iterable[str] = ()
    rate_control: float | None = None
    jitter: float = 0.0
    host_rate: Quantity = 300e9
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
