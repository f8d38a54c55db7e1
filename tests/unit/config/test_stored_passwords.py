"""Passwords that brokers are given while they run are kept encrypted, in Kafka's form."""

import dataclasses
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.broker import BrokerSettings
from ottla.config.password_encoder import CannotDecode, decode, encode
from ottla.config.setting import ConfigError
from ottla.config.stored_passwords import Decoded, decoded, encoded, is_secret

NAME = "listener.name.outside.ssl.keystore.password"
PLAIN = "listener.name.outside.ssl.keystore.location"
SETTINGS = BrokerSettings(password_encoder_secret="between brokers", password_encoder_iterations=1024)
_numbers = itertools.count(1)


def random_bytes(count: int) -> bytes:
    return bytes((next(_numbers) + place) % 256 for place in range(count))


@given(st.text(min_size=1))
def test_what_is_encrypted_comes_back(password: str) -> None:
    text = encode(SETTINGS, password, random_bytes)
    assert decode("between brokers", text) == password


def test_it_is_in_kafkas_form_and_never_the_same_twice() -> None:
    one, other = (encode(SETTINGS, "hunter2", random_bytes) for _ in range(2))
    assert one != other
    assert "hunter2" not in one
    assert re.fullmatch(
        r"keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,"
        r"salt:[^,:]{344},iterations:1024,encryptedPassword:[^,:]{24},passwordLength:7,initializationVector:[^,:]{24}",
        one,
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("AES/CBC/PKCS5Padding", "ROT13"),
        lambda text: text.replace("passwordLength:7", "passwordLength:8"),
        lambda text: text.replace("PBKDF2WithHmacSHA512", "PBKDF2WithHmacSHA1"),
        lambda text: text.replace("iterations:1024", "iterations:100000000000"),
        lambda text: text.replace("keyLength:128", "keyLength:64"),
        lambda text: text.replace("salt:", "salt:!"),
        lambda text: "",
    ],
)
def test_what_was_changed_is_not_read(spoil: object) -> None:
    assert callable(spoil)
    text = encode(SETTINGS, "hunter2", random_bytes)
    with pytest.raises(CannotDecode):
        decode("between brokers", spoil(text))
    with pytest.raises(CannotDecode):
        decode("another secret", text)


def test_without_a_secret_a_password_is_not_taken() -> None:
    with pytest.raises(ConfigError, match=r"kept in clear; give all brokers a password\.encoder\.secret"):
        encoded({NAME: "hunter2"}, BrokerSettings(), random_bytes)
    assert encoded({PLAIN: "broker.pem"}, BrokerSettings(), random_bytes) == {PLAIN: "broker.pem"}


def test_settings_go_in_and_come_out() -> None:
    kept = encoded({NAME: "hunter2", PLAIN: "broker.p12"}, SETTINGS, random_bytes)
    assert kept[PLAIN] == "broker.p12"
    assert "hunter2" not in kept[NAME]
    assert encoded(kept, SETTINGS, random_bytes) == kept
    assert decoded(kept, SETTINGS) == Decoded({NAME: "hunter2", PLAIN: "broker.p12"}, (), False)


def test_a_secret_is_replaced() -> None:
    kept = encoded({NAME: "hunter2"}, SETTINGS, random_bytes)
    new = dataclasses.replace(SETTINGS, password_encoder_secret="another")
    assert decoded(kept, new) == Decoded({}, (NAME,), False)
    both = dataclasses.replace(new, password_encoder_old_secret="between brokers")
    found = decoded(kept, both)
    assert found == Decoded({NAME: "hunter2"}, (), True)
    assert decoded(encoded(found.configs, both, random_bytes), new) == Decoded({NAME: "hunter2"}, (), False)


def test_what_was_written_before_there_was_a_secret_is_read_and_encrypted_then() -> None:
    assert decoded({NAME: "hunter2"}, BrokerSettings()) == Decoded({NAME: "hunter2"}, (), False)
    assert decoded({NAME: "hunter2"}, SETTINGS) == Decoded({NAME: "hunter2"}, (), True)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        (NAME, True),
        ("ssl.keystore.key", True),
        (PLAIN, False),
        ("log.retention.ms", False),
        ("nonsense", False),
        ("listener.name.x.nonsense", False),
    ],
)
def test_which_settings_are_secrets(name: str, secret: bool) -> None:
    assert is_secret(name) == secret
