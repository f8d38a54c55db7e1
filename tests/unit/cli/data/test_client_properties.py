"""Java client settings become librdkafka's, or are refused with a reason."""

import argparse

import pytest

from ottla.cli.common.output import CommandError
from ottla.cli.data import client_property_tables as tables
from ottla.cli.data.client_properties import admin_settings, consumer_settings, load_properties, producer_settings
from ottla.cli.data.kafka_clients import open_consumer, open_producer


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ({"acks": "all"}, {"acks": "all"}),
        ({"buffer.memory": "1048576"}, {"queue.buffering.max.kbytes": 1024, "queue.buffering.max.messages": 0}),
        ({"batch.size": "0"}, {"batch.size": 1}),
        ({"max.request.size": "2000000"}, {"message.max.bytes": 2_000_000}),
        ({"max.block.ms": "7000"}, {"topic.metadata.propagation.max.ms": 7000}),
        ({"request.timeout.ms": "1500"}, {"request.timeout.ms": 1500, "socket.timeout.ms": 1500}),
        ({"metadata.max.age.ms": "5000"}, {"topic.metadata.refresh.interval.ms": 5000, "metadata.max.age.ms": 15_000}),
        ({"send.buffer.bytes": "-1"}, {"socket.send.buffer.bytes": 0}),
        ({"compression.type": "zstd", "compression.zstd.level": "7"}, {"compression.level": 7}),
        ({"partitioner.ignore.keys": "true"}, {"partitioner": "random"}),
        ({}, {"partitioner": "murmur2_random", "enable.idempotence": True, "batch.size": 16_384}),
        ({"acks": "1"}, {"enable.idempotence": False}),
        ({"retries": "0"}, {"enable.idempotence": False}),
        ({"security.protocol": "SASL_SSL"}, {"security.protocol": "sasl_ssl"}),
        (
            {"sasl.jaas.config": 'org.x.PlainLoginModule required username="al ice" password="s=1";'},
            {"sasl.username": "al ice", "sasl.password": "s=1"},
        ),
        ({"ssl.truststore.location": "/ca.pem", "ssl.truststore.type": "PEM"}, {"ssl.ca.location": "/ca.pem"}),
        (
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "x"},
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "x"},
        ),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
    ],
)
def test_producer_settings(java: dict[str, str], librdkafka: dict[str, object]) -> None:
    translated = producer_settings(java).librdkafka
    assert librdkafka.items() <= translated.items()


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ({"fetch.max.wait.ms": "20"}, {"fetch.wait.max.ms": "20"}),
        ({"fetch.max.bytes": "5000"}, {"fetch.max.bytes": 5000, "message.max.bytes": 5000}),
        ({"auto.offset.reset": "none"}, {"auto.offset.reset": "error"}),
        (
            {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
            {"partition.assignment.strategy": "cooperative-sticky"},
        ),
        (
            {"partition.assignment.strategy": "[a.RangeAssignor, a.RoundRobinAssignor]"},
            {"partition.assignment.strategy": "range,roundrobin"},
        ),
        (
            {"partition.assignment.strategy": "a.RangeAssignor,a.CooperativeStickyAssignor"},
            {"partition.assignment.strategy": "range"},
        ),
        ({}, {"isolation.level": "read_uncommitted", "check.crcs": "true", "partition.assignment.strategy": "range"}),
        ({"group.instance.id": "one"}, {"group.instance.id": "one"}),
    ],
)
def test_consumer_settings(java: dict[str, str], librdkafka: dict[str, object]) -> None:
    translated = consumer_settings(java).librdkafka
    assert librdkafka.items() <= translated.items()


def test_settings_that_the_tools_apply_themselves() -> None:
    assert producer_settings({"max.block.ms": "250"}).max_block_s == 0.25
    consumer = consumer_settings({"max.poll.records": "7", "exclude.internal.topics": "false"})
    assert (consumer.max_poll_records, consumer.exclude_internal_topics) == (7, False)


def test_the_group_protocol_of_the_broker_takes_no_assignor() -> None:
    assert "partition.assignment.strategy" not in consumer_settings({"group.protocol": "CONSUMER"}).librdkafka


@pytest.mark.parametrize(
    ("java", "reason"),
    [
        ({"transactional.id": "t"}, "does not write in transactions"),
        ({"interceptor.classes": "com.acme.Spy"}, "Java classes"),
        ({"acks": "2"}, "acks is all, -1, 0 or 1"),
        ({"partitioner.class": "com.acme.P"}, "without a counterpart"),
        ({"ssl.truststore.location": "/x.jks"}, "export its certificates as PEM"),
        ({"ssl.keystore.location": "/x.jks"}, "PKCS12"),
        ({"ssl.enabled.protocols": "TLSv1"}, "only TLSv1.2 and TLSv1.3"),
        ({"sasl.login.class": "com.acme.L"}, "no JVM"),
        ({"sasl.jaas.config": "com.acme.LoginModule required;"}, "not known"),
        ({"batch.size": "big"}, "whole number"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_words(java: dict[str, str], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        producer_settings(java)


@pytest.mark.parametrize(
    ("java", "reason"),
    [
        ({"partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor"}, "Cooperative"),
        ({"partition.assignment.strategy": "com.acme.A"}, "there is no assignor"),
        ({"auto.offset.reset": "by_duration:PT1H"}, "earliest, latest or none"),
        ({"max.poll.records": "0"}, "at least 1"),
    ],
)
def test_consumer_settings_that_are_refused(java: dict[str, str], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        consumer_settings(java)


def test_the_words_of_the_old_clients_are_understood() -> None:
    consumer = consumer_settings({"auto.offset.reset": "smallest", "auto.commit.enable": "false"}).librdkafka
    assert (consumer["auto.offset.reset"], consumer["enable.auto.commit"]) == ("earliest", "false")
    assert consumer_settings({"auto.offset.reset": "Largest"}).librdkafka["auto.offset.reset"] == "latest"
    producer = producer_settings({"request.required.acks": "1", "metadata.broker.list": "h:1"}).librdkafka
    assert (producer["acks"], producer["enable.idempotence"], producer["bootstrap.servers"]) == ("1", False, "h:1")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("timeout.ms", "use delivery.timeout.ms"),
        ("metadata.fetch.timeout.ms", "use max.block.ms"),
        ("in.flight.requests.per.session", "use max.in.flight.requests.per.connection"),
        ("zookeeper.connect", "use bootstrap.servers"),
    ],
)
def test_names_that_are_no_more_are_answered_with_those_that_are(name: str, hint: str) -> None:
    with pytest.raises(CommandError, match=f"{name}=1 is not supported: .*{hint}"):
        producer_settings({name: "1"})


def test_a_setting_that_has_no_effect_is_left_out_and_named() -> None:
    settings = producer_settings({"metric.reporters": "x", "value.serializer": "y", "group.id": "g"})
    assert not {"metric.reporters", "value.serializer", "group.id"} & settings.librdkafka.keys()
    assert [note.split(" ", 1)[0] for note in settings.notes] == ["metric.reporters", "value.serializer", "group.id"]
    assert "consumer" in settings.notes[2]


def test_every_name_stands_in_one_table_only() -> None:
    for side in ("PRODUCER", "CONSUMER"):
        seen: set[str] = set()
        for owner in ("COMMON", side):
            for kind in ("SAME", "CONVERTED", "DROPPED", "REFUSED"):
                names = set(getattr(tables, f"{owner}_{kind}"))
                assert not names & seen, f"twice: {names & seen}"
                seen |= names


_SAMPLES = {
    "client.dns.lookup": "use_all_dns_ips", "metadata.recovery.strategy": "none", "enable.metrics.push": "false",
    "compression.type": "lz4", "enable.idempotence": "false", "isolation.level": "read_committed",
    "bootstrap.servers": "127.0.0.1:1", "acks": "1", "partitioner.class": "", "partitioner.ignore.keys": "false",
    "auto.offset.reset": "latest", "partition.assignment.strategy": "RangeAssignor", "group.protocol": "classic",
    "allow.auto.create.topics": "false", "check.crcs": "false", "enable.auto.commit": "false",
    "session.timeout.ms": "6000", "heartbeat.interval.ms": "2000", "max.poll.interval.ms": "60000",
    "max.in.flight.requests.per.connection": "3", "linger.ms": "5",
}  # fmt: skip


def test_librdkafka_knows_every_setting_we_hand_it() -> None:
    def sample(names: set[str]) -> dict[str, str]:
        return {name: _SAMPLES.get(name, "5000") for name in names if name != "group.remote.assignor"}

    common = set(tables.COMMON_SAME) | set(tables.COMMON_CONVERTED)
    producing = sample(common | set(tables.PRODUCER_SAME) | set(tables.PRODUCER_CONVERTED))
    open_producer(producer_settings(producing))
    consuming = sample(common | set(tables.CONSUMER_SAME) | set(tables.CONSUMER_CONVERTED))
    open_consumer(consumer_settings(consuming))[0].close()


def test_kerberos_is_not_in_the_wheels_of_librdkafka() -> None:
    asked = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
    with pytest.raises(CommandError, match=r"wheels have without Kerberos; kcat"):
        open_producer(producer_settings(asked))


def test_an_admin_client_takes_the_connection_settings_only() -> None:
    given = {"bootstrap.servers": "h:1", "acks": "1", "group.id": "g", "security.protocol": "SSL"}
    assert admin_settings(given) == {"bootstrap.servers": "h:1", "security.protocol": "ssl"}


def test_files_come_first_and_pairs_override_them(tmp_path: object) -> None:
    file = f"{tmp_path}/client.properties"
    with open(file, "w") as out:
        out.write("acks=1\nlinger.ms=3\n")
    args = argparse.Namespace(command_config=file, producer_config=None, command_property=["acks=all"])
    loaded = load_properties(args, ["command-config", "producer.config"], ["command-property"])
    assert loaded == {"acks": "all", "linger.ms": "3"}
    args.producer_config = file
    with pytest.raises(CommandError, match="one option"):
        load_properties(args, ["command-config", "producer.config"], ["command-property"])
