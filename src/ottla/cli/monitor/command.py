"""`ottla monitor`: judges consumers' lag and sends records end to end, against any Kafka; serves what it finds."""

import argparse
import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.cli.common.listening import add_allow_unauthenticated, add_listen, check_exposure
from ottla.cli.common.options import (
    ToolParser,
    add_connection_options,
    bootstrap_of,
    client_settings,
    read_properties,
    read_text,
)
from ottla.cli.common.output import CommandError, note

if TYPE_CHECKING:
    from ottla.client.settings import ClientSettings
    from ottla.monitoring.burrow_config import HttpListener
    from ottla.monitoring.endtoend.settings import EndToEndSettings
    from ottla.monitoring.endtoend.slo import Objective
    from ottla.monitoring.lag.notifiers import Notifier
    from ottla.monitoring.lag.rules import Rules
    from ottla.monitoring.lag.watching import WatchSettings

LISTEN = "127.0.0.1:8000"
EXAMPLES = """
  %(prog)s --bootstrap-server kafka-1:9092
  %(prog)s --config burrow.toml --listen 0.0.0.0:8000 --listen-login users.properties --listen-certificate monitor.pem
  %(prog)s --once --slo 99.9 --duration 30 --json
  %(prog)s --write-dashboards monitoring/
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla monitor") -> int:
    parser = parser_of(prog)
    args = parser.parse(argv)
    if args.write_dashboards:
        from ottla.monitoring.dashboards.files import write_files

        try:
            written = write_files(args.write_dashboards)
        except OSError as error:
            raise CommandError(
                f"cannot write to {args.write_dashboards}: {error.strerror}; name another folder"
            ) from None
        for path in written:
            print(path)
        return 0
    if args.lag is False and args.end_to_end is False:
        raise CommandError("--no-lag and --no-end-to-end leave nothing to do")
    _refuse_unused(parser, args)
    from ottla.cli.monitor.running import run_monitor, run_once

    watches, notifiers, ends, listeners = _settings(args)
    if args.once:
        if not ends:
            raise CommandError("--once sends records end to end: leave --no-end-to-end out")
        return asyncio.run(run_once(ends, args.duration, json=args.json))
    users = read_properties(args.listen_login) if args.listen_login else None
    for each in listeners:
        check_exposure(
            each.address,
            login=users is not None,
            tls=each.certificate is not None,
            meant=args.allow_unauthenticated,
            how="--listen-login FILE, with --listen-certificate FILE or `tls` of an [httpserver.*]",
        )
    return asyncio.run(run_monitor(watches, notifiers, ends, listeners, users=users, json=args.json))


def parser_of(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Watch a Kafka cluster as its clients see it.", EXAMPLES, help_without_arguments=False)
    add_connection_options(parser)
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FILE",
        help="Burrow's TOML or Xinfra Monitor's JSON, instead of --bootstrap-server; may be given once for each",
    )
    add_listen(parser, "the HTTP API of Burrow, and /metrics,", default=LISTEN)
    parser.add_argument("--listen-certificate", metavar="FILE", help="serve HTTPS with this certificate (PEM)")
    parser.add_argument("--listen-key", metavar="FILE", help="its key, if it is not in the same file")
    parser.add_argument(
        "--listen-login", metavar="FILE", help="let in only users of this file, NAME=PASSWORD in each line"
    )
    add_allow_unauthenticated(parser)
    parser.add_argument(
        "--write-dashboards", metavar="DIR", help="write alert rules and dashboards to this folder, and do nothing else"
    )
    lag = parser.add_argument_group("lag")
    lag.add_argument("--no-lag", dest="lag", action="store_false", default=None, help="do not look at consumer groups")
    lag.add_argument(
        "--cluster-name", default="local", metavar="NAME", help="how the cluster is called in what is served"
    )
    lag.add_argument(
        "--refresh", type=_positive, default=10.0, metavar="SECONDS", help="between two looks (default: 10)"
    )
    lag.add_argument(
        "--intervals", type=int, default=10, metavar="N", help="looks that are judged together (default: 10)"
    )
    lag.add_argument(
        "--allowed-lag", type=int, default=0, metavar="RECORDS", help="a lag up to this is none (default: 0)"
    )
    lag.add_argument("--group-allowlist", default="", metavar="PATTERN", help="only groups whose name has this")
    lag.add_argument("--group-denylist", default="", metavar="PATTERN", help="no groups whose name has this")
    end = parser.add_argument_group("end to end")
    end.add_argument(
        "--no-end-to-end", dest="end_to_end", action="store_false", default=None, help="send and read no records"
    )
    end.add_argument("--topic", default=None, metavar="TOPIC", help="the topic to write to (default: ottla-monitor)")
    end.add_argument("--replication-factor", type=int, metavar="N", help="of that topic (default: 3, or all brokers)")
    end.add_argument(
        "--record-delay-ms", type=_positive, default=100.0, metavar="MS", help="between records (default: 100)"
    )
    end.add_argument(
        "--write-timeout-ms", type=_positive, default=1000.0, metavar="MS", help="until acknowledged (default: 1000)"
    )
    end.add_argument(
        "--latency-max-ms", type=_positive, default=20_000.0, metavar="MS", help="until read (default: 20000)"
    )
    end.add_argument("--no-topic-probe", action="store_true", help="make and delete no topics")
    end.add_argument("--slo", type=_percent, default=99.9, metavar="PERCENT", help="the objective (default: 99.9)")
    end.add_argument("--slo-days", type=_positive, default=30.0, metavar="DAYS", help="its window (default: 30)")
    end.add_argument("--once", action="store_true", help="send records for --duration, and exit 1 if --slo is not kept")
    end.add_argument("--duration", type=_positive, default=30.0, metavar="SECONDS", help="of --once (default: 30)")
    return parser


_CONNECTION = ("bootstrap_server", "broker_list", "zookeeper", "command_config")
_LAG = ("refresh", "intervals", "allowed_lag", "group_allowlist", "group_denylist")
_RECORDS = ("topic", "replication_factor", "record_delay_ms", "write_timeout_ms", "latency_max_ms", "no_topic_probe")
_OBJECTIVE = ("slo", "slo_days")


def _refuse_unused(parser: ToolParser, args: argparse.Namespace) -> None:
    """An option that would be ignored is a mistake, and is said to be one."""
    for is_unused, names, why in (
        (args.config, (*_CONNECTION, "cluster_name", *_LAG, *_RECORDS, "lag", "end_to_end"), "--config says it"),
        (args.lag is False or args.once, _LAG, "no consumer groups are looked at"),
        (args.end_to_end is False, (*_RECORDS, *_OBJECTIVE), "no records are sent"),
        (not args.once, ("duration",), "it is for --once"),
        (
            args.once,
            ("listen", "listen_certificate", "listen_key", "listen_login", "allow_unauthenticated"),
            "--once serves nothing",
        ),
        (not args.listen_certificate, ("listen_key",), "it is for --listen-certificate"),
    ):
        given = [name for name in names if is_unused and getattr(args, name) != parser.get_default(name)]
        options = {action.dest: action.option_strings[0] for action in parser._actions if action.option_strings}
        if given and not (given == ["listen"] and str(args.listen) == LISTEN):
            raise CommandError(f"{options[given[0]]} has no effect here: {why}; leave it out")


def _positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not more than 0")
    return value


def _percent(text: str) -> float:
    value = float(text)
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"{text} is no percentage: write 99.9")
    return value


def _settings(
    args: argparse.Namespace,
) -> "tuple[list[WatchSettings], list[Notifier], list[EndToEndSettings], list[HttpListener]]":
    """Of the files where they say something, and of the options otherwise."""
    from ottla.monitoring.burrow_config import HttpListener, read_burrow
    from ottla.monitoring.endtoend.slo import Objective
    from ottla.monitoring.xinfra_config import is_xinfra, read_xinfra

    objective = Objective(args.slo / 100, int(args.slo_days * 86_400))
    watches: list[WatchSettings] = []
    notifiers: list[Notifier] = []
    ends: list[EndToEndSettings] = []
    listeners: list[HttpListener] = []
    for path in args.config:
        text = read_text(path)
        if is_xinfra(text):
            xinfra = read_xinfra(text, path, objective)
            ends += xinfra.monitors
            unused = xinfra.without_effect
        else:
            burrow = read_burrow(text, path, read_text)
            watches += burrow.watches
            notifiers += burrow.notifiers
            listeners += burrow.listeners
            unused = burrow.without_effect
        for each in unused:
            note(f"{path}: {each}")
    if not args.config:
        if args.lag is not False:
            watches.append(_watch(args))
        if args.end_to_end is not False:
            ends.append(_end_to_end(args, objective))
    if listeners and (str(args.listen) != LISTEN or args.listen_certificate):
        raise CommandError("--listen and an [httpserver.*] of --config both say where to listen: leave one out")
    default = HttpListener(args.listen, args.listen_certificate, args.listen_key)
    return watches, notifiers, ends, listeners or [default]


def _watch(args: argparse.Namespace) -> "WatchSettings":
    from ottla.monitoring.lag.watching import WatchSettings

    return WatchSettings(
        args.cluster_name,
        _client(args),
        _rules(args),
        args.refresh,
        allow=args.group_allowlist,
        deny=args.group_denylist,
    )


def _rules(args: argparse.Namespace) -> "Rules":
    from ottla.monitoring.lag.rules import Rules

    if args.intervals < 2:
        raise CommandError("--intervals is at least 2: nothing can be told from one look")
    return Rules(intervals=args.intervals, allowed_lag=args.allowed_lag)


def _end_to_end(args: argparse.Namespace, objective: "Objective") -> "EndToEndSettings":
    from ottla.monitoring.endtoend.layout import Wanted
    from ottla.monitoring.endtoend.settings import TOPIC, EndToEndSettings

    found = EndToEndSettings(args.cluster_name, _client(args))
    return found._replace(
        topic=args.topic or TOPIC,
        group=args.topic or TOPIC,
        wanted=Wanted(replication_factor=args.replication_factor),
        delay_s=args.record_delay_ms / 1000,
        write_timeout_s=args.write_timeout_ms / 1000,
        latency_max_s=args.latency_max_ms / 1000,
        topic_probe_s=0.0 if args.no_topic_probe else found.topic_probe_s,
        objective=objective,
    )


def _client(args: argparse.Namespace) -> "ClientSettings":
    from ottla.client.errors import InvalidSetting
    from ottla.monitoring.clients import monitor_client

    try:
        return monitor_client(bootstrap_of(args), client_settings(args))
    except InvalidSetting as error:
        raise CommandError(f"--command-config: {error}") from None
