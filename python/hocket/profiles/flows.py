"""Maximum flows between devices of a network: what all links together carry from some NPUs to others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hocket._core import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Flows"]

_LARGEST_CAPACITY = (1 << 31) - 1


class Flows:
    """Finds maximum flows on a network.

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

    def widest(self, npu: int, *, is_back: bool = False) -> int:
        """Give the bandwidth of the widest link from an NPU, or to it [bytes/s]; 0 if there is none."""
        ends = self._dst if is_back else self._src
        return int(self._rate[ends == npu].max(initial=0))

    def are_joined(self, node: list[int]) -> bool:
        """Say whether a link leads from each NPU of a node to each other, but for a few pairs.

        Designs that leave pairs out leave out one for two NPUs at least: those that face each other.
        """
        has = np.zeros((self._npus, self._npus) if len(node) > 1 else (0, 0), bool)
        has[self._src[self._is_direct], self._dst[self._is_direct]] = True
        here = has[np.ix_(node, node)]
        missing = ~(here & here.T)
        np.fill_diagonal(missing, False)
        return bool(missing.sum() < len(node))

    def among(self, npus: list[int]) -> bytes:
        """Give the links among some NPUs as bytes: the same where their links are, in this order."""
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
        above: int = 0,
    ) -> float:
        """Give the largest flow from some NPUs to others over the links among some devices [bytes/s].

        Of links that lead to a switch or away from one, only those above some bandwidth count.

        Parameters
        ----------
        devices
            Whether each may carry it, (devices,).
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        count = self._count
        is_here = devices[self._src] & devices[self._dst] & (self._is_direct | (self._rate > above))
        keys = self._src[is_here] * count + self._dst[is_here]
        pairs, place = np.unique(keys, return_inverse=True)
        rates = np.zeros(len(pairs), np.int64)
        np.add.at(rates, place, self._rate[is_here])
        unit = max(1, -(-max(int(rates.sum()), 1) // _LARGEST_CAPACITY))
        own = np.minimum(rates // unit, _LARGEST_CAPACITY)
        far = np.full(len(sources) + len(ends), _LARGEST_CAPACITY)
        src = np.concatenate([pairs // count, np.full(len(sources), count), ends])
        dst = np.concatenate([pairs % count, sources, np.full(len(ends), count + 1)])
        units = np.concatenate([own, far]).astype(np.int32)
        shape = (count + 2, count + 2)
        capacities = csr_array((units, (src.astype(np.int32), dst.astype(np.int32))), shape=shape)
        found = float(maximum_flow(capacities, count, count + 1).flow_value) * unit
        return float(f"{found:.6g}")  # capacities were rounded to the unit
