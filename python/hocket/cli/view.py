"""``hocket show``: look at a plan from a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from hocket import _core
from hocket._results import Result
from hocket.cli import options
from hocket.cli.command import Option
from hocket.cli.groups import Simulation
from hocket.cli.numbers import share_of
from hocket.cli.plan import describe
from hocket.errors import SpecError
from hocket.files.atomic import check_apart
from hocket.plans.plan import Plan
from hocket.simulation.options import LinkOptions, TransferOptions
from hocket.simulation.run import Run, simulate
from hocket.units import format_time_ps

if TYPE_CHECKING:
    from hocket.plot.time_expanded import Expanded


@dataclass(frozen=True)
class NamedLink(Result):
    """A link by its number and its ends; two between the same devices differ in the number."""

    link: int
    src: str
    dst: str

    @classmethod
    def ends(cls, topology: _core.Topology, link: int) -> dict[str, Any]:
        """Return what a link is called, by name of field."""
        names = topology.device_names
        src, dst = names[int(topology.link_src[link])], names[int(topology.link_dst[link])]
        return {"link": link, "src": src, "dst": dst}


@dataclass(frozen=True)
class NamedStructure(Result):
    """A ring, a tree or another structure."""

    kind: str
    roots: list[str]
    chunks: list[int]
    transfers: list[list[str]]
    """Source and destination of each."""
    links: list[NamedLink]


@dataclass(frozen=True)
class Structures(Result):
    """The structures of a plan."""

    phase: str
    chunk: int | None
    structures: list[NamedStructure]
    links: int
    links_in_use: int
    file: str | None


@dataclass(frozen=True)
class BusyLink(NamedLink):
    """A link, and the share of time in which it is busy."""

    busy: float


@dataclass(frozen=True)
class LinkHeat(Result):
    """The share of time in which each link is busy while a plan runs."""

    fidelity: str
    cycle_ps: int | None
    order: str | None
    switching: str
    packets: dict[str, Any] | None
    latency_model: str | None
    time_ps: int
    used_links: float
    used_link_share: float
    links: list[BusyLink]
    bin_ps: float
    in_use: list[float]
    """Share of all links that are busy, bin by bin."""
    file: str | None


@dataclass(frozen=True)
class Arrow(Result):
    """A transfer in the time-expanded network."""

    transfer: int
    chunk: int
    chunks: int
    src: int
    dst: int
    start_ps: int
    end_ps: int


@dataclass(frozen=True)
class TimeExpanded(Result):
    """The time-expanded network of a plan."""

    latency_model: str | None
    time_ps: int
    slot_ps: int | None
    slots: int | None
    arrows: list[Arrow]
    chunk: int | None
    file: str | None


@dataclass(frozen=True)
class Picture:
    """The kind of picture, and its file."""

    panel: ClassVar[str] = "Picture"

    ten: Annotated[
        bool,
        Option("--ten", help="Draw each transfer as an arrow between NPUs over time."),
    ] = False
    heat: Annotated[
        bool,
        Option(
            "--heat",
            help="Colour links by their share of busy time, and draw the links in use over time.",
        ),
    ] = False
    phase: Annotated[
        str | None,
        Option(
            "--phase",
            help="Draw rings and trees of sums (reduce, the default) or of copies (copy).",
        ),
    ] = None
    chunk: Annotated[
        int | None,
        Option("--chunk", help="Draw only this chunk; chunks are numbered from 0."),
    ] = None
    file: Annotated[
        str | None,
        options.output_file(
            "Draw to this .png, .svg or .pdf file.",
            *(".png", ".svg", ".pdf"),
            more=", or an .html file for a page",
            check=options.is_picture,
        ),
    ] = None
    json: options.Json = False


def view(plan: options.PlanFile, *, picture: Picture, simulation: Simulation) -> None:
    """Draw a plan's rings and trees, busy links, or transfers over time.

    For example: hocket show plan.parquet -o trees.png  ·  hocket show plan.parquet --heat -o
    heat.png  ·  hocket show plan.parquet --ten --latency-model occupying -o ten.png
    """
    fidelity = simulation.transfers()
    _check(picture, simulation, plan)
    made = Plan.load(plan)
    if picture.ten:
        _ten(made, fidelity, picture)
    elif picture.heat:
        _heat(made, fidelity, picture.file, picture.json)
    else:
        _structures(made, picture)


def _check(picture: Picture, simulation: Simulation, plan: str) -> None:
    """Refuse options of one picture with another."""
    ten, heat, output = picture.ten, picture.heat, picture.file
    if ten and heat:
        raise SpecError("--ten", "--heat is another picture", "draw one at a time")
    if simulation.fidelity != "link" and not heat:
        instead = "in place of --ten" if ten else "as well"
        raise SpecError(
            "--fidelity",
            f"{simulation.fidelity} is of --heat",
            f"leave it out, or give --heat {instead}",
        )
    if not (ten or heat):
        for name in simulation.link.keys() & {"order", "switching"}:
            raise SpecError(
                None, f"--{name} is of --heat and --ten", "leave it out, or give one of them"
            )
    if picture.phase is not None:
        options.choice("--phase", picture.phase, ("reduce", "copy"))
    if picture.phase is not None and (ten or heat):
        other = "--ten" if ten else "--heat"
        raise SpecError("--phase", "is of rings and trees", f"leave it out, or leave out {other}")
    if picture.chunk is not None and heat:
        raise SpecError("--chunk", "is of rings and trees and of --ten", "leave it out, or --heat")
    if simulation.link.get("latency_model", "overlapped") != "overlapped" and not (ten or heat):
        raise SpecError("--latency-model", "rings and trees are the same at any", "leave it out")
    if output is None and not picture.json:
        file = "ten.png" if ten else "heat.png" if heat else "plan.png or plan.html"
        what = "arrows" if ten else "links"
        raise SpecError("--output", "nowhere to draw", f"give -o {file}, or --json for the {what}")
    if output is not None:
        check_apart(output, [plan], "the plan")


def _run(made: Plan, fidelity: TransferOptions, *, keep_services: bool = True) -> Run:
    with options.watching() as watch:
        return simulate(made, fidelity=fidelity, keep_services=keep_services, progress=watch)


def _say(text: str, output: str | None) -> None:
    console = options.output()
    console.print(text)
    console.print(f"drawn to {output}")


def _structures(made: Plan, picture: Picture) -> None:
    from hocket.plot.links import check_devices
    from hocket.plot.shape import draw_structures, summary
    from hocket.simulation.structures import Phase, default_phase

    check_devices(made.topology)
    phase, chunk, output = picture.phase, picture.chunk, picture.file
    chosen = cast(Phase, phase) if phase is not None else default_phase(made)
    run = _run(made, LinkOptions())
    found = run.structures(chosen, chunk=chunk)
    if output is not None:
        draw_structures(run, found, chosen, Path(output), chunk=chunk)
    names = made.topology.device_names
    links = {link for each in found for link in each.links}
    if picture.json:
        named = [
            NamedStructure(
                each.kind,
                [names[root] for root in each.roots],
                list(each.chunks),
                [[names[src], names[dst]] for src, dst in each.transfers],
                [NamedLink(**NamedLink.ends(made.topology, link)) for link in each.links],
            )
            for each in found
        ]
        count = made.topology.link_count
        more = Structures(chosen, chunk, named, count, len(links), output)
        options.print_result("structures", {**made.to_dict(), **more.to_dict()})
        return
    of = "" if chunk is None else f" for chunk {chunk}"
    _say(
        f"{describe(made)}; {chosen}{of}: {summary(found)} on {len(links)} of "
        f"{made.topology.link_count} links",
        output,
    )


def _heat(made: Plan, fidelity: TransferOptions, output: str | None, json: bool) -> None:
    from hocket.plot.link_heat import BINS, busy_shares, draw_link_heat, in_use
    from hocket.plot.links import check_devices

    check_devices(made.topology)
    run = _run(made, fidelity)
    if output is not None:
        draw_link_heat(run, Path(output))
    if json:
        shares = enumerate(busy_shares(run).tolist())
        more = LinkHeat.taken_from(
            run,
            packets=run.to_dict()["packets"],
            links=[BusyLink(**NamedLink.ends(made.topology, i), busy=busy) for i, busy in shares],
            bin_ps=run.time_ps / BINS,
            in_use=in_use(run).tolist(),
            file=output,
        )
        options.print_result("link-heat", {**made.to_dict(), **more.to_dict()})
        return
    _say(
        f"{describe(made)} in {format_time_ps(run.time_ps)}; {share_of(run.used_links)} of links used, "
        f"{share_of(run.used_link_share)} in use at a time",
        output,
    )


def _ten(made: Plan, fidelity: TransferOptions, picture: Picture) -> None:
    from hocket.plot.time_expanded import CROWDED, check_readable, draw_time_expanded, expand

    chunk, output = picture.chunk, picture.file
    check_readable(made, chunk)
    run = _run(made, fidelity, keep_services=output is not None)
    arrows = expand(run, chunk) if output is None else draw_time_expanded(run, Path(output), chunk)
    if picture.json:
        more = _expanded(run, arrows, chunk, output)
        options.print_result("time-expanded", {**made.to_dict(), **more.to_dict()})
        return
    slots = ""
    if arrows.slot_ps is not None:
        plural = "s"[: arrows.slots != 1]
        slots = f", {arrows.slots} slot{plural} of {format_time_ps(arrows.slot_ps)}"
    _say(f"{describe(made)} in {format_time_ps(run.time_ps)}{slots}", output)
    if len(arrows) > CROWDED and chunk is None:
        options.output().print(
            f"note: {len(arrows):,} arrows are hard to tell apart; --chunk 0 draws those of a chunk",
        )


def _expanded(run: Run, arrows: Expanded, chunk: int | None, file: str | None) -> TimeExpanded:
    """Return the arrows in order of start."""
    ends = (arrows.src, arrows.dst, arrows.start_ps, arrows.end_ps)
    columns = (arrows.transfer, arrows.chunk, arrows.chunk_count, *ends)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return TimeExpanded.taken_from(
        run,
        slot_ps=arrows.slot_ps,
        slots=arrows.slots if arrows.slot_ps is not None else None,
        arrows=[Arrow(*row) for row in rows],
        chunk=chunk,
        file=file,
    )
