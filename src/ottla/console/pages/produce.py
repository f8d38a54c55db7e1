"""Writing a record: typed, or one that is there once more."""

import base64
import binascii
import json
import time
from typing import Any

from ottla.console.asking import Ask, BadInput, Done
from ottla.console.commands import command
from ottla.console.pages import messages
from ottla.console.pages.topics import topic_row
from ottla.console.producing import partition_for, produce
from ottla.console.registries import subjects
from ottla.model.names import TopicPartition
from ottla.protocol.records import NewRecord
from ottla.registry.client import RegistryClient
from ottla.registry.errors import RegistryError
from ottla.registry.framing import id_prefix
from ottla.registry.schemas.values import codec_of

FORMS = ("text", "json", "hex", "base64", "schema", "null")
COUNT_MAX = 1000


async def form(ask: Ask) -> dict[str, Any]:
    """Filled in with a record where `partition` and `offset` name one."""
    topic = ask.names["topic"]
    found = await ask.snapshot()
    row = topic_row(found, topic)
    filled = {"key": "", "key_form": "null", "value": "", "value_form": "json", "headers": "", "partition": ""}
    origin = None
    if ask.fields.get("offset"):
        if ask.caller.mask(topic) is not None:
            raise BadInput("parts of these records are hidden from you: they cannot be filled in")
        record = await messages.one(
            ask, topic, ask.fields.integer("partition", least=0), ask.fields.integer("offset", least=0)
        )
        filled = {
            **_typed(record.key, "key"),
            **_typed(record.value, "value"),
            "headers": "\n".join(f"{name}={(value or b'').decode(errors='replace')}" for name, value in record.headers),
            "partition": str(record.partition),
        }
        origin = {"partition": record.partition, "offset": record.offset}
    return {
        "topic": topic,
        "partitions": row.partitions,
        "filled": filled,
        "origin": origin,
        "_forms": FORMS,
        "_subjects": await _subjects(ask),
        "_command": command(ask, "kafka-console-producer", "--topic", topic, "--property", "parse.key=true"),
    }


async def _subjects(ask: Ask) -> list[str]:
    if ask.console.registries.of(ask.watched.settings, ask.caller) is None:
        return []
    try:
        return (await ask.console.registries.ask(ask, subjects))[:1000]
    except RegistryError:
        return []


def _typed(data: bytes | None, part: str) -> dict[str, str]:
    if data is None:
        return {part: "", f"{part}_form": "null"}
    try:
        text = data.decode()
        if "\x00" in text or "\r" in text:
            raise ValueError
    except ValueError:
        return {part: data.hex(), f"{part}_form": "hex"}
    return {part: text, f"{part}_form": "text"}


async def send(ask: Ask) -> Done:
    topic = ask.names["topic"]
    found = await ask.snapshot()
    topic_row(found, topic)
    key = await _read(ask, "key")
    value = await _read(ask, "value")
    numbers = found.numbers[topic]
    text = ask.fields.get("partition").strip()
    number = ask.fields.integer("partition", least=0) if text else partition_for(key, numbers)
    if number not in numbers:
        raise BadInput(f"{topic} has no partition {number}")
    copies = ask.fields.integer("count", 1, least=1)
    if copies > COUNT_MAX:
        raise BadInput(f"at most {COUNT_MAX} copies at once")
    record = NewRecord(key, value, time.time_ns() // 1_000_000, read_headers(ask.fields.get("headers")))
    offset = await produce(ask.watched.cluster, TopicPartition(topic, number), [record] * copies)
    what = "a record" if copies == 1 else f"{copies} records"
    return Done(
        f"{what} written to {topic}-{number} at offset {offset}",
        ask.link(f"/topics/{topic}/messages/record", partition=number, offset=offset),
        {"partition": number, "offset": offset, "count": copies},
        topic,
    )


async def _read(ask: Ask, part: str) -> bytes | None:
    text = ask.fields.get(part)
    kind = ask.fields.get(f"{part}_form") or ("text" if part in ask.fields else "null")
    if kind == "schema":
        subject = ask.fields.need(f"{part}_subject", f"the subject of the {part}'s schema")
        return await ask.console.registries.ask(ask, lambda client: _encoded(client, subject, text))
    return read_bytes(text.replace("\r\n", "\n"), kind, part)


def _encoded(client: RegistryClient, subject: str, text: str) -> bytes:
    schema = client.latest(subject)
    try:
        return id_prefix(schema.schema_id) + codec_of(schema).encode(text)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise BadInput(f"it does not fit the schema of {subject}: {error}") from None


def read_bytes(text: str, kind: str, part: str) -> bytes | None:
    match kind:
        case "null":
            return None
        case "text":
            return text.encode()
        case "json":
            try:
                json.loads(text)
            except (ValueError, RecursionError) as error:
                raise BadInput(f"the {part} is not JSON: {error}") from None
            return text.encode()
        case "hex":
            try:
                return bytes.fromhex(text)
            except ValueError:
                raise BadInput(f"the {part} is not hexadecimal: write two digits for each byte") from None
        case "base64":
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error:
                raise BadInput(f"the {part} is not base64") from None
    raise BadInput(f"{part}_form is one of {', '.join(FORMS)}, not `{kind}`")


def read_headers(text: str) -> list[tuple[str, bytes | None]]:
    """Lines of `name=value`."""
    found: list[tuple[str, bytes | None]] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise BadInput(f"headers are lines of name=value, not `{line}`")
        found.append((name.strip(), value.encode()))
    return found
