"""The APIs of consumer groups and of offsets in transactions of a running broker, in every version that is served."""

from typing import Any

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.names import NO_TOPIC_ID
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ottla.testing.running import RunningBroker

from .test_group_apis import Client, run


async def enter(client: Client, version: int, **details: Any) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id=client.group, rebalance_timeout_ms=60_000, topic_partitions=[], **details
    )
    return await client.call(request, ConsumerGroupHeartbeatResponse, version)


@pytest.mark.parametrize("version", range(2))
def test_consumer_group_heartbeat(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        name = "me" if version >= 1 else ""
        joined = await enter(client, version, member_id=name, subscribed_topic_names=[client.topic])
        assert (joined.error_code, joined.member_epoch) == (0, 1)
        assert joined.heartbeat_interval_ms > 0
        assert joined.assignment is not None
        (topic,) = joined.assignment.topic_partitions
        assert (topic.topic_id, topic.partitions) == (client.topic_id, [0, 1])
        assert joined.member_id
        quiet = ConsumerGroupHeartbeatRequest(
            group_id=client.group,
            member_id=joined.member_id,
            member_epoch=1,
            topic_partitions=[RequestTopicPartitions(topic_id=client.topic_id, partitions=[0, 1])],
        )
        answer = await client.call(quiet, ConsumerGroupHeartbeatResponse, version)
        assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 1, None)
        quiet.member_epoch = 7
        fenced = await client.call(quiet, ConsumerGroupHeartbeatResponse, version)
        assert fenced.error_code == ErrorCode.FENCED_MEMBER_EPOCH
        assert fenced.error_message
        quiet.member_epoch = -1
        left = await client.call(quiet, ConsumerGroupHeartbeatResponse, version)
        assert (left.error_code, left.member_epoch) == (0, -1)

    run(ottla_broker, scenario)


def test_patterns_in_heartbeats(ottla_broker: RunningBroker) -> None:
    async def scenario(client: Client) -> None:
        refused = await enter(client, 1, member_id="me", subscribed_topic_regex="(")
        assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        joined = await enter(client, 1, member_id="me", subscribed_topic_regex=f"{client.topic[:-1]}.")
        assert joined.assignment is not None
        assert [topic.topic_id for topic in joined.assignment.topic_partitions] == [client.topic_id]

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(2))
def test_consumer_group_describe(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        await enter(client, 1, member_id="me", subscribed_topic_names=[client.topic], instance_id="one")
        consumer, client.group = client.group, f"{client.group}-classic"
        await client.stable()
        request = ConsumerGroupDescribeRequest(
            group_ids=[consumer, client.group, "nobody"], include_authorized_operations=True
        )
        found, classic, missing = (await client.call(request, ConsumerGroupDescribeResponse, version)).groups
        assert (found.group_state, found.group_epoch, found.assignment_epoch, found.assignor_name) == (
            "Stable", 1, 1, "uniform",
        )  # fmt: skip
        assert found.authorized_operations > 0
        (member,) = found.members
        assert (member.member_id, member.instance_id, member.member_epoch) == ("me", "one", 1)
        assert (member.client_id, member.client_host) == ("tester", "/127.0.0.1")
        assert member.subscribed_topic_names == [client.topic]
        assert member.member_type == (1 if version >= 1 else -1)
        for assignment in (member.assignment, member.target_assignment):
            (topic,) = assignment.topic_partitions
            assert (topic.topic_name, topic.partitions) == (client.topic, [0, 1])
        assert (classic.error_code, missing.error_code) == (ErrorCode.GROUP_ID_NOT_FOUND,) * 2
        assert classic.error_message == f"Group {client.group} is not a consumer group."
        assert missing.error_message == "Group nobody not found."
        (other,) = (await client.call(DescribeGroupsRequest(groups=[consumer]), DescribeGroupsResponse, 6)).groups
        assert (other.error_code, other.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", [9, 10])
def test_members_fetch_offsets_with_their_epoch(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        await enter(client, 1, member_id="me", subscribed_topic_names=[client.topic])

        async def fetch(member_id: str | None, epoch: int) -> int:
            asked = OffsetFetchRequestGroup(group_id=client.group, member_id=member_id, member_epoch=epoch, topics=None)
            answer = await client.call(OffsetFetchRequest(groups=[asked]), OffsetFetchResponse, version)
            return answer.groups[0].error_code

        assert await fetch("me", 1) == ErrorCode.NONE
        assert await fetch(None, -1) == ErrorCode.NONE
        assert await fetch("me", 2) == ErrorCode.STALE_MEMBER_EPOCH
        assert await fetch("you", 1) == ErrorCode.UNKNOWN_MEMBER_ID

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("committed", [True, False])
def test_txn_offset_commit(ottla_broker: RunningBroker, version: int, committed: bool) -> None:
    async def scenario(client: Client) -> None:
        name = f"{client.group}-transactions"
        found = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
        assert (await client.call(found, FindCoordinatorResponse)).coordinators[0].error_code == 0
        producer = await client.call(
            InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=30_000), InitProducerIdResponse
        )
        assert producer.error_code == 0
        request = TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=client.group,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=client.topic,
                    partitions=[TxnOffsetCommitRequestPartition(partition_index=p, committed_offset=7) for p in (0, 9)],
                )
            ],
        )
        if version < 5:
            early = await client.call(request, TxnOffsetCommitResponse, version)
            assert early.topics[0].partitions[0].error_code == (
                ErrorCode.TRANSACTION_ABORTABLE if version >= 4 else ErrorCode.INVALID_TXN_STATE
            )
            added = AddOffsetsToTxnRequest(
                transactional_id=name,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                group_id=client.group,
            )
            assert (await client.call(added, AddOffsetsToTxnResponse, 3)).error_code == 0
        answer = await client.call(request, TxnOffsetCommitResponse, version)
        assert [partition.error_code for partition in answer.topics[0].partitions] == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert await fetched(client, require_stable=False) == (-1, ErrorCode.NONE)
        assert await fetched(client, require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        end = EndTxnRequest(
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=committed,
        )
        assert (await client.call(end, EndTxnResponse, 5 if version == 5 else 4)).error_code == 0
        while (state := await fetched(client, require_stable=True))[1] == ErrorCode.UNSTABLE_OFFSET_COMMIT:
            pass
        assert state == (7 if committed else -1, ErrorCode.NONE)

    run(ottla_broker, scenario)


async def fetched(client: Client, *, require_stable: bool) -> tuple[int, int]:
    topic = OffsetFetchRequestTopics(name=client.topic, topic_id=NO_TOPIC_ID, partition_indexes=[0])
    asked = OffsetFetchRequestGroup(group_id=client.group, topics=[topic])
    request = OffsetFetchRequest(groups=[asked], require_stable=require_stable)
    answer = await client.call(request, OffsetFetchResponse, 9)
    (partition,) = answer.groups[0].topics[0].partitions
    return partition.committed_offset, partition.error_code
