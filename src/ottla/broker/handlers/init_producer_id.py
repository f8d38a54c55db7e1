"""InitProducerId, key 22, versions 0 to 5.

Gives producers their id and epoch. With a transactional id, the producer that had it before is fenced off and the
transaction it left open is aborted first. Missing: version 6 (two-phase commit), which Kafka does not offer either.
"""

from ottla.broker.coordination.transactions.events import Init
from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.transaction_codes import known_to
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NOTHING = -1
FENCED_SINCE = 4


async def handle(broker: Broker, call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    refusal = _not_allowed(broker, call, request)
    if refusal is not None:
        return _refused(refusal)
    if (request.producer_id == NOTHING) != (request.producer_epoch == NOTHING):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        # Without transactions an id and epoch from before are of no use: such a producer simply gets a new id.
        try:
            producer_id = await broker.controller.allocate_producer_id()
        except ApiError:
            # The metadata cannot be written now. Producers try again when they are told this, as Kafka tells them.
            return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    event = Init(request.transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch)
    try:
        step = await broker.transactions.init(event)
    except ApiError as error:
        return _refused(error.code)
    if step.error is not ErrorCode.NONE:
        return _refused(known_to(step.error, call.version, FENCED_SINCE))
    return InitProducerIdResponse(producer_id=step.producer_id, producer_epoch=step.producer_epoch)


def _not_allowed(broker: Broker, call: Call, request: InitProducerIdRequest) -> ErrorCode | None:
    name = request.transactional_id
    if name is None:
        # Whoever may write to any topic may do so idempotently: Kafka's producers do by default.
        if access.allowed(broker, call, Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, probe=True) or access.allowed_any(
            broker, call, Operation.WRITE, Resource.TOPIC
        ):
            return None
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if not access.allowed(broker, call, Operation.WRITE, Resource.TRANSACTIONAL_ID, name):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return None


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=NOTHING)
