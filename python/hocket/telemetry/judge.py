"""Sets what was measured beside what was to be expected, and says what is slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from hocket import _core
from hocket._checks import check_function, list_of, path_of
from hocket._options import options_of
from hocket._results import ListResult, Result, figure, name_of, said
from hocket.collectives.collective import Progress
from hocket.errors import InfeasibleError, SpecError
from hocket.files.complaint import shown_path
from hocket.nccl.gpus import check_gpu, other_gpu
from hocket.nccl.prediction import library_on
from hocket.plans.synthesis import PlanOptions
from hocket.profiles.cost_model import KINDS, bus_factors
from hocket.profiles.hardware import hardware_for
from hocket.profiles.profile import Profile, as_profile, profile_names, profile_of
from hocket.telemetry.calls import (
    KERNEL,
    Call,
    Recording,
    Times,
    chosen,
    recorders,
    spread,
    times_of,
)
from hocket.telemetry.causes import Cause, causes_of
from hocket.telemetry.expected import Best, Expectation, launched
from hocket.telemetry.files import read_recording
from hocket.telemetry.library_log import LibraryLog
from hocket.telemetry.options import MeasuredOptions
from hocket.telemetry.sentences import sentence_of
from hocket.telemetry.verdict import (
    Case,
    MeasuredSize,
    Verdict,
    runs_of,
    tolerance_at,
    verdicts,
)
from hocket.topology.build import build_topology
from hocket.topology.sources import TopologyLike, as_topology
from hocket.topology.spec import TopologySpec
from hocket.topology.text import from_text, like_node
from hocket.units import counted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.telemetry.options import MeasuredKeywords

_WRITERS = {
    "inspector": "NCCL Inspector",
    "flight-recorder": "Flight Recorder",
    "kineto": "PyTorch's profiler",
}


@dataclass(frozen=True)
class MeasuredRange(Result):
    """Sizes of one collective that have one verdict.

    Attributes
    ----------
    kind, timing
        Of what; see :class:`MeasuredSize`.
    first, last
        The least and the largest size [bytes].
    verdict
        What is slow.
    sentence
        The same in words, with the figures.
    """

    kind: str = field(metadata=said("collective"))
    timing: str
    first: int = field(metadata=said("from_bytes"))
    last: int = field(metadata=said("to_bytes"))
    verdict: Verdict
    sentence: str


@dataclass(frozen=True, repr=False)
class Measured(ListResult[MeasuredSize]):
    """The measured times next to the expected ones.

    Attributes
    ----------
    topology
        The network that it was measured on.
    profile
        Whose constants predict; ``None`` where NCCL's own model does.
    library, library_version
        Whose picks are shown; ``None`` where no model of it fits.
    launch
        What launching is taken to cost, by collective of those that were launched one after another [us].
    tolerance
        Share by which what is measured may exceed what is predicted; ``None``: by band of sizes.
    sizes
        Every size, by collective, the least first.
    causes
        Causes of what is slow, as far as recordings tell, the likeliest first.
    notes
        What was left out, and what was assumed.
    """

    _table = "sizes"

    topology: _core.Topology = field(metadata=said(of=name_of))
    profile: Profile | None = field(metadata=said(of=name_of))
    library: str | None
    library_version: str | None
    launch: dict[str, float] = field(metadata=said("launch_us"))
    tolerance: float | None
    sizes: tuple[MeasuredSize, ...]
    causes: tuple[Cause, ...]
    notes: tuple[str, ...]

    @property
    @figure()
    def npus(self) -> int:
        """NPUs of the network."""
        return self.topology.npu_count

    @property
    @figure()
    def nodes(self) -> int:
        """Nodes of the network."""
        return max(len(self.topology.groups), 1)

    @property
    @figure()
    def ranges(self) -> list[MeasuredRange]:
        """The ranges of sizes that have one verdict, each with its sentence."""
        return [
            MeasuredRange(
                run[0].kind,
                run[0].timing,
                run[0].size,
                run[-1].size,
                run[0].verdict,
                sentence_of(run, self.library),
            )
            for run in runs_of(self.sizes)
        ]

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw busbw over size into a .png, .svg or .pdf file: measured, predicted, best and bound.

        Raises
        ------
        SpecError
            If the file can be no picture, or cannot be written.
        """
        from hocket.plot.measured import draw_measured

        draw_measured(self, path_of("path", path))

    def __repr__(self) -> str:
        return (
            f"<Measured on {self.topology.name!r}: {len(self)} sizes in {len(self.ranges)} ranges>"
        )


def measured(
    files: str | PathLike[str] | Iterable[str | PathLike[str]],
    topology: TopologyLike,
    *,
    options: MeasuredOptions | None = None,
    planning: PlanOptions | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[MeasuredKeywords],
) -> Measured:
    """Judge from measured times what is slow, the algorithm or the fabric.

    Parameters
    ----------
    files
        One or several, whose kind is found by what is in them: logs of nccl-tests or rccl-tests, tables
        (.csv) as of ``hocket calibrate``, JSON of NCCL Inspector, dumps of PyTorch's Flight Recorder
        (pickles or JSON; nothing in a pickle is run), and traces of PyTorch's profiler; compressed by gzip
        or not. Logs of NCCL (``NCCL_DEBUG=INFO``) tell causes. Of all ranks of a job together each call
        counts as its fastest rank says.
    topology
        What it was measured on: a network, or text as of :func:`hocket.topology.load`; its ``groups:`` are
        the nodes. Text that names the dump of a node stands for as many as the calls are on. Calls among
        other numbers of NPUs are left out.
    options
        How it is judged.
    planning
        How hocket plans.
    progress
        Called as ``progress(stage, done, total)`` during the work.
    keywords
        Any option of :class:`hocket.MeasuredOptions` by its name.

    Raises
    ------
    SpecError
        Naming file, line or place, and what would be right: for files that are of no known kind, wrong, or
        of another number of NPUs than the topology has.

    Examples
    --------
    >>> import hocket as hk
    >>> found = hk.measured("nccl-tests.txt", "dgx_a100_1box")  # doctest: +SKIP
    >>> found.ranges[0].sentence  # doctest: +SKIP
    """
    check_function("progress", progress)
    network: _core.Topology | TopologySpec
    if isinstance(topology, str | PathLike):
        network = from_text(str(topology), bandwidth=None, latency=None, option="topology")
    else:
        network = as_topology(topology)
    how = options_of(MeasuredOptions, options, keywords)
    return judged_on(files, network, how, options_of(PlanOptions, planning, {}), progress)


def judged_on(
    files: str | PathLike[str] | Iterable[str | PathLike[str]],
    topology: _core.Topology | TopologySpec,
    how: MeasuredOptions,
    plans: PlanOptions,
    progress: Progress | None,
) -> Measured:
    """Judge as :func:`measured` does, on a network or what is said of one.

    Raises
    ------
    SpecError
        As :func:`measured`.
    """
    given = [files] if isinstance(files, str | PathLike) else list_of("files", files)
    if not given:
        raise SpecError("files", "it names no file", "give a path, or a list of paths")
    notes: list[str] = []
    recordings = [read_recording(path, in_place=how.in_place) for path in given]
    if isinstance(topology, TopologySpec):
        spec = _of_nodes(topology, recordings, notes)
        network, gpu = build_topology(spec), check_gpu(spec, how.gpu)
        own = None if spec.profile is None else profile_of(spec)
    else:
        network, gpu, own = topology, how.gpu, None
    used = _profile(own, how)
    expectation = _expectation(network, used, gpu, notes)
    judged = _calls(recordings, expectation, used, notes)
    calls = [(recording.timing, call) for recording, own in judged for call in own]
    if not calls:
        right = "give what was timed too, such as the output of nccl-tests"
        raise SpecError("files", "they are logs of NCCL without times", right)
    launches: dict[str, float] = {}
    sizes: list[MeasuredSize] = []
    for (kind, timing), group in groupby(
        times_of(calls), key=lambda each: (each.kind, each.timing)
    ):
        times = list(group)
        own = None if used is None else launched(used, expectation, times, how.launch)
        if own is not None and timing != KERNEL:
            launches[kind] = own.launching()
        sizes += _judged(times, expectation, own, how, plans, progress)
    library = expectation.library
    return Measured(
        network,
        used,
        None if library is None else library.name,
        None if library is None else library.version,
        launches,
        how.tolerance,
        tuple(sizes),
        causes_of(sizes, recordings, judged, expectation),
        tuple(notes),
    )


def _of_nodes(
    spec: TopologySpec, recordings: Sequence[Recording], notes: list[str]
) -> TopologySpec:
    """Return as many nodes like a dump as calls are on, if nothing says how many and none is on one."""
    if spec.node is None or spec.groups:
        return spec
    each = len(spec.npus)
    counts = [count for file in recordings for call in file.calls for count in spread(call, each)]
    if not counts or 1 in counts:
        return spec
    ((nodes, calls),) = Counter(counts).most_common(1)
    found = like_node(spec, nodes)
    notes.append(
        f"{nodes} nodes like that of {shown_path(spec.node)} (--nodes {nodes}): {calls:,} of "
        f"{counted(len(counts), 'time')} are among {nodes * each} NPUs"
    )
    notes += [each for each in found.assumed if each not in spec.assumed]
    return found


def _profile(own: Profile | None, how: MeasuredOptions) -> Profile | None:
    found = own if how.profile is None else as_profile(how.profile)
    if how.launch is not None:
        if found is None:
            raise SpecError(
                "launch", "there is no profile that has kinds of programs", "leave it out"
            )
        found.launching(how.launch)
    return found


def _expectation(
    network: _core.Topology, profile: Profile | None, gpu: str | None, notes: list[str]
) -> Expectation:
    nodes = max(len(network.groups), 1)
    found = Expectation(network, nodes, None, profile, None)
    try:
        found = replace(found, hardware=hardware_for("all-to-all", network))
        found = replace(found, library=library_on(network, gpu))
    except InfeasibleError as error:
        remedy = "" if error.remedy is None else f"; {error.remedy}"
        notes.append(f"no model of NCCL fits this topology: {error.why}{remedy}")
    if profile is None or found.hardware is None:
        notes.append(
            "no profile of this machine is known, so NCCL's own model predicts, from 64 MiB on; plans "
            "are simulated"
        )
    return found


def _calls(
    recordings: Sequence[Recording],
    expectation: Expectation,
    profile: Profile | None,
    notes: list[str],
) -> list[tuple[Recording, list[Call]]]:
    """Return of each recording the calls that are judged: those among all NPUs, over all NICs."""
    npus = expectation.network.npu_count
    found: list[tuple[Recording, list[Call]]] = []
    by_format: dict[str, list[Call]] = {}
    is_whole = any(
        call.npus == npus and expectation.nodes in spread(call, npus // expectation.nodes)
        for recording in recordings
        for call in recording.calls
    )
    taken = [
        chosen(recording, npus, expectation.nodes, is_only=not is_whole) for recording in recordings
    ]
    logs = {id(call.library): call.library for kept, _ in taken for call in kept}
    nics = {key: _nics(log, expectation) for key, log in logs.items()}
    most = max(nics.values(), default=0)
    for recording, (whole, others) in zip(recordings, taken, strict=True):
        kept = [call for call in whole if nics[id(call.library)] == most]
        if len(kept) < len(whole):
            others["over fewer NICs (NCCL_IB_HCA) than others"] += len(whole) - len(kept)
        found.append((recording, kept))
        notes += _left_out(recording.name, others)
        notes += _doubts(recording, expectation, profile)
        if recording.timing == KERNEL:
            by_format.setdefault(_WRITERS[recording.format], []).extend(kept)
    for name, kernels in by_format.items():
        count = recorders(kernels)
        if count < npus:
            notes.append(
                f"{name}: kernels of {count} of {npus} ranks are there, so waiting for others is in them"
            )
        if any(call.sequence is None for call in kernels):
            notes.append(f"{name}: calls have no number, so waiting for others is in them")
    return found


def _nics(log: LibraryLog, expectation: Expectation) -> int:
    """Return how many NICs of a node a run was told to use, at most those that a node has."""
    hardware = expectation.hardware
    there = 1 if hardware is None or expectation.nodes == 1 else hardware.nics or 1
    return min(len(log.hcas) or there, there)


def _left_out(name: str, others: Counter[str]) -> Iterator[str]:
    if others:
        what = ", ".join(f"{count:,} {why}" for why, count in others.items())
        yield f"{name}: left out {what}"


def _doubts(
    recording: Recording, expectation: Expectation, profile: Profile | None
) -> Iterator[str]:
    """Yield why a file says little: its GPUs are others, or its times made the profile."""
    library = expectation.library
    if recording.device is not None and library is not None:
        wrong = other_gpu(recording.device, library.gpu)
        if wrong is not None:
            yield f"{recording.name}: {wrong}, so another machine may have been measured"
    if profile is not None and recording.digest in profile.fitted_to.values():
        yield (
            f"{recording.name}: profile {profile.name} was fitted to this file, so their agreement "
            "says nothing of the machine; give another profile to compare it with its kind: "
            f"{', '.join(profile_names())}"
        )


def _tolerance(
    size: int, how: MeasuredOptions, profile: Profile | None, expectation: Expectation
) -> float:
    """Return the share by which a time may exceed its prediction.

    With constants of classes of machines, that is at least how far 9 of 10 of them are.
    """
    if how.tolerance is not None:
        return how.tolerance
    usual = tolerance_at(size)
    if profile is None or not profile.is_composed or expectation.hardware is None:
        return usual
    error = profile.expected(expectation.hardware, expectation.nodes, size)
    return max(usual, error.factor - 1)


def _judged(
    times: Sequence[Times],
    expectation: Expectation,
    profile: Profile | None,
    how: MeasuredOptions,
    planning: PlanOptions,
    progress: Progress | None,
) -> Iterator[MeasuredSize]:
    """Judge the sizes of one collective that was timed in one way."""
    kind, npus = times[0].kind, expectation.network.npu_count
    sizes = [each.size for each in times]
    start, *predicted = expectation.predicted(kind, [npus, *sizes], profile)
    smallest = None if start is None else start.seconds
    bests: dict[int, Best] = {}
    if how.plans:
        bests = expectation.best(kind, sizes, profile, planning, progress)
    factor = float(bus_factors(np.array([KINDS.index(kind)]), np.array([float(npus)]))[0])
    others = expectation.otherwise(kind, sizes, profile)
    cases: list[Case] = []
    found: list[tuple[Times, Best | None, Best | None]] = []
    for each, way, other in zip(times, predicted, others, strict=True):
        foreseen = None if way is None else way.seconds
        best = bests.get(each.size)
        if best is not None and foreseen is not None and foreseen <= best.seconds:
            best = Best(foreseen, "library")
        limit = expectation.bound(kind, each.size)
        bound_ps = None if limit is None else limit.time_ps
        allowed = _tolerance(each.size, how, profile, expectation)
        plan = None if best is None else best.seconds
        without = None if other is None else other.seconds
        cases.append(
            Case(each.size, each.seconds, bound_ps, foreseen, smallest, plan, allowed, without)
        )
        found.append((each, best, other))
    judged = zip(found, predicted, cases, verdicts(cases), strict=True)
    for (each, best, other), way, case, (verdict, is_over) in judged:
        # Without a profile the best plan is simulated, which no bound is above.
        shown = [case.predicted, case.best] if profile is not None else [case.predicted]
        least = min((took for took in shown if took is not None), default=None)
        is_other = is_over and verdict == "algorithm" and case.is_otherwise
        yield MeasuredSize(
            kind,
            each.timing,
            each.size,
            each.seconds,
            each.calls,
            each.size / each.seconds,
            each.size / each.seconds * factor,
            case.bound_ps,
            case.predicted,
            None if way is None else (way.algorithm, way.protocol),
            smallest,
            expectation.pick(kind, each.size),
            case.best,
            None if best is None else best.algorithm,
            verdict,
            is_over,
            other.algorithm if is_other and other is not None else None,
            expectation.why_below(kind, each.size, least, profile),
        )
