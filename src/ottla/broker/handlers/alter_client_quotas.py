"""AlterClientQuotas, key 49, versions 0 to 1.

Sets and removes quotas of users, client ids, both together, and addresses; each entity by itself, and what cannot be is
answered with the reason. In force on every broker as soon as it hears of it. Other settings of the same entities, such
as credentials of users, stay as they are.
"""

import ipaddress
from collections.abc import Mapping, Sequence

from ottla.broker.controller.loop import AlterEntity
from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.quota_entities import FOLDERS, IP, entity_in
from ottla.broker.handlers.context import Broker, Call
from ottla.cluster.image import Entity
from ottla.config.client_quotas import CLIENT_QUOTAS, IP_QUOTAS, Quota, quota_problem, quota_text
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntryData,
    ResponseEntityData,
    ResponseEntryData,
)


async def handle(broker: Broker, call: Call, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    access.require_cluster(broker, call, Operation.ALTER_CONFIGS)
    wanted: dict[Entity, AlterEntity] = {}
    refused: dict[int, ApiError] = {}
    entities: dict[int, Entity] = {}
    for number, entry in enumerate(request.entries):
        try:
            entity = _entity(entry)
            if entity in wanted:
                raise _invalid(f"Ignoring duplicate entity {entity}")
            wanted[entity] = _alteration(IP_QUOTAS if entity[0][0] == FOLDERS[IP] else CLIENT_QUOTAS, entry.ops)
            entities[number] = entity
        except ApiError as refusal:
            refused[number] = refusal
    try:
        refusals = await broker.controller.alter_entities(wanted, validate_only=request.validate_only)
    except ApiError as error:
        refusals = dict.fromkeys(wanted, error)
    refused |= {number: refusals[entity] for number, entity in entities.items() if entity in refusals}
    return AlterClientQuotasResponse(
        entries=[_outcome(entry, refused.get(number)) for number, entry in enumerate(request.entries)]
    )


def refuse(call: Call, request: AlterClientQuotasRequest, error: ApiError) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(entries=[_outcome(entry, error) for entry in request.entries])


def _entity(entry: RequestEntryData) -> Entity:
    names: dict[str, str | None] = {}
    for part in entry.entity:
        if part.entity_type in names:
            raise _invalid(f"Invalid client quota entity, duplicate entity entry {part.entity_type}")
        if part.entity_type not in FOLDERS:
            raise _invalid(f"Unhandled client quota entity type: {part.entity_type}")
        if part.entity_name == "":
            raise _invalid(f"Empty {part.entity_type} not supported")
        names[part.entity_type] = part.entity_name
    if not names:
        raise _invalid("Invalid empty client quota entity")
    if IP in names:
        if len(names) > 1:
            raise _invalid("Invalid quota entity combination, IP entity should not be combined with User or ClientId")
        _check_address(names[IP])
    return entity_in(names)


def _check_address(address: str | None) -> None:
    try:
        if address is not None:
            ipaddress.ip_address(address)
    except ValueError:
        raise _invalid(f"{address} is not a valid IP; names of hosts are not looked up, give the address") from None


def _alteration(quotas: Mapping[str, Quota], ops: Sequence[OpData]) -> AlterEntity:
    """From the settings that an entity has to those that it is to have."""
    changes: dict[str, float | None] = {}
    for op in ops:
        if op.key in changes:
            raise _invalid(f"Duplicate quota key {op.key} not updating quota for this entity")
        problem = None if op.remove else quota_problem(quotas, op.key, op.value)
        if problem:
            raise _invalid(problem)
        changes[op.key] = None if op.remove else op.value

    def alter(now: Mapping[str, str]) -> Mapping[str, str]:
        kept = {key: text for key, text in now.items() if key not in changes or key not in quotas}
        return kept | {key: quota_text(quotas, key, value) for key, value in changes.items() if value is not None}

    return alter


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _outcome(entry: RequestEntryData, refusal: ApiError | None) -> ResponseEntryData:
    return ResponseEntryData(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
        entity=[
            ResponseEntityData(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity
        ],
    )
