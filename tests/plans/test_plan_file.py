"""Plans as Parquet files: what comes back is what was written, and others can read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket import _core
from hocket.plans.algorithms import SCHEDULERS

LINK = {"bandwidth": "25 GB/s", "latency": "700 ns"}
ARRAYS = [
    "chunk",
    "chunk_count",
    "src",
    "dst",
    "op",
    "wait",
    "path",
    "group_offsets",
    "group_items",
    "path_offsets",
    "path_items",
    "chunk_offsets",
    "chunk_demand",
]
SEARCHES = {"exact": "500 ms", "auto": "100 ms", "multirail-optimal": "100 ms"}
# Those that need all of a network of one kind, or all but a corner.
NETWORKS = {
    "ring-bi-odd": hk.topology.mesh(3, 3, **LINK),
    "tto": hk.topology.mesh(3, 3, **LINK),
    "tto-overlapped": hk.topology.mesh(3, 3, **LINK),
    "two-tree-overlap": hk.topology.line(5, **LINK),
    "hdrm": hk.topology.bigraph(2, 2, **LINK),
    "in-network": hk.topology.offloaded(hk.topology.planes(6, 2, **LINK)),
    "multimem": hk.topology.offloaded(hk.topology.planes(6, 2, **LINK)),
    "multi-ring": hk.topology.load("box:2x4", bandwidth="25 GB/s", latency="1 us"),
    "nccl-nvls": hk.topology.offloaded(hk.topology.planes(6, 2, **LINK)),
    "node-groups": hk.topology.load("box:2x4", bandwidth="25 GB/s", latency="1 us"),
}
PAIRS = [(each.name, kind) for each in hk.algorithms() for kind in each.kinds]


def assert_same(ours: hk.Plan, theirs: hk.Plan) -> None:
    assert theirs.algorithm == ours.algorithm
    assert theirs.topology == ours.topology
    assert theirs.topology.dimensions == ours.topology.dimensions
    assert theirs.topology.switch_limits == ours.topology.switch_limits
    assert theirs.collective == ours.collective
    for name in ARRAYS:
        mine, loaded = getattr(ours.core, name), getattr(theirs.core, name)
        assert mine.dtype == loaded.dtype, name
        assert np.array_equal(mine, loaded), name


def check_round_trip(plan: hk.Plan, path: Path) -> hk.Plan:
    plan.save(path)
    loaded = hk.Plan.load(path)
    assert_same(plan, loaded)
    assert not loaded.is_verified
    loaded.verify()
    assert hk.simulate(loaded).time_ps == hk.simulate(plan).time_ps
    return loaded


@pytest.mark.parametrize(("algorithm", "kind"), PAIRS)
def test_every_algorithm_comes_back(tmp_path: Path, algorithm: str, kind: str) -> None:
    topology = NETWORKS.get(algorithm) or hk.topology.torus(3, 4, **LINK)
    npus = [0, 1, 2, 3, 4, 5, 7, 8] if algorithm in ("tto", "tto-overlapped", "steiner") else None
    limit = SEARCHES.get(algorithm)
    plan = hk.plan(
        kind, topology, size="1000003 B", algorithm=algorithm, npus=npus, time_limit=limit
    )
    check_round_trip(plan, tmp_path / "plan.parquet")


@pytest.mark.parametrize(("algorithm", "kind"), PAIRS)
def test_subsets_failures_and_roots_come_back(tmp_path: Path, algorithm: str, kind: str) -> None:
    if algorithm in (*SCHEDULERS, *NETWORKS, "ring-2d", "symmetric", "nccl-ring", "nccl-tree"):
        pytest.skip("it needs every NPU of its network")
    topology = hk.topology.load("dgx1_v100").without(links=[("gpu0", "gpu1")])
    rooted = {"broadcast", "reduce", "gather", "scatter"}
    plan = hk.plan(
        kind,
        topology,
        size="1 MB",
        algorithm=algorithm,
        time_limit=SEARCHES.get(algorithm),
        npus=["gpu6", "gpu0", "gpu3", "gpu1", "gpu5"],
        root="gpu3" if kind in rooted else None,
        in_place=False,
    )
    loaded = check_round_trip(plan, tmp_path / "plan.parquet")
    assert loaded.collective.npus == [6, 0, 3, 1, 5]
    assert loaded.collective.root == (2 if kind in rooted else None)
    assert loaded.collective.in_place is False


def hand_made(collective: hk.Collective) -> hk.Plan:
    """Two transfers to each NPU of a ring of 3, with explicit paths and groups within groups."""
    topology = hk.topology.ring(3, **LINK)
    ends = {(a, b): i for i, (a, b) in enumerate(zip(topology.link_src, topology.link_dst))}  # noqa: B905
    none, group = hk.Plan.NO_WAIT, 1 << 31
    core = _core.Plan.from_columns(
        topology,
        collective,
        "by hand",
        chunk_offsets=np.array([0, 4, 10], np.uint64),
        chunk_demand=np.array([0, 0], np.uint32),
        chunk=np.array([0, 1, 0, 0], np.uint32),
        chunk_count=np.array([1, 1, 1, 1], np.uint32),
        src=np.array([0, 0, 0, 1], np.uint32),
        dst=np.array([1, 1, 2, 2], np.uint32),
        op=np.array([0, 0, 0, 0], np.uint8),
        wait=np.array([none, 0, group, group + 1], np.uint32),
        path=np.array([0, hk.Plan.DEFAULT_ROUTE, 1, 2], np.uint32),
        group_offsets=np.array([0, 2, 4], np.uint32),
        group_items=np.array([0, 1, group, 2], np.uint32),
        path_offsets=np.array([0, 1, 3, 4], np.uint32),
        path_items=np.array([ends[0, 1], ends[0, 1], ends[1, 2], ends[1, 2]], np.uint32),
    )
    return hk.Plan(core)


def test_groups_within_groups_and_paths_come_back(tmp_path: Path) -> None:
    plan = hand_made(hk.Collective("broadcast", [0, 1, 2], 10, 0))
    plan.save(tmp_path / "plan.parquet")
    assert_same(plan, hk.Plan.load(tmp_path / "plan.parquet"))
    frame = pl.read_parquet(tmp_path / "plan.parquet")
    assert frame["wait"].to_list() == [None, 0, None, None]
    assert frame["wait_group"].to_list() == [None, None, 0, 1]
    assert frame["path"].to_list() == [0, None, 1, 2]
    assert frame["size_bytes"].to_list() == [4, 6, 4, 4]


def test_custom_demands_come_back(tmp_path: Path) -> None:
    demands = [(10, False, [0], [1, 2]), (7, True, None, [0])]
    plan = hand_made(hk.Collective.custom([0, 1, 2], demands, in_place=False))
    plan.save(tmp_path / "plan.parquet")
    loaded = hk.Plan.load(tmp_path / "plan.parquet")
    assert_same(plan, loaded)
    assert loaded.collective.demands() == plan.collective.demands()
    assert loaded.collective.kind == "custom"


def test_switch_limits_and_dimensions_come_back(tmp_path: Path) -> None:
    limited = hk.topology.switch(5, **LINK, limit="60 GB/s")
    plan = hk.plan("all-reduce", limited, size="1 MB", algorithm="ring", chunks=1)
    check_round_trip(plan, tmp_path / "a.parquet")
    product = hk.topology.product(
        "Ring_FC_SW", [2, 3, 2], bandwidth=["1 GB/s"] * 3, latency=["1 us"] * 3
    )
    plan = hk.plan("all-reduce", product, size="1 MB", algorithm="hierarchical", chunks=4)
    loaded = check_round_trip(plan, tmp_path / "b.parquet")
    assert [each[:2] for each in loaded.topology.dimensions] == [
        ("Ring", 2),
        ("FullyConnected", 3),
        ("Switch", 2),
    ]


@pytest.mark.parametrize("algorithm", ["hierarchical", "themis-fifo", "themis", "ring"])
def test_link_order_and_schedule_come_back(tmp_path: Path, algorithm: str) -> None:
    topology = hk.topology.product(
        "Ring_SW", [3, 4], bandwidth=["1 GB/s"] * 2, latency=["1 us"] * 2
    )
    plan = hk.plan("all-reduce", topology, size="1 MB", algorithm=algorithm, chunks=5)
    loaded = check_round_trip(plan, tmp_path / "plan.parquet")
    is_multirail = algorithm.startswith("themis")
    assert loaded.link_order == plan.link_order == ("plan" if is_multirail else "ready")
    assert loaded.topology.switching == "cut-through"
    if algorithm == "ring":
        assert loaded.schedule is None
        return
    assert plan.schedule is not None
    assert loaded.schedule is not None
    assert loaded.schedule.lanes == plan.schedule.lanes
    assert loaded.schedule.policy == plan.schedule.policy
    by_rails = [each.schedule.simulate().time_ps for each in (plan, loaded)]
    assert by_rails[0] == by_rails[1]
    if is_multirail:
        assert hk.simulate(loaded, fidelity="dimension").time_ps == by_rails[0]

    # A file from before there were schedules and orders of links.
    table = pq.read_table(tmp_path / "plan.parquet")
    fields = dict(table.schema.metadata)
    fields.pop(b"hocket.schedule", None)
    head = json.loads(fields[b"hocket.plan"])
    head.pop("link_order")
    fields[b"hocket.plan"] = json.dumps(head).encode()
    pq.write_table(table.replace_schema_metadata(fields), tmp_path / "old.parquet")
    old = hk.Plan.load(tmp_path / "old.parquet").verify()
    assert old.link_order == "ready"
    assert (old.schedule is None) == is_multirail


@pytest.mark.parametrize("schedule", ["{", "[]", "null", '{"format": 1}', "3", ""])
def test_a_plan_with_a_broken_schedule_is_refused(tmp_path: Path, schedule: str) -> None:
    topology = hk.topology.ring(4, **LINK)
    path = tmp_path / "plan.parquet"
    hk.plan("all-reduce", topology, size="1 MB", algorithm="themis", chunks=2).save(path)
    table = pq.read_table(path)
    fields = dict(table.schema.metadata) | {b"hocket.schedule": schedule.encode()}
    pq.write_table(table.replace_schema_metadata(fields), path)
    with pytest.raises(hk.SpecError, match=r"plan\.parquet") as caught:
        hk.Plan.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (99, "is of a later version of hocket: format 99, and this one reads"),
        (1, "is of an earlier version of hocket: format 1, and this one reads"),
        ("2", "is not a plan, or not a whole one \\(its format is '2'"),
        (None, "its format is None"),
    ],
)
def test_plans_of_other_versions_are_told_apart(tmp_path: Path, number: object, says: str) -> None:
    path = tmp_path / "plan.parquet"
    hk.plan("all-gather", hk.topology.ring(4, **LINK), size="1 MB", algorithm="ring").save(path)
    table = pq.read_table(path)
    fields = dict(table.schema.metadata)
    head = json.loads(fields[b"hocket.plan"]) | {"format": number}
    fields[b"hocket.plan"] = json.dumps(head).encode()
    pq.write_table(table.replace_schema_metadata(fields), path)
    with pytest.raises(hk.SpecError, match=says):
        hk.Plan.load(path)


def test_others_read_it_as_it_is(tmp_path: Path) -> None:
    topology = hk.topology.ring(4, **LINK)
    plan = hk.plan("all-reduce", topology, size="1 MB", algorithm="ring", chunks=3)
    plan.save(tmp_path / "plan.parquet")
    frame = pl.read_parquet(tmp_path / "plan.parquet")
    assert frame.columns == [
        "chunk",
        "chunk_count",
        "src",
        "dst",
        "op",
        "size_bytes",
        "wait",
        "wait_group",
        "path",
        "chunk_sizes",
        "chunk_demands",
        "groups",
        "paths",
    ]
    assert len(frame) == len(plan)
    assert frame["op"].cast(pl.String).to_list() == [
        ("copy", "reduce")[op] for op in plan.transfers.op
    ]
    assert np.array_equal(frame["size_bytes"].to_numpy(), plan.transfers.size_bytes)
    # a reduce-scatter and an all-gather: each NPU sends 2 (n - 1) / n of the data
    assert frame["size_bytes"].sum() == 4 * 1_500_000

    table = pq.read_table(tmp_path / "plan.parquet")
    assert [str(field.type) for field in table.schema] == [
        "uint32",
        "uint32",
        "uint32",
        "uint32",
        "dictionary<values=string, indices=int8, ordered=0>",
        "uint64",
        "uint32",
        "uint32",
        "uint32",
        "list<element: uint64>",
        "list<element: uint32>",
        "list<element: list<element: uint32>>",
        "list<element: list<element: uint32>>",
    ]
    head = json.loads(table.schema.metadata[b"hocket.plan"])
    assert head["algorithm"] == "ring"
    assert head["collective"]["size_bytes"] == 1_000_000


def test_what_other_tools_write_back_is_read(tmp_path: Path) -> None:
    """Another compression, wider integers, plain text, row groups: the same plan."""
    topology = hk.topology.ring(4, **LINK)
    plan = hk.plan("all-reduce", topology, size="1 MB", algorithm="ring", chunks=1)
    plan.save(tmp_path / "plan.parquet")
    table = pq.read_table(tmp_path / "plan.parquet")
    wide = [
        column.cast(pa.string())
        if name == "op"
        else column.cast(pa.int64())
        if not pa.types.is_list(column.type)
        else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    again = pa.table(wide, names=table.column_names).replace_schema_metadata(table.schema.metadata)
    pq.write_table(again, tmp_path / "again.parquet", compression="snappy", row_group_size=5)
    assert_same(plan, hk.Plan.load(tmp_path / "again.parquet"))


def test_the_same_plan_gives_the_same_bytes(tmp_path: Path) -> None:
    topology = hk.topology.mesh(3, 3, **LINK)
    for name in ("a", "b"):
        made = hk.plan("all-reduce", topology, size="1 MB", algorithm="double-binary-tree")
        made.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    folder = tmp_path_factory.mktemp("fuzz")
    topology = hk.topology.ring(4, **LINK)
    hk.plan("all-reduce", topology, size="1 MB", algorithm="ring", chunks=1).save(
        folder / "plan.parquet"
    )
    return (folder / "plan.parquet").read_bytes(), folder / "damaged.parquet"


def check_loads_or_is_refused(path: Path) -> None:
    refusal: hk.Error | None = None
    try:
        hk.simulate(hk.Plan.load(path).verify())
    except (hk.SpecError, hk.VerificationError) as error:
        refusal = error
    if isinstance(refusal, hk.VerificationError):
        assert refusal.violations
    elif refusal is not None:
        assert "\n" not in str(refusal)
        assert path.name in str(refusal) or "213 days" in str(refusal)


FUZZ = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@FUZZ
@given(data=st.data())
def test_damaged_files_are_refused(valid: tuple[bytes, Path], data: st.DataObject) -> None:
    whole, path = valid
    places = st.one_of(
        st.integers(0, len(whole) - 1),
        st.integers(max(len(whole) - 4000, 0), len(whole) - 1),  # where the metadata is
    )
    damaged = bytearray(whole)
    for place in data.draw(st.lists(places, min_size=1, max_size=6)):
        damaged[place] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged)
    check_loads_or_is_refused(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def _changed(value: object, pick: Callable[[int], int], new: object) -> object:
    """Put ``new`` somewhere into a JSON value."""
    if isinstance(value, dict) and value:
        key = sorted(value)[pick(len(value))]
        return value | {key: _changed(value[key], pick, new) if pick(3) else new}
    if isinstance(value, list) and value:
        place = pick(len(value))
        return [*value[:place], new, *value[place + 1 :]]
    return new


@pytest.mark.slow
@FUZZ
@given(data=st.data())
def test_changed_metadata_is_refused(valid: tuple[bytes, Path], data: st.DataObject) -> None:
    whole, path = valid
    path.write_bytes(whole)
    table = pq.read_table(path)
    fields = dict(table.schema.metadata)
    name = data.draw(st.sampled_from(sorted(key for key in fields if key.startswith(b"hocket."))))

    def pick(count: int) -> int:
        return data.draw(st.integers(0, count - 1))

    changed = _changed(json.loads(fields[name]), pick, data.draw(JSON))
    fields[name] = json.dumps(changed).encode()
    pq.write_table(table.replace_schema_metadata(fields), path)
    check_loads_or_is_refused(path)


@pytest.mark.slow
@FUZZ
@given(data=st.data())
def test_changed_columns_are_refused_or_wrong(
    valid: tuple[bytes, Path], data: st.DataObject
) -> None:
    whole, path = valid
    path.write_bytes(whole)
    table = pq.read_table(path)
    name = data.draw(st.sampled_from(["chunk", "chunk_count", "src", "dst", "wait", "wait_group"]))
    near, far = st.integers(0, 30), st.integers(0, 2**32 - 1)
    values = table[name].to_pylist()
    row = data.draw(st.integers(0, len(values) - 1))
    values[row] = data.draw(st.none() | near | far)
    place = table.column_names.index(name)
    pq.write_table(table.set_column(place, name, pa.array(values, pa.uint32())), path)
    check_loads_or_is_refused(path)


@pytest.mark.parametrize(
    ("column", "position"),
    [
        ("wait", 2**31),
        ("wait", 2**32 - 1),
        ("wait_group", 2**31 - 1),
        ("wait_group", 2**31),
        ("wait_group", 2**32 - 1),
        ("path", 2**32 - 1),
    ],
)
def test_positions_that_would_mean_something_else_are_refused(
    tmp_path: Path, column: str, position: int
) -> None:
    """As bits, group 2^31 - 1 is not a wait at all, and transfer 2^31 is group 0."""
    hand_made(hk.Collective("broadcast", [0, 1, 2], 10, 0)).save(tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    columns = {name: table.column(name).to_pylist() for name in table.schema.names}
    if column != "path":
        columns["wait"][3] = columns["wait_group"][3] = None
    columns[column][3] = position
    pq.write_table(pa.table(columns, schema=table.schema), tmp_path / "b.parquet")
    with pytest.raises(
        hk.SpecError, match=rf"column {column} has {position} in row 3; the most is"
    ):
        hk.Plan.load(tmp_path / "b.parquet")


@pytest.mark.long
def test_ten_million_transfers_open_elsewhere(tmp_path: Path) -> None:
    n, path = 2300, tmp_path / "big.parquet"
    topology = hk.topology.ring(n, **LINK)
    plan = hk.plan("all-reduce", topology, size=n * 1000, algorithm="ring", chunks=1)
    assert len(plan) == 2 * n * (n - 1) > 10_000_000
    plan.save(path)
    frame = pl.scan_parquet(path)
    rows, carried, copies = (
        frame.select(
            pl.len(),
            pl.col("size_bytes").sum(),
            (pl.col("op").cast(pl.String) == "copy").sum().alias("copies"),
        )
        .collect()
        .row(0)
    )
    assert rows == len(plan)
    assert carried == len(plan) * 1000
    assert copies == n * (n - 1)
    assert_same(plan, hk.Plan.load(path))
