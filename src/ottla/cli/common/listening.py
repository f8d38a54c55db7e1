"""`--listen HOST:PORT`, which every command has that speaks HTTP."""

import argparse

from ottla.http.address import HttpAddress, parse_address


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


def _loopback_port(text: str) -> HttpAddress:
    return parse_address(f":{text}", "--port")
