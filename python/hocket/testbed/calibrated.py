"""What a network of namespaces does without a plan: what links carry, and what a step between ranks takes.

Data goes at 1448 of 1514 bytes of a link's rate, which the kernel keeps closely. A step takes what a
program needs to wake up, sum and send on, whatever its bytes.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from statistics import median

from hocket import _core
from hocket.errors import InfeasibleError
from hocket.plans.planner import plan as make_plan
from hocket.simulation.run import simulate
from hocket.testbed.gang import gathered
from hocket.testbed.namespaces import inside
from hocket.testbed.network import NetworkSpec
from hocket.testbed.priority import promptly
from hocket.testbed.shaping import GOODPUT
from hocket.testbed.ways import on_network

__all__ = ["Calibration", "calibrate_network", "model_of"]

_WARM = 0.4
_LASTS = 1.0
_TIMES = 3
_SAID = bytes(1 << 20)
_LEAST_READ = 1 << 17
_FEW = 4
_STALLED = 10.0
_STEPS = 9
_UNIT = 1_000_000
"""A latency that all links have when steps are counted [ps]."""


@dataclass(frozen=True)
class Calibration:
    """What was measured before plans ran.

    Attributes
    ----------
    alone
        Data that one link carried, in relation to what a shaped link carries at its rate.
    together
        The same of each link while all carried data.
    step
        What it takes from a rank to the next on a link besides the bytes [s].
    """

    alone: float
    together: tuple[float, ...]
    step: float

    @property
    def worst(self) -> float:
        """Of the links together, the one that is furthest off."""
        return max(self.together, key=lambda each: abs(each - 1))


def calibrate_network(spec: NetworkSpec, *, real_time: bool = True) -> Calibration:
    """Measure what links carry and what a step takes.

    Raises
    ------
    InfeasibleError
        Where nothing arrives.
    """
    with promptly(real_time):
        alone = median(_shares(spec, [0])[0] for _ in range(_TIMES))
        together = _shares(spec, range(len(spec.rates)))
    return Calibration(alone, tuple(together), _step(spec, real_time=real_time))


def model_of(spec: NetworkSpec, calibration: Calibration | None = None) -> _core.Topology:
    """Give the network as simulations are to have it: with the rates of data, and the time of a step.

    Devices pass on packets, not messages, so they cut through.
    """
    topology = spec.topology
    step = round(1e12 * calibration.step) if calibration is not None else _UNIT
    share = float(GOODPUT) * (calibration.alone if calibration is not None else 1.0)
    return _core.Topology.from_arrays(
        topology.name,
        topology.device_names,
        topology.npu_count,
        topology.switch_limits,
        topology.link_src,
        topology.link_dst,
        [round(rate * share) for rate in spec.rates],
        [step] * topology.link_count,
        [
            (kind, size, round(spec.rate_bytes * share), step, False)
            for kind, size, *_ in topology.dimensions
        ],
        switching="cut-through",
        groups=topology.groups,
    )


def _shares(spec: NetworkSpec, links: Sequence[int]) -> list[float]:
    """Send data over links all at once; give what they carried, in relation to what they should."""
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        receivers = []
        for i, link in enumerate(links):
            near, far = spec.ends(link)
            with inside(far.namespace):
                listener = stack.enter_context(socket.create_server((far.address, 0)))
            with inside(near.namespace):
                out = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            out.settimeout(_STALLED)
            with suppress(OSError):
                out.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
            try:
                out.bind((near.address, 0))
                out.connect(listener.getsockname())
            except OSError as error:
                raise InfeasibleError(None, f"link {link} carries nothing: {error}") from None
            into = stack.enter_context(listener.accept()[0])
            if len(links) > _FEW:
                # Fewer, longer reads.
                into.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _LEAST_READ)
            for each in (out, into):
                each.setblocking(False)
            selector.register(out, selectors.EVENT_WRITE, None)
            selector.register(into, selectors.EVENT_READ, i)
            receivers.append(into)
        marks: list[list[tuple[float, int]]] = [[] for _ in links]
        counts = [0] * len(links)
        room = bytearray(len(_SAID))
        begun = time.perf_counter()
        while (now := time.perf_counter()) < begun + _WARM + _LASTS:
            for key, _ in selector.select(_WARM):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                i = key.data
                try:
                    if i is None:
                        connection.send(_SAID)
                        continue
                    counts[i] += connection.recv_into(room)
                except BlockingIOError:
                    continue
                now = time.perf_counter()
                if now > begun + _WARM:
                    del marks[i][1:]
                    marks[i].append((now, counts[i]))
    shares = []
    for link, mark in zip(links, marks, strict=True):
        if len(mark) < 2:
            raise InfeasibleError(None, f"link {link} carried nothing in {_LASTS:g} s")
        (first, before), (last, after) = mark
        should = spec.rates[link] * float(GOODPUT) * (last - first)
        shares.append((after - before) / should)
    return shares


def _step(spec: NetworkSpec, *, real_time: bool) -> float:
    """Time a few bytes between two ranks, whose steps the simulation counts; give the time of one [s]."""
    model = model_of(spec)
    if model.npu_count < 2:
        raise InfeasibleError("topology", "it has one NPU", "give one that has two")
    pairs = zip(model.link_src.tolist(), model.link_dst.tolist(), strict=True)
    pair = next((ends for ends in pairs if max(ends) < model.npu_count), (0, 1))
    tiny = make_plan("all-reduce", model, size=8, algorithm="ring", chunks=1, npus=pair)
    plan = on_network(tiny, model).verify()
    steps = simulate(plan).time_ps / _UNIT
    with gathered(spec, plan, real_time=real_time) as gang:
        times = [gang.run() for _ in range(_STEPS)]
    return median(times) / steps
