"""``hocket show``: a page for any browser that shows plans move, sweeps, iterations or jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from hocket.cli import options
from hocket.cli.command import Argument, Option
from hocket.cli.groups import Simulation
from hocket.errors import Error, SpecError
from hocket.files.atomic import check_apart, write_text
from hocket.files.raw import check_json, read_bytes
from hocket.plans.plan import Plan
from hocket.simulation.options import LinkOptions
from hocket.simulation.parquet import is_run
from hocket.simulation.run import Run
from hocket.simulation.run import simulate as run_plan
from hocket.units import shown

Files = Annotated[
    list[str],
    Argument(
        metavar="FILE",
        help="Plans or runs (several share one clock), JSON output of `hocket compare`, "
        "`train` or `route`, or the folder of a sweep.",
    ),
]
Titles = Annotated[
    list[str] | None,
    Option("--title", help="Title of a file on the page; one per file."),
]
_SWEEPS = ("hocket.comparison", "hocket.comparisons")
_LANES = ("hocket.training-run", "hocket.cluster-run", "hocket.cluster-runs")


def explore(
    files: Files,
    *,
    simulation: Simulation,
    file: Annotated[
        str,
        options.output_file("Write the page to this .html file."),
    ],
    titles: Titles = None,
) -> None:
    """Write a browser page of plans, sweeps, training iterations or jobs.

    For example: hocket show plan.parquet -o page.html  ·  hocket show a.parquet b.parquet
    -o both.html
    """
    target = Path(file)
    check_apart(file, files, "one of the files")
    if titles and len(titles) != len(files):
        raise SpecError(
            "--title", f"{len(titles)} titles for {len(files)} files", "give one for each file"
        )
    if any(Path(each).is_dir() for each in files):
        from hocket.explorer.study import write_study

        if len(files) > 1:
            raise SpecError(None, "a sweep has a page of its own", "give one folder alone")
        _refuse_simulation(simulation, files[0])
        if titles:
            raise SpecError("--title", "a sweep's page has its own", "leave it out")
        write_study(Path(files[0]), target)
        print(f"the sweep {files[0]} written to {file}")
        return
    if any(Path(each).suffix == ".json" for each in files):
        plans = [each for each in files if Path(each).suffix != ".json"]
        if plans:
            why = f"{plans[0]} and the .json files do not go on one page"
            raise SpecError(None, why, "give plans and runs alone, or what --json printed alone")
        _refuse_simulation(simulation, files[0])
        print(f"{_from_documents(files, titles, target)} written to {file}")
        return
    _from_plans(files, simulation, titles, target)


def _refuse_simulation(simulation: Simulation, origin: str) -> None:
    """Refuse options of simulation for what is no plan."""
    if simulation.transfers() != LinkOptions():
        why = "says how it was simulated"
        raise SpecError(None, why, "leave out options of simulation", origin=origin)


def _from_plans(
    files: list[str], simulation: Simulation, titles: list[str] | None, target: Path
) -> None:
    from hocket.explorer.page import MOST_RUNS, write_page

    if len(files) > MOST_RUNS:
        raise SpecError(
            None, f"{len(files)} plans do not fit next to each other", f"give 1 to {MOST_RUNS}"
        )
    fidelity = simulation.transfers()
    runs: list[Run] = []
    with options.watching() as watch:
        for each in files:
            if is_run(Path(each)):
                _refuse_simulation(simulation, each)
                runs.append(Run.load(each))
                continue
            plan = Plan.load(each)
            runs.append(run_plan(plan, fidelity=fidelity, keep_services=True, progress=watch))
        watch.note("writing")
        left_out = write_page(runs, target, titles=titles or told_apart(files, runs))
    print(f"{sum(len(run.plan) for run in runs)} transfers written to {target}")
    if left_out is not None:
        print(left_out)


def told_apart(files: list[str], runs: list[Run]) -> list[str] | None:
    """Return titles by algorithm, network or file, whichever differs, or None for one run."""
    if len(runs) == 1:
        return None
    for names in (
        [run.plan.algorithm for run in runs],
        [run.topology.name for run in runs],
        [f"{run.plan.algorithm} on {run.topology.name}" for run in runs],
        [Path(each).stem for each in files],
    ):
        if len(set(names)) == len(names):
            return names
    return [f"{Path(each).stem} ({i + 1})" for i, each in enumerate(files)]


def _from_documents(files: list[str], titles: list[str] | None, target: Path) -> str:
    """Write a page of JSON that other commands printed; say what is on it."""
    from hocket.explorer.page import fill
    from hocket.explorer.sizes import sweep_page
    from hocket.explorer.tracks import document_page

    documents = [_document(Path(each)) for each in files]
    names = titles or [Path(each).stem for each in files]
    try:
        if all(each["format"] in _SWEEPS for each in documents):
            several = [c for each in documents for c in each.get("comparisons", [each])]
            header = sweep_page(several)
            if titles:
                header["title"] = ", ".join(titles)
            page = fill(header)
            about = f"comparisons at {len(several)} size{'s' * (len(several) != 1)}"
        else:
            runs = [
                (run, run["scheme"] if "schemes" in each and len(documents) == 1 else name)
                for each, name in zip(documents, names, strict=True)
                for run in _runs_of(each)
            ]
            page = fill(*document_page([run for run, _ in runs], [name for _, name in runs]))
            about = f"{len(runs)} run{'s' * (len(runs) != 1)}"
    except Error:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise SpecError(
            None,
            f"{' and '.join(files)}: not what hocket prints ({why})",
            "give what `hocket compare`, `train` or `route` printed with --json",
        ) from None
    write_text(target, page)
    return about


def _runs_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    schemes = document.get("schemes")
    if schemes is None:
        return [document]
    return [{"format": "hocket.cluster-run", **scheme} for scheme in schemes][:4]


def _document(path: Path) -> dict[str, Any]:
    """Read a file that a command printed with ``--json``."""
    raw = read_bytes(path, "what a command printed with --json")
    check_json(raw, str(path))
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        found = None
    kind = found.get("format") if isinstance(found, dict) else None
    if kind not in (*_SWEEPS, *_LANES):
        what = "is no result of hocket"
        if isinstance(kind, str):
            what = f"is {shown(kind)}, which has no page"
        raise SpecError(
            None,
            what,
            "give a plan, or what `hocket compare`, `train` or `route` printed with --json",
            origin=str(path),
        )
    assert isinstance(found, dict)
    return found
