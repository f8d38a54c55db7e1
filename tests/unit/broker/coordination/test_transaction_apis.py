"""The transaction APIs of a running broker, in every version that is served."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ottla.client.connection import Connection
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.protocol.schema import TopLevel
from ottla.testing.running import RunningBroker

R = TypeVar("R", bound=TopLevel)
NONE = ErrorCode.NONE


class Client:
    """One connection, with a topic and a transactional id of its own."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.topic = f"topic-{uuid.uuid4()}"
        self.name = f"txn-{uuid.uuid4()}"
        self.producer_id = self.epoch = -1

    async def call(self, request: TopLevel, answer: type[R], version: int | None = None) -> R:
        least = request.MIN_VERSION if version is None else version
        return await self.connection.call(request, answer, min_version=least, max_version=version)

    async def prepare(self) -> None:
        topics = [CreatableTopic(name=self.topic, num_partitions=2, replication_factor=1)]
        created = await self.call(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
        assert created.topics[0].error_code == NONE
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.name])
        assert (await self.call(find, FindCoordinatorResponse)).coordinators[0].error_code == NONE
        answer = await self.init()
        assert answer.error_code == NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    async def init(
        self, version: int = 5, *, timeout_ms: int = 60_000, producer_id: int = -1, producer_epoch: int = -1
    ) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        return await self.call(request, InitProducerIdResponse, version)

    async def add(
        self, version: int, *partitions: int, epoch: int | None = None, topic: str | None = None, verify: bool = False
    ) -> list[int]:
        """Error codes, partition by partition."""
        epoch = self.epoch if epoch is None else epoch
        topics = [AddPartitionsToTxnTopic(name=topic or self.topic, partitions=list(partitions))]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=self.name, producer_id=self.producer_id, producer_epoch=epoch,
                    verify_only=verify, topics=topics,
                )
            ],
        )  # fmt: skip
        response = await self.call(request, AddPartitionsToTxnResponse, version)
        results = response.results_by_topic_v3_and_below
        if version >= 4:
            assert (response.error_code, response.results_by_transaction[0].transactional_id) == (NONE, self.name)
            results = response.results_by_transaction[0].topic_results
        assert [result.name for result in results] == [topic or self.topic]
        return [found.partition_error_code for found in results[0].results_by_partition]

    async def end(self, version: int, *, commit: bool, epoch: int | None = None) -> EndTxnResponse:
        epoch = self.epoch if epoch is None else epoch
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=epoch, committed=commit
        )
        return await self.call(request, EndTxnResponse, version)

    async def describe(self) -> TransactionState:
        request = DescribeTransactionsRequest(transactional_ids=[self.name])
        [found] = (await self.call(request, DescribeTransactionsResponse)).transaction_states
        return found


def run(broker: RunningBroker, scenario: Callable[[Client], Awaitable[None]]) -> None:
    async def connected() -> None:
        connection = await Connection.open(broker.host, broker.port, client_id="tester")
        try:
            client = Client(connection)
            await client.prepare()
            await scenario(client)
        finally:
            await connection.close()

    asyncio.run(asyncio.wait_for(connected(), 60))


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        answer = await client.init(version)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (NONE, client.producer_id, 1)
        if version >= 3:
            again = await client.init(version, producer_id=client.producer_id, producer_epoch=1)
            assert (again.error_code, again.producer_epoch) == (NONE, 2)
            retry = await client.init(version, producer_id=client.producer_id, producer_epoch=1)
            assert (retry.error_code, retry.producer_epoch) == (NONE, 2)
            zombie = await client.init(version, producer_id=client.producer_id, producer_epoch=0)
            fenced = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
            assert (zombie.error_code, zombie.producer_id, zombie.producer_epoch) == (fenced, -1, -1)
        refused = await client.init(version, timeout_ms=900_001)
        assert refused.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(6))
def test_add_partitions_to_txn(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        assert await client.add(version, 0, 1) == [NONE, NONE]
        assert (await client.describe()).transaction_state == "Ongoing"
        unknown = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED]
        assert await client.add(version, 7, 0) == unknown
        fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await client.add(version, 0, epoch=9) == [fenced]
        if version < 4:  # clients have no business in there; other brokers do
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert await client.add(version, 0, topic="__transaction_state") == [denied]
        client.producer_id += 1
        assert await client.add(version, 0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", [4, 5])
def test_partitions_can_be_verified_only(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        assert await client.add(3, 0) == [NONE]
        assert await client.add(version, 0, 1, verify=True) == [NONE, ErrorCode.TRANSACTION_ABORTABLE]
        assert [topic.partitions for topic in (await client.describe()).topics] == [[0]]

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(5))
def test_add_offsets_to_txn(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        async def add(group: str, epoch: int) -> int:
            request = AddOffsetsToTxnRequest(
                transactional_id=client.name, producer_id=client.producer_id, producer_epoch=epoch, group_id=group
            )
            return (await client.call(request, AddOffsetsToTxnResponse, version)).error_code

        assert await add("some-group", client.epoch) == NONE
        assert [topic.topic for topic in (await client.describe()).topics] == ["__consumer_offsets"]
        fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await add("some-group", 9) == fenced
        assert await add("", client.epoch) == NONE  # offsets may be kept under the empty name, as old clients do

    run(ottla_broker, scenario)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", range(6))
def test_end_txn(ottla_broker: RunningBroker, version: int, commit: bool) -> None:
    async def scenario(client: Client) -> None:
        bumps = version >= 5
        assert await client.add(5 if bumps else 3, 0, 1) == [NONE, NONE]
        ended = await client.end(version, commit=commit)
        assert ended.error_code == NONE
        if bumps:
            assert (ended.producer_id, ended.producer_epoch) == (client.producer_id, 1)
        state = await client.describe()
        assert state.transaction_state == ("CompleteCommit" if commit else "CompleteAbort")
        assert (state.topics, state.producer_epoch) == ([], 1 if bumps else 0)
        retried = await client.end(version, commit=commit)
        assert (retried.error_code, retried.producer_epoch) == (NONE, 1 if bumps else -1)
        assert (await client.end(version, commit=not commit)).error_code == ErrorCode.INVALID_TXN_STATE
        fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert (await client.end(version, commit=commit, epoch=9)).error_code == fenced

    run(ottla_broker, scenario)


def test_an_end_without_a_transaction(ottla_broker: RunningBroker) -> None:
    async def scenario(client: Client) -> None:
        assert (await client.end(4, commit=False)).error_code == ErrorCode.INVALID_TXN_STATE
        assert (await client.end(5, commit=True)).error_code == ErrorCode.INVALID_TXN_STATE
        aborted = await client.end(5, commit=False)
        assert (aborted.error_code, aborted.producer_epoch) == (NONE, 1)

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", [1, 2])
def test_write_txn_markers(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        async def write(epoch: int, *partitions: int) -> list[int]:
            marker = WritableTxnMarker(
                producer_id=client.producer_id,
                producer_epoch=epoch,
                topics=[WritableTxnMarkerTopic(name=client.topic, partition_indexes=list(partitions))],
            )
            response = await client.call(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse, version)
            assert response.markers[0].producer_id == client.producer_id
            return [found.error_code for found in response.markers[0].topics[0].partitions]

        assert await write(3, 0, 5) == [NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await write(2, 0, 1) == [ErrorCode.INVALID_PRODUCER_EPOCH, NONE]

    run(ottla_broker, scenario)


def test_describe_transactions(ottla_broker: RunningBroker) -> None:
    async def scenario(client: Client) -> None:
        await client.add(3, 1, 0)
        found = await client.describe()
        assert (found.error_code, found.transactional_id, found.transaction_state) == (NONE, client.name, "Ongoing")
        assert (found.producer_id, found.producer_epoch) == (client.producer_id, client.epoch)
        assert (found.transaction_timeout_ms, found.transaction_start_time_ms > 0) == (60_000, True)
        assert [(topic.topic, topic.partitions) for topic in found.topics] == [(client.topic, [0, 1])]
        client.name = "nobody"
        assert (await client.describe()).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        client.name = ""
        assert (await client.describe()).error_code == ErrorCode.INVALID_REQUEST

    run(ottla_broker, scenario)


@pytest.mark.parametrize("version", range(3))
def test_list_transactions(ottla_broker: RunningBroker, version: int) -> None:
    async def scenario(client: Client) -> None:
        async def listed(request: ListTransactionsRequest) -> dict[str, str]:
            response = await client.call(request, ListTransactionsResponse, version)
            assert response.error_code == NONE
            return {found.transactional_id: found.transaction_state for found in response.transaction_states}

        mine = [client.producer_id]
        assert await listed(ListTransactionsRequest(producer_id_filters=mine)) == {client.name: "Empty"}
        assert client.name in await listed(ListTransactionsRequest())
        assert client.name not in await listed(ListTransactionsRequest(state_filters=["Ongoing"]))
        await client.add(3, 0)
        both = ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"])
        assert (await listed(both))[client.name] == "Ongoing"
        answer = await client.call(both, ListTransactionsResponse, version)
        assert answer.unknown_state_filters == ["Nonsense"]
        if version >= 1:
            assert client.name not in await listed(ListTransactionsRequest(duration_filter=3_600_000))
        if version >= 2:
            wanted = ListTransactionsRequest(transactional_id_pattern=client.name[:-4] + ".{4}")
            assert await listed(wanted) == {client.name: "Ongoing"}
            part = ListTransactionsRequest(transactional_id_pattern=client.name[:-4])
            assert await listed(part) == {}
            wrong = ListTransactionsRequest(transactional_id_pattern="(")
            refused = await client.call(wrong, ListTransactionsResponse, version)
            assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION

    run(ottla_broker, scenario)
