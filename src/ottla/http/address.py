"""Where an HTTP listener is to listen: `--listen HOST:PORT` of a command, `X.listener=HOST:PORT` as a setting.

Loopback unless told otherwise: `8080` and `:8080` are `127.0.0.1:8080`. Port 0 is a free one.
"""

import ipaddress
import re
from typing import NamedTuple

from ottla.model.errors import OttlaError

LOOPBACK = "127.0.0.1"
PORT_MAX = 65535

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


class BadListener(OttlaError):
    """An address that cannot be understood, or that cannot be listened on."""


class HttpAddress(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_local(host: str) -> bool:
    """Whether this is an address of this machine that no other can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def parse_address(text: str, option: str = "--listen") -> HttpAddress:
    """`option` is how the user calls it, for the message of a mistake."""
    given = text.strip()
    if "://" in given:
        raise BadListener(f"{option}: `{text}` is a URL; write HOST:PORT, without http://")
    if given.startswith("["):
        host, bracket, port = given[1:].partition("]:")
        if not bracket:
            raise BadListener(f"{option}: `{text}` has no port; write [HOST]:PORT")
        return HttpAddress(_ipv6(host, text, option), _port(port, text, option))
    host, colon, port = given.rpartition(":")
    if not colon and not given.isdigit():
        raise BadListener(f"{option}: `{text}` is not HOST:PORT, nor a port alone")
    if ":" in host:
        raise BadListener(f"{option}: an IPv6 address stands in brackets: [{host}]:{port}")
    if host == "*":
        raise BadListener(f"{option}: for all interfaces write 0.0.0.0:{port}, or [::]:{port}")
    if host and not _NAME.fullmatch(host):
        raise BadListener(f"{option}: `{host}` is neither a host name nor an address")
    return HttpAddress(host or LOOPBACK, _port(port, text, option))


def _port(digits: str, text: str, option: str) -> int:
    if not (digits.isascii() and digits.isdigit()):
        raise BadListener(f"{option}: the port of `{text}` is not a number")
    if len(digits) > len(str(PORT_MAX)) or int(digits) > PORT_MAX:
        raise BadListener(f"{option}: the port of `{text}` is not between 0 (a free one) and {PORT_MAX}")
    return int(digits)


def _ipv6(host: str, text: str, option: str) -> str:
    try:
        ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        raise BadListener(f"{option}: `{text}` has no IPv6 address in its brackets") from None
    return host
