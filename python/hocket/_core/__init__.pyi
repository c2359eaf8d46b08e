"""The Rust core: columns in, columns out. ``hocket`` itself is what people use.

Times are whole picoseconds, bandwidths bytes per second. Array properties are read-only views into
the object's own memory and keep it alive. A ``progress`` callable gets (stage, done, total) now and
then; an exception that it raises stops the call and comes out of it, and so does Ctrl-C.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from hocket._core import chakra as chakra
from hocket._core import cluster as cluster
from hocket._core import families as families
from hocket._core import formats as formats
from hocket._core import interrupt as interrupt
from hocket._core import iteration as iteration
from hocket._core import kernel as kernel
from hocket._core import multirail as multirail
from hocket._core import nccl as nccl
from hocket._core import packing as packing
from hocket._core import perfetto as perfetto
from hocket._core import registry as registry
from hocket._core import replay as replay
from hocket._core import routing as routing
from hocket._core import runtime as runtime
from hocket._core import steering as steering
from hocket._core import symmetry as symmetry
from hocket._core import synthesis as synthesis
from hocket._core import trace as trace

__version__: Final[str]
__all__ = [
    "Bound",
    "Collective",
    "DimensionReport",
    "DimensionRun",
    "Inspection",
    "Made",
    "Plan",
    "Report",
    "Run",
    "Schedule",
    "Topology",
    "Violation",
    "__version__",
    "activity",
    "bound",
    "build_product",
    "carries_out",
    "chakra",
    "checked_routing",
    "cluster",
    "dimension_report",
    "equal_links",
    "families",
    "formats",
    "gap",
    "heat",
    "interrupt",
    "iteration",
    "kernel",
    "multirail",
    "nccl",
    "packing",
    "perfetto",
    "plan",
    "plan_of",
    "rates",
    "registry",
    "replay",
    "report",
    "restore",
    "routing",
    "runtime",
    "schedule",
    "simulate",
    "simulate_flows",
    "simulate_packets",
    "steering",
    "symmetry",
    "synthesis",
    "trace",
    "use_and_sums",
    "verify",
]

_U8: TypeAlias = npt.NDArray[np.uint8]
_U32: TypeAlias = npt.NDArray[np.uint32]
_U64: TypeAlias = npt.NDArray[np.uint64]
_Progress: TypeAlias = Callable[[str, int, int], object]
_Dimension: TypeAlias = tuple[str, int, int, int, bool]
_GivenDimension: TypeAlias = _Dimension | tuple[str, int, int, int]
_Offload: TypeAlias = tuple[Sequence[str], int | None, int | None]
_Demand: TypeAlias = tuple[int, bool, list[int] | None, list[int] | None]

class _Immutable:
    """What never changes: a copy is the object itself, and a pickle calls :func:`restore`."""

    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

def restore(name: str, state: object) -> object:
    """Make again what ``__reduce__`` of a class gave; all of it is checked, and no proof is in it."""

@final
class Topology(_Immutable):
    """A directed multigraph of NPUs and switches; NPU i is device i."""

    @staticmethod
    def from_arrays(
        name: str,
        device_names: Sequence[str],
        npu_count: int,
        switch_limits: Sequence[int | None],
        link_src: _U32 | list[int],
        link_dst: _U32 | list[int],
        link_bandwidth: _U64 | list[int],
        link_latency_ps: _U64 | list[int],
        dimensions: Sequence[_GivenDimension] = ...,
        switching: str = "store-and-forward",
        groups: Sequence[Sequence[int]] = ...,
        switch_offloads: Sequence[_Offload | None] = ...,
    ) -> Topology:
        """Make a topology of columns: devices NPUs first, a limit or None for each switch.

        A dimension is (kind, size, bandwidth, latency, offload), offload False where it is left
        out; kinds are Ring, Line, FullyConnected and Switch. The caller vouches that devices and
        links follow the dimensions. Switching is store-and-forward or cut-through. Groups are the NPUs
        of each node; none by default. What each switch can do besides forwarding is (operations, rate
        [bytes/s] or None, trees or None), or None; none by default.

        Raises
        ------
        hocket.errors.SpecError
            For columns of unequal length, a bandwidth of 0, a self-loop, a name used twice, offload
            of a dimension other than Switch.
        """

    @property
    def name(self) -> str: ...
    @property
    def may_have_equal_paths(self) -> bool:
        """Whether any two NPUs may have equal paths; ``False`` is certain."""

    @property
    def npu_count(self) -> int: ...
    @property
    def device_count(self) -> int: ...
    @property
    def link_count(self) -> int:
        """How many directed links there are."""

    @property
    def device_names(self) -> list[str]:
        """Name of each device, NPUs first."""

    @property
    def switch_limits(self) -> list[int | None]:
        """Bandwidth limit of each switch [bytes/s]."""

    @property
    def switch_offloads(self) -> list[_Offload | None]:
        """Operations, rate [bytes/s] and trees of each switch that sums or multicasts, else None.

        Empty where no switch does.
        """

    def with_offload(self, switches: Sequence[int], offload: _Offload | None) -> Topology:
        """Give the same network whose switches of these device numbers can do that, or only forward."""

    @property
    def link_src(self) -> _U32:
        """Device where each link starts, (link_count,)."""

    @property
    def link_dst(self) -> _U32:
        """Device where each link ends, (link_count,)."""

    @property
    def link_bandwidth(self) -> _U64:
        """Bandwidth of each link [bytes/s], (link_count,)."""

    @property
    def link_latency_ps(self) -> _U64:
        """Latency of each link [ps], (link_count,)."""

    @property
    def dimensions(self) -> list[_Dimension]:
        """Kind, size, bandwidth [bytes/s], latency [ps] and offload of each dimension of a product.

        Offload: whether its switches sum and multicast.
        """

    @property
    def switching(self) -> str:
        """How its devices pass messages on: store-and-forward or cut-through."""

    def with_switching(self, switching: str) -> Topology:
        """Give the same network, whose devices pass messages on in that way."""

    @property
    def groups(self) -> list[list[int]]:
        """The NPUs of each node; empty where it is not said which NPUs form one."""

    def with_groups(self, groups: Sequence[Sequence[int]]) -> Topology:
        """Give the same network whose NPUs form these nodes, every NPU in one; or no nodes."""

    def with_name(self, name: str) -> Topology:
        """Give the same network under another name."""

    def device_index(self, name: str) -> int:
        """Position of the device of that name, or SpecError."""

    def without(
        self,
        nodes: Sequence[str] | None = None,
        links: Sequence[str | Sequence[str]] | None = None,
    ) -> Topology:
        """Give the network less some NPUs or switches and some links, by name.

        A link named by its ends, ``("a", "b")`` or ``"a,b"``, goes both ways, with all links parallel
        to it. The rest keeps its names, and groups what is left of them. Dimensions are kept where every
        NPU is.

        SpecError for a name or link that there is not, or if no NPU would be left.
        """

    def inspect(self) -> Inspection:
        """Find degrees, diameter, bisection and whether it is connected."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Inspection:
    """What ``Topology.inspect`` finds; bandwidths in bytes/s.

    Degrees are the fewest and most links of an NPU, ``unreachable`` an NPU and another that it does
    not reach, diameters (None if not connected) the most links and the most latency [ps] on a
    quickest way between NPUs. The bisection is the least one-way bandwidth between two halves of
    the NPUs; where it is not exact, the least that was found.
    """

    @property
    def npus(self) -> int: ...
    @property
    def switches(self) -> int: ...
    @property
    def links(self) -> int: ...
    @property
    def out_degree(self) -> tuple[int, int]: ...
    @property
    def in_degree(self) -> tuple[int, int]: ...
    @property
    def connected(self) -> bool: ...
    @property
    def unreachable(self) -> tuple[str, str] | None: ...
    @property
    def diameter_hops(self) -> int | None: ...
    @property
    def diameter_latency_ps(self) -> int | None: ...
    @property
    def total_bandwidth(self) -> int: ...
    @property
    def link_bandwidth(self) -> tuple[int, int] | None: ...
    @property
    def bisection_bandwidth(self) -> int | None: ...
    @property
    def bisection_is_exact(self) -> bool: ...

def build_product(dimensions: Sequence[_GivenDimension]) -> Topology:
    """A product of dimensions; NPU numbers vary fastest in the first."""

@final
class Collective(_Immutable):
    """What has to be done: kind, participants in rank order, size, root."""

    def __new__(
        cls,
        kind: str,
        npus: Sequence[int],
        size: int,
        root: int | None = None,
        in_place: bool = True,
    ) -> Collective:
        """Make a collective of a named kind, such as all-reduce; root is a rank."""

    @staticmethod
    def custom(
        npus: Sequence[int],
        demands: Sequence[_Demand],
        in_place: bool = True,
        name: str | None = None,
    ) -> Collective:
        """Make one of demands: (bytes, reduced, holders, wanted), None for all participants."""

    @staticmethod
    def joined(collectives: Sequence[Collective]) -> Collective:
        """Make one that has the demands of several, in order, or SpecError if there is none."""

    @property
    def kind(self) -> str:
        """The pattern, such as all-reduce, or custom."""

    @property
    def name(self) -> str:
        """What it is called: its kind, or the name of a custom one."""

    @property
    def npus(self) -> list[int]: ...
    @property
    def size(self) -> int:
        """Bytes, as nccl-tests counts them."""

    @property
    def bus_factor(self) -> float:
        """Busbw / algbw, as nccl-tests has it."""

    @property
    def root(self) -> int | None:
        """Rank of the root, for rooted kinds."""

    @property
    def in_place(self) -> bool:
        """Whether the result overwrites the input."""

    def demands(self) -> list[_Demand]:
        """Precondition and postcondition: (bytes, reduced, holders, wanted)."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

def checked_routing(name: str) -> str:
    """Give a routing back as it is written in files, or SpecError."""

@final
class Plan(_Immutable):
    """The transfers that implement a collective on a topology, as columns.

    A ``wait`` is ``NO_WAIT``, a transfer, or ``GROUP`` + a group. Groups and paths are packed lists:
    list i is ``items[offsets[i]:offsets[i + 1]]``; group members are waits, path members links.
    """

    NO_WAIT: Final[int]
    GROUP: Final[int]
    DEFAULT_ROUTE: Final[int]

    @staticmethod
    def from_columns(
        topology: Topology,
        collective: Collective,
        algorithm: str,
        *,
        chunk_offsets: _U64,
        chunk_demand: _U32,
        chunk: _U32,
        chunk_count: _U32,
        src: _U32,
        dst: _U32,
        op: _U8,
        wait: _U32,
        path: _U32,
        group_offsets: _U32,
        group_items: _U32,
        path_offsets: _U32,
        path_items: _U32,
        link_order: str = "ready",
        routing: str = "single",
        own_paths: int | None = None,
    ) -> Plan:
        """Make a plan of columns (copied), or SpecError where they do not fit together."""

    @staticmethod
    def merged(plans: Sequence[Plan], memory_limit: int) -> Plan:
        """Make one plan that carries out several at once; transfers of the plans take turns."""

    @property
    def algorithm(self) -> str: ...
    @property
    def collective(self) -> Collective: ...
    @property
    def topology(self) -> Topology: ...
    def routed(self, routing: str, *, release: bool = False) -> Plan:
        """The same transfers, spread over equal paths in another way.

        With `release` also those whose own path is one of several equal ones.
        """

    @property
    def routing(self) -> str:
        """How transfers are spread over equal paths."""

    @property
    def own_paths(self) -> int:
        """How many of the paths are the algorithm's own; the rest are of ``routing``."""

    @property
    def link_order(self) -> str:
        """In what order links are meant to serve: ``ready`` or ``plan``."""

    @property
    def chunks(self) -> int:
        """How many chunks the data is cut into."""

    @property
    def nbytes(self) -> int:
        """Memory that the columns take [bytes]."""

    @property
    def is_verified(self) -> bool:
        """Whether it was proved right."""

    @property
    def is_reproducible(self) -> bool | None:
        """Whether sums have the same bits in every timing; ``None`` before the proof."""

    @property
    def chunk(self) -> _U32:
        """First chunk of each transfer, (len,)."""

    @property
    def chunk_count(self) -> _U32:
        """How many consecutive chunks each transfer carries, (len,)."""

    @property
    def src(self) -> _U32:
        """Sending NPU of each transfer, (len,)."""

    @property
    def dst(self) -> _U32:
        """Receiving NPU of each transfer, (len,)."""

    @property
    def op(self) -> _U8:
        """What the receiver does: 0 copy, 1 reduce, (len,)."""

    @property
    def wait(self) -> _U32:
        """What each transfer waits for, (len,)."""

    @property
    def path(self) -> _U32:
        """Explicit path of each transfer or ``DEFAULT_ROUTE``, (len,)."""

    @property
    def size_bytes(self) -> _U64:
        """Bytes that each transfer carries."""

    @property
    def group_offsets(self) -> _U32:
        """Where each group starts, (groups + 1,)."""

    @property
    def group_items(self) -> _U32:
        """Members of all groups: waits."""

    @property
    def path_offsets(self) -> _U32:
        """Where each path starts, (paths + 1,)."""

    @property
    def path_items(self) -> _U32:
        """Links of all paths."""

    def routes(self) -> tuple[_U64, _U32]:
        """Links of each transfer's route: where each starts, (len + 1,), and the links of all.

        SpecError where a transfer has no route, or is sprayed over several.
        """

    @property
    def chunk_offsets(self) -> _U64:
        """Running sum of the chunks' bytes from 0, (chunks + 1,)."""

    @property
    def chunk_demand(self) -> _U32:
        """Demand that each chunk belongs to, (chunks,)."""

    def __len__(self) -> int:
        """How many transfers."""

@final
class Violation(_Immutable):
    """One thing that is wrong with a plan; ``str`` gives all of it in a line."""

    def __new__(
        cls,
        code: str,
        transfer: int | None,
        chunk: int | None,
        npu: int | None,
        detail: str,
        text: str,
    ) -> Violation: ...
    @property
    def code(self) -> str:
        """Stable name of its kind, such as counted_twice."""

    @property
    def transfer(self) -> int | None:
        """The transfer to blame."""

    @property
    def chunk(self) -> int | None:
        """The chunk concerned."""

    @property
    def npu(self) -> int | None:
        """The NPU concerned."""

    @property
    def detail(self) -> str:
        """What is missing, counted twice or out of order."""

    @property
    def text(self) -> str:
        """All of it in a line."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Bound(_Immutable):
    """A lower bound on the time of any plan, and what proves it."""

    def __new__(
        cls,
        time_ps: int,
        witness: str,
        components: list[tuple[str, int]],
        exact_cut: bool,
        exact_partition: bool,
        sides: list[list[int]] = ...,
    ) -> Bound:
        """Make one that was found before; nothing of it is proved again."""

    @property
    def time_ps(self) -> int:
        """No plan is faster [ps]."""

    @property
    def witness(self) -> str:
        """What proves it: a node, a cut, a partition, the traffic or a path, in a line."""

    @property
    def components(self) -> list[tuple[str, int]]:
        """Name and time [ps] of every bound that was tried."""

    @property
    def exact_cut(self) -> bool:
        """Whether the cut is the worst of all cuts."""

    @property
    def exact_partition(self) -> bool:
        """Whether the partition is the best of all partitions."""

    @property
    def sides(self) -> list[list[int]]:
        """Sets of devices whose borders the argument counts; none where it counts something else."""

def bound(
    topology: Topology,
    collective: Collective,
    fidelity: Literal["link", "flow", "packet", "dimension"] = "link",
    flit_bytes: int = 512,
) -> Bound:
    """Bound any plan's time at a fidelity; `flit_bytes` are those of packet fidelity."""

def verify(plan: Plan, progress: _Progress | None = None) -> None:
    """Prove a plan right, once, or VerificationError; later calls return at once."""

@final
class Made:
    """A plan as its algorithm made it, with what is known of it."""

    @property
    def plan(self) -> Plan:
        """The plan, verified where it was proved on the way."""

    @property
    def time_ps(self) -> int | None:
        """When it ends at link fidelity [ps], where it was simulated on the way."""

    @property
    def pieces(self) -> int | None:
        """Into how many pieces its blocks are cut, or each tree's share, where the algorithm chose that."""

    @property
    def schedule(self) -> Schedule | None:
        """The schedule of dimensions that it carries out."""

    @property
    def trees(self) -> tuple[int, int, list[packing.Packing]] | None:
        """Pieces of each tree, when it ends at the latest [ps], and its trees: of sums, then of copies."""

    @property
    def candidates(self) -> tuple[synthesis.Candidate, synthesis.Candidate | None] | None:
        """What a search found, and the same spread over equal paths, where there are any."""

def plan(
    topology: Topology,
    collective: Collective,
    algorithm: str,
    chunks: int | None,
    memory_limit: int,
    routing: str = "balanced",
    *,
    latency: str = "overlapped",
    seed: int | None = None,
    trials: int | None = None,
    unwinding: list[str] = ...,
    time_limit: float | None = None,
    progress: _Progress | None = None,
) -> Made:
    """Make a plan by one algorithm, with ``chunks`` slices that are pipelined or its default.

    After ``time_limit`` seconds a search gives its best so far; what has none by then is refused.
    ``unwinding`` has an entry for all switches, or one for each dimension; empty tries several.

    ``memory_limit`` is for planning, verifying and simulating [bytes]. InfeasibleError where the
    algorithm cannot run here, SpecError for one that is unknown or a plan that is too large.
    """

@final
class Run(_Immutable):
    """What a simulation returns. Service columns are empty unless they were asked for."""

    @staticmethod
    def from_columns(
        plan: Plan,
        fidelity: str,
        order: str | None,
        switching: str,
        cycle_ps: int | None,
        time_ps: int,
        start_ps: _U64,
        end_ps: _U64,
        link_busy_ps: _U64,
        link_bytes: _U64,
        link_messages: _U64,
        service_transfer: _U32,
        service_link: _U32,
        service_start_ps: _U64,
        service_end_ps: _U64,
    ) -> Run:
        """Make one that was simulated before; SpecError for columns that are not those of a run."""

    @property
    def cycle_ps(self) -> int | None:
        """A cycle of the routers' clock [ps]; of packets only."""

    @property
    def fidelity(self) -> str:
        """How finely it was simulated: link, flow or packet."""

    @property
    def order(self) -> str | None:
        """In what order links served: ready or plan; none of flows."""

    @property
    def switching(self) -> str:
        """How messages crossed devices: store-and-forward or cut-through."""

    @property
    def time_ps(self) -> int:
        """Collective time [ps]."""

    @property
    def start_ps(self) -> _U64:
        """When each transfer began to occupy its first link [ps], (len(plan),)."""

    @property
    def end_ps(self) -> _U64:
        """When each transfer had arrived whole [ps], (len(plan),)."""

    @property
    def link_busy_ps(self) -> _U64:
        """How long each link was occupied [ps], (link_count,)."""

    @property
    def link_bytes(self) -> _U64:
        """Bytes that crossed each link, (link_count,)."""

    @property
    def link_messages(self) -> _U64:
        """Messages that crossed each link, (link_count,)."""

    @property
    def service_transfer(self) -> _U32:
        """Transfer of each stay on a link."""

    @property
    def service_link(self) -> _U32:
        """Link of each stay."""

    @property
    def service_start_ps(self) -> _U64:
        """When each stay began [ps]."""

    @property
    def service_end_ps(self) -> _U64:
        """When each stay ended [ps]."""

def simulate(
    plan: Plan,
    *,
    order: str | None = None,
    switching: str | None = None,
    latency: str = "overlapped",
    keep_services: bool = False,
    ahead_ps: int = 0,
    progress: _Progress | None = None,
) -> Run:
    """Simulate a plan at link fidelity, after proving it; names as in :func:`hocket.simulate`.

    A message is across `ahead_ps` before its link is done with it.
    """

def simulate_flows(
    plan: Plan,
    *,
    flow_rate: int | None = None,
    keep_services: bool = False,
    progress: _Progress | None = None,
) -> Run:
    """Simulate a plan at flow fidelity; no flow is faster than the rate [bytes/s]."""

def simulate_packets(
    plan: Plan,
    *,
    packet_bytes: int,
    flit_bytes: int,
    header_flits: int,
    virtual_channels: int,
    buffer_flits: int,
    cycle_ps: int | None = None,
    reduction_rate: int | None = None,
    order: str | None = None,
    keep_services: bool = False,
    progress: _Progress | None = None,
) -> Run:
    """Simulate a plan at packet fidelity, as :class:`hocket.Packets` says; rates in bytes/s."""

@final
class Report:
    """The figures of one run."""

    @property
    def utilization(self) -> float:
        """Bytes moved / (bandwidth of all links x time), 0 to 1."""

    @property
    def busiest_link(self) -> tuple[str, str, float] | None:
        """Ends of the link occupied longest, for what share of the time (0 to 1); None if nothing moved."""

    @property
    def max_link_bytes(self) -> int:
        """The most bytes that crossed one link."""

def report(run: Run) -> Report:
    """Sum a run up."""

def rates(collective: Collective, time_ps: int) -> tuple[float, float]:
    """Algbw and busbw of a collective that takes so long [bytes/s]; 0 ps count as 1 ps."""

def gap(time_ps: int, bound_ps: int) -> float:
    """How far a time is above a lower bound: time / bound - 1, where 0 ps count as 1 ps."""

def equal_links(run: Run) -> tuple[int, int]:
    """Links among which equal paths differ, and how many of them carried nothing."""

def heat(run: Run, bins: int) -> npt.NDArray[np.float32]:
    """Share of each of the time bins in which each link was occupied, (link_count, bins)."""

def use_and_sums(run: Run, bins: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Heat from 0 to 255, rounded up, and what of it were sums, 0 to 15; both (link_count, bins)."""

@final
class DimensionReport:
    """How well one run uses the dimensions of a product topology."""

    @property
    def dimensions(self) -> list[tuple[str, int, float, int, float]]:
        """Kind, size, bandwidth of an NPU [bytes/s], bytes sent, utilization (0 to 1) of each.

        Dimensions of one NPU are left out.
        """

    @property
    def weighted_utilization(self) -> float:
        """Mean of the dimensions' utilization, their bandwidth the weight, 0 to 1."""

    @property
    def ideal(self) -> float | None:
        """Time at full use of all bandwidth [s]; None for collectives that have none."""

def dimension_report(run: Run) -> DimensionReport:
    """Sum the dimensions up, or SpecError where the topology is not a whole product of dimensions."""

def activity(
    run: Run, bins: int | None = None, period_ps: int | None = None
) -> npt.NDArray[np.float32]:
    """Share of each of the time bins in which each dimension has activity, (dimensions, bins).

    Dimensions of one NPU are left out. Either so many bins, or bins of that length. SpecError if the
    topology is not a whole product of dimensions.
    """

_Lane: TypeAlias = tuple[int, list[int], list[int]]

@final
class Schedule(_Immutable):
    """Which way each chunk goes through the dimensions, and when.

    Dimensions are numbered from 0, those of one NPU left out.
    """

    @staticmethod
    def of_lanes(
        topology: Topology,
        collective: Collective,
        algorithm: str,
        policy: str,
        switching: str,
        lanes: Sequence[tuple[int, Sequence[int], Sequence[int]]],
    ) -> Schedule:
        """Make a schedule of lanes: bytes, order of the reduce-scatter, order of the all-gather.

        SpecError or InfeasibleError if a lane makes no sense, or the topology has no dimensions.
        """

    @property
    def algorithm(self) -> str: ...
    @property
    def topology(self) -> Topology: ...
    @property
    def collective(self) -> Collective: ...
    @property
    def policy(self) -> str:
        """``first-come`` or ``smallest-first``."""

    @property
    def switching(self) -> str:
        """What it was made for: ``store-and-forward`` or ``cut-through``."""

    @property
    def lanes(self) -> list[_Lane]:
        """Bytes, order of the reduce-scatter and of the all-gather of each chunk."""

    def simulate(
        self, *, switching: str | None = None, latency: str = "overlapped"
    ) -> DimensionRun:
        """Run it at dimension fidelity."""

@final
class DimensionRun(_Immutable):
    """A schedule in simulated time; arrays have an entry for each task."""

    @staticmethod
    def of_schedule(schedule: Schedule, switching: str, latency: str) -> DimensionRun:
        """Run a schedule."""

    @property
    def time_ps(self) -> int:
        """When the last task ended."""

    @property
    def switching(self) -> str:
        """How switches passed messages on."""

    @property
    def latency(self) -> str:
        """``overlapped`` or ``occupying``."""

    @property
    def start_ps(self) -> _U64:
        """When each began to send."""

    @property
    def end_ps(self) -> _U64:
        """When its last message had arrived."""

    @property
    def lane(self) -> _U32:
        """Its lane."""

    @property
    def part(self) -> _U32:
        """Its part of the lane, 0 or 1."""

    @property
    def stage(self) -> _U32:
        """Which of its lane's operations it is."""

    @property
    def dimension(self) -> _U32:
        """The dimension along which it goes."""

    def report(self) -> DimensionReport:
        """Use of the dimensions."""

    def activity(
        self, bins: int | None = None, period_ps: int | None = None
    ) -> npt.NDArray[np.float32]:
        """Share of each time bin in which each dimension has a task under way."""

def schedule(
    topology: Topology,
    collective: Collective,
    algorithm: str,
    chunks: int | None,
    memory_limit: int,
    *,
    effort: int | None = None,
    time_limit: float | None = None,
    progress: _Progress | None = None,
) -> Schedule:
    """Schedule a collective, with errors as of :func:`plan`.

    ``effort`` is in simulated steps, ``time_limit`` in seconds.
    """

def carries_out(plan: Plan, schedule: Schedule, memory_limit: int) -> bool:
    """Whether a plan, perhaps from a file, is the one that the schedule makes, all of its columns."""

def plan_of(schedule: Schedule, memory_limit: int) -> Plan:
    """Make the plan that carries a schedule out, not yet verified.

    SpecError or InfeasibleError if it does not fit in memory, or switches sum.
    """
