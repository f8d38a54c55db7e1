"""Topics whose records are numbered, and who reads their copies from the first moment on.

A log that is compacted, or whose old records go, tells in the end only of what is left. So what was written is known by
the producer's reports, and what came by a reader that never stops: every record is looked at before it can go.
"""

import threading
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from ottla.testing.load import quiet

KEYS = 40
NUMBER = "number"
PAUSE_S = 0.005
COMPACTED = {
    "cleanup.policy": "compact", "segment.ms": "3000", "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "86400000",
}  # fmt: skip
EXPIRING = {"retention.ms": "240000", "segment.ms": "5000"}
CLEANING = {"log.cleaner.backoff.ms": "1000", "log.retention.check.interval.ms": "1000"}
"""Of the brokers: so that they clean and delete while all this runs."""


class Beside:
    """`run` in a thread of its own, until the block ends."""

    def __enter__(self) -> Self:
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self.run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def run(self) -> None:
        raise NotImplementedError


@dataclass
class Numbered(Beside):
    """One partition of the source: 0, 1, 2, ... in the order of its log, each tenth of them a tombstone."""

    bootstrap: str
    topic: str
    written: dict[int, int] = field(default_factory=dict)
    """Numbers by offset."""

    def run(self) -> None:
        settings = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 1}
        producer = Producer(settings | {"message.timeout.ms": 300_000}, logger=quiet)
        number = 0
        while not self._ending.wait(PAUSE_S):
            value = None if number % 10 == 9 else b"value of %d" % number
            producer.produce(
                self.topic, value, b"key %d" % (number % KEYS), 0, headers={NUMBER: b"%d" % number},
                on_delivery=partial(self._note, number),
            )  # fmt: skip
            producer.poll(0)
            number += 1
        assert producer.flush(300) == 0

    def _note(self, number: int, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        self.written[message.offset() or 0] = number


@dataclass
class CopyReader(Beside):
    """Reads a copy while it is made."""

    bootstrap: str
    topic: str
    came: list[tuple[int, int]] = field(default_factory=list)
    """Offsets and numbers, in the order in which they came."""

    def run(self) -> None:
        settings = {
            "bootstrap.servers": self.bootstrap, "group.id": "reader", "isolation.level": "read_committed",
            "enable.auto.commit": False, "auto.offset.reset": "earliest", "topic.metadata.refresh.interval.ms": 500,
        }  # fmt: skip
        consumer = Consumer(settings, logger=quiet)
        consumer.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
        while not self._ending.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                headers = dict(message.headers() or ())
                self.came.append((message.offset() or 0, int(headers[NUMBER] or b"")))
        consumer.close()


def problems(written: dict[int, int], came: list[tuple[int, int]], *, compacted: bool, same_offsets: bool) -> list[str]:
    """What is wrong with a copy; a compacted one may lack what was written again later."""
    found = []
    numbers = [number for _, number in came]
    found += [f"{after} came after {before}" for before, after in pairwise(numbers) if after <= before]
    missing = sorted({*written.values()} - {*numbers})
    if compacted:
        newest = {number % KEYS: number for number in sorted(written.values())}
        missing = [number for number in missing if newest[number % KEYS] == number]
    if missing:
        found.append(f"{len(missing)} did not come, first {missing[:3]}")
    if strangers := sorted({*numbers} - {*written.values()}):
        found.append(f"{len(strangers)} came that nobody has written, first {strangers[:3]}")
    if same_offsets:
        found += [f"{number} is at {at}" for at, number in came if written.get(at) != number]
    return found


def leads_to(written: dict[int, int], came: list[tuple[int, int]], source: int, target: int) -> bool:
    """Whether who stands here in the target has read what he has read there in the source, and nothing else.

    `came` must be in order, see `problems`.
    """
    offsets = sorted(written)
    read = bisect_left(offsets, source)
    unread_from = written[offsets[read]] if read < len(offsets) else len(offsets)
    place = bisect_left(came, (target, 0))
    is_read = place == 0 or came[place - 1][1] < unread_from
    return is_read and (place == len(came) or came[place][1] >= unread_from)
