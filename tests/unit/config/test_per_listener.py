"""What is given for one listener wins over what is given for all, and a slip in such a name is told of."""

import pytest

from ottla.config.broker import BrokerSettings
from ottla.config.listeners import (
    asks_for_certificates,
    exposure_problems,
    inter_broker_listener,
    opened_listeners,
)
from ottla.config.live import ConfigSource, LiveConfig, validate_dynamic
from ottla.config.load import settings_from
from ottla.config.per_listener import own_value, read_name, settings_for
from ottla.config.setting import ConfigError

LISTENERS = {
    "listeners": "INTERNAL://127.0.0.1:9092,EXTERNAL://127.0.0.1:9093",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:SSL",
    "ssl.keystore.location": "all.pem",
}

METRICS = {
    "listeners": "PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:2",
    "ssl.keystore.location": "x",
    "metrics.listener": "0.0.0.0:9404",
}


def settings(**given: str) -> BrokerSettings:
    return settings_from({**LISTENERS, **{name.replace("_", "."): value for name, value in given.items()}})


def problems(given: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        settings_from({**LISTENERS, **given})
    return str(caught.value)


def test_the_listeners_own_wins() -> None:
    loaded = settings(listener_name_external_ssl_keystore_location="own.pem", ssl_client_auth="requested")
    assert settings_for(loaded, "INTERNAL").ssl_keystore_location == "all.pem"
    external = settings_for(loaded, "EXTERNAL")
    assert (external.ssl_keystore_location, external.ssl_client_auth) == ("own.pem", "requested")
    assert own_value(loaded, "External", "ssl.keystore.location") == "own.pem"
    assert own_value(loaded, "EXTERNAL", "ssl.client.auth") is None
    assert hash(loaded)


def test_names_are_taken_apart() -> None:
    found = read_name("listener.name.a.b-c.ssl.key.password")
    assert (found.listener, found.mechanism, found.declared.name) == ("a.b-c", None, "ssl.key.password")
    # A mechanism of a setting that cannot differ between them.
    with pytest.raises(ConfigError, match=r"take .plain out"):
        read_name("listener.name.external.plain.ssl.key.password")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("listener.name.extern.ssl.key.password", "there is no listener extern; there are external, internal"),
        ("listener.name.EXTERNAL.ssl.key.password", "written in lower case here, listener.name.external.ssl"),
        ("listener.name.external.num.partitions", "num.partitions is the broker's"),
        ("listener.name.external.ssl.provider", "not served for one listener"),
        ("listener.name.external.ssl.protocol", "it has no effect here"),
        ("listener.name.external.ssl.nonsense", "there is no such setting"),
        ("listener.name.external", "there is no such setting"),
    ],
)
def test_slips(name: str, words: str) -> None:
    assert words in problems({name: "x"})


def test_a_value_is_checked_under_its_whole_name() -> None:
    assert "listener.name.external.ssl.client.auth: " in problems({"listener.name.external.ssl.client.auth": "maybe"})


def test_settings_of_a_listener_that_kafka_keeps_for_controllers_may_stay() -> None:
    assert settings(
        controller_listener_names="CONTROLLER", listener_name_controller_ssl_keystore_location="x"
    ).per_listener


def test_changes_at_run_time() -> None:
    live = LiveConfig(settings(listener_name_external_ssl_key_password="hunter2"))
    name = "listener.name.external.ssl.keystore.location"
    live.update_broker({}, {name: "new.pem"})
    assert settings_for(live.broker, "EXTERNAL").ssl_keystore_location == "new.pem"
    shown = {entry.name: entry for entry in live.describe_broker()}
    assert (shown[name].value, shown[name].source) == ("new.pem", ConfigSource.DYNAMIC_BROKER_CONFIG)
    assert [synonym.name for synonym in shown[name].synonyms] == [name, "ssl.keystore.location"]
    secret = shown["listener.name.external.ssl.key.password"]
    assert (secret.value, secret.sensitive) == (None, True)
    assert "hunter2" not in str(live.describe_broker())
    live.update_broker({}, {})
    assert settings_for(live.broker, "EXTERNAL").ssl_keystore_location == "all.pem"


def test_what_cannot_change_at_run_time() -> None:
    for given, for_one, words in (
        ({"ssl.keystore.location": "x"}, True, "listener.name.NAME.ssl.keystore.location"),
        ({"listener.name.external.ssl.keystore.location": "x"}, False, "belongs to one broker"),
        ({"listener.name.external.ssl.principal.mapping.rules": "DEFAULT"}, True, "cannot be changed"),
    ):
        with pytest.raises(ConfigError, match=words):
            validate_dynamic(given, for_one_broker=for_one)


def test_which_listener_is_between_brokers() -> None:
    both = {
        "listeners": "SSL://127.0.0.1:1,PLAINTEXT://127.0.0.1:2",
        "listener.security.protocol.map": "SSL:SSL,PLAINTEXT:PLAINTEXT",
    }
    assert inter_broker_listener(settings()) == "INTERNAL"
    assert inter_broker_listener(settings(inter_broker_listener_name="external")) == "EXTERNAL"
    assert inter_broker_listener(settings_from({**LISTENERS, **both})) == "PLAINTEXT", (
        "as in Kafka, where it is the default"
    )
    by_protocol = {**LISTENERS, **both, "security.inter.broker.protocol": "SSL"}
    assert inter_broker_listener(settings_from(by_protocol)) == "SSL"
    assert "not both" in problems(
        {**both, "security.inter.broker.protocol": "SSL", "inter.broker.listener.name": "SSL"}
    )
    assert "no listener is called SSL" in problems({"security.inter.broker.protocol": "SSL"})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"listeners": "PLAINTEXT://127.0.0.1:9092"}, True),
        ({"listeners": "PLAINTEXT://[::1]:9092"}, True),
        ({"listeners": "PLAINTEXT://localhost:9092"}, True),
        ({"listeners": "PLAINTEXT://:9092"}, False),
        ({"listeners": "PLAINTEXT://[::]:9092"}, False),
        ({"listeners": "PLAINTEXT://192.168.1.7:9092"}, False),
        ({"listeners": "PLAINTEXT://broker-1:9092"}, False),
        ({"listeners": "PLAINTEXT://:9092", "ottla.allow.unauthenticated.listeners": "true"}, True),
        ({"listeners": "SSL://:9092", "ssl.keystore.location": "x"}, False),
        ({"listeners": "SSL://:9092", "ssl.keystore.location": "x", "ssl.client.auth": "requested"}, False),
        ({"listeners": "SSL://:9092", "ssl.keystore.location": "x", "ssl.client.auth": "required"}, True),
        (
            {"listeners": "SSL://:9092", "ssl.keystore.location": "x", "listener.name.ssl.ssl.client.auth": "required"},
            True,
        ),
        ({"metrics.listener": "9404"}, True),
        ({"metrics.listener": "0.0.0.0:9404"}, False),
        ({"metrics.listener": "0.0.0.0:9404", "ottla.allow.unauthenticated.listeners": "true"}, True),
        ({**METRICS, "metrics.listener.tls": "ssl"}, False),
        ({**METRICS, "metrics.listener.tls": "ssl", "ssl.client.auth": "required"}, True),
        ({**METRICS, "metrics.listener.tls": "ssl", "metrics.listener.login": "scram"}, True),
    ],
)
def test_a_port_that_anybody_can_use_is_not_opened_by_accident(given: dict[str, str], meant: bool) -> None:
    told = exposure_problems(settings_from(given))
    assert not told if meant else "ottla.allow.unauthenticated.listeners=true" in told[0]


def test_passwords_of_readers_of_metrics_do_not_go_in_clear() -> None:
    told = exposure_problems(settings_from({**METRICS, "metrics.listener.login": "scram"}))
    assert "passwords would go there in clear" in told[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"metrics.listener.login": "scram"}, "about metrics.listener, which is not given"),
        ({"metrics.listener": "1", "metrics.listener.login": "everybody"}, "is neither scram"),
        ({"metrics.listener": "1", "metrics.listener.tls": "PLAINTEXT"}, "no listener that speaks TLS; there is none"),
        ({**METRICS, "metrics.listener.tls": "OTHER"}, "no listener that speaks TLS; there are SSL"),
    ],
)
def test_what_is_wrong_with_the_guard_of_metrics(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_from(given)
    assert words in str(caught.value)


def test_on_sasl_listeners_certificates_are_asked_for_only_where_it_was_said() -> None:
    """As in Kafka: who turns certificates on for SSL does not shut out those who log in."""
    given = {
        "listeners": "SASL_SSL://127.0.0.1:1,SSL://127.0.0.1:2",
        "ssl.keystore.location": "x",
        "ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    login, certificate = opened_listeners(settings_from(given))
    assert asks_for_certificates(settings_from(given), login) == "none"
    assert asks_for_certificates(settings_from(given), certificate) == "required"
    both = settings_from({**given, "listener.name.sasl_ssl.ssl.client.auth": "requested"})
    assert asks_for_certificates(both, login) == "requested"
