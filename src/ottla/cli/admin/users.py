"""`ottla users`: who may log in with a password (SCRAM), without any password on a screen or a command line."""

import argparse
import asyncio
from collections.abc import Mapping, Sequence

from ottla.broker.security.sasl.scram_changes import Deletion, ScramAlteration
from ottla.broker.security.sasl.scram_credentials import BY_NUMBER, MECHANISMS
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import CommandParser, ToolParser, add_connection_options
from ottla.cli.common.output import CommandError, print_json
from ottla.cli.common.passwords import SOURCES, password_from
from ottla.cli.common.scram import (
    NewCredential,
    as_deletion,
    as_upsertion,
    offline_store,
    offline_users,
    read_iterations,
    salted_in_threads,
    write_offline,
)
from ottla.client.cluster import Cluster
from ottla.client.scram_users import ScramUsers, alter_scram_users, describe_scram_users
from ottla.config.load import load_settings
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError

EXAMPLES = """
  %(prog)s add alice                                  asks for the password twice
  %(prog)s add app --password-from generate:app.password
  %(prog)s list
  %(prog)s rotate app --password-from env:NEW_PASSWORD
  %(prog)s remove alice
  %(prog)s --offline server.properties add admin      before the first broker runs: brokers need a user too

A change counts on every broker at once. Who has logged in stays until the connection, or the session, ends.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla users") -> int:
    args = _parser(prog).parse(argv)
    credentials: list[NewCredential] = []
    try:
        if args.command in ("add", "rotate"):
            password = password_from(args.password_from, args.name)
            iterations = read_iterations(args.iterations)
            credentials = [NewCredential(args.name, name, password, iterations) for name in _mechanisms(args)]
        if args.offline:
            return asyncio.run(_offline(args, credentials))
        return run_admin(args, lambda cluster: _online(cluster, args, credentials))
    except ApiError as error:
        raise CommandError(f"user {getattr(args, 'name', '')}: {in_words(error)}") from error


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Add, list and remove users who log in with SCRAM, and change passwords.", EXAMPLES)
    parser.usage = "%(prog)s [options] COMMAND [options of the command]"
    parser.add_argument(
        "--offline", metavar="FILE", help="without a broker: the server.properties of one that does not run"
    )
    add_connection_options(parser)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, title="commands", parser_class=CommandParser
    )
    commands.add_parser("list", help="show who has which credentials")
    for name, words in (
        ("add", "add a user, or another mechanism of one"),
        ("rotate", "give a user another password, for every mechanism that the user has"),
        ("remove", "remove a user's credentials"),
    ):
        command = commands.add_parser(name, help=words)
        command.add_argument("name", metavar="USER")
        if name != "rotate":
            command.add_argument(
                "--mechanism",
                action="append",
                choices=list(MECHANISMS),
                metavar="MECHANISM",
                help=f"one of {', '.join(MECHANISMS)}; may be repeated (default: all)",
            )
        if name != "remove":
            command.add_argument("--password-from", metavar="SOURCE", help=SOURCES)
            command.add_argument("--iterations", metavar="NUMBER", help="4096 (the default) to 16384")
    return parser


def _mechanisms(args: argparse.Namespace) -> list[str]:
    return list(dict.fromkeys(getattr(args, "mechanism", None) or MECHANISMS))


async def _online(cluster: Cluster, args: argparse.Namespace, credentials: Sequence[NewCredential]) -> int:
    users = await describe_scram_users(cluster)
    if args.command == "list":
        return _show(users, as_json=args.json)
    alterations = await _alterations(args, credentials, users)
    await alter_scram_users(
        cluster,
        [as_upsertion(alteration) for alteration in alterations if not isinstance(alteration, Deletion)],
        [as_deletion(alteration) for alteration in alterations if isinstance(alteration, Deletion)],
    )
    return _done(args, alterations)


async def _offline(args: argparse.Namespace, credentials: Sequence[NewCredential]) -> int:
    async with offline_store(load_settings(args.offline)) as store:
        users = offline_users(store.image)
        if args.command == "list":
            return _show(users, as_json=args.json)
        alterations = await _alterations(args, credentials, users)
        await write_offline(store, alterations)
    return _done(args, alterations)


async def _alterations(
    args: argparse.Namespace, credentials: Sequence[NewCredential], users: ScramUsers
) -> Sequence[ScramAlteration]:
    own = [BY_NUMBER[number].name for number in users.get(args.name, {}) if number in BY_NUMBER]
    if args.command == "add":
        again = [each.mechanism for each in credentials if each.mechanism in own]
        if again:
            raise CommandError(
                f"user {args.name} has a password for {', '.join(again)} already; `rotate` gives another one"
            )
        return await salted_in_threads(credentials)
    if not own:
        raise CommandError(f"there is no user {args.name} with SCRAM credentials; `list` shows who there is")
    if args.command == "rotate":
        return await salted_in_threads([each for each in credentials if each.mechanism in own])
    wanted = args.mechanism or own
    missing = [name for name in wanted if name not in own]
    if missing:
        raise CommandError(f"user {args.name} has no credential for {', '.join(missing)}")
    return [Deletion(args.name, MECHANISMS[name].number) for name in wanted]


def _show(users: ScramUsers, *, as_json: bool) -> int:
    if as_json:
        print_json(
            [
                {"user": name, "mechanisms": [{"name": BY_NUMBER[n].name, "iterations": i} for n, i in known.items()]}
                for name, known in sorted(users.items())
            ]
        )
        return 0
    for name, known in sorted(users.items()):
        print(f"{name}  {_words(known)}")
    if not users:
        print("No user has SCRAM credentials.")
    return 0


def _words(known: Mapping[int, int]) -> str:
    return ", ".join(f"{BY_NUMBER[number].name} ({iterations} iterations)" for number, iterations in known.items())


def _done(args: argparse.Namespace, alterations: Sequence[ScramAlteration]) -> int:
    names = [BY_NUMBER[alteration.mechanism].name for alteration in alterations]
    if args.json:
        print_json({"user": args.name, "command": args.command, "mechanisms": names})
        return 0
    done = {"add": "Added", "rotate": "Changed the password of", "remove": "Removed"}[args.command]
    print(f"{done} user {args.name} for {', '.join(names)}.")
    return 0
