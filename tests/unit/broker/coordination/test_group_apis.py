"""The group APIs of a running broker, in every version that is served."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ottla.client.connection import Connection
from ottla.model.errors import ErrorCode
from ottla.model.names import NO_TOPIC_ID
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.protocol.schema import TopLevel
from ottla.testing.running import RunningBroker

from .group_world import RANGE

R = TypeVar("R", bound=TopLevel)


class Client:
    """One connection, and one topic and group of its own."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.topic = f"topic-{uuid.uuid4()}"
        self.group = f"group-{uuid.uuid4()}"
        self.topic_id = NO_TOPIC_ID

    async def call(self, request: TopLevel, answer: type[R], version: int | None = None) -> R:
        least = 0 if version is None else version
        return await self.connection.call(request, answer, min_version=least, max_version=version)

    async def create_topic(self) -> None:
        request = CreateTopicsRequest(topics=[CreatableTopic(name=self.topic, num_partitions=2, replication_factor=1)])
        response = await self.call(request, CreateTopicsResponse)
        assert response.topics[0].error_code == ErrorCode.NONE
        self.topic_id = response.topics[0].topic_id

    async def find_coordinator(self) -> None:
        answer = await self.call(FindCoordinatorRequest(coordinator_keys=[self.group]), FindCoordinatorResponse)
        assert answer.coordinators[0].error_code == ErrorCode.NONE

    async def join(self, version: int = 9, member_id: str = "", instance_id: str | None = None) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in RANGE],
        )
        response = await self.call(request, JoinGroupResponse, version)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return await self.join(version, response.member_id, instance_id)
        return response

    async def sync(self, member_id: str, generation: int, version: int = 5) -> SyncGroupResponse:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine")],
        )
        return await self.call(request, SyncGroupResponse, version)

    async def stable(self, instance_id: str | None = None) -> tuple[str, int]:
        joined = await self.join(instance_id=instance_id)
        assert joined.error_code == ErrorCode.NONE
        assert (await self.sync(joined.member_id, joined.generation_id)).error_code == ErrorCode.NONE
        return joined.member_id, joined.generation_id

    async def commit(self, version: int = 9, offset: int = 5, **details: object) -> list[int]:
        request = OffsetCommitRequest(
            group_id=self.group,
            topics=[
                OffsetCommitRequestTopic(
                    name=self.topic,
                    topic_id=self.topic_id,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offset,
                            committed_leader_epoch=0,
                            committed_metadata="note",
                        )
                        for index in (0, 1, 2)
                    ],
                )
            ],
        )
        for name, value in details.items():
            setattr(request, name, value)
        response = await self.call(request, OffsetCommitResponse, version)
        return [partition.error_code for topic in response.topics for partition in topic.partitions]

    async def fetch(self, version: int = 9, *, everything: bool = False) -> list[tuple[int, int, int]]:
        """(partition, offset, error) of what the group has committed."""
        by_id = [OffsetFetchRequestTopics(name=self.topic, topic_id=self.topic_id, partition_indexes=[0, 1])]
        by_name = [OffsetFetchRequestTopic(name=self.topic, partition_indexes=[0, 1])]
        request = OffsetFetchRequest(
            group_id=self.group,
            topics=None if everything else by_name,
            groups=[OffsetFetchRequestGroup(group_id=self.group, topics=None if everything else by_id)],
            require_stable=True,
        )
        response = await self.call(request, OffsetFetchResponse, version)
        if version < 8:
            return [
                (partition.partition_index, partition.committed_offset, partition.error_code or response.error_code)
                for topic in response.topics
                for partition in topic.partitions
            ]
        (group,) = response.groups
        return [
            (partition.partition_index, partition.committed_offset, partition.error_code or group.error_code)
            for topic in group.topics
            for partition in topic.partitions
        ]


def run(broker: RunningBroker, scenario: Callable[[Client], Awaitable[None]]) -> None:
    async def connected() -> None:
        connection = await Connection.open(broker.host, broker.port, client_id="tester")
        try:
            client = Client(connection)
            await client.create_topic()
            await client.find_coordinator()
            await scenario(client)
        finally:
            await connection.close()

    asyncio.run(asyncio.wait_for(connected(), 60))


@pytest.mark.parametrize("version", range(7))
def test_find_coordinator(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        async def find(key_type: int) -> Coordinator:
            request = FindCoordinatorRequest(key="k", coordinator_keys=["k"], key_type=key_type)
            answer = await client.call(request, FindCoordinatorResponse, version)
            if version >= 4:
                return answer.coordinators[0]
            return Coordinator(
                node_id=answer.node_id, host=answer.host, port=answer.port,
                error_code=answer.error_code, error_message=answer.error_message,
            )  # fmt: skip

        found = await find(0)
        assert (found.error_code, found.host, found.port) == (0, ottla_broker.host, ottla_broker.port)
        if version >= 1:  # the type of key is not said before
            found = await find(1)
            assert (found.error_code, found.host, found.port) == (0, ottla_broker.host, ottla_broker.port)
            for key_type, word in ((2, "share groups"), (9, "9")):
                refused = await find(key_type)
                assert refused.error_code == ErrorCode.INVALID_REQUEST
                assert word in (refused.error_message or "")

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(10))
def test_join_group(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        joined = await client.join(version)
        assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
        assert joined.leader == joined.member_id
        assert joined.member_id.startswith("tester-")
        assert [(member.member_id, member.metadata) for member in joined.members] == [(joined.member_id, RANGE[0][1])]
        refused = await client.join(version, "stranger")
        assert (refused.error_code, refused.generation_id) == (ErrorCode.UNKNOWN_MEMBER_ID, -1)
        assert refused.protocol_name == ("" if version < 7 else None)

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(6))
def test_sync_group(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        joined = await client.join()
        synced = await client.sync(joined.member_id, 1, version)
        assert (synced.error_code, synced.assignment) == (0, b"mine")
        assert (await client.sync(joined.member_id, 7, version)).error_code == ErrorCode.ILLEGAL_GENERATION
        if version >= 5:
            nameless = SyncGroupRequest(group_id=client.group, generation_id=1, member_id=joined.member_id)
            answer = await client.call(nameless, SyncGroupResponse, version)
            assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(5))
def test_heartbeat(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        member_id, generation = await client.stable()
        for asked, code in ((generation, ErrorCode.NONE), (generation + 1, ErrorCode.ILLEGAL_GENERATION)):
            request = HeartbeatRequest(group_id=client.group, generation_id=asked, member_id=member_id)
            assert (await client.call(request, HeartbeatResponse, version)).error_code == code

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(6))
def test_leave_group(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        member_id, _ = await client.stable()
        for code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
            request = LeaveGroupRequest(
                group_id=client.group, member_id=member_id, members=[MemberIdentity(member_id=member_id)]
            )
            left = await client.call(request, LeaveGroupResponse, version)
            assert (left.members[0].error_code if version >= 3 else left.error_code) == code
            assert version < 3 or left.error_code == ErrorCode.NONE

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(2, 11))
def test_offset_commit(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        # The topic has two partitions, the third is refused.
        assert await client.commit(version) == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await client.fetch() == [(0, 5, 0), (1, 5, 0)]
        unknown_member = await client.commit(version, generation_id_or_member_epoch=3, member_id="stranger")
        assert unknown_member[:2] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
        client.group = f"{client.group}-other"
        unknown_group = await client.commit(version, generation_id_or_member_epoch=3, member_id="stranger")
        expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
        assert unknown_group[:2] == [expected] * 2
        client.topic, client.topic_id = "nothing", uuid.uuid4()
        unknown_topic = await client.commit(version)
        expected = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert unknown_topic == [expected] * 3

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(1, 11))
def test_offset_fetch(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        assert await client.fetch(version) == [(0, -1, 0), (1, -1, 0)]
        await client.commit()
        assert await client.fetch(version) == [(0, 5, 0), (1, 5, 0)]
        if version >= 2:
            assert await client.fetch(version, everything=True) == [(0, 5, 0), (1, 5, 0)]
        if version >= 10:
            client.topic_id = uuid.uuid4()
            assert await client.fetch(version) == [(index, -1, ErrorCode.UNKNOWN_TOPIC_ID) for index in (0, 1)]

    run(ottla_broker, scenario)


def test_offsets_of_a_deleted_topic_are_forgotten(ottla_broker: RunningBroker) -> None:
    async def scenario(client: Client) -> None:
        await client.commit()
        gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=client.topic)], timeout_ms=1000)
        response = await client.call(gone, DeleteTopicsResponse)
        assert response.responses[0].error_code == ErrorCode.NONE
        await client.create_topic()
        assert await client.fetch() == [(0, -1, 0), (1, -1, 0)]

    run(ottla_broker, scenario)


def test_offset_delete(ottla_broker: RunningBroker) -> None:
    async def scenario(client: Client) -> None:
        await client.commit()
        asked = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 7)]
        request = OffsetDeleteRequest(
            group_id=client.group, topics=[OffsetDeleteRequestTopic(name=client.topic, partitions=asked)]
        )
        answer = await client.call(request, OffsetDeleteResponse)
        codes = [partition.error_code for partition in answer.topics[0].partitions]
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await client.fetch() == [(0, -1, 0), (1, 5, 0)]
        request.group_id = "nobody"
        assert (await client.call(request, OffsetDeleteResponse)).error_code == ErrorCode.GROUP_ID_NOT_FOUND

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(6))
def test_list_groups(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        await client.stable()

        async def mine(request: ListGroupsRequest) -> list[tuple[str, str, str]]:
            answer = await client.call(request, ListGroupsResponse, version)
            assert answer.error_code == ErrorCode.NONE
            return [
                (group.protocol_type, group.group_state, group.group_type)
                for group in answer.groups
                if group.group_id == client.group
            ]

        expected = ("consumer", "Stable" if version >= 4 else "", "classic" if version >= 5 else "")
        assert await mine(ListGroupsRequest()) == [expected]
        if version >= 4:
            assert await mine(ListGroupsRequest(states_filter=["Stable"])) == [expected]
            assert await mine(ListGroupsRequest(states_filter=["Empty"])) == []
        if version >= 5:
            assert await mine(ListGroupsRequest(types_filter=["classic"])) == [expected]
            assert await mine(ListGroupsRequest(types_filter=["consumer"])) == []

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(7))
def test_describe_groups(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        member_id, _ = await client.stable("one")
        request = DescribeGroupsRequest(groups=[client.group, "nobody"], include_authorized_operations=version >= 3)
        found, missing = (await client.call(request, DescribeGroupsResponse, version)).groups
        assert (found.error_code, found.group_state, found.protocol_type, found.protocol_data) == (
            0, "Stable", "consumer", "range",
        )  # fmt: skip
        (member,) = found.members
        assert (member.member_id, member.client_id, member.client_host) == (member_id, "tester", "/127.0.0.1")
        assert (member.member_metadata, member.member_assignment) == (RANGE[0][1], b"mine")
        assert member.group_instance_id == ("one" if version >= 4 else None)
        assert (found.authorized_operations > 0) == (version >= 3)
        assert missing.group_state == "Dead"
        assert (missing.authorized_operations > 0) == (3 <= version < 6)
        assert missing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)
        assert missing.error_message == ("Group nobody not found." if version >= 6 else None)

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(3))
def test_delete_groups(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        await client.commit()
        simple = client.group
        client.group = f"{simple}-busy"
        await client.stable()
        request = DeleteGroupsRequest(groups_names=[simple, client.group, "nobody"])
        answer = await client.call(request, DeleteGroupsResponse, version)
        assert [(result.group_id, result.error_code) for result in answer.results] == [
            (simple, ErrorCode.NONE),
            (client.group, ErrorCode.NON_EMPTY_GROUP),
            ("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
        ]

    run(ottla_broker, scenario)
