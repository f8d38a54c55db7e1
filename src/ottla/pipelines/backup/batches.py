"""Raw batches of one object: which of them count, and what there is to know of all. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.protocol.compression import Buffer
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import BatchHeader, check_crc, decode_batch, iterate_batches

_ABORT_MARKER = b"\x00\x00\x00\x00"  # a control record's key: version 0, then the kind, 0 for abort


class FoundBatch(NamedTuple):
    position: int
    header: BatchHeader
    counts: bool
    """Whether a reader of committed records sees it: it is no marker, and its transaction was not aborted."""


class Walk:
    """Over batches in order, with the aborted transactions that overlap them."""

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._waiting = sorted(aborted, key=lambda entry: entry[1], reverse=True)
        self._aborting: dict[int, int] = {}

    def batches(self, content: Buffer) -> Iterator[FoundBatch]:
        """CorruptBatch for one that fails its CRC or is cut short."""
        end = 0
        for position, header in iterate_batches(content):
            check_crc(content, position, header)
            end = position + header.size
            while self._waiting and self._waiting[-1][1] <= header.last_offset:
                producer, first = self._waiting.pop()
                self._aborting[producer] = first
            if header.is_control:
                if header.producer_id in self._aborting and _is_abort(content, position):
                    del self._aborting[header.producer_id]
                yield FoundBatch(position, header, counts=False)
            else:
                aborted = header.is_transactional and header.producer_id in self._aborting
                yield FoundBatch(position, header, counts=not aborted)
        if end != len(content):
            raise CorruptBatch(f"{len(content) - end} bytes behind the last batch are none")

    def left(self) -> list[tuple[int, int]]:
        """Those whose marker has not come yet: batches that follow may belong to them."""
        return sorted([*self._waiting, *self._aborting.items()])


def _is_abort(content: Buffer, position: int) -> bool:
    return next((record.key for record in decode_batch(content, position)), None) == _ABORT_MARKER


class BatchPiece(NamedTuple):
    """Batches that follow each other in an object."""

    content: memoryview
    first_offset: int
    records: int
    """That a reader of committed records sees."""


def pieces(content: Buffer, aborted: Sequence[tuple[int, int]], start: int, size: int) -> Iterator[BatchPiece]:
    """The batches that have anything from `start` on, about so many bytes at once and never less than one batch."""
    whole = memoryview(content)
    begin: int | None = None
    first = records = end = 0
    for position, header, counts in Walk(aborted).batches(content):
        if header.next_offset <= start:
            continue
        if begin is None:
            begin, first = position, header.base_offset
        if counts:
            inside = header.base_offset < start
            records += _records_from(content, position, start) if inside else header.record_count
        end = position + header.size
        if end - begin >= size:
            yield BatchPiece(whole[begin:end], first, records)
            begin, records = None, 0
    if begin is not None:
        yield BatchPiece(whole[begin:end], first, records)


def _records_from(content: Buffer, position: int, start: int) -> int:
    return sum(record.offset >= start for record in decode_batch(content, position))


@dataclass
class BatchSum:
    """What is known of batches that go by."""

    records: int = 0
    first: int = -1
    last: int = -1
    max_timestamp: int = -1
    batch_bytes_max: int = 0
    in_order: bool = True
    aborted: list[tuple[int, int]] = field(default_factory=list)
    left: list[tuple[int, int]] = field(default_factory=list)
    """Aborted transactions that go on behind these batches."""

    def add(self, found: FoundBatch) -> None:
        header = found.header
        self.in_order &= header.base_offset > self.last
        if self.first < 0:
            self.first = header.base_offset
        self.last = header.last_offset
        self.batch_bytes_max = max(self.batch_bytes_max, header.size)
        if found.counts:
            self.records += header.record_count
            self.max_timestamp = max(self.max_timestamp, header.max_timestamp)


def sum_of(content: Buffer, aborted: Sequence[tuple[int, int]], start: int = 0) -> BatchSum:
    """Records count from `start` on: the log may have begun inside the first batch."""
    walk = Walk(aborted)
    total = BatchSum(aborted=list(aborted))
    for found in walk.batches(content):
        total.add(found)
        if found.counts and found.header.base_offset < start:
            total.records -= sum(record.offset < start for record in decode_batch(content, found.position))
    total.left = walk.left()
    return total
