"""Spans on lanes: what training iterations and jobs on a fabric did when, as a page shows it."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hocket.errors import SpecError
from hocket.explorer.columns import pack
from hocket.explorer.flows import collisions, flow_columns
from hocket.explorer.page import MOST_RUNS, fill
from hocket.explorer.scene import network_of
from hocket.files.atomic import write_text
from hocket.units import format_bandwidth, format_time_ps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket.routing import ClusterRun
    from hocket.training import TrainingRun
    from hocket.training.timeline import Span

    Page = tuple[dict[str, Any], bytes]

_SECOND = 10**12
MOST_SPANS = 2_000_000
"""Of a page; more are left out from the end, and the page says so."""


class _Span(NamedTuple):
    lane: int
    start: int
    length: int
    name: str
    kind: str
    exposed: int = 0


class _Sheet:
    """The header and the columns of a page, run by run."""

    def __init__(self, title: str) -> None:
        self.head: dict[str, Any] = {
            "format": 1,
            "kind": "lanes",
            "title": title,
            "note": None,
            "runs": [],
            "networks": [],
        }
        self.columns: dict[str, NDArray[Any]] = {}

    def add(
        self, title: str, time_ps: int, lanes: list[tuple[str, str]], spans: Iterable[_Span]
    ) -> dict[str, Any]:
        """Add a run, and give its header to add to."""
        names: dict[str, int] = {}
        kinds: dict[str, int] = {}
        rows: list[tuple[int, ...]] = []
        for span in spans:
            if len(rows) == MOST_SPANS:
                self.head["note"] = (
                    f"Only the first {MOST_SPANS:,} spans of {title} are in this page."
                )
                break
            name = names.setdefault(span.name, len(names))
            kind = kinds.setdefault(span.kind, len(kinds))
            rows.append((span.lane, span.start, span.length, name, kind, span.exposed))
        values = np.array(rows, np.int64).reshape(-1, 6)
        prefix = f"r{len(self.head['runs'])}."
        for i, column in enumerate(("lane", "start", "length", "name", "kind", "exposed")):
            self.columns[prefix + column] = values[:, i]
        head: dict[str, Any] = {
            "title": title,
            "time_ps": time_ps,
            "facts": [],
            "lanes": [list(lane) for lane in lanes],
            "kinds": list(kinds),
            "names": list(names),
            "bars": [],
            "tables": [],
            "network": -1,
            "rates": [],
            "flows": False,
        }
        self.head["runs"].append(head)
        return head

    def made(self) -> Page:
        specs, blob = pack(self.columns)
        return {**self.head, "first": specs}, blob


def _checked(count: int) -> None:
    if not 1 <= count <= MOST_RUNS:
        raise SpecError(None, f"{count} runs do not fit on one page", f"give 1 to {MOST_RUNS}")


def training_page(runs: Sequence[TrainingRun], titles: Sequence[str] | None = None) -> Page:
    """Return the header and the columns of a page of training iterations, below one another.

    Raises
    ------
    SpecError
        If there are none or too many.
    """
    _checked(len(runs))
    names = titles or [f"{run.workload.name} on {run.topology.name}" for run in runs]
    sheet = _Sheet(names[0] if len(runs) == 1 else "Training iterations")
    for run, title in zip(runs, names, strict=True):
        _add_stages(sheet, title, run.total_ps, run.timeline())
        _of_training(sheet.head["runs"][-1], run.to_dict())
    return sheet.made()


def _add_stages(sheet: _Sheet, title: str, time_ps: int, spans: Sequence[Span]) -> None:
    """Add a run with a lane for what each stage computes, and for each cause of its calls."""
    used = sorted({(span.stage, span.track != "compute", span.track) for span in spans})
    lanes = {(stage, track): i for i, (stage, _, track) in enumerate(used)}
    sheet.add(
        title,
        time_ps,
        [(f"stage {stage + 1}", track) for stage, track in lanes],
        (
            _Span(
                lanes[span.stage, span.track],
                span.start_ps,
                span.end_ps - span.start_ps,
                span.name,
                span.track if span.track != "compute" else span.does,
                span.exposed_ps,
            )
            for span in spans
        ),
    )


def _saved_spans(document: Mapping[str, Any]) -> list[Span]:
    """Return the spans of a saved iteration; none of what has only its figures."""
    from hocket.training.timeline import Span

    columns = document.get("spans")
    if columns is None:
        return []
    texts = [[str(each) for each in columns[name]] for name in ("track", "name", "does")]
    numbers = [
        [operator.index(each) for each in columns[name]]
        for name in ("stage", "start_ps", "end_ps", "exposed_ps")
    ]
    return [
        Span(stage, track, name, does, 0, start, end, None, 0, exposed)
        for track, name, does, stage, start, end, exposed in zip(*texts, *numbers, strict=True)
    ]


def _of_training(head: dict[str, Any], document: Mapping[str, Any]) -> None:
    """Add where an iteration's time goes, from the values that ``--json`` prints."""
    parts = document["breakdown"]
    exposed = {f"waits: {cause}": value for cause, value in parts["exposed_ps"].items() if value}
    bars = {
        "forward": parts["forward_ps"],
        "backward": parts["backward_ps"],
        "update": parts["update_ps"],
        **exposed,
        "pipeline is empty": parts["waiting_ps"],
    }
    head["bars"] = [[kind, round(value)] for kind, value in bars.items() if value]
    hidden = document["hidden_share"]
    head["facts"] = [
        f"{document['algorithm']} on {document['npu_count']:,} NPUs of {document['topology']}: "
        f"{format_time_ps(round(document['time_ps']))} an iteration, of which compute waits "
        f"{format_time_ps(round(sum(parts['exposed_ps'].values())))}"
        + (f"; {100 * hidden:.1f}% of communication is hidden" if hidden is not None else "")
    ]


def cluster_page(runs: Sequence[ClusterRun], titles: Sequence[str] | None = None) -> Page:
    """Return the header and the columns of a page of jobs on a fabric, by one scheme or several.

    Raises
    ------
    SpecError
        If there are none or too many.
    """
    _checked(len(runs))
    from hocket.routing.paths import paths_of

    names = titles or [run.scheme for run in runs]
    fabric = runs[0].cluster.topology.name
    sheet = _Sheet(f"Jobs on {fabric}" + (f" by {names[0]}" if len(runs) == 1 else ""))
    known: list[Any] = []
    for i, (run, title) in enumerate(zip(runs, names, strict=True)):
        topology = run.cluster.topology
        paths = paths_of(run)
        shared = [] if paths is None else collisions(paths, topology)
        head = _add_jobs(sheet, title, run.to_dict(), shared)
        head["network"] = next((n for n, each in enumerate(known) if each == topology), len(known))
        if head["network"] == len(known):
            network, columns = network_of(topology)
            sheet.columns |= {f"n{len(known)}.{name}": column for name, column in columns.items()}
            sheet.head["networks"].append(network)
            known.append(topology)
        sheet.columns[f"r{i}.bytes"] = run.link_bytes
        if paths is not None:
            columns, ways = flow_columns(paths, topology)
            sheet.columns |= {f"r{i}.{name}": column for name, column in columns.items()}
            head["tables"].append(ways)
        head["flows"] = paths is not None
        if run.core.rates:
            when, job, rate = (np.array(each) for each in zip(*run.core.rates, strict=True))
            sheet.columns[f"r{i}.rate_t"] = when.astype(np.int64)
            sheet.columns[f"r{i}.rate_lane"] = job.astype(np.int64)
            sheet.columns[f"r{i}.rate"] = np.round(rate).astype(np.int64)
            head["rates"] = [3 * number + 2 for number in range(len(run.jobs))]
    return sheet.made()


def _add_jobs(
    sheet: _Sheet,
    title: str,
    document: Mapping[str, Any],
    shared: Sequence[tuple[int, int, int, int]] = (),
) -> dict[str, Any]:
    """Add what jobs did, from the values that ``--json`` prints."""
    jobs = document["jobs"]
    lanes = [(job["name"], what) for job in jobs for what in ("compute", "all-reduce", "sends")]
    decisions = document["decisions"]
    if decisions:
        lanes.append(("controller", "decisions"))
    if shared:
        lanes.append(("fabric", "collisions"))

    def spans() -> Iterable[_Span]:
        for number, job in enumerate(jobs):
            for index, each in enumerate(job["iterations"]):
                start, begin, end = each["compute_start_ps"], each["start_ps"], each["end_ps"]
                if begin > start:
                    yield _Span(3 * number, start, begin - start, f"compute {index}", "compute")
                late = max(0, end - begin - job["ideal_ps"]) if job["ideal_ps"] else 0
                if end > begin:
                    name = f"all-reduce {index}"
                    yield _Span(3 * number + 1, begin, end - begin, name, "all-reduce", late)
        for each in decisions:
            name = "repair" if each["is_repair"] else "paths"
            load = f"{name}: largest load {each['max_link_load']}, bound {each['bound']}"
            yield _Span(3 * len(jobs), each["time_ps"], 0, load, name)
        for start, end, links, most in shared:
            name = f"{links} link{'s' * (links != 1)} with 2 flows or more, at most {most}"
            yield _Span(len(lanes) - 1, start, end - start, name, "collision")

    head = sheet.add(title, document["time_ps"], lanes, spans())
    slow = max((job["slowdown"] for job in jobs), default=1.0)
    head["facts"] = [
        f"{document['scheme']} on {document['topology']}, {document['hosts']} hosts: all jobs end after "
        f"{format_time_ps(document['time_ps'])}; the job that sharing slows most takes {slow:.2f} times "
        "its ideal all-reduce"
    ]
    head["tables"] = [
        {
            "caption": "jobs",
            "heads": ["job", "GPUs", "all-reduce", "ideal", "slowdown", "throughput", "iteration"],
            "rows": [
                [
                    job["name"],
                    job["gpus"],
                    format_time_ps(job["all_reduce_ps"]),
                    format_time_ps(job["ideal_ps"]),
                    f"{job['slowdown']:.2f}",
                    format_bandwidth(round(job["throughput_bytes_per_s"])),
                    format_time_ps(job["iteration_ps"]),
                ]
                for job in jobs
            ],
        }
    ]
    return head


def document_page(documents: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> Page:
    """Return a page of what ``hocket train --json`` or ``hocket route --json`` printed.

    A training run has its spans where ``hocket train -o`` wrote it; what is printed has only where its
    time goes.

    Raises
    ------
    SpecError
        If there are too many, or not of one kind.
    """
    _checked(len(documents))
    formats = {str(document["format"]) for document in documents}
    if len(formats) > 1:
        raise SpecError(
            None, f"{' and '.join(sorted(formats))} do not go on one page", "give files of one kind"
        )
    is_training = formats == {"hocket.training-run"}
    sheet = _Sheet("Training iterations" if is_training else "Jobs on a fabric")
    is_whole = True
    for document, title in zip(documents, titles, strict=True):
        if is_training:
            spans = _saved_spans(document)
            is_whole = is_whole and bool(spans)
            _add_stages(sheet, title, round(document["total_ps"]), spans)
            _of_training(sheet.head["runs"][-1], document)
        else:
            _add_jobs(sheet, title, document)
    if is_training and not is_whole:
        sheet.head["note"] = (
            "What `hocket train --json` prints has no timeline; what `hocket train -o` writes has one."
        )
    return sheet.made()


def write_training(
    runs: Sequence[TrainingRun], path: Path, titles: Sequence[str] | None = None
) -> None:
    """Write a page that shows training iterations; whole or not at all."""
    write_text(path, fill(*training_page(runs, titles)))


def write_cluster(
    runs: Sequence[ClusterRun], path: Path, titles: Sequence[str] | None = None
) -> None:
    """Write a page that shows jobs on a fabric; whole or not at all."""
    write_text(path, fill(*cluster_page(runs, titles)))
