"""`ottla broker`, also `kafka-server-start`: a broker, in the foreground unless asked otherwise."""

import sys
from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.local.broker_process import run_broker
from ottla.cli.local.log_format import add_log_format, add_log_level
from ottla.config.load import load_settings

EXAMPLES = """
  %(prog)s
  %(prog)s server.properties
  %(prog)s -daemon server.properties                 in the background; kafka-server-stop ends it
  %(prog)s server.properties --set log.retention.hours=1 --set num.partitions=4
  %(prog)s --set node.id=2 --set listeners=PLAINTEXT://127.0.0.1:9192 --set log.dirs=data

One line on stdout says when the broker accepts connections; everything else is logged on stderr. SIGTERM and Ctrl-C
stop it: requests under way are finished and everything is written to disk first.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla broker") -> int:
    parser = ToolParser(prog, "Run a broker.", EXAMPLES, help_without_arguments=False)
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
        "-daemon",
        "--daemon",
        action="store_true",
        help="run in the background; the log goes to $LOG_DIR/kafkaServer.out (default: ./logs), and "
        "kafka-server-stop stops it",
    )
    add_log_level(parser, "info")
    add_log_format(parser)
    args = parser.parse(argv)
    settings = load_settings(args.properties, args.settings)
    if args.daemon:
        from ottla.cli.local.daemon import start_in_background

        return start_in_background(
            "broker",
            sys.argv[1:] if argv is None else argv,
            log_name="kafkaServer.out",
            is_ready=lambda said: " accepts connections on " in said,
            stop_with="kafka-server-stop",
        )
    return run_broker(
        settings, announce=lambda line: print(line, flush=True), log_level=args.log_level, form=args.log_format
    )
