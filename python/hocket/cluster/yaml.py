"""Job files: models that are trained side by side on a fabric."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    create_model,
)

from hocket._checks import share_hint
from hocket._options import declared
from hocket.cluster.jobs import (
    COLLECTIVES,
    MAX_GPUS,
    MAX_ITERATIONS,
    OF_WORKLOAD,
    POLICIES,
    ROUNDS,
    Compute,
    Job,
    JobList,
)
from hocket.cluster.models import MODELS
from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.files.model import Name, Reader, Strict, Words, last_key, schema_of
from hocket.files.yaml_tree import FileKind, Place, parse_yaml, read_yaml
from hocket.units import parse_count, parse_operations, parse_time, parse_written, shown
from hocket.workload.accelerators import ACCELERATORS

KIND = FileKind("jobs", "jobs:", "list fewer jobs")


def _number(value: object) -> int:
    return parse_count(value, field=None)


def _time(value: object) -> str:
    parse_written(parse_time, value, field=None)
    return str(value)


def _speed(value: object) -> str:
    parse_written(parse_operations, value, field=None)
    return str(value)


def _compute(value: object) -> str:
    if isinstance(value, str) and not any(letter.isdecimal() for letter in value):
        if value != "paper":
            right = "use paper, a time such as 1.2 s, or {efficiency: 0.5}"
            raise SpecError(None, f"there is no {shown(value)}", right)
        return value
    return _time(value)


def _choice(known: tuple[str, ...]) -> WithJsonSchema:
    """Offer the names to editors; ``Job`` checks them."""
    return WithJsonSchema({"type": "string", "enum": list(known)})


Count: TypeAlias = Annotated[int, Field(ge=1, le=MAX_GPUS)]
Number: TypeAlias = Annotated[
    int,
    BeforeValidator(_number),
    WithJsonSchema({"type": ["number", "string"], "examples": ["13e9"]}),
]
Time: TypeAlias = Annotated[
    str, BeforeValidator(_time), WithJsonSchema({"type": "string", "examples": ["2 s", "800 ms"]})
]
Speed: TypeAlias = Annotated[
    str, BeforeValidator(_speed), WithJsonSchema({"type": "string", "examples": ["312 TFLOP/s"]})
]
ComputeText: TypeAlias = Annotated[
    str,
    BeforeValidator(_compute),
    WithJsonSchema({"type": "string", "examples": ["paper", "1.2 s"]}),
]


class ComputeEntry(Strict):
    """An iteration's compute by its operations."""

    tokens_per_iteration: Number | None = Field(
        default=None,
        description="Over all replicas; by default the batch that the model was published with.",
    )
    peak: Speed = Field(default=Compute.peak, description="Of a GPU.")
    efficiency: Annotated[float, Field(gt=0, le=1)] = Field(
        default=Compute.efficiency, description="Share of the peak while the pipeline is full."
    )
    micro_batches: Count | None = Field(
        default=None,
        description="Of a replica and iteration; by default 4 for each pipeline stage.",
    )

    def compute(self) -> Compute:
        """Return what this describes."""
        return Compute(self.tokens_per_iteration, self.peak, self.efficiency, self.micro_batches)


_TAGS = ("<text>", "<mapping>")


def _form(value: object) -> str:
    return "<mapping>" if isinstance(value, dict | BaseModel) else "<text>"


ComputeChoice: TypeAlias = Annotated[
    Annotated[ComputeText, Tag("<text>")] | Annotated[ComputeEntry, Tag("<mapping>")],
    Discriminator(_form),
]


def _of_jobs(**keys: Any) -> Any:
    """Return a model whose keys are fields of :class:`Job`, which says what each is; all may be missing."""
    fields: dict[str, Any] = {}
    for name, kind in keys.items():
        said = declared(Job)[name]
        doc = said.doc
        if isinstance(said.default, str | int):
            doc = f"{doc} Default: {said.default}."
        fields[name] = (kind | None, Field(default=None, description=doc))
    return create_model("Fields", __base__=Strict, **fields)


class Defaults(
    _of_jobs(  # type: ignore[misc]
        model=Annotated[Words, _choice(tuple(MODELS))],
        workload=Words,
        npu=Annotated[Words, _choice(tuple(ACCELERATORS))],
        samples=Count,
        efficiency=Annotated[float, Field(gt=0, le=1)],
        precision=Annotated[int, Field(ge=1, le=1024)],
        micro_batches=Count,
        parameters=Number,
        tensor=Count,
        pipeline=Count,
        training_tokens=Number,
        data=Count,
        iterations=Annotated[int, Field(ge=1, le=MAX_ITERATIONS)],
        arrival=Time,
        compute=ComputeChoice,
        placement=Annotated[Words, _choice(POLICIES)],
        collective=Annotated[Words, _choice(COLLECTIVES)],
        grid=list[Count],
        rounds=Annotated[Words, _choice(ROUNDS)],
        bytes_per_parameter=Annotated[int, Field(ge=1, le=64)],
    )
):
    """Defaults of all jobs."""


class JobEntry(Defaults):
    """A job."""

    name: Name
    gpus: Count | None = Field(
        default=None, description="To check: tensor x pipeline x data is as many."
    )
    hosts: Annotated[list[Name], Field(min_length=1)] | None = Field(
        default=None, description=declared(Job)["hosts"].doc
    )


class JobsFile(Strict):
    """Jobs that share a fabric."""

    seed: Annotated[int, Field(ge=0, lt=1 << 64)] = Field(
        default=0, description="Of random placements."
    )
    defaults: Defaults = Defaults()
    jobs: Annotated[list[JobEntry], Field(min_length=1)]


def from_file(path: Path) -> JobList:
    """Read a file of jobs.

    Raises
    ------
    SpecError
        Naming file, line, job, key and remedy.
    """
    return _jobs(*read_yaml(path, KIND), shown_path(path), path.parent)


def from_text(text: str, name: str) -> JobList:
    """Read a text as :func:`from_file` reads a file; ``name`` stands for it in messages."""
    return _jobs(*parse_yaml(text, name, KIND), name, Path())


def _jobs(values: dict[str, Any], lines: dict[Place, int], name: str, folder: Path) -> JobList:
    reader = _Reader(values, lines, name, folder)
    file = reader.checked(JobsFile, values)
    jobs: list[Job] = []
    names: set[str] = set()
    for i, entry in enumerate(file.jobs):
        if entry.name in names:
            raise reader.wrong(("jobs", i, "name"), "stands twice", "give each job its own")
        names.add(entry.name)
        jobs.append(reader.job(i, entry, file.defaults))
    return JobList(tuple(jobs), file.seed)


# What a job says of one of these, it says of all: defaults do not mix with it.
_TOGETHER = (
    ("model", "parameters", "workload"),
    ("placement", "hosts"),
    ("collective", "grid"),
)
_OF_MODELS = ("training_tokens", "bytes_per_parameter", "compute")
"""Defaults that a job with a workload does not take."""


class _Reader(Reader):
    tags = _TAGS

    def __init__(
        self, values: dict[str, Any], lines: dict[Place, int], name: str, folder: Path
    ) -> None:
        super().__init__(lines, name)
        self._values = values
        self._folder = folder

    def wrong(
        self, place: Place, why: str, remedy: str | None = None, *, line_of: Place = ()
    ) -> SpecError:
        """Make an error about a place; one within a job names the job instead of its position."""
        if place[:1] != ("jobs",) or len(place) < 2 or not (title := self._title(place[1])):
            return super().wrong(place, why, remedy, line_of=line_of)
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place[2:])
        error = super().wrong((), why, remedy, line_of=line_of or place)
        field = key.removeprefix(".") or None
        return error.but(field=field, origin=f"{error.origin}: job {title}")

    def _title(self, i: str | int) -> str | None:
        jobs = self._values["jobs"]
        entry = jobs[i] if isinstance(jobs, list) and isinstance(i, int) else None
        name = entry.get("name") if isinstance(entry, dict) else None
        return shown(name) if isinstance(name, str) else None

    def job(self, i: int, entry: JobEntry, defaults: Defaults) -> Job:
        """Return a job with what the defaults add to it."""
        own = {key: getattr(entry, key) for key in entry.model_fields_set}
        gpus = own.pop("gpus", None)
        known = {key: getattr(defaults, key) for key in defaults.model_fields_set}
        for keys in _TOGETHER:
            if any(key in own for key in keys):
                known = {key: value for key, value in known.items() if key not in keys}
        known = {key: value for key, value in known.items() if key not in self._unfit(known | own)}
        given = {key: value for key, value in (known | own).items() if value is not None}
        if "workload" in given:
            given["workload"] = self._beside(given["workload"])
        if isinstance(compute := given.get("compute"), ComputeEntry):
            given["compute"] = compute.compute()
        place = ("jobs", i)
        try:
            job = Job(**given)
        except SpecError as error:
            raise self._of_job(place, error) from None
        if gpus is not None and gpus != job.gpus:
            raise self.wrong(
                (*place, "gpus"),
                f"{gpus} is not tensor x pipeline x data, {job.tensor} x {job.pipeline} x "
                f"{job.data} = {job.gpus}",
                "leave gpus out, or make them equal",
            )
        return replace(job, origin=f"{self._name}, line {self._lines[place]}")

    @staticmethod
    def _unfit(given: dict[str, Any]) -> tuple[str, ...]:
        """Defaults that do not go with how a job names what it trains."""
        return OF_WORKLOAD if given.get("workload") is None else _OF_MODELS

    def _beside(self, workload: str) -> str:
        """Return the path of a workload file that is named from the folder of this file."""
        is_file = workload.endswith((".yml", ".yaml")) or "/" in workload
        return str(self._folder / workload) if is_file else workload

    def _of_job(self, place: Place, error: SpecError) -> SpecError:
        """Find the line of what ``Job`` refuses."""
        key = error.field or ""
        if (*place, key) in self._lines:
            return self.wrong((*place, key), error.why, error.remedy)
        line = ("defaults", key) if ("defaults", key) in self._lines else place
        why = f"{key}: {error.why}" if key else error.why
        return self.wrong(place, why, error.remedy, line_of=line)

    def fault(self, place: Place, found: Any) -> SpecError | None:
        """Return an error about a share or a list."""
        kind, given, key = found["type"], found["input"], last_key(place)
        if given is None or kind == "value_error":
            return None
        if key == "efficiency":
            right = f"give a number above 0 and up to 1{share_hint(given)}"
            return self.wrong(place, f"{shown(given)} is not valid", right)
        if kind in ("list_type", "too_short") and key in _LISTS:
            wrong = "is empty" if kind == "too_short" else f"{shown(given)} is not a list"
            return self.wrong(place, wrong, f"write it as {_LISTS[key]}")
        return None


_LISTS = {
    "jobs": "lines of - {name: big, model: bloom, data: 8}, at least one",
    "hosts": "[host0, host3]",
    "grid": "[2, 4]",
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of job files, for editors."""
    return schema_of(JobsFile, "hocket jobs")
