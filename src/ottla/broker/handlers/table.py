"""The one list of what is served: API, versions, handler. ApiVersions tells clients exactly this.

A handler's module is imported when the broker starts to serve, not when this table is read.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from ottla.broker.handlers.context import Broker, Call, ServedApi
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.schema import TopLevel

SERVED = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.API_VERSIONS,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DELETE_RECORDS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_GROUPS,
    ApiKey.ELECT_LEADERS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.OFFSET_DELETE,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
)

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
    }
)

# Whoever administers a cluster through one broker and looks at once through another finds what was done.
ON_NEWEST_METADATA = CHANGES_METADATA | {
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.DESCRIBE_LOG_DIRS,
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
    changes_metadata: bool


def advertised() -> tuple[ServedApi, ...]:
    return tuple(ServedApi(key, *ADVERTISED.get(key, (API[key].min_version, API[key].max_version))) for key in SERVED)


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
            key in CHANGES_METADATA,
        )
    return handlers


def _always(broker: Broker, call: Call, request: object) -> bool:
    return True
