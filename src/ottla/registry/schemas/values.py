"""Values with a schema as people read and write them: documents and JSON here, the schema's format in the topic.

Each format's library is imported when the first schema of it comes.
"""

import json
from typing import Any, Protocol

from ottla.registry.client import RegistrySchema
from ottla.registry.framing import BadFraming, read_indexes, write_indexes
from ottla.registry.schemas.parsed import Referenced


class Codec(Protocol):
    def document(self, data: bytes, start: int) -> Any:
        """The value whose body begins at `start`, plain: unions without the names of their branches."""
        ...

    def decode(self, data: bytes, start: int) -> str:
        """The same as JSON, in the form that `encode` reads."""
        ...

    def encode(self, text: str) -> bytes:
        """From JSON, without the schema's id."""
        ...


def codec_of(schema: RegistrySchema) -> Codec:
    references = [Referenced(name, text) for name, text in schema.references]
    if schema.schema_type == "AVRO":
        return _AvroCodec(schema, references)
    return _JsonCodec(schema, references) if schema.schema_type == "JSON" else _ProtobufCodec(schema, references)


class _AvroCodec:
    def __init__(self, schema: RegistrySchema, references: list[Referenced]) -> None:
        from ottla.registry.schemas.avro import parse_avro  # noqa: PLC0415

        self._root = parse_avro(schema.text, references).root

    def document(self, data: bytes, start: int) -> Any:
        from ottla.registry.schemas.avro_json import to_document  # noqa: PLC0415

        return to_document(self._root, data, start, tagged=False)

    def decode(self, data: bytes, start: int) -> str:
        from ottla.registry.schemas.avro_json import to_document  # noqa: PLC0415

        return json.dumps(to_document(self._root, data, start), separators=(",", ":"), ensure_ascii=False)

    def encode(self, text: str) -> bytes:
        from ottla.registry.schemas.avro_json import from_document  # noqa: PLC0415

        return from_document(self._root, json.loads(text))


class _JsonCodec:
    def __init__(self, schema: RegistrySchema, references: list[Referenced]) -> None:
        self._schema, self._references = schema, references
        self._validator: Any = None

    def document(self, data: bytes, start: int) -> Any:
        return json.loads(data[start:])

    def decode(self, data: bytes, start: int) -> str:
        return json.dumps(self.document(data, start), separators=(",", ":"), ensure_ascii=False)

    def encode(self, text: str) -> bytes:
        document = json.loads(text)
        if self._validator is None:
            self._validator = self._make_validator()
        self._validator.validate(document)
        return text.encode()

    def _make_validator(self) -> Any:
        from jsonschema.validators import Draft7Validator, validator_for  # noqa: PLC0415
        from referencing import Registry, Resource  # noqa: PLC0415
        from referencing.jsonschema import DRAFT7  # noqa: PLC0415

        document = json.loads(self._schema.text)
        resources = [(each.name, Resource.from_contents(json.loads(each.text), DRAFT7)) for each in self._references]
        kind: Any = validator_for(document, default=Draft7Validator)
        return kind(document, registry=Registry().with_resources(resources))


class _ProtobufCodec:
    def __init__(self, schema: RegistrySchema, references: list[Referenced]) -> None:
        from google.protobuf import descriptor_pool, json_format, message_factory  # noqa: PLC0415

        from ottla.registry.schemas.protobuf import parse_protobuf  # noqa: PLC0415
        from ottla.registry.schemas.protoc import MAIN  # noqa: PLC0415

        pool = descriptor_pool.DescriptorPool()
        for file in parse_protobuf(schema.text, references).files.values():
            pool.Add(file)
        self._file = pool.FindFileByName(MAIN)
        self._make = message_factory.GetMessageClass
        self._json = json_format

    def _message(self, indexes: list[int]) -> Any:
        messages = list(self._file.message_types_by_name.values())
        try:
            found = messages[indexes[0]]
            for number in indexes[1:]:
                found = found.nested_types[number]
        except IndexError:
            raise BadFraming(f"its schema has no message {indexes}") from None
        return self._make(found)

    def document(self, data: bytes, start: int) -> Any:
        from google.protobuf.message import DecodeError  # noqa: PLC0415

        indexes, at = read_indexes(data, start)
        try:
            message = self._message(indexes).FromString(data[at:])
        except DecodeError as error:
            raise BadFraming(f"it is not the message that its schema says: {error}") from None
        return self._json.MessageToDict(message, preserving_proto_field_name=True)

    def decode(self, data: bytes, start: int) -> str:
        return json.dumps(self.document(data, start))

    def encode(self, text: str) -> bytes:
        message = self._json.Parse(text, self._message([0])())
        return write_indexes([0]) + bytes(message.SerializeToString())
