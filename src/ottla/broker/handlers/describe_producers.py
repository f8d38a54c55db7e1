"""DescribeProducers, key 61, version 0.

What each partition remembers of its producers, with the start of an open transaction: how hanging ones are found.
"""

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.replication.partition import Partition
from ottla.model.errors import ApiError
from ottla.model.names import check_topic_name
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(broker: Broker, call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    response = DescribeProducersResponse()
    for topic in request.topics:
        answers = [_describe(broker, call, topic.name, index) for index in topic.partition_indexes]
        response.topics.append(TopicResponse(name=topic.name, partitions=answers))
    return response


def _describe(broker: Broker, call: Call, topic: str, index: int) -> PartitionResponse:
    answer = PartitionResponse(partition_index=index)
    try:
        check_topic_name(topic)
        access.require(broker, call, Operation.READ, Resource.TOPIC, topic)
        answer.active_producers = _producers(broker.partitions.get((topic, index)))
    except ApiError as error:
        answer.error_code, answer.error_message = error.code, error.message
    return answer


def _producers(partition: Partition) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.current_txn_first_offset,
        )
        for producer in partition.log.producers.entries.values()
    ]
