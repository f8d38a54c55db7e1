"""`make demo`: a broker, a real client, a group of consumers, a kill -9 in the middle, and an audit at the end."""

import sys
import threading
import time

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from ottla.testing.ledger import Audit, Ledger, audit
from ottla.testing.load import RECONNECT, LoadProducer, quiet, read_log
from ottla.testing.running import RunningBroker, broker
from ottla.testing.waiting import wait_until

TOPIC = "orders"
GROUP = "bookkeepers"
PARTITIONS = 4
PRODUCERS = 2
RECORDS_PER_PRODUCER = 15_000
RECORDS_PER_SECOND = 5_000
KILL_AFTER_ACKNOWLEDGED = RECORDS_PER_PRODUCER * PRODUCERS // 3
READ_SECONDS_MAX = 60.0


class GroupReader:
    """One member of the group, on its own thread. It commits as it goes, so after a crash it goes on, not back."""

    def __init__(self, bootstrap: str, number: int) -> None:
        self.seen: set[tuple[int, int]] = set()
        self.count = 0
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": f"reader-{number}",
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 200,
                **RECONNECT,
            },
            logger=quiet,
        )
        self._thread = threading.Thread(target=self._read, name=f"reader-{number}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(READ_SECONDS_MAX)

    def _read(self) -> None:
        self._consumer.subscribe([TOPIC])
        while not self._stopping.is_set():
            for message in self._consumer.consume(1_000, timeout=0.1):
                if message.error() is not None:
                    continue  # the broker is away; the client tries again by itself
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                self.count += 1
                self.seen.add((partition, offset))
        self._consumer.close()


def main() -> int:
    console = Console(highlight=False)
    begun = time.monotonic()
    console.print("[bold]Ottla, a log that speaks Kafka's protocol[/bold]: a kill -9 in the middle of the work\n")
    with broker() as running:
        _say(console, begun, f"started a broker on {running.bootstrap}, process {running.pid}")
        result, committed, readers = _run(console, begun, running)
    everything = PRODUCERS * RECORDS_PER_PRODUCER
    seen = set().union(*(reader.seen for reader in readers))
    good = result.clean and result.acknowledged == everything == len(seen) == committed
    _show(console, result, seen_by_group=len(seen), committed=committed)
    took = time.monotonic() - begun
    if good:
        console.print(f"\n[bold green]Every acknowledged record is there once, in order.[/bold green] ({took:.1f} s)")
        return 0
    console.print(f"\n[bold red]This is not as it should be.[/bold red] ({took:.1f} s)")
    for problem in result.problems:
        console.print(f"  {problem}")
    return 1


def _run(console: Console, begun: float, running: RunningBroker) -> tuple[Audit, int, list[GroupReader]]:
    admin = AdminClient({"bootstrap.servers": running.bootstrap}, logger=quiet)
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
    _say(console, begun, f"created the topic {TOPIC} with {PARTITIONS} partitions")

    ledger = Ledger()
    readers = [GroupReader(running.bootstrap, number) for number in range(2)]
    producers = [
        LoadProducer(
            running.bootstrap, TOPIC, PARTITIONS, number=number, ledger=ledger,
            records_per_second=RECORDS_PER_SECOND, limit=RECORDS_PER_PRODUCER,
        ).start()
        for number in range(PRODUCERS)
    ]  # fmt: skip
    _say(console, begun, f"{PRODUCERS} producers write (confluent-kafka, acks=all), a group of {len(readers)} reads")
    wait_until(lambda: ledger.total >= KILL_AFTER_ACKNOWLEDGED, "a third of the records acknowledged", seconds=60)

    running.kill()
    acknowledged = ledger.total
    _say(console, begun, f"[red]kill -9[/red], with {acknowledged:,} records acknowledged and more on their way")
    before = time.monotonic()
    running.restart()
    took_ms = (time.monotonic() - before) * 1000
    _say(console, begun, f"the broker is back as process {running.pid} after {took_ms:.0f} ms, its logs recovered")

    for producer in producers:
        _see_to_the_end(producer)
    _say(console, begun, f"the producers have gone on and finished: {ledger.total:,} records acknowledged")
    expected = PRODUCERS * RECORDS_PER_PRODUCER
    wait_until(
        lambda: len(set().union(*(reader.seen for reader in readers))) >= expected,
        "the group has read everything",
        seconds=READ_SECONDS_MAX,
    )
    for reader in readers:
        reader.stop()
    again = sum(reader.count for reader in readers) - expected
    _say(console, begun, f"the group has read everything, {again:,} records twice because of the crash")
    result = audit(ledger.promised(), read_log(running.bootstrap, TOPIC, PARTITIONS))
    return result, _committed(running.bootstrap), readers


def _see_to_the_end(producer: LoadProducer) -> None:
    """Let it send all it has to, then see that nothing went wrong on its thread."""
    wait_until(lambda: producer.finished, f"producer {producer.number} has sent everything", seconds=READ_SECONDS_MAX)
    producer.stop()


def _committed(bootstrap: str) -> int:
    """The sum of the group's committed offsets: how far it got, as the broker knows it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP}, logger=quiet)
    try:
        found = consumer.committed([TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)], timeout=30.0)
        return sum(max(0, position.offset) for position in found)
    finally:
        consumer.close()


def _say(console: Console, begun: float, words: str) -> None:
    console.print(f"[dim]{time.monotonic() - begun:6.2f} s[/dim]  {words}")


def _show(console: Console, result: Audit, *, seen_by_group: int, committed: int) -> None:
    table = Table(title="\nThe audit", title_justify="left", show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for name, figure in (
        ("records acknowledged", result.acknowledged),
        ("records in the log", result.records_read),
        ("lost", result.lost),
        ("twice", result.doubled),
        ("out of order", result.out_of_order),
        ("at another offset than acknowledged", result.misplaced),
        ("read by the group", seen_by_group),
        ("committed by the group", committed),
    ):
        table.add_row(name, f"{figure:,}")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
