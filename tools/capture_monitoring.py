"""Take the pictures of docs/monitoring.md: `ottla monitor` and `ottla top` on a real cluster, with real groups.

One group keeps up, one falls behind, one stands still, one has stopped. Takes half a minute; what it shows differs from
run to run, so no test compares it.
"""

import asyncio
import io
import sys
import tempfile
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from rich.console import Console

from ottla.cli.monitor.display import screen, write_svg
from ottla.cli.monitor.top_tables import tables
from ottla.monitoring.clients import monitor_client
from ottla.monitoring.endtoend.monitor import EndToEnd
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.monitoring.lag.rules import Rules
from ottla.monitoring.lag.watching import Watch, WatchSettings
from ottla.monitoring.serving import Monitor
from ottla.monitoring.top.gathering import Addresses, gather
from ottla.monitoring.top.view import Observer
from ottla.testing.cluster import RunningCluster
from ottla.testing.ports import free_ports
from ottla.testing.zookeeper import zookeeper

DOCS = Path(__file__).parent.parent / "docs"
WIDTH = 100
LOOKS = 24
TICK_SECONDS = 0.5


class Traffic:
    """Writes to two topics, and reads them as four groups that do differently well."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Traffic":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap})
        readers = {name: self._reader(name) for name in ("billing", "reports", "search-index", "old-import")}
        ends = {"orders": 0, "clicks": 0}
        turn = 0
        while not self._stop.wait(TICK_SECONDS / 5):
            turn += 1
            for topic, count in (("orders", 60), ("clicks", 240)):
                for _ in range(count):
                    producer.produce(topic, b"x" * 100, partition=0)
                ends[topic] += count
            producer.flush()
            for name, offset in (("billing", ends["orders"]), ("reports", 20 * turn), ("search-index", 500)):
                readers[name].poll(0)
                self._commit(readers[name], offset)
            if turn < 20:
                self._commit(readers["old-import"], 30 * turn)
            elif turn == 20:
                readers.pop("old-import").close()
        for reader in readers.values():
            reader.close()

    def _reader(self, group: str) -> Consumer:
        reader = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "enable.auto.commit": False})
        reader.subscribe(["orders"])
        while not reader.assignment():
            reader.poll(0.1)
        return reader

    def _commit(self, reader: Consumer, offset: int) -> None:
        reader.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)


async def capture(bootstrap: str, listeners: list[str]) -> None:
    client = monitor_client(bootstrap, {})
    watch = Watch(WatchSettings("local", client, Rules(), refresh_s=TICK_SECONDS))
    end = EndToEnd(EndToEndSettings("local", client, topic_probe_s=0.0))
    observer = Observer()
    await end.start()
    running = asyncio.ensure_future(end.run())
    try:
        for _ in range(LOOKS):
            await watch.once()
            addresses = Addresses(tuple(f"http://{each}/metrics" for each in listeners))
            seen = await gather(watch, addresses)
            assert seen is not None
            view = observer.see(seen, time.monotonic())
            await asyncio.sleep(TICK_SECONDS)
        for name, shown in (("top", tables(view, 6)), ("monitor", screen(Monitor([watch], None, [end])))):
            console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False, force_terminal=True)
            console.print(shown)
            print(console.export_text(clear=False))
            write_svg(console, str(DOCS / f"{name}.svg"), f"ottla {name}")
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await end.close()
        await watch.close()


def main() -> int:

    ports = free_ports(3)
    with zookeeper(1) as ensemble, tempfile.TemporaryDirectory() as folder:
        cluster = RunningCluster(Path(folder), brokers=3, zookeeper=ensemble, racks=["a", "b", "c"])
        for each, port in zip(cluster.brokers.values(), ports, strict=True):
            each.change({"metrics.listener": f"127.0.0.1:{port}"})
        try:
            cluster.start()
            for topic, partitions in (("orders", 1), ("clicks", 3)):
                cluster.create_topic(NewTopic(topic, partitions, 3))
            cluster.wait_until_settled()
            with Traffic(cluster.bootstrap):
                asyncio.run(capture(cluster.bootstrap, [f"127.0.0.1:{port}" for port in ports]))
        finally:
            cluster.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
