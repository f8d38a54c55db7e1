"""A realm with people in it: what brokers and clients need to log in there."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from compat.peer.kerberos import REALM, Realm

from ottla.testing.tls import Certificates

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE = "kafka/localhost"
OTHER_SERVICE = "other/localhost"
"""Which has a key of its own: tickets for it are real, and nothing to a broker."""
RULES = f"RULE:[2:$1-$2@$0](.*-admin@{REALM})s/-admin@.*/-the-admin/,RULE:[1:$1@$0](ERIN@{REALM})s/@.*//L,DEFAULT"
PEOPLE = ("alice", "bob", "carol/admin", "dave/other", "ERIN")
"""alice, carol as carol-the-admin and ERIN as erin may do everything; bob and dave log in, and may do nothing."""


def jaas(keytab: Path, principal: str, service: str = "kafka") -> str:
    options = f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}"'
    return f'{MODULE} required {options} serviceName="{service}";'


class World:
    def __init__(self, realm: Realm, folder: Path) -> None:
        self.realm, self.folder = realm, folder
        self.service = realm.keytab(SERVICE)
        realm.keytab(OTHER_SERVICE)
        self.keytabs = {name: realm.keytab(name) for name in PEOPLE}
        self.certificates = Certificates(folder / "certificates")

    def settings(self) -> dict[str, str]:
        """Of a broker, ours or Kafka's: everything but its listeners."""
        return {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,KRB:SASL_PLAINTEXT,KRB_TLS:SASL_SSL",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.principal.to.local.rules": RULES,
            "listener.name.krb.gssapi.sasl.jaas.config": jaas(self.service, SERVICE),
            "listener.name.krb_tls.gssapi.sasl.jaas.config": jaas(self.service, SERVICE),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:alice;User:kafka;User:carol-the-admin;User:erin",
            "ssl.keystore.type": "PEM",
            "ssl.truststore.type": "PEM",
            **self.certificates.broker_settings(),
        }

    def ottla_settings(self) -> dict[str, str]:
        """Of a broker of ours, or of each in a cluster."""
        return {
            **self.settings(),
            "listeners": "KRB://localhost:0,KRB_TLS://localhost:0",
            "inter.broker.listener.name": "KRB",
            "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        }

    def properties(self, user: str, *, keytab: Path | None = None, service: str = "kafka", tls: bool = False) -> Path:
        """A file of settings for clients, with the words of Java."""
        login = jaas(keytab or self.keytabs[user], user, service)
        lines = ["security.protocol=" + ("SASL_SSL" if tls else "SASL_PLAINTEXT"), "sasl.mechanism=GSSAPI"]
        lines += [f"sasl.kerberos.service.name={service}", f"sasl.jaas.config={login}"]
        if tls:
            lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={self.certificates.ca}"]
        path = self.folder / f"{user.replace('/', '-')}.properties"
        path.write_text("\n".join(lines) + "\n")
        return path

    def kinit(self, user: str, *options: str) -> None:
        """A ticket for whoever asks for none in particular."""
        self.realm.run("kinit", *options, "-k", "-t", str(self.keytabs[user]), user)

    @property
    def java_flags(self) -> list[str]:
        return [f"-Djava.security.krb5.conf={self.realm.config}"]


@contextlib.contextmanager
def kerberos_world(folder: Path) -> Iterator[World]:
    """A realm that runs, and that everything started meanwhile looks for its tickets in."""
    realm = Realm(folder)
    with realm.running(), pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        yield World(realm, folder)
