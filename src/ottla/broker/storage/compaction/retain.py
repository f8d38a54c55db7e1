"""What becomes of the batches of one stretch of log: copied, dropped, rewritten with fewer records, or emptied.

The rules are Kafka's. A record stays if it is the newest of its key or lies behind what the map covers; a deletion
marker stays until its batch's delete horizon; records of aborted transactions go; the marker of a transaction that has
no records left goes once its own horizon has passed. The last batch of every known producer and the last one of the
cleaned part keep at least their headers.
"""

import struct
from typing import NamedTuple

import numpy as np

from ottla.broker.storage.compaction.batches import Flags, Longs, Records, Stretch, read_records
from ottla.broker.storage.compaction.digests import Digester
from ottla.broker.storage.compaction.jobs import KnownProducer
from ottla.broker.storage.compaction.offset_map import OffsetMap
from ottla.broker.storage.compaction.transactions import TransactionWalk
from ottla.protocol.records import CONTROL, HAS_DELETE_HORIZON, TRANSACTIONAL, decode_batch

_CONTROL_KEY = struct.Struct(">hh")


class BatchFacts(NamedTuple):
    """What the headers of a stretch say, one array per question."""

    last_offset: Longs
    record_count: Longs
    control: Flags
    transactional: Flags
    has_horizon: Flags
    horizon_ms: Longs
    """Meaningful where there is one."""

    @classmethod
    def of(cls, stretch: Stretch) -> "BatchFacts":
        headers = stretch.headers
        attributes = headers["attributes"]
        return cls(
            headers["base_offset"].astype(np.int64) + headers["last_offset_delta"],
            headers["record_count"].astype(np.int64),
            (attributes & CONTROL) != 0,
            (attributes & TRANSACTIONAL) != 0,
            (attributes & HAS_DELETE_HORIZON) != 0,
            headers["base_timestamp"].astype(np.int64),
        )


class Verdict(NamedTuple):
    """What stays of each batch of a stretch."""

    kept_count: Longs
    needs_horizon: Flags
    keep_empty: Flags
    """Whether the header stays although no record does."""
    records: Records | None
    """Of the batches that were looked into."""
    keep: Flags
    """Which of those records stay."""


def discardable(stretch: Stretch, facts: BatchFacts, walk: TransactionWalk) -> Flags:
    """Batches of aborted transactions, and markers that end nothing."""
    found = np.zeros(len(facts.last_offset), np.bool_)
    for number in np.flatnonzero(facts.control | facts.transactional).tolist():
        producer_id, last_offset = int(stretch.headers["producer_id"][number]), int(facts.last_offset[number])
        if facts.control[number]:
            found[number] = walk.marker_ends_nothing(producer_id, last_offset, _control_kind(stretch, number))
        else:
            found[number] = walk.is_aborted(producer_id, last_offset)
    return found


def _control_kind(stretch: Stretch, number: int) -> int | None:
    records = decode_batch(stretch.batch(number))
    if not records:
        return None
    key = records[0].key
    if key is None or len(key) < _CONTROL_KEY.size:
        return -1
    kind: int = _CONTROL_KEY.unpack_from(key)[1]
    return kind


class Judge:
    """Judges one stretch after the other, in log order."""

    def __init__(
        self, newest: OffsetMap, digester: Digester, covered_to: int, *, end_offset: int, now_ms: int,
        producers: list[KnownProducer], walk: TransactionWalk,
    ) -> None:  # fmt: skip
        self._newest = newest
        self._digester = digester
        self._covered_to = covered_to
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._walk = walk
        self._producers = {producer.producer_id: producer for producer in producers}
        self._last_offsets = np.array([p.last_offset for p in producers if p.last_offset >= 0], np.int64)
        self._only_markers = np.array([p.producer_id for p in producers if p.last_offset < 0], np.int64)
        self.records_without_key = 0

    def judge(self, stretch: Stretch) -> Verdict:
        facts = BatchFacts.of(stretch)
        discard = discardable(stretch, facts, self._walk)
        expired = facts.has_horizon & (facts.horizon_ms <= self._now_ms)
        kept_count = np.zeros(len(facts.last_offset), np.int64)
        markers = facts.control & ~(discard & expired)
        kept_count[markers] = facts.record_count[markers]
        needs_horizon = facts.control & discard & ~facts.has_horizon & (kept_count > 0)
        chosen = np.flatnonzero(~facts.control & ~discard & (facts.record_count > 0))
        records, keep = None, np.zeros(0, np.bool_)
        if len(chosen):
            records = read_records(stretch, chosen)
            keep = self._keep(records, expired[records.batch])
            tombstones = keep & (records.value_length < 0)
            counts = np.bincount(records.batch, weights=keep, minlength=len(kept_count))
            kept_count += counts.astype(np.int64)
            deletions = np.bincount(records.batch, weights=tombstones, minlength=len(kept_count))
            needs_horizon |= (deletions > 0) & ~facts.has_horizon
        return Verdict(kept_count, needs_horizon, self._keep_empty(stretch, facts), records, keep)

    def _keep(self, records: Records, expired: Flags) -> Flags:
        has_key = records.key_length >= 0
        behind = records.offset > self._covered_to
        high, low = self._digester.digest(records.data, records.key_start, np.maximum(records.key_length, 0))
        newest = self._newest.get(high, low)
        current = has_key & (records.offset >= newest) & ((records.value_length >= 0) | ~expired)
        self.records_without_key += int(np.count_nonzero(~has_key & ~behind))
        return behind | current

    def _keep_empty(self, stretch: Stretch, facts: BatchFacts) -> Flags:
        keep: Flags = facts.last_offset + 1 == self._end_offset
        producer_ids = stretch.headers["producer_id"].astype(np.int64)
        candidates = np.isin(facts.last_offset, self._last_offsets) | np.isin(producer_ids, self._only_markers)
        for number in np.flatnonzero(candidates & (producer_ids >= 0)).tolist():
            producer = self._producers.get(int(producer_ids[number]))
            if producer is None:
                continue
            if producer.last_offset >= 0:
                keep[number] |= bool(facts.last_offset[number] == producer.last_offset)
            else:
                same_epoch = int(stretch.headers["producer_epoch"][number]) == producer.epoch
                keep[number] |= bool(facts.control[number]) and same_epoch
        return keep
