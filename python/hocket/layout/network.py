"""The layout of any network: the one that all pictures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hocket.layout.product import product_layout
from hocket.layout.tiers import tiers_layout

if TYPE_CHECKING:
    from hocket import _core
    from hocket.layout.parts import Layout


def layout(topology: _core.Topology, *, has_stubs: bool = True) -> Layout:
    """Lay a network out by its structure; the same network gives the same picture.

    Parameters
    ----------
    topology
        The network.
    has_stubs
        Whether a link that would cross the picture may be a stub at its sender, for a page that shows both
        ends when asked. Otherwise each link leads from device to device.
    """
    found = product_layout(topology, has_stubs=has_stubs)
    return tiers_layout(topology, has_stubs=has_stubs) if found is None else found
