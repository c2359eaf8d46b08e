"""``hocket export``, ``hocket check`` and ``hocket import``: files of other runtimes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from hocket.cli import options
from hocket.cli.groups import grouped
from hocket.cli.numbers import counted
from hocket.cli.plan import describe
from hocket.errors import SpecError
from hocket.formats.checked import CheckedFile, check_file
from hocket.formats.exported import ExportOptions, export_plan
from hocket.formats.kinds import Kind, kind_named
from hocket.plans.plan import Plan
from hocket.units import format_size, parse_size

File = Annotated[
    str,
    typer.Argument(metavar="FILE", help="A file of a runtime; its kind is found by its contents."),
]
PerMessage = Annotated[
    int,
    typer.Option(
        "--chunks-per-message",
        help="Chunks that fit one message of a connection; with 1 the check holds for any message size.",
    ),
]
_SHOWN = 10


@dataclass(frozen=True)
class Lowering:
    """How the plan becomes a program."""

    panel: ClassVar[str] = "Program"

    protocol: Annotated[
        str | None,
        typer.Option("--protocol", help="Simple (the default), LL or, for msccl, LL128."),
    ] = None
    channels: Annotated[
        int | None,
        typer.Option(
            "--channels",
            help="Channels over which chunks are spread; by default the fewest that a runtime loads.",
        ),
    ] = None
    instances: Annotated[
        int | None,
        typer.Option(
            "--instances", help="Parts that each chunk is cut into, on channels of their own."
        ),
    ] = None
    in_place: Annotated[
        bool | None,
        typer.Option(
            "--in-place/--out-of-place", help="For which calls; in place, but for all-to-all."
        ),
    ] = None
    min_size: Annotated[
        str | None, typer.Option("--min-size", help="Smallest size for which it may be used.")
    ] = None
    max_size: Annotated[
        str | None, typer.Option("--max-size", help="Largest size for which it may be used.")
    ] = None

    def options(self) -> ExportOptions:
        """Read them."""
        return ExportOptions(
            protocol=self.protocol,
            channels=self.channels,
            instances=self.instances,
            in_place=self.in_place,
            min_bytes=_size("--min-size", self.min_size),
            max_bytes=_size("--max-size", self.max_size),
        )


def _size(option: str, text: str | None) -> int | None:
    return None if text is None else parse_size(text, field=option)


@grouped
def export(
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="A plan file, as written by `hocket plan -o`.")
    ],
    *,
    to: Annotated[
        str, typer.Option("--to", metavar="KIND", help="msccl, mscclpp or chakra (a folder).")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file or folder to write.")
    ],
    lowering: Lowering,
    json: options.Json = False,
) -> None:
    """Prove a plan and write it as a file of a runtime."""
    given = lowering.options()
    kind = kind_named(to)
    loaded = Plan.load(plan)
    if kind.folder is not None:
        _export_folder(kind, loaded, output, given, json=json)
        return
    with options.watching() as watch:
        made = export_plan(loaded, output, to=to, options=given, progress=watch)
    if json:
        options.print_result("exported-file", made.to_dict())
        return
    file = made.exported
    console = options.output()
    console.print(f"{describe(loaded)}: proved")
    mode = "in place" if file.in_place else "out of place"
    console.print(
        f"{output}: {made.kind.title}, {mode}, {counted(file.chunks, 'chunk')}, "
        f"{counted(file.steps, 'step')}, up to {file.blocks} thread blocks a rank on "
        f"{counted(file.channels, 'channel')}, {counted(file.scratch_chunks, 'chunk')} of scratch"
    )
    for note in file.notes:
        console.note(note)


def _export_folder(
    kind: Kind, plan: Plan, output: str, given: ExportOptions, *, json: bool
) -> None:
    assert kind.folder is not None
    if given != ExportOptions():
        wrong = f"{kind.title} are of transfers, not of a program"
        raise SpecError("--to", wrong, "leave out the options of programs")
    with options.watching() as watch:
        made = kind.folder(plan, output, progress=watch)
    if json:
        options.print_result("exported-trace", made.to_dict())
        return
    console = options.output()
    console.print(f"{describe(plan)}: proved")
    console.print(
        f"{output}: {kind.title}, {_count(made.exported.ranks, 'rank')}, "
        f"{made.exported.nodes:,} nodes, {', '.join(made.files)}"
    )
    for note in made.notes:
        console.note(note)


def check(
    file: File, *, chunks_per_message: PerMessage = 1, json: options.Json = False
) -> int | None:
    """Judge a file of a runtime: its rules, deadlocks, races and results; exit code 1 if it is wrong."""
    found = _checked(file, chunks_per_message)
    if json:
        options.print_result("checked-file", found.to_dict())
    else:
        console = options.output()
        console.print(_title(found))
        for note in found.checked.notes:
            console.note(note)
        for fault in found.checked.findings[:_SHOWN]:
            console.print(f"wrong: {fault.text}")
        if found.checked.count > _SHOWN:
            console.print(f"and {found.checked.count - _SHOWN:,} more faults")
        if found.is_right:
            console.print(_verdict(found))
    return None if found.is_right else 1


def import_(file: File, *, chunks_per_message: PerMessage = 1, json: options.Json = False) -> None:
    """Say what a file of a runtime is."""
    found = _checked(file, chunks_per_message)
    if json:
        options.print_result("checked-file", found.to_dict())
        return
    console = options.output()
    console.print(_title(found))
    facts = found.checked
    sizes = f"from {format_size(facts.min_bytes)}"
    if facts.max_bytes is not None:
        sizes += f" to {format_size(facts.max_bytes)}"
    console.print(
        f"up to {facts.blocks} thread blocks a rank, {counted(facts.scratch_chunks, 'chunk')} of scratch, "
        f"sizes {sizes}"
    )


def _checked(file: str, chunks_per_message: int) -> CheckedFile:
    with options.watching() as watch:
        return check_file(file, chunks_per_message=chunks_per_message, progress=watch)


def _title(found: CheckedFile) -> str:
    facts = found.checked
    modes = [
        name
        for name, holds in (("in place", facts.in_place), ("out of place", facts.out_of_place))
        if holds
    ]
    return (
        f"{found.kind.title}: {facts.name}, {facts.collective} among {facts.ranks} ranks, "
        f"{' and '.join(modes) or 'neither in place nor out of place'}, {facts.protocol}, "
        f"{counted(facts.chunks, 'chunk')}, {counted(facts.steps, 'step')}"
    )


def _verdict(found: CheckedFile) -> str:
    chunks = found.chunks_per_message
    sizes = "any message size" if chunks == 1 else f"messages of {chunks} chunks or more"
    results = "right results" if found.checked.contents_known else "results unknown"
    return f"right: no deadlock at {sizes}, no race, {results}"
