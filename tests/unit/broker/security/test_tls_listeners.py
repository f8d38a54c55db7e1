"""The stores of listeners: read at start, replaced at run time, refused where clients would be lost."""

import logging
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from ottla.broker.security.peers import inter_broker_security
from ottla.broker.security.tls.listeners import TlsListeners
from ottla.broker.session import ANONYMOUS
from ottla.client.security import PLAINTEXT
from ottla.config.broker import BrokerSettings
from ottla.config.live import with_dynamic
from ottla.config.load import settings_from
from ottla.testing.tls import Certificates
from ottla.tls.stores import StoreError

HOSTS = ("localhost", "127.0.0.1")
LOCATION = "listener.name.out.ssl.keystore.location"


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path / "ca")


@pytest.fixture
def settings(certificates: Certificates) -> BrokerSettings:
    return settings_for(certificates)


def settings_for(certificates: Certificates, **more: str) -> BrokerSettings:
    return settings_from(
        {
            "listeners": "IN://127.0.0.1:1,OUT://127.0.0.1:2",
            "listener.security.protocol.map": "IN:PLAINTEXT,OUT:SSL",
            LOCATION: str(certificates.pem("broker", HOSTS)),
            "ssl.truststore.location": str(certificates.ca),
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )


def loaded(settings: BrokerSettings) -> TlsListeners:
    tls = TlsListeners()
    tls.load(settings, settings)
    return tls


def test_only_listeners_with_tls_are_there(settings: BrokerSettings) -> None:
    tls = loaded(settings)
    assert "OUT" in tls
    assert "IN" not in tls


def test_who_the_owner_of_a_certificate_is(certificates: Certificates) -> None:
    der = certificates.keys("Alice").certificate.public_bytes(Encoding.DER)
    by_default = loaded(settings_for(certificates))["OUT"]
    assert str(by_default.principal(der)) == "User:CN=Alice"
    assert by_default.principal(None) == ANONYMOUS
    rules = "RULE:^CN=([A-Z][a-z]+)$/$1/L"
    mapped = loaded(settings_for(certificates, ssl_principal_mapping_rules=rules))["OUT"]
    assert str(mapped.principal(der)) == "User:alice"
    assert mapped.principal(certificates.keys("bob").certificate.public_bytes(Encoding.DER)) is None


def change(settings: BrokerSettings, **values: str) -> BrokerSettings:
    return with_dynamic(settings, {}, {f"listener.name.out.{name.replace('_', '.')}": v for name, v in values.items()})


def test_a_new_store_is_for_new_connections(settings: BrokerSettings, certificates: Certificates) -> None:
    tls = loaded(settings)
    before = tls["OUT"]
    path = certificates.pem("broker", HOSTS).rename(certificates.folder / "renewed.pem")
    changed = change(settings, ssl_keystore_location=str(path))
    tls.check(changed)
    assert tls["OUT"] is before
    tls.apply(changed)
    assert tls["OUT"].context is not before.context
    assert tls["OUT"].stores.keys != before.stores.keys
    again = tls["OUT"]
    tls.apply(changed)
    assert tls["OUT"] is again, "nothing has changed"


def test_a_file_that_was_written_anew_is_read_again(settings: BrokerSettings, certificates: Certificates) -> None:
    tls = loaded(settings)
    before = tls["OUT"].stores.keys
    path = certificates.pem("broker", HOSTS)
    stamp = os.stat(path).st_mtime_ns + 1_000_000
    os.utime(path, ns=(stamp, stamp))
    tls.apply(settings)
    assert tls["OUT"].stores.keys != before


@pytest.mark.parametrize(
    ("name", "hosts", "allowed_by", "words"),
    [
        ("impostor", HOSTS, "ssl.allow.dn.changes", "is for CN=impostor, the old one for CN=broker"),
        ("broker", ("localhost",), "ssl.allow.san.changes", "lacks alternative names of the old one: IPAddress:127"),
    ],
)
def test_another_identity_is_refused_unless_allowed(
    certificates: Certificates, name: str, hosts: tuple[str, ...], allowed_by: str, words: str
) -> None:
    settings = settings_for(certificates)
    tls = loaded(settings)
    other = Certificates(certificates.folder / "other").pem(name, hosts)
    with pytest.raises(StoreError) as caught:
        tls.check(change(settings, ssl_keystore_location=str(other)))
    assert words in str(caught.value)
    assert f"{allowed_by}=true" in str(caught.value)
    allowing = settings_for(certificates, **{allowed_by: "true"})
    loaded(allowing).check(change(allowing, ssl_keystore_location=str(other)))


def test_what_else_is_refused_at_run_time(settings: BrokerSettings, certificates: Certificates) -> None:
    tls = loaded(settings)
    for values, words in (
        ({"ssl_keystore_location": "/nowhere.pem"}, "/nowhere.pem: No such file"),
        ({"ssl_keystore_password": "hunter2"}, "a PEM file has no password"),
        ({"ssl_truststore_location": ""}, "not added or removed"),
        ({"ssl_keystore_key": "hunter2"}, "not both"),
        ({"ssl_enabled_protocols": "TLSv1.3", "ssl_cipher_suites": "ECDHE-RSA-AES128-SHA"}, "none of them is for"),
    ):
        with pytest.raises(StoreError) as caught:
            tls.check(change(settings, **values))
        assert words in str(caught.value)
        assert "hunter2" not in str(caught.value)


def test_a_store_that_went_bad_after_the_check_leaves_the_old_one(
    settings: BrokerSettings, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    tls = loaded(settings)
    before = tls["OUT"]
    tls.apply(change(settings, ssl_keystore_location="/nowhere.pem"))
    assert tls["OUT"] is before
    assert "Listener OUT: Keeping its key and trust stores as they were" in caplog.text


def test_a_change_that_does_not_hold_at_the_next_start_does_not_keep_the_broker_down(
    settings: BrokerSettings, caplog: pytest.LogCaptureFixture
) -> None:
    tls = TlsListeners()
    tls.load(change(settings, ssl_keystore_location="/nowhere.pem"), settings)
    assert "OUT" in tls
    assert "what the broker was started with is used instead" in caplog.text


def test_an_expired_certificate_is_told_of(certificates: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    expired = certificates.pem("old", HOSTS, expired=True)
    with caplog.at_level(logging.WARNING):
        loaded(change(settings_for(certificates), ssl_keystore_location=str(expired)))
    assert "Listener OUT: the certificate of CN=old expired on" in caplog.text


def test_suites_of_tls_1_3_that_cannot_be_left_out_are_told_of(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    loaded(settings_for(certificates, ssl_cipher_suites="TLS_AES_256_GCM_SHA384"))
    assert "leaves out TLS_CHACHA20_POLY1305_SHA256, TLS_AES_128_GCM_SHA256" in caplog.text


def test_brokers_must_believe_themselves(certificates: Certificates, tmp_path: Path) -> None:
    among = {"inter_broker_listener_name": "OUT", "zookeeper_connect": "zk:2181"}
    loaded(settings_for(certificates, **among))
    stranger = Certificates(tmp_path / "stranger").ca
    with pytest.raises(StoreError, match="its trust store does not believe its key store"):
        loaded(settings_for(certificates, **among, ssl_truststore_location=str(stranger)))


def test_brokers_talk_to_each_other_as_their_listener_says(certificates: Certificates) -> None:
    plain = settings_for(certificates)
    assert inter_broker_security(plain, loaded(plain)) == PLAINTEXT
    secured = settings_for(certificates, inter_broker_listener_name="OUT", ssl_endpoint_identification_algorithm="")
    tls = loaded(secured)
    found = inter_broker_security(secured, tls).tls
    assert found is not None
    assert found.ca_pem == certificates.ca.read_text()
    assert found.certificate_pem == tls["OUT"].stores.keys.chain_pem
    assert not found.check_hostname
    assert found.verify
