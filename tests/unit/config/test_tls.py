"""Settings of TLS: what is refused, and in which words."""

import pytest

from ottla.config.load import settings_from
from ottla.config.setting import ConfigError

SSL = {"listeners": "SSL://127.0.0.1:9093", "ssl.keystore.location": "broker.pem"}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ssl.enabled.protocols", "TLSv1.3,TLSv1.1", "TLSv1.1 is not spoken here, because it is not safe"),
        ("ssl.enabled.protocols", "", "at least one of"),
        ("ssl.client.auth", "want", "none, requested, required"),
        ("ssl.cipher.suites", "TLS_RSA_WITH_NOTHING", "no cipher suite TLS_RSA_WITH_NOTHING"),
        ("ssl.principal.mapping.rules", "RULE:(/x/", "cannot be read"),
        ("ssl.endpoint.identification.algorithm", "ldaps", "it is https, or empty"),
        ("ssl.engine.factory.class", "com.example.Engine", "classes of the JVM"),
    ],
)
def test_refusals(name: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_from({**SSL, name: value})
    assert words in str(caught.value)


def test_what_is_taken() -> None:
    settings = settings_from(
        {
            **SSL,
            "ssl.enabled.protocols": "TLSv1.3, TLSv1.2",
            "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "ssl.endpoint.identification.algorithm": "HTTPS",
            "ssl.protocol": "TLSv1.2",
            "ssl.trustmanager.algorithm": "PKIX",
        }
    )
    assert settings.ssl_enabled_protocols == ("TLSv1.3", "TLSv1.2")
    assert any("ssl.protocol" in note.text for note in settings.notes)
