"""Collective files: collectives of one's own, in YAML or JSON."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from hocket import _core
from hocket._checks import is_decimal
from hocket.collectives.collective import npu_number
from hocket.collectives.custom import (
    ROUTED,
    Demand,
    all_to_all_v,
    collective,
    neighbor_exchange,
    send_receive,
)
from hocket.collectives.experts import Experts, demands_of
from hocket.errors import SpecError
from hocket.files.complaint import Located, shown_path
from hocket.files.model import Reader, Strict, Words, schema_of
from hocket.files.yaml_tree import FileKind, Place, parse_yaml, read_yaml
from hocket.units import parse_size, shown

_FORMS = ("demands", "all_to_all_v", "sends", "neighbors", *ROUTED)
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
    """A collective of one's own, in one of several forms."""

    name: Words | None = Field(default=None, description="What it is called; its form by default.")
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
    dispatch: Experts | None = Field(
        default=None, description="Tokens that go to their experts, once to each NPU that has some."
    )
    combine: Experts | None = Field(
        default=None, description="The sums of what experts return, which go back to the tokens."
    )


def read_collective(path: Path, topology: _core.Topology) -> _core.Collective:
    """Read a collective file; see :func:`hocket.load_collective`."""
    name = shown_path(path)
    return _read(*read_yaml(path, KIND), name, topology)


def collective_from_text(text: str, name: str, topology: _core.Topology) -> _core.Collective:
    """Read a text as :func:`read_collective` reads a file; ``name`` stands for it in messages."""
    return _read(*parse_yaml(text, name, KIND), name, topology)


def collective_from_words(words: str, topology: _core.Topology) -> _core.Collective:
    """Read ``dispatch:experts=256,top=8`` as the same in a file."""
    form, _, rest = words.partition(":")
    return _read({form: _pairs(form, rest)}, {}, shown(words), topology)


def _pairs(field: str, words: str) -> dict[str, Any]:
    """Read ``key=value`` pairs, separated by commas."""
    given: dict[str, Any] = {}
    for pair in filter(None, words.split(",")):
        key, is_pair, value = pair.partition("=")
        if not is_pair:
            raise SpecError(field, f"{shown(pair)} has no value", "write it as top=8")
        if key.strip() in given:
            raise SpecError(field, f"{key.strip()} is given twice", "give it once")
        given[key.strip()] = _word(value.strip())
    return given


def experts_from_words(words: str, field: str, *, said: Container[str]) -> Experts:
    """Read ``skew=20,nodes=4`` as a layer of experts of which the keys in `said` are known elsewhere.

    Raises
    ------
    SpecError
        Naming the key that is wrong.
    """
    given = _pairs(field, words)
    for key in given:
        if key in said:
            raise SpecError(field, f"{key} follows from the model", "leave it out")
    return _Reader({}, field).checked(Experts, given)


def _word(text: str) -> int | float | str:
    """Read a number; what is none is left as it is."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


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
    for form in ROUTED:
        if (experts := getattr(file, form)) is not None:
            return _routed(form, experts, file, topology)
    name = file.name or "custom"
    if file.demands is not None:
        demands = [Demand(each.size, each.holders, each.wanted, each.sum) for each in file.demands]
        return collective(topology, demands, npus=file.npus, name=name)
    if file.all_to_all_v is not None:
        return all_to_all_v(topology, file.all_to_all_v, npus=file.npus, name=name)
    if file.npus is not None:
        raise SpecError("npus", "those who send and receive take part", "leave it out")
    if file.sends is not None:
        sends = [(each.src, each.dst, each.size) for each in file.sends]
        return send_receive(topology, sends, name=name)
    assert file.neighbors is not None, "there is one form"
    given, names = file.neighbors, set(topology.device_names)
    of = None
    if given.of is not None:  # keys are text in JSON
        of = {
            int(npu) if npu not in names and is_decimal(npu) else npu: others
            for npu, others in given.of.items()
        }
    return neighbor_exchange(topology, given.size, neighbors=of, same=given.same, name=name)


def _routed(
    form: str, experts: Experts, file: CollectiveFile, topology: _core.Topology
) -> _core.Collective:
    """Make a dispatch or a combine, among all NPUs if none are named."""
    given = range(topology.npu_count) if file.npus is None else file.npus
    npus = [npu_number(topology, npu, "npus") for npu in given]
    rows = demands_of(form, experts, topology, npus)
    return _core.Collective.custom(npus, rows, True, file.name or form)


def _placed(located: Located, form: str, error: SpecError) -> SpecError:
    """Add the line of an entry to an error about it."""
    word, _, number = (error.origin or "").partition(" ")
    if word == "demand" and form in ("demands", "sends"):
        key = (error.field,) if error.field else ()
        return located.wrong((form, int(number), *key), error.why, error.remedy)
    if error.field == "npus":
        return located.wrong(("npus",), error.why, error.remedy)
    if form in ROUTED and error.field not in (None, form):
        return located.wrong((form, error.field), error.why, error.remedy)
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
