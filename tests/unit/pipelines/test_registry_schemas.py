"""`schema: registry` in pipeline files: the topic says which subject; what cannot work is found without Spark."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.pipelines.samples import checked, small

from ottla.pipelines.errors import InvalidPipeline
from ottla.pipelines.secrets import Secrets


def with_formats(source: dict[str, Any], sink: dict[str, Any]) -> dict[str, Any]:
    values = small()
    values["sources"] = {"orders": {"topic": "orders", **source}}
    values["sinks"] = [{"topic": "out", **sink}]
    return values


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf"])
def test_a_source_knows_its_subject_by_its_topic(kind: str) -> None:
    found = checked(with_formats({"format": kind, "schema": "registry"}, {"format": kind, "schema": "registry"}))
    reading = next(iter(found.phases[0].sources.values())).reading
    assert reading is not None
    assert reading.options == {"topic": "orders"}


def test_options_are_checked() -> None:
    wrong = {"format": "avro", "schema": "registry", "format_options": {"colums": "latest"}}
    with pytest.raises(InvalidPipeline, match="colums"):
        checked(with_formats(wrong, {}))
    with pytest.raises(InvalidPipeline, match="no schemas in a registry"):
        checked(with_formats({}, {"format": "csv", "schema": "registry"}))


def reading_of(source: dict[str, Any]) -> Any:
    found = checked(with_formats(source, {}))
    return next(iter(found.phases[0].sources.values())).reading


def test_a_key_has_the_subject_of_its_topic_and_the_registry_of_the_values() -> None:
    of_values = {"format": "avro", "schema": "registry", "format_options": {"registry": "http://r:1", "user": "u"}}
    reading = reading_of({**of_values, "key_format": "avro", "key_schema": "registry"})
    assert reading.key.options == {
        "tombstones": "keep", "part": "key", "topic": "orders", "registry": "http://r:1", "user": "u",
    }  # fmt: skip
    assert reading.keep == {"key": "key"}, "it is a column without being asked for"
    named = reading_of({"key_format": "text", "keep": {"who": "key", "at": "timestamp"}})
    assert named.keep == {"who": "key", "at": "timestamp"}
    assert named.key.options == {"tombstones": "keep"}


def test_secrets_of_a_registry_are_filled_in_where_records_are_read(tmp_path: Path) -> None:
    options = {"user": "u", "password": "${env:REGISTRY_PASSWORD}"}
    source = {"format": "avro", "schema": "registry", "format_options": options}
    reading = reading_of({**source, "key_format": "avro", "key_schema": "registry"})
    secrets = Secrets(tmp_path, {"REGISTRY_PASSWORD": "not to be seen"})
    filled = reading.filled(secrets)
    assert filled.options["password"] == filled.key.options["password"] == "not to be seen"
    assert secrets.hide("it was not to be seen") == "it was ${env:REGISTRY_PASSWORD}"


@pytest.mark.parametrize(
    ("source", "sink", "words"),
    [
        ({"key_schema": "registry"}, {}, "say which, in `key_format`"),
        ({"key_format": "csv", "key_schema": "registry"}, {}, "no schemas in a registry"),
        ({"key_format": "avrow"}, {}, "there is no format `avrow`"),
        ({}, {"key": ["id", "item"]}, "several columns make a key in a format"),
        ({}, {"key_format": "avro", "key_schema": "registry"}, "name it in `key`"),
        ({}, {"key": "id", "key_schema": "registry"}, "say which, in `key_format`"),
        ({}, {"key": "id", "key_format": "avro", "key_format_options": {"x": 1}}, "unknown field `x`"),
    ],
)
def test_what_cannot_work_about_keys_is_said(source: dict[str, Any], sink: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidPipeline, match=words):
        checked(with_formats(source, sink))


def test_a_schema_file_is_looked_into(tmp_path: Path) -> None:
    good, bad = tmp_path / "order.proto", tmp_path / "bad.proto"
    (tmp_path / "item.proto").write_text('syntax = "proto3"; message Item { int32 n = 1; }')
    good.write_text('syntax = "proto3"; import "item.proto"; message Order { Item item = 1; }')
    bad.write_text('syntax = "proto3"; message Order { Item item = 1; }')

    def sink(path: Path) -> dict[str, Any]:
        return {"format": "protobuf", "schema": "registry", "format_options": {"schema_file": str(path)}}

    checked(with_formats({}, sink(good)))
    with pytest.raises(InvalidPipeline, match='"Item" is not defined'):
        checked(with_formats({}, sink(bad)))
    with pytest.raises(InvalidPipeline, match="cannot read the schema file"):
        checked(with_formats({}, sink(tmp_path / "none.proto")))
