"""What encryption costs: the same work over a plain and an encrypted listener of one broker, in turn.

    python -m benchmarks.tls [--records N] [--rounds N]

Produce and consume are librdkafka's, whose own encryption counts too: the broker's processor seconds are listed beside
the rate. A connection is made and asked for its API versions, one after the other.
"""

import argparse
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import RunningBroker, broker
from ottla.testing.process import processor_seconds
from ottla.testing.tls import Certificates

SIZE = 1_000
PATIENCE_S = 120.0
CONNECTIONS = 300
ONE_BY_ONE = 2_000
API_VERSIONS = b"\0\0\0\x0e\0\x12\0\0\0\0\0\x07\0\4self"


class Figure(NamedTuple):
    rate: float
    broker_s: float
    """Processor seconds of the broker."""


class Bench:
    def __init__(self, running: RunningBroker, certificates: Certificates) -> None:
        self.running = running
        self.context = ssl.create_default_context(cafile=str(certificates.ca))
        self._ca = str(certificates.ca)
        self._topics = 0

    def settings(self, listener: str) -> dict[str, str | int]:
        encrypted = {"security.protocol": "SSL", "ssl.ca.location": self._ca} if listener == "SSL" else {}
        return {"bootstrap.servers": self.running.bootstrap_of(listener), **encrypted}

    def topic(self) -> str:
        self._topics += 1
        name = f"bench-{self._topics}"
        admin = AdminClient(self.settings("PLAINTEXT"))
        admin.create_topics([NewTopic(name, 1)])[name].result(PATIENCE_S)
        return name

    def timed(self, count: float, work: Callable[[], None]) -> Figure:
        began, used = time.monotonic(), processor_seconds(self.running.pid)
        work()
        return Figure(count / (time.monotonic() - began), processor_seconds(self.running.pid) - used)

    def produce(self, listener: str, records: int) -> tuple[Figure, str]:
        topic = self.topic()
        producer = Producer({**self.settings(listener), "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
        value = bytes(range(256)) * 4

        def work() -> None:
            for _ in range(records):
                producer.produce(topic, value[:SIZE], partition=0)
                producer.poll(0)
            assert producer.flush(PATIENCE_S) == 0

        return self.timed(records * SIZE / 1e6, work), topic

    def consume(self, listener: str, topic: str, records: int) -> Figure:
        consumer = Consumer({**self.settings(listener), "group.id": topic, "queued.max.messages.kbytes": 200_000})
        consumer.assign([TopicPartition(topic, 0, 0)])

        def work() -> None:
            got = 0
            while got < records:
                got += len(consumer.consume(10_000, 1.0))

        figure = self.timed(records * SIZE / 1e6, work)
        consumer.close()
        return figure

    def one_by_one(self, listener: str) -> Figure:
        with self._connected(listener) as sock:

            def work() -> None:
                for _ in range(ONE_BY_ONE):
                    self._ask(sock)

            return self.timed(ONE_BY_ONE, work)

    def connections(self, listener: str) -> Figure:
        def work() -> None:
            for _ in range(CONNECTIONS):
                with self._connected(listener) as sock:
                    self._ask(sock)

        return self.timed(CONNECTIONS, work)

    def _connected(self, listener: str) -> socket.socket:
        sock = socket.create_connection(self.running.listeners[listener], PATIENCE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.context.wrap_socket(sock, server_hostname="localhost") if listener == "SSL" else sock

    def _ask(self, sock: socket.socket) -> None:
        sock.sendall(API_VERSIONS)
        head = sock.recv(4)
        left = int.from_bytes(head, "big")
        while left:
            left -= len(sock.recv(left))


def run(bench: Bench, records: int, rounds: int) -> dict[str, dict[str, list[Figure]]]:
    found: dict[str, dict[str, list[Figure]]] = {}
    for _ in range(rounds):
        for listener in ("PLAINTEXT", "SSL"):
            produced, topic = bench.produce(listener, records)
            figures = {
                "produce, MB/s": produced,
                "consume, MB/s": bench.consume(listener, topic, records),
                "requests one by one, /s": bench.one_by_one(listener),
                "connections one by one, /s": bench.connections(listener),
            }
            for name, figure in figures.items():
                found.setdefault(name, {}).setdefault(listener, []).append(figure)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tls", description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        certificates = Certificates(Path(folder, "certificates"))
        settings = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", **certificates.broker_settings()}
        with broker(settings, data_dir=Path(folder, "broker")) as running:
            found = run(Bench(running, certificates), arguments.records, arguments.rounds)
    print("| median of the rounds | plain | TLS | ratio | broker's processor seconds, plain | TLS |")
    print("|---|---|---|---|---|---|")
    for name, by_listener in found.items():
        plain, tls = (by_listener[listener] for listener in ("PLAINTEXT", "SSL"))
        rates = [statistics.median(figure.rate for figure in figures) for figures in (plain, tls)]
        used = [statistics.median(figure.broker_s for figure in figures) for figures in (plain, tls)]
        print(
            f"| {name} | {rates[0]:.0f} | {rates[1]:.0f} | {rates[1] / rates[0]:.2f} | {used[0]:.2f} | {used[1]:.2f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
