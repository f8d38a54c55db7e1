"""zookeeper.*: what is read, and what is refused in words."""

import pytest

from ottla.config.load import settings_from
from ottla.config.setting import ConfigError
from ottla.config.zookeeper import Ensemble, parse_connect

ZOOKEEPER = {"zookeeper.connect": "zk:2181"}


@pytest.mark.parametrize(
    ("text", "hosts", "chroot"),
    [
        ("zk", ("zk:2181",), ""),
        (" a:1, b:2 ,[::1]:3", ("a:1", "b:2", "[::1]:3"), ""),
        ("[::1]", ("[::1]:2181",), ""),
        ("a:1,b:2/kafka/one/", ("a:1", "b:2"), "/kafka/one"),
        ("a:1/", ("a:1",), ""),
        ("a:1;b:2/kafka", ("a:1", "b:2"), "/kafka"),
        ("a:1/kafka;b:2/kafka", ("a:1", "b:2"), "/kafka"),
    ],
)
def test_hosts_and_chroot(text: str, hosts: tuple[str, ...], chroot: str) -> None:
    assert parse_connect(text) == Ensemble(hosts, chroot)


@pytest.mark.parametrize(
    "text", ["zk:", ":2181", "zk:port", "zk:0", "zk:70000", "a:1,,b:2", "::1", "a:1//x", "a:1/..", "a:1/x,b:2"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="give host:port,host:port/path"):
        settings_from({"zookeeper.connect": text})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"zookeeper.session.timeout.ms": "6000"}, "goes with zookeeper.connect"),
        ({**ZOOKEEPER, "zookeeper.set.acl": "true"}, "give zookeeper.sasl.username"),
        ({**ZOOKEEPER, "zookeeper.sasl.username": "u"}, "give both or none"),
        ({**ZOOKEEPER, "zookeeper.ssl.keystore.location": "k.pem"}, "needs zookeeper.ssl.client.enable=true"),
        (
            {
                **ZOOKEEPER,
                "zookeeper.ssl.client.enable": "true",
                "zookeeper.ssl.truststore.location": "trust.jks",
            },
            "trust.jks is not a PEM file",
        ),
        (
            {
                **ZOOKEEPER,
                "zookeeper.ssl.client.enable": "true",
                "zookeeper.ssl.keystore.location": "k.pem",
                "zookeeper.ssl.keystore.type": "JKS",
            },
            "k.pem is not a PEM file",
        ),
        ({**ZOOKEEPER, "zookeeper.ssl.protocol": "SSLv3"}, "protocols and ciphers are those of the system"),
    ],
)
def test_what_does_not_go_together(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        settings_from(given)


def test_a_cluster_may_have_more_replicas() -> None:
    settings = settings_from({**ZOOKEEPER, "default.replication.factor": "3", "zookeeper.set.acl": "false"})
    assert settings.default_replication_factor == 3
    assert settings.zookeeper_session_timeout_ms == 18_000
