"""Published sweeps: which machine each was measured on, by its public specification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.profiles.hardware import Hardware
from hocket.profiles.measurement import MeasuredSeries, Measurement, read_measurements

__all__ = ["SCHEDULE_SETS", "SETS", "MeasuredSet", "load_schedule_sets", "load_sets"]

_FOLDER = Path(__file__).parent / "machines_measured"
_G = 1e9
_A100 = Hardware(300 * _G)
_H100 = Hardware(450 * _G, sums=True)
_B200 = Hardware(900 * _G, sums=True)
_V100 = Hardware(150 * _G)
_GH200 = Hardware(450 * _G, 100 * _G, npus=4)
_POLARIS = Hardware(300 * _G, 50 * _G, npus=4)
_P5 = Hardware(450 * _G, 400 * _G, sums=True)
_P3DN = Hardware(150 * _G, 12.5 * _G)
_MI300X = Hardware(7 * 48 * _G)
"""Seven links, each as RCCL counts it: 48 of 64 GB/s."""


@dataclass(frozen=True)
class MeasuredSet:
    """A published set of sweeps.

    Attributes
    ----------
    name
        Of its file.
    family
        GPUs that share constants.
    fabric
        What joins its nodes; empty for a single node.
    hardware
        Nominal bandwidths.
    launch
        The kind of program: ``"process"`` drives all GPUs of a node, ``"mpi"`` has a process for each,
        ``"torch"`` calls the library from PyTorch.
    in_place
        Which times are used.
    states_picks
        Whether the algorithms that it names are the library's choice, not what it was told.
    """

    name: str
    family: str
    fabric: str
    hardware: Hardware
    launch: str
    in_place: bool = False
    states_picks: bool = False


def _sets(
    names: Iterable[str], family: str, fabric: str, hardware: Hardware, launch: str
) -> Iterator[MeasuredSet]:
    for name in names:
        yield MeasuredSet(name, family, fabric, hardware, launch)


SETS: tuple[MeasuredSet, ...] = (
    *_sets(["azure_a100_1x8_superbench", "abhivijay_cw_1xN"], "A100", "", _A100, "process"),
    *_sets(["stas_a100_1x8"], "A100", "", _A100, "torch"),
    *_sets(["h100_nvswitch_1x4_quiet"], "H100", "", _H100, "process"),
    *_sets(
        (f"h100_xxrjun_1x{npus}_node{node}" for npus in (4, 8) for node in ("002", "007")),
        "H100",
        "",
        _H100,
        "process",
    ),
    *_sets(["h100_nvswitch_1x246_algo"], "H100", "", _H100, "process"),
    MeasuredSet("stas_h200_nvls_ramp", "H100", "", _H100, "torch", states_picks=True),
    MeasuredSet("stas_b200_nvls_ramp", "B200", "", _B200, "torch", states_picks=True),
    *_sets(["p5_h100_awsbatch_8ranks"], "H100", "", _H100, "mpi"),
    *_sets(["stas_h200_1x8_torch", "nebius_h100_1x8_torch"], "H100", "", _H100, "torch"),
    *_sets(["dgx1class_v100_1x8"], "V100", "", _V100, "process"),
    # Out of place its all-gather is half as fast, its reduce-scatter uneven: others used the GPUs.
    MeasuredSet("dgx2_v100_1x12", "V100", "", _V100, "process", in_place=True),
    *_sets(["mi300x_azure_rccl_1x8_issue1562"], "MI300X", "", _MI300X, "process"),
    # Out of place the library chose by itself; in place it ran the schedules that SCHEDULE_SETS are about.
    *_sets(
        ["mi300x_azure_msccl_1x8_allgather_allpair", "mi300x_azure_msccl_1x8_allreduce_allpair"],
        "MI300X",
        "",
        _MI300X,
        "mpi",
    ),
    *_sets(["alps_gh200_1x4_base"], "GH200", "", _GH200, "mpi"),
    *_sets(
        ["sophia_dgxa100_2x8", "sophia_dgxa100_2x8_default"],
        "A100",
        "InfiniBand",
        Hardware(300 * _G, 200 * _G),
        "mpi",
    ),
    *_sets(
        (f"p5_h100_2x8_{run}" for run in ("v2203_1", "v2223_1", "v2223_1_with_tuner")),
        "H100",
        "EFA",
        _P5,
        "mpi",
    ),
    *_sets(["p3dn_v100_2x1", "p3dn_v100_4x1", "p3dn_v100_2x8_ring"], "V100", "EFA", _P3DN, "mpi"),
    *_sets(
        (f"alps_gh200_{boxes}x4_base" for boxes in (2, 4, 8, 16)),
        "GH200",
        "Slingshot",
        _GH200,
        "mpi",
    ),
    *_sets(
        (f"polaris_a100_{boxes}x4_nccl{version}" for boxes in (2, 8) for version in (218, 221)),
        "A100 mesh",
        "Slingshot",
        _POLARIS,
        "mpi",
    ),
    *_sets(["sirius_a100_2x4"], "A100 mesh", "Slingshot", _POLARIS, "mpi"),
)
"""Bandwidths are nominal, from the makers' specifications; a node's NICs together."""

SCHEDULE_SETS: Mapping[str, tuple[str, ...]] = {
    "MI300X": tuple(
        f"mi300x_azure_msccl_1x8_{name}"
        for name in ("allgather_ring", "allgather_allpair", "allreduce_allpair")
    )
}
"""By family: sets whose rows in place ran a schedule that is known."""


def load_schedule_sets(
    data: Path | None = None,
) -> Iterator[tuple[str, list[tuple[str, Measurement]]]]:
    """Read the times of known schedules that a folder has: by family, each with the name of its set."""
    for family, names in SCHEDULE_SETS.items():
        found = []
        for name in names:
            path = None if data is None else data / f"{name}.csv"
            if path is not None and path.is_file():
                found += [(name, row) for row in read_measurements(path).only(in_place=True)]
        if found:
            yield family, found


def load_sets(data: Path | None = None) -> list[tuple[MeasuredSet, MeasuredSeries]]:
    """Read the sets that are shipped, and those that a folder has.

    Parameters
    ----------
    data
        A folder of tables named as the sets; by default only what is shipped.

    Raises
    ------
    SpecError
        If the folder has none of them.
    """
    found = []
    missing = True
    for each in SETS:
        path = _FOLDER / f"{each.name}.csv"
        if data is not None and (data / path.name).is_file():
            path, missing = data / path.name, False
        if path.is_file():
            sweeps = read_measurements(path).only(in_place=each.in_place).once()
            rows = tuple(row for row in sweeps if row.is_aligned)
            found.append((each, replace(sweeps, rows=rows)))
    if data is not None and not data.is_dir():
        wrong = f"{shown_path(data)} is not a folder"
        raise SpecError("--data", wrong, "name one with tables of measurements")
    if data is not None and missing:
        known = ", ".join(f"{each.name}.csv" for each in SETS[:3])
        raise SpecError(
            "--data", f"{shown_path(data)} has no set that is known", f"name them {known}, ..."
        )
    return found
