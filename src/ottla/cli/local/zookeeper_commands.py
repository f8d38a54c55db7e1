"""The commands of `zookeeper-shell`, with the words and the output of ZooKeeper's own."""

import datetime
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.cli.common.output import CommandError
from ottla.cluster.zookeeper.client import (
    ANY_VERSION,
    BadVersion,
    Create,
    Delete,
    NodeDetails,
    NodeExists,
    NoNode,
    NotAllowed,
    NotEmpty,
    Set,
    ZooKeeperError,
)
from ottla.cluster.zookeeper.kazoo_client import KazooZooKeeper

USAGE = (
    "ls [-s] [-R] path             the nodes below; -s with the figures of the node, -R all levels",
    "get [-s] path                 what a node holds; -s with its figures",
    "stat path                     the figures alone",
    "create [-s] [-e] path [data]  -s numbers it, -e lets it vanish with this session",
    "set [-s] [-v version] path data",
    "delete [-v version] path      a node without nodes below it",
    "deleteall path                with all below it",
    "sync path                     see all that was written before",
    "help, quit",
)


class _Given(NamedTuple):
    """A command line read: flags without a value, the version, and the rest."""

    flags: frozenset[str]
    version: int
    words: tuple[str, ...]


_Command = Callable[[KazooZooKeeper, _Given], Awaitable[list[str]]]


async def execute(client: KazooZooKeeper, words: Sequence[str]) -> list[str]:
    """The lines that a command prints; CommandError says why it could not be done."""
    name = words[0]
    if name == "help":
        return list(USAGE)
    known = _COMMANDS.get(name)
    if known is None:
        raise CommandError(f"Command not found: {name}; `help` lists them")
    command, flags, least, most = known
    given = _read(name, words[1:], flags)
    if not least <= len(given.words) <= most:
        raise CommandError(f"usage: {next(line for line in USAGE if line.startswith(name + ' '))}")
    path = given.words[0]
    if not path.startswith("/") or (path != "/" and path.endswith("/")) or "//" in path:
        raise CommandError(f"Path must start with / and not end with it: {path}")
    try:
        return await command(client, given)
    except NoNode:
        raise CommandError(f"Node does not exist: {path}") from None
    except NodeExists:
        raise CommandError(f"Node already exists: {path}") from None
    except NotEmpty:
        raise CommandError(f"Node not empty: {path}; deleteall deletes what is below it, too") from None
    except BadVersion:
        raise CommandError(f"version No is not valid : {path}") from None
    except NotAllowed:
        raise CommandError(f"Insufficient permission : {path}") from None
    except ZooKeeperError as error:
        raise CommandError(str(error)) from None


def _read(name: str, words: Sequence[str], flags: str) -> _Given:
    found: set[str] = set()
    version = ANY_VERSION
    left = list(words)
    while left and left[0].startswith("-") and len(left[0]) == 2:
        flag = left.pop(0)[1]
        if flag not in flags:
            what = "watches are not kept here" if flag == "w" else f"{name} has no such option; `help` lists them"
            raise CommandError(f"-{flag}: {what}")
        if flag == "v":
            if not left or not left[0].lstrip("-").isdecimal():
                raise CommandError("-v wants the version of the node, a number")
            version = int(left.pop(0))
        found.add(flag)
    return _Given(frozenset(found), version, tuple(left))


async def _ls(client: KazooZooKeeper, given: _Given) -> list[str]:
    (path,) = given.words
    if "R" in given.flags:
        return await _all_below(client, path)
    names = sorted(await client.children(path))
    figures = _figures(await client.look(path)) if "s" in given.flags else []
    return [f"[{', '.join(names)}]", *figures]


async def _all_below(client: KazooZooKeeper, path: str) -> list[str]:
    """This node and all below it, each before what it holds."""
    found = [path]
    for name in sorted(await client.children(path)):
        try:
            found += await _all_below(client, f"{path.rstrip('/')}/{name}")
        except NoNode:
            continue  # it went while we looked
    return found


async def _get(client: KazooZooKeeper, given: _Given) -> list[str]:
    details = await client.look(given.words[0])
    data = details.data.decode("utf-8", errors="backslashreplace")
    return [data, *(_figures(details) if "s" in given.flags else [])]


async def _stat(client: KazooZooKeeper, given: _Given) -> list[str]:
    return _figures(await client.look(given.words[0]))


async def _create(client: KazooZooKeeper, given: _Given) -> list[str]:
    path, data = given.words[0], given.words[1] if len(given.words) > 1 else ""
    (made,) = await client.multi(
        [Create(path, data.encode(), ephemeral="e" in given.flags, sequential="s" in given.flags)]
    )
    return [f"Created {made}"]


async def _set(client: KazooZooKeeper, given: _Given) -> list[str]:
    path, data = given.words
    await client.multi([Set(path, data.encode(), given.version)])
    return _figures(await client.look(path)) if "s" in given.flags else []


async def _delete(client: KazooZooKeeper, given: _Given) -> list[str]:
    await client.multi([Delete(given.words[0], given.version)])
    return []


async def _delete_all(client: KazooZooKeeper, given: _Given) -> list[str]:
    (path,) = given.words
    if path == "/":
        raise CommandError("deleteall /: that is the metadata of every cluster in this ZooKeeper; name what to delete")
    for each in reversed(await _all_below(client, path)):
        await client.multi([Delete(each)])
    return []


async def _sync(client: KazooZooKeeper, _given: _Given) -> list[str]:
    await client.sync()
    return ["Sync is OK"]


# The command, its options, and how many words it takes.
_COMMANDS: Mapping[str, tuple[_Command, str, int, int]] = {
    "ls": (_ls, "sR", 1, 1),
    "get": (_get, "s", 1, 1),
    "stat": (_stat, "", 1, 1),
    "create": (_create, "se", 1, 2),
    "set": (_set, "sv", 2, 2),
    "delete": (_delete, "v", 1, 1),
    "deleteall": (_delete_all, "", 1, 1),
    "sync": (_sync, "", 1, 1),
}


def _figures(details: NodeDetails) -> list[str]:
    return [
        f"cZxid = {details.created:#x}",
        f"ctime = {_date(details.created_ms)}",
        f"mZxid = {details.modified:#x}",
        f"mtime = {_date(details.modified_ms)}",
        f"pZxid = {details.children_modified:#x}",
        f"cversion = {details.children_version}",
        f"dataVersion = {details.version}",
        f"aclVersion = {details.acl_version}",
        f"ephemeralOwner = {details.owner:#x}",
        f"dataLength = {len(details.data)}",
        f"numChildren = {details.children}",
    ]


def _date(ms: int) -> str:
    """As Java prints a date, in the zone of this machine."""
    moment = datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC).astimezone()
    return f"{moment:%a %b %d %H:%M:%S %Z %Y}"
