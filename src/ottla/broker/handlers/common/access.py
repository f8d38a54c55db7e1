"""What the caller of a request may do. Without an authorizer everybody may do everything, at the cost of one look.

    allowed(broker, call, Operation.ALTER, Resource.CLUSTER)             one question, True or False
    denied(broker, call, Operation.READ, Resource.TOPIC, names)          which of many names are refused
    require_cluster(broker, call, Operation.ALTER)                       ApiError 31 if it is refused
    operations(broker, call, Resource.GROUP, name)                       the bit field of authorized operations

A handler whose answer has an error for each thing that was asked for defines `refuse(call, request, error)`, which
makes that answer when `require_cluster` raises; without it the error stands at the top of the answer.
"""

from collections.abc import Iterable

from ottla.broker.handlers.context import Broker, Call
from ottla.model.acls import CLUSTER_NAME, OPERATION_WORDS
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import GRANTABLE, Operation, Resource
from ottla.protocol.apis import API, ApiKey

NOT_ASKED = -(2**31)
"""The bit field of a request that did not ask for it."""
NOTHING = 0
"""The bit field of whoever may not even describe the cluster."""
_EVERYTHING = {resource: sum(1 << operation for operation in granted) for resource, granted in GRANTABLE.items()}

REFUSALS = {
    Resource.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    Resource.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    Resource.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    Resource.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Resource.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    Resource.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""How a client is told that it may not use a resource of this kind."""


def allowed(
    broker: Broker,
    call: Call,
    operation: Operation,
    resource: Resource,
    name: str = CLUSTER_NAME,
    *,
    probe: bool = False,
) -> bool:
    """Whether the caller may do this. `probe`: it did not ask for it by name; that it may not is no news then."""
    authorizer = broker.authorizer
    return authorizer is None or authorizer.allows(call.session, call.api_key, operation, resource, name, probe=probe)


def denied(
    broker: Broker, call: Call, operation: Operation, resource: Resource, names: Iterable[str], *, probe: bool = False
) -> frozenset[str]:
    """Which of these the caller may not use so; each is asked for once, however often it is named."""
    authorizer = broker.authorizer
    if authorizer is None:
        return frozenset()
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return frozenset(
        name
        for name, count in counts.items()
        if not authorizer.allows(call.session, call.api_key, operation, resource, name, count=count, probe=probe)
    )


def allowed_any(broker: Broker, call: Call, operation: Operation, resource: Resource) -> bool:
    """Whether the caller may do this to some resource of this kind, whatever its name."""
    authorizer = broker.authorizer
    return authorizer is None or authorizer.allows_any(call.session, call.api_key, operation, resource)


def require(broker: Broker, call: Call, operation: Operation, resource: Resource, name: str) -> None:
    """ApiError with the code of this kind of resource unless the caller may do this."""
    if not allowed(broker, call, operation, resource, name):
        raise refusal(call, operation, resource, name)


def require_cluster(broker: Broker, call: Call, *any_of: Operation) -> None:
    """CLUSTER_AUTHORIZATION_FAILED unless the caller may do one of these to the cluster."""
    if not any(allowed(broker, call, operation, Resource.CLUSTER) for operation in any_of):
        raise refusal(call, any_of[0], Resource.CLUSTER)


def refusal(call: Call, operation: Operation, resource: Resource, name: str = CLUSTER_NAME) -> ApiError:
    return ApiError(
        REFUSALS[resource],
        f"{API[ApiKey(call.api_key)].name} is not authorized: {call.session.principal} at {call.session.host} may not "
        f"{OPERATION_WORDS[operation]} {resource.name.replace('_', ' ').lower()} {name}",
    )


def operations(broker: Broker, call: Call, resource: Resource, name: str = CLUSTER_NAME) -> int:
    """What the caller may do to a resource, as the bit field of the protocol."""
    authorizer = broker.authorizer
    if authorizer is None:
        return _EVERYTHING[resource]
    return authorizer.operations(call.session, call.api_key, resource, name)


def cluster_operations(broker: Broker, call: Call) -> int:
    """The same of the cluster, for Metadata and DescribeCluster: who may not describe it is told of nothing."""
    if not allowed(broker, call, Operation.DESCRIBE, Resource.CLUSTER):
        return NOTHING
    return operations(broker, call, Resource.CLUSTER)
