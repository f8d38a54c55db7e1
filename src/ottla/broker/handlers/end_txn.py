"""EndTxn, key 26, versions 0 to 5.

Commits or aborts a transaction. Version 5 is transaction version 2: the answer has the producer's next epoch (or its
next id, when the epochs are used up), and a request in the epoch before is a retry.
"""

from ottla.broker.coordination.transactions.events import VERSION_WITH_EPOCH_BUMP, End
from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.transaction_codes import known_to
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

SECOND_TRANSACTION_VERSION_FROM = 5
FENCED_SINCE = 2


async def handle(broker: Broker, call: Call, request: EndTxnRequest) -> EndTxnResponse:
    version = VERSION_WITH_EPOCH_BUMP if call.version >= SECOND_TRANSACTION_VERSION_FROM else 0
    event = End(request.transactional_id, request.producer_id, request.producer_epoch, request.committed, version)
    try:
        access.require(broker, call, Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id)
        step = await broker.transactions.end(event)
    except ApiError as error:
        return EndTxnResponse(error_code=error.code)
    if step.error is not ErrorCode.NONE:
        return EndTxnResponse(error_code=known_to(step.error, call.version, FENCED_SINCE))
    return EndTxnResponse(producer_id=step.producer_id, producer_epoch=step.producer_epoch)
