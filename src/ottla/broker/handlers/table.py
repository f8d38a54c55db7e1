"""The one list of what is served: API, versions, handler, the rights it needs. ApiVersions tells clients exactly this.

A handler's module is imported when the broker starts to serve, not when this table is read.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from ottla.broker.handlers.context import Broker, Call, Response, ServedApi
from ottla.model.rights import GRANTABLE, Need, Operation, Resource, Right
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.schema import TopLevel


def _need(*rights: Right, when: str = "") -> Need:
    return Need(rights, when)


def _on(resource: Resource) -> Callable[[Operation], Right]:
    return lambda operation: Right(operation, resource)


_O = Operation
_topic, _group, _cluster = _on(Resource.TOPIC), _on(Resource.GROUP), _on(Resource.CLUSTER)
_transactional_id = _on(Resource.TRANSACTIONAL_ID)
_token, _user = _on(Resource.DELEGATION_TOKEN), _on(Resource.USER)

_FOR_ANYBODY: tuple[Need, ...] = ()
_AS_BROKER = _need(_cluster(_O.CLUSTER_ACTION), when="from another broker")
_DESCRIBE_TOPICS = _need(_topic(_O.DESCRIBE), when="each topic")
_READ_TOPICS = _need(_topic(_O.READ), when="each topic")
_READ_GROUP = _need(_group(_O.READ))
_DESCRIBE_GROUPS = _need(_group(_O.DESCRIBE), when="each group")
_WRITE_TRANSACTIONALLY = _need(_transactional_id(_O.WRITE))
_IN_A_TRANSACTION = _need(_transactional_id(_O.WRITE), when="in a transaction")
_CREATE_TOPICS = _need(_cluster(_O.CREATE), _topic(_O.CREATE), when="each topic that is created")
_DESCRIBE_CLUSTER = _need(_cluster(_O.DESCRIBE))
_ALTER_CLUSTER = _need(_cluster(_O.ALTER))

RIGHTS: dict[ApiKey, tuple[Need, ...]] = {
    ApiKey.PRODUCE: (_IN_A_TRANSACTION, _need(_topic(_O.WRITE), when="each topic")),
    ApiKey.FETCH: (_READ_TOPICS, _AS_BROKER),
    ApiKey.LIST_OFFSETS: (_DESCRIBE_TOPICS,),
    ApiKey.METADATA: (_DESCRIBE_TOPICS, _CREATE_TOPICS),
    ApiKey.OFFSET_COMMIT: (_READ_GROUP, _READ_TOPICS),
    ApiKey.OFFSET_FETCH: (_DESCRIBE_GROUPS, _DESCRIBE_TOPICS),
    ApiKey.FIND_COORDINATOR: (
        _need(_group(_O.DESCRIBE), when="each group"),
        _need(_transactional_id(_O.DESCRIBE), when="each transactional id"),
    ),
    ApiKey.JOIN_GROUP: (_READ_GROUP,),
    ApiKey.HEARTBEAT: (_READ_GROUP,),
    ApiKey.LEAVE_GROUP: (_READ_GROUP,),
    ApiKey.SYNC_GROUP: (_READ_GROUP,),
    ApiKey.DESCRIBE_GROUPS: (_DESCRIBE_GROUPS,),
    ApiKey.LIST_GROUPS: (_need(_cluster(_O.DESCRIBE), _group(_O.DESCRIBE), when="each group"),),
    ApiKey.SASL_HANDSHAKE: _FOR_ANYBODY,
    ApiKey.API_VERSIONS: _FOR_ANYBODY,
    ApiKey.CREATE_TOPICS: (_CREATE_TOPICS, _need(_topic(_O.DESCRIBE_CONFIGS), when="to be told the settings")),
    # Nobody can be given Delete on the cluster by itself, but whoever has "all" there has it.
    ApiKey.DELETE_TOPICS: (_need(_cluster(_O.DELETE), _topic(_O.DELETE), when="each topic"),),
    ApiKey.DELETE_RECORDS: (_need(_topic(_O.DELETE), when="each topic"),),
    ApiKey.INIT_PRODUCER_ID: (
        _IN_A_TRANSACTION,
        _need(_transactional_id(_O.TWO_PHASE_COMMIT), when="in a transaction that is prepared first"),
        _need(_cluster(_O.IDEMPOTENT_WRITE), _topic(_O.WRITE), when="without a transaction; Write on any topic"),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (_need(_topic(_O.DESCRIBE), _cluster(_O.CLUSTER_ACTION), when="each topic"),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        _need(_transactional_id(_O.WRITE), when="from a client"),
        _need(_topic(_O.WRITE), when="each topic, from a client"),
        _AS_BROKER,
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (_WRITE_TRANSACTIONALLY, _READ_GROUP),
    ApiKey.END_TXN: (_WRITE_TRANSACTIONALLY,),
    ApiKey.WRITE_TXN_MARKERS: (_need(_cluster(_O.ALTER), _cluster(_O.CLUSTER_ACTION)),),
    ApiKey.TXN_OFFSET_COMMIT: (_WRITE_TRANSACTIONALLY, _READ_GROUP, _READ_TOPICS),
    ApiKey.DESCRIBE_CONFIGS: (
        _need(_topic(_O.DESCRIBE_CONFIGS), when="each topic"),
        _need(_group(_O.DESCRIBE_CONFIGS), when="each group"),
        _need(_cluster(_O.DESCRIBE_CONFIGS), when="anything else"),
    ),
    ApiKey.ALTER_CONFIGS: (
        _need(_topic(_O.ALTER_CONFIGS), when="each topic"),
        _need(_group(_O.ALTER_CONFIGS), when="each group"),
        _need(_cluster(_O.ALTER_CONFIGS), when="anything else"),
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (_ALTER_CLUSTER,),
    ApiKey.DESCRIBE_LOG_DIRS: (_DESCRIBE_CLUSTER,),
    ApiKey.SASL_AUTHENTICATE: _FOR_ANYBODY,
    ApiKey.CREATE_PARTITIONS: (_need(_topic(_O.ALTER), when="each topic"),),
    ApiKey.DESCRIBE_ACLS: (_DESCRIBE_CLUSTER,),
    ApiKey.CREATE_ACLS: (_ALTER_CLUSTER,),
    ApiKey.DELETE_ACLS: (_ALTER_CLUSTER,),
    ApiKey.CREATE_DELEGATION_TOKEN: (_need(_user(_O.CREATE_TOKENS), when="for another user"),),
    ApiKey.RENEW_DELEGATION_TOKEN: _FOR_ANYBODY,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _FOR_ANYBODY,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (
        _need(_token(_O.DESCRIBE), _user(_O.DESCRIBE_TOKENS), when="each token of another user"),
    ),
    ApiKey.DELETE_GROUPS: (_need(_group(_O.DELETE), when="each group"),),
    ApiKey.ELECT_LEADERS: (_ALTER_CLUSTER,),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        _need(_topic(_O.ALTER_CONFIGS), when="each topic"),
        _need(_group(_O.ALTER_CONFIGS), when="each group"),
        _need(_cluster(_O.ALTER_CONFIGS), when="anything else"),
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (_ALTER_CLUSTER,),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (_DESCRIBE_CLUSTER,),
    ApiKey.OFFSET_DELETE: (_need(_group(_O.DELETE)), _READ_TOPICS),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (_need(_cluster(_O.DESCRIBE_CONFIGS)),),
    ApiKey.ALTER_CLIENT_QUOTAS: (_need(_cluster(_O.ALTER_CONFIGS)),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (_DESCRIBE_CLUSTER,),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (_ALTER_CLUSTER,),
    ApiKey.DESCRIBE_CLUSTER: _FOR_ANYBODY,
    ApiKey.DESCRIBE_PRODUCERS: (_READ_TOPICS,),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        _need(_transactional_id(_O.DESCRIBE), when="each transactional id"),
        _need(_topic(_O.DESCRIBE), when="each topic of a transaction"),
    ),
    ApiKey.LIST_TRANSACTIONS: (_need(_transactional_id(_O.DESCRIBE), when="each transactional id"),),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (_READ_GROUP, _DESCRIBE_TOPICS),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (_DESCRIBE_GROUPS, _DESCRIBE_TOPICS),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _FOR_ANYBODY,
    ApiKey.PUSH_TELEMETRY: _FOR_ANYBODY,
    ApiKey.LIST_CONFIG_RESOURCES: (_need(_cluster(_O.DESCRIBE_CONFIGS)),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (_DESCRIBE_TOPICS,),
    ApiKey.APPEND_MIRRORED: (_need(_cluster(_O.CLUSTER_ACTION)),),
}
"""What is served, and what a client must be allowed for it. What may be denied is left out of the answer or refused in
it; a request is refused as a whole only where the need is about all of it."""

SERVED = tuple(RIGHTS)


def operations_on(resource: Resource) -> frozenset[Operation]:
    """What can be done to a resource of this kind with the APIs that are served, and be allowed by name."""
    return GRANTABLE[resource] & {
        right.operation
        for needs in RIGHTS.values()
        for need in needs
        for right in need.any_of
        if right.resource is resource
    }


# A change waits for a store that is away for a moment, as ZooKeeper is while it elects a leader.
CHANGES_METADATA = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)

# Whoever administers a cluster through one broker and looks at once through another finds what was done.
ON_NEWEST_METADATA = CHANGES_METADATA | {
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.DESCRIBE_ACLS,
}

# Where Kafka 4.3 advertises something else than its schemas define. Version 6 of InitProducerId is not stable yet;
# Produce below 3 is advertised because librdkafka breaks on a higher minimum, and refused when used.
ADVERTISED = {ApiKey.PRODUCE: (0, 13), ApiKey.INIT_PRODUCER_ID: (0, 5)}


class Handler(NamedTuple):
    name: str
    min_version: int
    max_version: int
    flexible_from: int
    request_class: type[TopLevel]
    handle: Callable[..., Any]
    wants_newest: Callable[[Broker, Call, Any], bool] | None
    """Whether a request is answered from the newest metadata; else it is from what this broker happens to know."""
    refuse: Callable[..., Response] | None
    """Makes the answer to a request that is refused as a whole, where that has an error for each thing it is about."""
    changes_metadata: bool
    rights: tuple[Need, ...]
    came: list[int]
    """How many requests came, by version."""
    errors: dict[int, int]
    """How often its responses carried which error code."""


TELEMETRY = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})


def advertised(*, telemetry: bool = True) -> tuple[ServedApi, ...]:
    """Clients push their metrics to whoever says that they can be pushed."""
    return tuple(
        ServedApi(key, *ADVERTISED.get(key, (API[key].min_version, API[key].max_version)))
        for key in SERVED
        if telemetry or key not in TELEMETRY
    )


def load_handlers() -> dict[int, Handler]:
    """Import every handler; the keys are plain API keys."""
    handlers: dict[int, Handler] = {}
    for key in SERVED:
        spec = API[key]
        module = import_module(f"ottla.broker.handlers.{key.name.lower()}")
        wants_newest = _always if key in ON_NEWEST_METADATA else getattr(module, "wants_newest", None)
        most = ADVERTISED.get(key, (0, spec.max_version))[1]
        handlers[int(key)] = Handler(
            spec.name,
            spec.min_version,
            most,
            spec.flexible_from,
            spec.request_class,
            module.handle,
            wants_newest,
            getattr(module, "refuse", None),
            key in CHANGES_METADATA,
            RIGHTS[key],
            [0] * (most + 1),
            {},
        )
    return handlers


def _always(broker: Broker, call: Call, request: object) -> bool:
    return True
