"""Who has used up a quota is held up: bytes fetched, and partitions created and deleted."""

import asyncio

import pytest
from tests.unit.broker.handlers.conftest import Harness
from tests.unit.broker.handlers.partition_requests import TOPIC, batch, create_topic, produce_later, to_bytes

from ottla.broker.handlers import fetch
from ottla.broker.handlers.context import Call, Raw
from ottla.broker.session import Session
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

ANYBODY = (("users", "ANONYMOUS"),)
RECORD_BYTES = 1000


@pytest.fixture
def filled(harness: Harness) -> Harness:
    """Ten batches of about a kilobyte in one partition."""
    create_topic(harness, 1)

    async def fill() -> None:
        for number in range(10):
            records = batch(-1, -1, transactional=False, value=bytes([number]) * RECORD_BYTES)
            await produce_later(harness, {0: records}, 9, None)

    asyncio.run(fill())
    return harness


def ask(
    harness: Harness, session: Session, offset: int, *, max_bytes: int = 10**6, session_id: int = 0, epoch: int = -1,
    replica_id: int = -1, min_bytes: int = 1,
) -> tuple[FetchResponse, Call, int]:  # fmt: skip
    request = FetchRequest(
        replica_id=replica_id, max_wait_ms=0, min_bytes=min_bytes, max_bytes=max_bytes, session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(topic=TOPIC, partitions=[FetchPartition(0, fetch_offset=offset, partition_max_bytes=10**6)])
        ],
    )  # fmt: skip
    call = Call(ApiKey.FETCH, 12, "app", session)

    async def run() -> Raw:
        outcome = fetch.handle(harness.broker, call, decode(FetchRequest, 12, encode(request, 12)))
        assert isinstance(outcome, Raw)
        return outcome

    raw = asyncio.run(run())
    return decode(FetchResponse, 12, to_bytes(raw)), call, raw.size


def bytes_of(response: FetchResponse) -> int:
    return sum(len(part.records or b"") for topic in response.responses for part in topic.partitions)


def test_a_consumer_over_its_quota_gets_an_empty_answer_and_is_charged_nothing(filled: Harness) -> None:
    filled.broker.quotas.use({ANYBODY: {"consumer_byte_rate": "500"}})
    session = Session("PLAINTEXT", "h")
    response, call, size = ask(filled, session, 0)
    assert 3 * RECORD_BYTES < bytes_of(response) <= 5_000, "no more than ten seconds' worth at once"
    assert call.throttle_ms < 500, "for what is around the records"
    response, call, _ = ask(filled, session, 4)
    assert response.responses == []
    wait_ms = call.throttle_ms
    assert wait_ms > 0
    budget = filled.broker.quotas.fetch and filled.broker.quotas.fetch.of(session.entity, 0)
    assert budget
    assert budget.used(int(filled.clock.monotonic() * 1000)) == size, "the answer that was not given does not count"
    filled.clock.advance(wait_ms)
    response, call, _ = ask(filled, session, 4)
    assert bytes_of(response) > 0 or call.throttle_ms < wait_ms


def test_a_batch_larger_than_the_quota_comes_all_the_same_and_is_waited_for(filled: Harness) -> None:
    filled.broker.quotas.use({ANYBODY: {"consumer_byte_rate": "10"}})
    response, call, _ = ask(filled, Session("PLAINTEXT", "h"), 0)
    assert RECORD_BYTES < bytes_of(response) < 2 * RECORD_BYTES
    assert 90_000 < call.throttle_ms < 120_000
    response, call, _ = ask(filled, Session("PLAINTEXT", "h"), 1)
    assert bytes_of(response) == 0
    assert call.throttle_ms > 90_000


def test_whoever_asks_for_more_than_it_may_have_does_not_wait_for_it(filled: Harness) -> None:
    filled.broker.quotas.use({ANYBODY: {"consumer_byte_rate": "500"}})
    response, _, _ = ask(filled, Session("PLAINTEXT", "h"), 0, min_bytes=9_000)
    assert 3 * RECORD_BYTES < bytes_of(response) <= 5_000


def test_a_session_goes_on_behind_an_empty_answer_but_does_not_begin_with_one(filled: Harness) -> None:
    session = Session("PLAINTEXT", "h")
    begun, _, _ = ask(filled, session, 0, max_bytes=1, epoch=0)
    assert begun.session_id != 0
    filled.broker.quotas.use({ANYBODY: {"consumer_byte_rate": "100"}})
    assert bytes_of(ask(filled, session, 0, session_id=begun.session_id, epoch=1)[0]) > 0
    empty, call, _ = ask(filled, session, 1, session_id=begun.session_id, epoch=2)
    assert (empty.session_id, empty.responses) == (begun.session_id, [])
    assert call.throttle_ms
    filled.clock.advance(60_000)
    assert bytes_of(ask(filled, session, 1, session_id=begun.session_id, epoch=3)[0]) > 0, "nothing was lost"
    before = len(filled.broker.fetch_sessions)
    filled.broker.fetch_sessions._new_id = lambda: 77
    new, call, _ = ask(filled, session, 1, epoch=0)
    assert (new.session_id, new.responses) == (0, [])
    assert call.throttle_ms
    assert len(filled.broker.fetch_sessions) == before


def test_followers_are_not_held_up(filled: Harness) -> None:
    filled.broker.quotas.use({ANYBODY: {"consumer_byte_rate": "1"}})
    for _ in range(3):
        response, call, _ = ask(filled, Session("PLAINTEXT", "h"), 0, replica_id=2)
        assert [topic.topic for topic in response.responses] == [TOPIC]
        assert (call.throttle_ms, call.exempt) == (0, True)


# Partitions created and deleted


def topics(*sizes: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name=f"t{number}-{size}", num_partitions=size, replication_factor=1)
            for number, size in enumerate(sizes)
        ],
        timeout_ms=1000,
    )


def test_topics_are_refused_one_by_one_while_the_bucket_is_in_debt(harness: Harness) -> None:
    harness.broker.quotas.use({ANYBODY: {"controller_mutation_rate": "1"}})
    session = Session("PLAINTEXT", "h")
    response, call = harness.ask(topics(10, 5, 1), CreateTopicsResponse, 6, session)
    assert [topic.error_code for topic in response.topics] == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert call.throttle_ms == 4_000, "11 tokens, 15 taken, one a second"
    harness.clock.advance(3_900)
    deletion = DeleteTopicsRequest(topic_names=["t1-5"], timeout_ms=1000)
    deleted, call = harness.ask(deletion, DeleteTopicsResponse, 5, session)
    assert deleted.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert call.throttle_ms == 100
    harness.clock.advance(100)
    deleted, call = harness.ask(deletion, DeleteTopicsResponse, 5, session)
    assert (deleted.responses[0].error_code, call.throttle_ms) == (0, 0)
    more = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="t0-10", count=11, assignments=None)], timeout_ms=1000
    )
    refused, call = harness.ask(more, CreatePartitionsResponse, 3, session)
    assert refused.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert call.throttle_ms == 5_000


def test_old_clients_and_topics_that_come_by_themselves_wait_afterwards(harness: Harness) -> None:
    harness.broker.quotas.use({ANYBODY: {"controller_mutation_rate": "1"}})
    session = Session("PLAINTEXT", "h")
    response, call = harness.ask(topics(12, 3), CreateTopicsResponse, 5, session)
    assert [topic.error_code for topic in response.topics] == [0, 0]
    assert call.throttle_ms == 4_000
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)
    described, call = harness.ask(asked, MetadataResponse, 9, session)
    assert described.topics[0].error_code == 0
    assert call.throttle_ms == 5_000
    more = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="new", count=3, assignments=None)], timeout_ms=1000
    )
    grown, call = harness.ask(more, CreatePartitionsResponse, 2, session)
    assert grown.results[0].error_code == 0
    assert call.throttle_ms == 7_000, "only those that are new count"
    deleted, call = harness.ask(
        DeleteTopicsRequest(topic_names=["new"], timeout_ms=1000), DeleteTopicsResponse, 4, session
    )
    assert deleted.responses[0].error_code == 0
    assert call.throttle_ms == 10_000


def test_what_fails_costs_nothing(harness: Harness) -> None:
    harness.broker.quotas.use({ANYBODY: {"controller_mutation_rate": "1"}})
    session = Session("PLAINTEXT", "h")
    for _ in range(3):
        harness.ask(topics(5), CreateTopicsResponse, 6, session)
    assert harness.broker.quotas.mutations is not None
    budget = harness.broker.quotas.mutations.of(session.entity, 0)
    assert budget is not None
    assert budget.tokens(int(harness.clock.monotonic() * 1000)) == 6
