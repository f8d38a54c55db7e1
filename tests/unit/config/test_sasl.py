"""Settings of SASL: what a listener has, and what is wrong with it."""

from pathlib import Path

import pytest

from ottla.config.broker import BrokerSettings
from ottla.config.live import LiveConfig
from ottla.config.load import settings_from
from ottla.config.sasl_listeners import Credentials, login_module, mechanisms_of, own_credentials, users_of
from ottla.config.setting import ConfigError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SECRET = "verysecret"


def settings(**more: str) -> BrokerSettings:
    given = {
        "listeners": "INSIDE://127.0.0.1:9092,OUTSIDE://127.0.0.1:9093",
        "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.outside.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.outside.plain.sasl.jaas.config": f'{PLAIN} user_alice="{SECRET}" user_bob=b;',
    }
    return settings_from({name: text for name, text in (given | more).items() if text})


def problems(**more: str) -> str:
    with pytest.raises(ConfigError) as failed:
        settings(**more)
    assert SECRET not in str(failed.value)
    return "\n".join(failed.value.problems)


def test_listeners_have_their_own_mechanisms_and_users() -> None:
    found = settings()
    assert mechanisms_of(found, "INSIDE") == ("SCRAM-SHA-256",)
    assert mechanisms_of(found, "OUTSIDE") == ("PLAIN",)
    assert users_of(found, "OUTSIDE").passwords == {"alice": SECRET, "bob": "b"}
    assert SECRET not in repr(users_of(found, "OUTSIDE"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI (Kerberos) needs"),
        ({"sasl.enabled.mechanisms": ""}, "GSSAPI (Kerberos) needs"),
        ({"sasl.enabled.mechanisms": "DIGEST"}, "DIGEST is not one of PLAIN"),
        ({"listener.name.outside.plain.sasl.jaas.config": ""}, "PLAIN has no users"),
        ({"listener.name.outside.plain.sasl.jaas.config": f'{PLAIN} user_a="{SECRET}"'}, "is the `;` missing?"),
        ({"listener.name.outside.plain.sasl.jaas.config": f'{SCRAM} user_a="{SECRET}";'}, "is PlainLoginModule"),
        (
            {"listener.name.outside.plain.sasl.jaas.config": f'a.Other required user_a="{SECRET}";'},
            "is no login module",
        ),
        ({"sasl.jaas.config": f'{PLAIN} user_a="{SECRET}";'}, "prefix of a listener and a mechanism"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "needs the keys that sign tokens"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "http://issuer.example/keys"}, "could be anybody's"),
        (
            {
                "listeners": "INSIDE://:9092,OUTSIDE://127.0.0.1:9093",
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.unsafe.accept.unsigned.tokens": "true",
            },
            "open to other machines",
        ),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.unsafe.accept.unsigned.tokens": "true",
                "sasl.oauthbearer.jwks.endpoint.url": "file:/keys.json",
            },
            "take one of the two out",
        ),
        (
            {
                "zookeeper.connect": "zk:2181",
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url": "file:/keys.json",
            },
            "needs sasl.oauthbearer.token.endpoint.url, and a client's id and secret",
        ),
        ({"sasl.oauthbearer.token.endpoint.url": "http://issuer.example/token"}, "anybody could read"),
        ({"sasl.server.callback.handler.class": "my.Handler"}, "classes of the JVM"),
        ({"sasl.kerberos.kinit.cmd": "/opt/kinit"}, "gets tickets from the keytab by itself"),
        ({"sasl.kerberos.principal.to.local.rules": "RULE:x"}, "neither DEFAULT nor RULE:"),
        ({"zookeeper.connect": "zk:2181"}, "sasl.mechanism.inter.broker.protocol: GSSAPI"),
        (
            {"zookeeper.connect": "zk:2181", "sasl.mechanism.inter.broker.protocol": "PLAIN"},
            "PLAIN is not among sasl.enabled.mechanisms of INSIDE",
        ),
        (
            {"zookeeper.connect": "zk:2181", "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"},
            "listener.name.inside.scram-sha-256.sasl.jaas.config: brokers log in to each other on INSIDE",
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(given: dict[str, str], words: str) -> None:
    assert words in problems(**given)


def test_brokers_log_in_to_each_other_with_the_name_and_password_of_their_listener() -> None:
    found = settings(
        **{
            "zookeeper.connect": "zk:2181",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
            "listener.name.inside.scram-sha-256.sasl.jaas.config": f'{SCRAM} username="admin" password="{SECRET}";',
        }
    )
    own = own_credentials(found)
    assert own == Credentials("SCRAM-SHA-256", "admin", SECRET)
    assert SECRET not in repr(own)


def test_the_file_that_kafkas_scripts_name_counts_where_settings_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(
        f'KafkaServer {{ {PLAIN} user_carol="c"; {SCRAM} username="admin" password="{SECRET}"; }};\n'
        f'outside.KafkaServer {{ {PLAIN} user_dave="d"; }};'
    )
    monkeypatch.setenv("KAFKA_OPTS", f"-Xmx1g -Djava.security.auth.login.config={path}")
    found = settings(**{"listener.name.outside.plain.sasl.jaas.config": ""})
    assert users_of(found, "OUTSIDE").passwords == {"dave": "d"}
    assert users_of(found, "INSIDE").passwords == {"carol": "c"}
    module = login_module(found, "INSIDE", "SCRAM-SHA-256")
    assert module is not None
    assert module.options["username"] == "admin"
    path.unlink()
    assert f"{path}: No such file" in problems(**{"listener.name.outside.plain.sasl.jaas.config": ""})


def test_kafkas_class_that_checks_tokens_may_be_named() -> None:
    settings(
        **{
            "listener.name.inside.oauthbearer.sasl.server.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
            )
        }
    )


def test_secrets_are_not_described() -> None:
    described = LiveConfig(settings()).describe_broker()
    own = "listener.name.outside.plain.sasl.jaas.config"
    for name in ("sasl.jaas.config", own):
        entry = next(each for each in described if each.name == name)
        assert (entry.value, entry.sensitive) == (None, True)
    assert SECRET not in repr(described)
