"""The words of the refusals that all readers of YAML files give; their tests look at the parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, Field, ValidationError

from hocket import SpecError
from hocket._checks import did_you_mean
from hocket.files.complaint import NAME, complaint
from hocket.files.yaml_tree import FileKind, dump_yaml, parse_yaml, read_yaml

KIND = FileKind("shopping", "buy:", "buy less")

FILES = {
    "not UTF-8": (b"\xff\xfe", "{file}: is not text in UTF-8; save it as UTF-8"),
    "empty": (b"", "{file}: is empty; begin with buy:"),
    "a list": (b"- 1\n", "{file}: is not a mapping of keys to values; begin with buy:"),
    "too large": (
        b"#" * ((8 << 20) + 1),
        "{file}: is larger than 8 MiB, the most that a shopping file may be; buy less",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_words_about_a_file(case: str, tmp_path: Path) -> None:
    raw, words = FILES[case]
    file = tmp_path / "mine.yml"
    file.write_bytes(raw)
    with pytest.raises(SpecError) as caught:
        read_yaml(file, KIND)
    assert str(caught.value) == words.format(file=file)
    assert caught.value.origin == str(file)


def test_words_about_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "no.yml", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(SpecError) as caught:
            read_yaml(path, KIND)
        assert str(caught.value) == f"{path}: cannot be read: {reason}; give a shopping file"


def test_lines_are_those_of_the_values() -> None:
    values, lines = parse_yaml("buy:\n  - milk\n  - {eggs: 4}\n", "mine.yml", KIND)
    assert values == {"buy": ["milk", {"eggs": 4}]}
    assert lines["buy", 0] == 2
    assert lines["buy", 1, "eggs"] == 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("1e3", 1000.0), ("1E-07", 1e-7), ("-2.5e+1", -25.0), (".5e1", 5.0), ("'1e3'", "1e3")],
        *[("1e", "1e"), ("e3", "e3"), ("0x1e3", 483), ("0", 0), ("0.5", 0.5), ("'017'", "017")],
    ],
)
def test_numbers_with_an_exponent_are_those_of_json(text: str, value: object) -> None:
    values, _ = parse_yaml(f"buy: {text}\n", "mine.yml", KIND)
    assert (values["buy"], type(values["buy"])) == (value, type(value))


def test_no_number_is_octal() -> None:
    with pytest.raises(SpecError) as caught:
        parse_yaml("buy:\n  - 017\n", "mine.yml", KIND)
    right = "write it without the 0, or quote it if it is text"
    assert str(caught.value) == f"mine.yml, line 2: '017' is octal in YAML; {right}"


class Model(BaseModel, strict=True):
    whole: Annotated[int, Field(ge=1, lt=9)] = 1
    most: Annotated[int, Field(le=9)] = 1
    flag: bool = False
    listed: list[int] = []
    pair: Annotated[list[int], Field(min_length=2, max_length=2)] = [1, 2]
    named: Annotated[str, Field(min_length=1, max_length=3, pattern=NAME)] = "a"
    hashed: Annotated[str, Field(pattern="^[0-9a-f]{4}$")] = "0000"
    keyed: dict[str, int] = {}


VALUES: list[tuple[str, object, str]] = [
    ("whole", 0, "0 is too small; give at least 1"),
    ("whole", 9, "9 is too large; give less than 9"),
    ("most", 10, "10 is too large; give at most 9"),
    ("whole", "4", "'4' is not a whole number; give one such as 4"),
    ("whole", 4.5, "4.5 is not a whole number; give one such as 4"),
    ("whole", True, "true is not a whole number; give one such as 4"),
    ("whole", None, "has no value; give it one or remove the key"),
    ("flag", 1, "1 is neither true nor false; write one of them"),
    ("listed", 3, "3 is not a list; write it as [...]"),
    ("pair", [1], "[1] has 1 entries; write it as [...]"),
    ("pair", [1, 2, 3], "[1, 2, 3] has 3 entries; write it as [...]"),
    ("named", 3, "3 is not text; quote it if it is a name"),
    ("named", "", "is empty; give it a text"),
    ("named", "abcd", "is longer than 3 characters; shorten it"),
    ("named", "a b", "'a b': a name has no spaces or commas; leave them out"),
    ("hashed", "00=0", "'00=0' is not valid; write it as [0-9a-f]{4}"),
    ("keyed", 3, "3 is not a mapping; write it as key: value"),
]


@pytest.mark.parametrize(("key", "value", "words"), VALUES)
def test_words_about_a_value(key: str, value: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Model.model_validate({key: value})
    (found,) = caught.value.errors()
    assert complaint(found["type"], value, found.get("ctx", {}), (key,)) == words


def test_the_nearest_word_is_offered() -> None:
    assert did_you_mean("Ringg", ["ring", "mesh"], "use ring or mesh") == "did you mean 'ring'?"
    assert did_you_mean("zzz", ["ring", "mesh"], "use ring or mesh") == "use ring or mesh"


@pytest.mark.parametrize("is_flow", [True, False])
def test_what_is_written_is_read_as_the_same(is_flow: bool) -> None:
    texts = ["1e3", "1E-07", "-.5e+1", "017", "0o17", "0x1f", "1_000", "12:30", "2020-01-01"]
    texts += [".inf", "no", "~", "", "- a", "a: b", "#", "'", "\u00fc"]
    values = {"texts": texts, "numbers": [1e-7, 1e22, -2.5, 3, True, None]}
    written = dump_yaml(values, width=100, is_flow=is_flow)
    assert parse_yaml(written, "mine.yml", KIND)[0] == values
