"""What a coordinator tells and asks other brokers: in few requests, to whoever leads, with every failure told."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast
from uuid import UUID

import pytest

from ottla.broker.coordination.markers import LocalMarkers, Marker
from ottla.broker.coordination.remote_markers import ClusterMarkers
from ottla.broker.coordination.sending import InterBroker, Sender
from ottla.broker.coordination.transaction_partitions import ClusterTransactionPartitions
from ottla.broker.coordination.transaction_runtime import TransactionCoordinator
from ottla.broker.coordination.transactions.events import TransactionalWrite
from ottla.broker.replication.peers import PeerUnavailable
from ottla.cluster.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from ottla.cluster.store import MetadataStore
from ottla.config.broker import BrokerSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TRANSACTION_STATE, TopicPartition
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.protocol.schema import TopLevel

from .coordinator_world import run, turns

ME = 1
NONE = ErrorCode.NONE
HERE, THERE, TOO, FAR, NOWHERE = (TopicPartition("t", number) for number in range(5))
LEADERS = (ME, 2, 2, 3, NO_LEADER)
Answer = Callable[[int, Any], TopLevel]


class Picture:
    """As much of a metadata store as is looked at: who leads."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.lead("t", *LEADERS)

    def lead(self, name: str, *leaders: int) -> None:
        partitions = tuple(PartitionImage(leader, 0, (1, 2, 3), (1, 2, 3)) for leader in leaders)
        self.image = self.image.with_topics([TopicImage(name, UUID(int=len(name)), partitions)])

    def forget(self, name: str) -> None:
        self.image = self.image.with_topics([], [name])


class FakePeers:
    """Implements Peers: brokers that answer as the test says, and wait while `gate` is shut."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[tuple[int, Any]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def call(self, broker_id: int, request: TopLevel, answer: Any, **_: Any) -> Any:
        received = decode(type(request), request.MAX_VERSION, encode(request, request.MAX_VERSION))
        self.asked.append((broker_id, received))
        await self.gate.wait()
        return self.answer(broker_id, received)

    async def close(self) -> None: ...


class LocalOnes:
    """Stands for the markers of partitions that are led here."""

    def __init__(self) -> None:
        self.written: list[tuple[Marker, TopicPartition]] = []

    def write(self, marker: Marker, partition: TopicPartition) -> Awaitable[None] | None:
        self.written.append((marker, partition))
        return None


def marked(request: WriteTxnMarkersRequest, codes: dict[TopicPartition, ErrorCode]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=number, error_code=codes.get(TopicPartition(topic.name, number), NONE)
                            )
                            for number in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


class MarkerWorld:
    def __init__(self, answer: Answer | None = None) -> None:
        self.picture = Picture()
        self.codes: dict[TopicPartition, ErrorCode] = {}
        self.peers = FakePeers(answer or (lambda _, request: marked(request, self.codes)))
        self.local = LocalOnes()
        self.markers = ClusterMarkers(
            cast("LocalMarkers", self.local),
            InterBroker(ME, cast("MetadataStore", self.picture), self.peers, BrokerSettings),
        )


def marker(producer_id: int = 7, coordinator_epoch: int = 3, *, commit: bool = True) -> Marker:
    return Marker(producer_id, 5, commit, coordinator_epoch, 2)


async def outcome(pending: Awaitable[None] | None) -> ErrorCode:
    try:
        if pending is not None:
            await pending
    except ApiError as error:
        return error.code
    return NONE


def test_markers_go_to_the_leaders_of_their_partitions() -> None:
    async def scenario() -> None:
        world = MarkerWorld()
        pending = [world.markers.write(marker(), partition) for partition in (HERE, THERE, TOO, FAR)]
        assert pending[0] is None
        assert world.local.written == [(marker(), HERE)]
        assert [await outcome(one) for one in pending] == [NONE] * 4
        assert sorted(broker for broker, _ in world.peers.asked) == [2, 3]
        sent = dict(world.peers.asked)[2].markers[0]
        assert (sent.producer_id, sent.producer_epoch, sent.transaction_result) == (7, 5, True)
        assert (sent.coordinator_epoch, sent.transaction_version) == (3, 2)
        assert [(topic.name, topic.partition_indexes) for topic in sent.topics] == [("t", [1, 2])]

    run(scenario())


def test_a_partition_without_a_leader_is_refused_and_one_that_is_gone_needs_nothing() -> None:
    async def scenario() -> None:
        world = MarkerWorld()
        with pytest.raises(ApiError) as refusal:
            world.markers.write(marker(), NOWHERE)
        assert refusal.value.code is ErrorCode.LEADER_NOT_AVAILABLE
        world.picture.forget("t")
        assert world.markers.write(marker(), THERE) is None
        assert world.peers.asked == []

    run(scenario())


def test_what_comes_while_a_request_is_under_way_goes_out_together() -> None:
    async def scenario() -> None:
        world = MarkerWorld()
        world.peers.gate.clear()
        first = world.markers.write(marker(1), THERE)
        await turns()
        others = [world.markers.write(marker(number), THERE) for number in range(2, 50)]
        await turns()
        assert len(world.peers.asked) == 1
        world.peers.gate.set()
        assert [await outcome(one) for one in (first, *others)] == [NONE] * 49
        assert [len(request.markers) for _, request in world.peers.asked] == [1, 48]

    run(scenario())


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.INVALID_PRODUCER_EPOCH, NONE),
        (ErrorCode.TRANSACTION_COORDINATOR_FENCED, NONE),
    ],
)
def test_refusals_are_the_partitions_own(code: ErrorCode, told: ErrorCode) -> None:
    async def scenario() -> None:
        world = MarkerWorld()
        world.codes = {THERE: code}
        refused, fine = world.markers.write(marker(), THERE), world.markers.write(marker(), TOO)
        assert (await outcome(refused), await outcome(fine)) == (told, NONE)
        # Asked again, it goes to whoever leads by then.
        world.codes = {}
        world.picture.lead("t", ME, 3, 2, 3, ME)
        assert await outcome(world.markers.write(marker(), THERE)) is NONE
        assert world.peers.asked[-1][0] == 3

    run(scenario())


def test_a_broker_that_does_not_answer_fails_all_that_was_sent_and_only_that() -> None:
    async def scenario() -> None:
        def answer(broker_id: int, request: Any) -> TopLevel:
            if broker_id == 2:
                raise PeerUnavailable(2, "gone")
            return marked(request, {})

        world = MarkerWorld(answer)
        pending = [world.markers.write(marker(), partition) for partition in (THERE, TOO, FAR)]
        codes = [await outcome(one) for one in pending]
        assert codes == [ErrorCode.NETWORK_EXCEPTION, ErrorCode.NETWORK_EXCEPTION, NONE]

    run(scenario())


def test_an_answer_that_leaves_something_out_is_no_success() -> None:
    async def scenario() -> None:
        world = MarkerWorld(lambda _broker, _request: WriteTxnMarkersResponse())
        assert await outcome(world.markers.write(marker(), THERE)) is ErrorCode.UNKNOWN_SERVER_ERROR

    run(scenario())


def test_two_reigns_of_one_coordinator_are_told_apart() -> None:
    """What it wanted before it lost its partition may still be waiting to be sent when it has it again."""

    async def scenario() -> None:
        def answer(_broker: int, request: Any) -> TopLevel:
            response = marked(request, {})
            for sent, result in zip(request.markers, response.markers, strict=True):
                if sent.coordinator_epoch == 3:
                    result.topics[0].partitions[0].error_code = ErrorCode.KAFKA_STORAGE_ERROR
            return response

        world = MarkerWorld(answer)
        world.peers.gate.clear()
        pending = [
            world.markers.write(marker(1), THERE),
            world.markers.write(marker(7, 3), THERE),
            world.markers.write(marker(7, 5), THERE),
        ]
        await turns()
        world.peers.gate.set()
        codes = [await outcome(one) for one in pending]
        assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR, NONE]

    run(scenario())


def test_whoever_waits_is_told_when_it_ends() -> None:
    async def scenario() -> None:
        world = MarkerWorld()
        world.peers.gate.clear()
        pending = [world.markers.write(marker(number), THERE) for number in range(3)]
        await turns()
        world.markers.close()
        assert {await outcome(one) for one in pending} == {ErrorCode.NETWORK_EXCEPTION}

    run(scenario())


def test_a_failure_that_nobody_expected_leaves_nobody_waiting() -> None:
    async def scenario() -> None:
        async def send(_broker: int, items: list[int]) -> list[int | ApiError]:
            if 13 in items:
                raise ZeroDivisionError
            return list(items)

        failures: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        sender: Sender[int, int] = Sender(send)
        first, second = sender.submit(2, 12), sender.submit(2, 13)
        with pytest.raises(ApiError):
            await second
        assert first.exception() is not None
        assert await sender.submit(2, 1) == 1
        await turns()

    run(scenario())


# Membership


class LocalTransactions:
    def ensure_partitions(self, _: TransactionalWrite) -> dict[TopicPartition, ErrorCode]:
        return {HERE: ErrorCode.NONE}


def joined(request: AddPartitionsToTxnRequest, code: ErrorCode = NONE) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
                            for number in topic.partitions
                        ],
                    )
                    for topic in transaction.topics
                ],
            )
            for transaction in request.transactions
        ]
    )


class MembershipWorld:
    def __init__(self, answer: Answer, leader: int = 2, **settings: Any) -> None:
        self.picture = Picture()
        self.picture.lead(TRANSACTION_STATE, leader)
        self.peers = FakePeers(answer)
        self.transaction_partitions = ClusterTransactionPartitions(
            cast("TransactionCoordinator", LocalTransactions()),
            InterBroker(ME, cast("MetadataStore", self.picture), self.peers, lambda: BrokerSettings(**settings)),
        )

    async def ensure(self, *partitions: TopicPartition, add: bool = True, name: str = "x") -> dict[Any, ErrorCode]:
        answer = self.transaction_partitions.ensure_partitions(TransactionalWrite(name, 7, 5, partitions, add))
        return answer if isinstance(answer, dict) else await answer


def test_the_coordinator_is_asked_where_it_is() -> None:
    async def scenario() -> None:
        world = MembershipWorld(lambda _, request: joined(request))
        assert await world.ensure(HERE, THERE, add=False) == {HERE: NONE, THERE: NONE}
        ((broker, request),) = world.peers.asked
        (asked,) = request.transactions
        assert (broker, asked.transactional_id, asked.producer_id, asked.producer_epoch) == (2, "x", 7, 5)
        assert asked.verify_only
        assert [(topic.name, topic.partitions) for topic in asked.topics] == [("t", [0, 1])]
        world.picture.lead(TRANSACTION_STATE, 3)
        assert await world.ensure(HERE) == {HERE: NONE}
        assert world.peers.asked[-1][0] == 3
        assert not world.peers.asked[-1][1].transactions[0].verify_only
        world.picture.lead(TRANSACTION_STATE, ME)
        assert await world.ensure(HERE) == {HERE: NONE}
        assert len(world.peers.asked) == 2, "one's own coordinator is not asked over the wire"

    run(scenario())


def test_questions_that_come_together_are_asked_together() -> None:
    async def scenario() -> None:
        world = MembershipWorld(lambda _, request: joined(request))
        world.peers.gate.clear()
        asking = [asyncio.ensure_future(world.ensure(HERE, name=f"x{number}")) for number in range(20)]
        await turns()
        world.peers.gate.set()
        assert [await one for one in asking] == [{HERE: NONE}] * 20
        assert sum(len(request.transactions) for _, request in world.peers.asked) == 20
        assert len(world.peers.asked) <= 2

    run(scenario())


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_answers_are_those_of_a_partition(code: ErrorCode, told: ErrorCode) -> None:
    async def scenario() -> None:
        world = MembershipWorld(lambda _, request: joined(request, code))
        assert await world.ensure(HERE) == {HERE: told}

    run(scenario())


def test_an_ending_transaction_is_asked_about_again_for_a_little_while() -> None:
    async def scenario() -> None:
        answers = [ErrorCode.CONCURRENT_TRANSACTIONS] * 2
        world = MembershipWorld(lambda _, request: joined(request, answers.pop() if answers else NONE))
        assert await world.ensure(HERE, THERE) == {HERE: NONE, THERE: NONE}
        assert len(world.peers.asked) == 3
        stuck = MembershipWorld(lambda _, request: joined(request, ErrorCode.CONCURRENT_TRANSACTIONS))
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await stuck.ensure(HERE) == {HERE: ErrorCode.CONCURRENT_TRANSACTIONS}
        waited_ms = 1000 * (loop.time() - began)
        settings = BrokerSettings()
        most, between = (
            settings.add_partitions_to_txn_retry_backoff_max_ms,
            settings.add_partitions_to_txn_retry_backoff_ms,
        )
        assert most <= waited_ms
        assert 2 <= len(stuck.peers.asked) <= 1 + most // between + 1, "not all the time"
        only_asked = MembershipWorld(lambda _, request: joined(request, ErrorCode.CONCURRENT_TRANSACTIONS))
        assert await only_asked.ensure(HERE, add=False) == {HERE: ErrorCode.CONCURRENT_TRANSACTIONS}
        assert len(only_asked.peers.asked) == 1, "who announces its partitions asks again itself"

    run(scenario())


def test_a_coordinator_that_cannot_be_asked() -> None:
    async def scenario() -> None:
        def unreachable(broker_id: int, _request: Any) -> TopLevel:
            raise PeerUnavailable(broker_id, "gone")

        assert await MembershipWorld(unreachable).ensure(HERE) == {HERE: ErrorCode.NETWORK_EXCEPTION}
        leaderless = MembershipWorld(unreachable, NO_LEADER)
        assert await leaderless.ensure(HERE) == {HERE: ErrorCode.COORDINATOR_NOT_AVAILABLE}
        leaderless.picture.forget(TRANSACTION_STATE)
        assert await leaderless.ensure(HERE) == {HERE: ErrorCode.COORDINATOR_NOT_AVAILABLE}
        trusting = MembershipWorld(unreachable, transaction_partition_verification_enable=False)
        assert await trusting.ensure(HERE, add=False) == {HERE: NONE}
        other = MembershipWorld(lambda *_: AddPartitionsToTxnResponse())
        assert await other.ensure(HERE) == {HERE: ErrorCode.UNKNOWN_SERVER_ERROR}
        refused = MembershipWorld(lambda *_: AddPartitionsToTxnResponse(error_code=31))
        assert await refused.ensure(HERE) == {HERE: ErrorCode.CLUSTER_AUTHORIZATION_FAILED}

    run(scenario())
