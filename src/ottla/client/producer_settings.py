"""The settings of a producer, by the names of Java's client and librdkafka: what has effect, and why others cannot."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.errors import InvalidSetting
from ottla.client.producer import ALL, BUFFER_BYTES_MAX, DELIVERY_TIMEOUT_S, REQUEST_BYTES_MAX, ProducerLimits
from ottla.client.settings import ClientSettings, boolean, client_settings, integer
from ottla.protocol.compression import CODEC_NAMES, Codec

BATCH_BYTES = 256 * 1024
"""Larger than Kafka's 16 KiB: a task writes as much as it can as fast as it can, and has no latency to lose."""
TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000
"""As much as brokers allow by default: a transaction must outlive the longest batch, and the restart after a crash."""

PRODUCER_SETTINGS = frozenset(
    {
        "acks", "batch.size", "buffer.memory", "compression.codec", "compression.gzip.level", "compression.level",
        "compression.lz4.level", "compression.type", "compression.zstd.level", "delivery.timeout.ms",
        "enable.idempotence", "max.in.flight.requests.per.connection", "max.request.size", "request.required.acks",
        "transaction.timeout.ms", "transactional.id",
    }
)  # fmt: skip
_OTHER_NAMES: Mapping[str, str] = {
    "request.required.acks": "acks",
    "compression.codec": "compression.type",
}
_LEVELS: Mapping[Codec, tuple[int, int]] = {Codec.GZIP: (-1, 9), Codec.LZ4: (1, 17), Codec.ZSTD: (-131072, 22)}

_ORDER = "rows become records in the order in which Spark hands them over"
_TIME_LIMITS = "a batch is tried again until delivery.timeout.ms is over"
_REFUSED: Mapping[str, str] = {
    "batch.num.messages": "batches are limited by their bytes alone: set batch.size",
    "key.serializer": "keys are written as the bytes that they are; cast the column to a string or to binary",
    "linger.ms": "a batch leaves when it is full or when its rows are at an end; there is nothing to linger for",
    "max.block.ms": "waiting for room in the buffer ends with delivery.timeout.ms",
    "message.max.bytes": "librdkafka's other name; write max.request.size",
    "message.send.max.retries": _TIME_LIMITS,
    "message.timeout.ms": "librdkafka's other name; write delivery.timeout.ms",
    "partitioner": "Kafka's default partitioner decides; for another choice fill the column `partition`",
    "partitioner.adaptive.partitioning.enable": _ORDER,
    "partitioner.availability.timeout.ms": _ORDER,
    "partitioner.class": "it names a Java class; for another choice than the default fill the column `partition`",
    "partitioner.ignore.keys": "drop the column `key` to have rows spread over the partitions",
    "queue.buffering.max.kbytes": "librdkafka's other name; write buffer.memory, in bytes",
    "queue.buffering.max.messages": "the buffer is limited by its bytes alone: set buffer.memory",
    "queue.buffering.max.ms": "a batch leaves when it is full or when its rows are at an end",
    "retries": _TIME_LIMITS,
    "transaction.two.phase.commit.enable": "transactions are decided by this sink, which has its own second phase",
    "value.serializer": "values are written as the bytes that they are; cast the column to a string or to binary",
}


class Compression(NamedTuple):
    codec: Codec = Codec.NONE
    level: int | None = None


class ProducerSettings(NamedTuple):
    client: ClientSettings
    limits: ProducerLimits = ProducerLimits()
    compression: Compression = Compression()
    batch_bytes: int = BATCH_BYTES
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    transactional_id: str | None = None
    is_idempotent: bool = True


def producer_settings(settings: Mapping[str, str], *, prefix: str = "") -> ProducerSettings:
    """Raises InvalidSetting for what is unknown, malformed or without effect."""
    for name, reason in _REFUSED.items():
        if name in settings:
            raise InvalidSetting(f"{prefix}{name} has no effect here and should be taken out: {reason}")
    client = client_settings(settings, also=PRODUCER_SETTINGS, prefix=prefix)
    known = {_OTHER_NAMES.get(name, name): value for name, value in settings.items()}
    acks = parse_acks(known.get("acks", "all"), prefix)
    request_bytes = integer(known, "max.request.size", REQUEST_BYTES_MAX, prefix, minimum=1)
    is_idempotent = boolean(known, "enable.idempotence", default=acks == ALL, prefix=prefix)
    if is_idempotent and acks != ALL:
        raise InvalidSetting(f"{prefix}enable.idempotence wants {prefix}acks=all: change one of them")
    delivery_ms = integer(known, "delivery.timeout.ms", int(DELIVERY_TIMEOUT_S * 1000), prefix, minimum=1)
    return ProducerSettings(
        client=client,
        limits=ProducerLimits(
            acks=acks,
            request_bytes_max=request_bytes,
            buffer_bytes_max=integer(known, "buffer.memory", BUFFER_BYTES_MAX, prefix, minimum=1),
            request_timeout_s=client.request_timeout_s,
            delivery_timeout_s=delivery_ms / 1000,
            in_flight_max=_in_flight(known, prefix, is_idempotent=is_idempotent),
        ),
        compression=_compression(known, prefix),
        batch_bytes=min(integer(known, "batch.size", BATCH_BYTES, prefix, minimum=1), request_bytes),
        transaction_timeout_ms=integer(known, "transaction.timeout.ms", TRANSACTION_TIMEOUT_MS, prefix, minimum=1),
        transactional_id=known.get("transactional.id"),
        is_idempotent=is_idempotent,
    )


def parse_acks(text: str, prefix: str = "") -> int:
    acks = {"all": ALL, "-1": ALL, "0": 0, "1": 1}.get(text.strip().lower())
    if acks is None:
        raise InvalidSetting(f"{prefix}acks is all, 1 or 0, not `{text}`")
    return acks


def parse_codec(text: str, name: str = "compression.type") -> Codec:
    codec = CODEC_NAMES.get(text.strip().lower())
    if codec is None:
        raise InvalidSetting(f"{name} is one of none, gzip, snappy, lz4 and zstd, not `{text}`")
    return codec


def _in_flight(known: Mapping[str, str], prefix: str, *, is_idempotent: bool) -> int:
    name = "max.in.flight.requests.per.connection"
    count = integer(known, name, 5, prefix, minimum=1)
    if is_idempotent and count > 5:
        raise InvalidSetting(f"{prefix}{name} is 5 at most: brokers remember no more batches of an idempotent producer")
    return count


def _compression(known: Mapping[str, str], prefix: str) -> Compression:
    codec = parse_codec(known.get("compression.type", "none"), f"{prefix}compression.type")
    level: int | None = None
    for name in ("compression.gzip.level", "compression.lz4.level", "compression.zstd.level", "compression.level"):
        if name not in known:
            continue
        named = name.removeprefix("compression.").removesuffix("level").rstrip(".")
        if codec not in _LEVELS or (named and parse_codec(named) is not codec):
            raise InvalidSetting(f"{prefix}{name} has no effect with {prefix}compression.type={codec.name.lower()}")
        lowest, highest = _LEVELS[codec]
        try:
            level = int(known[name])
        except ValueError:
            raise InvalidSetting(f"{prefix}{name} is a whole number, not `{known[name]}`") from None
        if not lowest <= level <= highest:
            raise InvalidSetting(f"{prefix}{name} lies between {lowest} and {highest}, not at {level}")
    return Compression(codec, level)
