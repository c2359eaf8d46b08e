"""Equivalent failures of a network: those that no walk from the failed part tells apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hocket._core import Topology

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Words = npt.NDArray[np.uint64]

_STEP = 0x9E3779B97F4A7C15
_MIXES = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


class Symmetry:
    """Tells marked parts of a network apart, by colour refinement after marking them.

    Parts that a symmetry of the network maps to each other get the same key, whatever the numbers and names
    of devices. Parts of unlike keys are not alike; the reverse is not certain, but networks that defeat
    refinement after marking are made for that.

    References
    ----------
    Weisfeiler, Leman: The reduction of a graph to canonical form, 1968. Steele, Lea, Flood: Fast splittable
    pseudorandom number generators, OOPSLA 2014 (the mixing of words).
    """

    def __init__(self, topology: Topology) -> None:
        import numpy as np

        count, groups = topology.device_count, topology.groups
        members = [(npu, count + i) for i, group in enumerate(groups) for npu in group]
        src = np.array([npu for npu, _ in members], dtype=np.int64)
        dst = np.array([group for _, group in members], dtype=np.int64)
        self._src = np.concatenate([topology.link_src.astype(np.int64), src])
        self._dst = np.concatenate([topology.link_dst.astype(np.int64), dst])
        kinds = _mixed(topology.link_bandwidth) + topology.link_latency_ps
        self._links = _mixed(np.concatenate([kinds, np.ones(len(members), dtype=np.uint64)]))
        limits = [0 if limit is None else limit + 2 for limit in topology.switch_limits]
        devices = [1] * topology.npu_count + [limit + 2 for limit in limits] + [0] * len(groups)
        self._devices = _mixed(np.array(devices, dtype=np.uint64))
        self._by_src = _Sums(self._src, len(devices))
        self._by_dst = _Sums(self._dst, len(devices))

    def key(self, devices: Iterable[int], *, ordered: bool = False) -> bytes:
        """Return what is common to all sets, or if ordered to all sequences, of devices that are equal."""
        import numpy as np

        colours = self._devices.copy()
        marked = list(devices)
        marks = np.arange(len(marked), dtype=np.uint64) if ordered else np.uint64(0)
        colours[marked] = _mixed(colours[marked] + marks + np.uint64(7))
        kinds = 0
        while True:
            found = len(np.unique(colours))
            if found <= kinds:
                return np.sort(colours).tobytes()
            kinds = found
            ahead = self._by_src.of(_mixed(colours[self._dst] + self._links))
            behind = self._by_dst.of(_mixed(colours[self._src] ^ self._links))
            colours = _mixed(_mixed(colours) + ahead * np.uint64(3) + behind)


def alike_npus(topology: Topology, owner: npt.NDArray[np.int64]) -> _Words:
    """Return a word for each NPU, the same for those that have the same links over the same switches.

    Colours of switches are refined by their links until nothing more is told apart. NPUs keep one colour,
    so that those far away make no difference: what flows from an NPU to others ends at the next.

    Parameters
    ----------
    topology
        The network.
    owner
        The node of each device, (devices,); links inside a node and others are told apart.
    """
    import numpy as np

    src, dst = topology.link_src.astype(np.int64), topology.link_dst.astype(np.int64)
    links = _mixed(_mixed(topology.link_bandwidth) + (owner[src] == owner[dst]))
    count, npus = topology.device_count, topology.npu_count
    by_src, by_dst = _Sums(src, count), _Sums(dst, count)
    ends = _mixed((np.arange(count) < npus).astype(np.uint64))
    colours, kinds = ends, 0
    while True:
        ahead = by_src.of(_mixed(colours[dst] + links))
        behind = by_dst.of(_mixed(colours[src] ^ links))
        refined = _mixed(_mixed(colours) + ahead * np.uint64(3) + behind)
        found = len(np.unique(refined[npus:]))
        if found <= kinds:
            return refined[:npus]
        kinds = found
        colours = np.where(np.arange(count) < npus, ends, refined)


class _Sums:
    """Sums what belongs to each device that has any."""

    def __init__(self, device: npt.NDArray[np.int64], count: int) -> None:
        import numpy as np

        self._order = np.argsort(device, kind="stable")
        self._has, self._first = np.unique(device[self._order], return_index=True)
        self._count = count

    def of(self, values: _Words) -> _Words:
        import numpy as np

        sums = np.zeros(self._count, dtype=np.uint64)
        if len(values):
            sums[self._has] = np.add.reduceat(values[self._order], self._first)
        return sums


def _mixed(words: _Words) -> _Words:
    """Scramble words, each by itself."""
    import numpy as np

    mixed: _Words = words.astype(np.uint64) + np.uint64(_STEP)
    for shift, factor in _MIXES:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed
