"""DeleteTopics, key 20, versions 1 to 6.

Deletes topics by name or, from version 6, by id. An answered topic is gone for clients; its files leave the disk later.
"""

from uuid import UUID

from ottla.broker.controller.decisions import Deletion
from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.mutations import charge_for, throttle
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import NO_TOPIC_ID
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

FIRST_VERSION_THAT_IS_REFUSED = 5
"""When its quota is used up; older ones are done, and wait afterwards."""


async def handle(broker: Broker, call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    wanted: list[tuple[str | None, UUID]] = [(name, NO_TOPIC_ID) for name in request.topic_names]
    wanted += [(topic.name, topic.topic_id) for topic in request.topics]
    charge = charge_for(broker, call, refused_from=FIRST_VERSION_THAT_IS_REFUSED)
    try:
        if not broker.settings.delete_topic_enable:
            code = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
            raise ApiError(code, "deleting topics is switched off (delete.topic.enable)")
        refused = _refusals(broker, call, wanted)
        allowed = [each for each in wanted if each not in refused]
        deletions = [*await broker.controller.delete_topics(allowed, charge), *refused.values()]
    except ApiError as error:
        deletions = [Deletion(name, topic_id, None, error) for name, topic_id in dict.fromkeys(wanted)]
    throttle(call, charge)
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=deletion.name,
                topic_id=deletion.topic_id,
                error_code=deletion.refusal.code if deletion.refusal else ErrorCode.NONE,
                error_message=deletion.refusal.message if deletion.refusal else None,
            )
            for deletion in deletions
        ]
    )


def _refusals(
    broker: Broker, call: Call, wanted: list[tuple[str | None, UUID]]
) -> dict[tuple[str | None, UUID], Deletion]:
    """Those that the client may not delete. Of a topic that is hidden from it it is not told what it is called. One
    that it may describe and that does not exist is told to be unknown, whether it might be deleted or not, as in
    Kafka."""
    if access.allowed(broker, call, Operation.DELETE, Resource.CLUSTER, probe=True):
        return {}
    topics, known = broker.metadata.image.topics, broker.metadata.image.names_by_id
    names = {each: known.get(each[1]) if each[0] is None else each[0] for each in wanted}
    found = [name for name in names.values() if name is not None]
    hidden = access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, found)
    kept = access.denied(broker, call, Operation.DELETE, Resource.TOPIC, found)
    refusal = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    return {
        each: Deletion(each[0] or (None if name in hidden else name), each[1], None, refusal)
        for each, name in names.items()
        if name in hidden or (name in kept and name in topics)
    }
