"""How many replicas must have a write, who may lead, and where replicas stand."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator

import aiokafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from tests.cluster.reassigning import reassign
from tests.cluster.traffic import Traffic

from ottla.testing.cluster import RunningCluster
from ottla.testing.load import RECONNECT, quiet, read_log
from ottla.testing.waiting import wait_until


def make(cluster: RunningCluster, topic: str, replicas: list[int], **config: str) -> None:
    named = {name.replace("_", "."): value for name, value in config.items()}
    new = NewTopic(topic, 1, replica_assignment=[replicas], config=named)
    cluster.create_topic(new)
    cluster.wait_until_settled(topic)


class OneByOne:
    """A producer that is told of every refusal: it does not retry by itself."""

    def __init__(self, cluster: RunningCluster, topic: str, *, acks: str = "all", timeout_ms: int = 20_000) -> None:
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "acks": acks,
                "message.send.max.retries": 0,
                "message.timeout.ms": timeout_ms,
                "linger.ms": 0,
                **RECONNECT,
            },
            logger=quiet,
        )

    def send(self, value: bytes) -> int:
        """The offset; KafkaException when it was refused."""
        outcome: list[tuple[KafkaError | None, int]] = []
        self._producer.produce(
            self._topic,
            value,
            partition=0,
            on_delivery=lambda error, message: outcome.append((error, message.offset())),
        )
        self._producer.flush(30)
        ((error, offset),) = outcome
        if error is not None:
            raise KafkaException(error)
        return offset

    def send_until_taken(self, value: bytes) -> None:
        def taken() -> bool:
            try:
                self.send(value)
            except KafkaException:
                return False
            return True

        wait_until(taken, f"{value!r} is taken", seconds=60)


def values(cluster: RunningCluster, topic: str) -> list[bytes]:
    return [value for _, _, value in read_log(cluster.bootstrap, topic, 1)]


def test_too_few_in_sync_refuse_before_anything_is_written(
    three_brokers: RunningCluster, unique: Callable[[str], str]
) -> None:
    topic = unique("refused")
    make(three_brokers, topic, [1, 2, 3], min_insync_replicas="2")
    producer = OneByOne(three_brokers, topic)
    producer.send_until_taken(b"three in sync")
    three_brokers.brokers[2].kill()
    three_brokers.brokers[3].kill()
    three_brokers.wait_for_isr(topic, {1})
    with pytest.raises(KafkaException) as refused:
        producer.send(b"one in sync")
    assert refused.value.args[0].code() == KafkaError.NOT_ENOUGH_REPLICAS
    OneByOne(three_brokers, topic, acks="1").send(b"the leader alone will do")
    three_brokers.start()
    three_brokers.wait_until_settled(topic)
    producer.send_until_taken(b"three again")
    assert values(three_brokers, topic) == [b"three in sync", b"the leader alone will do", b"three again"]


def test_replicas_that_fall_behind_meanwhile_are_told_after(
    three_brokers: RunningCluster, unique: Callable[[str], str]
) -> None:
    """Both followers stall with the record on its way: it is in the leader's log, and the producer hears of it."""
    topic = unique("after")
    make(three_brokers, topic, [1, 2, 3], min_insync_replicas="2")
    producer = OneByOne(three_brokers, topic)
    producer.send_until_taken(b"first")
    assert three_brokers.links is not None
    three_brokers.links.cut_off(1)
    with pytest.raises(KafkaException) as told:
        producer.send(b"second")
    assert told.value.args[0].code() == KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    three_brokers.wait_for_isr(topic, {1})  # both are alive, and one is kept for what it has: all the same it is late
    three_brokers.links.heal()
    three_brokers.wait_until_settled(topic)
    assert values(three_brokers, topic) == [b"first", b"second"], "it was in the log of a leader that stayed"


@pytest.mark.parametrize("allowed", [False, True], ids=["refused", "allowed"])
def test_a_replica_that_was_not_in_sync(
    three_brokers: RunningCluster, unique: Callable[[str], str], *, allowed: bool
) -> None:
    """May it lead when it alone is left? By default not; where the topic says so, and then the rest is gone."""
    topic = unique("unclean")
    make(three_brokers, topic, [1, 2], unclean_leader_election_enable=str(allowed).lower())
    producer = OneByOne(three_brokers, topic)
    producer.send_until_taken(b"both have this")
    three_brokers.brokers[2].kill()
    three_brokers.wait_for_isr(topic, {1})
    producer.send_until_taken(b"only broker 1 has this")
    three_brokers.brokers[1].kill()
    three_brokers.brokers[2].start()
    if allowed:
        wait_until(lambda: three_brokers.leader_of(topic) == 2, "broker 2 leads", seconds=30)
        producer.send_until_taken(b"taken by broker 2")
        three_brokers.brokers[1].start()
        three_brokers.wait_until_settled(topic)
        assert values(three_brokers, topic) == [b"both have this", b"taken by broker 2"]
        return
    # Broker 1 counts as alive until its session ends; then nobody leads, although broker 2 is there.
    wait_until(lambda: three_brokers.metadata().brokers.keys() == {2, 3}, "broker 2 is back, 1 gone", seconds=30)
    wait_until(lambda: three_brokers.partitions(topic)[topic, 0].leader == -1, "nobody leads", seconds=30)
    three_brokers.brokers[1].start()
    three_brokers.wait_until_settled(topic)
    assert values(three_brokers, topic) == [b"both have this", b"only broker 1 has this"]


def test_positions_of_a_group_survive_its_coordinator(
    three_brokers: RunningCluster, unique: Callable[[str], str]
) -> None:
    """The leader of the group's partition of __consumer_offsets dies; what was committed is with the next one."""
    topic, group = unique("group"), unique("group")
    make(three_brokers, topic, [1, 2, 3])
    consumer = Consumer({"bootstrap.servers": three_brokers.bootstrap, "group.id": group, **RECONNECT}, logger=quiet)
    place = TopicPartition(topic, 0, 17)
    consumer.commit(offsets=[place], asynchronous=False)
    partitions = three_brokers.partitions("__consumer_offsets")
    for number in sorted({each.leader for each in partitions.values()}):
        three_brokers.brokers[number].kill()
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=60)
        assert found.offset == 17
        three_brokers.brokers[number].start()
        three_brokers.wait_until_settled()
    consumer.close()


@contextlib.contextmanager
def other_coordinators(cluster: RunningCluster) -> Iterator[Callable[[], None]]:
    """Call it to give every group another coordinator, while the old one lives on and nobody is told."""
    topic = "__consumer_offsets"
    before = cluster.partitions(topic)

    def moved() -> bool:
        found = cluster.partitions(topic)
        return all(found[place].leader not in (-1, each.leader) for place, each in before.items())

    def move() -> None:
        others = {number: [*(set(each.replicas) - {each.leader})] for (_, number), each in before.items()}
        reassign(cluster.brokers[1], topic, others)
        wait_until(moved, "groups have other coordinators", seconds=60)

    yield move
    reassign(cluster.brokers[1], topic, {number: each.replicas for (_, number), each in before.items()})


def test_librdkafka_that_asks_yesterday_s_coordinator_goes_on(
    three_brokers: RunningCluster, unique: Callable[[str], str]
) -> None:
    """It would never ask again for offsets that were refused with NOT_COORDINATOR alone (its issue 5586)."""
    topic = unique("yesterday")
    three_brokers.create_topic(NewTopic(topic, 2, replica_assignment=[[1, 2, 3]] * 2))
    three_brokers.wait_until_settled(topic)
    settings = {"group.id": unique("group"), "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": three_brokers.bootstrap, **settings, **RECONNECT}, logger=quiet)
    producer = Producer({"bootstrap.servers": three_brokers.bootstrap, **RECONNECT}, logger=quiet)

    def read(partition: int) -> bytes | None:
        producer.produce(topic, b"%d" % partition, partition=partition)
        assert producer.flush(60) == 0
        consumer.incremental_assign([TopicPartition(topic, partition)])
        message = consumer.poll(60)
        return None if message is None else message.value()

    assert read(0) == b"0"  # it knows its coordinator now, and has no reason to look for it again
    with other_coordinators(three_brokers) as move:
        move()
        assert read(1) == b"1"
    consumer.close()


def test_aiokafka_that_asks_yesterday_s_coordinator_finds_its_place(
    three_brokers: RunningCluster, unique: Callable[[str], str]
) -> None:
    """It does not look at the group's error: where no partition has one, it takes it that nothing was committed."""
    topic, group = unique("yesterday"), unique("group")
    make(three_brokers, topic, [1, 2, 3])
    place = aiokafka.TopicPartition(topic, 0)

    async def look() -> int | None:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=three_brokers.bootstrap, group_id=group)
        await consumer.start()
        consumer.assign([place])
        await consumer.commit({place: 17})
        with other_coordinators(three_brokers) as move:
            await asyncio.to_thread(move)
            found = await consumer._coordinator.fetch_committed_offsets([place])  # `committed` has kept what it wrote
        await consumer.stop()
        return found[place].offset if place in found else None

    assert asyncio.run(look()) == 17


def test_a_topic_moves_under_load(three_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    """From brokers 1 and 2 to 2 and 3, then to 3 alone, while records are written and read."""
    topic = unique("moved")
    with Traffic(three_brokers, topic, assignment=[[1, 2]] * 4, config={"min.insync.replicas": "1"}) as traffic:
        for replicas in ([2, 3], [3]):
            reassign(three_brokers.brokers[1], topic, dict.fromkeys(range(4), replicas))

            def moved(replicas: list[int] = replicas) -> bool:
                found = three_brokers.partitions(topic).values()
                return all(sorted(each.replicas) == replicas and sorted(each.isrs) == replicas for each in found)

            wait_until(moved, f"the topic is on {replicas}", seconds=60)
            traffic.wait_for_each_partition()
        traffic.finish()

    def left() -> list[str]:
        names = (path.name for path in three_brokers.brokers[1].log_dirs[0].glob(f"{topic}-*"))
        return [name for name in names if not name.endswith("-delete")]

    wait_until(lambda: left() == [], "what has moved away is deleted where it was")
