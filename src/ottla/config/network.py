"""Settings of sockets: where a broker listens, and what it takes from whom."""

import dataclasses
import functools
import ipaddress
from collections.abc import Mapping

from ottla.config.setting import INT_MAX, SettingType, setting
from ottla.model.defaults import DEFAULT_BOOTSTRAP


@functools.lru_cache(maxsize=8)
def per_ip_overrides(text: str) -> Mapping[str, int]:
    """Read max.connections.per.ip.overrides; ValueError when it is not address:count,address:count."""
    limits: dict[str, int] = {}
    for entry in text.split(","):
        if not entry.strip():
            continue
        host, colon, count = entry.strip().rpartition(":")
        if not colon or not host or not count.isdecimal():
            raise ValueError(entry)
        try:
            address = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            raise ValueError(entry) from None
        limits[str(address)] = int(count)
    return limits


def _overrides_problem(text: str) -> str | None:
    try:
        per_ip_overrides(text)
    except ValueError as error:
        return f"{error} is not address:count with an IP address"
    return None


SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """Listeners, connections, and the memory of requests."""

    listeners: tuple[str, ...] = setting(
        (f"PLAINTEXT://{DEFAULT_BOOTSTRAP}",),
        kafka_default=("PLAINTEXT://:9092",),
        differs="without authentication a port open to the network must be asked for",
        doc="Addresses to listen on, as NAME://host:port. An empty host, 0.0.0.0 or [::] means every interface; "
        "port 0 picks a free one. IPv6 addresses stand in brackets.",
    )
    advertised_listeners: tuple[str, ...] | None = setting(
        None,
        type=SettingType.LIST,
        doc="Addresses that clients are told to use, by listener name. Without it the listeners' own addresses, and "
        "this machine's host name for those that listen on every interface.",
    )
    listener_security_protocol_map: str = setting(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        doc="Security protocol of each listener name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    )
    inter_broker_listener_name: str | None = setting(
        None,
        type=SettingType.STRING,
        doc="Listener for traffic between brokers; without it the one called like security.inter.broker.protocol. It "
        "must be one of the listeners, the same on all brokers; a broker on its own has no such traffic.",
    )
    security_inter_broker_protocol: str = setting(
        "PLAINTEXT",
        choices=SECURITY_PROTOCOLS,
        doc="The other way to name the listener for traffic between brokers: the one called like this protocol. If it "
        "is not given and there is no listener PLAINTEXT, the first one. Give it or inter.broker.listener.name.",
    )
    ottla_allow_unauthenticated_listeners: bool = setting(
        False,
        kafka_default=True,
        differs="Kafka opens such ports without a word",
        doc="Whether a listener without authentication may be open to other machines. Without it the broker does not "
        "start with such a listener: PLAINTEXT, or SSL that does not require client certificates, on an address other "
        "than this machine's own.",
    )
    socket_send_buffer_bytes: int = setting(
        102_400, at_least=-1, doc="Size of each socket's send buffer (SO_SNDBUF); -1 leaves it to the system."
    )
    socket_receive_buffer_bytes: int = setting(
        102_400, at_least=-1, doc="Size of each socket's receive buffer (SO_RCVBUF); -1 leaves it to the system."
    )
    socket_request_max_bytes: int = setting(
        104_857_600, at_least=1, doc="Largest request; a connection that announces a larger one is closed."
    )
    socket_listen_backlog_size: int = setting(
        50, at_least=1, doc="Connections that may wait to be accepted on each listener."
    )
    max_connections: int = setting(
        INT_MAX,
        at_least=0,
        dynamic="cluster-wide",
        per="listener",
        doc="Most connections that this broker and each listener keep open at a time. Further ones wait; other brokers "
        "are let in, and the connection that was not used for longest is closed for them.",
    )
    max_connections_per_ip: int = setting(
        INT_MAX, at_least=0, dynamic="cluster-wide", doc="Most connections from one address at a time."
    )
    max_connections_per_ip_overrides: str = setting(
        "",
        dynamic="cluster-wide",
        check=_overrides_problem,
        doc="Limits for single IP addresses that replace max.connections.per.ip, as address:count,address:count.",
    )
    max_connection_creation_rate: int = setting(
        INT_MAX,
        at_least=1,
        dynamic="cluster-wide",
        per="listener",
        doc="Most new connections per second to the broker and to each listener, counted as quotas are "
        "(quota.window.num). Above it they wait, each for a quota.window.size.seconds at most.",
    )
    connections_max_idle_ms: int = setting(
        600_000,
        type=SettingType.LONG,
        doc="A connection on which nothing happens for this long is closed; negative never.",
    )
    queued_max_request_bytes: int = setting(
        268_435_456,
        type=SettingType.LONG,
        kafka_default=-1,
        differs="Kafka sets no bound, so a burst of large requests can exhaust its memory",
        doc="Memory held by requests in flight beyond which the broker stops reading sockets; -1 sets no bound. "
        "At least socket.request.max.bytes.",
    )
    request_timeout_ms: int = setting(
        30_000,
        at_least=1,
        doc="Longest time that a broker waits for another one, and a change of a transaction for its replicas.",
    )


def network_problems(settings: NetworkSettings) -> list[str]:
    """Problems that only show when several settings are seen together."""
    if 0 <= settings.queued_max_request_bytes < settings.socket_request_max_bytes:
        problem = (
            f"queued.max.request.bytes: {settings.queued_max_request_bytes} is less than one request may have "
            f"(socket.request.max.bytes={settings.socket_request_max_bytes}); raise it, or -1 for no bound"
        )
        return [problem]
    return []
