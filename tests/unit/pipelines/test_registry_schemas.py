"""`schema: registry` in pipeline files: the topic says which subject; what cannot work is found without Spark."""

from typing import Any

import pytest
from tests.unit.pipelines.samples import checked, small

from ottla.pipelines.errors import InvalidPipeline


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
