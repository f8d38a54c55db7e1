"""`--secure` of `ottla up` and `ottla cluster`: certificates, a user, and what clients have to be told, in one go.

Everything is in a folder beside the data, made once and used again. The authority's own key is never written: nobody,
not even who reads the folder, can have another certificate signed.
"""

import asyncio
import secrets
import socket
from pathlib import Path
from typing import NamedTuple

from ottla.cli.common.output import CommandError
from ottla.config.broker import BrokerSettings

FOLDER = "security"
ADMIN = "admin"
MECHANISM = "SCRAM-SHA-512"
BETWEEN_BROKERS = "BROKERS"
BROKER_NAME = "broker"
_PASSWORD_BYTES = 18
_SALT_RANDOM_BYTES = 24


class Secured(NamedTuple):
    """What was made, and where it is."""

    folder: Path
    is_new: bool

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def broker_keys(self) -> Path:
        return self.folder / "broker.pem"

    @property
    def password_file(self) -> Path:
        return self.folder / "admin.password"

    @property
    def client_properties(self) -> Path:
        """For Java clients and every tool: --command-config."""
        return self.folder / "client.properties"

    @property
    def librdkafka_settings(self) -> Path:
        """For kcat: -F."""
        return self.folder / "kcat.conf"

    @property
    def password(self) -> str:
        return self.password_file.read_text().strip()


def prepare(data: str, host: str) -> Secured:
    """The folder, with everything in it; what is there already stays."""
    from ottla.tls.authority import LOCAL_HOSTS, key_store_pem, make_authority, write_secret

    secured = Secured(Path(data, FOLDER).absolute(), is_new=not Path(data, FOLDER, "client.properties").exists())
    if not secured.is_new:
        return secured
    try:
        secured.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = make_authority()
        hosts = dict.fromkeys((*LOCAL_HOSTS, host, socket.gethostname()))
        write_secret(secured.broker_keys, key_store_pem(authority.issue(BROKER_NAME, list(hosts))))
        secured.authority.write_text(authority.pem)
        password = secrets.token_urlsafe(_PASSWORD_BYTES)
        write_secret(secured.password_file, f"{password}\n")
        write_secret(secured.librdkafka_settings, _lines(librdkafka_settings(secured, password)))
        write_secret(secured.client_properties, _lines(java_settings(secured, password)))  # the last: now it is whole
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error
    return secured


def broker_settings(secured: Secured, address: str, host: str, *, in_cluster: bool) -> list[str]:
    """Logins over TLS for clients; between brokers certificates, on a listener of their own."""
    listeners, protocols = f"SASL_SSL://{address}", "SASL_SSL:SASL_SSL"
    supers = f"User:{ADMIN}"
    among: list[str] = []
    if in_cluster:
        listeners += f",{BETWEEN_BROKERS}://{host}:0"
        protocols += f",{BETWEEN_BROKERS}:SSL"
        supers += f";User:CN={BROKER_NAME}"
        among = [
            f"inter.broker.listener.name={BETWEEN_BROKERS}",
            f"listener.name.{BETWEEN_BROKERS.lower()}.ssl.client.auth=required",
        ]
    return [
        f"listeners={listeners}",
        f"listener.security.protocol.map={protocols}",
        *among,
        f"ssl.keystore.location={secured.broker_keys}",
        f"ssl.truststore.location={secured.authority}",
        f"sasl.enabled.mechanisms={MECHANISM}",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        f"super.users={supers}",
    ]


def java_settings(secured: Secured, password: str) -> dict[str, str]:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": f'{module} required username="{ADMIN}" password="{password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(secured.authority),
    }


def librdkafka_settings(secured: Secured, password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.username": ADMIN,
        "sasl.password": password,
        "ssl.ca.location": str(secured.authority),
    }


def instructions(secured: Secured, bootstrap: str) -> str:
    """How clients get in. The password is in files that only their owner reads, not in what is printed."""
    tool = f"--bootstrap-server {bootstrap} --command-config {secured.client_properties}"
    return "\n".join(
        [
            f"Everybody has to log in, over TLS. The user {ADMIN} may do everything; the password is in",
            f"{secured.password_file}.",
            "",
            "  In another terminal, with any tool:",
            f"    ottla topics {tool} --create --topic news --partitions 3",
            f"    echo hello | ottla console-producer {tool} --topic news",
            f"    ottla console-consumer {tool} --topic news --from-beginning",
            "",
            f"  kcat:             kcat -F {secured.librdkafka_settings} -b {bootstrap} -L",
            f"  Java:             bootstrap.servers={bootstrap} and the lines of {secured.client_properties}",
            "  confluent-kafka:  Producer({",
            f'                      "bootstrap.servers": "{bootstrap}", "security.protocol": "SASL_SSL",',
            f'                      "sasl.mechanism": "{MECHANISM}", "sasl.username": "{ADMIN}",',
            f'                      "sasl.password": open("{secured.password_file}").read().strip(),',
            f'                      "ssl.ca.location": "{secured.authority}"}})',
            '  Spark:            spark.readStream.format("ottla")',
            f'                      .option("kafka.bootstrap.servers", "{bootstrap}")',
            '                      .option("kafka.security.protocol", "SASL_SSL")',
            f'                      .option("kafka.sasl.mechanism", "{MECHANISM}")',
            f'                      .option("kafka.sasl.username", "{ADMIN}")',
            f'                      .option("kafka.sasl.password", open("{secured.password_file}").read().strip())',
            f'                      .option("kafka.ssl.ca.location", "{secured.authority}")',
            "",
            f"  Others need a user (ottla users {tool} add NAME) and rights (ottla acls).",
        ]
    )


def make_admin(secured: Secured, settings: BrokerSettings) -> None:
    """See to it that the administrator can log in, before the first broker runs: who else could let anybody in?"""
    Path(settings.data_dirs[0]).mkdir(parents=True, exist_ok=True)
    asyncio.run(_make_admin(secured, settings))


async def _make_admin(secured: Secured, settings: BrokerSettings) -> None:
    from ottla.broker.controller.writes import entity_config_writes
    from ottla.broker.process import open_store
    from ottla.broker.security.sasl.scram_credentials import (
        ITERATIONS_MIN,
        MECHANISMS,
        credential_of,
        salt_of,
        salted_password,
        write_credential,
    )
    from ottla.cluster.image import user_entity

    store = await open_store(settings)
    try:
        entity = user_entity(ADMIN)
        known = store.image.entity_configs.get(entity, {})
        if MECHANISM in known and not secured.is_new:
            return  # perhaps with another password by now, which is not ours to set back
        mechanism, salt = MECHANISMS[MECHANISM], salt_of(secrets.token_bytes(_SALT_RANDOM_BYTES))
        salted = salted_password(mechanism, secured.password, salt, ITERATIONS_MIN)
        credential = write_credential(credential_of(mechanism, salted, salt, ITERATIONS_MIN))
        await store.commit(entity_config_writes(entity, {**known, MECHANISM: credential}, store.version))
    finally:
        await store.close()


def _lines(settings: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())
