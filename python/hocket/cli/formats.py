"""``hocket export``, ``hocket check`` and ``hocket import``: files of other runtimes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from hocket.cli import options
from hocket.cli.command import Argument, Option, Panel
from hocket.cli.groups import Given
from hocket.cli.plan import describe
from hocket.errors import SpecError, VerificationError
from hocket.files.atomic import check_apart, check_target
from hocket.formats.checked import CheckedFile, check_file
from hocket.formats.exported import export_plan
from hocket.formats.imported import import_plan
from hocket.formats.kinds import EXPORTED
from hocket.formats.options import CheckOptions, ExportOptions, ImportOptions
from hocket.plans.plan import Plan
from hocket.units import format_size, printable

File = Annotated[
    str,
    Argument(
        metavar="FILE",
        help="A plan (.parquet, docs/own-plans.md), a file of a runtime, whose kind is found by its "
        "contents, or a deployed folder.",
    ),
]
_SHOWN = 10


_OF_NCCL = ("topology", "nodes", "profile", "measured")


def export(
    plan: Annotated[
        str, Argument(metavar="PLAN", help="A plan file, as written by `hocket plan -o`.")
    ],
    *,
    to: Annotated[str, Option("--to", metavar="KIND", help=f"{', '.join(EXPORTED)}.")],
    path: Annotated[str, Option("--output", "-o", metavar="FILE", help="The file to write.")],
    lowering: Annotated[Given, Panel("Program (msccl, mscclpp)", but=_OF_NCCL, of=ExportOptions)],
    of_nccl: Annotated[
        Given, Panel("Files of NCCL (nccl-graph, nccl-tuner)", only=_OF_NCCL, of=ExportOptions)
    ],
    json: options.Json = False,
) -> None:
    """Prove a plan and write it as a file of a runtime.

    For example: hocket export plan.parquet --to msccl -o plan.xml
    """
    given = ExportOptions(**lowering, **of_nccl)
    check_apart(path, [plan], "the plan")
    loaded = Plan.load(plan)
    with options.watching() as watch:
        made = export_plan(loaded, path, to=to, options=given, progress=watch)
    if json:
        options.print_result("exported-file", made.to_dict())
        return
    console = options.output()
    console.print(f"{describe(loaded)}: proved")
    names = ", ".join(str(each) for each in made.written.files)
    console.print(f"{names}: {made.written.summary}")
    for note in made.written.notes:
        console.note(note)
    for warning in made.written.warnings:
        console.print(f"WARNING: {warning}")


def check(
    file: File,
    *,
    given: Annotated[Given, Panel(of=CheckOptions)],
    json: options.Json = False,
) -> int | None:
    """Check a plan in every timing, or a runtime file by its rules; exit code 1 if wrong.

    For example: hocket check plan.parquet  ·  hocket check plan.xml
    """
    if _is_plan(Path(file)):
        for name in given:
            raise SpecError(name, "is of files of runtimes, not of plans", "leave it out")
        _prove(file, json=json)
        return None
    found = _checked(file, CheckOptions(**given))
    if json:
        options.print_result("checked-file", found.to_dict())
    else:
        _print(found)
        console = options.output()
        for fault in found.judgement.faults[:_SHOWN]:
            console.print(f"wrong: {fault.text}")
        if found.judgement.count > _SHOWN:
            console.print(f"and {found.judgement.count - _SHOWN:,} more faults")
        if found.is_right:
            console.print(f"right: {found.judgement.right}")
        for warning in found.judgement.warnings:
            console.print(f"WARNING: {warning}")
    return None if found.is_right else 1


def _is_plan(path: Path) -> bool:
    """Return whether a file is meant as a plan: by its name, or by how Parquet begins."""
    if not path.is_file():
        return path.suffix == ".parquet"
    with path.open("rb") as file:
        return path.suffix == ".parquet" or file.read(4) == b"PAR1"


def _prove(file: str, *, json: bool) -> None:
    """Prove that a plan does what its collective requires in every timing."""
    made = Plan.load(file)
    with options.watching() as watch:
        try:
            made.verify(progress=watch)
        except VerificationError as error:
            rows = "" if error.violations[0].transfer is None else "; its number is its row, from 0"
            raise VerificationError(f"{file}: {error.why}{rows}", error.violations) from None
    if json:
        options.print_result("plan", made.to_dict())
        return
    console = options.output()
    console.print(f"{describe(made)}: proved")
    if made.transfers.op.any() and made.is_reproducible:
        console.print("reproducible: sums have the same bits in every timing")


def _print(found: CheckedFile) -> None:
    console = options.output()
    console.print(printable(found.judgement.summary))
    for note in found.judgement.notes:
        console.note(printable(note))


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The options of reading a file as a plan."""

    panel: ClassVar[str] = "Plan"

    output: Annotated[
        str | None,
        Option("--output", "-o", metavar="PLAN", help="The plan file to write; needs -t."),
    ] = None
    topology: Annotated[
        str | None,
        options.topology_option(
            "The network of the file. For NCCL graphs: the dump of the machine."
        ),
    ] = None
    given: Annotated[ImportOptions, Panel("Plan")]


def import_(file: File, *, reading: Reading, json: options.Json = False) -> None:
    """Read a runtime file as a plan, or describe it.

    For example: hocket import plan.xml -t dgx1_v100 -o plan.parquet
    """
    given, output, topology = reading.given, reading.output, reading.topology
    if output is None:
        if topology is not None or given != ImportOptions():
            raise SpecError("--output", "there is no plan to write", "name its file by -o PLAN")
        _describe(_checked(file, CheckOptions()), json)
        return
    if topology is None:
        raise SpecError("--topology", "a plan is of a network", "name the one that the file is for")
    check_target(Path(output))
    check_apart(output, [file, topology], "a file that is read")
    with options.watching() as watch:
        plan = import_plan(file, topology, options=given, progress=watch)
    plan.save(output)
    if json:
        options.print_result("plan", {**plan.to_dict(), "file": output})
        return
    console = options.output()
    console.print(f"{describe(plan)}: proved")
    console.print(f"written to {output}")


def _describe(found: CheckedFile, json: bool) -> None:
    if json:
        options.print_result("checked-file", found.to_dict())
        return
    _print(found)
    facts = found.judgement.program
    if facts is None:
        return
    sizes = f"from {format_size(facts.min_bytes)}"
    if facts.max_bytes is not None:
        sizes += f" to {format_size(facts.max_bytes)}"
    scratch = f"{facts.scratch_chunks:,} chunk{'s'[: facts.scratch_chunks != 1]}"
    options.output().print(
        f"up to {facts.blocks} thread blocks per rank, {scratch} of scratch, sizes {sizes}"
    )


def _checked(file: str, given: CheckOptions) -> CheckedFile:
    with options.watching() as watch:
        return check_file(file, options=given, progress=watch)
