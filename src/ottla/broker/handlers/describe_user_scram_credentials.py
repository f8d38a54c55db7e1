"""DescribeUserScramCredentials, key 50, version 0.

Tells which users have SCRAM credentials, for which mechanisms and with how many iterations; never more than that.
"""

from collections import Counter
from collections.abc import Mapping

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.security.sasl.scram_credentials import MECHANISMS, read_credential
from ottla.cluster.image import ClusterImage, user_entity
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation
from ottla.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(
    broker: Broker, call: Call, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    access.require_cluster(broker, call, Operation.DESCRIBE)
    image = broker.metadata.image
    if not request.users:
        found = [_described(name, image) for name in sorted(_users(image))]
        return DescribeUserScramCredentialsResponse(
            error_message=None, results=[result for result in found if result.credential_infos]
        )
    times = Counter(user.name for user in request.users)
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[_described(name, image) if count == 1 else _twice(name) for name, count in times.items()],
    )


def refuse(
    call: Call, request: DescribeUserScramCredentialsRequest, error: ApiError
) -> DescribeUserScramCredentialsResponse:
    """For all of it, and once more for each user that was named; as in Kafka, without the name."""
    return DescribeUserScramCredentialsResponse(
        error_code=error.code,
        error_message=error.message,
        results=[
            DescribeUserScramCredentialsResult(error_code=error.code, error_message=error.message)
            for _ in request.users or ()
        ],
    )


def _users(image: ClusterImage) -> list[str]:
    return [name for ((kind, name), *rest) in image.entity_configs if kind == "users" and name is not None and not rest]


def _described(name: str, image: ClusterImage) -> DescribeUserScramCredentialsResult:
    infos = _infos(image.entity_configs.get(user_entity(name), {}))
    if not infos:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {name}",
        )
    return DescribeUserScramCredentialsResult(user=name, error_message=None, credential_infos=infos)


def _infos(configs: Mapping[str, str]) -> list[CredentialInfo]:
    infos = []
    for mechanism in MECHANISMS.values():
        if mechanism.name in configs:
            try:
                iterations = read_credential(configs[mechanism.name]).iterations
            except ValueError:
                continue  # whoever tries to log in with it is told in the log
            infos.append(CredentialInfo(mechanism=mechanism.number, iterations=iterations))
    return infos


def _twice(name: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=name,
        error_code=ErrorCode.DUPLICATE_RESOURCE,
        error_message=f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}",
    )
