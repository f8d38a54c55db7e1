"""`ottla up`: a broker for a laptop, with its data beside you."""

from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.local import secure
from ottla.cli.local.broker_process import (
    DEFAULT_DATA,
    LOCAL_METRICS,
    METRICS_ON,
    NO_WAITING,
    run_broker,
)
from ottla.cli.local.console_child import ConsoleChild, add_console, console_lines
from ottla.cli.local.log_format import add_log_format, add_log_level
from ottla.cli.local.registry_child import RegistryChild, add_registry, refuse_exposed, registry_lines
from ottla.config.load import load_settings
from ottla.model.defaults import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, DEFAULT_PORT

EXAMPLES = """
  %(prog)s
  %(prog)s --port 9192 --data /var/tmp/ottla
  %(prog)s --set num.partitions=4 --set log.retention.hours=1
  %(prog)s --secure                   with TLS, and a user to log in as; says how clients do that
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
    parser.add_argument(
        "--secure", action="store_true", help="encrypt, and let nobody in but the user that is made at the first start"
    )
    add_registry(parser)
    add_console(parser)
    add_log_level(parser, "warning")
    add_log_format(parser)
    args = parser.parse(argv)
    host = f"[{args.host}]" if ":" in args.host else args.host
    own = [f"log.dirs={args.data}", f"listeners=PLAINTEXT://{host}:{args.port}", NO_WAITING, LOCAL_METRICS]
    secured = None
    if args.secure:
        secured = secure.prepare(args.data, args.host)
        own += secure.broker_settings(secured, f"{host}:{args.port}", host, in_cluster=False)
    registry = RegistryChild(args.registry, secured, args.log_level)
    own += registry.broker_settings()
    console = ConsoleChild(args.console, secured, args.log_level)
    settings = load_settings(None, [*own, *args.settings])
    refuse_exposed(registry.address, secured, meant=settings.ottla_allow_unauthenticated_listeners)
    if secured is not None:
        secure.make_admin(secured, settings)

    metrics: list[str] = []

    def announce(line: str) -> None:
        if METRICS_ON in line:
            metrics.append(line.rpartition(METRICS_ON)[2])
            return
        addresses = [address.rpartition("://")[2] for address in line.rpartition(" on ")[2].split(", ")]
        registry.start(addresses[0])
        print(welcome(addresses[0], ", ".join(settings.data_dirs), secured), flush=True)
        print(registry_lines(registry), flush=True)
        console.start(
            addresses[0], "" if registry.why_not else registry.url, [f"{settings.node_id}={url}" for url in metrics]
        )
        print(console_lines(console), flush=True)
        if metrics:
            print(f"\n  What it counts, for Prometheus: {metrics[0]}", flush=True)

    try:
        return run_broker(settings, announce=announce, log_level=args.log_level, form=args.log_format)
    finally:
        console.stop()
        registry.stop()


def welcome(address: str, data: str, secured: secure.Secured | None = None) -> str:
    """What a newcomer needs to know."""
    if secured is not None:
        first = f"Ottla is up on {address}. Its data is in {data}; Ctrl-C stops it."
        return f"{first}\n{secure.instructions(secured, address)}"
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
