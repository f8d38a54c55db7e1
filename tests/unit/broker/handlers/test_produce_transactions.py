"""Transactional produce: the coordinator is asked when it must be, and what it says reaches clients of every age."""

import asyncio
from collections.abc import Awaitable

import pytest
from msgspec.structs import replace
from tests.unit.broker.handlers.conftest import Harness
from tests.unit.broker.handlers.partition_requests import (
    TOPIC,
    batch,
    create_topic,
    produce_later,
    produce_now,
)

from ottla.broker.coordination.transactions.events import TransactionalWrite
from ottla.broker.storage.markers import Marker, encode_marker
from ottla.cluster.image import PartitionImage
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition
from ottla.model.sentinels import NO_OFFSET
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.records import Codec, iterate_batches

NOW_MS = 1_000
TOPIC_RESOURCE = 2
Errors = dict[TopicPartition, ErrorCode]


class Membership:
    """Says what the coordinator would, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[TransactionalWrite] = []
        self.answers: list[ErrorCode] = []
        self.errors: Errors = {}
        self.gate: asyncio.Event | None = None

    def ensure_partitions(self, write: TransactionalWrite) -> Errors | Awaitable[Errors]:
        self.asked.append(write)
        code = self.answers.pop(0) if self.answers else ErrorCode.NONE
        told = {partition: self.errors.get(partition, code) for partition in write.partitions}
        return told if self.gate is None else self._later(told, self.gate)

    async def _later(self, told: Errors, gate: asyncio.Event) -> Errors:
        await gate.wait()
        return told


@pytest.fixture
def membership(harness: Harness) -> Membership:
    stand_in = Membership()
    harness.broker.transaction_partitions = stand_in
    create_topic(harness)
    return stand_in


def tp(number: int) -> TopicPartition:
    return TopicPartition(TOPIC, number)


@pytest.mark.parametrize("version", range(3, 14))
def test_a_partition_is_asked_about_once_per_transaction(
    harness: Harness, membership: Membership, version: int
) -> None:
    adds = version >= 12
    answers = produce_now(harness, {0: batch(7, 0), 1: batch(7, 0)}, version)
    assert [answers[number].error_code for number in (0, 1)] == [0, 0]
    assert membership.asked == [TransactionalWrite("t", 7, 0, [tp(0), tp(1)], adds)]
    produce_now(harness, {0: batch(7, 1), 1: batch(7, 1)}, version)
    assert len(membership.asked) == 1
    partition = harness.partitions.get(tp(0))
    partition.append_marker(7, 0, commit=True, coordinator_epoch=0, now_ms=NOW_MS)
    produce_now(harness, {0: batch(7, 2), 1: batch(7, 2)}, version)
    assert membership.asked[1:] == [TransactionalWrite("t", 7, 0, [tp(0)], adds)]


def test_a_new_epoch_is_asked_about_though_a_transaction_is_open(harness: Harness, membership: Membership) -> None:
    produce_now(harness, {0: batch(7, 0)}, 12)
    membership.answers = [ErrorCode.INVALID_PRODUCER_EPOCH]
    answers = produce_now(harness, {0: batch(7, 0, epoch=1)}, 12)
    assert answers[0].error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(membership.asked) == 2


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 13, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 9, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 9, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.PRODUCER_FENCED, 9, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_EPOCH, 13, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.INVALID_TXN_STATE, 12, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 12, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_what_the_coordinator_says_is_told_as_producers_expect_it(
    harness: Harness, membership: Membership, said: ErrorCode, version: int, told: ErrorCode
) -> None:
    membership.errors = {tp(0): said}
    answers = produce_now(harness, {0: batch(7, 0), 1: batch(7, 0)}, version)
    assert (answers[0].error_code, answers[1].error_code) == (told, 0)
    assert harness.partitions.get(tp(0)).log.end_offset == 0
    assert harness.partitions.get(tp(1)).last_stable_offset == 0


def test_a_marker_that_comes_while_the_coordinator_is_asked_refuses_the_batch(
    harness: Harness, membership: Membership
) -> None:
    partition = harness.partitions.get(tp(0))

    async def run() -> int:
        membership.gate = asyncio.Event()
        answer = asyncio.ensure_future(produce_later(harness, {0: batch(7, 0)}, 9))
        await asyncio.sleep(0)
        assert membership.asked
        partition.append_marker(7, 0, commit=False, coordinator_epoch=0, now_ms=NOW_MS)
        membership.gate.set()
        return (await answer)[0].error_code

    assert asyncio.run(run()) == ErrorCode.INVALID_TXN_STATE
    assert partition.last_stable_offset == partition.log.end_offset == 1


def test_a_lead_that_was_lost_while_the_coordinator_is_asked_is_told_as_such(
    harness: Harness, membership: Membership
) -> None:
    """What diverged was cut off, and the guard with it; a producer that is told of a wrong state gives up for good."""
    partition = harness.partitions.get(tp(0))
    led = PartitionImage(partition.leader, partition.leader_epoch, partition.replicas, partition.isr)

    async def run() -> int:
        membership.gate = asyncio.Event()
        answer = asyncio.ensure_future(produce_later(harness, {0: batch(7, 0)}, 12))
        await asyncio.sleep(0)
        assert membership.asked
        partition.apply(replace(led, leader=99, leader_epoch=led.leader_epoch + 1))
        partition.log.truncate_to(0)
        partition.apply(replace(led, leader_epoch=led.leader_epoch + 2))
        membership.gate.set()
        return (await answer)[0].error_code

    partition.log.append_as_leader(batch(8, 0), partition.leader_epoch, NOW_MS)
    assert asyncio.run(run()) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.end_offset == 0


def first_of_the_next_transaction(harness: Harness, membership: Membership, marker_epoch: int, version: int = 2) -> int:
    """The error of a batch of epoch 1 if this marker comes while the coordinator is asked about it."""
    partition = harness.partitions.get(tp(0))
    assert produce_now(harness, {0: batch(7, 0)}, 12)[0].error_code == 0

    async def run() -> int:
        membership.gate = asyncio.Event()
        answer = asyncio.ensure_future(produce_later(harness, {0: batch(7, 0, epoch=1)}, 12))
        await asyncio.sleep(0)
        assert len(membership.asked) == 2
        partition.append_marker(
            7, marker_epoch, commit=True, coordinator_epoch=0, now_ms=NOW_MS, transaction_version=version
        )
        membership.gate.set()
        return (await answer)[0].error_code

    return asyncio.run(run())


def test_a_late_marker_of_the_last_transaction_does_not_refuse_the_next_one(
    harness: Harness, membership: Membership
) -> None:
    assert first_of_the_next_transaction(harness, membership, marker_epoch=1) == 0
    assert harness.partitions.get(tp(0)).open_transaction(7, 1) == 2


def test_a_marker_that_ends_the_next_transaction_fences_its_first_batch(
    harness: Harness, membership: Membership
) -> None:
    code = first_of_the_next_transaction(harness, membership, marker_epoch=2)
    assert code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert harness.partitions.get(tp(0)).open_transaction(7) is None


def test_a_marker_of_the_older_version_ends_a_transaction_of_its_own_epoch(
    harness: Harness, membership: Membership
) -> None:
    code = first_of_the_next_transaction(harness, membership, marker_epoch=1, version=1)
    assert code == ErrorCode.INVALID_TXN_STATE
    assert harness.partitions.get(tp(0)).open_transaction(7) is None


def test_a_late_answer_lets_the_batch_in(harness: Harness, membership: Membership) -> None:
    async def run() -> int:
        membership.gate = asyncio.Event()
        answer = asyncio.ensure_future(produce_later(harness, {0: batch(7, 0)}, 12))
        await asyncio.sleep(0)
        assert membership.asked
        membership.gate.set()
        return (await answer)[0].error_code

    assert asyncio.run(run()) == 0
    assert harness.partitions.get(tp(0)).open_transaction(7, 0) == 0


def test_a_batch_behind_a_refused_one_does_not_overtake_it(harness: Harness, membership: Membership) -> None:
    for version, producer_id in ((9, 7), (12, 8)):
        membership.answers = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        first = produce_now(harness, {0: batch(producer_id, 0)}, version)
        second = produce_now(harness, {0: batch(producer_id, 1)}, version)
        assert first[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        # Not out of order: told that, librdkafka gives up the epoch.
        assert second[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert produce_now(harness, {0: batch(producer_id, 0)}, version)[0].error_code == 0
        assert produce_now(harness, {0: batch(producer_id, 1)}, version)[0].error_code == 0


def test_a_request_has_one_producer_and_a_transactional_id(harness: Harness, membership: Membership) -> None:
    answers = produce_now(harness, {0: batch(7, 0), 1: batch(8, 0)}, 12)
    assert {answer.error_code for answer in answers.values()} == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    answers = produce_now(harness, {0: batch(7, 0)}, 12, transactional_id=None)
    assert answers[0].error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert harness.partitions.get(tp(0)).log.end_offset == 0
    assert membership.asked == []


def test_batches_outside_of_transactions_are_not_asked_about(harness: Harness, membership: Membership) -> None:
    assert produce_now(harness, {0: batch(7, 0, transactional=False)}, 12)[0].error_code == 0
    assert produce_now(harness, {1: batch(7, 0, transactional=False)}, 12, transactional_id=None)[1].error_code == 0
    assert membership.asked == []


def test_clients_may_not_write_markers(harness: Harness, membership: Membership) -> None:
    produce_now(harness, {0: batch(7, 0)}, 12)
    marker = encode_marker(7, 0, Marker(commit=True, coordinator_epoch=0), NOW_MS)
    assert produce_now(harness, {0: marker}, 12)[0].error_code == ErrorCode.INVALID_RECORD
    assert harness.partitions.get(tp(0)).open_transaction(7) == 0


def test_what_is_compressed_anew_is_verified_too(harness: Harness, membership: Membership) -> None:
    settings = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=TOPIC_RESOURCE,
                resource_name=TOPIC,
                configs=[AlterableConfig(name="compression.type", value="zstd")],
            )
        ]
    )
    harness.call(settings, IncrementalAlterConfigsResponse, 1)
    membership.answers = [ErrorCode.INVALID_TXN_STATE]
    assert produce_now(harness, {0: batch(7, 0)}, 12)[0].error_code == ErrorCode.INVALID_TXN_STATE
    assert produce_now(harness, {0: batch(7, 0)}, 12)[0].error_code == 0
    assert produce_now(harness, {0: batch(-1, -1, transactional=False)}, 12, transactional_id=None)[0].error_code == 0
    log = harness.partitions.get(tp(0)).log
    headers = [header for _, header in iterate_batches(log.read(0, 10_000, 2, min_one_batch=True).read())]
    assert [(header.codec, header.is_transactional) for header in headers] == [(Codec.ZSTD, True), (Codec.ZSTD, False)]


def test_producers_are_described(harness: Harness, membership: Membership) -> None:
    produce_now(harness, {0: batch(7, 0)}, 12)
    produce_now(harness, {0: batch(9, 0, epoch=3, transactional=False)}, 12, transactional_id=None)
    harness.partitions.get(tp(0)).append_marker(5, 1, commit=True, coordinator_epoch=4, now_ms=NOW_MS)
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=TOPIC, partition_indexes=[0, 1, 2]), TopicRequest(name="?", partition_indexes=[0])]
    )
    response = harness.call(request, DescribeProducersResponse, 0)
    full, empty, missing = response.topics[0].partitions
    rows = [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset)
        for p in full.active_producers
    ]
    assert rows == [(7, 0, 0, -1, 0), (9, 3, 0, -1, NO_OFFSET), (5, 1, -1, 4, NO_OFFSET)]
    assert empty.active_producers == []
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert response.topics[1].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
