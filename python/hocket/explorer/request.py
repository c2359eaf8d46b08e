"""The request of the live page's form, and the page that answers it.

Only networks and algorithms by name are taken, never files: a form that any web page could send must not
read, or run, what lies on the disk. What is asked for has a limit of size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar
from urllib.parse import parse_qs

from hocket import _core
from hocket._checks import did_you_mean
from hocket.errors import Error, SpecError
from hocket.explorer.page import MOST_RUNS, encode_runs, fill
from hocket.plans.algorithms import BUILTIN
from hocket.plans.plan import Plan
from hocket.plans.planner import plan
from hocket.plans.synthesis.options import PlanOptions
from hocket.simulation.run import Run, simulate
from hocket.topology import machines
from hocket.topology.build import build_topology, counts_of
from hocket.topology.slow import read_slow, slowed
from hocket.topology.text import from_text, is_builder
from hocket.units import shown

MOST_NPUS = 16_384
"""Of a network."""
MOST_BYTES = 1 << 30
"""That the transfers of a plan may take in memory."""
_KINDS = (
    "all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce", "gather", "scatter", "all-to-all",
)  # fmt: skip
_NETWORK = re.compile(r"[\w.-]+(?::[\w.:,-]+)?(?:@[\w./ ,µ]+)?")
_MOST_FIELDS = 20


@dataclass(frozen=True)
class PageRequest:
    """The request of a form, as texts."""

    topology: str = "dgx1_v100"
    collective: str = "all-reduce"
    size: str = "64MB"
    algorithm: str = "auto"
    failed: str = ""
    slow: str = ""

    FIELDS: ClassVar[tuple[str, ...]] = (
        "topology", "collective", "size", "algorithm", "failed", "slow",
    )  # fmt: skip

    @classmethod
    def of(cls, query: str, start: PageRequest) -> PageRequest:
        """Read a query; what it does not say is as at the start."""
        try:
            given = parse_qs(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            right = f"give {_MOST_FIELDS} at most"
            raise SpecError(None, "the address has too many fields", right) from None
        for name in given:
            if name not in cls.FIELDS:
                hint = did_you_mean(name, cls.FIELDS, f"they are {', '.join(cls.FIELDS)}")
                raise SpecError(None, f"the form has no {shown(name)}", hint)
        told = {name: given[name][-1].strip() for name in cls.FIELDS if name in given}
        return cls(**{**{name: getattr(start, name) for name in cls.FIELDS}, **told})

    def runs(self, time_limit: float) -> list[Run]:
        """Plan and simulate what is asked for, an algorithm a run.

        Raises
        ------
        Error
            Where that cannot be done.
        """
        algorithms = [each.strip() for each in self.algorithm.split(",") if each.strip()]
        if self.collective not in _KINDS:
            raise SpecError(
                "collective", f"{shown(self.collective)} is none", f"one of {', '.join(_KINDS)}"
            )
        for each in algorithms:
            if each not in BUILTIN:
                hint = did_you_mean(each, BUILTIN, "see `hocket plan --list`")
                raise SpecError("algorithm", f"{shown(each)} is not one of hocket's", hint)
        if not algorithms:
            right = f"name 1 to {MOST_RUNS}, separated by commas"
            raise SpecError("algorithm", "there is none", right)
        if not 1 <= len(algorithms) <= MOST_RUNS:
            raise SpecError(
                "algorithm",
                f"{len(algorithms)} do not fit next to each other",
                f"name 1 to {MOST_RUNS}, separated by commas",
            )
        network = self.network()
        if self.failed:
            network = _without(network, self.failed)
        if self.slow:
            network = slowed(network, read_slow(self.slow.split(), option="slow"))
        seconds = time_limit / (2 * len(algorithms))  # what is found is proved and drawn as well
        return [
            simulate(_plan(self, network, each, seconds), keep_services=True) for each in algorithms
        ]

    def network(self) -> _core.Topology:
        """Make the network, before anything fails.

        Raises
        ------
        Error
            Where there is no such network.
        """
        is_named = machines.known(self.topology) or is_builder(self.topology)
        if not is_named or not _NETWORK.fullmatch(self.topology):
            why = f"{shown(self.topology)} is neither a shipped machine nor a builder"
            right = "write one as dgx1_v100 or torus:4x4x4@25GB/s,700ns"
            raise SpecError("topology", why, did_you_mean(self.topology, machines.names(), right))
        try:
            spec = from_text(self.topology, bandwidth=None, latency=None, option="topology")
            count = counts_of(spec).npus
            if count > MOST_NPUS:
                right = f"the most that a page is made of is {MOST_NPUS:,}"
                raise SpecError("topology", f"{shown(self.topology)} has {count:,} NPUs", right)
            network: _core.Topology = build_topology(spec)
        except Error as error:
            remedy = error.remedy
            if error.field in ("bandwidth", "latency"):
                remedy = "write it behind @, as torus:4x4x4@25GB/s,700ns"
            raise SpecError("topology", error.why, remedy) from None
        return network

    def form(self) -> list[dict[str, Any]]:
        """Return the form that asks for the same."""
        choices = {
            "topology": machines.names(),
            "collective": list(_KINDS),
            "algorithm": list(BUILTIN),
        }
        labels = {
            "failed": "failed (A,B or A; blanks between)",
            "slow": "slow (A,B=12.5GB/s or A=50Gb/s; blanks between)",
        }
        return [
            {
                "name": name,
                "label": labels.get(name, name),
                "value": getattr(self, name),
                "choices": choices.get(name, []),
                "open": name != "collective",
            }
            for name in self.FIELDS
        ]


def _plan(asked: PageRequest, network: _core.Topology, algorithm: str, seconds: float) -> Plan:
    """Plan what is asked for; what searches, searches for so many seconds at most."""
    options = PlanOptions(time_limit=seconds, memory_limit=MOST_BYTES)
    return plan(asked.collective, network, size=asked.size, algorithm=algorithm, options=options)


def _without(network: _core.Topology, failed: str) -> _core.Topology:
    """Take away what has failed: ``A,B`` is a link, ``A`` a device."""
    parts = failed.split()
    links = [part for part in parts if "," in part]
    nodes = [part for part in parts if "," not in part]
    return network.without(nodes=nodes, links=links)


def answer(asked: PageRequest, time_limit: float) -> tuple[HTTPStatus, str]:
    """Return the page that a form asks for, or one that says in a sentence why there is none.

    Parameters
    ----------
    time_limit
        Seconds that all may take; searches have half of them.
    """
    try:
        runs = asked.runs(time_limit)
        titles = [run.plan.algorithm for run in runs] if len(runs) > 1 else None
        header, first, rest = encode_runs(runs, titles)
    except (Error, MemoryError) as error:
        said = str(error) if isinstance(error, Error) else "not enough memory; make it smaller"
        return HTTPStatus.BAD_REQUEST, refusal(asked, said)
    return HTTPStatus.OK, fill({**header, "form": asked.form()}, first, rest)


def refusal(asked: PageRequest, said: str) -> str:
    """Return a page that says why there is none of what is asked for."""
    message = {"format": 1, "kind": "message", "title": "hocket", "text": said}
    return fill({**message, "form": asked.form()})
