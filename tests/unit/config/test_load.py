"""From files and words to settings: what works, what is refused and with which words."""

from pathlib import Path

import pytest

from ottla.config.broker import BROKER_SETTINGS, BrokerSettings
from ottla.config.listeners import ListenerAddress, advertised_listeners, opened_listeners
from ottla.config.load import load_settings, settings_from
from ottla.config.network import per_ip_overrides
from ottla.config.refused import REFUSED
from ottla.config.setting import ConfigError
from ottla.config.without_effect import WITHOUT_EFFECT

# What Apache Kafka 4.3 ships for one node that is broker and controller (values only).
STOCK = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,\\
    SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=data
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def problems_of(**given: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        settings_from({name.replace("_", "."): value for name, value in given.items()})
    return caught.value.problems


def test_the_file_that_kafka_ships_is_taken_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(STOCK)
    settings = load_settings(str(file), [])
    assert settings.data_dirs == ("data",)
    assert opened_listeners(settings) == (ListenerAddress("PLAINTEXT", "", 9092, "PLAINTEXT"),)
    assert advertised_listeners(settings) == (ListenerAddress("PLAINTEXT", "localhost", 9092, "PLAINTEXT"),)


def test_words_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nlog.dirs=a,b\n")
    settings = load_settings(str(file), ["num.partitions=7", "log.dirs = c "])
    assert (settings.num_partitions, settings.log_dirs) == (7, ("c",))
    assert settings.explicit == {"num.partitions", "log.dirs"}


def test_without_anything_the_defaults_are_valid_and_loopback() -> None:
    settings = load_settings(None, [])
    assert settings == BrokerSettings()
    assert [listener.host for listener in opened_listeners(settings)] == ["127.0.0.1"]


def test_every_problem_is_told_at_once() -> None:
    problems = problems_of(
        authorizer_class_name="X",
        zookeeper_connect="zk:none",
        log_segment_byte="1",
        num_partitions="many",
        node_id="-3",
    )
    assert len(problems) == 5
    assert any("authorizer.class.name: " in p and "there is no X" in p and "StandardAuthorizer" in p for p in problems)
    assert any("zookeeper.connect: 'zk:none' is not host:port" in p for p in problems)
    assert any("log.segment.byte: " in p and "did you mean log.segment.bytes?" in p for p in problems)
    assert any("num.partitions" in p and "'many'" in p for p in problems)
    assert any("node.id" in p and "at least 0" in p for p in problems)


def test_a_refused_setting_at_kafkas_default_changes_nothing_and_is_taken() -> None:
    settings_from(
        {"ssl.client.auth": "none", "group.consumer.assignors": "uniform, range", "log.cleaner.enable": "TRUE"}
    )
    settings_from({"log.cleaner.io.max.bytes.per.second": "1.7976931348623157E308"})


def test_every_setting_has_one_answer() -> None:
    assert not set(BROKER_SETTINGS) & set(REFUSED)
    assert not set(WITHOUT_EFFECT) & (set(BROKER_SETTINGS) | set(REFUSED))
    assert all(refused.reason for refused in REFUSED.values())
    assert all(idle.reason for idle in WITHOUT_EFFECT.values())


def test_a_refusal_does_not_show_a_secret() -> None:
    told = problems_of(sasl_oauthbearer_assertion_private_key_passphrase="hunter2")
    assert len(told) == 1
    assert told[0].startswith("sasl.oauthbearer.assertion.private.key.passphrase: brokers ask for their tokens")
    assert "hunter2" not in told[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"listeners": "SSL://:9093"}, "SSL speaks SSL and has no key and certificate"),
        ({"listeners": "CLIENTS://:9093"}, "does not say what CLIENTS speaks"),
        ({"listeners": "PLAINTEXT://host"}, "is not NAME://host:port"),
        ({"listeners": "PLAINTEXT://host:70000"}, "is not NAME://host:port"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "given twice"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "no host that a client"),
        ({"advertised.listeners": "OTHER://h:9092"}, "does not say what OTHER speaks"),
        ({"listener.security.protocol.map": "PLAINTEXT:PLAIN"}, "is not NAME:protocol"),
        ({"inter.broker.listener.name": "INTERNAL"}, "not among the listeners"),
        ({"process.roles": "broker"}, "give every broker zookeeper.connect"),
        ({"process.roles": "controller"}, "Do not start this node"),
        ({"process.roles": "controller", "zookeeper.connect": "zk:2181"}, "Do not start this node"),
        ({"controller.quorum.voters": "1@a:9093,2@b:9093"}, "give every broker zookeeper.connect"),
        ({"controller.quorum.voters": "2@b:9093"}, "give every broker zookeeper.connect"),
        ({"controller.quorum.bootstrap.servers": "a:9093,b:9093"}, "give every broker zookeeper.connect"),
        ({"remote.log.storage.system.enable": "true"}, "tiered storage is not served"),
        ({"quota.producer.default": "1048576"}, "quotas are set while brokers run"),
        ({"port": "none"}, "not the number of a port"),
        ({"queued.max.request.bytes": "1000"}, "less than one request"),
        ({"default.replication.factor": "3"}, "one replica"),
        ({"broker.id": "2", "node.id": "3"}, "give one of them"),
        ({"log.retention.hours": "0"}, "delete every record"),
        ({"log.dirs": "a,a"}, "twice"),
        ({"log.dirs": ""}, "at least one directory"),
        ({"log.cleanup.policy": "shrink"}, "not one of"),
        ({"max.connections.per.ip.overrides": "127.0.0.1"}, "is not address:count"),
        ({"max.connections.per.ip.overrides": "localhost:3"}, "is not address:count"),
        ({"ssl.provider": "BCFIPS"}, "OpenSSL's here"),
        ({"group.min.session.timeout.ms": "9999999"}, "group.max.session.timeout.ms"),
        ({"num.partitions": "99999999999"}, "32 bits"),
        ({"auto.create.topics.enable": "yes"}, "true or false"),
    ],
)
def test_refusals_say_why(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        settings_from(given)
    assert all(problem.startswith(tuple(given)) for problem in caught.value.problems)


def test_broker_id_is_node_id() -> None:
    settings = settings_from({"broker.id": "7"})
    assert (settings.node_id, settings.broker_id) == (7, 7)
    assert settings_from({"node.id": "7", "broker.id": "7"}).node_id == 7


def test_ipv6_and_several_listeners() -> None:
    settings = settings_from(
        {
            "listeners": "PLAINTEXT://[::1]:9092,inside://0.0.0.0:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://[2001:db8::1]:19092,INSIDE://box:1",
        }
    )
    first, second = opened_listeners(settings)
    assert (first.host, str(first), first.on_every_interface) == ("::1", "PLAINTEXT://[::1]:9092", False)
    assert (second.name, second.port, second.on_every_interface) == ("INSIDE", 0, True)
    assert [a.host for a in advertised_listeners(settings)] == ["2001:db8::1", "box"]


def test_a_missing_file_and_a_word_without_value(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_settings(str(tmp_path / "none"), [])
    with pytest.raises(ConfigError, match="key=value"):
        load_settings(None, ["num.partitions"])


def test_limits_by_address() -> None:
    assert per_ip_overrides("127.0.0.1:5, [::1]:6,0:0:0:0:0:0:0:2:7") == {"127.0.0.1": 5, "::1": 6, "::2": 7}
