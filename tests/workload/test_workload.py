"""Workloads: those that are shipped, files, and every way to get one wrong."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket.cli import schema
from hocket.files.yaml_tree import read_yaml
from hocket.workload.entries import (
    CostEntry,
    GroupEntry,
    LayerEntry,
    LstmEntry,
    LstmSizes,
    TransformerEntry,
    TransformerSizes,
    WorkEntry,
    WorkloadFile,
)
from hocket.workload.models import describe, path
from hocket.workload.yaml import MAX_LAYERS, from_text

ROOT = Path(__file__).parents[2]
TABLES = ROOT.parent / "shared" / "formats" / "examples" / "scalesim_csv"
NAMES = [
    "alexnet",
    "alphagozero",
    "bert-large",
    "bloom",
    "dlrm",
    "fasterrcnn",
    "gnmt",
    "googlenet",
    "gpt3-175b",
    "llama2-70b",
    "llama3-405b",
    "llama3-70b",
    "llama3-8b",
    "mixtral-8x7b",
    "ncf",
    "resnet152",
    "resnet50",
    "transformer",
    "transformer-1t",
]
FC = "{name: fc, channels: 3, filters: 4}"
ONE = f"layers:\n  - {FC}\n"
JARGON = ("input should", "valid ", "dictionary", "instance", "validation", "NoneType", "Tag", "<")

Row = tuple[int, ...]


def row(layer: hk.Layer) -> Row:
    """Dimensions as the columns of SCALE-Sim's tables."""
    size = (layer.input_height, layer.input_width, layer.filter_height, layer.filter_width)
    return (*size, layer.channels, layer.filters, layer.stride)


def rows(name: str) -> list[Row]:
    layers = hk.workload.load(name).layers
    dimensions = [layer for layer in layers if isinstance(layer, hk.Layer)]
    return [row(layer) for layer in dimensions for _ in range(layer.times)]


def table(name: str) -> list[Row]:
    """Rows of one of SCALE-Sim's tables; lines with anything else than numbers are headings."""
    file = TABLES / f"{name}.csv"
    if not file.is_file():
        pytest.skip(f"SCALE-Sim's tables are not in {TABLES.parent.name} beside the repository")
    found = []
    with file.open(encoding="utf-8", newline="") as lines:
        for cells in csv.reader(lines):
            numbers = [cell.strip() for cell in cells[1:8]]
            if len(numbers) == 7 and all(number.isdecimal() for number in numbers):
                found.append(tuple(int(number) for number in numbers))
    return found


# What is shipped.


def test_names() -> None:
    assert hk.workload.names() == NAMES
    assert all(describe(name) and not describe(name).startswith("#") for name in NAMES)


@pytest.mark.parametrize(
    ("name", "layers", "parameters", "as_rows"),
    [
        ("alexnet", 5, 3_745_824, 3_745_824),
        ("alphagozero", 8, 1_573_620, 1_573_620),
        ("fasterrcnn", 46, 13_258_944, 13_258_944),
        ("googlenet", 58, 6_854_208, 6_854_208),
        ("ncf", 8, 11_042_704, 11_042_704),
        ("resnet152", 156, 60_192_808, 60_040_384),
        ("transformer", 765, 61_560_832, 77_418_328),
    ],
)
def test_shipped(name: str, layers: int, parameters: int, as_rows: int) -> None:
    workload = hk.workload.load(name)
    assert workload.name == name
    assert len(workload.layers) == layers
    assert workload.parameters == parameters
    assert workload.row_parameters == as_rows
    assert workload.gradient_bytes() == 4 * parameters
    assert workload.gradient_bytes(16) == 2 * parameters
    assert len({layer.name for layer in workload.layers}) == layers
    assert workload.source
    assert hk.workload.load(path(name)) == workload


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("alexnet", "alexnet"),
        ("alphagozero", "AlphaGoZero"),
        ("fasterrcnn", "FasterRCNN"),
        ("googlenet", "Googlenet"),
        ("ncf", "NCF_recommendation"),
    ],
)
def test_dimensions_are_those_of_scale_sim(name: str, file: str) -> None:
    assert rows(name) == table(file)


def test_transformer_has_the_rows_of_scale_sim() -> None:
    # There the output projection stands after every head.
    assert Counter(rows("transformer")) == Counter(table("Transformer"))


def test_resnet152_follows_from_its_architecture() -> None:
    expected: list[Row] = [(230, 230, 7, 7, 3, 64, 2)]
    channels, side = 64, 56
    for stage, (blocks, width) in enumerate([(3, 64), (8, 128), (36, 256), (3, 512)]):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            out = side // stride
            expected.append((side, side, 1, 1, channels, width, stride))
            expected.append((out + 2, out + 2, 3, 3, width, width, 1))
            expected.append((out, out, 1, 1, width, 4 * width, 1))
            if block == 0:
                expected.append((side, side, 1, 1, channels, 4 * width, stride))
            channels, side = 4 * width, out
    expected.append((1, 1, 1, 1, 2048, 1000, 1))
    assert rows("resnet152") == expected
    layers = hk.workload.load("resnet152").layers
    heights = [layer.output_height for layer in layers if isinstance(layer, hk.Layer)]
    assert heights[0] == 112
    assert set(heights[1:]) == {56, 28, 14, 7, 1}


def test_transformer_counts_each_weight_once() -> None:
    workload = hk.workload.load("transformer")
    attention = 18 * 4 * 512 * 512
    feed_forward = 12 * 2 * 512 * 2048
    assert workload.parameters == attention + feed_forward + 33_708 * 512 + 512 * 512
    times = [layer.times for layer in workload.layers if isinstance(layer, hk.Layer)]
    assert [each for each in times if each > 1] == [8] * 18
    without = {layer.name.rpartition("/")[2] for layer in workload.layers if not layer.parameters}
    assert without <= {"embedding2", *(f"{x}" for x in ("scores", "weighted"))}


# Layers.


def test_layer() -> None:
    layer = hk.Layer("l", 13, 15, 3, 5, channels=4, filters=6, stride=2, times=3)
    assert (layer.output_height, layer.output_width, layer.output_pixels) == (6, 6, 36)
    assert layer.window == 60
    assert layer.parameters == 360
    assert layer.row_parameters == 1080
    assert layer.macs == 3 * 36 * 60 * 6
    more = replace(layer, biases=True, normalized=True)
    assert (more.parameters, more.row_parameters) == (378, 1080)
    assert replace(more, own_parameters=7).parameters == 7 + 18
    assert layer.gradient_bytes() == 1440
    assert hk.Layer("l", channels=3, filters=1).gradient_bytes(7) == 3  # 21 bits


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        ({"name": ""}, ["name", "''"]),
        ({"name": 3}, ["name", "3 is not a name"]),
        ({"name": "a\nb"}, ["name", "'a\\nb' is not a name"]),
        ({"channels": 0}, ["layer l", "channels", "too small", "from 1"]),
        ({"channels": 1 << 24}, ["layer l", "channels", "too large"]),
        ({"filters": -1}, ["filters", "-1 "]),
        ({"filters": True}, ["filters", "true "]),
        ({"stride": 1.5}, ["stride", "1.5 "]),
        ({"times": "2"}, ["times", "'2' "]),
        ({"own_parameters": -1}, ["own_parameters", "too small", "from 0"]),
        ({"filter_height": 2}, ["layer l", "2 x 1", "larger than the input, 1 x 1", "padding"]),
    ],
)
def test_layer_that_makes_no_sense(keys: dict[str, object], parts: list[str]) -> None:
    with pytest.raises(hk.SpecError) as error:
        hk.Layer(**{"name": "l", **keys})  # type: ignore[arg-type]
    assert all(part in str(error.value) for part in parts)
    assert "; " in str(error.value)


@pytest.mark.parametrize("bits", [0, 1025, 1.5, True, "32"])
def test_precision_that_makes_no_sense(bits: object) -> None:
    with pytest.raises(hk.SpecError, match=r"precision_bits: .*; give a whole number from 1 to"):
        hk.Layer("l").gradient_bytes(bits)  # type: ignore[arg-type]


def test_workload_needs_layers() -> None:
    assert hk.Workload("w", [hk.Layer("l")]).layers == (hk.Layer("l"),)  # type: ignore[arg-type]
    for wrong in (3, ["l"], None):
        with pytest.raises(
            hk.SpecError, match="layers: are no layers; give a list of Layer or Block"
        ):
            hk.Workload("w", wrong)  # type: ignore[arg-type]
    with pytest.raises(hk.SpecError, match="'' is not a name"):
        hk.Workload("", (hk.Layer("l"),))
    with pytest.raises(hk.SpecError, match="there is no layer; give at least one"):
        hk.Workload("w", ())


# Files.


def test_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yml"
    file.write_text(
        "notes: [a note]\nsource: [{paper: Doe, repo: r, commit: c}]\nlayers:\n"
        "  - {name: in, input: [9, 7], filter: [3, 2], channels: 2, filters: 4, stride: 2}\n"
        "  - name: block\n    repeat: 2\n    layers:\n"
        "      - {name: a, channels: 4, filters: 4, repeat: 2}\n"
        "      - {name: b, channels: 4, filters: 5, times: 3, parameters: 7, reads_data: true}\n",
        encoding="utf-8",
    )
    workload = hk.workload.load(file)
    assert (workload.name, workload.notes, workload.source) == ("mine", ("a note",), ("Doe r c",))
    names = ["in", "block.1/a.1", "block.1/a.2", "block.1/b"]
    assert [layer.name for layer in workload.layers[:4]] == names
    assert len(workload.layers) == 7
    assert isinstance(workload.layers[0], hk.Layer)
    assert row(workload.layers[0]) == (9, 7, 3, 2, 2, 4, 2)
    assert workload.parameters == 3 * 2 * 2 * 4 + 4 * 16 + 2 * 7
    last = workload.layers[-1]
    assert isinstance(last, hk.Layer)
    assert (last.name, last.times, last.reads_data) == ("block.2/b", 3, True)


def layers(*entries: str) -> str:
    return "layers:\n" + "".join(f"  - {entry}\n" for entry in entries)


def deep(groups: int) -> str:
    return layers("{name: g, layers: [" * groups + FC + "]}" * groups)


BAD = {
    "": ["is empty", "begin with layers:"],
    "- 1\n": ["is not a mapping", "begin with layers:"],
    "x: 1\n": ["line 1", "no key 'x'", "keys are name, source, notes, measured_samples, layers"],
    "name: w\n": ["key 'layers' is missing"],
    "layers:\n": ["line 1", "layers", "has no value"],
    "layers: []\n": ["line 1", "layers", "0 entries", "at least one"],
    "layers: 3\n": ["line 1", "layers", "3 ", "{name: fc"],
    "layers: {a: 1}\n": ["line 1", "layers", "is not a list"],
    ONE + "nam: x\n": ["line 3", "no key 'nam'", "did you mean 'name'?"],
    ONE + ONE: ["line 3", "'layers' stands twice"],
    ONE + "source: [{}]\n": ["line 3", "source[0]", "'repo' is missing"],
    ONE + "source: [{a: 1}]\n": ["line 3", "source[0]", "no key 'a'", "paper"],
    ONE + "notes: x\n": ["line 3", "notes", "'x' "],
    layers("fc"): ["line 2", "layers[0]", "'fc' ", "write a layer as"],
    layers(""): ["line 2", "layers[0]", "has no value", "write a layer as"],
    layers(FC, "{name: a, filters: 4}"): ["line 3", "layers[1]", "'channels' is missing"],
    layers("{channels: 3, filters: 4}"): ["line 2", "'name' is missing"],
    layers("{name: a, chanels: 3, filters: 4}"): ["layers[0]", "did you mean 'channels'?"],
    layers("{name: a, name: b}"): ["line 2", "'name' stands twice"],
    layers("{name: a b, channels: 3, filters: 4}"): ["layers[0].name", "no spaces"],
    layers("{name: 3, channels: 3, filters: 4}"): ["layers[0].name", "3 is not text"],
    layers("{name: a, channels: 0, filters: 4}"): ["layers[0].channels", "0 "],
    layers("{name: a, channels: 3, filters: -4}"): ["layers[0].filters", "-4 "],
    layers("{name: a, channels: 3.5, filters: 4}"): ["3.5 is not a whole number"],
    layers("{name: a, channels: '3', filters: 4}"): ["'3' is not a whole number"],
    layers("{name: a, channels: true, filters: 4}"): ["true is not a whole number"],
    layers("{name: a, channels: .nan, filters: 4}"): ["nan is not a whole number"],
    layers("{name: a, channels: , filters: 4}"): ["layers[0].channels", "has no value"],
    layers(f"{{name: a, channels: 1{'0' * 5000}, filters: 4}}"): ["line 2", "is not a number"],
    layers(f"{{name: a, channels: 1{'0' * 30}, filters: 4}}"): ["too large", "less than 16777216"],
    layers(FC[:-1] + ", stride: 0}"): ["layers[0].stride", "0 "],
    layers(FC[:-1] + ", times: 0}"): ["layers[0].times", "0 "],
    layers(FC[:-1] + ", parameters: -1}"): ["layers[0].parameters", "-1 "],
    layers(FC[:-1] + ", reads_data: 1}"): ["reads_data", "neither true nor false"],
    layers(FC[:-1] + ", input: 3}"): ["layers[0].input", "3 ", "[height, width]"],
    layers(FC[:-1] + ", input: [3]}"): ["layers[0].input", "1 entries", "[height, width]"],
    layers(FC[:-1] + ", input: [3, 0]}"): ["layers[0].input[1]", "0 "],
    layers(FC[:-1] + ", filter: [3, 1]}"): ["layers[0]", "3 x 1, is larger than the input, 1 x 1"],
    layers(f"{{name: g, repeat: 0, layers: [{FC}]}}"): ["layers[0].repeat", "0 "],
    layers(f"{{name: g, repets: 2, layers: [{FC}]}}"): ["did you mean 'repeat'?"],
    layers("{name: g, layers: []}"): ["layers[0].layers", "0 entries"],
    layers("{name: g, layers: [{name: a}]}"): ["layers[0].layers[0]", "'channels' is missing"],
    layers(FC[:-1] + ", repeat: 100001}"): ["layers", "100001", f"at most {MAX_LAYERS}"],
    layers(f"{{name: g, repeat: 9999999, layers: [{FC[:-1]}, repeat: 9999999}}]}}"): ["at most"],
    layers("{name: a, channels: 9999999, filters: 99999999}"): ["too large"],
    layers("{name: a, channels: 16000000, filters: 16000000, input: [9, 9], filter: [9, 9]}"): [
        "2^48 parameters or more"
    ],
    deep(5): ["line 2", "groups are 5 deep", "at most 4"],
    deep(60): ["line 2", "nested too deeply"],
    "layers: " + "[" * 1000: ["line 1", "nested too deeply"],
    "a: &a [1, 1]\nlayers: [*a, *a]\n": ["line 1", "anchors and aliases"],
    "layers: !!python/object/apply:os.system [x]\n": ["line 1", "tag"],
    ONE + "---\n" + ONE: ["line 3", "second document"],
    "layers: [\n": ["is not YAML"],
    "name: \x07\n": ["line 1", "U+0007"],
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text[:60]))
def test_bad_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.yml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(hk.SpecError) as error:
        hk.workload.load(file)
    message = str(error.value)
    assert message.startswith((f"{file}: ", f"{file}, line "))
    rest = message.removeprefix(str(file))
    assert len(message.splitlines()) == 1
    assert len(rest) < 320
    assert not [word for word in JARGON if word in rest]
    assert ";" in rest
    assert [part for part in BAD[text] if part not in rest] == []


def test_bad_names_and_paths(tmp_path: Path) -> None:
    with pytest.raises(hk.SpecError, match=r"no workload 'resnet125'; did you mean 'resnet152'\?"):
        hk.workload.load("resnet125")
    with pytest.raises(hk.SpecError, match="no workload 'frob'; `hocket workload list`"):
        hk.workload.load("frob")
    with pytest.raises(hk.SpecError, match=r"nowhere\.yml: cannot be read: No such file"):
        hk.workload.load("nowhere.yml")
    with pytest.raises(hk.SpecError, match="cannot be read: Is a directory; give a workload file"):
        hk.workload.load(f"{tmp_path}/")
    with pytest.raises(hk.SpecError, match=r"^name_or_path: "):
        hk.workload.load("a\0.yml")
    with pytest.raises(hk.SpecError, match="cannot be read: File name too long"):
        hk.workload.load("a" * 5000 + ".yml")
    (tmp_path / "bytes.yml").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(hk.SpecError, match=r"bytes\.yml: .*UTF-8"):
        hk.workload.load(tmp_path / "bytes.yml")


def test_groups_may_be_four_deep() -> None:
    assert [layer.name for layer in from_text(deep(4), "w.yml").layers] == ["g/g/g/g/fc"]


KEYS = ("layers", "name", "input", "filter", "channels", "filters", "repeat", "a")
MARKS = ("{", "}", "[", "]", ":", ": ", ", ", "- ", "\n", "\n  ", "\n    ", "&a", "*a", "'", '"')
WORDS = st.sampled_from([*KEYS, *MARKS, "0", "3", "1e99", "true"])


def refusal(text: str) -> str | None:
    """The message about a text; none if it is a workload."""
    try:
        assert from_text(text, "w.yml").layers
    except hk.SpecError as error:
        return str(error)
    return None


@given(st.lists(WORDS, max_size=40).map("".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused_in_a_line(text: str) -> None:
    message = refusal(text)
    assert message is None or message.startswith("w.yml")
    assert message is None or len(message.splitlines()) == 1


def within(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Such values, lists of them and mappings to them."""
    keys = st.sampled_from([*LayerEntry.model_fields, "layers", "forward", "lstm", "joins", "x"])
    return inner | st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=9)


NUMBERS = st.integers(-3, 1 << 70) | st.integers(1, 9) | st.floats()
PLAIN: st.SearchStrategy[object] = st.none() | st.booleans() | NUMBERS | st.sampled_from(["a", ""])
VALUES = within(within(within(PLAIN)))


@given(st.dictionaries(st.sampled_from(["layers", "name", "notes", "source"]), VALUES))
def test_any_values_are_read_or_refused_in_a_line(values: dict[str, object]) -> None:
    # JSON is YAML, but for numbers that are none.
    text = json.dumps(values, allow_nan=True).replace("NaN", ".nan").replace("Infinity", ".inf")
    message = refusal(text)
    if message is not None:
        assert message.startswith("w.yml")
        assert len(message.splitlines()) == 1
        assert not [word for word in JARGON[:-1] if word in message]


LAYERS = st.builds(
    lambda size, filter_, *rest: (max(size, filter_), filter_, *rest),
    *[st.integers(1, 40)] * 2,
    *[st.integers(1, 999)] * 4,
)


@given(st.lists(LAYERS, min_size=1, max_size=5))
def test_what_is_written_is_read(wanted: list[tuple[int, ...]]) -> None:
    entries = (
        f"{{name: l{i}, input: [{a}, {a}], filter: [{b}, {b}], channels: {c}, filters: {f}, "
        f"stride: {s}, times: {t}}}"
        for i, (a, b, c, f, s, t) in enumerate(wanted)
    )
    read = from_text(layers(*entries), "w.yml").layers
    assert [(*row(layer), layer.times) for layer in read if isinstance(layer, hk.Layer)] == [
        (a, a, b, b, c, f, s, t) for a, b, c, f, s, t in wanted
    ]


# The schema.


def test_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = schema.schema_text("workload")
    assert schema.main(["workload"]) == 0
    assert capsys.readouterr().out == text
    assert schema.main(["workload", "a", "b"]) == 2


def test_schema_has_every_key() -> None:
    value = json.loads(schema.schema_text("workload"))
    assert value["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert set(value["properties"]) == set(WorkloadFile.model_fields)
    entries = (LayerEntry, GroupEntry, CostEntry, TransformerEntry, LstmEntry)
    for model in (*entries, WorkEntry, TransformerSizes, LstmSizes):
        form = value["$defs"][model.__name__]
        assert form["additionalProperties"] is False
        assert set(form["properties"]) == set(model.model_fields)


@pytest.mark.parametrize("name", NAMES)
def test_shipped_files_fit_the_model(name: str) -> None:
    values, _ = read_yaml(path(name))
    assert WorkloadFile.model_validate(values).name == name
