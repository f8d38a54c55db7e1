"""`ottla broker`, also `kafka-server-start`: a broker in the foreground."""

from collections.abc import Sequence

from ottla.cli.broker_process import add_log_level, run_broker
from ottla.cli.options import ToolParser
from ottla.config.load import load_settings

EXAMPLES = """
  %(prog)s
  %(prog)s server.properties
  %(prog)s server.properties --set log.retention.hours=1 --set num.partitions=4
  %(prog)s --set node.id=2 --set listeners=PLAINTEXT://127.0.0.1:9192 --set log.dirs=data

One line on stdout says when the broker accepts connections; everything else is logged on stderr. SIGTERM and Ctrl-C
stop it: requests under way are finished and everything is written to disk first.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla broker") -> int:
    parser = ToolParser(prog, "Run a broker in the foreground.", EXAMPLES, help_without_arguments=False)
    parser.usage = "%(prog)s [server.properties] [options]"
    parser.add_argument("properties", nargs="?", metavar="server.properties", help="settings, in Kafka's file format")
    parser.add_argument(
        "--set",
        "--override",
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="a setting that wins over the file; may be repeated",
    )
    parser.add_argument(
        "-daemon", action="store_true", help="refused: run the broker under systemd or with nohup ... &"
    )
    add_log_level(parser, "info")
    args = parser.parse(argv)
    if args.daemon:
        parser.error("-daemon is not supported: run the broker in the foreground, under systemd or with nohup ... &")
    settings = load_settings(args.properties, args.settings)
    return run_broker(settings, announce=lambda line: print(line, flush=True), log_level=args.log_level)
