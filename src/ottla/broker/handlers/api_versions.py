"""ApiVersions, key 18, versions 0 to 4.

Tells which APIs are served in which versions: exactly the table of handlers. A client too new for version 4 is
answered in version 0 by the dispatcher. Ottla's own APIs are told to its own client alone. Features follow from the
table: transaction version 2 where transactions are served, group version 1 where the new consumer groups are.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import OWN, ApiKey
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")

FEATURES_EPOCH = 1
"""Clients take up features that come with a higher epoch than they know; ours follow from the version that runs."""
TELLS_SOFTWARE_FROM = 3
OWN_CLIENT = "ottla"
"""What Ottla's client calls itself."""
KNOWS_LEVEL_ZERO_FROM = 4
"""Java clients of version 3 fail on a feature whose lowest level is 0."""


class Feature(NamedTuple):
    """A feature level that is in force as soon as the API that it needs is served."""

    name: str
    level: int
    needs: ApiKey


FEATURES = (
    Feature("group.version", 1, ApiKey.CONSUMER_GROUP_HEARTBEAT),
    Feature("transaction.version", 2, ApiKey.END_TXN),
)


def features_of(served: Collection[int]) -> list[Feature]:
    return [feature for feature in FEATURES if feature.needs in served]


def handle(broker: Broker, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.version >= TELLS_SOFTWARE_FROM and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if call.version >= TELLS_SOFTWARE_FROM:
        call.session.runs(request.client_software_name, request.client_software_version)
    call.session.asked_versions = True
    features = features_of({api.key for api in broker.served_apis})
    own_client = call.version >= TELLS_SOFTWARE_FROM and request.client_software_name == OWN_CLIENT
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
            for api in broker.served_apis
            if own_client or api.key not in OWN
        ],
        supported_features=[
            SupportedFeatureKey(name=feature.name, min_version=0, max_version=feature.level)
            for feature in features
            if call.version >= KNOWS_LEVEL_ZERO_FROM
        ],
        finalized_features_epoch=FEATURES_EPOCH,
        finalized_features=[
            FinalizedFeatureKey(name=feature.name, max_version_level=feature.level, min_version_level=feature.level)
            for feature in features
        ],
    )
