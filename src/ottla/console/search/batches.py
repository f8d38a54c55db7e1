"""Fetched bytes to the records that a query looks for: whole batches are passed over where they cannot hold one.

Runs in a thread, on a few megabytes at a time. Pure: bytes in, records out.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ottla.console.search.matching import Headers, Matcher
from ottla.protocol import varint
from ottla.protocol.aborted import AbortedWalk
from ottla.protocol.compression import Buffer, Codec, decompress
from ottla.protocol.errors import CorruptBatch, MalformedMessage
from ottla.protocol.records import BATCH_OVERHEAD, BatchHeader, iterate_batches


class Found(NamedTuple):
    """A record that matches, as it lies in the log."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Bounds(NamedTuple):
    """Which records are looked at: offsets and times, the upper ends not included."""

    start: int
    end: int
    time_from_ms: int | None = None
    time_to_ms: int | None = None


class Answer(NamedTuple):
    """What a fetch gave: bytes, and the aborted transactions that overlap them."""

    records: Buffer
    aborted: Sequence[tuple[int, int]] = ()


class Searched(NamedTuple):
    found: list[Found]
    scanned: int
    matched: int
    """As many as match; `found` has no more of them than asked for."""
    first_offset: int | None
    """Where the first batch begins that was looked at: all from there on is dealt with."""
    oldest_ms: int | None
    newest_ms: int | None


class Search:
    """Goes through the answers of fetches of one partition, in their order."""

    def __init__(self, partition: int, matcher: Matcher, bounds: Bounds, *, keep: int, keep_last: bool) -> None:
        """Of more than `keep` matches the first are kept, or the last."""
        self._partition, self._matcher, self._bounds = partition, matcher, bounds
        self._keep_last = keep_last
        self._keep = keep
        self._found: deque[Found] = deque(maxlen=keep) if keep_last else deque()
        self._scanned = self._matched = 0
        self._first: int | None = None
        self._oldest: int | None = None
        self._newest: int | None = None

    def go(self, answers: Sequence[Answer], committed: bool) -> Searched:
        for answer in answers:
            self._answer(answer, committed)
            if not self._keep_last and len(self._found) >= self._keep:
                break
        return Searched(list(self._found), self._scanned, self._matched, self._first, self._oldest, self._newest)

    def _answer(self, answer: Answer, committed: bool) -> None:
        transactions = AbortedWalk(answer.aborted)
        bounds = self._bounds
        for position, header in iterate_batches(answer.records):
            if header.base_offset >= bounds.end:
                return
            if self._first is None:
                self._first = header.base_offset
            if header.is_control:
                if committed:
                    transactions.pass_marker(answer.records, position, header)
                continue
            if header.next_offset <= bounds.start or (
                committed and header.is_transactional and transactions.covers(header)
            ):
                continue
            self._note_times(header)
            self._batch(_payload(answer.records, position, header), header)
            if not self._keep_last and len(self._found) >= self._keep:
                return

    def _note_times(self, header: BatchHeader) -> None:
        self._oldest = header.base_timestamp if self._oldest is None else min(self._oldest, header.base_timestamp)
        self._newest = header.max_timestamp if self._newest is None else max(self._newest, header.max_timestamp)

    def _batch(self, payload: bytes, header: BatchHeader) -> None:
        bounds = self._bounds
        inside = bounds.start <= header.base_offset and header.last_offset < bounds.end
        needles = self._matcher.needles
        if inside and (
            (bounds.time_from_ms is not None and header.max_timestamp < bounds.time_from_ms)
            or any(needle not in payload for needle in needles)
            or self._matcher.rules_out(payload)
        ):
            self._scanned += header.record_count
            return
        try:
            if not inside:
                self._some(payload, header)
            elif needles:
                self._scanned += header.record_count
                self._by_hits(payload, header, needles[0])
            else:
                self._one_by_one(payload, header)
        except (IndexError, MalformedMessage) as error:
            raise CorruptBatch(f"the batch at offset {header.base_offset} does not parse: {error}") from None

    def _by_hits(self, payload: bytes, header: BatchHeader, needle: bytes) -> None:
        """Only records that have the needle in them are read: of the others only their lengths."""
        read_signed, test = varint.read_signed, self._test
        find = payload.find
        position, hit = 0, find(needle)
        for _ in range(header.record_count):
            if hit < 0:
                return
            first = payload[position]
            if first < 0x80:
                length, body = (first >> 1) ^ -(first & 1), position + 1
            else:
                length, body = read_signed(payload, position)
            end = body + length
            if length <= 0:
                raise MalformedMessage(f"a record of {length} bytes")
            if hit < end:
                if test(payload, body, end, header):
                    return
                hit = find(needle, end)
            position = end

    def _some(self, payload: bytes, header: BatchHeader) -> None:
        """Of a batch that reaches over the bounds."""
        read, bounds, position = varint.read_signed, self._bounds, 0
        for _ in range(header.record_count):
            length, body = read(payload, position)
            position = body + length
            if length <= 0:
                raise MalformedMessage(f"a record of {length} bytes")
            _, at = read(payload, body + 1)
            delta, _ = read(payload, at)
            if bounds.start <= header.base_offset + delta < bounds.end:
                self._scanned += 1
                if self._test(payload, body, position, header):
                    return

    def _one_by_one(self, payload: bytes, header: BatchHeader) -> None:  # noqa: C901 (one loop, for speed)
        """Every record, by hand: a call for each number in it would take longer than all the rest."""
        tests = self._matcher.tests
        position = scanned = 0
        for _ in range(header.record_count):
            byte = payload[position]
            if byte < 0x80:
                end = position + 1 + (byte >> 1)
                at = position + 2  # one byte of unused attributes first
            else:
                length, at = varint.read_signed(payload, position)
                end = at + length
                at += 1
            if end <= at - 1 or byte & 1:
                raise MalformedMessage("a record without content")
            begin, position = at, end
            while payload[at] >= 0x80:  # the time
                at += 1
            at += 1
            while payload[at] >= 0x80:  # the offset
                at += 1
            byte = payload[at + 1]
            if byte < 0x80:
                length, at = (byte >> 1) ^ -(byte & 1), at + 2
            else:
                length, at = varint.read_signed(payload, at + 1)
            key = None
            if length >= 0:
                key = payload[at : at + length]
                at += length
            byte, more = payload[at], payload[at + 1]
            if byte < 0x80:
                length, at = (byte >> 1) ^ -(byte & 1), at + 1
            elif more < 0x80:
                length, at = (byte & 0x7E) >> 1 | more << 6, at + 2
                if byte & 1:
                    length = ~length
            else:
                length, at = varint.read_signed(payload, at)
            value = None
            if length >= 0:
                value = payload[at : at + length]
                at += length
            if at >= end:
                raise MalformedMessage("a record is cut short")
            headers: Headers = _headers(payload, at, end) if payload[at] else ()
            scanned += 1
            for matches in tests:
                if not matches(key, value, headers):
                    break
            else:
                if self._keep_it(payload, begin, header, key, value, headers):
                    break
        self._scanned += scanned

    def _test(self, payload: bytes, body: int, end: int, header: BatchHeader) -> bool:
        """Read one record and keep it if it matches; whether there are enough now."""
        read = varint.read_signed
        _, at = read(payload, body + 1)
        _, at = read(payload, at)
        length, at = read(payload, at)
        key = None
        if length >= 0:
            key = payload[at : at + length]
            at += length
        length, at = read(payload, at)
        value = None
        if length >= 0:
            value = payload[at : at + length]
            at += length
        if at >= end:
            raise MalformedMessage("a record is cut short")
        headers: Headers = _headers(payload, at, end) if payload[at] else ()
        if not self._matcher.accepts(key, value, headers):
            return False
        return self._keep_it(payload, body + 1, header, key, value, headers)

    def _keep_it(
        self,
        payload: bytes,
        at: int,
        header: BatchHeader,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> bool:
        """It matches, if its time does: `at` is where it stands. Whether there are enough now."""
        delta, at = varint.read_signed(payload, at)
        offset, _ = varint.read_signed(payload, at)
        timestamp = header.max_timestamp if header.uses_log_append_time else header.base_timestamp + delta
        bounds = self._bounds
        if (bounds.time_from_ms is not None and timestamp < bounds.time_from_ms) or (
            bounds.time_to_ms is not None and timestamp >= bounds.time_to_ms
        ):
            return False
        self._matched += 1
        self._found.append(Found(self._partition, header.base_offset + offset, timestamp, key, value, headers))
        return not self._keep_last and len(self._found) >= self._keep


def _payload(records: Buffer, position: int, header: BatchHeader) -> bytes:
    payload: Buffer = memoryview(records)[position + BATCH_OVERHEAD : position + header.size]
    if header.codec:
        try:
            payload = decompress(Codec(header.codec), payload)
        except ValueError:
            raise CorruptBatch(f"compression codec {header.codec} is unknown") from None
    if not 0 <= header.record_count <= len(payload):
        raise CorruptBatch(f"{len(payload)} bytes cannot hold {header.record_count} records")
    return payload if isinstance(payload, bytes) else bytes(payload)


def _headers(payload: bytes, at: int, end: int) -> Headers:
    """Names that are no UTF-8 are shown with a sign for what is wrong: such a record is looked at, not refused."""
    read = varint.read_signed
    count, at = read(payload, at)
    if not 0 <= count <= end - at:
        raise MalformedMessage(f"a record cannot have {count} headers")
    found = []
    for _ in range(count):
        length, at = read(payload, at)
        name = payload[at : at + length].decode(errors="replace")
        length, at = read(payload, at + length)
        value = None
        if length >= 0:
            value = payload[at : at + length]
            at += length
        found.append((name, value))
    return tuple(found)
