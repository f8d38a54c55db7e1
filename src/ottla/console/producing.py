"""Writing a few records by hand, with acks=all: what a person types, or sends once more."""

import asyncio
import time
from collections.abc import Sequence

from ottla.client.cluster import PASSING, Cluster, raise_for
from ottla.client.errors import ClientError, ConnectionLost, RequestTimeout
from ottla.model.errors import ApiError
from ottla.model.names import TopicPartition
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.partitioner import partition_of
from ottla.protocol.records import NewRecord, encode_batch

ALL = -1
TIMEOUT_MS = 15_000
ATTEMPTS_MAX = 5
PAUSE_S = 0.2
_BY_NAME_VERSION_MAX = 12


class NotKnown(ClientError):
    """The connection broke before the answer came: the records may be there, or not."""


async def produce(cluster: Cluster, at: TopicPartition, records: Sequence[NewRecord]) -> int:
    """The offset of the first. It is tried again only where it is sure that nothing was written."""
    batch = bytes(encode_batch(records))
    request = ProduceRequest(
        acks=ALL,
        timeout_ms=TIMEOUT_MS,
        topic_data=[
            TopicProduceData(name=at.topic, partition_data=[PartitionProduceData(index=at.partition, records=batch)])
        ],
    )
    for attempt in range(ATTEMPTS_MAX):
        leader = await cluster.leader(at)
        try:
            response = await cluster.call(request, ProduceResponse, node=leader.node, max_version=_BY_NAME_VERSION_MAX)
            answer = response.responses[0].partition_responses[0]
            raise_for(answer.error_code, answer.error_message)
        except ApiError as error:
            if error.code not in PASSING or attempt == ATTEMPTS_MAX - 1:
                raise
            await asyncio.sleep(PAUSE_S)
        except (ConnectionLost, RequestTimeout) as error:
            raise NotKnown(
                f"the broker was lost before it answered; look whether the record is there ({error})"
            ) from None
        else:
            return answer.base_offset
    raise AssertionError("the last attempt returns or raises")


def partition_for(key: bytes | None, numbers: Sequence[int]) -> int:
    """Where a client would put it; without a key, one after the other by the clock."""
    if key is None:
        return numbers[time.time_ns() // 1_000_000 % len(numbers)]
    return numbers[partition_of(key, len(numbers))]
