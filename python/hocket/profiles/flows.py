"""Maximum flows between devices of a network: what all links together carry from some NPUs to others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hocket._core import Topology, bound
from hocket.collectives.collective import collective_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_PCIE = tuple(
    each * lanes * 1e9
    for each in (0.25, 0.5, 8 / 8.125, 16 / 8.125, 32 / 8.125, 64 * 242 / 2048)
    for lanes in (1, 2, 4, 8, 16)
)
"""What PCI Express of each generation carries over so many lanes, one way [bytes/s]."""
_CLOSE = 3e-4
"""Share by which topologies round such a rate."""
_NEVER = 1 << 63
"""Picoseconds that stand for no way at all."""
_LEAST_BYTES = 1_000_000
_BYTES_A_RATE = 1_000
"""Bandwidth of all links over the bytes of a message: so many that picoseconds tell bandwidths apart."""


class Flows:
    """Finds maximum flows and narrowest cuts on a network.

    hocket's own bound finds them. Without latencies, a broadcast from one NPU to another takes its bytes
    over the largest flow, and an all-reduce takes its bytes over the narrowest cut.

    Parameters
    ----------
    topology
        The network; parallel links count together.
    """

    def __init__(self, topology: Topology) -> None:
        self._count, self._npus = topology.device_count, topology.npu_count
        self._src = topology.link_src.astype(np.int64)
        self._dst = topology.link_dst.astype(np.int64)
        self._rate = topology.link_bandwidth.astype(np.int64)
        self._is_direct = np.maximum(self._src, self._dst) < self._npus
        known = np.array(_PCIE)
        near = np.abs(self._rate[:, None] - known) <= _CLOSE * known
        self._is_pcie = near.any(axis=1) & ~self._is_direct
        self._limits = topology.switch_limits

    def widest(self, npu: int, *, is_back: bool = False) -> int:
        """Return the bandwidth of the widest link from an NPU, or to it [bytes/s]; 0 if there is none."""
        ends = self._dst if is_back else self._src
        return int(self._rate[ends == npu].max(initial=0))

    def has_pcie(self, devices: NDArray[np.bool_]) -> bool:
        """Return whether a link between some devices is one of PCI Express."""
        return bool((self._is_pcie & devices[self._src] & devices[self._dst]).any())

    def reached(self, *, is_back: bool = False) -> NDArray[np.bool_]:
        """Return for each device whether data from the first NPU gets there, or its data to that NPU."""
        src, dst = (self._dst, self._src) if is_back else (self._src, self._dst)
        found = np.zeros(self._count, bool)
        found[0], count = True, 0
        while count < (count := int(found.sum())):
            found[dst[found[src]]] = True
        return found

    def are_joined(self, node: list[int]) -> bool:
        """Return whether a link leads from each NPU of a node to each other, but for a few pairs.

        Designs that leave pairs out leave out one for two NPUs at least: those that face each other.
        """
        has = np.zeros((self._npus, self._npus) if len(node) > 1 else (0, 0), bool)
        has[self._src[self._is_direct], self._dst[self._is_direct]] = True
        here = has[np.ix_(node, node)]
        missing = ~(here & here.T)
        np.fill_diagonal(missing, False)
        return bool(missing.sum() < len(node))

    def among(self, npus: list[int]) -> bytes:
        """Return the links among some NPUs as bytes: the same where their links are, in this order."""
        place = np.full(self._count, -1)
        place[npus] = np.arange(len(npus))
        is_here = (place[self._src] >= 0) & (place[self._dst] >= 0)
        links = np.stack([place[self._src], place[self._dst], self._rate])[:, is_here]
        return bytes(links[:, np.lexsort(links)].tobytes())

    def most(
        self,
        devices: NDArray[np.bool_],
        sources: list[int],
        ends: list[int],
        *,
        above: int = -1,
    ) -> float:
        """Return the largest flow from some NPUs to others over the links among some devices [bytes/s].

        Parameters
        ----------
        devices
            Whether each may carry it, (devices,).
        above
            Of links that lead to a switch or away from one, only those with more bandwidth count, and none
            of PCI Express; by default all.
        """
        merged, size = self._merged(devices, [sources, ends], above)
        return _rate(merged, size, "broadcast")

    def narrowest(
        self,
        devices: NDArray[np.bool_],
        parts: Sequence[list[int]],
        *,
        above: int = -1,
        pcie: float = 1.0,
    ) -> float:
        """Return what the narrowest cut between parts lets through, the one way or the other [bytes/s].

        Parameters
        ----------
        devices, above
            As of :meth:`most`.
        parts
            NPUs that no cut tells apart, as those of a node; at least two of them.
        pcie
            Share of its rate that a link of PCI Express counts with.
        """
        merged, size = self._merged(devices, parts, above, pcie)
        return _rate(merged, size, "all-reduce")

    def spread(
        self, devices: NDArray[np.bool_], parts: Sequence[list[int]], *, above: int = -1
    ) -> float:
        """Return what each part sends to all others alike at most [bytes/s]; as :meth:`narrowest`."""
        merged, size = self._merged(devices, parts, above)
        found = bound(merged, collective_on("all-to-all", merged, size))
        if found.time_ps >= _NEVER:
            return 0.0
        return float(f"{size * (1 - 1 / len(parts)) * 1e12 / found.time_ps:.6g}")

    def _merged(
        self, devices: NDArray[np.bool_], parts: Sequence[list[int]], above: int, pcie: float = 1.0
    ) -> tuple[Topology, int]:
        """Return the network with one NPU for each part, and bytes that tell its bandwidths apart."""
        place = np.full(self._count, -1)
        for number, part in enumerate(parts):
            place[part] = number
        rest = np.flatnonzero((place < 0) & devices)
        place[rest] = np.arange(len(parts), len(parts) + len(rest))
        is_here = devices[self._src] & devices[self._dst]
        if above >= 0:
            is_here &= self._is_direct | ((self._rate > above) & ~self._is_pcie)
        counted = np.where(self._is_pcie, (self._rate * pcie).astype(np.int64), self._rate)
        src, dst, rate = place[self._src[is_here]], place[self._dst[is_here]], counted[is_here]
        is_between = src != dst
        count = len(parts) + len(rest)
        keys = src[is_between] * count + dst[is_between]
        pairs, at = np.unique(keys, return_inverse=True)
        rates = np.zeros(len(pairs), np.uint64)
        np.add.at(rates, at, rate[is_between].astype(np.uint64))
        limits = [
            None if device < self._npus else self._limits[device - self._npus]
            for device in rest.tolist()
        ]
        merged = Topology.from_arrays(
            "merged",
            [str(device) for device in range(count)],
            len(parts),
            limits,
            (pairs // count).astype(np.uint32),
            (pairs % count).astype(np.uint32),
            rates,
            np.zeros(len(pairs), np.uint64),
        )
        return merged, max(int(rates.sum()) // _BYTES_A_RATE, _LEAST_BYTES)


def _rate(topology: Topology, size: int, kind: str) -> float:
    """Return the bandwidth of the cut of a collective of all NPUs [bytes/s]; the first one is the root."""
    found = bound(topology, collective_on(kind, topology, size))
    if found.time_ps >= _NEVER:
        return 0.0
    rate = size * 1e12 / dict(found.components)["cut"]
    return float(f"{rate:.6g}")  # times are rounded to picoseconds
