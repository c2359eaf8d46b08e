"""Networks: builders, shipped machines, files, graphs.

Bandwidths and latencies are text with a unit (``"25 GB/s"``, ``"200 Gb/s"``, ``"700 ns"``) or numbers in
bytes per second and seconds (``25e9``, ``700e-9``); they are those of each link, one direction. Every
function raises :class:`hocket.SpecError` for input that makes no sense.
"""

from hocket._core import Topology
from hocket.topology import families
from hocket.topology.costs import NetworkCost, price
from hocket.topology.export import export_topology
from hocket.topology.families import *  # noqa: F403
from hocket.topology.groups import grouped
from hocket.topology.networkx import from_networkx, to_networkx
from hocket.topology.offload import offloaded
from hocket.topology.products import product
from hocket.topology.sources import as_topology, load, names

__all__ = [
    "NetworkCost",
    "Topology",
    "as_topology",
    "export_topology",
    "from_networkx",
    "grouped",
    "load",
    "names",
    "offloaded",
    "price",
    "product",
    "to_networkx",
]
__all__ += families.__all__


def __dir__() -> list[str]:
    return __all__
