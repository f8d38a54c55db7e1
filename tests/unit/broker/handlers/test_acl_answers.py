"""What each API answers to those who may not: the codes of Kafka 4.3, for the parts that are refused and no others.

Each case is asked in every version. It begins with no rights at all and is given one after the other; behind each right
stands what is still refused.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest
from tests.unit.broker.handlers.acl_world import ADMIN, AclWorld, secured
from tests.unit.broker.handlers.partition_requests import batch

from ottla.broker.handlers.table import ADVERTISED
from ottla.model.acls import CLUSTER_NAME
from ottla.model.rights import Operation, Resource
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from ottla.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from ottla.protocol.messages.append_mirrored import AppendMirroredRequest, MirroredPartition, MirroredTopic
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.protocol.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from ottla.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.messages.sync_group import SyncGroupRequest
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ottla.protocol.schema import TopLevel

_O, _R = Operation, Resource
TOPIC_FAILED, GROUP_FAILED, CLUSTER_FAILED, NOT_ATTEMPTED, TRANSACTION_FAILED = 29, 30, 31, 55, 53
Grant = tuple[Operation, Resource, str]
Make = Callable[[AclWorld, int], TopLevel]


class Case(NamedTuple):
    name: str
    make: Make
    before: Sequence[int]
    """What is refused to who has no rights; the request names the topics a and b."""
    steps: Sequence[tuple[Grant, Sequence[int]]]
    versions: range | None = None

    @property
    def all_versions(self) -> range:
        if self.versions is not None:
            return self.versions
        key = next(key for key, spec in API.items() if spec.name == self.name.split(":")[0])
        spec = API[key]
        return range(max(spec.min_version, 0), ADVERTISED.get(ApiKey(key), (0, spec.max_version))[1] + 1)


def topic_id(world: AclWorld, name: str) -> "object":
    return world.harness.store.image.topics[name].topic_id


def produce(world: AclWorld, version: int, *, transactional: bool = False) -> ProduceRequest:
    records = batch(5 if transactional else -1, 0 if transactional else -1, epoch=0 if transactional else -1,
                    transactional=transactional)  # fmt: skip
    return ProduceRequest(
        transactional_id="x" if transactional else None,
        acks=1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=topic_id(world, name),  # type: ignore[arg-type]
                partition_data=[PartitionProduceData(index=0, records=bytearray(records))],
            )
            for name in "ab"
        ],
    )


def fetch(world: AclWorld, version: int, replica: int = -1) -> FetchRequest:
    return FetchRequest(
        replica_id=replica,
        replica_state=ReplicaState(replica_id=replica),
        max_bytes=1000,
        topics=[
            FetchTopic(
                topic=name,
                topic_id=topic_id(world, name),  # type: ignore[arg-type]
                partitions=[FetchPartition(partition=0, partition_max_bytes=100)],
            )
            for name in "ab"
        ],
    )


def offset_commit(world: AclWorld, version: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=topic_id(world, name),  # type: ignore[arg-type]
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
            )
            for name in "ab"
        ],
    )


def offset_fetch(world: AclWorld, version: int) -> OffsetFetchRequest:
    if version < 8:
        topics = [OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in "ab"]
        return OffsetFetchRequest(group_id="g", topics=topics)
    group = OffsetFetchRequestGroup(
        group_id="g",
        topics=[
            OffsetFetchRequestTopics(name=name, topic_id=topic_id(world, name), partition_indexes=[0])  # type: ignore[arg-type]
            for name in "ab"
        ],
    )
    return OffsetFetchRequest(groups=[group])


def find(key_type: int) -> Make:
    return lambda world, version: FindCoordinatorRequest(key="g", key_type=key_type, coordinator_keys=["g"])


def add_partitions(world: AclWorld, version: int) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in "ab"]
    if version < 4:
        return AddPartitionsToTxnRequest(v3_and_below_transactional_id="x", v3_and_below_topics=topics)
    return AddPartitionsToTxnRequest(transactions=[AddPartitionsToTxnTransaction(transactional_id="x", topics=topics)])


def txn_offset_commit(world: AclWorld, version: int) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        topics=[
            TxnOffsetCommitRequestTopic(name=name, partitions=[TxnOffsetCommitRequestPartition(partition_index=0)])
            for name in "ab"
        ],
    )


def write_markers(world: AclWorld, version: int) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic(name=name, partition_indexes=[0]) for name in "ab"]
    return WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=1, topics=topics)])


def metadata(world: AclWorld, version: int) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in "ab"], allow_auto_topic_creation=False)


def metadata_by_id(world: AclWorld, version: int) -> MetadataRequest:
    ids = [topic_id(world, name) for name in "ab"]
    return MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=each) for each in ids])  # type: ignore[arg-type]


def delete_topics(world: AclWorld, version: int) -> DeleteTopicsRequest:
    # They do not exist: who may delete them is told so, and they can be asked for again.
    if version < 6:
        return DeleteTopicsRequest(topic_names=["gone-a", "gone-b"], timeout_ms=1000)
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(name="gone-a"), DeleteTopicState(name="gone-b")], timeout_ms=1000
    )


def cluster(operation: Operation) -> Grant:
    return (operation, _R.CLUSTER, CLUSTER_NAME)


READ_GROUP: Grant = (_O.READ, _R.GROUP, "g")
DESCRIBE_GROUP: Grant = (_O.DESCRIBE, _R.GROUP, "g")
WRITE_TRANSACTION: Grant = (_O.WRITE, _R.TRANSACTIONAL_ID, "x")

CASES = [
    Case(
        "Produce", produce, [29, 29], [((_O.WRITE, _R.TOPIC, "a"), [29]), ((_O.WRITE, _R.TOPIC, "b"), [])], range(3, 14)
    ),
    Case(
        "Produce:transactional",
        lambda world, version: produce(world, version, transactional=True),
        [53, 53],
        [((_O.WRITE, _R.TOPIC, "a"), [53, 53]), (WRITE_TRANSACTION, [29])],
        range(3, 14),
    ),
    Case("Fetch", fetch, [29, 29], [((_O.READ, _R.TOPIC, "a"), [29]), ((_O.READ, _R.TOPIC, "*"), [])]),
    Case(
        "Fetch:of a replica",
        lambda world, version: fetch(world, version, replica=1),
        [29, 29],
        [((_O.READ, _R.TOPIC, "*"), [29, 29]), (cluster(_O.CLUSTER_ACTION), [])],
    ),
    Case(
        "ListOffsets",
        lambda world, version: ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(timestamp=-1)]) for name in "ab"],
        ),
        [29, 29],
        [((_O.READ, _R.TOPIC, "a"), [29]), ((_O.DESCRIBE, _R.TOPIC, "b"), [])],
    ),
    Case("Metadata", metadata, [29, 29], [((_O.DESCRIBE, _R.TOPIC, "a"), [29]), ((_O.ALTER, _R.TOPIC, "b"), [])]),
    Case("Metadata:by id", metadata_by_id, [29, 29], [((_O.WRITE, _R.TOPIC, "a"), [29])], range(12, 14)),
    *(
        Case(
            "Metadata:automatic creation",
            lambda world, version: MetadataRequest(topics=[MetadataRequestTopic(name=f"new{version}")]),
            [29],
            [((_O.DESCRIBE, _R.TOPIC, f"new{version}"), [29]), ((_O.CREATE, _R.TOPIC, f"new{version}"), [])],
            range(version, version + 1),
        )
        for version in range(4, 14)
    ),
    Case(
        "DescribeTopicPartitions",
        lambda world, version: DescribeTopicPartitionsRequest(topics=[DescribedTopic(name=name) for name in "ab"]),
        [29, 29],
        [((_O.DESCRIBE, _R.TOPIC, "a"), [29])],
    ),
    Case(
        "OffsetCommit",
        offset_commit,
        [30, 30],
        [((_O.READ, _R.TOPIC, "a"), [30, 30]), (READ_GROUP, [29]), ((_O.READ, _R.TOPIC, "b"), [])],
    ),
    Case("OffsetFetch", offset_fetch, [30, 30], [], range(1, 2)),
    Case(
        "OffsetFetch",
        offset_fetch,
        [30],
        [(DESCRIBE_GROUP, [29, 29]), ((_O.DESCRIBE, _R.TOPIC, "a"), [29]), ((_O.DESCRIBE, _R.TOPIC, "b"), [])],
        range(2, 11),
    ),
    Case(
        "OffsetDelete",
        lambda world, version: OffsetDeleteRequest(
            group_id="g",
            topics=[OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition()]) for name in "ab"],
        ),
        [30],
        [(READ_GROUP, [30])],  # and with Delete the group is found not to exist
    ),
    Case("FindCoordinator:group", find(0), [30], [(READ_GROUP, [])]),
    Case("FindCoordinator:transaction", find(1), [53], [((_O.WRITE, _R.TRANSACTIONAL_ID, "g"), [])], range(1, 7)),
    Case("JoinGroup", lambda world, version: JoinGroupRequest(group_id="g"), [30], [(READ_GROUP, [])]),
    Case(
        "SyncGroup",
        lambda world, version: SyncGroupRequest(group_id="g", protocol_type="consumer", protocol_name="range"),
        [30],
        [(READ_GROUP, [])],
    ),
    Case("Heartbeat", lambda world, version: HeartbeatRequest(group_id="g"), [30], [(READ_GROUP, [])]),
    Case("LeaveGroup", lambda world, version: LeaveGroupRequest(group_id="g"), [30], [(READ_GROUP, [])]),
    Case(
        "ConsumerGroupHeartbeat",
        lambda world, version: ConsumerGroupHeartbeatRequest(
            group_id="members",
            member_id="m" if version else "",
            subscribed_topic_names=["a", "b"],
            topic_partitions=[],
            rebalance_timeout_ms=1000,
        ),
        [30],
        [((_O.READ, _R.GROUP, "members"), [29]), ((_O.READ, _R.TOPIC, "a"), [29]), ((_O.DESCRIBE, _R.TOPIC, "b"), [])],
    ),
    Case(
        "DescribeGroups",
        lambda world, version: DescribeGroupsRequest(groups=["g", "h"]),
        [30, 30],
        [(READ_GROUP, [30])],
    ),
    Case(
        "ConsumerGroupDescribe",
        lambda world, version: ConsumerGroupDescribeRequest(group_ids=["g", "h"]),
        [30, 30],
        [(DESCRIBE_GROUP, [30])],
    ),
    Case(
        "DeleteGroups",
        lambda world, version: DeleteGroupsRequest(groups_names=["g", "h"]),
        [30, 30],
        [(READ_GROUP, [30, 30]), ((_O.DELETE, _R.GROUP, "g"), [30])],
    ),
    Case(
        "CreateTopics",
        lambda world, version: CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("n1", "n2")],
            validate_only=True,
            timeout_ms=1000,
        ),
        [29, 29],
        # Who may create but not describe the settings is told so beside them, from version 5 on.
        [((_O.CREATE, _R.TOPIC, "n1"), [29]), (cluster(_O.CREATE), [])],
        range(2, 5),
    ),
    Case(
        "CreateTopics:and what is told of their settings",
        lambda world, version: CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("n1", "n2")],
            validate_only=True,
            timeout_ms=1000,
        ),
        [29, 29],
        [
            ((_O.CREATE, _R.TOPIC, "n1"), [29, 29]),  # of n2, and of what n1's settings are
            (cluster(_O.CREATE), [29, 29]),
            ((_O.DESCRIBE_CONFIGS, _R.TOPIC, "n1"), [29]),
            ((_O.ALTER_CONFIGS, _R.TOPIC, "n2"), []),
        ],
        range(5, 8),
    ),
    Case(
        "DeleteTopics",
        delete_topics,
        [29, 29],
        [((_O.DESCRIBE, _R.TOPIC, "gone-a"), [29]), ((_O.DELETE, _R.TOPIC, "gone-b"), [])],
    ),
    Case(
        "DeleteRecords",
        lambda world, version: DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition()]) for name in "ab"],
            timeout_ms=100,
        ),
        [29, 29],
        [((_O.WRITE, _R.TOPIC, "a"), [29, 29]), ((_O.DELETE, _R.TOPIC, "a"), [29])],
    ),
    Case(
        "CreatePartitions",
        lambda world, version: CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=2, assignments=None) for name in "ab"],
            validate_only=True,
            timeout_ms=100,
        ),
        [29, 29],
        [((_O.ALTER, _R.TOPIC, "a"), [29])],
    ),
    Case(
        "DescribeConfigs",
        lambda world, version: DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
                for kind, name in ((2, "a"), (2, "b"), (4, "1"), (32, "g"))
            ]
        ),
        [29, 29, 30, 31],
        [
            ((_O.DESCRIBE_CONFIGS, _R.TOPIC, "a"), [29, 30, 31]),
            ((_O.ALTER_CONFIGS, _R.GROUP, "g"), [29, 31]),
            (cluster(_O.DESCRIBE_CONFIGS), [29]),
        ],
    ),
    Case(
        "AlterConfigs",
        lambda world, version: AlterConfigsRequest(
            resources=[
                AlterConfigsResource(resource_type=kind, resource_name=name)
                for kind, name in ((2, "a"), (2, "b"), (4, ""), (32, "g"))
            ],
            validate_only=True,
        ),
        [29, 29, 30, 31],
        [
            ((_O.DESCRIBE_CONFIGS, _R.TOPIC, "a"), [29, 29, 30, 31]),
            ((_O.ALTER_CONFIGS, _R.TOPIC, "a"), [29, 30, 31]),
            ((_O.ALTER_CONFIGS, _R.GROUP, "g"), [29, 31]),
            (cluster(_O.ALTER_CONFIGS), [29]),
        ],
    ),
    Case(
        "IncrementalAlterConfigs",
        lambda world, version: IncrementalAlterConfigsRequest(
            resources=[
                IncrementalResource(resource_type=kind, resource_name=name)
                for kind, name in ((2, "a"), (2, "b"), (4, ""), (32, "g"))
            ],
            validate_only=True,
        ),
        [29, 29, 30, 31],
        [((_O.ALTER_CONFIGS, _R.TOPIC, "b"), [29, 30, 31]), (cluster(_O.ALTER_CONFIGS), [29, 30])],
    ),
    Case(
        "ListConfigResources",
        lambda world, version: ListConfigResourcesRequest(),
        [31],
        [(cluster(_O.DESCRIBE), [31]), (cluster(_O.DESCRIBE_CONFIGS), [])],
    ),
    Case(
        "DescribeClientQuotas",
        lambda world, version: DescribeClientQuotasRequest(),
        [31],
        [(cluster(_O.ALTER), [31]), (cluster(_O.DESCRIBE_CONFIGS), [])],
    ),
    Case(
        "AlterClientQuotas",
        lambda world, version: AlterClientQuotasRequest(
            entries=[
                RequestEntryData(
                    entity=[RequestEntityData(entity_type="user", entity_name=name)],
                    ops=[OpData(key="producer_byte_rate", value=1e9)],
                )
                for name in ("alice", "bob")
            ]
        ),
        [31, 31],
        [(cluster(_O.ALTER), [31, 31]), (cluster(_O.ALTER_CONFIGS), [])],
    ),
    Case(
        "InitProducerId:in a transaction",
        lambda world, version: InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000),
        [53],
        [((_O.DESCRIBE, _R.TRANSACTIONAL_ID, "x"), [53]), (WRITE_TRANSACTION, [])],
    ),
    Case(
        "InitProducerId:idempotent",
        lambda world, version: InitProducerIdRequest(transactional_id=None),
        [31],
        [((_O.READ, _R.TOPIC, "a"), [31]), ((_O.WRITE, _R.TOPIC, "whatever"), [])],
    ),
    Case(
        "InitProducerId:idempotent by its own right",
        lambda world, version: InitProducerIdRequest(transactional_id=None),
        [31],
        [(cluster(_O.IDEMPOTENT_WRITE), [])],
    ),
    Case(
        "AddPartitionsToTxn",
        add_partitions,
        [53, 53],
        [(WRITE_TRANSACTION, [29, 29]), ((_O.WRITE, _R.TOPIC, "a"), [29, 55]), ((_O.WRITE, _R.TOPIC, "b"), [])],
        range(4),
    ),
    Case("AddPartitionsToTxn:of a broker", add_partitions, [31], [(cluster(_O.CLUSTER_ACTION), [])], range(4, 6)),
    Case(
        "AddOffsetsToTxn",
        lambda world, version: AddOffsetsToTxnRequest(transactional_id="x", group_id="g"),
        [53],
        [(WRITE_TRANSACTION, [30]), (READ_GROUP, [])],
    ),
    Case(
        "TxnOffsetCommit",
        txn_offset_commit,
        [53, 53],
        [(WRITE_TRANSACTION, [30, 30]), (READ_GROUP, [29, 29]), ((_O.READ, _R.TOPIC, "b"), [29])],
    ),
    Case("EndTxn", lambda world, version: EndTxnRequest(transactional_id="x"), [53], [(WRITE_TRANSACTION, [])]),
    Case(
        "AppendMirrored",
        lambda world, version: AppendMirroredRequest(
            1, [MirroredTopic(name, "x", [MirroredPartition()]) for name in "ab"]
        ),
        [31, 31],
        [(cluster(_O.ALTER), [31, 31]), (cluster(_O.CLUSTER_ACTION), [])],
    ),
    Case(
        "WriteTxnMarkers",
        write_markers,
        [31, 31],
        [(cluster(_O.DESCRIBE), [31, 31]), (cluster(_O.CLUSTER_ACTION), [])],
    ),
    Case("WriteTxnMarkers:by an administrator", write_markers, [31, 31], [(cluster(_O.ALTER), [])]),
    Case(
        "OffsetForLeaderEpoch",
        lambda world, version: OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(topic=name, partitions=[OffsetForLeaderPartition()]) for name in "ab"]
        ),
        [29, 29],
        [((_O.DESCRIBE, _R.TOPIC, "a"), [29]), (cluster(_O.CLUSTER_ACTION), [])],
    ),
    Case(
        "DescribeProducers",
        lambda world, version: DescribeProducersRequest(
            topics=[TopicRequest(name=name, partition_indexes=[0]) for name in "ab"]
        ),
        [29, 29],
        [((_O.DESCRIBE, _R.TOPIC, "a"), [29, 29]), ((_O.READ, _R.TOPIC, "a"), [29])],
    ),
    Case(
        "DescribeTransactions",
        lambda world, version: DescribeTransactionsRequest(transactional_ids=["x", "y"]),
        [53, 53],
        [(WRITE_TRANSACTION, [53])],
    ),
    Case(
        "DescribeAcls",
        lambda world, version: DescribeAclsRequest(1, None, 1, None, None, 1, 1),
        [31],
        [(cluster(_O.DESCRIBE_CONFIGS), [31]), (cluster(_O.DESCRIBE), [])],
    ),
    Case(
        "CreateAcls",
        lambda world, version: CreateAclsRequest(creations=[AclCreation(2, "t", 3, "User:b", "*", 3, 3)] * 2),
        [31, 31],
        [(cluster(_O.DESCRIBE), [31, 31]), (cluster(_O.ALTER), [])],
    ),
    Case(
        "DeleteAcls",
        lambda world, version: DeleteAclsRequest(filters=[DeleteAclsFilter(2, "none", 3, None, None, 1, 1)] * 2),
        [31, 31],
        [(cluster(_O.ALTER), [])],
    ),
    Case(
        "ElectLeaders",
        lambda world, version: ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="a", partitions=[0])]),
        [31, 31],
        [(cluster(_O.ALTER), [])],
        range(1, 3),
    ),
    Case(
        "ElectLeaders:of old",
        lambda world, version: ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="a", partitions=[0])]),
        [31],
        [(cluster(_O.ALTER), [])],
        range(1),
    ),
    Case(
        "AlterPartitionReassignments",
        lambda world, version: AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name="a", partitions=[ReassignablePartition(partition_index=0, replicas=None)])]
        ),
        [31, 31],
        [(cluster(_O.ALTER), [])],
    ),
    Case(
        "ListPartitionReassignments",
        lambda world, version: ListPartitionReassignmentsRequest(
            topics=[ListPartitionReassignmentsTopics(name="a", partition_indexes=[0])]
        ),
        [31],
        [(cluster(_O.ALTER_CONFIGS), [31]), (cluster(_O.DESCRIBE), [])],
    ),
    Case(
        "AlterReplicaLogDirs",
        lambda world, version: AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path="/nowhere", topics=[AlterReplicaLogDirTopic(name="a", partitions=[0, 1])])]
        ),
        [31, 31],
        [(cluster(_O.ALTER), [])],
    ),
    Case(
        "AlterUserScramCredentials",
        lambda world, version: AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="a", mechanism=1), ScramCredentialDeletion(name="b", mechanism=2)]
        ),
        [31, 31],
        [(cluster(_O.ALTER), [])],
    ),
    Case(
        "DescribeUserScramCredentials",
        lambda world, version: DescribeUserScramCredentialsRequest(users=None),
        [31],
        [(cluster(_O.DESCRIBE), [])],
    ),
    Case(
        "DescribeUserScramCredentials:of some",
        lambda world, version: DescribeUserScramCredentialsRequest(users=[UserName("a"), UserName("b")]),
        [31, 31, 31],
        [(cluster(_O.DESCRIBE), [])],
    ),
    Case(
        "DescribeLogDirs",
        lambda world, version: DescribeLogDirsRequest(topics=None),
        [31],
        [(cluster(_O.ALTER), [])],  # who may alter may describe
        range(3, 6),
    ),
    Case("DescribeCluster", lambda world, version: DescribeClusterRequest(), [], []),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AclWorld]:
    with secured(tmp_path_factory.mktemp("broker")) as world:
        world.create("a", "b")
        for kind in (0, 1):  # the topics of the coordinators come with the first question
            assert world.ask(FindCoordinatorRequest(key="g", key_type=kind), 1, ADMIN).error_code == 0
        yield world


@pytest.mark.parametrize("case", CASES, ids=[f"{case.name} v{case.all_versions.start}" for case in CASES])
def test_what_is_refused_is_refused_as_in_kafka(case: Case, world: AclWorld) -> None:
    for version in case.all_versions:
        world.withdraw_all()
        assert world.codes(case.make(world, version), version) == list(case.before), version
        for grant, left in case.steps:
            world.grant(*grant)
            assert world.codes(case.make(world, version), version) == list(left), (version, grant)
