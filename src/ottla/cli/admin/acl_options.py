"""From the options of `kafka-acls` to rules and filters, and words about what does not go together."""

import argparse
from collections.abc import Iterable, Mapping, Sequence

from ottla.cli.common.options import ToolParser
from ottla.model.acls import (
    ALL_OPERATIONS,
    ANY,
    CLUSTER_NAME,
    OPERATION_WORDS,
    OPERATIONS_BY_WORD,
    WILDCARD,
    AclEntry,
    AclFilter,
    PatternType,
    Permission,
    grantable_on,
)
from ottla.model.rights import Operation, Resource

_O = Operation
PATTERN_TYPES = {"any": ANY, **{each.name.lower(): int(each) for each in PatternType}}
_CLUSTER = AclFilter(Resource.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
Wanted = Mapping[AclFilter, list[AclEntry]]
"""Resources, and the rules about them that are to be added or removed; none: all."""


def add_options(parser: argparse.ArgumentParser) -> None:
    action = parser.add_argument_group("what to do (exactly one)")
    action.add_argument("--list", action="store_true", help="show rules; of all resources without one of those below")
    action.add_argument("--add", action="store_true", help="add rules")
    action.add_argument("--remove", action="store_true", help="remove rules; all of a resource without principals")
    resources = parser.add_argument_group("resources (each may be repeated; * stands for all)")
    resources.add_argument("--topic", action="append", default=[], metavar="NAME", help="a topic")
    resources.add_argument("--group", action="append", default=[], metavar="NAME", help="a consumer group")
    resources.add_argument("--transactional-id", action="append", default=[], metavar="ID", help="a transactional id")
    resources.add_argument("--delegation-token", action="append", default=[], metavar="ID", help="a delegation token")
    resources.add_argument("--user-principal", action="append", default=[], metavar="PRINCIPAL", help="a user")
    resources.add_argument("--cluster", action="store_true", help="the cluster itself")
    resources.add_argument(
        "--resource-pattern-type",
        type=str.lower,
        choices=sorted(PATTERN_TYPES),
        default="literal",
        metavar="TYPE",
        help="literal (the default), prefixed (all names that begin so); to list and remove also any, and match: "
        "whatever covers the name",
    )
    who = parser.add_argument_group("rules (each may be repeated)")
    who.add_argument("--allow-principal", action="append", default=[], metavar="User:NAME", help="who is allowed it")
    who.add_argument("--deny-principal", action="append", default=[], metavar="User:NAME", help="who is denied it")
    who.add_argument("--allow-host", action="append", default=[], metavar="IP", help="from where it is allowed (*)")
    who.add_argument("--deny-host", action="append", default=[], metavar="IP", help="from where it is denied (*)")
    who.add_argument("--operation", action="append", default=[], metavar="OPERATION", help="what; All by default")
    short = parser.add_argument_group("for short")
    short.add_argument("--producer", action="store_true", help="all that a producer to --topic needs")
    short.add_argument("--consumer", action="store_true", help="all that a consumer of --topic in --group needs")
    short.add_argument("--idempotent", action="store_true", help="with --producer: IdempotentWrite on the cluster too")
    parser.add_argument(
        "--principal", action="append", default=[], metavar="User:NAME", help="with --list: whose rules"
    )
    parser.add_argument("--force", action="store_true", help="remove without asking")


def check(parser: ToolParser, args: argparse.Namespace) -> None:
    """What does not go together, in Kafka's words."""
    if sum((args.list, args.add, args.remove)) != 1:
        parser.error("Command must include exactly one action: --list, --add, --remove.")
    if args.list:
        _forbid(parser, args, "--list", "producer", "consumer", "allow_host", "deny_host", *_PRINCIPALS)
    elif args.principal:
        parser.error("The --principal option is only available if --list is set")
    if args.producer or args.consumer:
        option = "--producer" if args.producer else "--consumer"
        _forbid(parser, args, option, "operation", "deny_principal", "deny_host")
    if args.idempotent and not args.producer:
        parser.error("The --idempotent option is only available if --producer is set")
    if args.producer and not args.topic:
        parser.error("With --producer you must specify a --topic")
    if args.consumer and (
        not args.topic or not args.group or (not args.producer and (args.cluster or args.transactional_id))
    ):
        parser.error(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified."
        )
    if args.add and args.resource_pattern_type in ("any", "match"):
        parser.error(
            f"A '--resource-pattern-type' value of '{args.resource_pattern_type}' is not valid when adding acls."
        )
    for principal in (*args.allow_principal, *args.deny_principal, *args.principal, *args.user_principal):
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            parser.error(f"a principal is written like User:alice, not `{principal}`")


_PRINCIPALS = ("allow_principal", "deny_principal", "operation")


def _forbid(parser: ToolParser, args: argparse.Namespace, option: str, *others: str) -> None:
    for other in others:
        if getattr(args, other):
            parser.error(f'Option "{option}" can\'t be used with option "--{other.replace("_", "-")}"')


def resources(args: argparse.Namespace) -> list[AclFilter]:
    """The resources that are named."""
    type_ = PATTERN_TYPES[args.resource_pattern_type]
    found = [
        AclFilter(resource, name.strip(), type_)
        for resource, names in (
            (Resource.TOPIC, args.topic),
            (Resource.GROUP, args.group),
            (Resource.TRANSACTIONAL_ID, args.transactional_id),
            (Resource.DELEGATION_TOKEN, args.delegation_token),
            (Resource.USER, args.user_principal),
        )
        for name in names
    ]
    if (args.cluster or args.idempotent) and type_ == PatternType.LITERAL:
        found.append(_CLUSTER)
    return list(dict.fromkeys(found))


def wanted(parser: ToolParser, args: argparse.Namespace) -> Wanted:
    """The rules that the options spell out, by resource."""
    named = resources(args)
    if not named:
        parser.error(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    found: dict[AclFilter, list[AclEntry]] = {}
    if args.producer or args.consumer:
        for resource, operations in _conveniences(args, named):
            found.setdefault(resource, []).extend(_entries(args, operations))
    else:
        operations = _operations(parser, args.operation)
        found = {resource: _entries(args, operations) for resource in named}
        _check_operations(parser, found)
    found = {resource: list(dict.fromkeys(entries)) for resource, entries in found.items()}
    if args.add and not all(found.values()):
        parser.error("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    return found


def _conveniences(args: argparse.Namespace, named: Sequence[AclFilter]) -> Iterable[tuple[AclFilter, list[int]]]:
    for resource in named:
        kind = resource.resource
        if args.producer and kind == Resource.TOPIC:
            yield resource, [_O.WRITE, _O.DESCRIBE, _O.CREATE]
        if args.producer and kind == Resource.TRANSACTIONAL_ID:
            yield resource, [_O.WRITE, _O.DESCRIBE]
        if args.producer and args.idempotent and kind == Resource.CLUSTER:
            yield resource, [_O.IDEMPOTENT_WRITE]
        if args.consumer and kind == Resource.TOPIC:
            yield resource, [_O.READ, _O.DESCRIBE]
        if args.consumer and kind == Resource.GROUP:
            yield resource, [_O.READ]


def _operations(parser: ToolParser, names: Sequence[str]) -> list[int]:
    found = []
    for name in names or ["All"]:
        number = OPERATIONS_BY_WORD.get(name.strip().replace("_", "").lower())
        if number is None:
            parser.error(f"there is no operation {name}; there are {', '.join(OPERATION_WORDS.values())}")
        found.append(int(number))
    return found


def _check_operations(parser: ToolParser, found: Wanted) -> None:
    for resource, entries in found.items():
        allowed = grantable_on(Resource(resource.resource))
        if any(entry.operation not in allowed for entry in entries):
            words = ", ".join(OPERATION_WORDS[number] for number in sorted(allowed, key=_all_last))
            parser.error(f"ResourceType {Resource(resource.resource).name} only supports operations {words}")


def _all_last(number: int) -> int:
    return 99 if number == ALL_OPERATIONS else number


def _entries(args: argparse.Namespace, operations: Sequence[int]) -> list[AclEntry]:
    return [
        AclEntry(principal.strip(), host.strip(), int(operation), permission)
        for permission, principals, hosts in (
            (Permission.ALLOW, args.allow_principal, args.allow_host),
            (Permission.DENY, args.deny_principal, args.deny_host),
        )
        for principal in principals
        for host in hosts or [WILDCARD]
        for operation in operations
    ]
