"""`zookeeper-shell`: look into ZooKeeper and change it, one command or many."""

import asyncio
import shlex
import sys
from collections.abc import Iterator, Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import CommandError, complain, note
from ottla.cli.local.zookeeper_commands import USAGE, execute
from ottla.cluster.zookeeper.kazoo_client import KazooZooKeeper
from ottla.cluster.zookeeper.looking import run_with_client
from ottla.config.zookeeper import parse_connect

DEFAULT_CONNECT = "localhost:2181"

EXAMPLES = """
  %(prog)s localhost:2181 ls /brokers/ids                    which brokers run
  %(prog)s localhost:2181/kafka get /brokers/ids/1           below the chroot of a cluster
  %(prog)s localhost:2181 get -s /controller
  %(prog)s localhost:2181                                    commands from the terminal or standard input, till quit

Brokers keep the metadata of their cluster here. Changing it by hand can break the cluster: the tools for topics,
settings and partitions talk to the brokers instead.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla zookeeper-shell") -> int:
    parser = ToolParser(prog, "Look into ZooKeeper and change it.", _help())
    parser.usage = "%(prog)s HOST:PORT[/PATH] [COMMAND ...]"
    parser.add_argument("-server", metavar="HOST:PORT", help="the address, as zkCli.sh takes it")
    parser.add_argument("-zk-tls-config-file", metavar="FILE", help="refused: TLS to ZooKeeper is for brokers so far")
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Options of a command are its own: only what stands in front of the address is read here.
    split = next((at for at in range(len(arguments)) if _is_address(arguments, at)), len(arguments))
    args = parser.parse_args(arguments[:split]) if arguments else parser.parse([])
    rest = arguments[split:]
    if args.zk_tls_config_file or "-zk-tls-config-file" in rest:
        parser.error("-zk-tls-config-file: the shell does not speak TLS to ZooKeeper yet")
    connect = args.server or (rest.pop(0) if rest else DEFAULT_CONNECT)
    try:
        ensemble = parse_connect(connect)
    except ValueError as error:
        raise CommandError(f"{error}; give host:port,host:port/path") from None
    note(f"connecting to {connect}")
    if rest:
        return run_with_client(ensemble, lambda client: _one(client, rest))
    return run_with_client(ensemble, lambda client: _many(client, connect))


def _is_address(arguments: Sequence[str], at: int) -> bool:
    follows_option = at > 0 and arguments[at - 1] in ("-server", "-zk-tls-config-file")
    return not arguments[at].startswith("-") and not follows_option


def _help() -> str:
    return EXAMPLES + "\ncommands:\n" + "\n".join(f"  {line}" for line in USAGE)


async def _one(client: KazooZooKeeper, words: Sequence[str]) -> int:
    try:
        for line in await execute(client, words):
            print(line)
    except CommandError as error:
        complain(str(error))
        return 1
    return 0


async def _many(client: KazooZooKeeper, connect: str) -> int:
    """Until quit or the end of the input. A command that fails is told of and the next one is read."""
    lines = _lines(connect)
    while (line := await asyncio.to_thread(next, lines, None)) is not None:
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            complain(f"{line.strip()}: {error}")
            continue
        if words and words[0] in ("quit", "exit"):
            break
        if words:
            await _one(client, words)
            sys.stdout.flush()
    return 0


def _lines(connect: str) -> Iterator[str]:
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    while True:
        try:
            yield input(f"[zk: {connect}] ")
        except EOFError:
            print()
            return
