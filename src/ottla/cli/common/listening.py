"""`--listen HOST:PORT`, which every command has that speaks HTTP."""

import argparse

from ottla.cli.common.output import CommandError
from ottla.http.address import HttpAddress, is_local, parse_address

MEANT = "--allow-unauthenticated"


def add_listen(parser: argparse.ArgumentParser, what: str, *, default: str, port_alone: bool = False) -> None:
    """`port_alone` adds `--port PORT`, for commands that had it before."""
    parser.add_argument(
        "--listen",
        type=parse_address,
        default=default,
        metavar="HOST:PORT",
        help=f"where {what} is served; a port alone is one of 127.0.0.1, port 0 a free one (default: {default})",
    )
    if port_alone:
        parser.add_argument(
            "--port",
            type=_loopback_port,
            dest="listen",
            default=argparse.SUPPRESS,
            metavar="PORT",
            help="the same as --listen 127.0.0.1:PORT",
        )


def add_allow_unauthenticated(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        MEANT,
        action="store_true",
        help="serve other machines although nobody has to log in: in a network that you trust",
    )


def check_exposure(address: HttpAddress, *, login: bool, tls: bool, meant: bool, how: str) -> None:
    """A port that anybody on the network could use is not opened unless that is meant. `how` tells of logins."""
    if meant or is_local(address.host) or (login and tls):
        return
    if login:
        raise CommandError(
            f"{address} is open to other machines, and passwords would go there in clear: {how}, or listen on "
            f"127.0.0.1; or, in a network that you trust, say that it is meant: {MEANT}"
        )
    raise CommandError(
        f"{address} is open to other machines, and asks nobody who they are. Listen on 127.0.0.1; or let users log in "
        f"({how}); or, in a network that you trust, say that it is meant: {MEANT}"
    )


def _loopback_port(text: str) -> HttpAddress:
    return parse_address(f":{text}", "--port")
