"""The part of `kafka-configs` that is about SCRAM credentials of users.

With --zookeeper they are written where a cluster keeps its metadata, as Kafka's tool did before the first broker ran.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Mapping, Sequence

from ottla.broker.security.sasl.scram_changes import Deletion
from ottla.broker.security.sasl.scram_credentials import BY_NUMBER, MECHANISMS
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.output import CommandError, print_json
from ottla.cli.common.scram import (
    NewCredential,
    as_deletion,
    as_upsertion,
    offline_store,
    read_credential,
    salted_in_threads,
    write_offline,
)
from ottla.client.cluster import Cluster
from ottla.client.errors import UnsupportedByBroker
from ottla.client.scram_users import alter_scram_users, describe_scram_users
from ottla.config.load import settings_from
from ottla.model.errors import ApiError, ErrorCode

Wanted = Sequence[tuple[str, str | None]]


def is_meant(added: Mapping[str, str], deleted: Sequence[str]) -> bool:
    """Whether a change is about credentials and not about quotas. CommandError if it is about both."""
    keys = [*added, *deleted]
    about = [key for key in keys if key in MECHANISMS]
    if about and len(about) < len(keys):
        raise CommandError(f"credentials ({', '.join(about)}) and quotas are changed in commands of their own")
    return bool(about)


def run(args: argparse.Namespace, wanted: Wanted, added: Mapping[str, str], deleted: Sequence[str]) -> int:
    (kind, name), *rest = wanted
    if kind != "users" or rest or not name:
        raise CommandError("SCRAM credentials are those of one user: give --entity-type users --entity-name NAME")
    new = [read_credential(mechanism, value, name) for mechanism, value in added.items()]
    gone = [Deletion(name, MECHANISMS[mechanism].number) for mechanism in deleted]
    if args.zookeeper and not args.bootstrap_server:
        asyncio.run(_write_to_zookeeper(args.zookeeper, new, gone))
    else:
        run_admin(args, lambda cluster: _alter(cluster, new, gone))
    if args.json:
        print_json({"entity": {"user": name}, "added": list(added), "deleted": list(deleted)})
    else:
        print(f"Completed updating config for user {name}.")
    return 0


async def described(cluster: Cluster, wanted: Wanted) -> dict[str, dict[str, int]]:
    """Iterations by mechanism, by user; nobody where the command is not about users alone, or may not see them."""
    if [kind for kind, _ in wanted] != ["users"] or wanted[0][1] == "":
        return {}
    name = wanted[0][1]
    try:
        users = await describe_scram_users(cluster, [name] if name else [])
    except UnsupportedByBroker:
        return {}
    except ApiError as error:
        if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return {}
        raise
    return {
        user: {BY_NUMBER[number].name: iterations for number, iterations in known.items() if number in BY_NUMBER}
        for user, known in sorted(users.items())
    }


def line(user: str, known: Mapping[str, int]) -> str:
    values = ", ".join(f"{mechanism}=iterations={iterations}" for mechanism, iterations in known.items())
    return f"SCRAM credential configs for user-principal '{user}' are {values}"


async def _alter(cluster: Cluster, new: Sequence[NewCredential], gone: Sequence[Deletion]) -> None:
    salted = await salted_in_threads(new)
    await alter_scram_users(
        cluster, [as_upsertion(made) for made in salted], [as_deletion(alteration) for alteration in gone]
    )


async def _write_to_zookeeper(connect: str, new: Sequence[NewCredential], gone: Sequence[Deletion]) -> None:
    with tempfile.TemporaryDirectory() as nothing:  # a broker's own directory would be moved in
        settings = settings_from({"zookeeper.connect": connect, "log.dirs": nothing})
        async with offline_store(settings) as store:
            await write_offline(store, [*gone, *await salted_in_threads(new)])
