"""InitProducerId, key 22, versions 0 to 5.

Gives idempotent producers their id. Transactions are not served: a request with a transactional id is refused with
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the one error that every client takes as final instead of trying for ever.
"""

from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NOTHING = -1


async def handle(broker: Broker, call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        code = (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if request.transactional_id else ErrorCode.INVALID_REQUEST
        )
        return InitProducerIdResponse(error_code=code, producer_epoch=NOTHING)
    if (request.producer_id == NOTHING) != (request.producer_epoch == NOTHING):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NOTHING)
    # Without transactions an id and epoch from before are of no use: such a producer simply gets a new id.
    return InitProducerIdResponse(producer_id=await broker.controller.allocate_producer_id(), producer_epoch=0)
