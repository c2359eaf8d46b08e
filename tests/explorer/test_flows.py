"""Flows of jobs on a fabric: paths over time against what the run says, and the page that shows them."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from hocket import routing
from hocket.explorer.flows import collisions
from hocket.explorer.tracks import write_cluster
from hocket.routing.paths import paths_of

from .asked_again import asked_again

JOBS = """
seed: 1
defaults: {iterations: 3, placement: random-tors}
jobs:
  - {name: a, parameters: 7e9, tensor: 4, data: 6, compute: 100 ms}
  - {name: b, parameters: 7e9, tensor: 4, data: 6, compute: 70 ms}
  - {name: c, parameters: 2e9, tensor: 4, data: 3, compute: 40 ms, arrival: 1 s}
"""


def between_switches(topology: hk.Topology) -> np.ndarray:
    """Which links lead from a switch to a switch."""
    npus = topology.npu_count
    return (topology.link_src >= npus) & (topology.link_dst >= npus)


def run_of(folder: Path, scheme: str, fabric: str = "clos:4x8", **options: object):
    cluster = routing.cluster(fabric, hosts_per_tor=2, gpus_per_host=4, nics_per_host=4)
    (folder / "jobs.yml").write_text(JOBS)
    jobs = routing.load_jobs(folder / "jobs.yml")
    return routing.simulate(cluster, jobs, scheme=scheme, keep_rates=True, **options)


@pytest.mark.parametrize("scheme", ["ecmp", "greedy", "edge-coloring", "annealing"])
@pytest.mark.parametrize("seed", [1, 5])
def test_paths_are_those_of_the_run(scheme: str, seed: int, tmp_path: Path) -> None:
    run = run_of(tmp_path, scheme, seed=seed)
    paths = paths_of(run)
    assert paths is not None
    topology = run.cluster.topology
    between = between_switches(topology)
    loads = list(paths.loads(topology.link_count))
    used = np.max([load for *_, load in loads], axis=0) > 0
    # Whatever carried bytes between switches had a flow on it, and the other way round.
    assert (used == (run.link_bytes > 0))[between].all()
    # The largest load after each decision is the one that it says.
    for moment, _, _, largest, *_ in run.core.decisions:
        if scheme == "ecmp":
            continue  # of all flows at once, who may not communicate together
        ((_, _, load),) = [each for each in loads if each[0] <= moment < each[1]]
        assert load[between].max() == largest
    busy = sum(end - start for start, end, load in loads if (load[between] > 1).any())
    assert sum(end - start for start, end, *_ in collisions(paths, topology)) == busy
    # Who communicates has each of its flows on one path, all the time.
    for job in range(len(run.jobs)):
        own = [i for i, number in enumerate(paths.jobs) if number == job]
        span = sum(row[4] - row[3] for row in run.core.iterations if row[0] == job)
        for flow in own:
            assert sum(end - start for i, _, start, end in paths.stays if i == flow) == span


def test_ecmp_moves_the_bytes_of_its_paths(tmp_path: Path) -> None:
    """Paths for ever: each link between switches has the bytes of its flows, and no others."""
    run = run_of(tmp_path, "ecmp")
    paths = paths_of(run)
    assert paths is not None
    topology = run.cluster.topology
    path_of = {flow: path for flow, path, _, _ in paths.stays}
    own = np.zeros(topology.link_count, np.int64)
    first = [paths.paths[path_of[flow]][0] for flow in range(len(paths.flows))]
    # A NIC of this placement sends one flow at most, all of whose bytes its own link has counted.
    assert len(set(first)) == len(first)
    for flow in range(len(paths.flows)):
        for link in paths.paths[path_of[flow]][1:-1]:
            own[link] += run.link_bytes[first[flow]]
    between = between_switches(topology)
    assert (own == run.link_bytes.astype(np.int64))[between].all()


@pytest.mark.parametrize("scheme", ["ecmp", "greedy", "edge-coloring", "annealing"])
def test_a_scheme_that_is_asked_again_gives_the_same_paths(scheme: str, tmp_path: Path) -> None:
    run = run_of(tmp_path, scheme, seed=3)
    paths = paths_of(run)
    assert paths is not None
    kept = [(flow, paths.paths[path], start, end) for flow, path, start, end in paths.stays]
    assert sorted(kept) == asked_again(run)


@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        ("controller", {}),
        ("least-loaded", {}),
        ("greedy", {"outages": ["spine1@1 s"]}),
        ("greedy", {"order": "tor"}),
        ("edge-coloring", {"answer": "3 ms"}),
    ],
)
def test_paths_of_schemes_that_look_at_more(scheme: str, options: dict, tmp_path: Path) -> None:
    run = run_of(tmp_path, scheme, **options)
    paths = paths_of(run)
    assert paths is not None
    topology = run.cluster.topology
    between = between_switches(topology)
    loads = list(paths.loads(topology.link_count))
    used = np.max([load for *_, load in loads], axis=0) > 0
    # What carried bytes had a flow on it.
    assert (used >= (run.link_bytes > 0))[between].all()
    for flow, path, start, end in paths.stays:
        links = paths.paths[path]
        assert start < end
        assert topology.link_src[links[0]] == run.cluster.nic_of(paths.flows[flow].src)
        assert topology.link_dst[links[-1]] == run.cluster.nic_of(paths.flows[flow].dst)
        for one, other in pairwise(links):
            assert topology.link_dst[one] == topology.link_src[other]
    if "outages" in options:
        spine = topology.device_names.index("spine1")
        dead = (topology.link_src == spine) | (topology.link_dst == spine)
        late = [load[dead].any() for start, _, load in loads if start >= 10**12]
        assert late
        assert not any(late)
    again = pickle.loads(pickle.dumps(run.core))
    assert again.paths == run.core.paths


def test_packets_of_all_paths_have_none(tmp_path: Path) -> None:
    assert paths_of(run_of(tmp_path, "spray")) is None


def has_ribbons(open_tab, view: int, *, wanted: bool) -> bool:
    """Whether flows are drawn, which they are in the next frame, however busy the machine is."""
    for _ in range(100):
        is_drawn = bool(open_tab.pixels(f"page.views[{view}].marks").any())
        if is_drawn == wanted:
            break
        open_tab.page.wait_for_timeout(50)
    return is_drawn


def test_flows_and_collisions_before_and_after_a_scheme(tab, tmp_path: Path) -> None:
    runs = [run_of(tmp_path, scheme) for scheme in ("ecmp", "greedy")]
    write_cluster(runs, tmp_path / "jobs.html")
    open_tab = tab().open(tmp_path / "jobs.html")
    left, right = (open_tab.page.locator(".scene").nth(i).bounding_box() for i in (0, 1))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    for i, run in enumerate(runs):
        paths = paths_of(run)
        assert paths is not None
        links = run.cluster.topology.link_count
        loads = list(paths.loads(links))
        for start, end, load in loads[:: max(1, len(loads) // 6)]:
            open_tab(f"page.set({{t: {(start + end) / 2}}})")
            found = np.zeros(links, np.int64)
            for link, many in open_tab(f"[...page.onLinks({i})].map(([l, c]) => [l, c.length])"):
                found[link] = many
            assert (found == load).all()
            assert has_ribbons(open_tab, i, wanted=bool(load.any())) == bool(load.any())
        expected = collisions(paths, run.cluster.topology)
        spans = open_tab(
            """(i) => {
              const of = page.columns[i], {kinds} = page.head.runs[i];
              return [...of.kind].flatMap((k, s) =>
                kinds[k] === 'collision' ? [[of.start[s], of.start[s] + of.length[s]]] : []);
            }""",
            i,
        )
        assert spans == [[start, end] for start, end, *_ in expected]
        caption = f"{run.scheme}: links between switches that had two flows or more at a time"
        assert open_tab.page.locator("caption", has_text=caption).count() == 1
    open_tab.page.select_option("#fabric", "load")
    assert not has_ribbons(open_tab, 0, wanted=False)
    again = tab().open(tmp_path / "jobs.html", open_tab.hash)
    assert again("page.state.fabric") == "load"


def test_a_scheme_without_paths_shows_bytes(tab, tmp_path: Path) -> None:
    write_cluster([run_of(tmp_path, "spray")], tmp_path / "jobs.html")
    open_tab = tab().open(tmp_path / "jobs.html")
    assert open_tab("document.querySelector('#fabric')") is None
    assert "flows are not drawn" in open_tab("document.querySelector('.scene').textContent")
