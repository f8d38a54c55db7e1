"""AddOffsetsToTxn, key 25, versions 0 to 4.

Makes the offsets of a group part of a producer's transaction: the partition of `__consumer_offsets` that the group
lives on is added to it.
"""

from ottla.broker.coordination.coordinator import partition_for
from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.transaction_codes import known_to
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS, TopicPartition
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_SINCE = 2


async def handle(broker: Broker, call: Call, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    try:
        access.require(broker, call, Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id)
        access.require(broker, call, Operation.READ, Resource.GROUP, request.group_id)
        topic = await broker.controller.ensure_offsets_topic()
        partition = TopicPartition(CONSUMER_OFFSETS, partition_for(request.group_id, len(topic.partitions)))
        added = broker.transactions.add_partitions(
            request.transactional_id, request.producer_id, request.producer_epoch, [partition]
        )
        code = added if isinstance(added, ErrorCode) else await added
    except ApiError as error:
        code = error.code
    return AddOffsetsToTxnResponse(error_code=known_to(code, call.version, FENCED_SINCE))
