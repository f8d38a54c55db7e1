"""Access rules as sentences, and what a principal may do by the rules that there are. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.model.acls import (
    ALL_OPERATIONS,
    CLUSTER_NAME,
    EVERYBODY,
    OPERATION_WORDS,
    WILDCARD,
    AclBinding,
    PatternType,
    Permission,
)
from ottla.model.rights import GRANTABLE, Operation, Resource

_VERBS: dict[tuple[Resource, int], str] = {
    (Resource.TOPIC, Operation.READ): "read records of",
    (Resource.TOPIC, Operation.WRITE): "write records to",
    (Resource.TOPIC, Operation.CREATE): "create",
    (Resource.TOPIC, Operation.DELETE): "delete",
    (Resource.TOPIC, Operation.ALTER): "add partitions to",
    (Resource.TOPIC, Operation.DESCRIBE): "see",
    (Resource.TOPIC, Operation.DESCRIBE_CONFIGS): "see the settings of",
    (Resource.TOPIC, Operation.ALTER_CONFIGS): "change the settings of",
    (Resource.GROUP, Operation.READ): "be a member of, and commit offsets of,",
    (Resource.GROUP, Operation.DESCRIBE): "see",
    (Resource.GROUP, Operation.DELETE): "delete",
    (Resource.CLUSTER, Operation.CREATE): "create any topic in",
    (Resource.CLUSTER, Operation.ALTER): "change ACLs, users and partitions' places of",
    (Resource.CLUSTER, Operation.DESCRIBE): "see brokers, ACLs and all groups of",
    (Resource.CLUSTER, Operation.CLUSTER_ACTION): "act as a broker of",
    (Resource.CLUSTER, Operation.DESCRIBE_CONFIGS): "see the brokers' settings of",
    (Resource.CLUSTER, Operation.ALTER_CONFIGS): "change the brokers' settings and quotas of",
    (Resource.CLUSTER, Operation.IDEMPOTENT_WRITE): "write with idempotence in",
    (Resource.TRANSACTIONAL_ID, Operation.WRITE): "run transactions as",
    (Resource.TRANSACTIONAL_ID, Operation.DESCRIBE): "see transactions of",
}
_NOUNS = {
    Resource.TOPIC: ("topic", "topics"),
    Resource.GROUP: ("group", "groups"),
    Resource.TRANSACTIONAL_ID: ("transactional id", "transactional ids"),
    Resource.DELEGATION_TOKEN: ("delegation token", "delegation tokens"),
    Resource.USER: ("user", "users"),
}


def sentence(binding: AclBinding) -> str:
    """`alice may read records of every topic whose name begins with "orders."`."""
    pattern, entry = binding
    who = "everybody" if entry.principal == EVERYBODY else entry.principal.removeprefix("User:")
    may = "may" if entry.permission is Permission.ALLOW else "must not"
    whence = "" if entry.host == WILDCARD else f", from {entry.host}"
    return f"{who} {may} {_verb(pattern.resource, entry.operation)} {_object(binding)}{whence}"


def _verb(resource: Resource, operation: int) -> str:
    if operation == ALL_OPERATIONS:
        return "do everything with"
    return _VERBS.get((resource, operation), f"{OPERATION_WORDS.get(operation, str(operation))} on")


def _object(binding: AclBinding) -> str:
    pattern = binding.pattern
    if pattern.resource is Resource.CLUSTER:
        return "the cluster"
    one, many = _NOUNS[pattern.resource]
    if pattern.type is PatternType.PREFIXED:
        return f'every {one} whose name begins with "{pattern.name}"'
    return f"all {many}" if pattern.name == WILDCARD else f"the {one} {pattern.name}"


class Verdict(NamedTuple):
    operation: str
    allowed: bool
    because: str


def may(bindings: Sequence[AclBinding], principal: str, resource: Resource, name: str) -> list[Verdict]:
    """What somebody may do with one thing from any host, and by which rule: a denial beats every permission.

    Super users and `allow.everyone.if.no.acl.found` are the brokers' settings, and not known here.
    """
    named = CLUSTER_NAME if resource is Resource.CLUSTER else name
    about = [
        each
        for each in bindings
        if each.pattern.resource is resource
        and each.pattern.covers(named)
        and each.entry.principal in (principal, EVERYBODY)
    ]
    return [_verdict(about, operation) for operation in sorted(GRANTABLE[resource])]


_IMPLIES_DESCRIBE = (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)


def _verdict(about: Iterable[AclBinding], operation: Operation) -> Verdict:
    word = OPERATION_WORDS[operation]
    allowing: AclBinding | None = None
    for each in about:
        entry = each.entry
        exact = entry.operation in (operation, ALL_OPERATIONS)
        if entry.permission is Permission.DENY:
            if exact:
                return Verdict(word, False, sentence(each))
            continue
        implied = _implied(operation, entry.operation)
        if allowing is None and (exact or implied):
            allowing = each
    return Verdict(word, allowing is not None, sentence(allowing) if allowing is not None else "no rule allows it")


def _implied(wanted: Operation, given: int) -> bool:
    """Who may read, write, delete or alter may describe; who may change settings may see them."""
    if wanted is Operation.DESCRIBE:
        return given in _IMPLIES_DESCRIBE
    return wanted is Operation.DESCRIBE_CONFIGS and given == Operation.ALTER_CONFIGS
