"""The executor's side of a read: a range of offsets becomes Arrow batches, fetched ahead of what is decoded."""

import logging
import time
from collections.abc import AsyncIterator, Generator, Iterator

import pyarrow as pa

from ottla.client.fetch import Fetched, OffsetOutOfRange, PartitionFetcher, TopicReplaced
from ottla.model.errors import ApiError, ErrorCode
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.errors import DataLoss
from ottla.spark.reading.decode import Decoder
from ottla.spark.reading.offsets import OffsetRange
from ottla.spark.reading.options import ReadOptions
from ottla.spark.reading.pacing import Pace
from ottla.spark.worker_heap import freeze_modules

logger = logging.getLogger(__name__)


def read_range(
    wanted: OffsetRange, options: ReadOptions, bytes_per_second: float | None = None
) -> Iterator[pa.RecordBatch]:
    """The records of a range, which may be fewer than its offsets: compaction and transactions leave gaps."""
    freeze_modules()
    pace = None if bytes_per_second is None else Pace(bytes_per_second, time.monotonic)
    start: int | None = wanted.start
    while start is not None and start < wanted.end:
        decoder = Decoder(
            *wanted.partition,
            start,
            wanted.end,
            include_headers=options.include_headers,
            committed=options.consumer.fetch.committed,
            check_crcs=options.consumer.check_crcs,
            objects=options.objects,
        )
        start = yield from _read(wanted, decoder, options, pace)


def _read(
    wanted: OffsetRange, decoder: Decoder, options: ReadOptions, pace: Pace | None
) -> Generator[pa.RecordBatch, None, int | None]:
    """Read until the end, or until records turn out to be gone: then the offset to go on from, if there is one."""
    go_on: int | None = None
    try:
        for fetched in _fetches(OffsetRange(wanted.partition, decoder.next_offset, wanted.end), options):
            yield from decoder.feed(fetched.records, fetched.aborted)
            if pace is not None:
                time.sleep(pace.pause_s(len(fetched.records)))
    except (OffsetOutOfRange, TopicReplaced, ApiError) as error:
        go_on = _after_loss(error, decoder.next_offset, wanted, options)
    last = decoder.flush()
    if last is not None:
        yield last
    return go_on


def _fetches(wanted: OffsetRange, options: ReadOptions) -> Iterator[Fetched]:
    """The answers of fetches, in this thread; the next fetch runs on the loop meanwhile."""
    cluster = shared_cluster(options.consumer.client)
    answers = PartitionFetcher(cluster, wanted.partition, options.consumer.fetch).read(wanted.start, wanted.end)
    try:
        while (fetched := loop.run(_next(answers))) is not None:
            yield fetched
    finally:
        loop.run(answers.aclose())


async def _next(answers: AsyncIterator[Fetched]) -> Fetched | None:
    return await anext(answers, None)


def _after_loss(error: Exception, reached: int, wanted: OffsetRange, options: ReadOptions) -> int | None:
    if isinstance(error, ApiError) and error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise error
    what = f"offsets {reached} to {wanted.end - 1} of {wanted.partition} cannot be read: {error}"
    if options.fail_on_data_loss:
        raise DataLoss(
            f"{what}. Records were deleted before the query read them (by retention, or with the topic). "
            "To go on without them, set failOnDataLoss=false"
        ) from error
    logger.warning("Data loss: %s; going on, as failOnDataLoss=false says", what)
    if isinstance(error, OffsetOutOfRange) and error.log_start_offset > reached:
        return error.log_start_offset
    return None
