"""Fetching a range of a partition from a real broker, and from scripted ones where a real one will not misbehave."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
from tests.unit.client.conftest import ScriptedBroker, scripted_broker

from ottla.client import admin, offsets
from ottla.client.cluster import Cluster
from ottla.client.fetch import (
    Fetched,
    FetchSettings,
    FetchStalled,
    OffsetOutOfRange,
    PartitionFetcher,
    TopicReplaced,
)
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.frames import RequestHeader
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.records import NewRecord, decode_batch, encode_batch, iterate_batches
from ottla.protocol.schema import TopLevel
from ottla.testing import RunningBroker
from ottla.testing import broker as started_broker

T = TypeVar("T")
SMALL = FetchSettings(partition_max_bytes=1, max_wait_ms=20)
"""One batch per fetch: the broker always gives at least one."""


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with started_broker() as running:
        yield running


async def write(cluster: Cluster, partition: TopicPartition, values: list[bytes]) -> None:
    """One batch per value."""
    for value in values:
        batch = encode_batch([NewRecord(b"k", value, 1)])
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(
                    name=partition.topic,
                    partition_data=[PartitionProduceData(index=partition.partition, records=batch)],
                )
            ],
        )
        leader = await cluster.leader(partition)
        response = await cluster.call(request, ProduceResponse, node=leader.node, max_version=12)
        assert response.responses[0].partition_responses[0].error_code == 0


def values_in(fetched: Fetched) -> list[bytes | None]:
    return [
        record.value
        for position, _ in iterate_batches(fetched.records)
        for record in decode_batch(fetched.records, position)
    ]


async def values_of(fetcher: PartitionFetcher, start: int, end: int) -> list[bytes | None]:
    return [value async for fetched in fetcher.read(start, end) for value in values_in(fetched)]


@asynccontextmanager
async def topic(bootstrap: str, name: str, values: list[bytes]) -> AsyncIterator[tuple[Cluster, TopicPartition]]:
    async with Cluster(bootstrap, patience_s=60.0) as cluster:
        await admin.create_topic(cluster, name, partitions=1)
        partition = TopicPartition(name, 0)
        await write(cluster, partition, values)
        yield cluster, partition


def test_a_range_is_read_batch_by_batch(broker: RunningBroker, unique: Callable[[str], str]) -> None:
    async def scenario() -> tuple[list[bytes | None], list[bytes | None]]:
        async with topic(broker.bootstrap, unique("range"), [b"a", b"b", b"c", b"d"]) as (cluster, partition):
            fetcher = PartitionFetcher(cluster, partition, SMALL)
            whole = await values_of(PartitionFetcher(cluster, partition, FetchSettings()), 0, 4)
            return whole, await values_of(fetcher, 1, 3)

    assert asyncio.run(scenario()) == ([b"a", b"b", b"c", b"d"], [b"b", b"c"])


def test_kafka_before_3_1_tells_ids_of_topics_and_fetches_by_name(
    broker: RunningBroker, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FetchRequest, "MAX_VERSION", 12)

    async def scenario() -> list[bytes | None]:
        async with topic(broker.bootstrap, unique("by-name"), [b"a", b"b"]) as (cluster, partition):
            return await values_of(PartitionFetcher(cluster, partition, SMALL), 0, 2)

    assert asyncio.run(scenario()) == [b"a", b"b"]


def test_a_fetch_tells_where_the_log_begins_and_ends(broker: RunningBroker, unique: Callable[[str], str]) -> None:
    async def scenario() -> Fetched:
        async with topic(broker.bootstrap, unique("ends"), [b"a", b"b", b"c"]) as (cluster, partition):
            await offsets.delete_records(cluster, {partition: 1})
            return await PartitionFetcher(cluster, partition, SMALL).fetch(1)

    fetched = asyncio.run(scenario())
    assert (fetched.log_start_offset, fetched.high_watermark, fetched.last_stable_offset) == (1, 3, 3)
    assert fetched.next_offset == 2


def test_offsets_that_are_gone_are_an_error_that_tells_where_to_go_on(
    broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    async def scenario() -> None:
        async with topic(broker.bootstrap, unique("gone"), [b"a", b"b", b"c"]) as (cluster, partition):
            await offsets.delete_records(cluster, {partition: 2})
            await PartitionFetcher(cluster, partition, SMALL).fetch(0)

    with pytest.raises(OffsetOutOfRange) as caught:
        asyncio.run(scenario())
    assert (caught.value.offset, caught.value.log_start_offset) == (0, 2)


def test_a_killed_broker_is_waited_for(unique: Callable[[str], str]) -> None:
    async def scenario(running: RunningBroker) -> list[bytes | None]:
        async with topic(running.bootstrap, unique("kill"), [b"a", b"b", b"c"]) as (cluster, partition):
            fetches = PartitionFetcher(cluster, partition, SMALL).read(0, 3)
            found = values_in(await anext(fetches))
            running.kill()
            restarting = asyncio.create_task(asyncio.to_thread(running.restart))
            async for fetched in fetches:
                found += values_in(fetched)
            await restarting
            return found

    with started_broker() as running:
        assert asyncio.run(scenario(running)) == [b"a", b"b", b"c"]


def test_a_topic_made_again_is_not_taken_for_the_old_one(broker: RunningBroker, unique: Callable[[str], str]) -> None:
    async def scenario() -> None:
        name = unique("again")
        async with topic(broker.bootstrap, name, [b"a", b"b", b"c"]) as (cluster, partition):
            fetcher = PartitionFetcher(cluster, partition, SMALL)
            await fetcher.fetch(0)
            await admin.delete_topic(cluster, name)
            await admin.create_topic(cluster, name, partitions=1)
            await write(cluster, partition, [b"x", b"y", b"z"])
            await fetcher.fetch(1)

    with pytest.raises(TopicReplaced, match="deleted and made again"):
        asyncio.run(scenario())


def test_a_topic_that_does_not_exist_is_an_error(broker: RunningBroker) -> None:
    async def scenario() -> None:
        async with Cluster(broker.bootstrap) as cluster:
            await PartitionFetcher(cluster, TopicPartition("nobody-made-this", 0), SMALL).fetch(0)

    with pytest.raises(ApiError) as caught:
        asyncio.run(scenario())
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# Scripted brokers.

PARTITION = TopicPartition("t", 0)


class Scripted:
    """Two brokers, of which `leader` leads the partition; each answers fetches as `answer` says."""

    def __init__(self, answer: Callable[[int, FetchRequest], PartitionData | None]) -> None:
        self.leader = 1
        self.epoch = 5
        self.brokers: dict[int, ScriptedBroker] = {}
        self.asked: list[tuple[int, int]] = []
        self._answer = answer

    def for_broker(self, node: int) -> Callable[[RequestHeader, TopLevel], TopLevel]:
        def answer(_header: RequestHeader, request: TopLevel) -> TopLevel:
            if isinstance(request, FetchRequest):
                asked = request.topics[0].partitions[0]
                self.asked.append((node, asked.fetch_offset))
                found = self._answer(node, request)
                if found is None:
                    return FetchResponse(throttle_time_ms=1)
                return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[found])])
            return self._metadata()

        return answer

    def _metadata(self) -> MetadataResponse:
        partition = MetadataResponsePartition(partition_index=0, leader_id=self.leader, leader_epoch=self.epoch)
        return MetadataResponse(
            cluster_id="scripted",
            brokers=[
                MetadataResponseBroker(node_id=node, host="127.0.0.1", port=broker.port)
                for node, broker in self.brokers.items()
            ],
            topics=[MetadataResponseTopic(name="t", partitions=[partition])],
        )

    def run(self, work: Callable[[Cluster], Awaitable[T]]) -> T:
        async def scenario() -> T:
            async with (
                scripted_broker(self.for_broker(1)) as one,
                scripted_broker(self.for_broker(2)) as two,
                Cluster(f"127.0.0.1:{one.port}") as cluster,
            ):
                self.brokers = {1: one, 2: two}
                return await work(cluster)

        return asyncio.run(scenario())


def records(first: int, values: list[bytes]) -> bytes:
    return bytes(encode_batch([NewRecord(None, value, 1) for value in values], base_offset=first))


def test_fetching_follows_the_leader() -> None:
    def answer(node: int, request: FetchRequest) -> PartitionData:
        if node == 1:
            scripted.leader, scripted.epoch = 2, 6
            return PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        epoch = request.topics[0].partitions[0].current_leader_epoch
        return PartitionData(high_watermark=1, last_stable_offset=1, records=records(0, [str(epoch).encode()]))

    scripted = Scripted(answer)
    found = scripted.run(lambda cluster: values_of(PartitionFetcher(cluster, PARTITION, SMALL), 0, 1))
    assert found == [b"6"]
    assert scripted.asked == [(1, 0), (2, 0)]


def test_a_replica_that_is_nearer_is_read_from_until_it_fails() -> None:
    def answer(node: int, request: FetchRequest) -> PartitionData:
        offset = request.topics[0].partitions[0].fetch_offset
        assert request.rack_id == "west"
        if node == 1 and offset == 0:
            return PartitionData(preferred_read_replica=2, high_watermark=3, last_stable_offset=3)
        if node == 2 and offset == 2:
            return PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        return PartitionData(high_watermark=3, last_stable_offset=3, records=records(offset, [b"%d" % node]))

    async def work(cluster: Cluster) -> list[bytes | None]:
        fetcher = PartitionFetcher(cluster, PARTITION, FetchSettings(rack="west", max_wait_ms=1))
        await fetcher.fetch(0)
        return [values_in(await fetcher.fetch(offset))[0] for offset in (0, 1, 2)]

    assert Scripted(answer).run(work) == [b"2", b"2", b"1"]


def test_the_next_fetch_is_under_way_while_one_is_used() -> None:
    def answer(_node: int, request: FetchRequest) -> PartitionData:
        offset = request.topics[0].partitions[0].fetch_offset
        return PartitionData(high_watermark=9, last_stable_offset=9, records=records(offset, [b"v"]))

    async def work(cluster: Cluster) -> list[tuple[int, int]]:
        fetches = PartitionFetcher(cluster, PARTITION, SMALL).read(0, 9)
        await anext(fetches)
        await scripted.brokers[1].has_seen(3)  # metadata, the fetch that is used, and the next one
        seen = list(scripted.asked)
        await fetches.aclose()
        return seen

    scripted = Scripted(answer)
    assert scripted.run(work) == [(1, 0), (1, 1)]


def test_offsets_that_compaction_took_end_a_range() -> None:
    def answer(_node: int, request: FetchRequest) -> PartitionData:
        offset = request.topics[0].partitions[0].fetch_offset
        held = records(0, [b"a"]) if offset == 0 else b""
        return PartitionData(high_watermark=50, last_stable_offset=50, records=held)

    assert Scripted(answer).run(lambda cluster: values_of(PartitionFetcher(cluster, PARTITION, SMALL), 0, 50)) == [b"a"]


def test_a_log_that_ends_too_early_is_an_error_not_silence() -> None:
    def answer(_node: int, _request: FetchRequest) -> PartitionData:
        return PartitionData(high_watermark=50, last_stable_offset=3)

    impatient = SMALL._replace(stall_s_max=0.05)
    with pytest.raises(FetchStalled, match="can be read up to 3, not 50"):
        Scripted(answer).run(lambda cluster: values_of(PartitionFetcher(cluster, PARTITION, impatient), 3, 50))


def test_an_answer_to_a_client_over_its_quota_is_not_taken_for_a_gap() -> None:
    def answer(_node: int, request: FetchRequest) -> PartitionData | None:
        offset = request.topics[0].partitions[0].fetch_offset
        if scripted.asked.count((1, offset)) < 3:
            return None
        return PartitionData(high_watermark=2, last_stable_offset=2, records=records(offset, [b"%d" % offset]))

    scripted = Scripted(answer)
    found = scripted.run(lambda cluster: values_of(PartitionFetcher(cluster, PARTITION, SMALL), 0, 2))
    assert found == [b"0", b"1"]


def test_a_batch_that_is_cut_short_is_an_error_not_a_gap() -> None:
    def answer(_node: int, _request: FetchRequest) -> PartitionData:
        return PartitionData(high_watermark=2, last_stable_offset=2, records=records(0, [b"a", b"b"])[:-1])

    with pytest.raises(FetchStalled, match=r"raise max\.partition\.fetch\.bytes"):
        Scripted(answer).run(lambda cluster: values_of(PartitionFetcher(cluster, PARTITION, SMALL), 0, 2))
