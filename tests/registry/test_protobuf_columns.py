"""Columns as versions of a Protobuf subject, in a real registry: numbers stay, whoever deleted what."""

from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from ottla.registry.client import RegistryClient
from ottla.registry.errors import RegistryError
from ottla.spark.formats.registry_protobuf import given_file, register_columns, shape_over


def columns(*names: str) -> StructType:
    return StructType([StructField(name, LongType() if name == "id" else StringType()) for name in names])


def numbers(client: RegistryClient, subject: str, message: str = "Row") -> dict[str, int]:
    return {field.name: field.number for field in shape_over([client.latest(subject)], message).fields}


def test_versions_of_columns(client: RegistryClient, subject: str) -> None:
    first = register_columns(client, subject, columns("id", "a"))
    assert register_columns(client, subject, columns("a", "id")).schema_id == first.schema_id
    register_columns(client, subject, columns("id", "b"))
    assert numbers(client, subject) == {"id": 1, "b": 3}
    register_columns(client, subject, columns("id", "a", "c"))
    assert numbers(client, subject) == {"id": 1, "a": 2, "c": 4}
    assert client.versions(subject) == [1, 2, 3]


def test_numbers_of_deleted_versions_are_not_given_again(client: RegistryClient, subject: str) -> None:
    register_columns(client, subject, columns("id", "a"))
    client.call("DELETE", f"/subjects/{subject}")
    register_columns(client, subject, columns("id", "b"))
    assert numbers(client, subject) == {"id": 1, "b": 3}
    client.call("DELETE", f"/subjects/{subject}/versions/1", {"permanent": "true"})
    register_columns(client, subject, columns("id", "c"))
    assert numbers(client, subject) == {"id": 1, "c": 4}


def test_a_message_that_somebody_wrote_is_followed(client: RegistryClient, subject: str) -> None:
    text = 'syntax = "proto3";\npackage p;\n// by hand\nmessage Sale {\n  int64 id = 7;\n  string a = 9;\n}\n'
    made = client.register(subject, text, "PROTOBUF")
    assert register_columns(client, subject, columns("id", "a")).schema_id == made.schema_id
    register_columns(client, subject, columns("id", "a", "b"))
    assert numbers(client, subject, "p.Sale") == {"id": 7, "a": 9, "b": 10}
    with pytest.raises(RegistryError, match="package"):
        register_columns(client, subject, columns("id"), "Other")


def test_another_type_is_refused_by_the_registry(client: RegistryClient, subject: str) -> None:
    client.register(subject, '"int"')
    with pytest.raises(RegistryError, match="schemas of type AVRO, not PROTOBUF"):
        register_columns(client, subject, columns("id"))


def test_a_file_and_what_it_imports(client: RegistryClient, subject: str, tmp_path: Path) -> None:
    money, item = f"{subject}/money.proto", f"{subject}/item.proto"
    (tmp_path / subject).mkdir()
    (tmp_path / money).write_text('syntax = "proto3";\nmessage Money { int64 cents = 1; }\n')
    (tmp_path / item).write_text(f'syntax = "proto3";\nimport "{money}";\nmessage Item {{ Money price = 1; }}\n')
    text = f'syntax = "proto3";\nimport "{item}";\nmessage Bill {{ repeated Item items = 1; }}\n'
    with pytest.raises(RegistryError, match="not found"):
        given_file(client.look_up, subject, tmp_path / "bill.proto", text)
    made = given_file(client.register, subject, tmp_path / "bill.proto", text)
    assert client.get(f"/subjects/{subject}/versions/1")["references"] == [
        {"name": item, "subject": item, "version": 1}
    ]
    assert given_file(client.look_up, subject, tmp_path / "bill.proto", text).schema_id == made.schema_id
    assert shape_over([made], "Bill") == shape_over([client.latest(subject)], "Bill")
