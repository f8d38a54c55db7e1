"""What `ottla broker` and `ottla up` share: logging, warnings about open ports, and start errors in words."""

import argparse
import ipaddress
import logging
import os
import sys
from collections.abc import Callable

from ottla.cli.once_in_a_while import OnceInAWhile
from ottla.cli.output import CommandError
from ottla.config.broker import BrokerSettings
from ottla.config.listeners import ListenerAddress, opened_listeners

LEVELS = ("debug", "info", "warning", "error")
REPETITION_SECONDS = 10.0
"""How often kazoo may say the same: it tries every server of ZooKeeper many times a second while none is there."""

log = logging.getLogger("ottla.cli")


def add_log_level(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--log-level", choices=LEVELS, default=default, help=f"how much to log on stderr (default: {default})"
    )


def run_broker(settings: BrokerSettings, *, announce: Callable[[str], None], log_level: str) -> int:
    """Run a broker in this process until it is told to stop."""
    from ottla.broker.node import run

    logging.basicConfig(
        stream=sys.stderr, level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("kazoo.client").addFilter(OnceInAWhile(REPETITION_SECONDS))
    for listener in opened_listeners(settings):
        if not is_loopback(listener):
            log.warning(
                "%s is open to the network and asks nobody who they are: whoever reaches it can read, write and delete "
                "everything. Keep it behind a firewall, or listen on 127.0.0.1",
                listener,
            )
    try:
        return run(settings, announce=announce)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        what = f"{error.filename}: {reason}" if error.filename else reason
        raise CommandError(f"the broker cannot go on: {what}") from error


def is_loopback(listener: ListenerAddress) -> bool:
    """Whether only this machine can connect. A name that we do not know counts as open."""
    if listener.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(listener.host).is_loopback
    except ValueError:
        return False
