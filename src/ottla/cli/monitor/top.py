"""`ottla top`: a cluster at a glance, again and again."""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.cli.common.options import ToolParser, add_connection_options, bootstrap_of, client_settings
from ottla.cli.common.output import CommandError, print_json

if TYPE_CHECKING:
    from ottla.monitoring.lag.watching import Watch
    from ottla.monitoring.top.gathering import Addresses
    from ottla.monitoring.top.view import Observer, View

EXAMPLES = """
  %(prog)s
  %(prog)s --bootstrap-server kafka-1:9092 --metrics kafka-1:9404,kafka-2:9404
  %(prog)s --once --json
"""


def parser_of(prog: str) -> ToolParser:
    parser = ToolParser(
        prog, "Brokers, topics by traffic, groups by lag, requests by time, pipelines.", EXAMPLES,
        help_without_arguments=False,
    )  # fmt: skip
    add_connection_options(parser)
    parser.add_argument("--delay", type=float, default=2.0, metavar="SECONDS", help="between two looks (default: 2)")
    parser.add_argument("--rows", type=int, default=10, metavar="N", help="of each table at most (default: 10)")
    parser.add_argument("--metrics", default="", metavar="HOST:PORT,...", help="the brokers' metrics listeners")
    parser.add_argument("--pipelines", default="", metavar="HOST:PORT,...", help="where `ottla pipeline run` listens")
    parser.add_argument("--once", action="store_true", help="look twice, print, and stop")
    parser.add_argument("--svg", metavar="FILE", help="with --once: write what is shown to this file, too")
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "ottla top") -> int:
    args = parser_of(prog).parse(argv)
    logging.getLogger("ottla.monitoring").setLevel(logging.ERROR)  # who does not answer is shown
    if args.delay <= 0:
        raise CommandError("--delay is more than 0 seconds")
    try:
        return asyncio.run(_run(args))
    except KeyboardInterrupt:
        return 0


async def _run(args: argparse.Namespace) -> int:
    from ottla.client.errors import InvalidSetting
    from ottla.monitoring.clients import monitor_client
    from ottla.monitoring.lag.watching import Watch, WatchSettings
    from ottla.monitoring.top.gathering import Addresses, read_addresses
    from ottla.monitoring.top.view import Observer

    addresses = Addresses(
        read_addresses(args.metrics, "/metrics", "--metrics"), read_addresses(args.pipelines, "/status", "--pipelines")
    )
    try:
        client = monitor_client(bootstrap_of(args), client_settings(args))
    except InvalidSetting as error:
        raise CommandError(f"--command-config: {error}") from None
    watch = Watch(WatchSettings("cluster", client, refresh_s=args.delay))
    try:
        if args.once or args.json or not sys.stdout.isatty():
            return await _once(args, watch, addresses, Observer())
        return await _live(args, watch, addresses, Observer())
    finally:
        await watch.close()


async def _view(watch: "Watch", addresses: "Addresses", observer: "Observer") -> "View":
    from ottla.cli.common.admin_session import no_broker
    from ottla.client.errors import Unreachable
    from ottla.monitoring.top.gathering import gather

    await watch.once()
    seen = await gather(watch, addresses)
    if seen is None:
        raise CommandError(no_broker(watch.settings.client.bootstrap, Unreachable(watch.error)))
    return observer.see(seen, time.monotonic())


async def _once(args: argparse.Namespace, watch: "Watch", addresses: "Addresses", observer: "Observer") -> int:
    """Twice, because speeds are told by two looks."""
    from ottla.cli.monitor.top_tables import print_view

    await _view(watch, addresses, observer)
    await asyncio.sleep(args.delay)
    view = await _view(watch, addresses, observer)
    if args.json:
        print_json(
            {
                "brokers": [row._asdict() for row in view.brokers],
                "topics": [row._asdict() for row in view.topics],
                "groups": [row._asdict() for row in view.groups],
                "requests": [row._asdict() for row in view.requests],
                "pipelines": view.pipelines,
                "failures": view.failures,
            }
        )
    else:
        print_view(view, args.rows, args.svg)
    return 0


async def _live(args: argparse.Namespace, watch: "Watch", addresses: "Addresses", observer: "Observer") -> int:
    from rich.console import Console
    from rich.live import Live

    from ottla.cli.monitor.top_tables import tables

    with Live(console=Console(), screen=True, auto_refresh=False) as live:
        while True:
            started = time.monotonic()
            live.update(tables(await _view(watch, addresses, observer), args.rows), refresh=True)
            await asyncio.sleep(max(0.1, args.delay - (time.monotonic() - started)))
