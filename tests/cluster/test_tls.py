"""Brokers that talk to each other over TLS, with certificates on either side: what they do together works as before."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from ottla.cli.main import main
from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.load import RECONNECT, quiet
from ottla.testing.tls import Certificates
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import ZooKeeperEnsemble

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def over_tls(ensemble: ZooKeeperEnsemble, certificates: Certificates) -> Iterator[RunningCluster]:
    settings: dict[str, str | int | bool] = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
        **certificates.broker_settings(),
        "offsets.topic.num.partitions": 3,
        "transaction.state.log.num.partitions": 3,
    }
    with cluster(3, settings=settings, zookeeper=ensemble) as running:
        yield running


@pytest.fixture
def client(over_tls: RunningCluster, certificates: Certificates) -> dict[str, str | int]:
    keys = str(certificates.pem("client"))
    return {
        "bootstrap.servers": ",".join(each.bootstrap_of("SSL") for each in over_tls.brokers.values()),
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.ca),
        "ssl.certificate.location": keys,
        "ssl.key.location": keys,
        **RECONNECT,
    }


def test_replicas_groups_transactions_and_a_failover(
    over_tls: RunningCluster, client: dict[str, str | int], unique: Callable[[str], str]
) -> None:
    topic = unique("tls")
    over_tls.create_topic(NewTopic(topic, 3, replication_factor=3, config={"min.insync.replicas": "2"}))
    over_tls.wait_until_settled(topic)
    producer = Producer({**client, "acks": "all", "transactional.id": topic}, logger=quiet)
    producer.init_transactions(PATIENCE_S)

    def write(first: int) -> None:
        producer.begin_transaction()
        for number in range(first, first + 300):
            producer.produce(topic, str(number).encode(), partition=number % 3)
        producer.commit_transaction(PATIENCE_S)  # markers go to the leaders of all partitions, on other brokers too

    write(0)
    victim = over_tls.leader_of(topic, 0)
    over_tls.brokers[victim].kill()
    wait_until(lambda: over_tls.leader_of(topic, 0) != victim, "another leads", seconds=PATIENCE_S)
    write(300)
    over_tls.brokers[victim].start()
    over_tls.wait_until_settled(topic)
    consumer = Consumer(
        {**client, "group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"},
        logger=quiet,
    )
    consumer.subscribe([topic])
    got: list[int] = []
    while len(got) < 600:
        (message,) = consumer.consume(1, PATIENCE_S)
        assert message.error() is None
        got.append(int(message.value() or b""))
    consumer.commit(asynchronous=False)
    assert sorted(got) == list(range(600))
    assert sum(place.offset for place in consumer.committed([TopicPartition(topic, p) for p in range(3)])) >= 600
    consumer.close()


def test_a_tool_finds_its_way(
    over_tls: RunningCluster,
    client: dict[str, str | int],
    certificates: Certificates,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(
        f"security.protocol=SSL\nssl.truststore.location={certificates.ca}\nssl.truststore.type=PEM\n"
        f"ssl.keystore.location={certificates.pem('operator', password='hunter2')}\nssl.keystore.type=PEM\n"
        "ssl.key.password=hunter2\n"
    )
    to = ["--bootstrap-server", str(client["bootstrap.servers"]), "--command-config", str(properties)]
    assert (
        main(["topics", *to, "--create", "--topic", "by-tool", "--partitions", "3", "--replication-factor", "3"]) == 0
    )
    assert main(["topics", *to, "--describe", "--topic", "by-tool"]) == 0
    assert "ReplicationFactor: 3" in capsys.readouterr().out
    assert main(["broker-api-versions", *to]) == 0
    assert capsys.readouterr().out.count("(id: ") == 3
