"""The APIs of the protocol by key, with the versions that Apache Kafka 4.3 defines, and one of Ottla's own."""

from enum import IntEnum
from importlib import import_module
from typing import NamedTuple

from ottla.protocol.schema import TopLevel

NEVER = 1 << 15


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    APPEND_MIRRORED = 20_000  # not Kafka's: docs/decisions/0025-standby-with-the-same-offsets.md


class ApiSpec(NamedTuple):
    key: ApiKey
    name: str
    min_version: int
    max_version: int
    flexible_from: int

    @property
    def request_class(self) -> type[TopLevel]:
        """Imported on first use: all of them together would cost start-up time."""
        return _message_class(self.key, f"{self.name}Request")

    @property
    def response_class(self) -> type[TopLevel]:
        return _message_class(self.key, f"{self.name}Response")


def _message_class(key: ApiKey, name: str) -> type[TopLevel]:
    found: type[TopLevel] = getattr(import_module(f"ottla.protocol.messages.{key.name.lower()}"), name)
    return found


_TABLE = (
    ApiSpec(ApiKey.PRODUCE, "Produce", 3, 13, 9),
    ApiSpec(ApiKey.FETCH, "Fetch", 4, 18, 12),
    ApiSpec(ApiKey.LIST_OFFSETS, "ListOffsets", 1, 11, 6),
    ApiSpec(ApiKey.METADATA, "Metadata", 0, 13, 9),
    ApiSpec(ApiKey.OFFSET_COMMIT, "OffsetCommit", 2, 10, 8),
    ApiSpec(ApiKey.OFFSET_FETCH, "OffsetFetch", 1, 10, 6),
    ApiSpec(ApiKey.FIND_COORDINATOR, "FindCoordinator", 0, 6, 3),
    ApiSpec(ApiKey.JOIN_GROUP, "JoinGroup", 0, 9, 6),
    ApiSpec(ApiKey.HEARTBEAT, "Heartbeat", 0, 4, 4),
    ApiSpec(ApiKey.LEAVE_GROUP, "LeaveGroup", 0, 5, 4),
    ApiSpec(ApiKey.SYNC_GROUP, "SyncGroup", 0, 5, 4),
    ApiSpec(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", 0, 6, 5),
    ApiSpec(ApiKey.LIST_GROUPS, "ListGroups", 0, 5, 3),
    ApiSpec(ApiKey.SASL_HANDSHAKE, "SaslHandshake", 0, 1, NEVER),
    ApiSpec(ApiKey.API_VERSIONS, "ApiVersions", 0, 4, 3),
    ApiSpec(ApiKey.CREATE_TOPICS, "CreateTopics", 2, 7, 5),
    ApiSpec(ApiKey.DELETE_TOPICS, "DeleteTopics", 1, 6, 4),
    ApiSpec(ApiKey.DELETE_RECORDS, "DeleteRecords", 0, 2, 2),
    ApiSpec(ApiKey.INIT_PRODUCER_ID, "InitProducerId", 0, 6, 2),
    ApiSpec(ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 2, 4, 4),
    ApiSpec(ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", 0, 5, 3),
    ApiSpec(ApiKey.ADD_OFFSETS_TO_TXN, "AddOffsetsToTxn", 0, 4, 3),
    ApiSpec(ApiKey.END_TXN, "EndTxn", 0, 5, 3),
    ApiSpec(ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkers", 1, 2, 1),
    ApiSpec(ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommit", 0, 5, 3),
    ApiSpec(ApiKey.DESCRIBE_ACLS, "DescribeAcls", 1, 3, 2),
    ApiSpec(ApiKey.CREATE_ACLS, "CreateAcls", 1, 3, 2),
    ApiSpec(ApiKey.DELETE_ACLS, "DeleteAcls", 1, 3, 2),
    ApiSpec(ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", 1, 4, 4),
    ApiSpec(ApiKey.ALTER_CONFIGS, "AlterConfigs", 0, 2, 2),
    ApiSpec(ApiKey.ALTER_REPLICA_LOG_DIRS, "AlterReplicaLogDirs", 1, 2, 2),
    ApiSpec(ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirs", 1, 5, 2),
    ApiSpec(ApiKey.SASL_AUTHENTICATE, "SaslAuthenticate", 0, 2, 2),
    ApiSpec(ApiKey.CREATE_PARTITIONS, "CreatePartitions", 0, 3, 2),
    ApiSpec(ApiKey.CREATE_DELEGATION_TOKEN, "CreateDelegationToken", 1, 3, 2),
    ApiSpec(ApiKey.RENEW_DELEGATION_TOKEN, "RenewDelegationToken", 1, 2, 2),
    ApiSpec(ApiKey.EXPIRE_DELEGATION_TOKEN, "ExpireDelegationToken", 1, 2, 2),
    ApiSpec(ApiKey.DESCRIBE_DELEGATION_TOKEN, "DescribeDelegationToken", 1, 3, 2),
    ApiSpec(ApiKey.DELETE_GROUPS, "DeleteGroups", 0, 2, 2),
    ApiSpec(ApiKey.ELECT_LEADERS, "ElectLeaders", 0, 2, 2),
    ApiSpec(ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", 0, 1, 1),
    ApiSpec(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "AlterPartitionReassignments", 0, 1, 0),
    ApiSpec(ApiKey.LIST_PARTITION_REASSIGNMENTS, "ListPartitionReassignments", 0, 0, 0),
    ApiSpec(ApiKey.OFFSET_DELETE, "OffsetDelete", 0, 0, NEVER),
    ApiSpec(ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", 0, 1, 1),
    ApiSpec(ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotas", 0, 1, 1),
    ApiSpec(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "DescribeUserScramCredentials", 0, 0, 0),
    ApiSpec(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "AlterUserScramCredentials", 0, 0, 0),
    ApiSpec(ApiKey.VOTE, "Vote", 0, 2, 0),
    ApiSpec(ApiKey.BEGIN_QUORUM_EPOCH, "BeginQuorumEpoch", 0, 1, 1),
    ApiSpec(ApiKey.END_QUORUM_EPOCH, "EndQuorumEpoch", 0, 1, 1),
    ApiSpec(ApiKey.DESCRIBE_QUORUM, "DescribeQuorum", 0, 2, 0),
    ApiSpec(ApiKey.ALTER_PARTITION, "AlterPartition", 2, 3, 2),
    ApiSpec(ApiKey.UPDATE_FEATURES, "UpdateFeatures", 0, 2, 0),
    ApiSpec(ApiKey.ENVELOPE, "Envelope", 0, 0, 0),
    ApiSpec(ApiKey.FETCH_SNAPSHOT, "FetchSnapshot", 0, 1, 0),
    ApiSpec(ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", 0, 2, 0),
    ApiSpec(ApiKey.DESCRIBE_PRODUCERS, "DescribeProducers", 0, 0, 0),
    ApiSpec(ApiKey.BROKER_REGISTRATION, "BrokerRegistration", 0, 4, 0),
    ApiSpec(ApiKey.BROKER_HEARTBEAT, "BrokerHeartbeat", 0, 2, 0),
    ApiSpec(ApiKey.UNREGISTER_BROKER, "UnregisterBroker", 0, 0, 0),
    ApiSpec(ApiKey.DESCRIBE_TRANSACTIONS, "DescribeTransactions", 0, 0, 0),
    ApiSpec(ApiKey.LIST_TRANSACTIONS, "ListTransactions", 0, 2, 0),
    ApiSpec(ApiKey.ALLOCATE_PRODUCER_IDS, "AllocateProducerIds", 0, 0, 0),
    ApiSpec(ApiKey.CONSUMER_GROUP_HEARTBEAT, "ConsumerGroupHeartbeat", 0, 1, 0),
    ApiSpec(ApiKey.CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe", 0, 1, 0),
    ApiSpec(ApiKey.CONTROLLER_REGISTRATION, "ControllerRegistration", 0, 0, 0),
    ApiSpec(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, "GetTelemetrySubscriptions", 0, 0, 0),
    ApiSpec(ApiKey.PUSH_TELEMETRY, "PushTelemetry", 0, 0, 0),
    ApiSpec(ApiKey.ASSIGN_REPLICAS_TO_DIRS, "AssignReplicasToDirs", 0, 0, 0),
    ApiSpec(ApiKey.LIST_CONFIG_RESOURCES, "ListConfigResources", 0, 1, 0),
    ApiSpec(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitions", 0, 0, 0),
    ApiSpec(ApiKey.SHARE_GROUP_HEARTBEAT, "ShareGroupHeartbeat", 1, 1, 1),
    ApiSpec(ApiKey.SHARE_GROUP_DESCRIBE, "ShareGroupDescribe", 1, 1, 1),
    ApiSpec(ApiKey.SHARE_FETCH, "ShareFetch", 1, 2, 1),
    ApiSpec(ApiKey.SHARE_ACKNOWLEDGE, "ShareAcknowledge", 1, 2, 1),
    ApiSpec(ApiKey.ADD_RAFT_VOTER, "AddRaftVoter", 0, 1, 0),
    ApiSpec(ApiKey.REMOVE_RAFT_VOTER, "RemoveRaftVoter", 0, 0, 0),
    ApiSpec(ApiKey.UPDATE_RAFT_VOTER, "UpdateRaftVoter", 0, 0, 0),
    ApiSpec(ApiKey.INITIALIZE_SHARE_GROUP_STATE, "InitializeShareGroupState", 0, 0, 0),
    ApiSpec(ApiKey.READ_SHARE_GROUP_STATE, "ReadShareGroupState", 0, 0, 0),
    ApiSpec(ApiKey.WRITE_SHARE_GROUP_STATE, "WriteShareGroupState", 0, 1, 0),
    ApiSpec(ApiKey.DELETE_SHARE_GROUP_STATE, "DeleteShareGroupState", 0, 0, 0),
    ApiSpec(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, "ReadShareGroupStateSummary", 0, 1, 0),
    ApiSpec(ApiKey.STREAMS_GROUP_HEARTBEAT, "StreamsGroupHeartbeat", 0, 0, 0),
    ApiSpec(ApiKey.STREAMS_GROUP_DESCRIBE, "StreamsGroupDescribe", 0, 0, 0),
    ApiSpec(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "DescribeShareGroupOffsets", 0, 1, 0),
    ApiSpec(ApiKey.ALTER_SHARE_GROUP_OFFSETS, "AlterShareGroupOffsets", 0, 0, 0),
    ApiSpec(ApiKey.DELETE_SHARE_GROUP_OFFSETS, "DeleteShareGroupOffsets", 0, 0, 0),
    ApiSpec(ApiKey.APPEND_MIRRORED, "AppendMirrored", 0, 0, 0),
)

OWN = frozenset({ApiKey.APPEND_MIRRORED})
"""Not Kafka's: only Ottla's own client is told of them, by ApiVersions; others might stumble over the key."""

API: dict[int, ApiSpec] = {spec.key: spec for spec in _TABLE}
REQUEST_FLEXIBLE_FROM: dict[int, int] = {spec.key: spec.flexible_from for spec in _TABLE}


def response_header_is_flexible(key: int, version: int) -> bool:
    """ApiVersions answers with the old header in every version: the client cannot know yet what the broker speaks."""
    return key != ApiKey.API_VERSIONS and version >= REQUEST_FLEXIBLE_FROM[key]
