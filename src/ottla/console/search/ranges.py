"""Which offsets of which partitions a query is about, asked of the brokers."""

import asyncio

from ottla.client.cluster import Cluster, error_code
from ottla.client.offsets import EARLIEST, LATEST, FoundOffset, list_offsets
from ottla.console.search.batches import Bounds
from ottla.console.search.query import Query
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition


async def partitions_of(cluster: Cluster, topic: str) -> list[int]:
    """ApiError if there is no such topic, or nobody may see it."""
    response = await cluster.metadata([topic])
    found = response.topics[0] if response.topics else None
    if found is None or found.error_code:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else error_code(found.error_code)
        raise ApiError(code, f"topic `{topic}`: {code.name}")
    return sorted(partition.partition_index for partition in found.partitions)


async def chosen_partitions(cluster: Cluster, topic: str, query: Query) -> list[int]:
    """Those that the query names, or all."""
    known = await partitions_of(cluster, topic)
    chosen = known if query.partitions is None else [number for number in known if number in query.partitions]
    if not chosen:
        asked = ",".join(map(str, query.partitions or ()))
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic `{topic}` has partitions 0 to {len(known) - 1}, not {asked}"
        )
    return chosen


async def ranges_of(
    cluster: Cluster, topic: str, query: Query, now_ms: int, *, committed: bool = True
) -> dict[int, Bounds]:
    """What each partition has to be searched for, by the query's partitions, offsets and times.

    Times are looked up in the brokers' indexes: records that come behind one of a later time than `to` are not seen.
    """
    chosen = await chosen_partitions(cluster, topic, query)
    time_from, time_to = query.times(now_ms)

    async def at(moment: int) -> dict[int, int | None]:
        wanted = {TopicPartition(topic, number): moment for number in chosen}
        answers = await list_offsets(cluster, wanted, committed=committed)
        found: dict[int, int | None] = {}
        for partition, answer in answers.items():
            if not isinstance(answer, FoundOffset):
                raise ApiError(answer, f"{partition}: {answer.name}")
            found[partition.partition] = answer.offset
        return found

    starts, ends = await asyncio.gather(at(EARLIEST), at(LATEST))
    begins = await at(time_from) if time_from is not None else {}
    stops = await at(time_to) if time_to is not None else {}
    ranges = {}
    for number in chosen:
        start, end = starts[number] or 0, ends[number] or 0
        if time_from is not None:
            found = begins[number]
            start = max(start, end if found is None else found)
        if time_to is not None and (stop := stops[number]) is not None:
            end = min(end, stop)
        start = max(start, query.offset_from or 0)
        end = end if query.offset_to is None else min(end, query.offset_to)
        ranges[number] = Bounds(start, max(start, end), time_from, time_to)
    return ranges
