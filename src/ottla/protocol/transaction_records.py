"""Records of `__transaction_state`: what is known of a transactional id.

A key begins with its record type (0), a value with its version. Versions 0 and 1 of the value are read, version 1
is written, as Kafka 4.3 does with transaction version 2: what came after version 0 travels in tagged fields.
"""

import struct
from enum import IntEnum

import msgspec

from ottla.model.names import TopicPartition
from ottla.model.sentinels import NO_TIMESTAMP
from ottla.protocol import varint
from ottla.protocol.compression import Buffer
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import NO_PRODUCER_ID
from ottla.protocol.stored_records import StoredReader

TRANSACTION_LOG = 0
VALUE_VERSION = 1
VALUE_VERSION_MAX = 1
FLEXIBLE_FROM = 1
STRING_BYTES_MAX = 0x7FFF

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_HEAD = struct.Struct(">hqhib")  # version, producer id, producer epoch, timeout, state
_TIMES = struct.Struct(">qq")
_PREVIOUS_PRODUCER_ID, _NEXT_PRODUCER_ID, _CLIENT_VERSION = 0, 1, 2


class TransactionState(IntEnum):
    """The numbers are those on disk; `word` is what Kafka's tools show."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def word(self) -> str:
        return _WORDS[self]


_WORDS = {state: state.name.title().replace("_", "") for state in TransactionState}


class TransactionValue(msgspec.Struct, frozen=True):
    """Everything that the log keeps of one transactional id."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = frozenset()
    updated_ms: int = NO_TIMESTAMP
    started_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0


# Writing


def encode_transaction_key(transactional_id: str) -> bytes:
    content = transactional_id.encode()
    if len(content) > STRING_BYTES_MAX:
        raise MalformedMessage(f"a transactional id of {len(content)} bytes does not fit a record's key")
    return b"\x00\x00" + _INT16.pack(len(content)) + content


def encode_transaction_value(value: TransactionValue, version: int = VALUE_VERSION) -> bytes:
    flexible = version >= 1
    parts = [_HEAD.pack(version, value.producer_id, value.producer_epoch, value.timeout_ms, value.state)]
    if value.state is TransactionState.EMPTY:
        parts.append(b"\x00" if flexible else b"\xff\xff\xff\xff")
    else:
        parts += _partitions(value.partitions, flexible)
    parts.append(_TIMES.pack(value.updated_ms, value.started_ms))
    if flexible:
        parts += _tagged(value)
    return b"".join(parts)


def _partitions(partitions: frozenset[TopicPartition], flexible: bool) -> list[bytes]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    parts = [_count(len(by_topic), flexible)]
    for topic, numbers in by_topic.items():
        name = topic.encode()
        parts += (varint.unsigned(len(name) + 1) if flexible else _INT16.pack(len(name)), name)
        parts += (_count(len(numbers), flexible), struct.pack(f">{len(numbers)}i", *numbers))
        if flexible:
            parts.append(b"\x00")
    return parts


def _count(count: int, flexible: bool) -> bytes:
    return varint.unsigned(count + 1) if flexible else _INT32.pack(count)


def _tagged(value: TransactionValue) -> list[bytes]:
    fields = []
    if value.previous_producer_id != NO_PRODUCER_ID:
        fields.append(bytes((_PREVIOUS_PRODUCER_ID, 8)) + _INT64.pack(value.previous_producer_id))
    if value.next_producer_id != NO_PRODUCER_ID:
        fields.append(bytes((_NEXT_PRODUCER_ID, 8)) + _INT64.pack(value.next_producer_id))
    if value.client_version:
        fields.append(bytes((_CLIENT_VERSION, 2)) + _INT16.pack(value.client_version))
    return [varint.unsigned(len(fields)), *fields]


# Reading


def decode_transaction_key(buffer: Buffer) -> str | None:
    """The transactional id, or None if the record is of another type."""
    reader = StoredReader(buffer, "key")
    if reader.int16() != TRANSACTION_LOG:
        return None
    return reader.string()


def decode_transaction_value(buffer: Buffer) -> TransactionValue:
    reader = StoredReader(buffer, "transaction")
    version, producer_id, epoch, timeout_ms, number = reader.unpack(_HEAD)
    reader.check_version(version, VALUE_VERSION_MAX, FLEXIBLE_FROM)
    try:
        state = TransactionState(number)
    except ValueError:
        raise MalformedMessage(f"a transaction record has state {number}, which is not one") from None
    partitions = frozenset(_read_partitions(reader))
    updated_ms, started_ms = reader.unpack(_TIMES)
    previous = following = NO_PRODUCER_ID
    client_version = 0
    for tag, content in reader.tagged_fields():
        if tag == _PREVIOUS_PRODUCER_ID and len(content) == 8:
            (previous,) = _INT64.unpack(content)
        elif tag == _NEXT_PRODUCER_ID and len(content) == 8:
            (following,) = _INT64.unpack(content)
        elif tag == _CLIENT_VERSION and len(content) == 2:
            (client_version,) = _INT16.unpack(content)
    return TransactionValue(
        producer_id, epoch, timeout_ms, state, partitions, updated_ms, started_ms, previous, following, client_version
    )


def _read_partitions(reader: StoredReader) -> list[TopicPartition]:
    found = []
    for _ in range(reader.count(nullable=True)):
        topic = reader.string()
        numbers = reader.unpack(struct.Struct(f">{reader.count(nullable=True)}i"))
        found += [TopicPartition(topic, number) for number in numbers]
        reader.tagged_fields()
    return found
