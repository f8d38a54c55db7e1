"""DeleteTopics, key 20, versions 1 to 6.

Deletes topics by name or, from version 6, by id. An answered topic is gone for clients; its files leave the disk later.
"""

from uuid import UUID

from ottla.broker.controller.decisions import Deletion
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import NO_TOPIC_ID
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse


async def handle(broker: Broker, call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    wanted: list[tuple[str | None, UUID]] = [(name, NO_TOPIC_ID) for name in request.topic_names]
    wanted += [(topic.name, topic.topic_id) for topic in request.topics]
    try:
        if not broker.settings.delete_topic_enable:
            code = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
            raise ApiError(code, "deleting topics is switched off (delete.topic.enable)")
        deletions = await broker.controller.delete_topics(wanted)
    except ApiError as error:
        deletions = [Deletion(name, topic_id, None, error) for name, topic_id in dict.fromkeys(wanted)]
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
