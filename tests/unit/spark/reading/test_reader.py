"""What the streaming reader answers Spark, asked directly: the moments that a running query hits by chance only."""

import asyncio
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from confluent_kafka import Consumer
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.spark.feeding import Records, create_topic

from ottla.client.admin import delete_topic
from ottla.client.cluster import Cluster
from ottla.client.groups import group_offsets
from ottla.client.offsets import delete_records
from ottla.model.errors import ApiError
from ottla.model.names import TopicPartition
from ottla.spark.errors import DataLoss, InvalidOption
from ottla.spark.reading.offsets import OffsetRange
from ottla.spark.reading.reader import BatchReader, StreamReader
from ottla.spark.source import OttlaDataSource
from ottla.testing import RunningBroker
from ottla.testing import broker as started_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with started_broker() as running:
        yield running


@pytest.fixture(scope="module")
def records(broker: RunningBroker) -> Records:
    return Records(broker.bootstrap)


@pytest.fixture
def topic(broker: RunningBroker, unique: Callable[[str], str]) -> str:
    name = unique("topic")
    create_topic(broker.bootstrap, name)
    return name


def reader(broker: RunningBroker, topic: str, **options: str) -> StreamReader:
    return StreamReader({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **options})


def ranges(found: StreamReader, start: dict[str, object], end: dict[str, object]) -> list[tuple[int, int]]:
    parts: list[OffsetRange] = [part for task in found.partitions(start, end) for part in task.value]
    return [(part.start, part.end) for part in parts]


def test_latest_is_resolved_once(broker: RunningBroker, records: Records, topic: str) -> None:
    reading = reader(broker, topic)
    first = reading.initialOffset()
    records.send(topic, ["a"])
    assert reading.initialOffset() == first == {topic: {"0": 0}}


def test_a_restart_before_the_first_commit_changes_nothing(broker: RunningBroker, records: Records, topic: str) -> None:
    before = reader(broker, topic)
    initial = before.initialOffset()
    records.send(topic, ["a", "b"])
    end = before.latestOffset(initial, ReadAllAvailable())
    records.send(topic, ["c"])
    after = reader(broker, topic)
    assert after.initialOffset() == {topic: {"0": 3}}  # what latest means by now
    assert ranges(after, after.initialOffset(), end) == [(0, 2)]
    assert ranges(after, end, after.latestOffset(end, ReadAllAvailable())) == [(2, 3)]


def test_without_new_records_the_offset_stays_the_same_text(
    broker: RunningBroker, records: Records, topic: str
) -> None:
    reading = reader(broker, topic, groupIdPrefix="mine")
    records.send(topic, ["a"])
    end = reading.latestOffset({topic: {"0": 0}}, ReadAllAvailable())
    assert reading.latestOffset(end, ReadAllAvailable()) == end
    assert ranges(reading, end, end) == []


def test_records_that_come_before_the_start_is_known_are_no_loss_for_available_now(
    broker: RunningBroker, records: Records, topic: str
) -> None:
    reading = reader(broker, topic)
    reading.prepareForTriggerAvailableNow()
    records.send(topic, ["a"])
    initial = reading.initialOffset()
    assert initial == {topic: {"0": 1}}
    end = reading.latestOffset(initial, ReadAllAvailable())
    assert end[topic] == {"0": 1}
    assert ranges(reading, initial, end) == []


def test_available_now_ends_where_the_log_ended_when_it_began(
    broker: RunningBroker, records: Records, topic: str
) -> None:
    reading = reader(broker, topic, maxOffsetsPerTrigger="2")
    records.send(topic, ["a", "b", "c"])
    reading.prepareForTriggerAvailableNow()
    records.send(topic, ["d"])
    first = reading.latestOffset({topic: {"0": 0}}, ReadMaxRows(2))
    second = reading.latestOffset(first, ReadMaxRows(2))
    assert (first[topic], second[topic]) == ({"0": 2}, {"0": 3})
    assert reading.latestOffset(second, ReadMaxRows(2)) == second


def test_a_topic_that_became_shorter_is_still_a_loss_for_available_now(
    broker: RunningBroker, records: Records, topic: str
) -> None:
    records.send(topic, ["a"])
    reading = reader(broker, topic)
    reading.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match="ends at 1, and was read up to 5"):
        reading.latestOffset({topic: {"0": 5}}, ReadAllAvailable())


def make_again(broker: RunningBroker, topic: str) -> None:
    async def delete() -> None:
        async with Cluster(broker.bootstrap) as cluster:
            await delete_topic(cluster, topic)

    asyncio.run(delete())
    create_topic(broker.bootstrap, topic)


@pytest.mark.parametrize("records_in_new", [0, 2, 5])
@pytest.mark.parametrize("available_now", [False, True])
def test_a_topic_made_again_while_the_query_did_not_run_is_known_by_its_id(
    broker: RunningBroker, records: Records, topic: str, records_in_new: int, available_now: bool
) -> None:
    """However long the new one is: also as long as the old one was, so that the offsets look the same."""
    records.send(topic, ["a", "b"])
    before = reader(broker, topic, startingOffsets="earliest")
    end = before.latestOffset(before.initialOffset(), ReadAllAvailable())
    make_again(broker, topic)
    Records(broker.bootstrap).send(topic, ["x"] * records_in_new)
    strict = reader(broker, topic)
    if available_now:
        strict.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match=f"the topic `{topic}` was deleted and made again"):
        strict.latestOffset(end, ReadAllAvailable())
    lenient = reader(broker, topic, failOnDataLoss="false")
    if available_now:
        lenient.prepareForTriggerAvailableNow()
    after = lenient.latestOffset(end, ReadAllAvailable())
    assert ranges(lenient, end, after) == ([(0, records_in_new)] if records_in_new else [])
    assert lenient.latestOffset(after, ReadAllAvailable()) == after  # told once
    assert reader(broker, topic).latestOffset(after, ReadAllAvailable()) == after


def test_a_batch_that_is_replayed_is_not_read_from_another_topic_of_the_same_name(
    broker: RunningBroker, records: Records, topic: str
) -> None:
    records.send(topic, ["a", "b"])
    before = reader(broker, topic, startingOffsets="earliest")
    initial = before.initialOffset()
    end = before.latestOffset(initial, ReadAllAvailable())
    make_again(broker, topic)
    Records(broker.bootstrap).send(topic, ["x", "y"])
    with pytest.raises(DataLoss, match="was deleted and made again"):
        reader(broker, topic).partitions(initial, end)


def test_an_older_checkpoint_has_no_ids_and_goes_on(broker: RunningBroker, records: Records, topic: str) -> None:
    records.send(topic, ["a", "b"])
    reading = reader(broker, topic)
    assert reading.latestOffset({topic: {"0": 2}}, ReadAllAvailable()) == {topic: {"0": 2}}
    records.send(topic, ["c"])
    end = reading.latestOffset({topic: {"0": 2}}, ReadAllAvailable())
    assert end[topic] == {"0": 3}
    assert topic in str(end["#topics"])
    make_again(broker, topic)
    with pytest.raises(DataLoss, match="was deleted and made again"):
        reading.latestOffset({topic: {"0": 3}}, ReadAllAvailable())


def test_a_new_partition_that_does_not_begin_at_0_is_a_loss(
    broker: RunningBroker, records: Records, topic: str
) -> None:
    records.send(topic, ["a", "b"])

    async def delete() -> None:
        async with Cluster(broker.bootstrap) as cluster:
            await delete_records(cluster, {TopicPartition(topic, 0): 1})

    asyncio.run(delete())
    with pytest.raises(DataLoss, match="begins at 1 instead of 0"):
        reader(broker, topic).latestOffset({}, ReadAllAvailable())
    lenient = reader(broker, topic, failOnDataLoss="false")
    end = lenient.latestOffset({}, ReadAllAvailable())
    assert ranges(lenient, {}, end) == [(1, 2)]


def test_a_generated_group_is_kept_from_the_first_batch_on(broker: RunningBroker, topic: str) -> None:
    reading = reader(broker, topic, groupIdPrefix="mine")
    empty = reading.latestOffset(reading.initialOffset(), ReadAllAvailable())
    assert str(empty["#group"]).startswith("mine-")
    again = reader(broker, topic, groupIdPrefix="mine")
    assert again.latestOffset(empty, ReadAllAvailable()) == empty


def test_the_group_is_told_once_and_not_again(broker: RunningBroker, records: Records, topic: str) -> None:
    async def committed() -> dict[TopicPartition, int]:
        async with Cluster(broker.bootstrap) as cluster:
            return {tp: found.offset for tp, found in (await group_offsets(cluster, topic)).items()}

    records.send(topic, ["a", "b"])
    reading = reader(broker, topic, groupId=topic)
    end = reading.latestOffset({topic: {"0": 0}}, ReadAllAvailable())
    assert asyncio.run(committed()) == {TopicPartition(topic, 0): 0}  # the batch up to 2 is only planned
    reading.latestOffset(end, ReadAllAvailable())
    assert asyncio.run(committed()) == {TopicPartition(topic, 0): 2}


def test_a_group_with_members_is_refused(
    broker: RunningBroker, records: Records, topic: str, unique: Callable[[str], str]
) -> None:
    records.send(topic, ["a"])
    group = unique("members")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    assert consumer.poll(30) is not None
    try:
        with pytest.raises(ApiError, match="it has members, and a query shares its group with nobody"):
            reader(broker, topic, groupId=group).latestOffset({topic: {"0": 0}}, ReadAllAvailable())
    finally:
        consumer.close()


def test_a_topic_that_is_gone_is_told_as_such_by_a_query_with_a_group_too(
    broker: RunningBroker, records: Records, topic: str
) -> None:
    async def delete() -> None:
        async with Cluster(broker.bootstrap) as cluster:
            await delete_topic(cluster, topic)

    asyncio.run(delete())
    with pytest.raises(DataLoss, match=f"{topic}-0 is gone"):
        reader(broker, topic, groupId=topic).latestOffset({topic: {"0": 3}}, ReadAllAvailable())


def test_a_start_behind_the_end_is_a_mistake(broker: RunningBroker, records: Records, topic: str) -> None:
    records.send(topic, ["a", "b", "c"])
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": f'{{"{topic}":{{"0":2}}}}',
        "endingOffsets": f'{{"{topic}":{{"0":1}}}}',
    }
    with pytest.raises(InvalidOption, match="starts at 2, behind its end at 1"):
        BatchReader(options).partitions()


def test_a_read_that_is_planned_in_its_task_finds_what_is_there_when_it_is_read(
    broker: RunningBroker, records: Records, topic: str
) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "planInTask": "true"}
    source = OttlaDataSource(options)
    reading = source.reader(source.schema())
    (whole,) = reading.partitions()
    for count in range(3):
        assert sum(batch.num_rows for batch in reading.read(whole) if isinstance(batch, pa.RecordBatch)) == count
        records.send(topic, ["x"])
