"""Options that commands share: Kafka's spellings, their older forms, and which broker to talk to."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ottla import __version__
from ottla.cli.common.output import CommandError
from ottla.config.properties import parse_properties
from ottla.config.references import resolve
from ottla.config.setting import ConfigError
from ottla.model.defaults import BOOTSTRAP_VARIABLE as BOOTSTRAP_VARIABLE  # noqa: PLC0414 - other options name it too
from ottla.model.defaults import DEFAULT_BOOTSTRAP as DEFAULT_BOOTSTRAP  # noqa: PLC0414


class _ShowVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"ottla {__version__}")
        parser.exit(0)


class ToolParser(argparse.ArgumentParser):
    """argparse with the manners of Kafka's tools: no abbreviations, exit code 1, help when called with nothing."""

    def __init__(
        self,
        prog: str,
        description: str,
        examples: str = "",
        *,
        notes: str = "",
        help_without_arguments: bool = True,
        shows_version: bool = True,
    ) -> None:
        """`examples` come last, after `notes`: the end of a long help is what stays on the screen."""
        last = ["examples:\n" + examples.strip("\n")] if examples else []
        super().__init__(
            prog=prog,
            usage="%(prog)s [options]",
            description=description,
            epilog="\n\n".join([*([notes.strip("\n")] if notes else []), *last]) or None,
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


class CommandParser(argparse.ArgumentParser):
    """Of one command of a tool that has several."""

    def __init__(self, **settings: object) -> None:
        super().__init__(allow_abbrev=False, **settings)  # type: ignore[arg-type]
        # People write these on either side of the command.
        for option in ("--bootstrap-server", "--command-config"):
            self.add_argument(option, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        self.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)

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
        help="for old command lines: the ZooKeeper of a cluster, which is asked for its brokers",
    )
    group.add_argument("--command-config", metavar="FILE", help="properties file with settings for the client")
    if json:
        parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


def bootstrap_of(args: argparse.Namespace) -> str:
    """The broker list that the options, the environment or the default name, in that order."""
    given: str | None = getattr(args, "bootstrap_server", None) or getattr(args, "broker_list", None)
    connect: str | None = getattr(args, "zookeeper", None)
    if given and connect:
        raise CommandError(f"--zookeeper {connect} and {given} both say which cluster is meant: leave one of them out")
    if given:
        return given
    if connect:
        from ottla.cli.common.zookeeper_lookup import brokers_behind  # few need it

        return brokers_behind(connect, client_settings(args).get("security.protocol", "PLAINTEXT"))
    return os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP


def client_settings(args: argparse.Namespace) -> dict[str, str]:
    """What `--command-config` says."""
    path: str | None = getattr(args, "command_config", None)
    return read_properties(path) if path else {}


def read_properties(path: str) -> dict[str, str]:
    """The settings in a Java properties file, with what they refer to: ${env:NAME}, ${file:PATH:KEY}."""
    try:
        return resolve(parse_properties(read_text(path)))
    except ConfigError as error:
        raise CommandError(f"{path}: {error}") from None


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
