"""Steady load through a real client, with a ledger of what was acknowledged, and a reader for the audit."""

import threading
import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from ottla.model.errors import OttlaError
from ottla.testing.ledger import OFFSET_NOT_TOLD, Ledger, Stamp

# A broker that comes back is noticed at once, and one that is away for a while is waited for.
RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20}
TICK_SECONDS = 0.01
READ_STALL_SECONDS_MAX = 60.0


class LoadProducer:
    """An idempotent producer with acks=all that writes to every partition in turn, on its own thread.

    It is done after `limit` records, and waits after `allowed` ones until it is allowed more.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        number: int,
        ledger: Ledger,
        records_per_second: int,
        value_bytes: int = 100,
        limit: int | None = None,
        allowed: int | None = None,
        client_settings: dict[str, str | int | float | bool] | None = None,
    ) -> None:
        self.number = number
        self._topic = topic
        self._partitions = partitions
        self._ledger = ledger
        self._per_tick = max(1, int(records_per_second * TICK_SECONDS))
        self._value_bytes = value_bytes
        self._limit = limit
        self._allowed = allowed
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": f"load-{number}",
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 120_000,
                "queue.buffering.max.messages": 20_000,
                **RECONNECT,
                **(client_settings or {}),
            },
            logger=quiet,
        )
        self._thread = threading.Thread(target=self._run, name=f"load-{number}", daemon=True)

    def start(self) -> "LoadProducer":
        self._thread.start()
        return self

    def allow(self, more: int) -> None:
        """Send this many records more, then wait for the next allowance."""
        self._allowed = (self._allowed or 0) + more

    def log_in_as(self, username: str, password: str) -> None:
        """For connections, and sessions of connections, that begin from now on."""
        self._producer.set_sasl_credentials(username, password)

    @property
    def finished(self) -> bool:
        return not self._thread.is_alive()

    def stop(self, timeout: float = 60.0) -> None:
        """Send no more; returns when everything sent is acknowledged."""
        self._stopping.set()
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise OttlaError(f"producer {self.number} still waits for acknowledgements after {timeout:g} s")
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._send_until_stopped()
        except Exception as failure:  # noqa: BLE001 - stop() raises it again, where the user is
            self._failure = failure

    def _send_until_stopped(self) -> None:
        sent = 0
        next_number = [0] * self._partitions
        while not self._stopping.is_set() and (self._limit is None or sent < self._limit):
            ends = time.monotonic() + TICK_SECONDS
            room = self._per_tick if self._allowed is None else min(self._per_tick, self._allowed - sent)
            for _ in range(room):
                partition = sent % self._partitions
                if not self._send(Stamp(self.number, partition, next_number[partition])):
                    break  # the client's queue is full: the broker is away
                next_number[partition] += 1
                sent += 1
            self._producer.poll(max(0.0, ends - time.monotonic()))
        while self._producer.flush(1.0):
            if self._failure is not None:
                return

    def _send(self, stamp: Stamp) -> bool:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                self._ledger.acknowledged(stamp, OFFSET_NOT_TOLD if offset is None else offset)
            else:
                self._ledger.refused(stamp, str(error))

        try:
            self._producer.produce(
                self._topic, stamp.to_value(self._value_bytes), partition=stamp.partition, on_delivery=delivered
            )
        except BufferError:
            return False
        return True


def read_log(
    bootstrap: str, topic: str, partitions: int, client_settings: dict[str, str | int | float | bool] | None = None
) -> Iterator[tuple[int, int, bytes]]:
    """Every record as (partition, offset, value), up to where the partitions end when the reading begins."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "audit",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": False,
            "fetch.wait.max.ms": 100,
            **RECONNECT,
            **(client_settings or {}),
        },
        logger=quiet,
    )
    try:
        left: dict[int, int] = {}
        starts: list[TopicPartition] = []
        for partition in range(partitions):
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30.0)
            if end > first:
                left[partition] = end
                starts.append(TopicPartition(topic, partition, first))
        consumer.assign(starts)
        heard = time.monotonic()
        while left:
            # It returns when it has so many or the time is over, and the last ones are never so many.
            messages = consumer.consume(1_000, timeout=0.1)
            heard = time.monotonic() if messages else heard
            if time.monotonic() - heard > READ_STALL_SECONDS_MAX:
                raise OttlaError(f"nothing came for {READ_STALL_SECONDS_MAX:g} s, though {left} is where {topic} ends")
            for message in messages:
                if message.error() is not None:
                    raise KafkaException(message.error())
                partition, offset, value = message.partition(), message.offset(), message.value()
                assert partition is not None
                assert offset is not None
                assert value is not None
                if partition not in left:
                    continue
                yield partition, offset, value
                if offset + 1 >= left[partition]:
                    del left[partition]
    finally:
        consumer.close()


class _Quiet:
    """The client tells in its log what a kill looks like from its side; the audit tells what matters."""

    def log(self, *_: object) -> None:
        """Say nothing."""


quiet = _Quiet()
