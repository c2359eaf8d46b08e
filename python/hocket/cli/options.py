"""Options that several commands share, and how results and errors are printed."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from hocket import _core
from hocket._checks import one_of
from hocket._memory import memory_limit
from hocket.cli import complete
from hocket.cli.command import Argument, Check, Option
from hocket.cli.console import QUIET, Printer
from hocket.collectives.collective import check_chunks, kind_of
from hocket.collectives.custom import is_own
from hocket.comparison.limits import Turns, check_any
from hocket.errors import Error, SpecError
from hocket.files.atomic import check_target
from hocket.plans.algorithms import by_promise, quick
from hocket.plans.auto import likely
from hocket.plans.registry import find
from hocket.plans.sizes import LARGE, check_timetable, expected, seconds_of, taken
from hocket.topology.build import build_topology, counts_of
from hocket.topology.slow import read_slow
from hocket.topology.spec import TopologySpec
from hocket.topology.text import from_text, read_failures
from hocket.units import format_size, printable, shown

if TYPE_CHECKING:
    from hocket.plans.synthesis import PlanOptions
    from hocket.simulation.run import Run

T = TypeVar("T")


def is_picture(_option: str, file: str) -> None:
    """Refuse a file that can be no picture."""
    from hocket.plot.style import check_picture

    check_picture(Path(file))


def is_trace(option: str, file: str) -> None:
    """Refuse a file that can be no trace."""
    from hocket.files.perfetto import check_trace

    check_trace(option, Path(file))


def is_target(_option: str, file: str) -> None:
    """Refuse a file that cannot be written."""
    check_target(Path(file))


def output_file(
    help: str, *endings: str, more: str = "", check: Check = is_target, metavar: str | None = None
) -> Option:
    """Return the option ``--output`` for a file.

    Parameters
    ----------
    endings
        With which its name may end; any where there are none.
    more
        Added to the remedy for another ending.
    check
        Refuses a file whose name ends so.
    """

    def checked(option: str, file: str) -> None:
        if endings and Path(file).suffix.lower() not in endings:
            why = f"{shown(file)} does not end in {', '.join(endings)}"
            raise SpecError(option, why, f"name a {endings[0]} file{more}")
        check(option, file)

    return Option("--output", "-o", help=help, check=checked, metavar=metavar)


def topology_option(help: str) -> Option:
    """Return the option ``--topology``."""
    return Option("--topology", "-t", metavar="NETWORK", complete=complete.topologies, help=help)


def algorithm_option(help: str) -> Option:
    """Return the option ``--algorithm``."""
    return Option("--algorithm", "-a", complete=complete.algorithms, help=help)


Kind = Annotated[
    str,
    Argument(
        metavar="COLLECTIVE",
        complete=complete.collectives,
        help="all-reduce, reduce-scatter, all-gather, broadcast, reduce, gather, scatter, all-to-all, "
        "dispatch:... (docs/moe.md), or your own in a file (docs/own-plans.md).",
    ),
]
PlanFile = Annotated[
    str,
    Argument(
        metavar="PLAN", help="A plan file, as written by `hocket plan -o` (docs/own-plans.md)."
    ),
]
MeasuredKind = Annotated[
    str,
    Argument(
        metavar="COLLECTIVE",
        complete=complete.collectives,
        help="all-reduce, all-gather, reduce-scatter, broadcast or reduce; `hocket predict` has all-to-all "
        "and send-receive too.",
    ),
]
TopologyText = Annotated[
    str,
    topology_option(
        "A shipped machine (`hocket topology list`), a file (docs/topology-files.md), "
        "dump:FILE,nodes=2, or a builder: ring:16, clos:4x8x2, mesh:9x9."
    ),
]
Bandwidth = Annotated[
    list[str] | None,
    Option(
        "--bandwidth",
        help='Bandwidth of a builder\'s links, such as "25 GB/s": one value, or one per dimension.',
    ),
]
LatencyText = Annotated[
    list[str] | None,
    Option(
        "--latency",
        help='Latency of a builder\'s links, such as "700 ns": one value, or one per dimension.',
    ),
]
Failed = Annotated[
    list[str] | None,
    Option(
        "--failed", help="A failed NPU or switch, or a failed link written as A,B. Can be repeated."
    ),
]
SlowParts = Annotated[
    list[str] | None,
    Option(
        "--slow",
        metavar="NAME=RATE",
        rare=True,
        help="A slow NPU, switch or link, such as nic0=50Gb/s or A,B=12.5GB/s. Can be repeated.",
    ),
]
LikeNodes = Annotated[
    int | None,
    Option(
        "--nodes",
        rare=True,
        help="Number of nodes like the one whose dump the network is. Default: 1.",
    ),
]
Groups = Annotated[
    str | None,
    Option(
        "--groups",
        metavar="NODES",
        rare=True,
        help='NPUs of each node: "0-3 4-7", "a=a0,a1;b=b0,b1", or a number of consecutive NPUs.',
    ),
]
_SIZE = Option(
    "--size", "-s", help='Size in bytes, as nccl-tests defines it, such as "256 MB" or 64MiB.'
)
Size = Annotated[str, _SIZE]
FileOrSize = Annotated[str | None, _SIZE]
"""Where the file of a collective says it."""
Sizes = Annotated[
    list[str] | None,
    Option(
        "--size",
        "-s",
        metavar="SIZE,...",
        help='Size in bytes, as nccl-tests defines it, such as "256 MB" or 8KB,1MB. Can be repeated.',
    ),
]
Sweep = Annotated[
    str | None,
    Option(
        "--sizes",
        metavar="BEGIN:END:STEP",
        help="Sizes from BEGIN to END, in steps as in nccl-tests, such as 8K:1G:x4 or 1M:8M:+1M.",
    ),
]
Csv = Annotated[
    bool,
    Option(
        "--csv",
        help="Print CSV instead of a table, in SI units and with the names of the JSON output.",
    ),
]
Algorithms = Annotated[
    list[str] | None,
    algorithm_option("Compare only this algorithm (see `hocket plan --list`). Can be repeated."),
]
AlgorithmOfCollectives = Annotated[
    str | None,
    algorithm_option(
        "Algorithm of the collectives (see `hocket plan --list`), ideal or none. Default: themis on "
        "networks with dimensions, otherwise auto."
    ),
]
Chunks = Annotated[
    int | None,
    Option("--chunks", "-c", help="Number of equal slices of the data, which are pipelined."),
]
Npus = Annotated[
    str | None,
    Option("--npus", help="Participants by rank, as 0-3,gpu7. Default: all."),
]
Root = Annotated[
    str | None,
    Option("--root", help="Root. Default: the first participant."),
]
ProcessGroups = Annotated[
    str | None,
    Option(
        "--process-groups",
        metavar="GROUPS",
        help="Groups of a job: world, dp=2,tp=4, any=4, file.json.",
    ),
]
LinkFidelity = Annotated[
    str,
    Option(
        "--fidelity",
        complete=complete.fidelities,
        help="Fidelity of the simulation. link: whole messages; flow: fluids that share "
        "links fairly; packet: flits in routers with buffers.",
    ),
]
OwnRouting = Annotated[
    str | None,
    Option(
        "--routing",
        complete=complete.routings,
        help="Another choice among equal paths (see `hocket plan --routing`).",
    ),
]
Cache = Annotated[
    bool,
    Option(
        "--cache/--no-cache",
        rare=True,
        help="For auto: reuse its earlier choice for the same question, and remember the new one.",
    ),
]
Json = Annotated[bool, Option("--json", help="Print JSON instead of a table.")]
Perfetto = Annotated[
    str | None,
    Option(
        "--perfetto",
        help="Write a timeline for ui.perfetto.dev to this .pftrace or .json file.",
        check=is_trace,
    ),
]
Page = Annotated[
    str | None,
    Option("--page", help="Write a page for any browser to this .html file.", check=is_target),
]
Plot = Annotated[
    str | None,
    Option("--plot", help="Also draw a picture to this .png, .svg or .pdf file.", check=is_picture),
]


def read_spec(
    text: str,
    bandwidth: list[str] | None,
    latency: list[str] | None,
    failed: list[str] | None,
    nodes: int | None = None,
    slow: list[str] | None = None,
) -> TopologySpec:
    """Read what ``--topology`` and its companions say."""
    spec = from_text(text, bandwidth=bandwidth, latency=latency, nodes=nodes)
    devices, links = read_failures(failed or [])
    spec = spec.with_failures([*spec.failed_nodes, *devices], [*spec.failed_links, *links])
    return spec.with_slow(read_slow(slow or []))


def read_topology(
    text: str,
    bandwidth: list[str] | None,
    latency: list[str] | None,
    failed: list[str] | None,
    slow: list[str] | None = None,
) -> _core.Topology:
    """Make the topology that ``--topology`` and its companions describe."""
    return build_topology(read_spec(text, bandwidth, latency, failed, slow=slow))


def check_size(
    spec: TopologySpec,
    kind: str,
    algorithms: list[str] | None,
    chunks: int | None,
    *,
    npus: str | None,
    is_timetable: bool = False,
) -> None:
    """Refuse plans that no memory holds, before the network is built; all NPUs are to take part.

    Where none of the algorithms is named, one that makes a smaller plan is enough.
    """
    if npus is not None:  # whose number is known when their names are
        return
    check_chunks(chunks)
    kind = kind if is_own(kind) else kind_of(kind)
    counts = counts_of(spec)
    count = counts.npus - len(spec.failed_nodes)
    try:
        if is_timetable:
            check_timetable(kind, count, chunks, memory_limit())
        else:
            check_any(kind, count, counts.dimensions, algorithms, chunks)
    except Error as error:
        raise error.within(f"{spec.origin}, {count} NPUs") from None


def title(
    collective: _core.Collective, topology: _core.Topology, *, size: str | None = None
) -> str:
    """Describe a collective: ``broadcast of 1 MB from gpu2 among 4 NPUs of dgx1_v100``.

    `size` is said instead of the size where there are several.
    """
    names = topology.device_names
    root = ""
    if collective.root is not None:
        word = "to" if collective.kind in ("reduce", "gather") else "from"
        root = f" {word} {names[collective.npus[collective.root]]}"
    count = len(collective.npus)
    some = ""
    if count < topology.npu_count:
        shown = [names[npu] for npu in collective.npus[:8]] + ["..."] * (count > 8)
        some = f" ({', '.join(shown)})"
    what = size or format_size(collective.size)
    return f"{collective.name} of {what}{root} among {count} NPUs{some} of {topology.name}"


def choice(option: str, value: str, allowed: Sequence[str]) -> str:
    """Return ``value`` if it is allowed."""
    one_of(option, value, allowed)
    return value


def numbers(option: str, words: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Read which figures or tables are named, each ``"4"`` or ``"4,12"``, in the order of those known."""
    given = {part.strip() for word in words or () for part in word.split(",")}
    for each in sorted(given):
        choice(option, each, known)
    return [each for each in known if each in given]


def idle_links(run: Run) -> str:
    """Return how many of the links among which equal paths differ carried nothing."""
    links, idle = run.equal_links
    return f"{idle} of {links}"


def print_result(what: str, value: Mapping[str, Any]) -> None:
    """Print a result as JSON, with what it is and the version of its format."""
    print(result_text(what, value))


def result_text(what: str, value: Mapping[str, Any]) -> str:
    """Return a result as JSON, with what it is and the version of its format."""
    return json.dumps({"format": f"hocket.{what}", "version": 1, **value}, indent=2)


def output() -> Printer:
    """Return what prints tables and lines."""
    return Printer()


def say(line: str) -> None:
    """Print a line."""
    Printer().print(line)


def note(line: str) -> None:
    """Print a line beside the result, unless only that is wanted."""
    Printer().note(line)


def aside(line: str) -> None:
    """Print on standard error how a result came about, unless only that is wanted."""
    if not QUIET.get():
        print(f"hocket: {line}", file=sys.stderr)


def note_limit(names: Iterable[str], planning: PlanOptions) -> None:
    """Note that a time limit does not stop functions of a user's own."""
    own = [name for name in names if find(name) is not None]
    if own and planning.time_limit is not None:
        note(f"--time-limit does not stop {', '.join(own)}: such a function reads options.seconds")


def starting(line: str) -> None:
    """Print on standard error what takes long, where no terminal shows how far it is."""
    if not QUIET.get() and not sys.stderr.isatty():
        print(f"hocket: {line}", file=sys.stderr)


def announce_plans(
    collective: _core.Collective,
    topology: _core.Topology,
    names: Sequence[str] | None,
    planning: PlanOptions,
    sizes: int = 1,
    *,
    may_cut: bool = True,
) -> None:
    """Print what plans take before they are made, and what has fewer transfers, if these are many.

    `names` are those of algorithms; None: of all that are compared. So many sizes are planned, with slices
    that the user may choose if `may_cut`.
    """
    kind, chunks = collective.kind, planning.slices(collective.size)
    if names is not None and [*names] == ["auto"]:
        names = [likely(collective, topology)]
    if names is None:
        found = Turns(collective, topology, quick(kind), planning).planned()
    else:
        found = expected(collective, topology, names, chunks)
    largest = max((max(each) for each in found.values()), default=0)
    cheaper = cheaper_than(collective, topology, largest, names or ()) if largest > LARGE else []
    has_more = may_cut and any(max(each) > min(each) for each in found.values())
    fewer = ["-c 1"] if has_more else []
    most = "at most " if names is None else ""  # what cannot win any more is left out
    seconds = None if names is None else sizes * seconds_of(found)
    announce(sizes * sum(map(sum, found.values())), largest, [*cheaper, *fewer], most, seconds)


def cheaper_than(
    collective: _core.Collective, topology: _core.Topology, transfers: int, names: Sequence[str]
) -> list[str]:
    """Return options for up to two other algorithms, whose plans have at most half as many transfers."""
    few = expected(collective, topology, by_promise(quick(collective.kind)), 1)
    return [
        f"-a {name}"
        for name, (count, *_) in few.items()
        if count * 2 <= transfers and name not in names
    ][:2]


def announce(
    transfers: int,
    largest: int,
    cheaper: Sequence[str],
    most: str = "",
    seconds: float | None = None,
) -> None:
    """Print what so many transfers take, if they are many; one plan has `largest` at the most."""
    if transfers > LARGE:
        announce_cost(f"{most}{taken(transfers, largest, seconds)}", cheaper)


def announce_cost(cost: str, cheaper: Sequence[str]) -> None:
    """Print what work takes before it begins, and what is cheaper."""
    offer = f"; cheaper: {' or '.join(cheaper)}" if cheaper else ""
    aside(f"{cost}{offer}")


class Meanwhile(Generic[T]):
    """Does something on a thread of its own, which nobody waits for unless the result is asked for."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done: list[T] = []
        self._failed: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._done.append(self._work())
        except BaseException as error:  # raised again for whoever asks
            self._failed.append(error)

    def result(self) -> T:
        """Wait for the result; raise what was raised."""
        while self._thread.is_alive():
            self._thread.join(0.1)  # a wait without end would not hear Ctrl-C
        if self._failed:
            raise self._failed[0]
        return self._done[0]


_EVERY_S = 10.0
"""Between two lines on how far work is, where no terminal shows it [s]."""


class Watch:
    """Says on standard error how far long work is, and keeps what a signal is to print.

    A terminal has a line that changes, once a second has passed; whatever else reads it gets a line every
    ten seconds. Steps never go back; a stage of the work has its share only where no steps are known.
    """

    keeps_best = False
    """Whether a signal prints what is the best so far."""
    kept = ""
    """What it prints after that: where the best plan so far was written."""
    found: Callable[[Any, int], None] | None = None
    """Hears of each plan that is the best so far, with the bound [ps]."""

    def __init__(self) -> None:
        self._text, self._share, self._part = "working", -1, 0
        self._done, self._steps, self._what, self._best = 0, 0, "", ""
        self._start = monotonic()
        self._over = threading.Event()
        self._is_bar = sys.stderr.isatty()
        self._thread: threading.Thread | None = None
        if not QUIET.get():
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note that ``done`` of ``total`` transfers are through ``stage``."""
        share = 100 * done // max(total, 1)
        self._part += stage != self._text or share < self._share
        self._text, self._share = stage, share

    def note(self, text: str) -> None:
        """Report what is being worked on."""
        self._text, self._share = text, -1

    def step(self, what: str, done: int, total: int) -> None:
        """Note what is done after ``done`` of ``total`` steps of all the work."""
        self._what, self._text, self._share = f"{what}, ", "", -1
        self._done, self._steps = max(done, self._done), max(total, self._steps)

    def best(self, text: str, done: int, total: int) -> None:
        """Note the best result so far; of what searches on, nobody knows when it ends."""
        del done, total
        self._best = text
        if self.keeps_best:
            self.so_far(text + self.kept)

    def so_far(self, text: str) -> None:
        """Note the text to print if a signal ends the work."""
        _core.interrupt.so_far(text if text.endswith("\n") else f"{text}\n")

    def end(self) -> None:
        """Take away what is shown, and what a signal would print."""
        _core.interrupt.so_far("")
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        wait, shown = (1.0, "") if self._is_bar else (_EVERY_S, "")
        while not self._over.wait(wait):
            shown = self._line()
            if self._is_bar:
                wait = 0.1
                line = f"\r{shown[: get_terminal_size().columns - 1]}\x1b[K"
            else:
                line = f"hocket: {shown}\n"
            print(line, end="", file=sys.stderr, flush=True)
        if self._is_bar and shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _line(self) -> str:
        minutes, seconds = divmod(int(monotonic() - self._start), 60)
        text = self._text
        if self._steps:
            stage = f"{text}, " if text else ""
            text = (
                f"{self._what}{stage}step {min(self._done + 1, self._steps):,} of {self._steps:,}"
            )
        elif self._share >= 0 and not self._best:
            text = f"part {self._part:,}, {text}, {self._share}%"
        best = f"{self._best}, " if self._best else ""
        return printable(f"{text}, {best}{minutes}:{seconds:02}")


@contextmanager
def watching() -> Iterator[Watch]:
    """Return a :class:`Watch` whose line goes away in the end."""
    watch = Watch()
    try:
        yield watch
    finally:
        watch.end()
