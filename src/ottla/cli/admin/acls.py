"""`kafka-acls`: list, add and remove access control lists."""

import argparse
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from ottla.cli.admin import acl_options
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options, parse_pairs
from ottla.cli.common.output import CommandError, print_json
from ottla.client import acls as remote
from ottla.client.cluster import Cluster
from ottla.cluster.zookeeper.client import ZooKeeperClient, ZooKeeperError
from ottla.config.zookeeper import parse_connect
from ottla.model.acls import (
    ANY,
    OPERATION_NAMES,
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    ResourcePattern,
)
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Resource

T = TypeVar("T")
CONNECT = "zookeeper.connect"

EXAMPLES = """
  %(prog)s --list
  %(prog)s --list --topic news --principal User:alice
  %(prog)s --add --allow-principal User:alice --producer --topic news
  %(prog)s --add --allow-principal User:bob --consumer --topic news --group readers
  %(prog)s --add --allow-principal User:bob --allow-host 10.0.0.7 --operation Read --operation Describe --topic news
  %(prog)s --add --allow-principal User:app --operation All --topic app. --resource-pattern-type prefixed
  %(prog)s --add --deny-principal User:eve --operation All --topic '*'
  %(prog)s --remove --topic news --force
"""


class Lists(Protocol):
    """Where access control lists are: behind a broker, or in ZooKeeper."""

    async def add(self, wanted: Sequence[AclBinding]) -> None: ...
    async def find(self, wanted: AclFilter) -> list[AclBinding]: ...
    async def remove(self, wanted: Sequence[AclFilter]) -> None: ...


class RemoteLists:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def add(self, wanted: Sequence[AclBinding]) -> None:
        await remote.create_acls(self._cluster, wanted)

    async def find(self, wanted: AclFilter) -> list[AclBinding]:
        return await remote.describe_acls(self._cluster, wanted)

    async def remove(self, wanted: Sequence[AclFilter]) -> None:
        await remote.delete_acls(self._cluster, wanted)


class ZooKeeperLists:
    def __init__(self, client: ZooKeeperClient) -> None:
        self._client = client

    async def add(self, wanted: Sequence[AclBinding]) -> None:
        from ottla.cluster.zookeeper.acl_editing import add_acls  # for the few who want it

        await add_acls(self._client, wanted)

    async def find(self, wanted: AclFilter) -> list[AclBinding]:
        from ottla.cluster.zookeeper.acl_editing import read_acls

        found = [
            AclBinding(pattern, entry) for pattern, each in (await read_acls(self._client)).items() for entry in each
        ]
        return [binding for binding in found if wanted.matches(binding)]

    async def remove(self, wanted: Sequence[AclFilter]) -> None:
        from ottla.cluster.zookeeper.acl_editing import remove_acls

        await remove_acls(self._client, wanted)


def main(argv: Sequence[str] | None = None, prog: str = "ottla acls") -> int:
    parser = ToolParser(prog, "Say who may do what to which topics, groups, transactions and the cluster.", EXAMPLES)
    acl_options.add_options(parser)
    parser.add_argument("--authorizer", metavar="CLASS", help=argparse.SUPPRESS)
    parser.add_argument(
        "--authorizer-properties",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"for old command lines: {CONNECT}=HOST:PORT/CHROOT, the ZooKeeper whose lists to change",
    )
    parser.add_argument("--zk-tls-config-file", metavar="FILE", help=argparse.SUPPRESS)
    add_connection_options(parser)
    args = parser.parse(argv)
    acl_options.check(parser, args)
    if args.zk_tls_config_file:
        parser.error("--zk-tls-config-file: ZooKeeper over TLS is not served; use --bootstrap-server")
    wanted = {} if args.list else acl_options.wanted(parser, args)
    try:
        return _run(args, lambda lists: _work(lists, args, wanted))
    except ApiError as error:
        raise CommandError(_words(error)) from error


def _run(args: argparse.Namespace, work: Callable[[Lists], Awaitable[T]]) -> T:
    properties = parse_pairs(args.authorizer_properties, "--authorizer-properties")
    if not properties:
        return run_admin(args, lambda cluster: work(RemoteLists(cluster)))
    connect = properties.get(CONNECT)
    if connect is None or args.bootstrap_server:
        raise CommandError(
            f"--authorizer-properties {CONNECT}=HOST:PORT names the ZooKeeper to change lists in; "
            "to change them through a broker give --bootstrap-server alone"
        )
    from ottla.cluster.zookeeper.looking import run_with_client

    try:
        ensemble = parse_connect(connect)
    except ValueError as error:
        raise CommandError(f"{CONNECT}={connect}: {error}; give host:port,host:port/path") from None
    try:
        return run_with_client(ensemble, lambda client: work(ZooKeeperLists(client)))
    except ZooKeeperError as error:
        raise CommandError(f"{CONNECT}={connect}: {error}") from error


async def _work(lists: Lists, args: argparse.Namespace, wanted: acl_options.Wanted) -> int:
    if args.list:
        return await _list(lists, args)
    for resource, entries in wanted.items():
        if args.add:
            await _add(lists, resource, entries, quiet=args.json)
        else:
            await _remove(lists, resource, entries, force=args.force)
    return await _list(lists, args) if args.json else 0


async def _list(lists: Lists, args: argparse.Namespace) -> int:
    found: dict[AclBinding, None] = {}
    for wanted in acl_options.resources(args) or [AclFilter()]:
        found.update(dict.fromkeys(await lists.find(wanted)))
    rules = sorted(found)
    if args.json:
        print_json([_as_json(rule) for rule in rules if not args.principal or rule.entry.principal in args.principal])
    elif not args.principal:
        _print_all(rules)
    for principal in () if args.json else args.principal:
        print(f"ACLs for principal `{principal}`")
        _print_all([rule for rule in rules if rule.entry.principal == principal])
    return 0


async def _add(lists: Lists, resource: AclFilter, entries: Sequence[AclEntry], *, quiet: bool) -> None:
    assert resource.name is not None, "options name resources"
    pattern = ResourcePattern(Resource(resource.resource), resource.name, PatternType(resource.pattern_type))
    if not quiet:
        _print(f"Adding ACLs for resource `{_resource(resource)}`", entries)
    await lists.add([AclBinding(pattern, entry) for entry in entries])


async def _remove(lists: Lists, resource: AclFilter, entries: Sequence[AclEntry], *, force: bool) -> None:
    if not entries:
        question = f"Are you sure you want to delete all ACLs for resource filter `{_resource(resource)}`? (y/n)"
    else:
        shown = "\n".join(f"\t{_entry(entry)}" for entry in entries)
        question = (
            f"Are you sure you want to remove ACLs: \n {shown} \n from resource filter `{_resource(resource)}`? (y/n)"
        )
    if not force and not _agrees(question):
        return
    filters = [
        resource._replace(
            principal=entry.principal, host=entry.host, operation=entry.operation, permission=entry.permission
        )
        for entry in entries
    ]
    await lists.remove(filters or [resource])


def _agrees(question: str) -> bool:
    try:
        return input(question + "\n").strip().lower() == "y"
    except EOFError:
        raise CommandError("nobody answered; --force removes without asking") from None


def _print_all(rules: Sequence[AclBinding]) -> None:
    by_pattern: dict[ResourcePattern, list[AclEntry]] = {}
    for pattern, entry in rules:
        by_pattern.setdefault(pattern, []).append(entry)
    for pattern, entries in by_pattern.items():
        _print(f"Current ACLs for resource `{_resource(AclFilter(*pattern))}`", entries)


def _print(title: str, entries: Sequence[AclEntry]) -> None:
    lines = "\n".join(f"\t{_entry(entry)}" for entry in entries)
    print(f"{title}: \n {lines} \n")


def _resource(resource: AclFilter) -> str:
    type_ = "ANY" if resource.pattern_type == ANY else PatternType(resource.pattern_type).name
    return (
        f"ResourcePattern(resourceType={Resource(resource.resource).name}, name={resource.name}, patternType={type_})"
    )


def _entry(entry: AclEntry) -> str:
    return (
        f"(principal={entry.principal}, host={entry.host}, operation={OPERATION_NAMES[entry.operation]}, "
        f"permissionType={entry.permission.name})"
    )


def _as_json(rule: AclBinding) -> dict[str, str]:
    pattern, entry = rule
    return {
        "resourceType": pattern.resource.name,
        "name": pattern.name,
        "patternType": pattern.type.name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": OPERATION_NAMES[entry.operation],
        "permissionType": entry.permission.name,
    }


def _words(error: ApiError) -> str:
    if error.code is ErrorCode.SECURITY_DISABLED:
        return (
            "the brokers have no authorizer, so there are no access control lists: start them with "
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer and super.users=User:..."
        )
    return in_words(error)
