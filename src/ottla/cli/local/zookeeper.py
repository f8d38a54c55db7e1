"""`ottla zookeeper`, also `zookeeper-server-start`: a ZooKeeper server, in the foreground unless asked otherwise."""

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ottla.cli.common.options import ToolParser, read_properties
from ottla.cli.common.output import CommandError, warn
from ottla.cli.local import processes
from ottla.cli.local.log_format import LEVELS
from ottla.cluster.zookeeper_server import CLIENT_PORT, ELECTION_PORT, HEAP_MB, PEER_PORT, Member, command, write_config

DEFAULT_DATA = "./.ottla-zookeeper"
NOT_SERVING = "not currently serving"
LOOPBACK = ("127.0.0.1", "localhost", "::1")

EXAMPLES = """
  %(prog)s                                                    one server, for a laptop
  %(prog)s --port 2182 --data-dir /var/lib/zookeeper
  %(prog)s zookeeper.properties                               a file that you have from Kafka or ZooKeeper

  an ensemble of three, which goes on serving when one of them is down (on each host, with its own --id):
  %(prog)s --id 1 --servers 1=zk1,2=zk2,3=zk3 --host zk1 --data-dir /var/lib/zookeeper

  the brokers that use it:
  ottla broker --set node.id=1 --set zookeeper.connect=zk1:2181,zk2:2181,zk3:2181 ...

The brokers of a cluster keep in ZooKeeper which brokers live, which topics there are and who leads their partitions.
The records themselves stay with the brokers. One broker alone needs no ZooKeeper: see `ottla up`; a whole cluster on
this machine, ZooKeeper and all, is `ottla cluster`. This is Apache ZooKeeper itself: its jars come with the package
pyspark, and it needs a Java, which `ottla doctor` looks for.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla zookeeper") -> int:
    parser = ToolParser(prog, "Run a ZooKeeper server.", EXAMPLES, help_without_arguments=False)
    parser.usage = "%(prog)s [zookeeper.properties] [options]"
    parser.add_argument(
        "properties", nargs="?", metavar="zookeeper.properties", help="run with this file, and no other option"
    )
    parser.add_argument("--port", type=int, help=f"where clients connect (default: {CLIENT_PORT})")
    parser.add_argument("--host", help="which address to listen on (default: 127.0.0.1)")
    parser.add_argument("--data-dir", metavar="DIR", help=f"where data is kept (default: {DEFAULT_DATA})")
    parser.add_argument("--id", type=int, help="which of --servers this one is")
    parser.add_argument(
        "--servers",
        metavar="ID=HOST[:PORT:PORT],...",
        help=f"all servers of the ensemble, with the ports they use among themselves (default: {PEER_PORT} to follow "
        f"the leader, {ELECTION_PORT} to elect it)",
    )
    parser.add_argument("--heap", type=int, default=HEAP_MB, metavar="MB", help=f"Java's heap (default: {HEAP_MB})")
    parser.add_argument("--log-level", choices=LEVELS, default="info", help="how much to log on stderr (default: info)")
    parser.add_argument(
        "-daemon",
        "--daemon",
        action="store_true",
        help="run in the background; the log goes to $LOG_DIR/zookeeper.out (default: ./logs), zookeeper-server-stop "
        "stops it",
    )
    args = parser.parse(argv)
    program = command(heap_mb=args.heap, log_level="warn" if args.log_level == "warning" else args.log_level)
    config = _given_file(args) if args.properties else _own_file(args)
    if args.daemon:
        return _in_background(sys.argv[1:] if argv is None else argv, config)
    try:
        processes.note_process(processes.ZOOKEEPER, survives_exec=True)
    except OSError as error:
        warn(f"zookeeper-server-stop will not find this server: {error}")
    sys.stdout.flush()
    return _become([*program, str(config)])


def _become(program: list[str]) -> NoReturn:
    """The server takes the place of this process: signals, exit code and memory are its own."""
    os.execv(program[0], program)  # noqa: S606 - a fixed program, and no shell is wanted


def _in_background(arguments: Sequence[str], config: Path) -> int:
    from ottla.cli.local.daemon import start_in_background

    settings = read_properties(str(config))
    host = settings.get("clientPortAddress", "127.0.0.1").replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - not listening
    port = settings.get("clientPort", "")

    waits_for_others = any(name.startswith("server.") for name in settings)

    def is_ready(said: str) -> bool:
        if not port.isdecimal():
            return "Started" in said
        answer = _answer(host, int(port))
        return bool(answer) and (waits_for_others or NOT_SERVING not in answer)

    return start_in_background(
        "zookeeper", arguments, log_name="zookeeper.out", is_ready=is_ready, stop_with="zookeeper-server-stop"
    )


def _answer(host: str, port: int) -> str:
    """To the word srvr; empty where nobody answers."""
    try:
        with socket.create_connection((host, port), 1.0) as connection:
            connection.sendall(b"srvr")
            return connection.recv(4_096).decode(errors="replace")
    except OSError:
        return ""


def _given_file(args: argparse.Namespace) -> Path:
    given = [
        f"--{name.replace('_', '-')}" for name in ("port", "host", "data_dir", "id", "servers") if vars(args)[name]
    ]
    if given:
        raise CommandError(f"{args.properties} says everything about the server: leave out {', '.join(given)}")
    if not Path(args.properties).is_file():
        raise CommandError(f"there is no file {args.properties}")
    return Path(args.properties)


def _own_file(args: argparse.Namespace) -> Path:
    members = parse_members(args.servers) if args.servers else []
    if bool(members) != (args.id is not None):
        raise CommandError("an ensemble needs both --servers and --id: who there is, and which of them this one is")
    if members and args.id not in {member.id for member in members}:
        raise CommandError(f"--id {args.id} is not among --servers {args.servers}")
    host = args.host or "127.0.0.1"
    if host not in LOOPBACK:
        warn(
            f"{host} is open to the network and asks nobody who they are: whoever reaches it can change the cluster's "
            "metadata. Keep it behind a firewall"
        )
    try:
        return write_config(
            Path(args.data_dir or DEFAULT_DATA).absolute(),
            host=host,
            port=args.port or CLIENT_PORT,
            my_id=args.id,
            members=members,
        )
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be written: {error.strerror}") from error


def parse_members(text: str) -> list[Member]:
    """`1=zk1,2=zk2:2888:3888` as members."""
    members: list[Member] = []
    for entry in filter(None, text.split(",")):
        number, _, address = entry.partition("=")
        host, *ports = address.split(":")
        if not number.isdigit() or not host or len(ports) not in (0, 2) or not all(port.isdigit() for port in ports):
            raise CommandError(f"--servers wants ID=HOST or ID=HOST:PORT:PORT, not `{entry}`")
        members.append(Member(int(number), host, *map(int, ports)))
    numbers = [member.id for member in members]
    if len(set(numbers)) != len(numbers):
        raise CommandError(f"--servers names an id twice: {text}")
    return members
