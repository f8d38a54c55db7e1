"""Options that commands share: Kafka's spellings, their older forms, and which broker to talk to."""

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

from ottla.cli.output import CommandError, note
from ottla.config.properties import parse_properties

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_PORT = 9092
BOOTSTRAP_VARIABLE = "OTTLA_BOOTSTRAP"
PROBE_TIMEOUT_S = 1.0


class _ShowVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version  # slow to import, and seldom wanted

        print(f"ottla {version('ottla')}")
        parser.exit(0)


class ToolParser(argparse.ArgumentParser):
    """argparse with the manners of Kafka's tools: no abbreviations, exit code 1, help when called with nothing."""

    def __init__(
        self,
        prog: str,
        description: str,
        examples: str = "",
        *,
        help_without_arguments: bool = True,
        shows_version: bool = True,
    ) -> None:
        super().__init__(
            prog=prog,
            usage="%(prog)s [options]",
            description=description,
            epilog="examples:\n" + examples.strip("\n") if examples else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._help_without_arguments = help_without_arguments
        if shows_version:  # `--version` means something else to a few commands
            self.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and stop")

    def parse(self, argv: Sequence[str] | None) -> argparse.Namespace:
        arguments = sys.argv[1:] if argv is None else list(argv)
        if not arguments and self._help_without_arguments:
            self.print_help()
            self.exit(0)
        return self.parse_args(arguments)

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"error: {message}\nTry `{self.prog} --help`.\n")


def add_connection_options(parser: argparse.ArgumentParser, *, json: bool = True, broker_list: str = "hosts") -> None:
    """`--bootstrap-server` with its older forms, `--command-config`, and `--json`.

    `--broker-list` is an older name of `--bootstrap-server`, except where (`broker_list="ids"`) it chooses brokers.
    """
    group = parser.add_argument_group("connection")
    group.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help=f"brokers to connect to first (default: ${BOOTSTRAP_VARIABLE}, or else {DEFAULT_BOOTSTRAP})",
    )
    if broker_list == "ids":
        parser.add_argument("--broker-list", dest="broker_ids", metavar="ID,...", help="only these brokers")
    else:
        group.add_argument("--broker-list", metavar="HOST:PORT,...", help="older name of --bootstrap-server")
    group.add_argument(
        "--zookeeper",
        metavar="HOST:PORT/CHROOT",
        help="accepted from old command lines; tools talk to brokers, so a broker is looked for instead",
    )
    group.add_argument("--command-config", metavar="FILE", help="properties file with settings for the client")
    if json:
        parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


def bootstrap_of(args: argparse.Namespace) -> str:
    """The broker list that the options, the environment or the default name, in that order."""
    for option in ("bootstrap_server", "broker_list"):
        given: str | None = getattr(args, option, None)
        if given:
            return given
    if getattr(args, "zookeeper", None):
        return _broker_instead_of_zookeeper(args.zookeeper)
    return os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP


def _broker_instead_of_zookeeper(connect: str) -> str:
    """A broker to use for `--zookeeper zk1:2181,zk2:2181/chroot`: whoever answers on the broker port there, or here."""
    chosen = os.environ.get(BOOTSTRAP_VARIABLE)
    if not chosen:
        hosts = [_host_of(entry) for entry in connect.partition("/")[0].split(",") if entry]
        answering = (host for host in hosts if _answers(host, DEFAULT_PORT))
        found = next(answering, None)
        chosen = f"{found}:{DEFAULT_PORT}" if found else DEFAULT_BOOTSTRAP
    note(
        f"clients no longer talk to ZooKeeper, so --zookeeper {connect} is not used; talking to the broker at {chosen} "
        f"(choose it with --bootstrap-server or ${BOOTSTRAP_VARIABLE})"
    )
    return chosen


def _host_of(entry: str) -> str:
    host, colon, port = entry.rpartition(":")
    return host if colon and port.isdigit() else entry


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host.strip("[]"), port), timeout=PROBE_TIMEOUT_S):
            return True
    except OSError:
        return False


def client_settings(args: argparse.Namespace) -> dict[str, str]:
    """What `--command-config` says."""
    path: str | None = getattr(args, "command_config", None)
    return read_properties(path) if path else {}


def read_properties(path: str) -> dict[str, str]:
    """The settings in a Java properties file."""
    return parse_properties(read_text(path))


def read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise CommandError(f"cannot read {path}: it is not UTF-8 text") from None


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    """`["a=b", ...]` of a repeated option as a mapping."""
    parsed: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"{option} wants key=value, not `{pair}`")
        parsed[key.strip()] = value.strip()
    return parsed
