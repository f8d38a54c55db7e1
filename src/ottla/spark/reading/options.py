"""The options of a read, by the names of Spark's Kafka connector, checked before anything is asked of a broker."""

import difflib
import re
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from ottla.client.errors import ClientError
from ottla.client.settings import ConsumerSettings, consumer_settings
from ottla.model.errors import ApiError
from ottla.model.names import TopicPartition, check_topic_name
from ottla.spark import plain_json
from ottla.spark.connections import KAFKA_PREFIX
from ottla.spark.errors import InvalidOption
from ottla.spark.kernel.json_columns import JsonField
from ottla.spark.reading.offsets import EARLIEST, LATEST, NO_OFFSETS, Offsets, parse_assignment, parse_offsets

READ_OPTIONS = (
    "assign", "subscribe", "subscribePattern",
    "startingOffsets", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "startingTimestamp",
    "endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp",
    "failOnDataLoss", "groupId", "groupIdPrefix", "includeHeaders", "kafkaConsumer.pollTimeoutMs",
    "maxOffsetsPerTrigger", "maxRecordsPerPartition", "maxTriggerDelay", "minOffsetsPerTrigger", "minPartitions",
)  # fmt: skip
STREAMING_ONLY = ("groupId", "groupIdPrefix", "maxOffsetsPerTrigger", "maxTriggerDelay", "minOffsetsPerTrigger")
BATCH_ONLY = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")

_REFUSED: Mapping[str, str] = {
    "fetchoffset.numretries": "attempts are limited by time: set kafka.default.api.timeout.ms",
    "fetchoffset.retryintervalms": "attempts are limited by time: set kafka.default.api.timeout.ms",
    "path": "a topic is not a path: load() takes no argument, use the option subscribe",
    "topic": "a topic to read is named by the option subscribe",
}
# What Spark's connector forbids, for its reasons, which hold here too.
_FORBIDDEN_SETTINGS: Mapping[str, str] = {
    "auto.offset.reset": "use the option startingOffsets: it decides once, and then the checkpoint does",
    "enable.auto.commit": "offsets belong to the checkpoint; with the option groupId they are shown in a group as well",
    "key.deserializer": "keys always come as bytes; use DataFrame operations to read them",
    "value.deserializer": "values always come as bytes; use DataFrame operations to read them",
}

DEFAULT_TRIGGER_DELAY_MS = 15 * 60 * 1000
_UNITS_MS: Mapping[str, float] = {
    "us": 0.001, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip


class BoundKind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    GROUP = "group"
    OFFSETS = "offsets"
    TIMESTAMP = "timestamp"
    TIMESTAMPS = "timestamps"


class Bound(NamedTuple):
    """Where a read begins or ends."""

    kind: BoundKind
    option: str
    """The option that it comes from, for messages."""
    offsets: Offsets = NO_OFFSETS
    """Offsets (-1 latest, -2 earliest) or timestamps, by partition."""
    timestamp_ms: int = 0
    latest_if_none: bool = False
    """What a timestamp means where no record is as young: the end, or an error."""


class Subscription(NamedTuple):
    """What is read: topics by name, topics by pattern, or partitions."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"subscribePattern={self.pattern}"
        return ", ".join(self.topics) or ", ".join(str(partition) for partition in self.partitions)


class ReadOptions(NamedTuple):
    consumer: ConsumerSettings
    subscription: Subscription
    starting: Bound
    ending: Bound
    fail_on_data_loss: bool
    include_headers: bool
    parts_min: int | None
    rows_per_part_max: int | None
    rows_max: int | None
    rows_min: int | None
    trigger_delay_ms_max: int
    group: str | None
    group_prefix: str | None
    objects: tuple[JsonField, ...] = ()
    """What values are read into that are plain JSON (`plain_json`)."""


def parse_read_options(given: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """All options of a read. Raises InvalidOption for what is unknown, malformed or contradictory."""
    rest, objects = plain_json.taken(given)
    options = {name.lower(): value for name, value in rest.items()}
    _check_names(options, streaming=streaming)
    consumer = _consumer(options)
    if consumer.group_id is not None and not streaming:
        raise InvalidOption("kafka.group.id is for streaming queries: a batch query has no progress to keep")
    get = _Getter(options)
    rows_max = get.number("maxOffsetsPerTrigger", 1)
    rows_min = get.number("minOffsetsPerTrigger", 1)
    if rows_max is not None and rows_min is not None and rows_min > rows_max:
        raise InvalidOption(f"minOffsetsPerTrigger ({rows_min}) is more than maxOffsetsPerTrigger ({rows_max})")
    if "maxtriggerdelay" in options and rows_min is None:
        raise InvalidOption("maxTriggerDelay says how long to wait for minOffsetsPerTrigger, which is missing")
    group = _group(options, consumer)
    stall_ms = get.number("kafkaConsumer.pollTimeoutMs", 1)
    if stall_ms is not None:
        consumer = consumer._replace(fetch=consumer.fetch._replace(stall_s_max=stall_ms / 1000))
    parsed = ReadOptions(
        consumer=consumer,
        subscription=_subscription(options),
        starting=_starting(get, streaming=streaming),
        ending=_ending(get),
        fail_on_data_loss=get.flag("failOnDataLoss", default=True),
        include_headers=get.flag("includeHeaders", default=False),
        parts_min=get.number("minPartitions", 1),
        rows_per_part_max=get.number("maxRecordsPerPartition", 1),
        rows_max=rows_max,
        rows_min=rows_min,
        trigger_delay_ms_max=_duration_ms(options.get("maxtriggerdelay"), DEFAULT_TRIGGER_DELAY_MS),
        group=group,
        group_prefix=options.get("groupidprefix") if group is None else None,
        objects=objects,
    )
    if parsed.starting.kind is BoundKind.GROUP and group is None:
        raise InvalidOption("startingOffsets=group starts from the offsets of a group: name it with the option groupId")
    return parsed


class _Getter:
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def text(self, name: str) -> str | None:
        value = self._options.get(name.lower())
        return None if value is None else value.strip()

    def number(self, name: str, minimum: int) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            value = int(text)
        except ValueError:
            raise InvalidOption(f"{name} is a whole number, not `{text}`") from None
        if value < minimum:
            raise InvalidOption(f"{name} is at least {minimum}, not {value}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise InvalidOption(f"{name} is true or false, not `{text}`")
        return text.lower() == "true"


def _check_names(options: Mapping[str, str], *, streaming: bool) -> None:
    known = {name.lower(): name for name in READ_OPTIONS}
    for name in options:
        if name.startswith(KAFKA_PREFIX):
            continue
        if name in _REFUSED:
            raise InvalidOption(f"the option {name} is not for reading: {_REFUSED[name]}")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {known[near[0]]}?" if near else f"there are {', '.join(READ_OPTIONS)} and kafka.*"
            raise InvalidOption(f"the option {name} is not known for reading: {hint}")
    for name in BATCH_ONLY if streaming else STREAMING_ONLY:
        if name.lower() in options:
            kind = "batch queries: a stream has no end" if streaming else "streaming queries"
            raise InvalidOption(f"the option {name} is for {kind}")


def _consumer(options: Mapping[str, str]) -> ConsumerSettings:
    settings = {
        name.removeprefix(KAFKA_PREFIX): value for name, value in options.items() if name.startswith(KAFKA_PREFIX)
    }
    for name, reason in _FORBIDDEN_SETTINGS.items():
        if name in settings:
            raise InvalidOption(f"{KAFKA_PREFIX}{name} is not allowed: {reason}")
    try:
        return consumer_settings(settings, prefix=KAFKA_PREFIX)
    except ClientError as error:
        raise InvalidOption(str(error)) from None


def _group(options: Mapping[str, str], consumer: ConsumerSettings) -> str | None:
    group = options.get("groupid")
    if group is not None and consumer.group_id not in (None, group):
        raise InvalidOption(f"groupId ({group}) and kafka.group.id ({consumer.group_id}) name two groups: keep one")
    chosen = group if group is not None else consumer.group_id
    if chosen is not None and not chosen.strip():
        raise InvalidOption("groupId is empty: name a group, or leave the option out")
    if chosen is not None and "groupidprefix" in options:
        raise InvalidOption("groupIdPrefix generates a group and groupId names one: keep one of them")
    return chosen


def _subscription(options: Mapping[str, str]) -> Subscription:
    given = [name for name in ("assign", "subscribe", "subscribePattern") if name.lower() in options]
    if len(given) != 1:
        also = f", not {' and '.join(given)}" if given else ""
        raise InvalidOption(f"say what to read with exactly one of subscribe, subscribePattern and assign{also}")
    text = options[given[0].lower()].strip()
    if not text:
        raise InvalidOption(f"{given[0]} is empty: name at least one topic")
    if given[0] == "assign":
        return Subscription(partitions=tuple(parse_assignment(text)))
    if given[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise InvalidOption(f"subscribePattern is not a regular expression: {error}") from None
        return Subscription(pattern=text)
    topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for topic in topics:
        try:
            check_topic_name(topic)
        except ApiError as error:
            raise InvalidOption(f"subscribe: {error}") from None
    if not topics:
        raise InvalidOption("subscribe is empty: name at least one topic")
    return Subscription(topics=topics)


def _starting(get: _Getter, *, streaming: bool) -> Bound:
    strategy = (get.text("startingOffsetsByTimestampStrategy") or "error").lower()
    if strategy not in ("error", "latest"):
        raise InvalidOption(f"startingOffsetsByTimestampStrategy is error or latest, not `{strategy}`")
    default = BoundKind.LATEST if streaming else BoundKind.EARLIEST
    bound = _bound(get, "starting", default)
    if bound.kind in (BoundKind.TIMESTAMP, BoundKind.TIMESTAMPS):
        return bound._replace(latest_if_none=strategy == "latest")
    if get.text("startingOffsetsByTimestampStrategy") is not None:
        raise InvalidOption(
            "startingOffsetsByTimestampStrategy belongs to startingTimestamp or startingOffsetsByTimestamp"
        )
    if not streaming and (bound.kind is BoundKind.LATEST or LATEST in bound.offsets.values()):
        raise InvalidOption("startingOffsets cannot be latest in a batch query: nothing would be read")
    if not streaming and bound.kind is BoundKind.GROUP:
        raise InvalidOption("startingOffsets=group is for streaming queries")
    return bound


def _ending(get: _Getter) -> Bound:
    bound = _bound(get, "ending", BoundKind.LATEST)
    if bound.kind is BoundKind.EARLIEST or (bound.kind is BoundKind.OFFSETS and EARLIEST in bound.offsets.values()):
        raise InvalidOption("endingOffsets cannot be earliest: nothing would be read")
    if bound.kind is BoundKind.GROUP:
        raise InvalidOption("endingOffsets is latest or JSON of offsets, not `group`")
    return bound._replace(latest_if_none=True)


def _bound(get: _Getter, side: str, default: BoundKind) -> Bound:
    """The one that is most particular wins, as in Spark's connector: a timestamp, timestamps, then offsets."""
    option = f"{side}Timestamp"
    if (timestamp := get.number(option, 0)) is not None:
        return Bound(BoundKind.TIMESTAMP, option, timestamp_ms=timestamp)
    option = f"{side}OffsetsByTimestamp"
    if (text := get.text(option)) is not None:
        timestamps = parse_offsets(text, option)
        if any(timestamp < 0 for timestamp in timestamps.values()):
            raise InvalidOption(f"{option} holds milliseconds since 1970, which are not negative")
        return Bound(BoundKind.TIMESTAMPS, option, timestamps)
    option = f"{side}Offsets"
    text = get.text(option)
    if text is None:
        return Bound(default, option)
    if text.lower() in ("earliest", "latest", "group"):
        return Bound(BoundKind(text.lower()), option)
    offsets = parse_offsets(text, option)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise InvalidOption(f"{option}: an offset is at least 0, or -1 for latest, or -2 for earliest")
    return Bound(BoundKind.OFFSETS, option, offsets)


def _duration_ms(text: str | None, default: int) -> int:
    if text is None:
        return default
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    unit = found[2] or "ms" if found else ""
    if found is None or unit not in _UNITS_MS:
        raise InvalidOption(f"maxTriggerDelay is a time such as 500ms, 30s, 15m or 1h, not `{text}`")
    return int(int(found[1]) * _UNITS_MS[unit])


def wants_headers(options: Mapping[str, str]) -> bool:
    """Whether rows have a column of headers; asked before the other options are."""
    return _Getter({name.lower(): value for name, value in options.items()}).flag("includeHeaders", default=False)
