"""The zookeeper.* settings: declared, read and checked."""

import dataclasses
import re
from collections.abc import Set
from typing import NamedTuple

from ottla.config.setting import SettingType, setting

DEFAULT_PORT = 2181
PEM = "PEM"
_SEPARATOR = re.compile("[,;]")


class Ensemble(NamedTuple):
    """Where ZooKeeper is: host:port of each server, and the node below which everything is kept, or nothing."""

    hosts: tuple[str, ...]
    chroot: str


def parse_connect(text: str) -> Ensemble:
    """Read zookeeper.connect; ValueError says what is wrong with it.

    The path stands behind the last address and holds for all. Old notes have semicolons, and the path behind each.
    """
    entries = [entry.strip() for entry in _SEPARATOR.split(text)]
    hosts = tuple(_host(entry.partition("/")[0].strip()) for entry in entries)
    chroots = [_chroot(entry) for entry in entries]
    if any(chroots[:-1]) and len(set(chroots)) > 1:
        raise ValueError(f"{text.strip()} has a path that is not behind the last address")
    return Ensemble(hosts, chroots[-1])


def _chroot(entry: str) -> str:
    _, slash, path = entry.partition("/")
    parts = path.rstrip("/").split("/") if path.rstrip("/") else []
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{slash}{path} is not a path")
    return "".join(f"/{part}" for part in parts)


def _host(address: str) -> str:
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536 or (":" in host and not host.endswith("]")):
        raise ValueError(f"{address!r} is not host:port")
    return f"{host}:{port}"


def connect_problem(text: str | None) -> str | None:
    """Why this is no zookeeper.connect, or None."""
    try:
        if text:
            parse_connect(text)
    except ValueError as error:
        return f"{error}; give host:port,host:port/path"
    return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ZookeeperSettings:
    """A cluster: its metadata is in ZooKeeper."""

    zookeeper_connect: str | None = setting(
        None,
        type=SettingType.STRING,
        check=connect_problem,
        doc="Where ZooKeeper is, as host:port,host:port, and if several clusters share it /path behind the last one; "
        "the path is created. Brokers with the same value are one cluster. Without it this broker is on its own.",
    )
    zookeeper_session_timeout_ms: int = setting(
        18_000,
        at_least=1,
        doc="A broker that ZooKeeper does not hear of for this long is taken for dead, and what it leads goes to "
        "others. ZooKeeper keeps it between 2 and 20 of its ticks.",
    )
    zookeeper_connection_timeout_ms: int | None = setting(
        None,
        type=SettingType.INT,
        at_least=1,
        doc="At start, how long to wait for a connection to ZooKeeper; as long as a session if it is not given.",
    )
    zookeeper_max_in_flight_requests: int = setting(
        10, at_least=1, doc="Most requests that wait for ZooKeeper's answer at a time."
    )
    zookeeper_set_acl: bool = setting(
        False,
        doc="Only brokers, that is the user they authenticate as, may change what they write in ZooKeeper; everybody "
        "may read what is no secret.",
    )
    zookeeper_sasl_username: str | None = setting(
        None,
        type=SettingType.STRING,
        doc="User as which this broker authenticates to ZooKeeper, by SASL with DIGEST-MD5. Kafka reads it from a "
        "JAAS file.",
    )
    zookeeper_sasl_password: str | None = setting(
        None, type=SettingType.PASSWORD, doc="The password of zookeeper.sasl.username."
    )
    zookeeper_ssl_client_enable: bool = setting(False, doc="Talk to ZooKeeper over TLS.")
    zookeeper_ssl_keystore_location: str | None = setting(
        None,
        type=SettingType.STRING,
        doc="PEM file with this broker's private key and certificate, where ZooKeeper asks for one.",
    )
    zookeeper_ssl_keystore_password: str | None = setting(
        None, type=SettingType.PASSWORD, doc="Password of the private key, if it has one."
    )
    zookeeper_ssl_keystore_type: str | None = setting(
        None, type=SettingType.STRING, doc="Only PEM is read; without it the ending of the file's name decides."
    )
    zookeeper_ssl_truststore_location: str | None = setting(
        None,
        type=SettingType.STRING,
        doc="PEM file with the certificates of the authorities to believe; the system's if it is not given.",
    )
    zookeeper_ssl_truststore_type: str | None = setting(
        None, type=SettingType.STRING, doc="Only PEM is read; without it the ending of the file's name decides."
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = setting(
        "HTTPS",
        choices=("HTTPS", ""),
        doc="HTTPS: the server's certificate must name the host; empty: any host will do.",
    )


def zookeeper_problems(settings: ZookeeperSettings, explicit: Set[str]) -> list[str]:
    """Problems that only show when several settings are seen together."""
    if not settings.zookeeper_connect:
        names = sorted(name for name in explicit if name.startswith("zookeeper.") and name != "zookeeper.connect")
        return [f"{name}: it goes with zookeeper.connect, which is not given" for name in names]
    return [*_credential_problems(settings), *_tls_problems(settings)]


def _credential_problems(settings: ZookeeperSettings) -> list[str]:
    user, password = settings.zookeeper_sasl_username, settings.zookeeper_sasl_password
    if bool(user) != bool(password):
        return ["zookeeper.sasl.username and zookeeper.sasl.password: give both or none"]
    if settings.zookeeper_set_acl and not user:
        why = "access lists name who may write, so ZooKeeper has to know who this is"
        return [f"zookeeper.set.acl: {why}: give zookeeper.sasl.username and zookeeper.sasl.password"]
    return []


def _tls_problems(settings: ZookeeperSettings) -> list[str]:
    problems = []
    for store, location, kind in (
        ("keystore", settings.zookeeper_ssl_keystore_location, settings.zookeeper_ssl_keystore_type),
        ("truststore", settings.zookeeper_ssl_truststore_location, settings.zookeeper_ssl_truststore_type),
    ):
        if location is None:
            continue
        if not settings.zookeeper_ssl_client_enable:
            problems.append(f"zookeeper.ssl.{store}.location: it needs zookeeper.ssl.client.enable=true")
        if (kind or _kind_of(location)) != PEM:
            problems.append(
                f"zookeeper.ssl.{store}.location: {location} is not a PEM file, and stores of Java are not read. To "
                f"mend it, export it as PEM and give zookeeper.ssl.{store}.type=PEM"
            )
    return problems


def _kind_of(location: str) -> str:
    return PEM if location.lower().endswith((".pem", ".crt", ".key")) else ""
