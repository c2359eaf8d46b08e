"""The JSON Schema of topology files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hocket.cli import schema
from hocket.files.yaml_tree import read_yaml
from hocket.topology import machines
from hocket.topology.model import BUILDERS, DimsFile, LinksFile
from hocket.topology.text import from_text


def test_schema_has_every_form() -> None:
    value = json.loads(schema.schema_text())
    assert value["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    forms = {each["$ref"].rpartition("/")[2] for each in value["anyOf"]}
    models = {LinksFile, DimsFile, *BUILDERS.values()}
    assert forms == {model.__name__ for model in models}
    for model in models:
        form = value["$defs"][model.__name__]
        assert form["additionalProperties"] is False
        assert set(form["properties"]) == set(model.model_fields)
    text = json.dumps(value)
    for reference in {part.partition('"')[0] for part in text.split('"$ref": "')[1:]}:
        assert reference.removeprefix("#/$defs/") in value["$defs"]


@pytest.mark.parametrize("name", machines.names())
def test_machines_fit_the_model(name: str) -> None:
    values, _ = read_yaml(machines.path(name))
    form = DimsFile if "dims" in values else LinksFile
    form = BUILDERS[values["builder"]] if "builder" in values else form
    file = form.model_validate(values)
    properties = json.loads(schema.schema_text())["$defs"][form.__name__]["properties"]
    assert set(values) <= set(properties)
    if isinstance(file, LinksFile):
        assert len(file.links) == len(values["links"])
    assert from_text(name, bandwidth=None, latency=None).origin == name


def test_schema_is_written_by_its_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert schema.main([]) == 0
    assert capsys.readouterr().out == schema.schema_text()
    assert schema.main([str(tmp_path / "s.json")]) == 0
    assert (tmp_path / "s.json").read_text(encoding="utf-8") == schema.schema_text()
    assert schema.main([str(tmp_path / "no" / "s.json")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert schema.main(["a", "b"]) == schema.main(["all"]) == 2
    assert schema.main(["all", str(tmp_path / "all")]) == 0
    assert len(list((tmp_path / "all").iterdir())) == len(schema.KINDS)
    run = subprocess.run(
        [sys.executable, "-m", "hocket.cli.schema"], capture_output=True, check=True, text=True
    )
    assert run.stdout == schema.schema_text()
