"""Files tuned for Kafka: what they say is read, and what has nothing to act on is named in a line that says why."""

import pytest

from ottla.config.broker import BrokerSettings
from ottla.config.guessing import nearest
from ottla.config.live import validate_dynamic
from ottla.config.load import settings_from
from ottla.config.replication import RACK_AWARE_SELECTOR
from ottla.config.setting import ConfigError
from ottla.config.spellings import unknown_setting
from ottla.config.topic import unknown_topic_setting


def notes_of(given: dict[str, str]) -> list[str]:
    return [note.text for note in settings_from(given).notes]


def test_one_line_names_all_that_has_no_effect_for_one_reason() -> None:
    settings = settings_from({"num.network.threads": "16", "num.io.threads": "32", "queued.max.requests": "2000"})
    threads, queue = settings.notes
    assert threads.text.startswith("num.network.threads, num.io.threads: no effect here, a broker has one event loop")
    assert queue.text.startswith("queued.max.requests: no effect here, requests are handled as they arrive")
    assert threads.matters
    assert queue.matters


def test_kafkas_default_is_named_too_but_nobody_is_warned() -> None:
    (note,) = settings_from({"num.network.threads": "3", "num.io.threads": "8"}).notes
    assert not note.matters


def test_the_value_of_a_secret_is_not_said() -> None:
    (note,) = settings_from({"rsm.config.secret": "hunter2"}).notes
    assert "rsm.config.secret" in note.text
    assert "hunter2" not in note.text


@pytest.mark.parametrize(
    "given",
    [
        {"metric.reporters": "io.confluent.metrics.reporter.ConfluentMetricsReporter"},
        {"confluent.metrics.reporter.bootstrap.servers": "localhost:9092"},
        {"inter.broker.protocol.version": "2.8", "log.message.format.version": "2.8"},
        {"rsm.config.chunk.size": "4194304", "remote.log.reader.threads": "20"},
        {"broker.session.timeout.ms": "18000", "metadata.log.dir": "/var/lib/kafka/meta"},
        {"group.coordinator.rebalance.protocols": "classic,consumer,streams"},
        {"share.coordinator.state.topic.replication.factor": "3", "group.share.record.lock.duration.ms": "15000"},
        {"controlled.shutdown.max.retries": "10", "control.plane.listener.name": "CONTROLLER"},
    ],
)
def test_what_a_tuned_file_has_is_accepted_with_a_line(given: dict[str, str]) -> None:
    said = " ".join(notes_of(given))
    assert all(name in said for name in given)
    assert "no effect" in said


def test_a_change_at_run_time_is_meant_to_have_an_effect() -> None:
    with pytest.raises(ConfigError, match=r"num\.io\.threads: it has no effect here: a broker has one event loop"):
        validate_dynamic({"num.io.threads": "16"}, for_one_broker=True)


def test_a_node_of_its_own_may_say_so_in_the_words_of_kraft() -> None:
    given = {"process.roles": "broker,controller", "node.id": "4", "controller.quorum.voters": "4@localhost:9093"}
    (line,) = notes_of(given)
    assert line.startswith("process.roles, controller.quorum.voters: no effect here, metadata is kept in SQLite")


def test_with_zookeeper_a_quorum_may_stay_in_the_file() -> None:
    given = {
        "zookeeper.connect": "zk:2181",
        "process.roles": "broker",
        "controller.quorum.voters": "1@a:9093,2@b:9093,3@c:9093",
    }
    (line,) = notes_of(given)
    assert "metadata is kept in ZooKeeper" in line


@pytest.mark.parametrize(
    ("given", "listeners", "advertised"),
    [
        ({"port": "9099"}, "PLAINTEXT://127.0.0.1:9099", None),
        ({"host.name": "box"}, "PLAINTEXT://box:9092", None),
        ({"host.name": "::1", "port": "1"}, "PLAINTEXT://[::1]:1", None),
        ({"advertised.host.name": "out", "port": "9"}, "PLAINTEXT://:9", "PLAINTEXT://out:9"),
        ({"host.name": "in", "advertised.port": "9100"}, "PLAINTEXT://in:9092", "PLAINTEXT://in:9100"),
        ({"listeners": "PLAINTEXT://a:1", "port": "2"}, "PLAINTEXT://a:1", None),
    ],
)
def test_host_and_port_of_old_files(given: dict[str, str], listeners: str, advertised: str | None) -> None:
    settings = settings_from(given)
    assert settings.listeners == (listeners,)
    assert settings.advertised_listeners == (None if advertised is None else (advertised,))
    assert settings.notes, "it is said what became of them"


def test_an_id_is_not_generated() -> None:
    assert settings_from({"broker.id": "-1", "node.id": "4"}).node_id == 4
    with pytest.raises(ConfigError, match="give every broker one of its own"):
        settings_from({"broker.id": "-1"})


def test_one_bound_for_times_becomes_two() -> None:
    settings = settings_from(
        {"log.message.timestamp.difference.max.ms": "5000", "log.message.timestamp.after.max.ms": "7"}
    )
    assert (settings.log_message_timestamp_before_max_ms, settings.log_message_timestamp_after_max_ms) == (5000, 7)


def test_classes_without_their_package_and_words_that_were_classes() -> None:
    package = "org.apache.kafka.coordinator.group.assignor."
    settings = settings_from(
        {
            "replica.selector.class": "RackAwareReplicaSelector",
            "group.consumer.assignors": f"{package}RangeAssignor,{package}UniformAssignor",
        }
    )
    assert settings.replica_selector_class == RACK_AWARE_SELECTOR
    assert settings.group_consumer_assignors == ("range", "uniform")
    assert settings_from({}) == BrokerSettings()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("log.segment.ms", "use log.roll.ms"),
        ("segment.ms", "whose default for all is log.roll.ms"),
        ("max.message.bytes", "whose default for all is message.max.bytes"),
        ("replica.lag.max.messages", "use replica.lag.time.max.ms"),
        ("zk.connect", "use zookeeper.connect"),
        ("log.segement.bytes", "did you mean log.segment.bytes?"),
        ("num.network.thread", "did you mean num.network.threads?"),
        ("max.bytes.message", "did you mean message.max.bytes?"),
    ],
)
def test_hints_name_what_was_meant(name: str, hint: str) -> None:
    assert hint in unknown_setting(name)


@pytest.mark.parametrize("name", ["log.segment.size", "timeout.ms", "session.timeout.ms", "log.retention.weeks"])
def test_no_hint_is_better_than_a_wrong_one(name: str) -> None:
    assert unknown_setting(name) == f"{name}: there is no such setting"


def test_a_brokers_name_for_a_topics_setting() -> None:
    assert unknown_topic_setting("log.retention.ms").endswith("it is the brokers' default of retention.ms")
    assert unknown_topic_setting("log.segment.ms") == "log.segment.ms: there is no such topic setting"


def test_nearest_wants_every_word_nearly_right() -> None:
    assert nearest("log_segment_byte", ["log.segment.bytes"]) == "log.segment.bytes"
    assert nearest("log.segment.ms", ["log.segment.bytes"]) is None
    assert nearest("anything", []) is None
