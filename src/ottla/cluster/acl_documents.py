"""Access control lists as documents, laid out as Kafka's AclAuthorizer did in ZooKeeper. Pure.

    /kafka-acl/<Type>/<name>                        rules about one resource, or with the name * about all of a kind
    /kafka-acl-extended/prefixed/<Type>/<name>      rules about all resources whose names begin so

A document has all rules of its pattern. Kafka puts names into paths as they are, which goes wrong with a slash: a name
that cannot be a node's stands behind a percent sign with %-escapes, as does one that begins with a percent sign.
A document that cannot be read denies everything about its pattern to everybody: what it denies is not known.
"""

import logging
from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

import msgspec
from immutables import Map
from msgspec import Struct

from ottla.model.acls import (
    ALL_OPERATIONS,
    EVERYBODY,
    OPERATION_WORDS,
    OPERATIONS_BY_WORD,
    PERMISSION_WORDS,
    PERMISSIONS_BY_WORD,
    RESOURCE_WORDS,
    RESOURCES_BY_WORD,
    WILDCARD,
    AclEntry,
    PatternType,
    Permission,
    ResourcePattern,
)

logger = logging.getLogger(__name__)

LITERAL_ACLS = "/kafka-acl/"
PREFIXED_ACLS = "/kafka-acl-extended/prefixed/"
ACL_PATHS = (LITERAL_ACLS, PREFIXED_ACLS)
_ESCAPED = "%"

Acls = Mapping[ResourcePattern, tuple[AclEntry, ...]]


class _Entry(Struct):
    principal: str
    permissionType: str  # noqa: N815 - as Kafka writes it
    operation: str
    host: str = "*"


class _Acls(Struct):
    acls: list[_Entry]
    version: int = 1


_decode = msgspec.json.Decoder(_Acls).decode


def acl_path(pattern: ResourcePattern) -> str:
    start = PREFIXED_ACLS if pattern.type is PatternType.PREFIXED else LITERAL_ACLS
    return f"{start}{RESOURCE_WORDS[pattern.resource]}/{_node_name(pattern.name)}"


def acl_document(entries: Iterable[AclEntry]) -> bytes:
    return msgspec.json.encode(
        _Acls(
            [
                _Entry(
                    entry.principal, PERMISSION_WORDS[entry.permission], OPERATION_WORDS[entry.operation], entry.host
                )
                for entry in entries
            ]
        )
    )


def acl_pattern(path: str) -> ResourcePattern | None:
    """The pattern whose rules are at this path; None for all other documents."""
    type_ = PatternType.PREFIXED if path.startswith(PREFIXED_ACLS) else PatternType.LITERAL
    start = PREFIXED_ACLS if type_ is PatternType.PREFIXED else LITERAL_ACLS
    word, _, node = path.removeprefix(start).partition("/")
    resource = RESOURCES_BY_WORD.get(word.lower())
    if not path.startswith(start) or resource is None or not node:
        return None
    return ResourcePattern(resource, unquote(node[1:]) if node.startswith(_ESCAPED) else node, type_)


def _node_name(name: str) -> str:
    """ZooKeeper takes no slashes, no control characters and no names of dots alone."""
    if "/" in name or not name.isprintable() or name in (".", "..") or name.startswith(_ESCAPED):
        return _ESCAPED + quote(name, safe="")
    return name


def apply_acl_documents(acls: Acls, written: Mapping[str, bytes | None]) -> tuple[Acls, tuple[ResourcePattern, ...]]:
    """The rules after these documents were written (None: deleted), and the patterns whose rules differ."""
    mutation = (acls if isinstance(acls, Map) else Map(acls)).mutate()
    changed: dict[ResourcePattern, None] = {}
    for path, data in written.items():
        pattern = acl_pattern(path)
        if pattern is None:
            continue
        entries = () if data is None else _entries(path, data)
        if entries != mutation.get(pattern, ()):
            changed[pattern] = None
        mutation.pop(pattern, None)
        if entries:
            mutation[pattern] = entries
    return (mutation.finish(), tuple(changed)) if changed else (acls, ())


def _entries(path: str, data: bytes) -> tuple[AclEntry, ...]:
    try:
        return tuple(
            dict.fromkeys(
                AclEntry(
                    entry.principal,
                    entry.host,
                    OPERATIONS_BY_WORD[entry.operation.lower()],
                    PERMISSIONS_BY_WORD[entry.permissionType.lower()],
                )
                for entry in _decode(data).acls
            )
        )
    except (msgspec.MsgspecError, KeyError) as error:
        logger.error("The ACLs at %s cannot be read, so that all is denied there: %s", path, error)  # noqa: TRY400
        return (AclEntry(EVERYBODY, WILDCARD, ALL_OPERATIONS, Permission.DENY),)
