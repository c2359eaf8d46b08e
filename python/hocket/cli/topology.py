"""``hocket topology``: list, show, draw, export."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from hocket.cli import complete, options
from hocket.cli.command import Argument, Option
from hocket.cli.form import Form
from hocket.cli.groups import Network
from hocket.cli.table import Table, table_of
from hocket.errors import SpecError
from hocket.topology import machines
from hocket.topology.build import build_topology, counts_of
from hocket.topology.costs import costs_from_file
from hocket.topology.figures import Machine, NetworkFigures
from hocket.topology.spec import TopologySpec
from hocket.units import counted, format_bandwidth, format_time_ps


@dataclass(frozen=True)
class Named(Network):
    """The network, named by the first word."""

    topology: Annotated[
        str,
        Argument(
            metavar="TOPOLOGY",
            complete=complete.topologies,
            help="A shipped machine, a file, or a builder such as mesh:9x9.",
        ),
    ]


def list_machines(*, form: Form) -> None:
    """List the shipped machines.

    For example: hocket topology list --json
    """
    form.print_list(
        "machines", [Machine(name, machines.describe(name)) for name in machines.names()]
    )


def show(
    network: Named,
    *,
    costs: Annotated[
        str | None,
        Option(
            "--costs",
            help="A .yml file with prices of links and switches (docs/sweeps.md), for a network without.",
        ),
    ] = None,
    links: Annotated[bool, Option("--links", "--verbose", "-v", help="List every link.")] = False,
    form: Form,
) -> None:
    """Show a network's degree, diameter, bisection, and whether it is connected; as CSV, its links.

    For example: hocket topology show torus:4x4x4 --bandwidth "50 GB/s" --latency "1 us"
    """
    spec = network.read()
    if costs is not None:
        if spec.costs is not None:
            raise SpecError("--costs", f"{spec.name} has its own", "leave it out")
        spec = replace(spec, costs=costs_from_file(Path(costs)))
    show_network(spec, form, links=links)


def show_network(spec: TopologySpec, form: Form, *, links: bool = False) -> None:
    """Print what a network is, as ``hocket topology show`` does."""
    found = NetworkFigures.of(spec, build_topology(spec))
    if form.prints("topology", found.to_dict, lambda: found):
        return
    console = options.output()
    table = Table(title=spec.name, show_header=False)
    for name, value in _facts(found):
        table.add_row(name, value)
    failed = [*spec.failed_nodes, *(",".join(ends) for ends in spec.failed_links)]
    if failed:
        table.add_row("failed", " ".join(failed))
    if spec.links:
        table.add_row("profile", found.profile or "none: hocket calibrate fits one")
    cost = found.cost
    if cost is not None:
        parts = f"NPUs {cost.npus:,.6g}, {cost.cables:,} cables {cost.links:,.6g}, "
        parts += f"{cost.switch_count:,} switches {cost.switches:,.6g}"
        table.add_row("cost", f"{cost.total:,.6g}: {parts}")
    console.print(table)
    for warning in found.warnings:
        console.print(f"warning: {warning}")
    for note in found.notes:
        console.note(f"note: {note}")
    for line in found.source:
        console.note(f"source: {line}")
    if links:
        console.print(table_of(found.links))


def _facts(found: NetworkFigures) -> list[tuple[str, str]]:
    facts = [
        ("NPUs", f"{len(found.npus):,}"),
        ("switches", f"{len(found.switches):,}"),
        ("links (directed)", f"{found.link_count:,}"),
        ("links out of an NPU", _span(*found.out_degree)),
        ("links into an NPU", _span(*found.in_degree)),
    ]
    if found.link_bandwidth is not None:
        facts.append(("bandwidth of a link", _span(*map(format_bandwidth, found.link_bandwidth))))
    facts.append(("bandwidth of all links", format_bandwidth(found.total_bandwidth)))
    if found.bisection_bandwidth is not None:
        sure = "" if found.bisection_is_minimum else "at most "
        facts.append(("bisection, one way", sure + format_bandwidth(found.bisection_bandwidth)))
    if found.connected:
        facts.append(("connected", "yes"))
    elif found.unreachable is not None:
        facts.append(
            ("connected", f"no: {found.unreachable[0]} does not reach {found.unreachable[1]}")
        )
    if found.diameter_hops is not None:
        facts.append(("diameter", counted(found.diameter_hops, "link")))
    if found.diameter_latency_ps is not None:
        facts.append(("diameter in latency", format_time_ps(found.diameter_latency_ps)))
    facts.append(("switching", found.switching))
    if found.groups:
        sizes = sorted(len(group) for group in found.groups)
        facts.append(("nodes", f"{len(sizes)} of {_span(sizes[0], sizes[-1])} NPUs"))
    facts.extend(_offload_facts(found))
    for i, each in enumerate(found.dimensions):
        rate, delay = format_bandwidth(each.bandwidth_bytes_per_s), format_time_ps(each.latency_ps)
        text = f"{each.kind} of {each.size}, {rate}, {delay} a link"
        text += ", sums in its switches" if each.offload else ""
        facts.append((f"dimension {i + 1}", text))
    return facts


def _offload_facts(found: NetworkFigures) -> list[tuple[str, str]]:
    """Return how many switches can do what."""
    alike: Counter[str] = Counter()
    for each in found.offload:
        text = ", ".join(each.operations)
        if each.rate_bytes_per_s is not None:
            text += f", at {format_bandwidth(each.rate_bytes_per_s)}"
        if each.trees is not None:
            text += f", {counted(each.trees, 'tree')}"
        alike[text] += 1
    return [
        ("offload", f"{count:,} of {len(found.switches):,} switches: {text}")
        for text, count in alike.items()
    ]


def _span(least: object, most: object) -> str:
    return f"{least}" if least == most else f"{least} to {most}"


def draw(
    network: Named,
    *,
    output: Annotated[
        str,
        options.output_file("The .svg, .png or .pdf file to draw to.", check=options.is_picture),
    ],
    schematic: Annotated[
        bool | None,
        Option(
            "--schematic/--full",
            help="Draw groups with their numbers, or every device. Default: groups above 64 "
            "devices.",
        ),
    ] = None,
) -> None:
    """Draw a network: all devices of a small one, the groups of a large one.

    For example: hocket topology draw dgx1_v100 -o dgx1.svg
    """
    from hocket.plot.network import check_count, draw_network
    from hocket.plot.schematic import FULL, check_schematic, draw_schematic, failures_of

    spec = network.read()
    npus = counts_of(spec).npus - len(spec.failed_nodes)
    if schematic is False:
        check_count(spec.origin, npus)
    check_schematic(spec.origin, npus)
    built = build_topology(spec)
    if schematic is None:
        schematic = built.device_count > FULL
    if schematic:
        whole = build_topology(replace(spec, failed_nodes=(), failed_links=()))
        draw_schematic(
            whole, Path(output), failures_of(whole, spec.failed_nodes, spec.failed_links)
        )
    else:
        draw_network(built, Path(output))
    options.output().print(f"drawn to {output}")


def export(
    network: Named,
    *,
    to: Annotated[
        str,
        Option("--to", metavar="KIND", help="yaml (hocket's own file), infragraph or astra-sim."),
    ],
    output: Annotated[str, Option("--output", "-o", metavar="FILE", help="The file to write.")],
) -> None:
    """Write a network as a file that can be edited, or for another tool.

    For example: hocket topology export dgx1_v100 --to yaml -o mine.yml
    """
    from hocket.files.atomic import write_text
    from hocket.topology.export import export_topology
    from hocket.topology.yaml_write import spec_by_links, yaml_of_links

    spec = network.read()
    is_whole = not (spec.failed_nodes or spec.failed_links or spec.slow)
    if to == "yaml" and machines.known(network.topology) and is_whole:
        write_text(Path(output), machines.path(network.topology).read_text())
    elif to == "yaml":
        write_text(Path(output), yaml_of_links(spec_by_links(spec)))
    else:
        export_topology(build_topology(spec), output, to=to)
    options.output().print(f"written to {output}")
