"""Source ports for paths across a Clos of namespaces, found in three ways.

By the model of the kernel's hash, by the kernel's own answer (``ip route get``), and by probes alone,
which know nothing of the switches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hocket.errors import InfeasibleError
from hocket.steering.calibration import probe_port
from hocket.steering.hashes import Header, Stage, find_port
from hocket_testbed.clos import ClosSpec
from hocket_testbed.namespaces import inside
from hocket_testbed.routes import ways_out

__all__ = ["METHODS", "PORTS", "Wanted", "port_for", "stages"]

METHODS = ("model", "route-get", "probes")
"""How a source port is found: by the model of the hash, by ``ip route get``, by probes alone."""
PORTS = (10_000, 32_767)
"""From which ports are taken: below those that Linux gives programs."""
_ASKED = 32


class Wanted(NamedTuple):
    """A path between two hosts."""

    src: int
    """The host that sends."""
    dst: int
    """The host that receives, below another ToR."""
    up: int
    """The next hop that the first ToR is to choose, from 0."""
    down: int | None = None
    """The spine's link to the second ToR, or None where any will do."""


def port_for(
    spec: ClosSpec, method: str, header: Header, wanted: Wanted, taken: Iterable[int] = ()
) -> int:
    """Find a source port for a path, trying the header's own first.

    Parameters
    ----------
    spec : ClosSpec
        The Clos, which must be there unless `method` is ``"model"``.
    method : str
        One of ``METHODS``.
    header : Header
        The flow's.
    wanted : Wanted
        Its path.
    taken : iterable of int
        Ports that are in use.

    Raises
    ------
    InfeasibleError
        Where no port leads there.
    """
    used = list(taken)
    if method == "model":
        forth = stages(spec, wanted)
        return find_port(header, forth, ports=PORTS, first=header.sport, taken=used)
    if method == "probes":
        with inside(spec.namespace(f"host{wanted.src}")):
            answers = _answers(spec, wanted)
            return probe_port(header, answers, ports=PORTS, first=header.sport, taken=used)
    return _by_kernel(spec, header, wanted, used)


def stages(spec: ClosSpec, wanted: Wanted, *, ipv6: bool = False) -> list[Stage]:
    """Return what the switches of a path are to choose."""
    tor = spec.tor_hash(spec.tor_of(wanted.src), ipv6=ipv6)
    forth = [Stage(tor, spec.spines * spec.links, wanted.up)]
    if wanted.down is not None:
        spine = spec.spine_hash(wanted.up // spec.links, ipv6=ipv6)
        forth.append(Stage(spine, spec.links, wanted.down))
    return forth


def _answers(spec: ClosSpec, wanted: Wanted) -> dict[int, str]:
    """Return the addresses that answer to probes along a path, by the number of hops."""
    spine, link = divmod(wanted.up, spec.links)
    answers = {2: spec.spine_address(spine, spec.tor_of(wanted.src), link)}
    if wanted.down is not None:
        answers[3] = spec.tor_address(spine, spec.tor_of(wanted.dst), wanted.down)
    return answers


def _by_kernel(spec: ClosSpec, header: Header, wanted: Wanted, taken: Sequence[int]) -> int:
    src, dst = spec.tor_of(wanted.src), spec.tor_of(wanted.dst)
    spine, link = divmod(wanted.up, spec.links)
    asked = [(f"tor{src}", f"host{wanted.src}", spec.uplink(wanted.up))]
    if wanted.down is not None:
        ends = (spec.downlink(src, link), spec.downlink(dst, wanted.down))
        asked.append((f"spine{spine}", *ends))
    ports = (*range(header.sport, PORTS[1] + 1), *range(PORTS[0], header.sport))
    left = [port for port in ports if port not in taken]
    for begin in range(0, len(left), _ASKED):
        some = [header.by(port) for port in left[begin : begin + _ASKED]]
        for device, into, out in asked:
            said = ways_out(spec.namespace(device), some, into)
            some = [each for each, way in zip(some, said, strict=True) if way == out]
        if some:
            return some[0].sport
    raise InfeasibleError(
        None, f"none of {len(left)} ports leads by {wanted}", "take another path or range"
    )
