"""Listener addresses: reading them, and which of them a broker opens and advertises."""

import re
from typing import NamedTuple

from ottla.config.broker import BrokerSettings
from ottla.config.network import SECURITY_PROTOCOLS
from ottla.config.per_listener import own_value, per_listener_problems, settings_for
from ottla.config.setting import ConfigError
from ottla.config.tls import TLS_PROTOCOLS
from ottla.http.address import is_local, parse_address

_ADDRESS = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?:\[(?P<six>[^\]]*)\]|(?P<host>[^\[\]:/]*)):(?P<port>-?\d+)")
_EVERY_INTERFACE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - recognised, never a default


class ListenerAddress(NamedTuple):
    """One listener: its name, where, and what is spoken there. An IPv6 host comes without its brackets."""

    name: str
    host: str
    port: int
    security_protocol: str

    @property
    def on_every_interface(self) -> bool:
        return self.host in _EVERY_INTERFACE

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return is_local(self.host)

    @property
    def speaks_tls(self) -> bool:
        return self.security_protocol in TLS_PROTOCOLS

    @property
    def speaks_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def protocol_map(text: str) -> dict[str, str]:
    """Read listener.security.protocol.map."""
    names: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = entry.partition(":")
        if not colon or protocol.strip().upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(
                [f"listener.security.protocol.map: {entry!r} is not NAME:protocol with one of {SECURITY_PROTOCOLS}"]
            )
        names[name.strip().upper()] = protocol.strip().upper()
    return names


def opened_listeners(settings: BrokerSettings) -> tuple[ListenerAddress, ...]:
    """The listeners to open. Those named for Kafka's controllers are left out."""
    return _addresses("listeners", settings.listeners, settings, advertised=False)


def advertised_listeners(settings: BrokerSettings) -> tuple[ListenerAddress, ...]:
    """What to tell clients, as given or else as listened on; the host may still mean every interface, the port 0."""
    if settings.advertised_listeners is None:
        return opened_listeners(settings)
    return _addresses("advertised.listeners", settings.advertised_listeners, settings, advertised=True)


def inter_broker_listener(settings: BrokerSettings) -> str:
    """The name of the listener that brokers use among themselves."""
    if settings.inter_broker_listener_name is not None:
        return settings.inter_broker_listener_name.upper()
    names = [listener.name for listener in opened_listeners(settings)]
    if "security.inter.broker.protocol" in settings.explicit or settings.security_inter_broker_protocol in names:
        return settings.security_inter_broker_protocol
    return names[0]


def asks_for_certificates(settings: BrokerSettings, listener: ListenerAddress) -> str:
    """ssl.client.auth of this listener. With SASL only what is given for the listener itself counts, as in Kafka."""
    if listener.security_protocol == "SSL":
        return settings_for(settings, listener.name).ssl_client_auth
    return str(own_value(settings, listener.name, "ssl.client.auth") or "none")


def listener_problems(settings: BrokerSettings) -> list[str]:
    """Everything wrong with the listeners, in words."""
    try:
        opened = opened_listeners(settings)
        advertised = advertised_listeners(settings)
    except ConfigError as error:
        return list(error.problems)
    problems: list[str] = []
    names = {listener.name for listener in opened}
    problems += per_listener_problems(settings, frozenset(names))
    for listener in opened:
        problems += _store_problems(settings, listener)
    problems += [
        f"advertised.listeners: {listener.name} is not among the listeners ({', '.join(sorted(names))})"
        for listener in advertised
        if listener.name not in names
    ]
    if settings.advertised_listeners is not None:
        missing = sorted(names - {listener.name for listener in advertised})
        problems += [f"advertised.listeners: nothing is advertised for listener {name}" for name in missing]
    if not opened:
        problems.append("listeners: at least one listener for clients is needed")
    return problems + _inter_broker_problems(settings, names) + _metrics_problems(settings, opened)


def _inter_broker_problems(settings: BrokerSettings, names: set[str]) -> list[str]:
    between, by_protocol = settings.inter_broker_listener_name, "security.inter.broker.protocol" in settings.explicit
    if between is not None and by_protocol:
        return ["inter.broker.listener.name: give either it or security.inter.broker.protocol, not both"]
    if between is not None and between.upper() not in names:
        return [f"inter.broker.listener.name: {between} is not among the listeners"]
    if by_protocol and settings.security_inter_broker_protocol not in names:
        return [
            (
                f"security.inter.broker.protocol: no listener is called {settings.security_inter_broker_protocol}; "
                "name the one to use with inter.broker.listener.name"
            )
        ]
    return []


def _metrics_problems(settings: BrokerSettings, opened: tuple[ListenerAddress, ...]) -> list[str]:
    """Of the listener of metrics, which is no listener of Kafka's protocol and has their certificates all the same."""
    given = [
        name
        for name, value in (
            ("metrics.listener.login", settings.metrics_listener_login),
            ("metrics.listener.tls", settings.metrics_listener_tls),
        )
        if value
    ]
    if given and not settings.metrics_listener:
        return [f"{name}: it is about metrics.listener, which is not given" for name in given]
    speaking = [listener.name for listener in opened if listener.speaks_tls]
    named = (settings.metrics_listener_tls or "").upper()
    if named and named not in speaking:
        there = f"there are {', '.join(speaking)}" if speaking else "there is none"
        return [f"metrics.listener.tls: {named} is no listener that speaks TLS; {there}"]
    return []


def _metrics_exposure(settings: BrokerSettings) -> list[str]:
    if not settings.metrics_listener:
        return []
    address = parse_address(settings.metrics_listener, "metrics.listener")
    if is_local(address.host):
        return []
    name = (settings.metrics_listener_tls or "").upper()
    listener = next((each for each in opened_listeners(settings) if each.name == name), None)
    if listener is None and settings.metrics_listener_login:
        return [
            (
                f"metrics.listener.login: {address} is open to other machines, and passwords would go there in clear; "
                "name a listener whose certificate to use with metrics.listener.tls, or listen on 127.0.0.1"
            )
        ]
    if settings.metrics_listener_login or (listener and asks_for_certificates(settings, listener) == "required"):
        return []
    return [
        (
            f"metrics.listener: {address} is open to other machines, and asks nobody who they are. Listen on "
            "127.0.0.1; or let readers log in (metrics.listener.login and metrics.listener.tls); or, in a network that "
            "you trust, say that it is meant: ottla.allow.unauthenticated.listeners=true"
        )
    ]


def _store_problems(settings: BrokerSettings, listener: ListenerAddress) -> list[str]:
    own = settings_for(settings, listener.name)
    if not listener.speaks_tls or own.ssl_keystore_location or own.ssl_keystore_key:
        return []
    return [
        (
            f"listeners: {listener.name} speaks {listener.security_protocol} and has no key and certificate; name a "
            "PEM or PKCS12 file that has both with ssl.keystore.location"
        )
    ]


def exposure_problems(settings: BrokerSettings) -> list[str]:
    """Ports that anybody on the network could use: why a broker does not open them unless it is told to.

    A file may have them; who starts a broker with it asks here.
    """
    if settings.ottla_allow_unauthenticated_listeners:
        return []
    return [
        f"listeners: {listener} is open to other machines, and {listener.security_protocol} asks nobody who they are. "
        "Listen on 127.0.0.1; or let clients log in (SASL_SSL in listener.security.protocol.map, or SSL with "
        "ssl.client.auth=required; docs/security-tls.md); or, in a network that you trust, say that it is meant: "
        "ottla.allow.unauthenticated.listeners=true"
        for listener in opened_listeners(settings)
        if not listener.is_local
        and not listener.speaks_sasl
        and asks_for_certificates(settings, listener) != "required"
    ] + _metrics_exposure(settings)


def _addresses(
    setting: str, texts: tuple[str, ...], settings: BrokerSettings, *, advertised: bool
) -> tuple[ListenerAddress, ...]:
    protocols = protocol_map(settings.listener_security_protocol_map)
    for_controllers = {name.upper() for name in settings.controller_listener_names}
    problems: list[str] = []
    found: dict[str, ListenerAddress] = {}
    ports: set[tuple[str, int]] = set()
    for text in texts:
        match = _ADDRESS.fullmatch(text)
        port = int(match["port"]) if match else -1
        if match is None or not (1 if advertised else 0) <= port <= 65535:
            problems.append(f"{setting}: {text!r} is not NAME://host:port")
            continue
        name, host = match["name"].upper(), match["six"] if match["six"] is not None else match["host"]
        if name in for_controllers:
            continue
        if name in found:
            problems.append(f"{setting}: {name} is given twice, each listener needs its own name")
        if name not in protocols:
            problems.append(f"{setting}: listener.security.protocol.map does not say what {name} speaks")
        if port and (host, port) in ports and not advertised:
            problems.append(f"{setting}: port {port} is given twice for the same host")
        if advertised and host in _EVERY_INTERFACE:
            problems.append(f"{setting}: {text!r} has no host that a client could connect to")
        ports.add((host, port))
        found[name] = ListenerAddress(name, host, port, protocols.get(name, ""))
    if problems:
        raise ConfigError(problems)
    return tuple(found.values())
