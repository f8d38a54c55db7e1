"""What the zookeeper.* settings say, read and checked."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ottla.config.broker import BrokerSettings

DEFAULT_PORT = 2181
PEM = "PEM"


class Ensemble(NamedTuple):
    """Where ZooKeeper is: host:port of each server, and the node below which everything is kept, or nothing."""

    hosts: tuple[str, ...]
    chroot: str


def parse_connect(text: str) -> Ensemble:
    """Read zookeeper.connect; ValueError says what is wrong with it."""
    addresses, slash, path = text.strip().partition("/")
    hosts = tuple(_host(address.strip()) for address in addresses.split(","))
    parts = path.rstrip("/").split("/") if path.rstrip("/") else []
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{slash}{path} is not a path")
    return Ensemble(hosts, "".join(f"/{part}" for part in parts))


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


def zookeeper_problems(settings: "BrokerSettings") -> list[str]:
    """Problems that only show when several settings are seen together."""
    if not settings.zookeeper_connect:
        names = sorted(
            name for name in settings.explicit if name.startswith("zookeeper.") and name != "zookeeper.connect"
        )
        return [f"{name}: it goes with zookeeper.connect, which is not given" for name in names]
    problems = [*_credential_problems(settings), *_tls_problems(settings)]
    if settings.controller_quorum_voters or settings.controller_quorum_bootstrap_servers:
        problems.append("controller.quorum.*: with zookeeper.connect there is no quorum of controllers, leave it out")
    return problems


def _credential_problems(settings: "BrokerSettings") -> list[str]:
    user, password = settings.zookeeper_sasl_username, settings.zookeeper_sasl_password
    if bool(user) != bool(password):
        return ["zookeeper.sasl.username and zookeeper.sasl.password: give both or none"]
    if settings.zookeeper_set_acl and not user:
        why = "access lists name who may write, so ZooKeeper has to know who this is"
        return [f"zookeeper.set.acl: {why}: give zookeeper.sasl.username and zookeeper.sasl.password"]
    return []


def _tls_problems(settings: "BrokerSettings") -> list[str]:
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
