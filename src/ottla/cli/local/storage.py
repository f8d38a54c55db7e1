"""`kafka-storage`: the log directories of a broker that does not run, and the id of their cluster."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.common.options import CommandParser, ToolParser
from ottla.cli.common.output import CommandError, note
from ottla.config.broker import BrokerSettings
from ottla.config.load import load_settings
from ottla.model.names import format_topic_id, new_topic_id, parse_topic_id

if TYPE_CHECKING:
    from ottla.cli.common.scram import NewCredential

EXAMPLES = """
  %(prog)s random-uuid
  %(prog)s format --cluster-id $(%(prog)s random-uuid) --config server.properties --standalone
  %(prog)s info --config server.properties

No directory has to be formatted before a broker starts: it does that itself, with a new cluster id. `format` is for
scripts that come from Kafka and for those who want to choose the id.
"""
ID_BYTES = 16


def main(argv: Sequence[str] | None = None, prog: str = "ottla storage") -> int:
    args = _parser(prog).parse(argv)
    if args.command == "random-uuid":
        print(format_topic_id(new_topic_id()))
        return 0
    settings = load_settings(args.config)
    return _format(settings, args) if args.command == "format" else _info(settings)


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Look at the log directories of a broker, and give them a cluster id.", EXAMPLES)
    parser.usage = "%(prog)s COMMAND [options of the command]"
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, title="commands", parser_class=CommandParser
    )
    commands.add_parser("random-uuid", help="print an id for a new cluster")
    looking = commands.add_parser("info", help="show the directories and whose they are")
    formatting = commands.add_parser("format", help="give empty directories the id of a cluster")
    for command in (looking, formatting):
        command.add_argument("--config", "-c", required=True, metavar="FILE", help="the broker's server.properties")
    formatting.add_argument("--cluster-id", "-t", required=True, metavar="ID", help="from random-uuid")
    formatting.add_argument("--ignore-formatted", "-g", action="store_true", help="leave those that have one alone")
    controllers = formatting.add_mutually_exclusive_group()
    controllers.add_argument("--standalone", "-s", action="store_true", help="accepted: every broker on its own is")
    controllers.add_argument("--no-initial-controllers", "-N", action="store_true", help="accepted: there are none")
    controllers.add_argument("--initial-controllers", "-I", metavar="ID@HOST:PORT:DIRECTORY,...", help="refused")
    formatting.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="MECHANISM=[name=USER,password=...]",
        help="a user who can log in as soon as the broker runs; `ottla users --offline` asks for the password instead",
    )
    formatting.add_argument("--release-version", "-r", metavar="VERSION", help="has no effect, and says so")
    formatting.add_argument("--feature", "-f", action="append", metavar="FEATURE=LEVEL", help="has no effect")
    return parser


def _format(settings: BrokerSettings, args: argparse.Namespace) -> int:
    from ottla.broker.storage.checkpoints import META_PROPERTIES, format_properties

    _check_request(settings, args)
    users = [_credential(text) for text in args.add_scram]
    unformatted = []
    for directory in map(Path, settings.data_dirs):
        found = _properties(directory)
        if found is None:
            unformatted.append(directory)
        elif not args.ignore_formatted:
            raise CommandError(f"{directory} is already formatted. Use --ignore-formatted to leave it as it is")
        elif found.get("cluster.id") != args.cluster_id:
            raise CommandError(f"{directory} belongs to cluster {found.get('cluster.id')}, not to {args.cluster_id}")
    if not unformatted:
        print("All of the log directories are already formatted.")
        return 0
    first = Path(settings.data_dirs[0])
    if first in unformatted:
        known = asyncio.run(_make_metadata(first, args.cluster_id, users))
        if known != args.cluster_id:
            raise CommandError(f"{first} holds the metadata of cluster {known}, not of {args.cluster_id}")
    for directory in unformatted:
        directory.mkdir(parents=True, exist_ok=True)
        properties = {
            "version": "1",
            "cluster.id": args.cluster_id,
            "node.id": str(settings.node_id),
            "directory.id": format_topic_id(new_topic_id()),
        }
        (directory / META_PROPERTIES).write_bytes(format_properties(properties))
        print(f"Formatting data directory {directory} with cluster id {args.cluster_id}.")
    return 0


def _credential(text: str) -> "NewCredential":
    from ottla.broker.security.sasl.scram_credentials import MECHANISMS
    from ottla.cli.common.scram import read_credential

    mechanism, equals, value = text.partition("=")
    if not equals or mechanism.strip() not in MECHANISMS:
        raise CommandError(f"--add-scram wants MECHANISM=[name=USER,password=...] with one of {', '.join(MECHANISMS)}")
    return read_credential(mechanism.strip(), value)


async def _make_metadata(directory: Path, cluster_id: str, users: "Sequence[NewCredential]") -> str:
    """The id that the metadata has in the end."""
    from ottla.cli.common.scram import write_offline
    from ottla.cluster.embedded import EmbeddedStore

    store = EmbeddedStore.open(directory, cluster_id=cluster_id)
    try:
        await write_offline(store, [each.salted() for each in users])
    finally:
        await store.close()
    return store.image.cluster_id


def _check_request(settings: BrokerSettings, args: argparse.Namespace) -> None:
    try:
        known = len(parse_topic_id(args.cluster_id).bytes) == ID_BYTES
    except ValueError:
        known = False
    if not known:
        raise CommandError(f"Cluster ID string {args.cluster_id} is not one of 16 bytes: take one from random-uuid")
    if settings.zookeeper_connect:
        raise CommandError(
            f"the cluster's id is in ZooKeeper ({settings.zookeeper_connect}), where the first broker makes it, and "
            "brokers format their directories themselves: leave this step out"
        )
    if args.initial_controllers:
        raise CommandError("--initial-controllers: there is no quorum of controllers; give --standalone")
    for option in ("release_version", "feature"):
        if getattr(args, option):
            note(f"--{option.replace('_', '-')} has no effect: brokers serve the highest levels that they know")


def _info(settings: BrokerSettings) -> int:
    directories = sorted(map(Path, settings.data_dirs))
    problems: list[str] = []
    known: dict[str, str] = {}
    found: list[Path] = []
    for directory in directories:
        if not directory.is_dir():
            problems.append(f"{directory} {'is not a directory' if directory.exists() else 'does not exist'}")
            continue
        found.append(directory)
        properties = _properties(directory)
        if properties is None:
            problems.append(f"{directory} is not formatted.")
        elif known and properties.get("cluster.id") != known.get("cluster.id"):
            problems.append("Mismatched cluster IDs between storage directories.")
        elif known and properties.get("node.id") != known.get("node.id"):
            problems.append("Mismatched node IDs between storage directories.")
        known = known or properties or {}
    if found:
        _print_list("Found log directory:" if len(found) == 1 else "Found log directories:", found)
    if known:
        print(f"Found metadata: {{{', '.join(f'{name}={value}' for name, value in sorted(known.items()))}}}\n")
    if problems:
        _print_list("Found problem:" if len(problems) == 1 else "Found problems:", problems)
    sys.stdout.flush()
    return 1 if problems else 0


def _print_list(title: str, entries: Sequence[object]) -> None:
    print(title, *(f"  {entry}" for entry in entries), "", sep="\n")


def _properties(directory: Path) -> dict[str, str] | None:
    from ottla.broker.storage.checkpoints import META_PROPERTIES, parse_properties

    path = directory / META_PROPERTIES
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return parse_properties(text) if text.strip() else None
