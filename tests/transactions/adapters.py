"""Three clients behind one face, so that the same scenarios can be asked of each."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, Protocol, TypeVar

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
from aiokafka.structs import OffsetAndMetadata as AioOffsetAndMetadata
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from kafka.structs import OffsetAndMetadata as PythonOffsetAndMetadata

from ottla.testing.load import quiet

T = TypeVar("T")
SECONDS_MAX = 30.0
Record = tuple[int, bytes]
"""(partition, value)"""


class Refused(Exception):
    """The broker did not let this producer do it."""


class TransactionalClient(Protocol):
    """A producer with a transactional id."""

    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, value: bytes) -> None:
        """Returns when it is acknowledged."""

    def add_positions(self, group: str, topic: str, positions: dict[int, int]) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class Client(Protocol):
    """A library."""

    def producer(self, bootstrap: str, transactional_id: str, *, timeout_ms: int) -> TransactionalClient: ...
    def read(self, bootstrap: str, topic: str, partitions: int, *, committed_only: bool) -> list[Record]:
        """All that the isolation lets one see at this moment, partition by partition."""

    def committed(self, bootstrap: str, group: str, topic: str) -> int | None:
        """The group's position in partition 0."""


class ConfluentProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "linger.ms": 0,
        }
        self._producer = Producer(settings, logger=quiet)
        self._producer.init_transactions(SECONDS_MAX)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes) -> None:
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            failures.extend([error] if error is not None else [])

        with _refusals(KafkaException):
            self._producer.produce(topic, value, partition=partition, on_delivery=delivered)
            self._producer.flush(SECONDS_MAX)
            if failures:
                raise KafkaException(failures[0])

    def add_positions(self, group: str, topic: str, positions: dict[int, int]) -> None:
        consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": group}, logger=quiet)
        places = [confluent_kafka.TopicPartition(topic, number, offset) for number, offset in positions.items()]
        with _refusals(KafkaException):
            self._producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), SECONDS_MAX)
        consumer.close()

    def commit(self) -> None:
        with _refusals(KafkaException):
            self._producer.commit_transaction(SECONDS_MAX)

    def abort(self) -> None:
        with _refusals(KafkaException):
            self._producer.abort_transaction(SECONDS_MAX)

    def close(self) -> None:
        self._producer.purge()


class Confluent:
    def producer(self, bootstrap: str, transactional_id: str, *, timeout_ms: int) -> ConfluentProducer:
        return ConfluentProducer(bootstrap, transactional_id, timeout_ms)

    def read(self, bootstrap: str, topic: str, partitions: int, *, committed_only: bool) -> list[Record]:
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
        }
        consumer = Consumer(settings, logger=quiet)
        found: list[Record] = []
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
            left = set(range(partitions))
            while left:
                message = consumer.poll(SECONDS_MAX)
                assert message is not None, f"nothing comes though partitions {left} have not ended"
                partition, value = message.partition(), message.value()
                assert partition is not None
                if message.error() is None:
                    assert value is not None
                    found.append((partition, value))
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    left.discard(partition)
        finally:
            consumer.close()
        return sorted(found, key=lambda record: record[0])

    def committed(self, bootstrap: str, group: str, topic: str) -> int | None:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group}, logger=quiet)
        try:
            (found,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], timeout=SECONDS_MAX)
            return None if found.offset < 0 else found.offset
        finally:
            consumer.close()


class AioProducer:
    def __init__(self, loop: "LoopThread", bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._loop = loop

        async def start() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
            )
            await producer.start()
            return producer

        self._producer = loop.run(start())

    def begin(self) -> None:
        self._loop.run(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, value: bytes) -> None:
        with _refusals(aiokafka.errors.KafkaError):
            self._loop.run(self._producer.send_and_wait(topic, value, partition=partition))

    def add_positions(self, group: str, topic: str, positions: dict[int, int]) -> None:
        offsets = {
            aiokafka.TopicPartition(topic, number): AioOffsetAndMetadata(offset, "")
            for number, offset in positions.items()
        }
        with _refusals(aiokafka.errors.KafkaError):
            self._loop.run(self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        with _refusals(aiokafka.errors.KafkaError):
            self._loop.run(self._producer.commit_transaction())

    def abort(self) -> None:
        with _refusals(aiokafka.errors.KafkaError):
            self._loop.run(self._producer.abort_transaction())

    def close(self) -> None:
        with contextlib.suppress(aiokafka.errors.KafkaError):
            self._loop.run(self._producer.stop())


class Aio:
    def __init__(self, loop: "LoopThread") -> None:
        self._loop = loop

    def producer(self, bootstrap: str, transactional_id: str, *, timeout_ms: int) -> AioProducer:
        return AioProducer(self._loop, bootstrap, transactional_id, timeout_ms)

    def read(self, bootstrap: str, topic: str, partitions: int, *, committed_only: bool) -> list[Record]:
        async def read() -> list[Record]:
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                isolation_level="read_committed" if committed_only else "read_uncommitted",
            )
            await consumer.start()
            try:
                places = [aiokafka.TopicPartition(topic, number) for number in range(partitions)]
                consumer.assign(places)
                await consumer.seek_to_beginning(*places)
                ends = await consumer.end_offsets(places)
                found: list[Record] = []
                while any([await consumer.position(place) < ends[place] for place in places]):
                    for place, records in (await consumer.getmany(timeout_ms=200)).items():
                        found += [(place.partition, record.value) for record in records]
                return sorted(found, key=lambda record: record[0])
            finally:
                await consumer.stop()

        return self._loop.run(read())

    def committed(self, bootstrap: str, group: str, topic: str) -> int | None:
        async def ask() -> int | None:
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
            await consumer.start()
            try:
                place = aiokafka.TopicPartition(topic, 0)
                consumer.assign([place])
                found: int | None = await consumer.committed(place)
                return found
            finally:
                await consumer.stop()

        return self._loop.run(ask())


class LoopThread:
    """An event loop that goes on between calls, as the background work of aiokafka wants it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(SECONDS_MAX)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS_MAX)
        self._loop.close()


class PythonProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            # The client insists that a delivery never outlives the transaction.
            request_timeout_ms=max(1_000, timeout_ms // 2),
            delivery_timeout_ms=max(1_500, timeout_ms),
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes) -> None:
        with _refusals(kafka.errors.KafkaError):
            self._producer.send(topic, value, partition=partition).get(SECONDS_MAX)

    def add_positions(self, group: str, topic: str, positions: dict[int, int]) -> None:
        offsets = {
            kafka.TopicPartition(topic, number): PythonOffsetAndMetadata(offset, "", -1)
            for number, offset in positions.items()
        }
        with _refusals(kafka.errors.KafkaError):
            self._producer.send_offsets_to_transaction(offsets, group)

    def commit(self) -> None:
        with _refusals(kafka.errors.KafkaError):
            self._producer.commit_transaction()

    def abort(self) -> None:
        with _refusals(kafka.errors.KafkaError):
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=1)


class Python:
    def producer(self, bootstrap: str, transactional_id: str, *, timeout_ms: int) -> PythonProducer:
        return PythonProducer(bootstrap, transactional_id, timeout_ms)

    def read(self, bootstrap: str, topic: str, partitions: int, *, committed_only: bool) -> list[Record]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level="read_committed" if committed_only else "read_uncommitted"
        )
        try:
            places = [kafka.TopicPartition(topic, number) for number in range(partitions)]
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            ends = consumer.end_offsets(places)
            found: list[Record] = []
            while any(consumer.position(place) < ends[place] for place in places):
                for place, records in consumer.poll(timeout_ms=200).items():
                    found += [(place.partition, record.value) for record in records]
            return sorted(found, key=lambda record: record[0])
        finally:
            consumer.close()

    def committed(self, bootstrap: str, group: str, topic: str) -> int | None:
        consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
        try:
            place = kafka.TopicPartition(topic, 0)
            consumer.assign([place])
            found: int | None = consumer.committed(place)
            return found
        finally:
            consumer.close()


@contextlib.contextmanager
def _refusals(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        raise Refused(str(error)) from error
