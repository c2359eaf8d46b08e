"""Measurements of namespaces without a plan: the rates of links, and the time of a step between ranks.

Data goes at 1448 of 1514 bytes of a link's rate, which the kernel keeps closely. A message takes longer by
what a program needs to wake up, sum and send on, whatever its bytes.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from hocket import _core
from hocket._results import picoseconds
from hocket.errors import InfeasibleError
from hocket.plans.plan import Plan
from hocket.plans.planner import plan as make_plan
from hocket.simulation.run import simulate
from hocket_testbed.namespaces import inside
from hocket_testbed.network import NetworkSpec
from hocket_testbed.plan_connections import on_network
from hocket_testbed.priority import promptly
from hocket_testbed.rank_threads import gathered
from hocket_testbed.shaping import GOODPUT

__all__ = ["Calibration", "calibrate_network", "model_of", "predicted"]

_WARM = 0.4
_LASTS = 1.0
_TIMES = 3
_SECONDS = 4
_SAID = bytes(1 << 20)
_LEAST_READ = 1 << 17
_FEW = 4
_STALLED = 10.0
_CALLS = 15
_MESSAGE = 250_000
_SHORT = 64
_UNIT = 1_000_000
"""A latency that all links have when steps are counted [ps]."""


@dataclass(frozen=True)
class Calibration:
    """The measurements before plans run.

    Attributes
    ----------
    alone
        Data that one link carried, in relation to what a shaped link carries at its rate.
    together
        The same of each link while all carried data.
    delay
        What a message takes on a link besides its bytes and the link's latency [s]. Waking up whoever waits
        for it takes time; but the queue lets frames go as soon as their first byte is due, so that messages
        are there before their last byte is. Where that is more, the delay is below 0.
    short
        The same of a message of few bytes, which nothing can be ahead of; measured where links take time.
    """

    alone: float
    together: tuple[float, ...]
    delay: float
    short: float | None = None

    @property
    def besides(self) -> float:
        """The time of a message on an idle link besides its bytes and the latency [s]."""
        return max(self.delay, self.short or 0.0, 0.0)

    @property
    def ahead(self) -> float:
        """By how much messages are there before their last byte is due [s]."""
        return self.besides - self.delay

    @property
    def worst(self) -> float:
        """The rate that is furthest off, of all links together; over loopback they are not measured."""
        return max(self.together, key=lambda each: abs(each - 1), default=self.alone)


def calibrate_network(spec: NetworkSpec, *, real_time: bool = True) -> Calibration:
    """Measure what links carry and what a step takes.

    Raises
    ------
    InfeasibleError
        Where nothing arrives.
    """
    if spec.loopback:
        alone = _share_alone(spec, real_time=real_time)
        return Calibration(alone, (), _delay(spec, alone, _MESSAGE, real_time=real_time))
    with promptly(real_time):
        alone = _alone(_shares(spec, [0])[0] for _ in range(_SECONDS))
        together = _shares(spec, range(len(spec.rates)))
    delay = _delay(spec, alone, _MESSAGE, real_time=real_time)
    short = _delay(spec, alone, _SHORT, real_time=real_time) if spec.latency_ps else None
    return Calibration(alone, tuple(together), delay, short)


def model_of(spec: NetworkSpec, calibration: Calibration) -> _core.Topology:
    """Return the network for simulations: rates of data, and the extra cost of messages.

    Devices pass on packets, not messages, so they cut through. A delay below 0 is an option of the
    simulation, see :func:`predicted`.
    """
    topology = spec.topology
    latency = spec.latency_ps + picoseconds(calibration.besides)
    share = float(GOODPUT) * calibration.alone
    return _core.Topology.from_arrays(
        topology.name,
        topology.device_names,
        topology.npu_count,
        topology.switch_limits,
        topology.link_src,
        topology.link_dst,
        [round(rate * share) for rate in spec.rates],
        [latency] * topology.link_count,
        [
            (kind, size, round(spec.rate_bytes * share), latency, False)
            for kind, size, *_ in topology.dimensions
        ],
        switching="cut-through",
        groups=topology.groups,
    )


def predicted(plan: Plan, calibration: Calibration) -> float:
    """Simulate a plan on the network of :func:`model_of`; give its time [s]."""
    ahead = picoseconds(calibration.ahead)
    return _core.simulate(plan.core, ahead_ps=ahead).time_ps / 1e12


def _alone(shares: Iterable[float]) -> float:
    """Return what a link carries of what it carried in each of several seconds.

    What disturbs a second makes it carry less; only the last read can make it seem more, a little.
    """
    return sorted(shares)[-2]


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


def _delay(spec: NetworkSpec, rate_share: float, message: int, *, real_time: bool) -> float:
    """Time messages of so many bytes between two ranks; give what each takes besides its bytes [s]."""
    slow = model_of(spec, Calibration(rate_share, (), _UNIT / 1e12))
    made = _between_two(slow, 2 * message)
    at_once = on_network(made, model_of(spec, Calibration(rate_share, (), 0.0)))
    predicted = simulate(at_once.verify()).time_ps
    plan = on_network(made, slow).verify()
    steps = (simulate(plan).time_ps - predicted) / _UNIT
    times = _timed(spec, plan, _CALLS, real_time=real_time)
    # What disturbs a run makes it longer: a quarter are quicker than what is taken.
    return (times[_CALLS // 4] - predicted / 1e12) / steps


def _share_alone(spec: NetworkSpec, *, real_time: bool) -> float:
    """Time two messages, long and short; give what a link carried, in relation to what it should."""
    model = model_of(spec, Calibration(1.0, (), 0.0))
    times, predicted = [], []
    for size in (_MESSAGE, round(max(_LASTS * min(spec.goodput), 5 * _MESSAGE))):
        plan = _between_two(model, 2 * size).verify()
        predicted.append(simulate(plan).time_ps / 1e12)
        times.append(_timed(spec, plan, _TIMES, real_time=real_time)[_TIMES // 2])
    return (predicted[1] - predicted[0]) / (times[1] - times[0])


def _between_two(model: _core.Topology, size: int) -> Plan:
    """Plan an all-reduce between two NPUs, neighbours where there are any: half goes over, and back."""
    if model.npu_count < 2:
        raise InfeasibleError("topology", "it has one NPU", "give one that has two")
    pairs = zip(model.link_src.tolist(), model.link_dst.tolist(), strict=True)
    pair = next((ends for ends in pairs if max(ends) < model.npu_count), (0, 1))
    return make_plan("all-reduce", model, size=size, algorithm="ring", chunks=1, npus=pair)


def _timed(spec: NetworkSpec, plan: Plan, times: int, *, real_time: bool) -> list[float]:
    """Return the times of a plan after it ran once to warm up, the fastest first [s]."""
    with gathered(spec, plan, real_time=real_time) as gang:
        gang.run()
        return sorted(gang.run() for _ in range(times))
