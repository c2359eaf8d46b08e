"""``hocket calibrate``: fit the profile of a machine to what was measured on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from hocket._results import Result
from hocket.cli import options
from hocket.cli.command import Argument, Option
from hocket.cli.numbers import percent
from hocket.cli.table import Table
from hocket.errors import SpecError
from hocket.files.atomic import write_text
from hocket.files.complaint import shown_path
from hocket.files.raw import read_text
from hocket.files.yaml_tree import parse_yaml
from hocket.fitting.constants import Fitted
from hocket.fitting.errors import Band, summaries, summary_of
from hocket.nccl.gpus import check_gpu, other_gpu
from hocket.profiles.advice import SPREAD, Advised
from hocket.profiles.advice import advise as advise_measurements
from hocket.profiles.cost_model import CONSTANTS, cells_of, times
from hocket.profiles.expected import band_of
from hocket.profiles.fit import Fit, FitOptions, fit
from hocket.profiles.hardware import Hardware, hardware_of
from hocket.profiles.measurement import (
    COLLECTIVES,
    MeasuredSeries,
    Measurement,
    oddities,
    read_measurements,
)
from hocket.profiles.profile import Profile, load_profile, profile_for, profile_of
from hocket.profiles.section import with_profile
from hocket.telemetry.expected import TELLING
from hocket.telemetry.verdict import TOLERANCES
from hocket.topology import machines
from hocket.topology.astra import is_astra
from hocket.topology.build import build_topology
from hocket.topology.infragraph import is_infragraph
from hocket.topology.spec import TopologySpec
from hocket.topology.text import is_machine_file
from hocket.topology.yaml_write import yaml_of_links
from hocket.units import counted, format_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket._core import Topology

_FEWEST = 5
"""Times from which on their errors say something of the machine: those kept back in a band, or all."""
_UNEXPLAINED = 2.0
"""Factor that a tenth of the times exceed where no constants explain them: of published machines, none."""


def calibrate(
    measured: Annotated[
        list[str] | None,
        Argument(
            metavar="MEASURED",
            help="Tables (.csv, docs/machines.md) of measured times, or logs of nccl-tests or rccl-tests.",
        ),
    ] = None,
    *,
    topology: options.TopologyText,
    output: Annotated[
        str | None,
        options.output_file(
            "Write the topology with its profile to this .yml file.", ".yml", ".yaml"
        ),
    ] = None,
    prior: Annotated[
        str | None,
        Option(
            "--prior",
            metavar="PROFILE",
            help="Profile (shipped, or of a topology file) to start from if data is scarce.",
        ),
    ] = None,
    in_place: Annotated[
        bool,
        Option("--in-place", help="Fit the in-place times instead of the out-of-place ones."),
    ] = False,
    advise: Annotated[
        bool,
        Option(
            "--advise", help="Name five measurements that narrow predictions most; fit nothing."
        ),
    ] = False,
    json: options.Json = False,
) -> None:
    """Fit a profile to measured times and write the topology with it.

    For example: hocket calibrate nccl-tests.txt --topology dgx_a100_1box -o mine.yml
    """
    spec = options.read_spec(topology, None, None, None)
    for line in spec.assumed:
        options.aside(f"{spec.name}: {line}")
    gpu = check_gpu(spec, None)
    if output is not None:
        source = _text_of(topology, spec)
    network = build_topology(spec)
    nodes = max(len(network.groups), 1)
    usual = _usual(network, spec, prior)
    hardware = hardware_of(network, may_be_alone=True)
    if usual is not None:
        hardware = usual.hardware(hardware, nodes)
    paths = measured or []
    sweeps = [_usable(read_measurements(each), each, in_place=in_place) for each in paths]
    for sweep in sweeps:
        wrong = None if gpu is None else other_gpu(sweep.facts.get("device", ""), gpu)
        if wrong is not None:
            options.aside(f"{sweep.name}: {wrong}, so another machine may have been measured")
    _check(sweeps, network.npu_count, nodes)
    if advise:
        known = [row for sweep in sweeps for row in sweep]
        _print_advice(spec, usual, hardware, (network.npu_count, nodes), known, json)
        return
    if not sweeps:
        right = "give a table or a log, or --advise, which says what to measure"
        raise SpecError("MEASURED", "there is no file", right)
    found = fit([(each, hardware) for each in sweeps], _fit_options(spec, usual, prior))
    _check_explained(found, sweeps)
    fitted_to = {sweep.name: sweep.digest for sweep in sweeps}
    profile = Profile.of_fit(spec.name, found, _sources(sweeps), fitted_to)
    box, fabric = _classes(network, spec, usual)
    profile = replace(profile, errors=_kept_back(found), box=box, fabric=fabric)
    ratios = None if usual is None else _ratios(sweeps, hardware, usual)
    if output is not None:
        write_text(Path(output), with_profile(source, profile.as_yaml()))
    if json:
        left_out = [line for sweep in sweeps for line in (*sweep.wrong, *_others(sweep))]
        fitted = FittedProfile(
            found.constants,
            {name: each.value for name, each in found.launch.items()},
            found.launch_per_npu,
            [list(pair) for pair in found.alike],
            _errors(found, ratios),
            left_out,
            output,
            None if usual is None else usual.name,
        )
        options.print_result("fitted-profile", fitted.to_dict())
        return
    _print(found, sweeps, profile, usual, ratios, output)


def _kept_back(found: Fit) -> dict[str, tuple[float, float]]:
    """Return the errors of sizes kept back, median and 90th percentile by band, where there are enough."""
    bands: dict[str, list[float]] = {}
    for row, held, error in zip(found.rows, found.held, found.errors, strict=True):
        if held:
            off = abs(math.log1p(float(error)))
            bands.setdefault(band_of(row.size), []).append(math.expm1(off))
    summaries = {band: summary_of(np.array(errors)) for band, errors in bands.items()}
    return {
        band: (each.median, each.p90) for band, each in summaries.items() if each.rows >= _FEWEST
    }


def _classes(network: Topology, spec: TopologySpec, usual: Profile | None) -> tuple[str, str]:
    """Return the box and fabric of the machine: those of its profile, or else those that its links show."""
    try:
        known = usual or profile_for(network, spec)
    except SpecError:
        return "", ""
    return known.box, known.fabric


def _usual(network: Topology, spec: TopologySpec, prior: str | None) -> Profile | None:
    """Return the profile of such machines: the topology's own, the one to start from, or its box's."""
    if spec.profile is not None:
        return profile_of(spec)
    if prior is not None:
        return load_profile(prior)
    if len(network.groups) > 1:
        return None  # nothing shows which fabric joins the boxes
    try:
        return profile_for(network, spec)
    except SpecError:
        return None


def _fit_options(spec: TopologySpec, usual: Profile | None, prior: str | None) -> FitOptions:
    """Return from which constants a fit starts, and how far a machine may lie from them."""
    start = usual if prior is None else load_profile(prior)
    is_own = prior is None and spec.profile is not None and spec.profile.name is None
    if start is None or is_own:
        return FitOptions(width=2.0)
    # A machine's own data weighs more than the family that priors were taken from.
    width = SPREAD if start.is_composed else 1.0
    return FitOptions(width, fewest=1, priors=start.values)


def _check_explained(found: Fit, sweeps: list[MeasuredSeries]) -> None:
    """Refuse times that no constants explain: something was slow for a part of them."""
    measured = np.array([row.seconds for row in found.rows])
    over = measured / found.predicted
    off = np.maximum(over, 1 / over)
    if len(off) < _FEWEST or np.percentile(off[~found.held], 90) < _UNEXPLAINED:
        return
    worst = int(off.argmax())
    row = found.rows[worst]
    name = next(sweep.name for sweep in sweeps if row in sweep.rows)
    where = f"{row.kind} of {format_size(row.size)} on {counted(row.npus, 'NPU')}"
    times = f"{over[worst]:.1f} times" if over[worst] > 1 else f"1/{off[worst]:.1f}"
    why = f"no constants explain its times: {where} took {times} of what the nearest law has"
    right = "ask hocket measured what is slow, mend that, and measure again"
    raise SpecError(None, why, right, origin=name)


def _print_advice(
    spec: TopologySpec,
    usual: Profile | None,
    hardware: Hardware,
    on: tuple[int, int],
    known: list[Measurement],
    json: bool,
) -> None:
    """Print what to measure on a machine of so many NPUs and nodes."""
    if usual is None:
        wrong = "nothing says what joins its nodes" if on[1] > 1 else "no class has such links"
        right = "name box and fabric, as --prior h100+ib (docs/machines.md lists them)"
        raise SpecError("--advise", wrong, right, origin=spec.name)
    steps = advise_measurements(usual, hardware, *on, known)
    if json:
        options.print_result(
            "measurement-advice", MeasurementAdvice(usual.name, len(known), steps).to_dict()
        )
        return
    console = options.output()
    npus, nodes = on
    where = f" on {nodes} nodes" if nodes > 1 else ""
    title = f"what to measure among {npus} NPUs{where} of {spec.name}, and the uncertainty left"
    table = Table(title=title, by_row=True)
    table.add_rows(steps)
    console.print(table)
    for step in steps:
        program = next(name for name, kind in COLLECTIVES.items() if kind == step.kind)
        console.print(f"{program}_perf -b {step.size} -e {step.size}")
    given = f" and {counted(len(known), 'time')} given" if known else ""
    console.note(f"uncertain are constants of profile {usual.name}{given}")
    console.note("hocket calibrate FILES fits a profile to what these commands print")


def _ratios(
    sweeps: list[MeasuredSeries], hardware: Hardware, usual: Profile
) -> NDArray[np.float64]:
    """Return each measured time over what a profile predicts for it, (rows,)."""
    ratios = []
    for sweep in sweeps:
        cells = cells_of(sweep.rows, hardware)
        measured = np.array([row.seconds for row in sweep]) * 1e6
        launch = np.array([usual.launching_all(row.npus, row.nodes) for row in sweep])
        own = launch - usual.launching()
        told = int(measured.argmin())
        if sweep.rows[told].size <= TELLING:
            work = times(cells, usual.values, np.zeros(len(measured)))
            least = usual.launch_behind(measured[told], work[told], own[told]) - own[told]
            launch = least + own
        ratios.append(measured / times(cells, usual.values, launch))
    return np.concatenate(ratios)


def _usable(sweep: MeasuredSeries, path: str, *, in_place: bool) -> MeasuredSeries:
    rows = tuple(row for row in sweep if row.in_place == in_place and row.is_aligned)
    if not rows:
        which, other = (
            ("in place", "leave --in-place out")
            if in_place
            else (
                "out of place",
                "give --in-place",
            )
        )
        raise SpecError(None, f"has no times {which}", other, origin=shown_path(Path(path)))
    return replace(sweep, rows=rows)


def _check(sweeps: list[MeasuredSeries], npus: int, nodes: int) -> None:
    devices = {sweep.facts["device"]: sweep.name for sweep in sweeps if "device" in sweep.facts}
    if len(devices) > 1:
        listed = " and ".join(f"{device} ({name})" for device, name in devices.items())
        right = "give times of one machine, and calibrate each kind for itself"
        raise SpecError("MEASURED", f"these are of unlike machines: {listed}", right)
    names: set[str] = set()
    for sweep in sweeps:
        if sweep.name in names:
            raise SpecError("MEASURED", f"two files are called {sweep.name}", "rename one")
        names.add(sweep.name)
        for row in sweep:
            most = npus // nodes
            if row.nodes > nodes or row.npus // row.nodes > most:
                own = f"{row.npus} NPUs on {counted(row.nodes, 'node')}"
                why = f"has {own}; the topology has {npus} on {nodes}"
                right = "give the topology of the machine that was measured"
                raise SpecError(None, why, right, origin=sweep.name)


def _sources(sweeps: list[MeasuredSeries]) -> tuple[str, ...]:
    return tuple(
        f"Fitted to {sweep.name}: {sweep.facts.get('source', 'measured by the user')}"
        for sweep in sweeps
    )


def _text_of(topology: str, spec: TopologySpec) -> str:
    """Return the text of the file that a topology was read from; of one that is no YAML, as YAML."""
    if machines.known(topology):
        return machines.path(topology).read_text(encoding="utf-8")
    if spec.builder is not None and ":" in topology:
        right = "write a file with builder: and its sizes, and give that"
        raise SpecError(
            "--output", f"{topology} is no file to which a profile could be added", right
        )
    path = Path(topology)
    if is_machine_file(path):
        return yaml_of_links(spec)
    text = read_text(path, "a topology file")
    values, _ = parse_yaml(text, shown_path(path))
    if is_astra(values) or is_infragraph(values):
        why = "is a file of another tool, in which there is no place for a profile"
        right = "write its network as YAML with npus: and links:, or dims:, and give that"
        raise SpecError(None, why, right, origin=shown_path(path))
    return text


@dataclass(frozen=True)
class MeasurementAdvice(Result):
    """What to measure on a machine.

    Attributes
    ----------
    profile
        Whose constants are narrowed.
    known
        How many times are known already.
    measurements
        The first first.
    """

    profile: str
    known: int
    measurements: list[Advised]


@dataclass(frozen=True)
class FitError(Result):
    """How far the law is from measurements: shares of the measured time."""

    collective: str
    band: str
    """Of sizes."""
    rows: int
    median: float
    p90: float
    is_kept_back: bool
    """Whether these are the sizes that were kept back."""
    over_usual: float | None
    """The median of measured over predicted by the profile of such machines, of all sizes of the band."""


@dataclass(frozen=True)
class FittedProfile(Result):
    """Constants of a machine, and how far the law is from what was measured."""

    constants: dict[str, Fitted]
    launch_us: dict[str, float]
    launch_per_npu_us: float
    alike: list[list[str]]
    """Pairs that this data cannot tell apart."""
    errors: list[FitError]
    left_out: list[str]
    """Times whose results were wrong, a line each."""
    file: str | None
    """The topology file that was written."""
    usual: str | None
    """The profile of such machines, with which times are compared."""


def _others(sweep: MeasuredSeries) -> list[str]:
    """Return what is left out of programs without a model."""
    return [f"{sweep.name}: {count:,} {reason}" for reason, count in sweep.others.items()]


def _errors(found: Fit, ratios: NDArray[np.float64] | None) -> list[FitError]:
    kinds = np.array([row.kind for row in found.rows])
    sizes = np.array([row.size for row in found.rows])

    def ratio(kind: str, band: Band) -> float | None:
        own = (kinds == kind) & (sizes >= band.low) & (sizes < band.high)
        return None if ratios is None else float(np.median(ratios[own]))

    return [
        FitError(
            kind, band.name, spread.rows, spread.median, spread.p90, is_held, ratio(kind, band)
        )
        for kind in dict.fromkeys(kinds.tolist())
        for is_held in (True, False)
        for which in [(kinds == kind) & (found.held == is_held)]
        for band, spread in summaries(found.errors[which], sizes[which])
    ]


def _print(
    found: Fit,
    sweeps: list[MeasuredSeries],
    profile: Profile,
    usual: Profile | None,
    ratios: NDArray[np.float64] | None,
    output: str | None,
) -> None:
    console = options.output()
    table = Table(
        title="error of the sizes kept back, and of those fitted: median / 90th percentile"
    )
    for name, justify in (("collective", "left"), ("sizes", "left"), ("kept back", "right")):
        table.add_column(name, justify=justify, unit="%" if name == "kept back" else "")
    table.add_column("fitted", justify="right", unit="%")
    if usual is not None:
        table.add_column(f"over {usual.name}", justify="right")
    cells: dict[tuple[str, str], dict[bool, str]] = {}
    slow: dict[str, float] = {}
    errors = _errors(found, ratios)
    for each in errors:
        text = f"{percent(each.median)} / {percent(each.p90)}"
        cells.setdefault((each.collective, each.band), {})[each.is_kept_back] = text
    over = {(each.collective, each.band): each.over_usual for each in errors}
    for (kind, band), texts in cells.items():
        ratio = over[kind, band]
        told = [] if ratio is None else [f"{ratio:.2f}"]
        table.add_row(kind, band, texts.get(True, "–"), texts.get(False, "–"), *told)
        if ratio is not None and ratio > 1 + TOLERANCES[band]:
            slow[f"{kind} {band}"] = ratio
    console.print(table)
    constants = Table(title="constants that the data determines")
    for name in ("constant", "value", *([] if usual is None else [usual.name]), "90 % interval"):
        constants.add_column(name, justify="left" if name == "constant" else "right")
    constants.add_column("unit")
    shown = {f"launch of {name}": each for name, each in found.launch.items()}
    for name, constant in {**shown, **profile.constants}.items():
        if not constant.is_seen:
            continue
        unit = "us" if name in shown else CONSTANTS[name].unit or "of nominal"
        ends = f"{constant.low:.3g} to {constant.high:.3g}"
        theirs = [] if usual is None else [usual.values.get(name)]
        beside = ["–" if value is None else f"{value:.4g}" for value in theirs]
        constants.add_row(name, f"{constant.value:.4g}", *beside, ends, unit)
    console.print(constants)
    unseen = [name for name, each in found.constants.items() if not each.is_seen]
    if unseen:
        console.note(f"not determined by this data, at their priors: {', '.join(unseen)}")
    for one, other in found.alike:
        console.note(f"{one} and {other} cannot be told apart: measure another number of NPUs")
    for sweep in sweeps:
        for line in oddities(sweep):
            console.note(line)
        for line in sweep.wrong:
            console.note(f"left out, as results were wrong: {line}")
        for line in _others(sweep):
            console.note(f"left out: {line}")
    held = summary_of(found.errors[found.held])
    console.print(
        f"{len(found.rows)} times, {held.rows} of them kept back: "
        f"median error there {percent(held.median)} %, 90th percentile {percent(held.p90)} %"
    )
    console.print(_beside(usual, slow))
    if output is not None:
        console.print(f"topology with its profile in {output}")


def _beside(usual: Profile | None, slow: Mapping[str, float]) -> str:
    """Judge whether the machine is as quick as its kind: its own profile takes its times as usual."""
    if usual is None:
        return (
            "no profile of such machines is known, so this one may be slower than its kind; the fitted "
            "profile takes its times as usual (--prior names a profile to compare with)"
        )
    if not slow:
        return f"as quick as profile {usual.name} predicts, within what it is usually wrong by"
    where = ", ".join(f"{what} {ratio:.2f} times" for what, ratio in slow.items())
    return (
        f"slower than profile {usual.name} predicts: {where}; the fitted profile takes these times as "
        f"usual, and hocket measured --profile {usual.name} says what is slow"
    )
