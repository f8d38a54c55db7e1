"""Topic settings: overrides over the broker's synonyms over the defaults."""

import dataclasses

import pytest

from ottla.config.broker import BROKER_SETTINGS, BrokerSettings
from ottla.config.setting import ConfigError
from ottla.config.topic import TOPIC_SETTINGS, TopicSettings, resolve_topic, validate_topic_overrides


def test_defaults_agree_with_the_brokers() -> None:
    assert resolve_topic({}, BrokerSettings()) == TopicSettings()


def test_an_override_wins_over_the_broker() -> None:
    broker = BrokerSettings(log_segment_bytes=2_000_000, log_cleanup_policy=("compact",))
    topic = resolve_topic({"segment.bytes": "3000000"}, broker)
    assert (topic.segment_bytes, topic.cleanup_policy) == (3_000_000, ("compact",))


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        (BrokerSettings(log_retention_hours=1), 3_600_000),
        (BrokerSettings(log_retention_hours=1, log_retention_minutes=2), 120_000),
        (BrokerSettings(log_retention_hours=1, log_retention_minutes=2, log_retention_ms=3), 3),
        (BrokerSettings(log_retention_hours=-1), -1),
    ],
)
def test_the_finer_unit_wins(settings: BrokerSettings, retention_ms: int) -> None:
    assert resolve_topic({}, settings).retention_ms == retention_ms


def test_roll_jitter_and_flush_units() -> None:
    broker = BrokerSettings(log_roll_hours=2, log_roll_jitter_hours=1, log_flush_scheduler_interval_ms=500)
    topic = resolve_topic({}, broker)
    assert (topic.segment_ms, topic.segment_jitter_ms, topic.flush_ms) == (7_200_000, 3_600_000, 500)
    finer = dataclasses.replace(broker, log_roll_ms=5, log_roll_jitter_ms=6, log_flush_interval_ms=7)
    topic = resolve_topic({}, finer)
    assert (topic.segment_ms, topic.segment_jitter_ms, topic.flush_ms) == (5, 6, 7)


def test_every_synonym_is_a_setting_of_the_broker_with_the_same_default() -> None:
    names = [synonym.name for declared in TOPIC_SETTINGS.values() for synonym in declared.synonyms]
    assert names
    assert set(names) <= set(BROKER_SETTINGS)


def test_lists_and_the_empty_policy() -> None:
    assert validate_topic_overrides({"cleanup.policy": "compact, delete"}) == {"cleanup.policy": ("compact", "delete")}
    assert validate_topic_overrides({"cleanup.policy": ""}) == {"cleanup.policy": ()}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("retention.msec", "1", "did you mean retention.ms"),
        ("retention.ms", "-2", "at least -1"),
        ("segment.bytes", "100", "at least 1048576"),
        ("cleanup.policy", "delete,delete", "twice"),
        ("min.compaction.lag.ms", "-5", "at least 0"),
        ("min.cleanable.dirty.ratio", "1.5", "at most 1"),
        ("remote.storage.enable", "true", "tiered storage"),
        ("compression.gzip.level", "0", "not a level"),
        ("message.timestamp.type", "createtime", "not one of"),
        ("retention.ms", None, "null"),
    ],
)
def test_wrong_overrides_are_refused_in_words(name: str, text: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        validate_topic_overrides({name: text})


def test_compaction_lags_that_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match=r"more than max\.compaction\.lag\.ms"):
        validate_topic_overrides({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"})


def test_a_value_that_changes_nothing_is_taken() -> None:
    assert validate_topic_overrides({"min.compaction.lag.ms": "0", "remote.storage.enable": "false"})
