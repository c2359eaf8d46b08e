"""Collective files: collectives of one's own, in YAML or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from hocket import _core
from hocket._checks import is_decimal
from hocket.collectives.custom import (
    Demand,
    all_to_all_v,
    collective,
    neighbor_exchange,
    send_receive,
)
from hocket.errors import SpecError
from hocket.files.complaint import Located, shown_path
from hocket.files.model import Reader, Strict, Words, schema_of
from hocket.files.yaml_tree import FileKind, Place, parse_yaml, read_yaml
from hocket.units import parse_size, shown

_FORMS = ("demands", "all_to_all_v", "sends", "neighbors")
KIND = FileKind("collective", f"name: and one of {', '.join(_FORMS)}", "list less")


def _bytes(value: object) -> int:
    nothing = isinstance(value, int) and not isinstance(value, bool) and value == 0
    return 0 if nothing else parse_size(value, field=None)


def _npu(value: object) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise SpecError(None, f"{shown(value)} is not an NPU", "give its number or its name")
    return value


def _npus(value: object) -> list[int | str] | None:
    if value == "all":
        return None
    return [_npu(each) for each in value] if isinstance(value, list) else [_npu(value)]


_ONE = {"type": ["integer", "string"], "examples": [0, "gpu0"]}
Bytes: TypeAlias = Annotated[
    int,
    BeforeValidator(_bytes),
    WithJsonSchema({"type": ["integer", "string"], "examples": ["1 MB", 65536]}),
]
Npu: TypeAlias = Annotated[int | str, BeforeValidator(_npu), WithJsonSchema(_ONE)]
Npus: TypeAlias = Annotated[
    list[int | str] | None,
    BeforeValidator(_npus),
    WithJsonSchema({"anyOf": [{"const": "all"}, _ONE, {"type": "array", "items": _ONE}]}),
]


class DemandEntry(Strict):
    """Some bytes, who has them before and who must have them after."""

    size: Bytes = Field(description="Bytes, or text with a unit.")
    holders: Npus = Field(description="Who has them before: an NPU, a list, or all.")
    wanted: Npus = Field(description="Who must have them after, likewise.")
    sum: bool = Field(
        default=False, description="Whether each holder has a vector of its own, to be summed."
    )


class SendEntry(Strict):
    """One message."""

    src: Npu = Field(description="Who sends.")
    dst: Npu = Field(description="Who receives.")
    size: Bytes = Field(description="Bytes, or text with a unit.")


class NeighborsEntry(Strict):
    """An exchange between neighbours."""

    size: Bytes = Field(description="What each sends to each of its neighbours.")
    of: dict[str, list[Npu]] | None = Field(
        default=None, description="To whom each sends; by default those it has a link to."
    )
    same: bool = Field(
        default=False, description="Whether a sender's neighbours all get the same bytes."
    )


class CollectiveFile(Strict):
    """A collective of one's own, in one of four forms."""

    name: Words = Field(default="custom", description="What it is called.")
    npus: list[Npu] | None = Field(
        default=None, description="Participants; by default all that are named."
    )
    demands: Annotated[list[DemandEntry], Field(min_length=1)] | None = Field(
        default=None, description="Who has what, and who must get it or its sum."
    )
    all_to_all_v: Annotated[list[list[Bytes]], Field(min_length=2)] | None = Field(
        default=None, description="Row i, column j: what participant i sends to participant j."
    )
    sends: Annotated[list[SendEntry], Field(min_length=1)] | None = Field(
        default=None, description="Messages, all at once."
    )
    neighbors: NeighborsEntry | None = Field(
        default=None, description="What neighbours send to each other."
    )


def read_collective(path: Path, topology: _core.Topology) -> _core.Collective:
    """Read a collective file; see :func:`hocket.load_collective`."""
    name = shown_path(path)
    return _read(*read_yaml(path, KIND), name, topology)


def collective_from_text(text: str, name: str, topology: _core.Topology) -> _core.Collective:
    """Read a text as :func:`read_collective` reads a file; ``name`` stands for it in messages."""
    return _read(*parse_yaml(text, name, KIND), name, topology)


def _read(
    values: dict[str, Any], lines: dict[Place, int], name: str, topology: _core.Topology
) -> _core.Collective:
    located = _Reader(lines, name)
    file = located.checked(CollectiveFile, values)
    forms = [form for form in _FORMS if getattr(file, form) is not None]
    if len(forms) != 1:
        right = f"give one of {', '.join(_FORMS)}"
        have = " and ".join(forms)
        raise located.wrong((), f"has {have}" if forms else "says nothing to do", right)
    try:
        return _made(file, topology)
    except SpecError as error:
        raise _placed(located, forms[0], error) from None


def _made(file: CollectiveFile, topology: _core.Topology) -> _core.Collective:
    if file.demands is not None:
        demands = [Demand(each.size, each.holders, each.wanted, each.sum) for each in file.demands]
        return collective(topology, demands, npus=file.npus, name=file.name)
    if file.all_to_all_v is not None:
        return all_to_all_v(topology, file.all_to_all_v, npus=file.npus, name=file.name)
    if file.npus is not None:
        raise SpecError("npus", "those who send and receive take part", "leave it out")
    if file.sends is not None:
        sends = [(each.src, each.dst, each.size) for each in file.sends]
        return send_receive(topology, sends, name=file.name)
    assert file.neighbors is not None, "there is one form"
    given, names = file.neighbors, set(topology.device_names)
    of = None
    if given.of is not None:  # keys are text in JSON
        of = {
            int(npu) if npu not in names and is_decimal(npu) else npu: others
            for npu, others in given.of.items()
        }
    return neighbor_exchange(topology, given.size, neighbors=of, same=given.same, name=file.name)


def _placed(located: Located, form: str, error: SpecError) -> SpecError:
    """Add the line of an entry to an error about it."""
    word, _, number = (error.origin or "").partition(" ")
    if word == "demand" and form in ("demands", "sends"):
        key = (error.field,) if error.field else ()
        return located.wrong((form, int(number), *key), error.why, error.remedy)
    if error.field == "npus":
        return located.wrong(("npus",), error.why, error.remedy)
    why = error.why if error.field in (None, form) else f"{error.field}: {error.why}"
    return located.wrong((form,), why, error.remedy)


class _Reader(Reader):
    def fault(self, place: Place, found: Any) -> SpecError | None:
        """Return an error about a list."""
        if found["type"] == "too_short":
            return self.wrong(place, "has too few entries", "add some")
        if found["type"] == "list_type" and found["input"] is not None:
            return self.wrong(place, f"{shown(found['input'])} is not a list", "give a list")
        return None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of collective files, for editors."""
    return schema_of(CollectiveFile, "hocket collective")
