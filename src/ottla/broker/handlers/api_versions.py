"""ApiVersions, key 18, versions 0 to 4.

Tells which APIs are served in which versions: exactly the table of handlers. A client too new for version 4 is
answered in version 0 by the dispatcher. Features: none is finalised, because transactions and the new group
protocols, which they switch on, are not served.
"""

import re

from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


def handle(broker: Broker, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
            for api in broker.served_apis
        ]
    )
