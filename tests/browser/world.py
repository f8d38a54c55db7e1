"""A cluster of three brokers with all that a console shows: a second cluster, a registry, a real pipeline on Spark, a
mirror, a place of backups. Tests of whole flows share it, and pictures are taken of it.
"""

import contextlib
import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Consumer, Producer
from tests.console.conftest import CLUSTER, Running, Site

from ottla.console.access.gate import AccessSettings
from ottla.console.clusters import ClusterSettings
from ottla.testing import broker
from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.registry import registry
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import shared_zookeeper

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
PIPELINE = {
    "name": "big-orders",
    "sources": {
        "orders": {
            "topic": "orders", "format": "json", "schema": "id STRING, item STRING, amount DOUBLE",
            "start": "earliest",
        }
    },
    "steps": [
        {"sql": "SELECT *, amount * 1.2 AS gross FROM orders"},
        {"name": "sane", "expect": {"rule": "gross BETWEEN 0 AND 1000"}},
    ],
    "sinks": [{"topic": "orders.gross", "key": "id", "format": "json"}],
    "errors": {"dead_letter": "orders.dead"},
    "limits": {"trigger": "1 second"},
}  # fmt: skip
BAD_AMOUNT = -5
ITEMS = ("pear", "bread", "plum", "cheese", "fig")
MINUTES = 60


class World:
    def __init__(self, home: Path, east: RunningCluster, west: str, registry_url: str) -> None:
        self.home, self.east, self.west = home, east, west
        self.place = str(home / "backups")
        self.mirror = home / "mirror.yaml"
        (home / "pipelines").mkdir()
        (home / "pipelines" / "orders.yaml").write_text(yaml.safe_dump(PIPELINE, sort_keys=False))
        flow = {"from": "east", "to": "west", "topics": "payments", "names": "keep", "offsets": "keep"}
        bases = {"east": {"bootstrap": east.bootstrap}, "west": {"bootstrap": west}}
        self.mirror.write_text(yaml.safe_dump({"name": "standby", "clusters": bases, "flows": [flow]}))
        self.settings = ClusterSettings(
            CLUSTER, {"bootstrap.servers": east.bootstrap}, registry=registry_url,
            pipeline_files=str(home / "pipelines"), state_dir=str(home / "state"), backups=(self.place,),
            mirrors=(str(self.mirror),),
        )  # fmt: skip
        self.running = Running(self.settings, AccessSettings(), ClusterSettings("west", {"bootstrap.servers": west}))
        self.site = Site(self.running.url)
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def fill(self) -> None:
        """Topics with records, one that is always written to, groups that read and one that does not."""
        for name, partitions in (("orders", 6), ("payments", 3), ("clicks", 12), ("customers", 3), ("orders.dead", 1)):
            self.site.do("/topics", name=name, partitions=partitions, replication=3 if name != "clicks" else 2)
        self._send("payments", [(f"p-{number}", {"payment": number, "cents": number * 7}) for number in range(2000)])
        self._send("clicks", [(f"u-{number % 97}", {"page": f"/item/{number % 31}"}) for number in range(5000)])
        self._send("orders", [*self._orders(300), ("odd", {"id": "odd", "item": "pear", "amount": BAD_AMOUNT})])
        self.site.do("/group/reset", id="warehouse", topic="clicks", to="earliest")
        self.site.do("/group/reset", id="billing", topic="payments", to="latest")
        for version in ('"int"', '"int"}, {"name": "note", "type": "string", "default": ""'):
            schema = f'{{"type": "record", "name": "Order", "fields": [{{"name": "id", "type": {version}}}]}}'
            self.site.do("/schemas/register", subject="orders-value", type="AVRO", schema=schema)
        for work in (self._write, self._read):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()

    def _orders(self, count: int) -> list[tuple[str, dict[str, Any]]]:
        chosen = random.Random(7)
        return [
            (f"o-{number}", {"id": f"o-{number}", "item": chosen.choice(ITEMS), "amount": chosen.randint(1, 90)})
            for number in range(count)
        ]

    def _send(self, topic: str, records: list[tuple[str, dict[str, Any]]]) -> None:
        producer = Producer({"bootstrap.servers": self.east.bootstrap, "enable.idempotence": True})
        for key, value in records:
            producer.produce(topic, json.dumps(value), key, headers={"trace": key})
        assert producer.flush(60) == 0

    def _write(self) -> None:
        """Until the end, some records a second: lines are drawn of it."""
        producer = Producer({"bootstrap.servers": self.east.bootstrap})
        chosen = random.Random(11)
        while not self._ended.wait(0.1):
            for _ in range(chosen.randint(1, 12)):
                producer.produce("clicks", json.dumps({"page": f"/item/{chosen.randint(1, 31)}"}), "u-1")
            producer.poll(0)
        producer.flush(30)

    def _read(self) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self.east.bootstrap, "group.id": "live-counts", "auto.offset.reset": "earliest",
             "client.id": "counter-1", "auto.commit.interval.ms": 500}
        )  # fmt: skip
        consumer.subscribe(["clicks"])
        while not self._ended.is_set():
            consumer.consume(500, 0.2)
        consumer.close()

    def start_pipeline(self) -> None:
        if not self._file()["running"]:
            self.site.do("/pipelines/start", file="orders.yaml", confirm="orders.yaml")
        self.wait_for_pipeline()

    def wait_for_pipeline(self) -> None:
        wait_until(lambda: self._file()["running"], "the pipeline to run", seconds=180, pause=0.5)
        wait_until(lambda: self.end_of("orders.gross") > 0, "what it writes", seconds=180, pause=0.5)

    def stop_pipeline(self) -> None:
        def ended() -> bool:
            run = self._file()["run"]
            return run is None or run["code"] is not None or self._try("/pipelines/stop", pipeline="big-orders")

        wait_until(ended, "the end of the pipeline", seconds=120, pause=0.5)

    def _try(self, path: str, **fields: str) -> bool:
        """Say it, whether or not anybody is there to hear it: whoever starts or ends just now does not answer."""
        body = json.dumps({**fields, "confirm": next(iter(fields.values()))}).encode()
        headers = {"Content-Type": "application/json", "X-Ottla-Program": "test"}
        self.site.send("POST", f"/api/c/{CLUSTER}{path}", body, headers)
        return False

    def _file(self) -> dict[str, Any]:
        (found,) = self.site.api("/pipelines")["files"]
        return dict(found)

    def end_of(self, topic: str) -> int:
        page = self.site.send("GET", f"/api/c/{CLUSTER}/topics/{topic}")
        return int(page.json()["topic"]["end_offsets"]) if page.status == 200 else 0

    def flow(self, name: str) -> dict[str, Any]:
        """A flow of a mirror's file; empty while nothing is known of it."""
        rows = self.site.api("/mirroring")["of_files"]
        return next((row for row in rows if row["pipeline"] == name), {})

    def start_mirror(self) -> None:
        wait_until(lambda: self.flow("standby.east-west"), "what is known of the mirror", seconds=120, pause=0.5)
        if not self.flow("standby.east-west")["running"]:
            self.site.do("/mirroring/start", file="mirror.yaml", confirm="mirror.yaml")
        self.wait_for_mirror("standby.east-west")

    def wait_for_mirror(self, flow: str) -> None:
        wait_until(lambda: self.flow(flow).get("running"), f"{flow} to run", seconds=180, pause=0.5)
        wait_until(lambda: self.flow(flow).get("lag_records") == 0, f"{flow} to catch up", seconds=180, pause=0.5)

    def stop_mirrors(self) -> None:
        def ended() -> bool:
            told = self.site.api("/mirroring")
            if all(each["run"] is None or each["run"]["code"] is not None for each in told["files"]):
                return True
            return any(self._try("/mirroring/stop", flow=row["pipeline"]) for row in told["of_files"])

        wait_until(ended, "the end of the mirrors", seconds=120, pause=0.5)

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(60)
        self.stop_pipeline()
        self.stop_mirrors()
        self.running.stop()


@contextlib.contextmanager
def world(home: Path) -> Iterator[World]:
    with (
        cluster(3, settings=AUTHORIZER, zookeeper=shared_zookeeper(), racks=("a", "b", "c")) as east,
        broker() as west,
        registry(east.bootstrap) as schemas,
    ):
        made = World(home, east, west.bootstrap, schemas.url)
        try:
            made.fill()
            yield made
        finally:
            made.close()
