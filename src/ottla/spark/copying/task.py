"""The executor's side of a copy: batches go from the source's leader to the target's, a fetch ahead of each append.

Where a task begins is what the target's log says, and not what the plan does: so a task that runs twice, a batch that
is replayed, and a checkpoint that was lost all do the same, and nothing is copied twice or left out.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import NamedTuple

from ottla.client.fetch import Fetched, FetchSettings, OffsetOutOfRange, PartitionFetcher, TopicReplaced
from ottla.client.mirrored import LEAVE_START, LogBounds, MirroredLog
from ottla.client.settings import ClientSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.compression import Buffer
from ottla.protocol.records import BatchHeader, iterate_batches
from ottla.spark.connections import shared_cluster
from ottla.spark.copying.results import Copied
from ottla.spark.errors import DataLoss
from ottla.spark.reading import resolving
from ottla.spark.reading.pacing import Pace


class CopyTask(NamedTuple):
    """What one task copies: a partition, up to an offset."""

    partition: TopicPartition
    end: int
    source: str
    """The target topic's `mirror.source`."""
    bytes_per_second: float | None


class Ends(NamedTuple):
    source: ClientSettings
    target: ClientSettings
    fetch: FetchSettings
    stops_on_loss: bool


class WholeBatches(NamedTuple):
    records: Buffer
    first: BatchHeader
    last: BatchHeader
    records_in: int


def whole_batches(records: Buffer) -> WholeBatches | None:
    """Without a last one that is cut short."""
    headers = list(iterate_batches(records))
    if not headers:
        return None
    position, last = headers[-1]
    count = sum(header.record_count for _, header in headers if not header.is_control)
    return WholeBatches(memoryview(records)[: position + last.size], headers[0][1], last, count)


async def copy(task: CopyTask, ends: Ends) -> Copied:
    source, target = shared_cluster(ends.source), shared_cluster(ends.target)
    log = MirroredLog(target, task.partition, task.source)
    bounds = await log.append(0)
    firsts = await resolving.earliest(source, [task.partition])
    start = firsts.get(task.partition)
    if start is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{task.partition} is gone from the source")
    at = _begin(task, bounds, start, ends)
    fetcher = PartitionFetcher(source, task.partition, ends.fetch)
    pace = None if task.bytes_per_second is None else Pace(task.bytes_per_second, time.monotonic)
    records = size = 0
    epoch = -1
    answers: AsyncGenerator[Fetched, None] = fetcher.read(at, task.end)
    try:
        async for fetched in answers:
            found = whole_batches(fetched.records)
            if found is None:
                continue
            # The source's log may begin inside of its first batch: so will this one.
            first = min(fetched.offset, found.first.base_offset)
            bounds = await log.append(first, found.records, start if bounds.end <= start else LEAVE_START)
            records, size, epoch = records + found.records_in, size + len(found.records), found.last.leader_epoch
            if pace is not None:
                await asyncio.sleep(pace.pause_s(len(found.records)))
    except (OffsetOutOfRange, TopicReplaced) as error:
        raise DataLoss(f"{task.partition} has changed while it was copied: {error}") from error
    finally:
        await answers.aclose()
    if bounds.end < at:  # the source is empty, and does not begin at 0
        bounds = await log.append(at, log_start_offset=at)
    return Copied(records=records, bytes=size, end=bounds.end, epoch=epoch)


def _begin(task: CopyTask, bounds: LogBounds, start: int, ends: Ends) -> int:
    """Where to go on: where the target's log ends, unless the source begins behind that."""
    if bounds.end >= start:
        return bounds.end
    if bounds.end > bounds.start and ends.stops_on_loss:
        raise DataLoss(
            f"{task.partition} begins at {start} in the source, and was copied up to {bounds.end}: what lies between "
            "was deleted before it was read. To go on without it, set on_loss: continue"
        )
    return start
