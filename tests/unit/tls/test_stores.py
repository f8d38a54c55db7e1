"""Stores in every form that Kafka's settings have, and what is said of those that cannot be used."""

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import NoEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

from ottla.tls.authority import Authority, key_store_pem, key_store_pkcs12, make_authority
from ottla.tls.stores import (
    KeyStore,
    StoreError,
    StoreSettings,
    lifetime_problem,
    load_key_store,
    load_trust_store,
)

PASSWORD = "open sesame"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return make_authority("authority")


@pytest.fixture(scope="module")
def keys(authority: Authority) -> KeyStore:
    return authority.issue("broker", ["localhost"])


def refused(settings: StoreSettings, *, trust: bool = False) -> str:
    with pytest.raises(StoreError) as caught:
        load_trust_store(settings) if trust else load_key_store(settings)
    assert PASSWORD not in str(caught.value)
    assert PASSWORD not in repr(settings)
    return str(caught.value)


def test_a_key_store_is_the_same_in_every_form(tmp_path: Path, keys: KeyStore) -> None:
    clear, encrypted, store = tmp_path / "clear", tmp_path / "encrypted.pem", tmp_path / "store"
    clear.write_text(key_store_pem(keys))
    encrypted.write_text(key_store_pem(keys, PASSWORD))
    store.write_bytes(key_store_pkcs12(keys, PASSWORD))
    for settings in (
        StoreSettings(str(clear)),
        StoreSettings(str(clear), type="PEM"),
        StoreSettings(str(encrypted), key_password=PASSWORD),
        StoreSettings(str(store), PASSWORD, "JKS"),  # Kafka's default type: Java opens PKCS12 all the same
        StoreSettings(str(store), PASSWORD, "PKCS12", key_password=PASSWORD),
        StoreSettings(key=keys.key_pem, certificates=keys.chain_pem, type="PEM"),
    ):
        assert load_key_store(settings) == keys, settings
    assert keys.key_pem not in repr(keys)


def test_the_chain_is_put_in_order(tmp_path: Path, keys: KeyStore) -> None:
    path = tmp_path / "store.pem"
    backwards = KeyStore(keys.key_pem, tuple(reversed(keys.chain)))
    path.write_text(backwards.chain_pem + keys.key_pem)
    assert load_key_store(StoreSettings(str(path))).chain == keys.chain


def test_a_trust_store_is_the_same_in_every_form(tmp_path: Path, authority: Authority) -> None:
    pem, store = tmp_path / "ca", tmp_path / "trust.jks"
    pem.write_text(f"a comment\n{authority.pem}")
    store.write_bytes(serialize_java_truststore([PKCS12Certificate(authority.certificate, b"ca")], NoEncryption()))
    for settings in (
        StoreSettings(str(pem)),
        StoreSettings(str(store)),
        StoreSettings(certificates=authority.pem),
    ):
        assert load_trust_store(settings).authorities == (authority.certificate,), settings


@pytest.mark.parametrize("magic", [b"\xfe\xed\xfe\xed\0\0\0\2", b"\xce\xce\xce\xce\0\0\0\2"])
def test_a_jks_store_is_told_how_to_become_another(tmp_path: Path, magic: bytes) -> None:
    path = tmp_path / "kafka.server.jks"
    path.write_bytes(magic + bytes(100))
    line = f"keytool -importkeystore -srckeystore {path} -destkeystore {path.with_suffix('.p12')} -deststoretype PKCS12"
    assert line in refused(StoreSettings(str(path), PASSWORD))
    assert line in refused(StoreSettings(str(path), PASSWORD), trust=True)


def test_what_is_wrong_with_a_key_store(tmp_path: Path, keys: KeyStore, authority: Authority) -> None:
    store, pem, encrypted = tmp_path / "s.p12", tmp_path / "s.pem", tmp_path / "e.pem"
    store.write_bytes(key_store_pkcs12(keys, PASSWORD))
    pem.write_text(key_store_pem(keys))
    encrypted.write_text(key_store_pem(keys, PASSWORD))
    text = refused(StoreSettings(str(tmp_path / "none.p12"), prefix="listener.name.x."))
    assert text.startswith("listener.name.x.ssl.keystore.location: ")
    assert "No such file" in text
    assert "ssl.keystore.password is wrong" in refused(StoreSettings(str(store), "another"))
    assert "ssl.keystore.password is missing" in refused(StoreSettings(str(store)))
    assert "ssl.key.password" in refused(StoreSettings(str(pem), PASSWORD))
    assert "give ssl.key.password" in refused(StoreSettings(str(encrypted)))
    assert "ssl.key.password is wrong" in refused(StoreSettings(str(encrypted), key_password="another"))
    assert "says PEM" in refused(StoreSettings(str(store), PASSWORD, "PEM"))
    assert "BCFKS cannot be read" in refused(StoreSettings(str(store), PASSWORD, "BCFKS"))
    assert "not both" in refused(StoreSettings(str(pem), key=keys.key_pem))
    assert "certificate.chain" in refused(StoreSettings(key=keys.key_pem))
    assert "without a private key" in refused(StoreSettings())
    other = tmp_path / "other.pem"
    other.write_text(authority.issue("another").key_pem + keys.chain_pem)
    assert "must be a pair" in refused(StoreSettings(str(other)))
    other.write_text(keys.chain_pem)
    assert "no private key" in refused(StoreSettings(str(other)))
    other.write_text("hello")
    assert "neither PEM nor PKCS12" in refused(StoreSettings(str(other)))
    other.write_text("")
    assert "is empty" in refused(StoreSettings(str(other)))
    trust = tmp_path / "trust.p12"
    trust.write_bytes(serialize_java_truststore([PKCS12Certificate(authority.certificate, b"ca")], NoEncryption()))
    assert "is it a trust store?" in refused(StoreSettings(str(trust)))


def test_what_is_wrong_with_a_trust_store(tmp_path: Path, authority: Authority) -> None:
    pem = tmp_path / "ca.pem"
    pem.write_text(authority.pem)
    assert "a PEM file has no password" in refused(StoreSettings(str(pem), PASSWORD), trust=True)
    assert "not both" in refused(StoreSettings(str(pem), certificates=authority.pem), trust=True)
    damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert "cannot be read" in refused(StoreSettings(certificates=damaged), trust=True)


def test_a_certificate_that_ends_soon_or_has_ended_is_told_of(authority: Authority) -> None:
    certificate: x509.Certificate = authority.issue("b", lifetime=datetime.timedelta(days=60)).certificate
    now = datetime.datetime.now(datetime.UTC)
    assert lifetime_problem(certificate, now) is None
    soon = lifetime_problem(certificate, now + datetime.timedelta(days=40))
    assert soon is not None
    assert soon.startswith("the certificate of CN=b expires on")
    assert "expired on" in str(lifetime_problem(certificate, now + datetime.timedelta(days=70)))
    assert "only from" in str(lifetime_problem(certificate, now - datetime.timedelta(days=1)))
