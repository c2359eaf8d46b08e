"""The state that points of a sweep share in a process: networks, workloads and files, made once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from hocket import _core
from hocket.collectives.collective import collective_on
from hocket.collectives.custom import is_own
from hocket.deployment.groups import at_once, collectives_of
from hocket.errors import SpecError
from hocket.sweeps.keys import Value
from hocket.topology.build import build_topology
from hocket.topology.costs import cost_of
from hocket.topology.slow import read_slow
from hocket.topology.spec import CostsSpec, TopologySpec
from hocket.topology.text import from_text, is_dumps, label_of, read_failures

T = TypeVar("T")

MOST_KEPT = 64
"""Networks that are kept; what was not used for longest goes."""


@dataclass(frozen=True)
class Loaded:
    """The files of a sweep: read once by its starter and sent to all processes.

    Attributes
    ----------
    topologies
        By the text that names them.
    workloads, transformers, jobs
        Likewise.
    collectives
        Texts of files by their names.
    costs
        Of networks whose files have none.
    algorithms
        That may plan for candidates of a design.
    """

    topologies: Mapping[str, TopologySpec] = field(default_factory=dict)
    workloads: Mapping[str, Any] = field(default_factory=dict)
    transformers: Mapping[str, Any] = field(default_factory=dict)
    jobs: Mapping[str, Any] = field(default_factory=dict)
    collectives: Mapping[str, str] = field(default_factory=dict)
    costs: CostsSpec | None = None
    algorithms: tuple[str, ...] = ()


@dataclass(frozen=True)
class SweptNetwork:
    """A network of a sweep: as it was read, made, and what it costs."""

    spec: TopologySpec
    topology: _core.Topology
    cost: float | None


class SweepInputs:
    """Makes what points name, and keeps what other points name too."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self._networks: OrderedDict[tuple[object, ...], SweptNetwork] = OrderedDict()

    def network(self, point: Mapping[str, Value], key: str = "topology") -> SweptNetwork:
        """Return the network of a point.

        Raises
        ------
        SpecError
            If it cannot be made.
        """
        names = (key, "bandwidth", "latency", "failed", "slow", "groups")
        wanted = tuple(point.get(name) for name in names)
        return _kept(self._networks, wanted, lambda: self._made(point, key))

    def _made(self, point: Mapping[str, Value], key: str) -> SweptNetwork:
        spec = self.spec(point, key)
        if spec.costs is None and self.loaded.costs is not None:
            spec = replace(spec, costs=self.loaded.costs)
        cost = cost_of(spec)
        return SweptNetwork(spec, build_topology(spec), None if cost is None else cost.total)

    def spec(self, point: Mapping[str, Value], key: str = "topology") -> TopologySpec:
        """Read the network of a point, as ``--topology`` and its companions are read."""
        text = str(point[key])
        bandwidth, latency = point.get("bandwidth"), point.get("latency")
        known = self.loaded.topologies.get(text)
        if known is None:
            rates = None if bandwidth is None else [str(bandwidth)]
            delays = None if latency is None else [str(latency)]
            known = from_text(text, bandwidth=rates, latency=delays, option=key)
        elif bandwidth is not None or latency is not None:
            field = "latency" if bandwidth is None else "bandwidth"
            raise SpecError(field, f"{text} has its own", "leave it out")
        failed = point.get("failed")
        if isinstance(failed, tuple) and failed:
            nodes, links = read_failures(failed, option="failed")
            known = known.with_failures(
                [*known.failed_nodes, *nodes], [*known.failed_links, *links]
            )
        slow = point.get("slow")
        if isinstance(slow, tuple):
            known = known.with_slow(read_slow(slow, option="slow"), "slow")
        if "groups" in point:
            known = replace(known, groups=str(point["groups"]), groups_from="groups")
        return known

    def collective(self, point: Mapping[str, Value], topology: _core.Topology) -> _core.Collective:
        """Make the collective of a point."""
        kind = str(point.get("collective", "all-reduce"))
        if is_own(kind):
            from hocket.collectives.yaml import collective_from_text, collective_from_words

            for name in ("size", "npus", "root", "process_groups"):
                if name in point:
                    raise SpecError(name, f"{kind} has its own", "leave it out")
            if kind not in self.loaded.collectives:
                return collective_from_words(kind, topology)
            return collective_from_text(self.loaded.collectives[kind], kind, topology)
        if "size" not in point:
            raise SpecError("size", "there is none", "give bytes, as 256 MB")
        given = {name: point[name] for name in ("npus", "root") if name in point}
        size: Any = point["size"]
        if "process_groups" not in point:
            return collective_on(kind, topology, size, **given)  # type: ignore[arg-type]
        return at_once(collectives_of(str(point["process_groups"]), kind, topology, size, given))


def _kept(
    known: OrderedDict[tuple[object, ...], T], key: tuple[object, ...], make: Callable[[], T]
) -> T:
    """Return the value of a key, made if there is none; the last used are kept."""
    if key in known:
        known.move_to_end(key)
        return known[key]
    made = make()
    known[key] = made
    if len(known) > MOST_KEPT:
        known.popitem(last=False)
    return made


def names_file(text: str) -> bool:
    """Return whether a text names a topology file rather than a builder or a shipped machine."""
    head = text.partition("=")[2] if label_of(text) is not None else text
    head = head.partition("@")[0]
    return is_dumps(head) or "/" in head or Path(head).suffix in (".yml", ".yaml", ".xml", ".txt")
