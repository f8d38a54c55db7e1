"""Quotas of users, client ids and addresses, over the wire."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client.cluster import Cluster, raise_for
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from ottla.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2

Names = Mapping[str, str | None]
"""An entity: names by type (user, client-id, ip); None is the default of a type."""


class AnyName:
    """In place of a name: entities that have the type, whatever their name."""


ANY_NAME = AnyName()


class SetQuotas(NamedTuple):
    names: Names
    quotas: Mapping[str, float]


async def describe_client_quotas(
    cluster: Cluster, wanted: Mapping[str, str | AnyName | None], *, strict: bool = True
) -> list[SetQuotas]:
    """The quotas of entities with these names by type; strict: and with no further types."""
    request = DescribeClientQuotasRequest(
        components=[_component(kind, name) for kind, name in wanted.items()], strict=strict
    )

    async def attempt() -> list[SetQuotas]:
        response = await cluster.call(request, DescribeClientQuotasResponse)
        raise_for(response.error_code, response.error_message)
        return [
            SetQuotas(
                {part.entity_type: part.entity_name for part in entry.entity},
                {value.key: value.value for value in entry.values},
            )
            for entry in response.entries or ()
        ]

    return await cluster.retrying(attempt)


async def alter_client_quotas(
    cluster: Cluster, names: Names, *, add: Mapping[str, float], delete: Sequence[str] = ()
) -> None:
    """Set some quotas of an entity and take others away; the rest stays as it is."""
    request = AlterClientQuotasRequest(
        entries=[
            RequestEntryData(
                entity=[RequestEntityData(entity_type=kind, entity_name=name) for kind, name in names.items()],
                ops=[*_additions(add.items()), *(OpData(key=key, remove=True) for key in delete)],
            )
        ]
    )

    async def attempt() -> None:
        response = await cluster.call(request, AlterClientQuotasResponse, node=await cluster.controller())
        for entry in response.entries:
            raise_for(entry.error_code, entry.error_message)

    await cluster.retrying(attempt)


def _additions(quotas: Iterable[tuple[str, float]]) -> Iterable[OpData]:
    return (OpData(key=key, value=value) for key, value in quotas)


def _component(kind: str, name: str | AnyName | None) -> ComponentData:
    if isinstance(name, AnyName):
        return ComponentData(entity_type=kind, match_type=_SPECIFIED, match=None)
    return ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
