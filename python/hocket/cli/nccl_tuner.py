"""``hocket nccl tuner``: tables for tuners of NCCL, and what a tuner plugin picks."""

from __future__ import annotations

import itertools
import operator
from typing import Annotated

from hocket.cli import options
from hocket.cli.command import Argument, Option
from hocket.cli.groups import Nodes
from hocket.cli.table import NEVER, Table, table_of
from hocket.deployment import groups
from hocket.files.atomic import check_apart
from hocket.nccl.gpus import check_gpu
from hocket.nccl.plugin import AskedPick, ask_tuner
from hocket.nccl.tuner import LARGEST, TunerRow, tuner_table
from hocket.profiles.profile import load_profile, profile_of
from hocket.topology.build import build_topology
from hocket.units import format_size

Gpu = Annotated[
    str | None,
    Option(
        "--gpu",
        help="GPU: volta, ampere, hopper, blackwell or a compute capability such as sm86. "
        "Default: that of the dump, the profile or the NVLinks.",
    ),
]


def write(
    *,
    network: Nodes,
    output: Annotated[str, Option("--output", "-o", help="The file to write, such as tuner.csv.")],
    measured: Annotated[
        list[str] | None,
        Option(
            "--measured",
            metavar="FILE",
            help="A table (.csv) of measured times with the columns algo and proto (NCCL_ALGO "
            "and NCCL_PROTO). Can be repeated.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        Option(
            "--profile",
            metavar="PROFILE",
            help="Profile that predicts the sizes, or 'none' for NCCL's own model. Default: that "
            "of the network, if it has one.",
        ),
    ] = None,
    gpu: Gpu = None,
    process_groups: options.ProcessGroups = "world",
    json: options.Json = False,
) -> None:
    """Write the algorithm, protocol and channels of every size for an NCCL tuner plugin.

    For example: hocket nccl tuner write --topology dgx_a100_2box -o tuner.csv
    """
    check_apart(output, measured or [], "a table that is read")
    spec = network.spec()
    used = None
    if profile is None and spec.profile is not None:
        used = profile_of(spec)
    elif profile not in (None, "none"):
        used = load_profile(str(profile))
    topology, named = build_topology(spec), check_gpu(spec, gpu)
    known = groups.process_groups(process_groups or "world", topology.npu_count)
    npus = [group for each in known for group in each.npus]
    table = tuner_table(topology, profile=used, gpu=named, measured=measured or [], groups=npus)
    table.write(output)
    if json:
        options.print_result("nccl-tuner", dict(table.to_dict()))
        return
    _print_rows(table.rows, f"{output}: {len(table)} lines")
    for comment in table.comments:
        options.note(comment)


def _print_rows(rows: tuple[TunerRow, ...], title: str) -> None:
    """Print what is picked; that the number of channels grows is told in one row."""
    console = options.output()
    table = Table(title=title)
    of = ("ranks", "nodes") if len({(row.ranks, row.nodes) for row in rows}) > 1 else ()
    for column in (*of, "collective", "from", "to", "algorithm", "protocol", "channels"):
        right = column in (*of, "from", "to", "channels")
        table.add_column(column, justify="right" if right else "left", leaves=NEVER)
    key = operator.attrgetter("ranks", "nodes", "kind", "algorithm", "protocol")
    for (ranks, nodes, kind, algorithm, protocol), each in itertools.groupby(rows, key):
        first, *_, last = same if len(same := list(each)) > 1 else same * 2
        ends = dict.fromkeys(
            "-" if row.channels is None else str(row.channels) for row in (first, last)
        )
        end = "any" if last.most == LARGEST else format_size(last.most + 1)
        cells = (kind, format_size(first.least), end, algorithm, protocol, " to ".join(ends))
        table.add_row(*(map(str, (ranks, nodes)) if of else ()), *cells)
    console.print(table)


def show(
    library: Annotated[str, Argument(metavar="LIBRARY", help="A tuner plugin: a shared library.")],
    *,
    network: Nodes,
    gpu: Gpu = None,
    json: options.Json = False,
) -> None:
    """Ask a tuner plugin for its picks, without a GPU, and compare them with those of NCCL.

    For example: hocket nccl tuner show libnccl-tuner-ofi.so --topology dgx_a100_2box
    """
    spec = network.spec()
    found = ask_tuner(library, build_topology(spec), gpu=check_gpu(spec, gpu))
    if json:
        options.print_result("nccl-asked-tuner", dict(found.to_dict()))
        return
    console = options.output()
    on = "" if found.nodes == 1 else f" on {found.nodes} nodes"
    title = f"{found.name}, API {found.api}, asked for {found.npus} ranks{on}"
    console.print(table_of(found, title=title))
    for line in _drawing(found.picks):
        console.print(line)
    for line in dict.fromkeys(found.log):
        options.note(f"its log: {line}")


_LETTERS = {
    "ring": "r",
    "tree": "t",
    "nvls": "n",
    "nvls-tree": "v",
    "pat": "p",
    "collnet-direct": "c",
    "collnet-chain": "h",
}


def _drawing(picks: tuple[AskedPick, ...]) -> list[str]:
    """Draw a letter for each size and collective: small where NCCL picks the same, capital where not."""
    first = min(pick.least for pick in picks)
    lines = []
    for kind in dict.fromkeys(pick.kind for pick in picks):
        letters = ""
        for pick in (pick for pick in picks if pick.kind == kind):
            letter = _LETTERS[pick.algorithm]
            span = (pick.most // pick.least).bit_length()
            letters += (letter if pick.is_own else letter.upper()) * span
        lines.append(f"{kind:<15} {letters}")
    used = dict.fromkeys(pick.algorithm for pick in picks)
    names = ", ".join(f"{_LETTERS[name]} {name}" for name in used)
    what = f"a letter for each power of 2 from {format_size(first)} on"
    lines.append(f"{what}: {names}; a capital where NCCL would pick another")
    return lines
