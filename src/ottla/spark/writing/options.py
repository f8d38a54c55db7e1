"""The options of a write, by the names of Spark's Kafka connector, checked before a broker is asked. Pure."""

import difflib
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from ottla.client.errors import ClientError
from ottla.client.producer import ALL
from ottla.client.producer_settings import ProducerSettings, producer_settings
from ottla.model.errors import ApiError
from ottla.model.names import check_topic_name
from ottla.spark.connections import KAFKA_PREFIX
from ottla.spark.errors import InvalidOption
from ottla.spark.writing.transactions import PREFIX_LENGTH_MAX, default_prefix

WRITE_OPTIONS = ("delivery", "topic", "transactionalIdPrefix")
_BY_SPARK = frozenset({"checkpointlocation", "queryname"})
"""Spark hands these over with ours."""
_REFUSED: Mapping[str, str] = {
    "includeheaders": "headers are written where the rows have a column `headers`",
    "path": "a topic is not a path: save() and start() take no argument, use the option topic",
    "subscribe": "a topic to write to is named by the option topic, or by the column topic",
}
RECORD_COLUMNS = ("key", "value", "headers", "topic", "partition")


class Delivery(Enum):
    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"


class WriteOptions(NamedTuple):
    producer: ProducerSettings
    topic: str | None
    delivery: Delivery
    prefix: str | None
    """What the transactional ids begin with; None for a batch job that was given none."""


def parse_write_options(given: Mapping[str, str], *, streaming: bool) -> WriteOptions:
    """All options of a write. Raises InvalidOption for what is unknown, malformed or contradictory."""
    options = {name.lower(): value for name, value in given.items()}
    _check_names(options)
    delivery = _delivery(options.get("delivery", Delivery.EXACTLY_ONCE.value))
    settings = {
        name.removeprefix(KAFKA_PREFIX): value for name, value in options.items() if name.startswith(KAFKA_PREFIX)
    }
    try:
        producer = producer_settings(settings, prefix=KAFKA_PREFIX)
        topic = options.get("topic")
        if topic is not None:
            check_topic_name(topic)
    except (ClientError, ApiError) as error:
        raise InvalidOption(str(error)) from None
    if delivery is Delivery.EXACTLY_ONCE:
        _check_exactly_once(producer, settings)
    return WriteOptions(producer, topic, delivery, _prefix(options, producer, delivery, streaming=streaming))


def _check_names(options: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in WRITE_OPTIONS}
    for name in options:
        if name.startswith(KAFKA_PREFIX) or name in known or name in _BY_SPARK:
            continue
        if name in _REFUSED:
            raise InvalidOption(f"the option {name} is not for writing: {_REFUSED[name]}")
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {known[near[0]]}?" if near else f"there are {', '.join(WRITE_OPTIONS)} and kafka.*"
        raise InvalidOption(f"the option {name} is not known for writing: {hint}")


def _delivery(text: str) -> Delivery:
    try:
        return Delivery(text.strip().lower())
    except ValueError:
        raise InvalidOption(f"delivery is exactly_once or at_least_once, not `{text}`") from None


def _check_exactly_once(producer: ProducerSettings, settings: Mapping[str, str]) -> None:
    for name, is_wrong in (("acks", producer.limits.acks != ALL), ("enable.idempotence", not producer.is_idempotent)):
        if is_wrong:
            raise InvalidOption(
                f"kafka.{name}={settings.get(name)} cannot deliver exactly once: take it out, "
                "or set the option delivery to at_least_once"
            )


def _prefix(
    options: Mapping[str, str], producer: ProducerSettings, delivery: Delivery, *, streaming: bool
) -> str | None:
    named, configured = options.get("transactionalidprefix"), producer.transactional_id
    if named is not None and configured is not None and named != configured:
        raise InvalidOption(
            f"transactionalIdPrefix ({named}) and kafka.transactional.id ({configured}) differ: keep one of them"
        )
    prefix = named if named is not None else configured
    if delivery is Delivery.AT_LEAST_ONCE:
        if prefix is not None:
            raise InvalidOption("delivery at_least_once uses no transactions: take out the transactional id")
        return None
    if prefix is not None and not 0 < len(prefix.encode()) <= PREFIX_LENGTH_MAX:
        raise InvalidOption(f"transactionalIdPrefix has 1 to {PREFIX_LENGTH_MAX} bytes")
    if prefix is None and streaming:
        checkpoint = options.get("checkpointlocation")
        if not checkpoint:
            raise InvalidOption(
                "to deliver exactly once the query needs a name that it keeps: set the option checkpointLocation, "
                "or transactionalIdPrefix"
            )
        return default_prefix(checkpoint)
    return prefix


def check_columns(schema: StructType, options: WriteOptions) -> None:
    """Raises InvalidOption unless such rows can become records. Other columns are left out, as in Spark's connector."""
    columns = {field.name.lower(): field.dataType for field in schema.fields}
    if "value" not in columns:
        raise InvalidOption(f"the rows have no column `value`, only {', '.join(schema.fieldNames())}")
    if options.topic is None and "topic" not in columns:
        raise InvalidOption("nothing says where the rows go: set the option topic, or add a column `topic`")
    for name in ("key", "value"):
        _expect(columns, name, (StringType, BinaryType), "a string or binary")
    _expect(columns, "topic", (StringType,), "a string")
    _expect(columns, "partition", (IntegerType,), "an int")
    headers = columns.get("headers")
    if headers is not None and not _are_headers(headers):
        raise InvalidOption(
            f"the column `headers` must be array<struct<key: string, value: binary>>, not {headers.simpleString()}"
        )


def _expect(columns: Mapping[str, DataType], name: str, kinds: tuple[type[DataType], ...], words: str) -> None:
    kind = columns.get(name)
    if kind is not None and not isinstance(kind, kinds):
        raise InvalidOption(f"the column `{name}` must be {words}, not {kind.simpleString()}: cast it")


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    return [field.name for field in fields] == ["key", "value"] and [type(field.dataType) for field in fields] == [
        StringType,
        BinaryType,
    ]
