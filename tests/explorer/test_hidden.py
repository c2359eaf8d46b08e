"""No link of any network is hidden: each owns pixels, or belongs to a bundle that does."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocket as hk
from hocket.explorer import write_page
from hocket.topology.machines import names

BUILT = [
    *("ring:7", "ring:100", "line:40", "mesh:4x3", "mesh:2x2x2x2", "torus:8x8x8", "torus:4x4x4x4"),
    *("torus:32x16", "hypercube:6", "fully_connected:9", "fully_connected:24", "switch:9"),
    *("dragonfly:5x4", "clos:4x8x2", "bigraph:4x4", "fat_tree:4", "rail:4x8", "planes:16x4"),
    *("Ring_FC_SW:2x8x4", "SW_SW:16x8", "FC_Ring:16x4"),
]

OWNED = """() => {
  const v = page.inspect().views[0], {ways, lane, head} = v.scene.network, owned = v.owned();
  if (!v.detailed) return {bundles: v.bundles.map((b) => b.width * b.height)};
  // Slices of a stub that more links share than it has are one bundle: their pixels count together.
  const sums = new Map();
  for (let l = 0; l < head.links; l++) {
    const key = [...ways.slice(5 * l, 5 * l + 5), lane[l]].map((x) => x.toFixed(2)).join();
    sums.set(key, (sums.get(key) ?? 0) + owned[l]);
  }
  return {links: [...sums.values()]};
}"""


@pytest.mark.parametrize("text", [*BUILT, *names()])
def test_every_link_owns_pixels(tab, tmp_path: Path, text: str) -> None:
    try:
        network = hk.topology.load(f"{text}@25GB/s,700ns" if ":" in text else text)
    except hk.SpecError as error:
        pytest.skip(str(error))
    plan = hk.plan("broadcast", network, size="1MB", algorithm="chain", chunks=1)
    write_page(hk.simulate(plan, keep_services=True), tmp_path / "page.html")
    found = tab().open(tmp_path / "page.html")(OWNED)
    if "links" in found:
        assert min(found["links"]) >= 6
    else:
        assert min(found["bundles"]) >= 6
