"""Fetch responses, packed by hand: record data is a slice of a segment and never passes through Python.

The layout by version: 4 has no log start offset, 5 adds it, 7 adds the session and a top-level error, 11 the preferred
replica, 12 is flexible, 13 names topics by id, 16 tells where the leader of a refused partition is.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from ottla.broker.handlers.common.leader_hints import LeaderHint, pack_endpoints, pack_leader
from ottla.broker.handlers.context import Raw
from ottla.broker.handlers.fetching.sessions import TopicKey
from ottla.broker.storage.log import AbortedTransaction, LogSlice
from ottla.protocol.varint import unsigned

_V4 = struct.Struct(">ihqq")
_V5 = struct.Struct(">ihqqq")
_INT32 = struct.Struct(">i")
_THROTTLE_ERROR_SESSION = struct.Struct(">ihi")
_ABORTED = struct.Struct(">qq")
_EPOCH_END = struct.Struct(">iq")
_FLEXIBLE_FROM = 12
_TOPIC_IDS_FROM = 13
_PREFERRED_REPLICA_FROM = 11
_SESSIONS_FROM = 7
_LEADER_HINTS_FROM = 16
_DIVERGING_EPOCH_TAG = 0
_LEADER_TAG = 1
NO_REPLICA = -1
_THROTTLE_AT = 0  # in every version


class PartitionAnswer(NamedTuple):
    topic: TopicKey
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTransaction] | None
    """None for who reads uncommitted records too and need not know."""
    records: LogSlice | None
    diverging: tuple[int, int] | None = None
    preferred_replica: int = NO_REPLICA
    leader: LeaderHint | None = None

    @property
    def size(self) -> int:
        return self.records.length if self.records is not None else 0


def pack(version: int, error_code: int, session_id: int, answers: Sequence[PartitionAnswer]) -> Raw:
    """A response body. Neighbouring answers of one topic are put under one topic entry."""
    packer = _Packer()
    errors = [error_code] if error_code else []
    flexible = version >= _FLEXIBLE_FROM
    topics = _by_topic(answers)
    if version >= _SESSIONS_FROM:
        packer.add(_THROTTLE_ERROR_SESSION.pack(0, error_code, session_id))
    else:
        packer.add(_INT32.pack(0))
    packer.add(_count(len(topics), flexible=flexible))
    for (name, topic_id), members in topics:
        if version >= _TOPIC_IDS_FROM:
            packer.add(topic_id.bytes)
        else:
            encoded = name.encode()
            packer.add((unsigned(len(encoded) + 1) if flexible else struct.pack(">h", len(encoded))) + encoded)
        packer.add(_count(len(members), flexible=flexible))
        for answer in members:
            if answer.error_code:
                errors.append(answer.error_code)
            _pack_partition(packer, version, answer, flexible=flexible)
        if flexible:
            packer.add(b"\x00")
    if version >= _LEADER_HINTS_FROM:
        packer.add(pack_endpoints(answer.leader for answer in answers if answer.leader is not None))
    elif flexible:
        packer.add(b"\x00")
    return packer.done(errors)


class _Packer:
    """Collects bytes between slices, so that a response has few chunks."""

    def __init__(self) -> None:
        self._chunks: list[bytes | bytearray | LogSlice] = []
        self._current = bytearray()
        self._size = 0

    def add(self, data: bytes) -> None:
        self._current += data

    def add_slice(self, piece: LogSlice) -> None:
        self._close_current()
        self._chunks.append(piece)
        self._size += piece.length

    def done(self, errors: list[int]) -> Raw:
        self._close_current()
        return Raw(self._chunks, self._size, _THROTTLE_AT, errors)

    def _close_current(self) -> None:
        if self._current:
            self._chunks.append(self._current)
            self._size += len(self._current)
            self._current = bytearray()


def _by_topic(answers: Sequence[PartitionAnswer]) -> list[tuple[TopicKey, list[PartitionAnswer]]]:
    topics: list[tuple[TopicKey, list[PartitionAnswer]]] = []
    for answer in answers:
        if topics and topics[-1][0] == answer.topic:
            topics[-1][1].append(answer)
        else:
            topics.append((answer.topic, [answer]))
    return topics


def _count(count: int, *, flexible: bool) -> bytes:
    return unsigned(count + 1) if flexible else _INT32.pack(count)


def _pack_partition(packer: _Packer, version: int, answer: PartitionAnswer, *, flexible: bool) -> None:
    if version >= 5:
        head = _V5.pack(
            answer.partition, answer.error_code, answer.high_watermark, answer.last_stable_offset,
            answer.log_start_offset,
        )  # fmt: skip
    else:
        head = _V4.pack(answer.partition, answer.error_code, answer.high_watermark, answer.last_stable_offset)
    head += _aborted(answer.aborted, flexible=flexible)
    if version >= _PREFERRED_REPLICA_FROM:
        head += _INT32.pack(answer.preferred_replica)
    size = answer.size
    packer.add(head + (unsigned(size + 1) if flexible else _INT32.pack(size)))
    if answer.records is not None and size:
        packer.add_slice(answer.records)
    if flexible:
        packer.add(_tags(answer, version))


def _aborted(transactions: Sequence[AbortedTransaction] | None, *, flexible: bool) -> bytes:
    if not transactions:
        if flexible:
            return b"\x01" if transactions is not None else b"\x00"
        return b"\x00\x00\x00\x00" if transactions is not None else b"\xff\xff\xff\xff"
    end = b"\x00" if flexible else b""  # no tagged fields
    rows = [_ABORTED.pack(transaction.producer_id, transaction.first_offset) + end for transaction in transactions]
    return _count(len(rows), flexible=flexible) + b"".join(rows)


def _tags(answer: PartitionAnswer, version: int) -> bytes:
    count, fields = 0, b""
    if answer.diverging is not None:
        body = _EPOCH_END.pack(*answer.diverging) + b"\x00"
        count, fields = 1, unsigned(_DIVERGING_EPOCH_TAG) + unsigned(len(body)) + body
    if answer.leader is not None and version >= _LEADER_HINTS_FROM:
        count, fields = count + 1, fields + pack_leader(answer.leader, _LEADER_TAG)
    return unsigned(count) + fields
