"""Networks written as files: hocket's own, and those of other tools."""

from __future__ import annotations

from os import PathLike

from hocket._checks import instance_of, one_of, path_of
from hocket._core import Topology
from hocket.files.atomic import write_text

KINDS = ("yaml", "infragraph", "astra-sim")


def export_topology(topology: Topology, path: str | PathLike[str], *, to: str) -> None:
    """Write a network as a file of hocket's own or of another tool, whole or not at all.

    Parameters
    ----------
    topology
        The network.
    path
        The file.
    to
        ``yaml`` for hocket's own file of devices and links, ``infragraph``, or ``astra-sim`` for the
        network file of its analytical back ends.

    Raises
    ------
    SpecError
        If there is no such kind, or the file cannot be written.
    InfeasibleError
        If the format cannot express the network, with the reason.
    """
    instance_of(Topology, "topology", topology, "give one of hk.topology")
    one_of("to", to, KINDS)
    target = path_of("path", path)
    if to == "yaml":
        from hocket.topology.yaml_write import spec_of, yaml_of_links

        write_text(target, yaml_of_links(spec_of(topology)))
        return
    if to == "astra-sim":
        from hocket.topology.astra import astra_network

        write_text(target, astra_network(topology))
        return
    from hocket.topology.infragraph_write import write_infragraph

    write_infragraph(topology, target)
