"""Sends the payments, slice after slice, and changes the accounts in between, while the pipeline runs."""

import threading
from collections.abc import Callable, Iterable

from confluent_kafka import Producer
from tests.spark_reliability import world

from ottla.testing.load import RECONNECT, quiet

Place = dict[int, int]
"""An offset by partition."""
LOOK_SECONDS = 0.1


class Feeder:
    """On a thread of its own. `position` is how far the pipeline's first query has come, as far as it is known."""

    def __init__(self, bootstrap: str, payments: world.Payments, position: Callable[[], Place]) -> None:
        self.failure: BaseException | None = None
        self._bootstrap = bootstrap
        self._payments = payments
        self._position = position
        self._ends: list[Place] = []
        """Of the slices that were sent."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._feed()
        except BaseException as failure:  # noqa: BLE001 - whoever waits for it is told
            self.failure = failure

    def _feed(self) -> None:
        # Each record once, also when the broker is killed under it: what is compared later are exact counts.
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "linger.ms": 20, "enable.idempotence": True, **RECONNECT},
            logger=quiet,
        )
        ends = dict.fromkeys(range(world.PARTITIONS), 0)
        for part in range(self._payments.slices):
            if part > 1 and not self._wait_for(self._ends[part - 2]):
                return
            accounts = ((f"a{number}".encode(), world.account_record(number, part)) for number in _ACCOUNTS)
            _send(producer, ((world.ACCOUNTS, 0, key, value) for key, value in accounts))
            sent = list(self._payments.sent_in(part))
            _send(
                producer,
                ((world.INPUT, partition, b"%d" % number, world.record(number)) for number, partition in sent),
            )
            for _, partition in sent:
                ends[partition] += 1
            self._ends.append(dict(ends))

    def _wait_for(self, place: Place) -> bool:
        """Until the pipeline is past it; false if it is not to be waited for any more."""
        while not self._stop.wait(LOOK_SECONDS):
            reached = self._position()
            if all(reached.get(partition, 0) >= offset for partition, offset in place.items()):
                return True
        return False


_ACCOUNTS = range(world.ACCOUNT_COUNT)


def _send(producer: Producer, records: Iterable[tuple[str, int, bytes, bytes | None]]) -> None:
    failed: list[str] = []
    for topic, partition, key, value in records:
        while True:
            try:
                producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    on_delivery=lambda error, _: failed.append(str(error)) if error else None,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(240) == 0, "the broker takes no records"
    assert not failed, failed[:3]
