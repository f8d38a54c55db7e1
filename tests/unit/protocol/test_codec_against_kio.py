"""Every message in every version: bytes written by kio (an independent codec) are read and written back unchanged."""

import dataclasses
import datetime
import importlib
import io
import random
import typing
import uuid
from pkgutil import resolve_name
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_writer
from kio.static.constants import EntityType

from ottla.protocol import codec
from ottla.protocol.schema import TopLevel

CASES = [
    (name, version, entity_type, path)
    for name, versions in schema_name_map.items()
    if name not in ("request_header", "response_header")
    for version, kinds in versions.items()
    for entity_type, path in kinds.items()
]


def random_value(kafka_type: str, rng: random.Random) -> Any:
    match kafka_type:
        case "bool":
            return rng.random() < 0.5
        case "string":
            return "".join(rng.choices("aé☃z", k=rng.choice([0, 1, 5, 200])))
        case "bytes" | "records":
            return rng.randbytes(rng.choice([0, 1, 130]))
        case "uuid":
            return uuid.UUID(bytes=rng.randbytes(16))
        case "float64":
            return rng.random()
        case "error_code":
            return rng.choice(list(ErrorCode))
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=rng.randrange(1 << 30))
        case "datetime_i64":
            return datetime.datetime.fromtimestamp(rng.randrange(1 << 30), datetime.UTC)
    bits = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63}[kafka_type]
    return rng.randrange(1 << bits)


def build(cls: Any, rng: random.Random) -> Any:
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        arguments = [a for a in typing.get_args(hints[field.name]) if a is not type(None)]
        nullable = type(None) in typing.get_args(hints[field.name])
        hint = arguments[0] if nullable else hints[field.name]
        if nullable and rng.random() < 0.3:
            values[field.name] = None
            continue
        array = typing.get_origin(hint) is tuple
        element = typing.get_args(hint)[0] if array else hint

        def one(element: Any = element, field: Any = field) -> Any:
            if dataclasses.is_dataclass(element):
                return build(element, rng)
            return random_value(field.metadata["kafka_type"], rng)

        values[field.name] = tuple(one() for _ in range(rng.randrange(4))) if array else one()
    return cls(**values)


@pytest.mark.parametrize(("name", "version", "entity_type", "path"), CASES, ids=lambda value: str(value)[-40:])
def test_bytes_of_kio_survive(name: str, version: int, entity_type: EntityType, path: str) -> None:
    theirs = resolve_name(path)
    ours: type[TopLevel] = getattr(importlib.import_module(f"ottla.protocol.messages.{name}"), theirs.__name__)
    assert version >= ours.MIN_VERSION
    assert (version >= ours.FLEXIBLE_FROM) == theirs.__flexible__
    for seed in range(8):
        stream = io.BytesIO()
        entity_writer(theirs)(stream, build(theirs, random.Random(seed)))
        written = stream.getvalue()
        decoded, end = codec.decode_from(ours, version, written)
        assert end == len(written)
        assert codec.encode(decoded, version) == written
