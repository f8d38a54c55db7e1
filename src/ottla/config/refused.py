"""Kafka's settings that are not served and would be missed, each with the reason.

A file that has one of them is refused with that reason, unless it gives Kafka's default or another value that
describes what the broker does anyway: such a line changes nothing. What can be left out without anybody noticing is in
without_effect.py.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Refusal(NamedTuple):
    """Why a setting is not served, and the values that may be given all the same (Kafka's default first)."""

    reason: str
    given: tuple[str, ...]
    harmless: frozenset[str]


# Reason, then one line for each setting: name=default, and after '|' other values that are harmless.
_TABLE: tuple[tuple[str, str], ...] = (
    (
        "classes of the JVM cannot be loaded here",
        """
        create.topic.policy.class.name=
        alter.config.policy.class.name=
        client.quota.callback.class=
        ssl.engine.factory.class=
        """,
    ),
    (
        "TLS is OpenSSL's here, and these name parts of the JVM",
        """
        ssl.provider=
        ssl.keymanager.algorithm=|SunX509|PKIX
        ssl.trustmanager.algorithm=|PKIX|SunX509
        ssl.secure.random.implementation=
        """,
    ),
    (
        "the library of Kerberos gets tickets from the keytab by itself, whenever it needs one",
        """
        sasl.kerberos.kinit.cmd=/usr/bin/kinit
        sasl.kerberos.ticket.renew.window.factor=0.8
        sasl.kerberos.ticket.renew.jitter=0.05
        sasl.kerberos.min.time.before.relogin=60000
        """,
    ),
    (
        "classes of the JVM cannot be loaded here",
        """
        sasl.client.callback.handler.class=
        sasl.login.class=
        sasl.login.callback.handler.class=|org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler
        sasl.oauthbearer.jwt.retriever.class=org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
        sasl.oauthbearer.jwt.validator.class=org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
        """,
    ),
    (
        "a broker asks for its token when it needs one, and keeps it for four fifths of its life",
        """
        sasl.login.refresh.window.factor=0.8
        sasl.login.refresh.window.jitter=0.05
        sasl.login.refresh.min.period.seconds=60
        sasl.login.refresh.buffer.seconds=300
        sasl.login.connect.timeout.ms=
        sasl.login.read.timeout.ms=
        sasl.login.retry.backoff.max.ms=10000
        sasl.login.retry.backoff.ms=100
        """,
    ),
    (
        "brokers ask for their tokens with a client's id and secret",
        """
        sasl.oauthbearer.assertion.algorithm=RS256
        sasl.oauthbearer.assertion.claim.aud=
        sasl.oauthbearer.assertion.claim.exp.seconds=300
        sasl.oauthbearer.assertion.claim.iss=
        sasl.oauthbearer.assertion.claim.jti.include=false
        sasl.oauthbearer.assertion.claim.nbf.seconds=60
        sasl.oauthbearer.assertion.claim.sub=
        sasl.oauthbearer.assertion.file=
        sasl.oauthbearer.assertion.private.key.file=
        sasl.oauthbearer.assertion.private.key.passphrase=
        sasl.oauthbearer.assertion.template.file=
        """,
    ),
    (
        "own principals and security providers are classes of the JVM",
        """
        security.providers=
        principal.builder.class=org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
        """,
    ),
    (
        "this is a switch for Kafka's own tests",
        """
        unstable.api.versions.enable=false
        unstable.feature.versions.enable=false
        """,
    ),
    (
        "a directory cannot be closed to new partitions yet",
        """
        cordoned.log.dirs=
        """,
    ),
    (
        "tiered storage is not served",
        """
        remote.log.storage.system.enable=false
        """,
    ),
    (
        "share groups are not served",
        """
        group.share.enable=false
        """,
    ),
    (
        "transactions are ended by their producers or by their timeout; two-phase commit is not served",
        """
        transaction.two.phase.commit.enable=false
        """,
    ),
    (
        "quotas are set while brokers run: kafka-configs --alter --client-defaults --add-config producer_byte_rate=N",
        """
        quota.producer.default=9223372036854775807
        quota.consumer.default=9223372036854775807
        """,
    ),
    (
        "TLS to ZooKeeper is Python's: its protocols and ciphers are those of the system",
        """
        zookeeper.ssl.protocol=TLSv1.2|TLSv1.3|TLS
        zookeeper.ssl.enabled.protocols=|TLSv1.2,TLSv1.3|TLSv1.3,TLSv1.2
        zookeeper.ssl.cipher.suites=
        zookeeper.ssl.crl.enable=false
        zookeeper.ssl.ocsp.enable=false
        """,
    ),
    (
        "a truststore in PEM, the only kind that is read, has no password",
        """
        zookeeper.ssl.truststore.password=
        """,
    ),
    (
        "metadata stays in ZooKeeper; there is no quorum of controllers to move it to",
        """
        zookeeper.metadata.migration.enable=false
        """,
    ),
)

_PREFIXES: Mapping[str, str] = {
    "sasl.": "it is no setting of SASL that is served",
}


def _read() -> dict[str, Refusal]:
    found: dict[str, Refusal] = {}
    for reason, lines in _TABLE:
        for line in lines.split():
            name, _, values = line.partition("=")
            given = tuple(values.split("|"))
            found[name] = Refusal(reason, given, frozenset(_normal(value) for value in given))
    return found


def same_value(one: str, other: str) -> bool:
    """Whether two texts mean the same value."""
    return _normal(one) == _normal(other)


def _normal(text: str) -> str:
    """One spelling for values that mean the same."""
    text = ",".join(word.strip() for word in text.split(","))
    try:
        return repr(float(text))
    except ValueError:
        return text.lower() if text.lower() in ("true", "false") else text


REFUSED: Mapping[str, Refusal] = _read()


def refusal(name: str, text: str) -> str | None:
    """Why this setting is refused with this value; None when the value is harmless.

    KeyError for a name that is no known setting of Kafka's.
    """
    known = REFUSED.get(name)
    if known is None:
        for prefix, reason in _PREFIXES.items():
            if name.startswith(prefix):
                return reason
        raise KeyError(name)
    return None if _normal(text) in known.harmless else known.reason
