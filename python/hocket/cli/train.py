"""``hocket train``: training iterations of a model on a network, and where their time goes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hocket import _core
from hocket._checks import is_decimal
from hocket.cli import complete, options
from hocket.cli.command import Argument, Option, Panel
from hocket.cli.form import Form
from hocket.cli.groups import RARE_IN_TRAINING, Nodes
from hocket.cli.train_report import print_run
from hocket.errors import Error, SpecError
from hocket.training.options import TrainingOptions
from hocket.units import shown

if TYPE_CHECKING:
    from hocket.training import Parallel, TrainingRun


@dataclass(frozen=True)
class Report(Form):
    """Options for the output of the run; the rows of CSV are its layers."""

    timeline: Annotated[
        str | None,
        Option(
            "--timeline",
            help="Draw the timeline to this .png, .svg or .pdf file.",
            check=options.is_picture,
        ),
    ] = None
    perfetto: options.Perfetto = None
    page: options.Page = None
    chakra: Annotated[
        str | None,
        Option(
            "--chakra",
            rare=True,
            metavar="FOLDER",
            help="Folder for a trace of each NPU, and the files that ASTRA-sim needs to run them.",
        ),
    ] = None
    file: Annotated[
        str | None,
        options.output_file(
            "Write the run with its timeline to this .json file, for `hocket show`.", ".json"
        ),
    ] = None
    layers: Annotated[
        bool,
        Option(
            "--layers",
            "--verbose",
            "-v",
            help="Also list the layers that wait longest.",
        ),
    ] = False


def train(
    model: Annotated[
        str,
        Argument(
            metavar="MODEL",
            complete=complete.models,
            help="A shipped workload (see `hocket workload list`) or a file.",
        ),
    ],
    *,
    network: Nodes,
    parallel: Annotated[
        str | None,
        Option(
            "--parallel",
            "-p",
            help="Parallelism of the model, such as dp=64,tp=16; also pp, ep, interleave, zero "
            "and micro-batches. Default: one replica per NPU.",
        ),
    ] = None,
    places: Annotated[
        str | None,
        Option(
            "--map",
            rare=True,
            help="Dimensions of each kind of parallelism, numbered from 1, such as tp=1,dp=2+3.",
        ),
    ] = None,
    algorithm: options.AlgorithmOfCollectives = None,
    given: Annotated[TrainingOptions, Panel("Training", rare=RARE_IN_TRAINING)],
    report: Report,
) -> None:
    """Simulate training iterations of a model on a network.

    For example: hocket train resnet152 --topology themis-3d-homo --npu a100 --efficiency 0.5  ·
    hocket train resnet152 --topology themis-3d-homo --parallel dp=256,pp=4 --timeline train.png
    """
    from hocket import training

    topology = network.build()
    spread = _parallel(parallel, places, topology)
    with suppress(Error):  # which the training tells of
        _announce(spread, topology, algorithm, given)
    with options.watching() as watch:
        run = training.train(
            model,
            topology,
            parallel=spread,
            algorithm=algorithm,
            options=given,
            progress=watch,
        )
        _write(run, report, watch)
        notes = () if report.chakra is None else _write_traces(run, report.chakra, watch)
    if not report.prints("training-run", run.to_dict, lambda: run):
        print_run(run, algorithm, given.chunks, layers=report.layers)
        for note in notes:
            options.output().note(note)


def _write(run: TrainingRun, report: Report, watch: options.Watch) -> None:
    if report.perfetto is not None:
        watch.note("writing")
        run.save_perfetto(report.perfetto)
    if report.file is not None:
        run.save(report.file)
    if report.page is not None:
        from hocket.explorer.tracks import write_training

        watch.note("writing")
        write_training([run], Path(report.page))
    if report.timeline is not None:
        watch.note("drawing")
        run.plot(report.timeline)


def _write_traces(run: TrainingRun, folder: str, watch: options.Watch) -> tuple[str, ...]:
    from hocket.traces.training import write_training

    return write_training(run, folder, progress=watch).notes


def _announce(
    spread: Parallel, topology: _core.Topology, algorithm: str | None, given: TrainingOptions
) -> None:
    """Print what the plans of one all-reduce along each axis take, if these are many."""
    from hocket.training.candidates import AUTO, GREEDY, transfers_of
    from hocket.training.network import IDEAL, NOTHING, default_algorithm, is_on_dimensions
    from hocket.training.parallel import groups

    name = algorithm or default_algorithm(topology)
    if name in (IDEAL, NOTHING) or is_on_dimensions(topology, name):
        return
    found = groups(spread, topology, on_dimensions=False)
    counted, chunks = GREEDY if name == AUTO else name, given.chunks
    each = [
        transfers_of("all-reduce", topology, found[axis], counted, chunks) for axis in ("tp", "dp")
    ]
    options.announce(sum(each), max(each), ["-a double-binary-tree", "smaller groups, as tp=8"])


def _parallel(text: str | None, places: str | None, topology: _core.Topology) -> Parallel:
    from hocket.training import Parallel

    spread = Parallel(dp=topology.npu_count) if text is None else Parallel.parse(text)
    return spread if places is None else replace(spread, dimensions=_read_map(places))


def _read_map(text: str) -> dict[str, list[int]]:
    """Read ``--map``: ``tp=1,dp=2+3``."""
    from hocket.training.parallel import AXES

    found: dict[str, list[int]] = {}
    for part in text.split(","):
        axis, equals, listed = (each.strip() for each in part.partition("="))
        numbers = [number.strip() for number in listed.split("+")]
        right = "write dimensions, from 1, as tp=1,dp=2+3"
        if not equals or axis not in AXES:
            raise SpecError(
                "--map",
                f"{shown(part.strip())} is not valid; {right}",
                f"axes are {', '.join(AXES)}",
            )
        if not all(is_decimal(each) for each in numbers):
            raise SpecError("--map", f"{axis}: {shown(listed)} is not a dimension", right)
        if axis in found or len(set(numbers)) < len(numbers):
            raise SpecError("--map", f"{axis} is given twice what it has once", right)
        found[axis] = [int(number) for number in numbers]
    return found
