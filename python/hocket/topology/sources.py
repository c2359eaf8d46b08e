"""Networks from elsewhere: shipped machines, files, builders by their text, graphs."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from hocket._checks import instance_of, list_of
from hocket._core import Topology
from hocket.errors import SpecError
from hocket.topology import machines
from hocket.topology.build import build_topology
from hocket.topology.groups import GroupsLike, grouped
from hocket.topology.slow import read_slow
from hocket.topology.text import from_text, read_failures
from hocket.units import shown

if TYPE_CHECKING:
    from hocket.units import Duration, Quantity

TopologyLike: TypeAlias = Topology | str | PathLike[str]
"""A network, or what :func:`load` makes one of."""


def load(
    name_or_path: str | PathLike[str],
    *,
    bandwidth: Quantity | Sequence[Quantity] | None = None,
    latency: Duration | Sequence[Duration] | None = None,
    failed: str | Sequence[str] = (),
    groups: GroupsLike | None = None,
    nodes: int | None = None,
    slow: str | Sequence[str] = (),
) -> Topology:
    """Return a network as ``--topology`` takes it: a machine, a file, a builder such as ``"mesh:4x4"``.

    Files are hocket's own YAML, ASTRA-sim's network ``.yml``, what NCCL writes to
    ``NCCL_TOPO_DUMP_FILE``, or what ``nvidia-smi topo -m`` prints.

    Parameters
    ----------
    name_or_path
        A name, a path, or a builder with its sizes. A builder may have its links' bandwidth and latency in
        the text: ``"mesh:4x4@25GB/s,700ns"``. Dumps of several nodes may stand in one text:
        ``"dump:a.xml,b.xml"``, ``"dump:a.xml,nodes=2"``.
    bandwidth, latency
        Of each link of a builder; of a product one for all dimensions, or a list with one for each.
    failed
        What has failed: devices ``"A"``, and links ``"A,B"``.
    groups
        Which NPUs form a node, as in :func:`hocket.topology.grouped`.
    nodes
        How many nodes are like the one whose dump the file is.
    slow
        What is slow: devices ``"A=50 Gb/s"``, and links ``"A,B=12.5 GB/s"``.

    Raises
    ------
    SpecError
        If there is no such network, something has failed or is slow that is not there, or `nodes` are like
        no dump.
    """
    return _load(
        name_or_path, bandwidth, latency, failed, groups, nodes, slow, option="name_or_path"
    )


def as_topology(value: object, *, field: str = "topology") -> Topology:
    """Return the network that a caller means: the network itself, or text as :func:`load` takes it.

    Parameters
    ----------
    value
        What the caller gave.
    field
        Which argument it was, for messages.

    Raises
    ------
    SpecError
        If it is neither, or there is no such network.
    """
    if isinstance(value, Topology):
        return value
    instance_of(str, "field", field, "name the argument")
    if isinstance(value, str | PathLike):
        return _load(value, None, None, (), None, None, (), option=field)
    raise SpecError(
        field,
        f"{shown(value)} is not a topology",
        "give one of hk.topology, or text such as 'dgx1_v100' or 'mesh:4x4@25GB/s,700ns'",
    )


def names() -> list[str]:
    """Names of the shipped machines."""
    return machines.names()


def _load(
    text: str | PathLike[str],
    bandwidth: Quantity | Sequence[Quantity] | None,
    latency: Duration | Sequence[Duration] | None,
    failed: str | Sequence[str],
    groups: GroupsLike | None,
    nodes: int | None,
    slow: str | Sequence[str],
    option: str,
) -> Topology:
    spec = from_text(str(text), bandwidth=bandwidth, latency=latency, option=option, nodes=nodes)
    devices, links = read_failures(_listed("failed", failed), option="failed")
    spec = spec.with_failures([*spec.failed_nodes, *devices], [*spec.failed_links, *links])
    slowed = read_slow(_listed("slow", slow), option="slow")
    topology = build_topology(spec.with_slow(slowed, "slow"))
    return topology if groups is None else grouped(topology, groups)


def _listed(field: str, given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list_of(field, given)
