"""A log that is cleaned here and now, without a process of its own."""

import time
from collections.abc import Sequence

import pytest
from tests.unit.broker.storage.conftest import NOW_MS, LogKit

from ottla.broker.storage.compaction.choice import Cleanable, find_cleanable
from ottla.broker.storage.compaction.cleaning import Cleaning
from ottla.broker.storage.compaction.jobs import CleanJob, Done, KnownProducer, SegmentPlace, Swap
from ottla.broker.storage.compaction.swapping import Step, swap_in
from ottla.broker.storage.compaction.throttle import Throttle
from ottla.broker.storage.log import Log
from ottla.protocol.compression import Codec
from ottla.protocol.records import NewRecord, encode_batch

SMALL = {"segment_bytes": 400, "index_interval_bytes": 100}


class Crash(Exception):
    """The moment at which the process ends."""


def keyed(
    *pairs: tuple[bytes | None, bytes | None],
    codec: Codec = Codec.NONE,
    timestamp: int = NOW_MS,
    producer_id: int = -1,
    producer_epoch: int = 0,
    sequence: int = -1,
    transactional: bool = False,
) -> bytearray:
    """One batch of these keys and values, a millisecond apart."""
    return encode_batch(
        [NewRecord(key, value, timestamp + number) for number, (key, value) in enumerate(pairs)],
        codec=codec, producer_id=producer_id, producer_epoch=producer_epoch if producer_id >= 0 else -1,
        base_sequence=sequence, transactional=transactional,
    )  # fmt: skip


def append(log: Log, *pairs: tuple[bytes | None, bytes | None], **options: object) -> int:
    """Append one batch; returns its base offset."""
    records = keyed(*pairs, **options)  # type: ignore[arg-type]
    return log.append_as_leader(records, 0, NOW_MS).base_offset


def cleanable(log: Log, now_ms: int = NOW_MS) -> Cleanable:
    return find_cleanable(
        log.segments.all, log.config, cleaned_to=log.cleaned_to, start_offset=log.start_offset,
        end_offset=log.end_offset, stable_offset=log.first_unstable_offset, now_ms=now_ms,
    )  # fmt: skip


def make_job(log: Log, what: Cleanable, now_ms: int, map_bytes: int, read_bytes: int) -> CleanJob:
    segments = [s for s in log.segments.all if s.base_offset < what.end_offset]
    return CleanJob(
        directory=log.directory, segments=[SegmentPlace(s.base_offset, s.size) for s in segments],
        first_dirty_offset=what.first_dirty_offset, end_offset=what.end_offset, now_ms=now_ms,
        delete_retention_ms=log.config.delete_retention_ms, segment_bytes=log.config.segment_bytes,
        segment_index_bytes=log.config.segment_index_bytes, index_interval_bytes=log.config.index_interval_bytes,
        codec_levels={}, aborted=list(log.aborted_transactions(segments[0].base_offset, what.end_offset)),
        producers=[
            KnownProducer(entry.producer_id, entry.epoch, entry.batches[-1].last_offset if entry.batches else -1)
            for entry in log.producers.entries.values()
        ],
        map_bytes=map_bytes, map_load_factor=0.9, read_bytes=read_bytes, bytes_per_second=1e300,
    )  # fmt: skip


def clean(
    log: Log,
    now_ms: int = NOW_MS,
    *,
    map_bytes: int = 1 << 20,
    read_bytes: int = 1 << 20,
    step: Step | None = None,
) -> Done | None:
    """Clean the log whatever its share of dirty bytes; None when there is nothing to do."""
    what = cleanable(log, now_ms)
    if not what.dirty_bytes:
        return None
    job = make_job(log, what, now_ms, map_bytes, read_bytes)
    by_base = {segment.base_offset: segment for segment in log.segments.all}
    sizes = {place.base_offset: place.size for place in job.segments}

    def swap(report: Swap) -> None:
        replaced = [by_base[base] for base in report.replaced]
        swap_in(log, replaced, [sizes[base] for base in report.replaced], report.size, step=step)

    done = Cleaning(job, Throttle(1e300, time.monotonic, time.sleep), log.environment.disk).run(swap)
    log.cleaned_to = done.cleaned_to
    return done


def roll(log: Log) -> None:
    """Finish the active segment by filling it: records that no test asks for."""
    active = log.segments.active
    while log.segments.active is active and active.size:
        append(log, (b"filler", b"f" * 100))


def compacted(kit: LogKit, **settings: object) -> Log:
    return kit.create(cleanup_policy=("compact",), **{**SMALL, **settings})


def newest(pairs: Sequence[tuple[bytes, bytes | None]]) -> dict[bytes, bytes | None]:
    return dict(pairs)


@pytest.fixture
def log(kit: LogKit) -> Log:
    return compacted(kit)
