"""``hocket view``: look at a plan from a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from hocket.cli import options
from hocket.cli.plan import describe, plan_facts
from hocket.cli.verify import PlanFile
from hocket.collectives.timing import Latency, LinkOrder, Switching
from hocket.errors import SpecError
from hocket.plans.plan import Plan
from hocket.simulation.packets import Packets
from hocket.simulation.run import Fidelity, Run, simulate
from hocket.units import format_time_ps

if TYPE_CHECKING:
    from hocket.plot.ten import Expanded


def view(
    plan: PlanFile,
    *,
    ten: Annotated[
        bool,
        typer.Option("--ten", help="On the time-expanded network: each transfer an arrow in time."),
    ] = False,
    heat: Annotated[
        bool,
        typer.Option("--heat", help="Each link by its share of busy time, and links over time."),
    ] = False,
    phase: Annotated[
        str | None,
        typer.Option(
            "--phase", help="Rings and trees of what is summed (reduce, default) or copied (copy)."
        ),
    ] = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            "--chunk", help="Only what this chunk takes, also of --ten; they count from 0."
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Draw to this .png, .svg or .pdf file."),
    ] = None,
    fidelity: Annotated[
        str,
        typer.Option(
            "--fidelity",
            help="Of --heat. link: each link serves whole messages; flow: fluids that share links "
            "fairly; packet: flits over routers with buffers.",
        ),
    ] = "link",
    order: options.Order = None,
    switching: options.SwitchingText = None,
    latency_model: options.LatencyModel = "overlapped",
    preset: options.Preset = None,
    packet_size: options.PacketSize = None,
    flit_size: options.FlitSize = None,
    header_flits: options.HeaderFlits = None,
    virtual_channels: options.VirtualChannels = None,
    buffer_flits: options.BufferFlits = None,
    clock: options.Clock = None,
    reduction_rate: options.ReductionRate = None,
    flow_rate: options.FlowRate = None,
    json: options.Json = False,
) -> None:
    """Draw a plan on its network: its rings and trees, how busy links are, or its transfers in time."""
    options.check_model(order, switching, latency_model)
    options.choice("--fidelity", fidelity, get_args(Fidelity))
    packets = options.read_packets(
        preset,
        packet=packet_size,
        flit=flit_size,
        header_flits=header_flits,
        virtual_channels=virtual_channels,
        buffer_flits=buffer_flits,
        clock=clock,
        reduction_rate=reduction_rate,
    )
    options.check_fidelity(
        fidelity,
        packets=packets,
        flow_rate=flow_rate,
        order=order,
        switching=switching,
        latency_model=latency_model,
    )
    if ten and heat:
        raise SpecError("--ten: --heat is another picture; draw one at a time")
    if fidelity != "link" and not heat:
        instead = "in place of --ten" if ten else "as well"
        raise SpecError(
            f"--fidelity: {fidelity} is of --heat; leave it out, or give --heat {instead}"
        )
    if not (ten or heat):
        for name, choice in (("--order", order), ("--switching", switching)):
            if choice is not None:
                raise SpecError(f"{name} is of --heat and --ten; leave it out, or give one of them")
    if phase is not None:
        options.choice("--phase", phase, ("reduce", "copy"))
    if phase is not None and (ten or heat):
        other = "--ten" if ten else "--heat"
        raise SpecError(f"--phase is of rings and trees; leave it out, or leave out {other}")
    if chunk is not None and heat:
        raise SpecError("--chunk is of rings and trees and of --ten; leave it out, or --heat")
    if latency_model != "overlapped" and not (ten or heat):
        raise SpecError("--latency-model: rings and trees are the same at any; leave it out")
    if output is None and not json:
        name, what = ("ten", "arrows") if ten else ("heat", "links") if heat else ("plan", "links")
        raise SpecError(f"--output: nowhere to draw; give -o {name}.png, or --json for the {what}")
    if output is not None:
        from hocket.plot.style import check_picture

        check_picture(Path(output))
        if Path(output).resolve() == Path(plan).resolve():
            raise SpecError(f"--output: {output} is the plan; name another file")
    made = Plan.load(plan)
    knobs = _Knobs(
        cast(Latency, latency_model),
        cast(LinkOrder | None, order),
        cast(Switching | None, switching),
        packets,
        cast(Fidelity, fidelity),
        flow_rate,
    )
    if ten:
        _ten(made, knobs, chunk, output, json)
    elif heat:
        _heat(made, knobs, output, json)
    else:
        _structures(made, phase, chunk, output, json)


@dataclass(frozen=True)
class _Knobs:
    """How the plan is run."""

    latency: Latency = "overlapped"
    order: LinkOrder | None = None
    switching: Switching | None = None
    packets: Packets | None = None
    fidelity: Fidelity = "link"
    flow_rate: str | None = None


def _run(made: Plan, knobs: _Knobs, *, keep_services: bool = True) -> Run:
    with options.watching() as watch:
        return simulate(
            made,
            fidelity=knobs.fidelity,
            order=knobs.order,
            switching=knobs.switching,
            latency=knobs.latency,
            packets=knobs.packets,
            flow_rate=knobs.flow_rate,
            keep_services=keep_services,
            progress=watch,
        )


def _say(text: str, output: str | None) -> None:
    console = options.output()
    console.print(text, highlight=False)
    console.print(f"drawn to {output}", highlight=False, soft_wrap=True)


def _structures(
    made: Plan, phase: str | None, chunk: int | None, output: str | None, json: bool
) -> None:
    from hocket.plot.links import check_devices
    from hocket.plot.shape import draw_structures, summary
    from hocket.simulation.structures import Phase, default_phase

    check_devices(made.topology)
    chosen = cast(Phase, phase) if phase is not None else default_phase(made)
    run = _run(made, _Knobs())
    found = run.structures(chosen, chunk=chunk)
    if output is not None:
        draw_structures(run, found, chosen, Path(output), chunk=chunk)
    names = made.topology.device_names
    links = {link for each in found for link in each.links}
    if json:
        rows = [
            {
                "kind": each.kind,
                "roots": [names[root] for root in each.roots],
                "chunks": list(each.chunks),
                "transfers": [[names[src], names[dst]] for src, dst in each.transfers],
                "links": [_link(made, link) for link in each.links],
            }
            for each in found
        ]
        options.print_json(
            {
                **plan_facts(made),
                "phase": chosen,
                "chunk": chunk,
                "structures": rows,
                "links": made.topology.link_count,
                "links_in_use": len(links),
                "file": output,
            }
        )
        return
    of = "" if chunk is None else f" for chunk {chunk}"
    _say(
        f"{describe(made)}; {chosen}{of}: {summary(found)} on {len(links)} of "
        f"{made.topology.link_count} links",
        output,
    )


def _heat(made: Plan, knobs: _Knobs, output: str | None, json: bool) -> None:
    from hocket.plot.link_heat import BINS, busy_shares, draw_link_heat, in_use
    from hocket.plot.links import check_devices

    check_devices(made.topology)
    run = _run(made, knobs)
    if output is not None:
        draw_link_heat(run, Path(output))
    if json:
        shares = enumerate(busy_shares(run).tolist())
        options.print_json(
            {
                **plan_facts(made),
                "fidelity": run.fidelity,
                "cycle_ps": run.cycle_ps,
                "order": run.order,
                "switching": run.switching,
                "packets": options.packets_json(run),
                "latency_model": knobs.latency,
                "time_ps": run.time_ps,
                "used_links": run.used_links,
                "used_link_share": run.used_link_share,
                "links": [{**_link(made, link), "busy": share} for link, share in shares],
                "bin_ps": run.time_ps / BINS,
                "in_use": in_use(run).tolist(),
                "file": output,
            }
        )
        return
    _say(
        f"{describe(made)} in {format_time_ps(run.time_ps)}; {run.used_links:.1%} of links used, "
        f"{run.used_link_share:.1%} in use at a time",
        output,
    )


def _link(made: Plan, link: int) -> dict[str, Any]:
    """Name a link; two between the same devices differ in the number."""
    topology = made.topology
    names = topology.device_names
    src, dst = int(topology.link_src[link]), int(topology.link_dst[link])
    return {"link": link, "src": names[src], "dst": names[dst]}


def _ten(made: Plan, knobs: _Knobs, chunk: int | None, output: str | None, json: bool) -> None:
    from hocket.plot.ten import CROWDED, check_readable, draw_ten, expand

    check_readable(made, chunk)
    run = _run(made, knobs, keep_services=output is not None)
    arrows = expand(run, chunk) if output is None else draw_ten(run, Path(output), chunk)
    if json:
        options.print_json(
            {**_ten_json(run, arrows, knobs.latency), "chunk": chunk, "file": output}
        )
        return
    slots = ""
    if arrows.slot_ps is not None:
        plural = "s"[: arrows.slots != 1]
        slots = f", {arrows.slots} slot{plural} of {format_time_ps(arrows.slot_ps)}"
    _say(f"{describe(made)} in {format_time_ps(run.time_ps)}{slots}", output)
    if len(arrows) > CROWDED and chunk is None:
        options.output().print(
            f"note: {len(arrows):,} arrows are hard to tell apart; --chunk 0 draws those of a chunk",
            highlight=False,
            soft_wrap=True,
        )


def _ten_json(run: Run, arrows: Expanded, latency_model: str) -> dict[str, Any]:
    """Give the arrows in order of start, times in picoseconds."""
    columns = {
        "transfer": arrows.transfer,
        "chunk": arrows.chunk,
        "chunks": arrows.chunk_count,
        "src": arrows.src,
        "dst": arrows.dst,
        "start_ps": arrows.start_ps,
        "end_ps": arrows.end_ps,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return {
        **plan_facts(run.plan),
        "latency_model": latency_model,
        "time_ps": run.time_ps,
        "slot_ps": arrows.slot_ps,
        "slots": arrows.slots if arrows.slot_ps is not None else None,
        "arrows": [dict(zip(columns, row, strict=True)) for row in rows],
    }
