"""Settings of Kafka's Java clients, translated for librdkafka with Java's defaults.

The tables of `client_property_tables` say what becomes of each name. Where the two clients differ by default (which
partition a key goes to, what an uncommitted record is), the tools behave as Kafka's do.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.cli.common.options import parse_pairs, read_properties
from ottla.cli.common.output import CommandError, note
from ottla.cli.data import client_property_tables as tables
from ottla.cli.data.client_property_tables import Converted, Converter, boolean, integer
from ottla.client import security_names
from ottla.client.errors import InvalidSetting

DEFAULT_MAX_BLOCK_MS = 60_000
DEFAULT_API_TIMEOUT_MS = 60_000
DEFAULT_MAX_POLL_RECORDS = 500
PROPAGATION_MS_MAX = 3_600_000
SOCKET_TIMEOUT_MS_RANGE = (10, 300_000)
IDEMPOTENT_IN_FLIGHT_MAX = 5
FETCH_QUEUE_BACKOFF_MS = 10


class ProducerSettings(NamedTuple):
    librdkafka: Converted
    max_block_s: float
    """How long a send may wait for room in the buffer: librdkafka never waits, so the tools do."""
    notes: tuple[str, ...] = ()


class ConsumerSettings(NamedTuple):
    librdkafka: Converted
    max_poll_records: int
    api_timeout_s: float
    exclude_internal_topics: bool
    notes: tuple[str, ...] = ()


def producer_settings(properties: Mapping[str, str]) -> ProducerSettings:
    remaining = tables.by_todays_names(properties)
    max_block_ms = integer("max.block.ms", remaining.pop("max.block.ms", str(DEFAULT_MAX_BLOCK_MS)))
    level = _compression_level(remaining)
    request_timeout = remaining.pop("request.timeout.ms", None)
    translated, notes = _translate(remaining, _PRODUCER, _CONSUMER)
    result: Converted = {
        "partitioner": "murmur2_random",
        "enable.idempotence": _idempotent_by_default(remaining),
        # Java waits this long for the metadata of a topic it has not seen.
        "topic.metadata.propagation.max.ms": min(max(0, max_block_ms), PROPAGATION_MS_MAX),
        **tables.PRODUCER_CONVERTED["buffer.memory"]("buffer.memory", str(32 * 1024 * 1024)),
        "batch.size": 16_384,
        "delivery.timeout.ms": 120_000,
        **translated,
        **level,
    }
    if request_timeout is not None:
        wait_ms = integer("request.timeout.ms", request_timeout)
        result["request.timeout.ms"] = max(1, wait_ms)
        result["socket.timeout.ms"] = _socket_timeout(wait_ms)
    return ProducerSettings(result, max_block_ms / 1000, notes)


def consumer_settings(properties: Mapping[str, str]) -> ConsumerSettings:
    remaining = tables.by_todays_names(properties)
    max_poll_records = integer("max.poll.records", remaining.pop("max.poll.records", str(DEFAULT_MAX_POLL_RECORDS)))
    if max_poll_records < 1:
        raise CommandError(f"max.poll.records is at least 1, not {max_poll_records}")
    api_timeout = integer(
        "default.api.timeout.ms", remaining.pop("default.api.timeout.ms", str(DEFAULT_API_TIMEOUT_MS))
    )
    exclude = boolean("exclude.internal.topics", remaining.pop("exclude.internal.topics", "true"))
    request_timeout = remaining.pop("request.timeout.ms", None)
    translated, notes = _translate(remaining, _CONSUMER, _PRODUCER)
    result: Converted = {
        "isolation.level": "read_uncommitted",
        "allow.auto.create.topics": "true",
        "check.crcs": "true",
        "auto.offset.reset": "latest",
        # After filling its queue librdkafka pauses for a second by default; a quick reader would wait most of the time.
        "fetch.queue.backoff.ms": FETCH_QUEUE_BACKOFF_MS,
        **translated,
    }
    if result.get("group.protocol", "classic") == "classic":
        result.setdefault("partition.assignment.strategy", "range")
    if request_timeout is not None:
        result["socket.timeout.ms"] = _socket_timeout(integer("request.timeout.ms", request_timeout))
    return ConsumerSettings(result, max_poll_records, api_timeout / 1000, exclude, notes)


def admin_settings(properties: Mapping[str, str]) -> Converted:
    """The part of a client's settings that any connection needs: where, under which name, and how it is secured."""
    wanted = {
        name: value
        for name, value in properties.items()
        if security_names.is_security(name) or name in tables.COMMON_SAME or name in tables.COMMON_CONVERTED
    }
    translated, _notes = _translate(wanted, _COMMON, _COMMON)
    return translated


def load_properties(
    args: argparse.Namespace, files: Sequence[str], pairs: Sequence[str], *, extra_pairs: Sequence[str] = ()
) -> dict[str, str]:
    """Settings of the files named by the options `files`, overridden by the key=value pairs of the options `pairs`."""
    properties: dict[str, str] = {}
    for option in _only_one(args, files):
        properties.update(read_properties(_value(args, option)))
    for option in _only_one(args, pairs):
        properties.update(parse_pairs(_flat(_value(args, option)), f"--{option}"))
    properties.update(parse_pairs(extra_pairs, "property"))
    return tables.by_todays_names(properties)


def show_notes(notes: Sequence[str]) -> None:
    for text in notes:
        note(text)


class _Side(NamedTuple):
    word: str
    same: frozenset[str]
    converted: Mapping[str, Converter]
    dropped: Mapping[str, str]
    refused: Mapping[str, str]

    def knows(self, name: str) -> bool:
        return name in self.same or name in self.converted or name in self.dropped or name in self.refused


_COMMON = _Side(
    "client", tables.COMMON_SAME, tables.COMMON_CONVERTED,
    tables.COMMON_DROPPED | security_names.DROPPED, tables.COMMON_REFUSED,
)  # fmt: skip
_PRODUCER = _Side(
    "producer", tables.PRODUCER_SAME, tables.PRODUCER_CONVERTED, tables.PRODUCER_DROPPED, tables.PRODUCER_REFUSED
)
_CONSUMER = _Side(
    "consumer", tables.CONSUMER_SAME, tables.CONSUMER_CONVERTED, tables.CONSUMER_DROPPED, tables.CONSUMER_REFUSED
)


def _translate(properties: Mapping[str, str], side: _Side, other: _Side) -> tuple[Converted, tuple[str, ...]]:
    if security_names.shows_a_token(properties.get("sasl.jaas.config", "")):
        raise CommandError(
            "sasl.jaas.config: tokenauth: this tool stands on librdkafka, which knows no delegation tokens"
        )
    try:
        result: Converted = dict(security_names.translate(dict(properties)))
    except InvalidSetting as error:
        raise CommandError(str(error)) from None
    notes = []
    for name, value in properties.items():
        if security_names.is_security(name) and name not in security_names.DROPPED:
            continue
        for table in (side, _COMMON):
            if name in table.refused:
                if value:
                    raise CommandError(f"{name}={value} is not supported: {table.refused[name]}")
                break
            if name in table.dropped:
                notes.append(f"{name} is left out: {table.dropped[name]}")
                break
            if name in table.converted:
                result.update(table.converted[name](name, value))
                break
            if name in table.same:
                result[name] = value
                break
        else:
            if other.knows(name) or name in _OWN[other.word]:
                notes.append(f"{name} is left out: it is a setting for a {other.word}, and this is a {side.word}")
            else:
                result[name] = value
    return result, tuple(notes)


_OWN = {
    "client": frozenset[str](),
    "producer": frozenset(
        {"max.block.ms", "compression.gzip.level", "compression.lz4.level", "compression.zstd.level"}
    ),
    "consumer": frozenset({"max.poll.records", "default.api.timeout.ms", "exclude.internal.topics"}),
}  # settings handled above, outside the tables


def _idempotent_by_default(properties: Mapping[str, str]) -> bool:
    """Java's rule: idempotent unless another setting speaks against it."""
    if properties.get("acks", "all") not in ("all", "-1"):
        return False
    if properties.get("retries", "1") == "0":
        return False
    in_flight = properties.get("max.in.flight.requests.per.connection", str(IDEMPOTENT_IN_FLIGHT_MAX))
    return integer("max.in.flight.requests.per.connection", in_flight) <= IDEMPOTENT_IN_FLIGHT_MAX


def _compression_level(properties: dict[str, str]) -> Converted:
    levels = {codec: properties.pop(f"compression.{codec}.level", None) for codec in ("gzip", "lz4", "zstd")}
    chosen = levels.get(properties.get("compression.type", "none"))
    return {"compression.level": integer("compression level", chosen)} if chosen is not None else {}


def _socket_timeout(timeout_ms: int) -> int:
    low, high = SOCKET_TIMEOUT_MS_RANGE
    return min(max(low, timeout_ms), high)


def _value(args: argparse.Namespace, option: str) -> str:
    value: str = getattr(args, option.replace("-", "_").replace(".", "_"))
    return value


def _only_one(args: argparse.Namespace, options: Sequence[str]) -> list[str]:
    given = [option for option in options if _value(args, option)]
    if len(given) > 1:
        names = " and ".join(f"--{option}" for option in given)
        raise CommandError(f"{names} are the old and the new name of one option: give one of them")
    return given


def _flat(value: object) -> list[str]:
    """Values of an option that may be repeated (a list) or take several values at once (a list of lists)."""
    assert isinstance(value, list)
    return [item for entry in value for item in (entry if isinstance(entry, list) else [entry])]
