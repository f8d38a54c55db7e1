"""Listener addresses: reading them, and which of them a broker opens and advertises."""

import re
from typing import NamedTuple

from ottla.config.broker import BrokerSettings
from ottla.config.setting import ConfigError

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
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
    """The name of the listener that brokers use among themselves: the first one unless a setting says otherwise."""
    return (settings.inter_broker_listener_name or opened_listeners(settings)[0].name).upper()


def listener_problems(settings: BrokerSettings) -> list[str]:
    """Everything wrong with the listeners, in words."""
    try:
        opened = opened_listeners(settings)
        advertised = advertised_listeners(settings)
    except ConfigError as error:
        return list(error.problems)
    problems = [
        f"listeners: {listener.name} would speak {listener.security_protocol}, and only PLAINTEXT is served so far"
        for listener in opened
        if listener.security_protocol != "PLAINTEXT"
    ]
    names = {listener.name for listener in opened}
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
    between = settings.inter_broker_listener_name
    if between is not None and between.upper() not in names:
        problems.append(f"inter.broker.listener.name: {between} is not among the listeners")
    return problems


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
