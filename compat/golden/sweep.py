"""One request or more of every API that the broker serves, in every version that Kafka 4.3 knows."""

import struct
import uuid
from collections.abc import Callable, Iterator, Sequence

from benchmarks.wire import Connection, request_frame

from ottla.protocol.apis import API, ApiKey
from ottla.protocol.messages import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)
from ottla.protocol.records import Codec, NewRecord, encode_batch
from ottla.protocol.schema import TopLevel

Requests = Callable[[int], Sequence[TopLevel]]

TOPIC = "golden"
UNKNOWN_VERSION = 99
MISSING = "no-such-topic"
TIMESTAMP = 1_700_000_000_000
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
SPECIAL_SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
SUBSCRIPTION = struct.pack(">hih", 0, 1, len(TOPIC)) + TOPIC.encode() + struct.pack(">i", -1)


def sweep(port: int) -> None:
    """Send everything through the given port; a recorder behind it keeps the bytes."""
    with Connection(port) as connection:
        _send(connection, ApiKey.CREATE_TOPICS, 7, _new_topic(TOPIC, validate_only=False))
        topic_id = _wait_for_topic(connection)
        for key, requests in _stateless(topic_id):
            for version in _versions(key):
                for request in requests(version):
                    _send(connection, key, version, request)
        _ask_for_unknown_version(connection)
        for round_number in range(11):
            _group_life(connection, round_number, topic_id)


def _versions(key: ApiKey) -> range:
    last = API[key].max_version
    # Kafka keeps its newest InitProducerId to itself.
    return range(API[key].min_version, (last if key != ApiKey.INIT_PRODUCER_ID else 5) + 1)


def _send(connection: Connection, key: ApiKey, version: int, request: TopLevel) -> TopLevel:
    return connection.call(key, version, request, API[key].response_class)


def _ask_for_unknown_version(connection: Connection) -> None:
    """The one request that has to be answered in a version the client did not ask for."""
    request = api_versions.ApiVersionsRequest("golden", "1.0")
    frame = bytearray(request_frame(ApiKey.API_VERSIONS, 4, request))
    struct.pack_into(">h", frame, 6, UNKNOWN_VERSION)
    connection.exchange(bytes(frame))


def _wait_for_topic(connection: Connection) -> uuid.UUID:
    request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=TOPIC)])
    while True:
        answer = connection.call(ApiKey.METADATA, 12, request, metadata.MetadataResponse)
        if answer.topics[0].error_code == 0 and answer.topics[0].partitions[0].leader_id >= 0:
            return answer.topics[0].topic_id


def _new_topic(name: str, *, validate_only: bool) -> create_topics.CreateTopicsRequest:
    config = create_topics.CreatableTopicConfig(name="max.message.bytes", value="2000000")
    topic = create_topics.CreatableTopic(name=name, num_partitions=2, replication_factor=1, configs=[config])
    bad = create_topics.CreatableTopic(name="not/allowed", num_partitions=1, replication_factor=1)
    topics = [topic, bad] if validate_only else [topic]
    return create_topics.CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=validate_only)


def _stateless(topic_id: uuid.UUID) -> "Iterator[tuple[ApiKey, Requests]]":
    yield ApiKey.API_VERSIONS, lambda _: [api_versions.ApiVersionsRequest("golden", "1.0")]
    yield ApiKey.METADATA, _metadata
    yield ApiKey.DESCRIBE_CLUSTER, lambda _: [describe_cluster.DescribeClusterRequest()]
    yield ApiKey.PRODUCE, lambda version: _produce(version, topic_id)
    yield ApiKey.FETCH, lambda version: _fetch(version, topic_id)
    yield ApiKey.LIST_OFFSETS, _list_offsets
    yield ApiKey.OFFSET_FOR_LEADER_EPOCH, _leader_epochs
    yield ApiKey.FIND_COORDINATOR, _coordinators
    yield ApiKey.INIT_PRODUCER_ID, _producer_ids
    yield (
        ApiKey.CREATE_TOPICS,
        lambda _: [_new_topic("other", validate_only=True), _new_topic(TOPIC, validate_only=True)],
    )
    yield ApiKey.DELETE_TOPICS, _deletions
    yield ApiKey.CREATE_PARTITIONS, _more_partitions
    yield ApiKey.DELETE_RECORDS, _delete_records
    yield ApiKey.DESCRIBE_TOPIC_PARTITIONS, _topic_partitions
    yield ApiKey.DESCRIBE_CONFIGS, _describe_configs
    yield ApiKey.ALTER_CONFIGS, _alter_configs
    yield ApiKey.INCREMENTAL_ALTER_CONFIGS, _incremental
    yield ApiKey.LIST_CONFIG_RESOURCES, _config_resources
    yield ApiKey.DESCRIBE_LOG_DIRS, _log_dirs


def _metadata(version: int) -> Sequence[TopLevel]:
    asked = [metadata.MetadataRequestTopic(name=name) for name in (TOPIC, MISSING)]
    some = metadata.MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    if version >= 8:
        some.include_topic_authorized_operations = True
    every = metadata.MetadataRequest(topics=[] if version == 0 else None, allow_auto_topic_creation=version < 4)
    # Before version 4 naming a topic creates it.
    return [every, some] if version >= 4 else [every]


def _produce(version: int, topic_id: uuid.UUID) -> Sequence[TopLevel]:
    headers = (("trace", b"\x01\x02"), ("empty", None))
    records = [
        NewRecord(b"key", b"value", TIMESTAMP, headers),
        NewRecord(None, b"v2", TIMESTAMP + 5),
        NewRecord(b"k", None, TIMESTAMP),
    ]
    codec = Codec.ZSTD if version % 2 else Codec.NONE
    if version < 7:
        codec = Codec.GZIP if version % 2 else Codec.SNAPPY
    batch = bytes(encode_batch(records, codec=codec))
    partitions = [produce.PartitionProduceData(index, batch) for index in (0, 77)]
    topic = produce.TopicProduceData(partition_data=partitions)
    if version >= 13:
        topic.topic_id = topic_id
    else:
        topic.name = TOPIC
    return [produce.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])]


def _fetch(version: int, topic_id: uuid.UUID) -> Sequence[TopLevel]:
    requests = []
    for offset, index in ((0, 0), (0, 77), (5000, 0)):
        wanted = fetch.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=300)
        topic = fetch.FetchTopic(partitions=[wanted])
        if version >= 13:
            topic.topic_id = topic_id
        else:
            topic.topic = TOPIC
        request = fetch.FetchRequest(max_wait_ms=10, min_bytes=1, max_bytes=300, topics=[topic])
        if version >= 7:
            request.session_epoch = 0
        requests.append(request)
    return requests


def _list_offsets(version: int) -> Sequence[TopLevel]:
    stamps = [TIMESTAMP + 1, *(special for special, since in SPECIAL_SINCE.items() if version >= since)]
    requests = []
    for stamp in stamps:
        partition = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=stamp)
        topic = list_offsets.ListOffsetsTopic(name=TOPIC, partitions=[partition])
        requests.append(list_offsets.ListOffsetsRequest(replica_id=-1, topics=[topic]))
    return requests


def _leader_epochs(_version: int) -> Sequence[TopLevel]:
    partitions = [offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=epoch) for epoch in (0, 9)]
    topic = offset_for_leader_epoch.OffsetForLeaderTopic(topic=TOPIC, partitions=partitions)
    return [offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])]


def _coordinators(version: int) -> Sequence[TopLevel]:
    if version >= 4:
        return [find_coordinator.FindCoordinatorRequest(coordinator_keys=["g1", "g2"])]
    return [find_coordinator.FindCoordinatorRequest(key="g1")]


def _producer_ids(_version: int) -> Sequence[TopLevel]:
    return [init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)]


def _deletions(version: int) -> Sequence[TopLevel]:
    if version >= 6:
        topics = [
            delete_topics.DeleteTopicState(name=MISSING),
            delete_topics.DeleteTopicState(topic_id=uuid.UUID(int=7)),
        ]
        return [delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=1000)]
    return [delete_topics.DeleteTopicsRequest(topic_names=[MISSING], timeout_ms=1000)]


def _more_partitions(_version: int) -> Sequence[TopLevel]:
    assignment = [create_partitions.CreatePartitionsAssignment(broker_ids=[1])]
    topics = [
        create_partitions.CreatePartitionsTopic(name=TOPIC, count=3, assignments=assignment),
        create_partitions.CreatePartitionsTopic(name=MISSING, count=3, assignments=None),
    ]
    return [create_partitions.CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=True)]


def _delete_records(version: int) -> Sequence[TopLevel]:
    partitions = [delete_records.DeleteRecordsPartition(0, version), delete_records.DeleteRecordsPartition(77, 1)]
    return [delete_records.DeleteRecordsRequest([delete_records.DeleteRecordsTopic(TOPIC, partitions)], 1000)]


def _topic_partitions(_version: int) -> Sequence[TopLevel]:
    topics = [describe_topic_partitions.TopicRequest(name) for name in (TOPIC, MISSING)]
    return [
        describe_topic_partitions.DescribeTopicPartitionsRequest(topics=topics),
        describe_topic_partitions.DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=1),
    ]


def _describe_configs(version: int) -> Sequence[TopLevel]:
    keys = ["max.message.bytes", "cleanup.policy", "retention.ms"]
    resources = [
        describe_configs.DescribeConfigsResource(TOPIC_RESOURCE, TOPIC, keys),
        describe_configs.DescribeConfigsResource(BROKER_RESOURCE, "1", ["log.retention.hours", "num.io.threads"]),
        describe_configs.DescribeConfigsResource(TOPIC_RESOURCE, MISSING, None),
    ]
    request = describe_configs.DescribeConfigsRequest(resources=resources, include_synonyms=True)
    request.include_documentation = version >= 3
    return [request]


def _alter_configs(_version: int) -> Sequence[TopLevel]:
    configs = [alter_configs.AlterableConfig("retention.ms", "86400000")]
    bad = [alter_configs.AlterableConfig("retention.ms", "soon")]
    resources = [
        alter_configs.AlterConfigsResource(TOPIC_RESOURCE, TOPIC, configs),
        alter_configs.AlterConfigsResource(TOPIC_RESOURCE, MISSING, bad),
    ]
    return [alter_configs.AlterConfigsRequest(resources=resources, validate_only=True)]


def _incremental(_version: int) -> Sequence[TopLevel]:
    changes = [
        incremental_alter_configs.AlterableConfig("retention.ms", 0, "86400000"),
        incremental_alter_configs.AlterableConfig("max.message.bytes", 1, None),
    ]
    resource = incremental_alter_configs.AlterConfigsResource(TOPIC_RESOURCE, TOPIC, changes)
    return [incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)]


def _config_resources(version: int) -> Sequence[TopLevel]:
    types = [TOPIC_RESOURCE, BROKER_RESOURCE] if version >= 1 else []
    return [list_config_resources.ListConfigResourcesRequest(resource_types=types)]


def _log_dirs(_version: int) -> Sequence[TopLevel]:
    topics = [describe_log_dirs.DescribableLogDirTopic(topic=TOPIC, partitions=[0, 1])]
    return [describe_log_dirs.DescribeLogDirsRequest(topics=topics)]


def _group_life(connection: Connection, round_number: int, topic_id: uuid.UUID) -> None:
    """A member joins, leads, commits and leaves; each round one version further up for each API."""

    def version_of(key: ApiKey) -> int:
        return min(max(round_number, API[key].min_version), API[key].max_version)

    def send(key: ApiKey, request: TopLevel) -> TopLevel:
        return _send(connection, key, version_of(key), request)

    group = f"group-{round_number}"
    member, generation = _join(connection, version_of(ApiKey.JOIN_GROUP), group)
    assignment = sync_group.SyncGroupRequestAssignment(member, struct.pack(">hii", 0, 0, -1))
    sync = sync_group.SyncGroupRequest(
        group_id=group, generation_id=generation, member_id=member, assignments=[assignment]
    )
    if version_of(ApiKey.SYNC_GROUP) >= 5:
        sync.protocol_type, sync.protocol_name = "consumer", "range"
    send(ApiKey.SYNC_GROUP, sync)
    send(ApiKey.HEARTBEAT, heartbeat.HeartbeatRequest(group_id=group, generation_id=generation, member_id=member))
    send(ApiKey.HEARTBEAT, heartbeat.HeartbeatRequest(group_id=group, generation_id=generation + 7, member_id=member))
    send(ApiKey.OFFSET_COMMIT, _commit(version_of(ApiKey.OFFSET_COMMIT), group, member, generation, topic_id))
    for request in _committed(version_of(ApiKey.OFFSET_FETCH), group, topic_id):
        send(ApiKey.OFFSET_FETCH, request)
    describe = describe_groups.DescribeGroupsRequest(groups=[group, "no-such-group"])
    describe.include_authorized_operations = version_of(ApiKey.DESCRIBE_GROUPS) >= 3
    send(ApiKey.DESCRIBE_GROUPS, describe)
    if round_number == 0:
        # A listing grows with each group: once is enough for all versions.
        for version in _versions(ApiKey.LIST_GROUPS):
            listing = list_groups.ListGroupsRequest()
            listing.states_filter = ["Stable", "Empty"] if version >= 4 else []
            listing.types_filter = ["classic"] if version >= 5 else []
            _send(connection, ApiKey.LIST_GROUPS, version, listing)
    leave = leave_group.LeaveGroupRequest(group_id=group)
    if version_of(ApiKey.LEAVE_GROUP) >= 3:
        leave.members = [leave_group.MemberIdentity(member_id=member)]
    else:
        leave.member_id = member
    send(ApiKey.LEAVE_GROUP, leave)
    forget = offset_delete.OffsetDeleteRequestTopic(TOPIC, [offset_delete.OffsetDeleteRequestPartition(0)])
    send(ApiKey.OFFSET_DELETE, offset_delete.OffsetDeleteRequest(group_id=group, topics=[forget]))
    send(ApiKey.DELETE_GROUPS, delete_groups.DeleteGroupsRequest(groups_names=[group, "no-such-group"]))


def _join(connection: Connection, version: int, group: str) -> tuple[str, int]:
    member = ""
    while True:
        protocols = [join_group.JoinGroupRequestProtocol(name, SUBSCRIPTION) for name in ("range", "roundrobin")]
        request = join_group.JoinGroupRequest(
            group_id=group, session_timeout_ms=30_000, member_id=member, protocol_type="consumer", protocols=protocols
        )
        if version >= 1:
            request.rebalance_timeout_ms = 60_000
        if version >= 8:
            request.reason = "golden bytes"
        answer = connection.call(ApiKey.JOIN_GROUP, version, request, join_group.JoinGroupResponse)
        if answer.error_code == 0:
            return answer.member_id, answer.generation_id
        # The coordinator may still be loading, and from version 4 on the first answer only hands out the id.
        member = answer.member_id


def _commit(version: int, group: str, member: str, generation: int, topic_id: uuid.UUID) -> TopLevel:
    partitions = [
        offset_commit.OffsetCommitRequestPartition(partition_index=index, committed_offset=2, committed_metadata="note")
        for index in (0, 1)
    ]
    topic = offset_commit.OffsetCommitRequestTopic(partitions=partitions)
    if version >= 10:
        topic.topic_id = topic_id
    else:
        topic.name = TOPIC
    return offset_commit.OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=[topic]
    )


def _committed(version: int, group: str, topic_id: uuid.UUID) -> Sequence[TopLevel]:
    if version >= 8:
        wanted = offset_fetch.OffsetFetchRequestTopics(partition_indexes=[0, 1, 2])
        if version >= 10:
            wanted.topic_id = topic_id
        else:
            wanted.name = TOPIC
        each = [offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=topics) for topics in ([wanted], None)]
        return [offset_fetch.OffsetFetchRequest(groups=[one]) for one in each]
    topics = [offset_fetch.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0, 1, 2])]
    requests = [offset_fetch.OffsetFetchRequest(group_id=group, topics=topics)]
    if version >= 2:
        requests.append(offset_fetch.OffsetFetchRequest(group_id=group, topics=None))
    return requests
