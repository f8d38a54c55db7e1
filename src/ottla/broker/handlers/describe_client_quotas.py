"""DescribeClientQuotas, key 48, versions 0 to 1.

The quotas that are set, of all entities that the filter lets through. A part of it names a type of entity with an exact
name, with the default, or whatever it is called; a strict one lets no entity through that has further types.
"""

from collections.abc import Mapping, Sequence

from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.quota_entities import FOLDERS, IP, names_of
from ottla.broker.handlers.context import Broker, Call
from ottla.config.client_quotas import read_quotas
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation
from ottla.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

EXACT, DEFAULT, SPECIFIED = 0, 1, 2


def handle(broker: Broker, call: Call, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    access.require_cluster(broker, call, Operation.DESCRIBE_CONFIGS)
    try:
        named, given = _filter(request.components)
    except ApiError as error:
        return refuse(call, request, error)
    entries = []
    for entity, configs in broker.metadata.image.entity_configs.items():
        quotas, names = read_quotas(configs), names_of(entity)
        if quotas and _lets_through(names, named, given, strict=request.strict):
            entries.append(_entry(names, quotas))
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


def refuse(call: Call, request: DescribeClientQuotasRequest, error: ApiError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)


def _filter(components: Sequence[ComponentData]) -> tuple[dict[str, str | None], set[str]]:
    """Types whose name has to be this one (None: the default), and types that there only have to be."""
    named: dict[str, str | None] = {}
    given: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in named or kind in given:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in FOLDERS:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type not in (EXACT, DEFAULT, SPECIFIED):
            raise _invalid(f"Unknown match type {component.match_type}")
        if component.match_type == EXACT and component.match is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if component.match_type != EXACT and component.match is not None:
            word = "MATCH_TYPE_DEFAULT" if component.match_type == DEFAULT else "MATCH_TYPE_SPECIFIED"
            raise _invalid(f"Request specified {word}, but also specified a match string.")
        if component.match_type == SPECIFIED:
            given.add(kind)
        else:
            named[kind] = component.match
    if IP in (*named, *given) and len(components) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component."
        )
    return named, given


def _lets_through(
    names: Mapping[str, str | None], named: Mapping[str, str | None], given: set[str], *, strict: bool
) -> bool:
    if strict and len(names) != len(named) + len(given):
        return False
    return all(kind in names and names[kind] == name for kind, name in named.items()) and given <= names.keys()


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _entry(names: Mapping[str, str | None], quotas: Mapping[str, float]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()],
        values=[ValueData(key=key, value=value) for key, value in quotas.items()],
    )
