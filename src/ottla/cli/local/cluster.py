"""`ottla cluster`: a whole cluster on this machine, ZooKeeper and brokers, with one command."""

import argparse
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import CommandError, note
from ottla.cli.local import console_child as consoles
from ottla.cli.local import secure
from ottla.cli.local.beside import why_not
from ottla.cli.local.broker_process import LOCAL_METRICS, NO_WAITING
from ottla.cli.local.cluster_children import Child, broker_child, console_child, registry_child, zookeeper_child
from ottla.cli.local.console_child import add_console
from ottla.cli.local.log_format import add_log_format, add_log_level
from ottla.cli.local.registry_child import add_registry, refuse_exposed, wanted
from ottla.cli.local.registry_child import broker_settings as registry_settings
from ottla.config.load import load_settings
from ottla.http.address import BadListener
from ottla.http.listening import listen
from ottla.model.defaults import BOOTSTRAP_VARIABLE, DEFAULT_PORT
from ottla.testing.ports import free_ports

DEFAULT_DATA = "./.ottla-cluster"
READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 60.0

EXAMPLES = """
  %(prog)s                                   three brokers on ports 9092, 9093 and 9094
  %(prog)s --brokers 5 --port 9192 --data /var/tmp/cluster
  %(prog)s --racks a,b,c                     each broker in a rack of its own, so that replicas are spread
  %(prog)s --set num.partitions=6 --set log.retention.hours=1
  %(prog)s --secure                          with TLS, and a user to log in as; says how clients do that
  %(prog)s --zookeeper 127.0.0.1:2181        with a ZooKeeper that runs already

  to see a failover, in other terminals:
  export OTTLA_BOOTSTRAP=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094
  ottla topics --create --topic news --partitions 6
  ottla topics --describe --topic news
  kill -9 PID                                of one broker, as logged at its start; describe the topic again

Each broker says where it serves metrics for Prometheus, on a free port of this machine; --set metrics.listener= turns
that off. One line on stdout names the bootstrap servers when all brokers serve; their logs come on stderr, each with
its name in front. Topics get three replicas (fewer brokers: as many as there are), and with three brokers or more a
write with acks=all is acknowledged when two have it. Ctrl-C stops the brokers one after the other, then ZooKeeper.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla cluster") -> int:
    args = _parse(argv, prog)
    children: list[Child] = []
    stopping = threading.Event()

    def ask_to_stop(_number: int, _frame: FrameType | None) -> None:
        if stopping.is_set():  # asked twice: at once
            for child in children:
                child.kill()
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask_to_stop)
    try:
        _start(args, children, stopping)
        if not stopping.is_set():
            bootstrap = ",".join(_addresses(args))
            print(bootstrap, flush=True)
            note(f"{args.brokers} brokers serve; export {BOOTSTRAP_VARIABLE}={bootstrap}")
            registries = _start_registries(args, children, bootstrap)
            _start_console(args, children, bootstrap, registries)
            if args.secured is not None:
                note(secure.instructions(args.secured, bootstrap))
        _watch(children, stopping)
    finally:
        _stop(children)
    return 0


def _parse(argv: Sequence[str] | None, prog: str) -> argparse.Namespace:
    parser = ToolParser(
        prog, "Run a cluster on this machine: ZooKeeper and brokers.", EXAMPLES, help_without_arguments=False
    )
    parser.add_argument("--brokers", type=int, default=3, help="how many (default: 3)")
    parser.add_argument(
        "--port",
        type=int,
        default=DEFAULT_PORT,
        help=f"of the first broker; the others follow (default: {DEFAULT_PORT})",
    )
    parser.add_argument("--host", default="127.0.0.1", help="which address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--data", default=DEFAULT_DATA, metavar="DIR", help=f"where data is kept (default: {DEFAULT_DATA})"
    )
    parser.add_argument(
        "--zookeeper", metavar="HOST:PORT,...", help="use this ZooKeeper instead of starting one on a free port"
    )
    parser.add_argument("--racks", metavar="NAME,...", help="broker.rack of the brokers, in turn")
    parser.add_argument(
        "--set", action="append", default=[], dest="settings", metavar="KEY=VALUE", help="of every broker; repeatable"
    )
    parser.add_argument(
        "--secure", action="store_true", help="encrypt, and let nobody in but the user that is made at the first start"
    )
    add_registry(parser, more=" beside the first broker; those of the others follow")
    add_console(parser)
    add_log_level(parser, "warning")
    add_log_format(parser)
    args = parser.parse(argv)
    if args.brokers < 1:
        parser.error("--brokers wants a number of 1 or more")
    if not 0 < args.port <= 65_536 - args.brokers:
        parser.error(f"--port wants a number from 1 to {65_536 - args.brokers}")
    args.secured = secure.prepare(args.data, args.host) if args.secure else None
    return args


def _start(args: argparse.Namespace, children: list[Child], stopping: threading.Event) -> None:
    """ZooKeeper first, then all brokers at once; returns when all of them serve. What cannot work starts nothing."""
    (port,) = free_ports(1)
    connect = args.zookeeper or f"127.0.0.1:{port}"
    own = load_settings(None, [*broker_settings(args, 1, connect), *args.settings])
    refuse_exposed(wanted(args.registry), args.secured, meant=own.ottla_allow_unauthenticated_listeners)
    if args.zookeeper is None:
        children.append(zookeeper_child(Path(args.data, "zookeeper").absolute(), port, log_level=args.log_level))
        _wait_for(children, stopping)
    if args.secured is not None:
        secure.make_admin(args.secured, own)
    brokers = []
    for number in range(1, args.brokers + 1):
        if stopping.is_set():
            return
        settings = [*broker_settings(args, number, connect), *args.settings]
        brokers.append(broker_child(number, settings, args.log_level, args.log_format))
        children.append(brokers[-1])
    _wait_for(brokers, stopping)


def _start_registries(args: argparse.Namespace, children: list[Child], bootstrap: str) -> list[str]:
    """One beside every broker. Where a port is taken the cluster runs with those that there are, and says so."""
    address = wanted(args.registry)
    urls: list[str] = []
    if address is None:
        return urls
    for offset in range(args.brokers):
        own = address._replace(port=address.port + offset if address.port else 0)
        try:
            if own.port:
                listen(own, backlog=1).close()
        except BadListener as error:
            note(f"no schema registry: {error}; choose other ports with --registry HOST:PORT")
            continue
        children.append(registry_child(offset + 1, bootstrap, own, args.secured, args.log_level))
        urls.append(f"{'http' if args.secured is None else 'https'}://{own}")
    if urls:
        note(f"schema registries: schema.registry.url={','.join(urls)}")
    return urls


def _start_console(args: argparse.Namespace, children: list[Child], bootstrap: str, registries: list[str]) -> None:
    """Where its port is taken the cluster runs without one, and says so."""
    address = consoles.wanted(args.console)
    if address is None:
        return
    reason = why_not(address)
    if reason:
        note(f"no console: {reason}; choose another port with --console HOST:PORT")
        return
    told = {child.name.removeprefix("broker-"): child.metrics for child in children if child.metrics}
    metrics = [f"{number}={url}" for number, url in told.items()]
    children.append(console_child(bootstrap, address, ",".join(registries), metrics, args.secured, args.log_level))
    note(f"console, in a browser: {'http' if args.secured is None else 'https'}://{address}")


def broker_settings(args: argparse.Namespace, number: int, connect: str) -> list[str]:
    """What makes it broker `number` of this cluster."""
    racks = [f"broker.rack={args.racks.split(',')[(number - 1) % len(args.racks.split(','))]}"] if args.racks else []
    address = _addresses(args)[number - 1]
    host = address.rpartition(":")[0]
    secured = secure.broker_settings(args.secured, address, host, in_cluster=True) if args.secured is not None else []
    registries = registry_settings(wanted(args.registry), args.brokers, args.secured)
    return [
        f"node.id={number}",
        f"listeners=PLAINTEXT://{address}",
        f"log.dirs={Path(args.data, f'broker-{number}')}",
        f"zookeeper.connect={connect}",
        f"default.replication.factor={min(3, args.brokers)}",
        f"min.insync.replicas={2 if args.brokers >= 3 else 1}",
        NO_WAITING,
        LOCAL_METRICS,
        *racks,
        *secured,
        *registries,
    ]


def _addresses(args: argparse.Namespace) -> list[str]:
    host = f"[{args.host}]" if ":" in args.host else args.host
    return [f"{host}:{args.port + offset}" for offset in range(args.brokers)]


def _wait_for(children: Sequence[Child], stopping: threading.Event) -> None:
    for child in children:
        while not child.ready.wait(0.05):
            if stopping.is_set():
                return
            if child.ended:
                raise CommandError(f"{child.name} ended with exit code {child.exit_code} before it served")
            if child.age_seconds > READY_SECONDS_MAX:
                raise CommandError(f"{child.name} does not serve after {READY_SECONDS_MAX:g} s")


def _watch(children: Sequence[Child], stopping: threading.Event) -> None:
    """Until asked to stop. A broker that ends is told of and left down: the others go on, that is what they are for."""
    told: set[str] = set()
    while not stopping.wait(0.2):
        for child in children:
            if child.ended and child.name not in told:
                told.add(child.name)
                note(
                    f"{child.name} ended with exit code {child.exit_code}; {sum(not c.ended for c in children)} run on"
                )
        if all(child.ended for child in children):
            raise CommandError("every process of the cluster has ended")


def _stop(children: Sequence[Child]) -> None:
    """Brokers one after the other, so that each can hand over what it leads; ZooKeeper last."""
    for child in reversed(children):
        if not child.ended:
            child.terminate()
        if not child.wait(STOP_SECONDS_MAX):
            note(f"{child.name} does not stop and is killed")
            child.kill()
            child.wait(STOP_SECONDS_MAX)
