"""Settings changed while the broker runs, and where each value comes from."""

import pytest

from ottla.config.broker import BrokerSettings
from ottla.config.live import ConfigEntry, ConfigSource, LiveConfig
from ottla.config.load import settings_from
from ottla.config.setting import ConfigError


def entry(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    return next(e for e in entries if e.name == name)


def test_dynamic_settings_take_effect_on_broker_and_topics_and_go_away_again() -> None:
    live = LiveConfig(settings_from({"log.retention.hours": "1"}))
    assert live.topic("t").retention_ms == 3_600_000
    live.update_topic("own", {"retention.ms": "9"})
    live.update_broker({"log.retention.ms": "5", "message.max.bytes": "77"}, {"message.max.bytes": "88"})
    assert live.broker.message_max_bytes == 88
    assert (live.topic("t").retention_ms, live.topic("own").retention_ms) == (5, 9)
    assert live.topic("own").max_message_bytes == 88
    live.update_broker({}, {})
    assert (live.broker.message_max_bytes, live.topic("t").retention_ms) == (1_048_588, 3_600_000)
    live.update_topic("own", None)
    assert live.topic("own") is live.topic("t")


def test_sources_and_synonyms_of_a_broker_setting() -> None:
    live = LiveConfig(settings_from({"message.max.bytes": "66"}))
    live.update_broker({"message.max.bytes": "77"}, {"message.max.bytes": "88"})
    found = entry(live.describe_broker(), "message.max.bytes")
    assert (found.value, found.source, found.read_only) == ("88", ConfigSource.DYNAMIC_BROKER_CONFIG, False)
    assert [(s.value, s.source) for s in found.synonyms] == [
        ("88", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("77", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("66", ConfigSource.STATIC_BROKER_CONFIG),
        ("1048588", ConfigSource.DEFAULT_CONFIG),
    ]
    assert [(e.name, e.value) for e in live.describe_cluster_default()] == [("message.max.bytes", "77")]
    assert entry(live.describe_broker(), "node.id").read_only


def test_sources_and_synonyms_of_a_topic_setting() -> None:
    live = LiveConfig(settings_from({"log.retention.hours": "2"}))
    plain = entry(live.describe_topic({}), "retention.ms")
    assert (plain.value, plain.source) == ("7200000", ConfigSource.STATIC_BROKER_CONFIG)
    assert [(s.name, s.value) for s in plain.synonyms] == [("log.retention.hours", "2"), ("log.retention.hours", "168")]
    own = entry(live.describe_topic({"retention.ms": "5"}), "retention.ms")
    assert (own.value, own.source) == ("5", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert own.synonyms[0].name == "retention.ms"
    assert entry(live.describe_topic({}), "cleanup.policy").source is ConfigSource.DEFAULT_CONFIG


def test_an_unset_setting_has_no_value() -> None:
    found = entry(LiveConfig(BrokerSettings()).describe_broker(), "log.retention.ms")
    assert (found.value, found.source) == (None, ConfigSource.DEFAULT_CONFIG)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("node.id", "cannot be changed while it runs"),
        ("num.io.threads", "event loop"),
        ("mesage.max.bytes", "did you mean message.max.bytes"),
        ("listeners", "cannot be changed while it runs"),
    ],
)
def test_what_cannot_change_is_refused(name: str, words: str) -> None:
    live = LiveConfig(BrokerSettings())
    before = live.broker
    with pytest.raises(ConfigError, match=words):
        live.update_broker({name: "1"}, {})
    assert live.broker is before
