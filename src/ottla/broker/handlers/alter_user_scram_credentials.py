"""AlterUserScramCredentials, key 51, version 0.

Writes and deletes SCRAM credentials of users. A request carries a password that the client has salted; what is kept can
check a password and cannot be used as one. In force on every broker as soon as the metadata is there.
"""

from functools import partial

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.security.sasl.scram_changes import Deletion, ScramAlteration, Upsertion, altered, refusals
from ottla.cluster.image import user_entity
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


async def handle(
    broker: Broker, call: Call, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    access.require_cluster(broker, call, Operation.ALTER)
    alterations: list[ScramAlteration] = [Deletion(each.name, each.mechanism) for each in request.deletions]
    alterations += [
        Upsertion(each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password))
        for each in request.upsertions
    ]
    refused = refusals(alterations)
    wanted = {
        user_entity(alteration.user): partial(altered, alteration)
        for alteration in alterations
        if alteration.user not in refused
    }
    try:
        late = await broker.controller.alter_entities(wanted)
    except ApiError as error:
        late = dict.fromkeys(wanted, error)
    return AlterUserScramCredentialsResponse(
        results=[
            _result(user, refused.get(user) or late.get(user_entity(user)))
            for user in dict.fromkeys(alteration.user for alteration in alterations)
        ]
    )


def refuse(call: Call, request: AlterUserScramCredentialsRequest, error: ApiError) -> AlterUserScramCredentialsResponse:
    """Nothing is done for anybody, and each is told so."""
    users = dict.fromkeys([each.name for each in request.deletions] + [each.name for each in request.upsertions])
    return AlterUserScramCredentialsResponse(results=[_result(user, error) for user in users])


def _result(user: str, error: ApiError | None) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(
        user=user,
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
    )
