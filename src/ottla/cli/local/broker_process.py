"""What `ottla broker` and `ottla up` share: logging, warnings about open ports, and start errors in words."""

import logging
import os
import sys
from collections.abc import Callable

from ottla.cli.common.output import CommandError
from ottla.cli.local import log_format, processes
from ottla.cli.local.once_in_a_while import OnceInAWhile
from ottla.config.broker import BrokerSettings
from ottla.config.listeners import exposure_problems, opened_listeners
from ottla.config.setting import ConfigError

DEFAULT_DATA = "./.ottla"
REPETITION_SECONDS = 10.0
"""How often kazoo may say the same: it tries every server of ZooKeeper many times a second while none is there."""

NO_WAITING = "group.initial.rebalance.delay.ms=0"
"""Kafka's default spares servers rebalances while members come one by one; a person at a terminal waits for one."""

LOCAL_METRICS = "metrics.listener=127.0.0.1:0"
"""On a laptop whoever wants to see what the broker does finds it, on a port that is free; --set says otherwise."""
METRICS_ON = " serves metrics on "

logger = logging.getLogger("ottla.cli")


def run_broker(settings: BrokerSettings, *, announce: Callable[[str], None], log_level: str, form: str) -> int:
    """Run a broker in this process until it is told to stop."""
    from ottla.broker.process import run

    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(log_format.formatter(form))
    logging.basicConfig(level=log_level.upper(), handlers=[lines])
    logging.getLogger("kazoo.client").addFilter(OnceInAWhile(REPETITION_SECONDS))
    for said, matters in settings.notes:
        logger.log(logging.WARNING if matters else logging.INFO, "%s", said)
    problems = exposure_problems(settings)
    if problems:
        raise ConfigError(problems)
    for listener in opened_listeners(settings):
        if listener.security_protocol == "PLAINTEXT" and not listener.is_local:
            logger.warning(
                "%s is open to the network without authentication: whoever reaches it can read, write and delete "
                "everything. Keep it behind a firewall, or listen on 127.0.0.1",
                listener,
            )
    try:
        processes.note_process(processes.BROKER, node_id=settings.node_id)
    except OSError as error:
        logger.warning("Cannot note the process, so kafka-server-stop will not find this broker: %s", error)
    try:
        return run(settings, announce=announce)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        what = f"{error.filename}: {reason}" if error.filename else reason
        raise CommandError(f"the broker cannot go on: {what}") from error
