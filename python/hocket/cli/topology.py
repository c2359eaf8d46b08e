"""``hocket topology``: list, show, draw, export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from hocket import _core
from hocket.cli import complete, options
from hocket.cli.command import Argument, Option
from hocket.cli.form import Form
from hocket.cli.table import Table
from hocket.errors import SpecError
from hocket.topology import machines
from hocket.topology.build import build_topology, counts_of
from hocket.topology.costs import cost_of, costs_from_file
from hocket.topology.spec import TopologySpec
from hocket.topology.warnings import warnings_of
from hocket.units import counted, format_bandwidth, format_time_ps

if TYPE_CHECKING:
    from hocket.cli.data import LinkData, OffloadData, TopologyData


Text = Annotated[
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
    values = [{"name": name, "description": machines.describe(name)} for name in machines.names()]
    if form.prints("machines", lambda: {"machines": values}, lambda: values):
        return
    table = Table()
    table.add_column("machine")
    table.add_column("what it is", prose=True)
    for name in machines.names():
        table.add_row(name, machines.describe(name))
    options.output().print(table)


def show(
    topology: Text,
    *,
    bandwidth: options.Bandwidth = None,
    latency: options.LatencyText = None,
    failed: options.Failed = None,
    costs: Annotated[
        str | None,
        Option(
            "--costs",
            help="A .yml file with prices of links and switches, for a network without prices.",
        ),
    ] = None,
    links: Annotated[bool, Option("--links", "--verbose", "-v", help="List every link.")] = False,
    form: Form,
) -> None:
    """Show a network's degree, diameter, bisection, and whether it is connected; as CSV, its links.

    For example: hocket topology show torus:4x4x4 --bandwidth "50 GB/s" --latency "1 us"
    """
    spec = options.read_spec(topology, bandwidth, latency, failed)
    if costs is not None:
        if spec.costs is not None:
            raise SpecError("--costs", f"{spec.name} has its own", "leave it out")
        spec = replace(spec, costs=costs_from_file(Path(costs)))
    show_network(spec, form, links=links)


def show_network(spec: TopologySpec, form: Form, *, links: bool = False) -> None:
    """Print what a network is, as ``hocket topology show`` does."""
    network = build_topology(spec)
    if form.prints("topology", lambda: _as_json(spec, network), lambda: _link_rows(network)):
        return
    console = options.output()
    found = network.inspect()
    table = Table(title=spec.name, show_header=False)
    for name, value in _facts(network, found):
        table.add_row(name, value)
    failed = [*spec.failed_nodes, *(",".join(ends) for ends in spec.failed_links)]
    if failed:
        table.add_row("failed", " ".join(failed))
    if spec.links:
        table.add_row("profile", _profile_name(spec) or "none: hocket calibrate fits one")
    cost = cost_of(spec)
    if cost is not None:
        parts = f"NPUs {cost.npus:,.6g}, {cost.cables:,} cables {cost.links:,.6g}, "
        parts += f"{cost.switch_count:,} switches {cost.switches:,.6g}"
        table.add_row("cost", f"{cost.total:,.6g}: {parts}")
    console.print(table)
    for warning in warnings_of(network, found):
        console.print(f"warning: {warning}")
    for note in spec.notes:
        console.note(f"note: {note}")
    for line in spec.source:
        console.note(f"source: {line}")
    if links:
        console.print(_links(network))


def _profile_name(spec: TopologySpec) -> str | None:
    """Return what is said of what real runs cost: a shipped profile, or the file's own."""
    return None if spec.profile is None else spec.profile.name or spec.name


def _facts(network: _core.Topology, found: _core.Inspection) -> list[tuple[str, str]]:
    facts = [
        ("NPUs", f"{found.npus:,}"),
        ("switches", f"{found.switches:,}"),
        ("links (directed)", f"{found.links:,}"),
        ("links out of an NPU", _span(*found.out_degree)),
        ("links into an NPU", _span(*found.in_degree)),
    ]
    if found.link_bandwidth is not None:
        facts.append(("bandwidth of a link", _span(*map(format_bandwidth, found.link_bandwidth))))
    facts.append(("bandwidth of all links", format_bandwidth(found.total_bandwidth)))
    if found.bisection_bandwidth is not None:
        sure = "" if found.bisection_is_exact else "at most "
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
    facts.append(("switching", network.switching))
    if network.groups:
        sizes = sorted(len(group) for group in network.groups)
        facts.append(("nodes", f"{len(sizes)} of {_span(sizes[0], sizes[-1])} NPUs"))
    facts.extend(_offload_facts(network))
    for i, (kind, size, rate, delay, offload) in enumerate(network.dimensions):
        text = f"{kind} of {size}, {format_bandwidth(rate)}, {format_time_ps(delay)} a link"
        text += ", sums in its switches" if offload else ""
        facts.append((f"dimension {i + 1}", text))
    return facts


def _offloads(network: _core.Topology) -> list[OffloadData]:
    """Return what each switch can do that does more than forward."""
    names = network.device_names[network.npu_count :]
    return [
        {
            "switch": name,
            "operations": list(can[0]),
            "rate_bytes_per_s": can[1],
            "trees": can[2],
        }
        for name, can in zip(names, network.switch_offloads, strict=False)
        if can is not None
    ]


def _offload_facts(network: _core.Topology) -> list[tuple[str, str]]:
    """Return how many switches can do what."""
    alike: Counter[str] = Counter()
    for each in _offloads(network):
        text = ", ".join(each["operations"])
        if each["rate_bytes_per_s"] is not None:
            text += f", at {format_bandwidth(each['rate_bytes_per_s'])}"
        if each["trees"] is not None:
            text += f", {each['trees']:,} tree{'s'[: each['trees'] != 1]}"
        alike[text] += 1
    return [
        ("offload", f"{count:,} of {network.device_count - network.npu_count:,} switches: {text}")
        for text, count in alike.items()
    ]


def _span(least: object, most: object) -> str:
    return f"{least}" if least == most else f"{least} to {most}"


def _each_link(network: _core.Topology) -> Iterator[tuple[str, str, int, int]]:
    """Return source, destination, bandwidth [bytes/s] and latency [ps] of each link."""
    names = network.device_names
    columns = (
        network.link_src,
        network.link_dst,
        network.link_bandwidth,
        network.link_latency_ps,
    )
    for src, dst, rate, delay in zip(*(column.tolist() for column in columns), strict=True):
        yield names[src], names[dst], rate, delay


def _link_rows(network: _core.Topology) -> list[LinkData]:
    return [
        {"src": src, "dst": dst, "bandwidth_bytes_per_s": rate, "latency_ps": delay}
        for src, dst, rate, delay in _each_link(network)
    ]


def _links(network: _core.Topology) -> Table:
    table = Table()
    for name in ("from", "to", "bandwidth", "latency"):
        table.add_column(name)
    for src, dst, rate, delay in _each_link(network):
        table.add_row(src, dst, format_bandwidth(rate), format_time_ps(delay))
    return table


def _as_json(spec: TopologySpec, network: _core.Topology) -> TopologyData:
    found = network.inspect()
    names = network.device_names
    cost = cost_of(spec)
    return {
        "name": spec.name,
        "npus": names[: network.npu_count],
        "switches": names[network.npu_count :],
        "link_count": found.links,
        "out_degree": found.out_degree,
        "in_degree": found.in_degree,
        "connected": found.connected,
        "unreachable": found.unreachable,
        "diameter_hops": found.diameter_hops,
        "diameter_latency_ps": found.diameter_latency_ps,
        "total_bandwidth_bytes_per_s": found.total_bandwidth,
        "link_bandwidth_bytes_per_s": found.link_bandwidth,
        "bisection_bytes_per_s": found.bisection_bandwidth,
        "bisection_is_exact": found.bisection_is_exact,
        "switching": network.switching,
        "profile": _profile_name(spec),
        "cost": None if cost is None else cast("Any", cost.to_dict()),
        "dimensions": [
            {
                "kind": kind,
                "size": size,
                "bandwidth_bytes_per_s": rate,
                "latency_ps": delay,
                "offload": offload,
            }
            for kind, size, rate, delay, offload in network.dimensions
        ],
        "links": _link_rows(network),
        "failed_nodes": list(spec.failed_nodes),
        "failed_links": [list(ends) for ends in spec.failed_links],
        "groups": [[names[npu] for npu in group] for group in network.groups],
        "offload": _offloads(network),
        "warnings": warnings_of(network, found),
        "notes": list(spec.notes),
        "source": list(spec.source),
    }


def draw(
    topology: Text,
    *,
    output: Annotated[
        str, Option("--output", "-o", help="The .svg, .png or .pdf file to draw to.")
    ],
    schematic: Annotated[
        bool | None,
        Option(
            "--schematic/--full",
            help="Draw groups with their numbers, or every device. Default: groups above 64 "
            "devices.",
        ),
    ] = None,
    bandwidth: options.Bandwidth = None,
    latency: options.LatencyText = None,
    failed: options.Failed = None,
) -> None:
    """Draw a network: all devices of a small one, the groups of a large one.

    For example: hocket topology draw dgx1_v100 -o dgx1.svg
    """
    from hocket.plot.network import check_count, draw_network
    from hocket.plot.schematic import FULL, check_schematic, draw_schematic, failures_of
    from hocket.plot.style import check_picture

    check_picture(Path(output))
    spec = options.read_spec(topology, bandwidth, latency, failed)
    npus = counts_of(spec).npus - len(spec.failed_nodes)
    if schematic is False:
        check_count(spec.origin, npus)
    check_schematic(spec.origin, npus)
    network = build_topology(spec)
    if schematic is None:
        schematic = network.device_count > FULL
    if schematic:
        whole = build_topology(replace(spec, failed_nodes=(), failed_links=()))
        draw_schematic(
            whole, Path(output), failures_of(whole, spec.failed_nodes, spec.failed_links)
        )
    else:
        draw_network(network, Path(output))
    options.output().print(f"drawn to {output}")


def export(
    topology: Text,
    *,
    to: Annotated[str, Option("--to", metavar="KIND", help="infragraph or astra-sim.")],
    output: Annotated[str, Option("--output", "-o", metavar="FILE", help="The file to write.")],
    bandwidth: options.Bandwidth = None,
    latency: options.LatencyText = None,
    failed: options.Failed = None,
) -> None:
    """Write a network as a file of another tool.

    For example: hocket topology export dgx1_v100 --to infragraph -o dgx1.yaml
    """
    from hocket.topology.export import export_topology

    spec = options.read_spec(topology, bandwidth, latency, failed)
    export_topology(build_topology(spec), output, to=to)
    options.output().print(f"written to {output}")
