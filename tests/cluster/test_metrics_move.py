"""What happens in a cluster moves the metrics of its brokers: a broker dies, comes back, and partitions are moved."""

import re
import urllib.error
import urllib.request

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from tests.cluster.reassigning import reassign
from tests.metrics_moved import CLUSTER, moved, wait_until_moved

from ottla.testing.cluster import RunningCluster, cluster

SETTINGS: dict[str, str | int | bool] = {
    "metrics.listener": "127.0.0.1:0",
    "metrics.offsets.max": 3,
    "offsets.topic.num.partitions": 2,
    "min.insync.replicas": 2,
    "replica.lag.time.max.ms": 1_000,
    "auto.leader.rebalance.enable": False,
    "zookeeper.session.timeout.ms": 5_000,  # leaders notice who is late before the controller knows who is dead
}


def scrape_all(running: RunningCluster, without: int) -> dict[int, str]:
    texts = {}
    for number, broker in running.brokers.items():
        if broker.running and number != without:
            url = re.findall(r"HTTP listener started on (\S+)", broker.log_text())[-1]
            with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
                texts[number] = answer.read().decode()
    return texts


def test_a_broker_dies_and_partitions_move() -> None:
    with cluster(3, settings=SETTINGS) as running:
        seen: set[str] = set()
        paused = 0

        def look() -> set[str]:
            for text in scrape_all(running, paused).values():
                seen.update(moved("", text))
            return seen

        def wait_for(*names: str) -> None:
            wait_until_moved(names, look)

        running.create_topic(NewTopic("safe", 6, 3))
        running.create_topic(NewTopic("strict", 6, 3, config={"min.insync.replicas": "3"}))
        running.create_topic(NewTopic("lonely", 6, 1))
        producer = Producer({"bootstrap.servers": running.bootstrap, "acks": "all"})
        for number in range(600):
            producer.produce("safe", b"x" * 1000, partition=number % 6)
            producer.produce("lonely", b"x" * 1000, partition=number % 6)
        assert producer.flush(60) == 0
        wait_for("kafka_server_brokertopicmetrics_replicationbytesout_total", "zookeeper_up")
        controller = running.controller_id()
        paused = victim = next(number for number in running.brokers if number != controller)
        others = {number: [victim] for (_, number), at in running.partitions("lonely").items() if at.leader != victim}
        running.brokers[victim].pause()
        for number in range(6):  # the paused one leads some of them
            producer.produce("safe", b"x", partition=number)
        producer.poll(0)
        reassign(running.brokers[controller], "lonely", others)
        wait_for("kafka_server_replicamanager_reassigningpartitions")  # until it is back
        wait_for("kafka_server_replicamanager_isrshrinks_total")
        running.brokers[victim].kill()
        wait_for(
            "kafka_controller_kafkacontroller_fencedbrokercount",
            "kafka_controller_kafkacontroller_offlinepartitionscount",
            "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
            "kafka_controller_controllerstats_leaderelectionrateandtimems",
            "kafka_server_replicamanager_underreplicatedpartitions",
            "kafka_cluster_partition_underreplicated",
            "kafka_server_replicamanager_underminisrpartitioncount",
            "kafka_cluster_partition_underminisr",
        )
        running.brokers[victim].start()
        paused = 0
        running.wait_until_settled()
        wait_for("kafka_server_replicamanager_isrexpands_total")
        there = running.partitions("lonely")
        elsewhere = {number: [state.replicas[0] % 3 + 1] for (_, number), state in there.items()}
        reassign(running.brokers[victim], "lonely", elsewhere)
        wait_for("kafka_server_brokertopicmetrics_reassignmentbytesin_total")
        wait_for(*CLUSTER)
