"""`ottla up`: a broker for a laptop, with its data beside you."""

from collections.abc import Sequence

from ottla.cli.broker_process import add_log_level, run_broker
from ottla.cli.options import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, DEFAULT_PORT, ToolParser
from ottla.config.load import load_settings

DEFAULT_DATA = "./.ottla"

EXAMPLES = """
  %(prog)s
  %(prog)s --port 9192 --data /var/tmp/ottla
  %(prog)s --set num.partitions=4 --set log.retention.hours=1
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla up") -> int:
    parser = ToolParser(
        prog, "Start a broker for this machine, with its data beside you.", EXAMPLES, help_without_arguments=False
    )
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"where to listen (default: {DEFAULT_PORT})")
    parser.add_argument("--host", default="127.0.0.1", help="which address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--data", default=DEFAULT_DATA, metavar="DIR", help=f"where data is kept (default: {DEFAULT_DATA})"
    )
    parser.add_argument(
        "--set", action="append", default=[], dest="settings", metavar="KEY=VALUE", help="a setting; may be repeated"
    )
    add_log_level(parser, "warning")
    args = parser.parse(argv)
    host = f"[{args.host}]" if ":" in args.host else args.host
    settings = load_settings(
        None, [f"log.dirs={args.data}", f"listeners=PLAINTEXT://{host}:{args.port}", *args.settings]
    )

    def announce(line: str) -> None:
        addresses = [address.rpartition("://")[2] for address in line.rpartition(" on ")[2].split(", ")]
        print(welcome(addresses[0], ", ".join(settings.data_dirs)), flush=True)

    return run_broker(settings, announce=announce, log_level=args.log_level)


def welcome(address: str, data: str) -> str:
    """What a newcomer needs to know."""
    export = [] if address == DEFAULT_BOOTSTRAP else [f"    export {BOOTSTRAP_VARIABLE}={address}"]
    return "\n".join(
        [
            f"Ottla is up on {address}. Its data is in {data}; Ctrl-C stops it.",
            "",
            "  In another terminal:",
            *export,
            "    ottla topics --create --topic news --partitions 3",
            "    echo hello | ottla console-producer --topic news",
            "    ottla console-consumer --topic news --from-beginning",
            "",
            f"  In a program, with any Kafka client: bootstrap.servers={address}",
        ]
    )
