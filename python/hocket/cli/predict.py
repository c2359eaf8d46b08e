"""``hocket predict``: what a collective takes on a real machine, by its profile."""

from __future__ import annotations

from typing import Annotated

from hocket.cli import options
from hocket.cli.command import Option
from hocket.cli.groups import Nodes
from hocket.cli.numbers import BUSBW
from hocket.cli.table import Table
from hocket.collectives.sizes import sizes_of
from hocket.errors import listed
from hocket.profiles.expected import ExpectedError, evidence
from hocket.profiles.prediction import Prediction
from hocket.profiles.prediction import predict as predict_times
from hocket.profiles.profile import load_profile, profile_for
from hocket.topology.build import build_topology
from hocket.units import format_size

_SIZES = "1K:4G:x4"
_WIDE = 1.25
"""Factor from which on an expected error is wide."""


def predict(
    kind: options.MeasuredKind = "all-reduce",
    *,
    network: Nodes,
    size: options.Sizes = None,
    sizes: options.Sweep = None,
    profile: Annotated[
        str | None,
        Option(
            "--profile",
            metavar="PROFILE",
            help="Box and fabric, as h100+ib,nvls=off, a shipped profile, or a topology file with one.",
        ),
    ] = None,
    launch: Annotated[
        str | None,
        Option(
            "--launch",
            help="How the program launches the collective: a launch kind of the profile.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Predict the time of a collective with NCCL or RCCL on a real machine.

    For example: hocket predict all-reduce --topology hgx_h200_8gpu --sizes 8K:4G:x8
    """
    spec = network.spec()
    built = build_topology(spec)
    used = profile_for(built, spec) if profile is None else load_profile(profile)
    given = [*(size or []), *([] if sizes is None else [sizes])]
    asked = sizes_of(given or [_SIZES], field="--size")
    found = predict_times(kind, built, sizes=asked, profile=used, launch=launch)
    if json:
        options.print_result("prediction", found.to_dict())
        return
    _print(found, spec.name)


def _expected(each: ExpectedError, kind: str) -> str:
    """Return how far predictions are off, and what would narrow it."""
    who = f"{each.owners} owners" if each.times else "sizes of it kept back"
    line = f"{each.sizes}: 9 of 10 within a factor of {each.factor:.2f} ({each.of}, {who})"
    if not each.times or each.factor <= _WIDE:
        return line
    near = evidence().narrowed(each) if kind == "all-reduce" else None
    narrows = "" if near is None else f" (two all-reduces: to {near.factor:.2f})"
    return f"{line}; hocket calibrate --advise says what narrows it{narrows}"


def _print(found: Prediction, name: str) -> None:
    console = options.output()
    nodes = "" if found.nodes == 1 else f" on {found.nodes} nodes"
    table = Table(
        title=f"{found.kind} among {found.npus} NPUs{nodes} of {name}, as it is measured",
        by_row=True,
    )
    table.add_rows(found.times, rates=BUSBW)
    console.print(table)
    console.print(f"profile {found.profile.name}, launched in {found.launch:.3g} us")
    for error in found.expected:
        console.print(_expected(error, found.kind))
    console.note(
        "launch and kernels are in each time; hocket compare simulates plans on links alone"
    )
    below: dict[str, list[str]] = {}
    for each in found.times:
        if each.below_bound is not None:
            below.setdefault(each.below_bound, []).append(format_size(each.size))
    for reason, which in below.items():
        console.print(f"below the bound on any plan: {listed(which)}: {reason}")
    for line in (*found.notes, *found.about):
        console.note(line)
