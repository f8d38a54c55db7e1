"""What a user may do with a subject, by the ACLs of the cluster.

A subject is the topic that it belongs to: `orders-value` and `orders-key` are `orders`; one of another name is a topic
of that name. Reading a schema takes Describe on it, registering Write, deleting Delete, config and mode Alter; what is
everybody's (global config and mode, contexts, associations) takes Alter on the cluster.
"""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from ottla.client.acls import describe_acls
from ottla.client.cluster import Cluster
from ottla.model.acls import ALL_OPERATIONS, CLUSTER_NAME, EVERYBODY, WILDCARD, AclBinding, AclFilter, Permission
from ottla.model.rights import Operation, Resource
from ottla.registry.errors import Code, RegistryError
from ottla.registry.rest.asking import Asked
from ottla.registry.rest.routes import DELETE, NOTHING, READ, SETTINGS, WRITE
from ottla.registry.subjects import parse_subject

KEPT_SECONDS = 5.0
"""So long may a right that was taken away still count."""

OPERATIONS = {
    READ: Operation.DESCRIBE,
    WRITE: Operation.WRITE,
    DELETE: Operation.DELETE,
    SETTINGS: Operation.ALTER,
}
_IMPLY_DESCRIBE = frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER})


class Rights(Protocol):
    async def check(self, right: str, asked: Asked) -> None:
        """RegistryError if the user may not."""
        ...

    async def visible(self, asked: Asked, answer: Any) -> Any:
        """The part of a list that the user may see."""
        ...


class _NoRights:
    async def check(self, right: str, asked: Asked) -> None:
        return

    async def visible(self, asked: Asked, answer: Any) -> Any:
        return answer


NO_RIGHTS: Rights = _NoRights()


def topic_of(subject: str) -> str:
    name = parse_subject(subject).name
    return name.removesuffix("-value") if name.endswith("-value") else name.removesuffix("-key")


def allowed(
    rules: Collection[AclBinding], principal: str, host: str, operation: Operation, resource: Resource, name: str
) -> bool:
    """As the brokers decide: a rule that denies counts first, and what no rule allows is not allowed."""
    about = [
        entry
        for pattern, entry in rules
        if pattern.resource == resource
        and pattern.covers(name)
        and entry.principal in (principal, EVERYBODY)
        and entry.host in (WILDCARD, host)
    ]
    wanted = {ALL_OPERATIONS, operation}
    if any(entry.permission is Permission.DENY and entry.operation in wanted for entry in about):
        return False
    if operation is Operation.DESCRIBE:
        wanted |= _IMPLY_DESCRIBE
    return any(entry.permission is Permission.ALLOW and entry.operation in wanted for entry in about)


class AclRights:
    """`super_users` may everything, as at the brokers."""

    def __init__(
        self, cluster: Cluster, super_users: Sequence[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster = cluster
        self._super_users = frozenset(super_users)
        self._clock = clock
        self._rules: list[AclBinding] = []
        self._read_at = -KEPT_SECONDS

    async def check(self, right: str, asked: Asked) -> None:
        principal = _principal(asked)
        if right == NOTHING or principal in self._super_users:
            return
        subjects = _subjects_of(asked)
        if subjects is None:
            if right == READ:
                return  # lists show what may be seen
            if not await self._may(asked, Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
                raise _denied(principal, Operation.ALTER, "the cluster")
            return
        for subject in subjects:
            if await self._may(asked, OPERATIONS[right], Resource.TOPIC, topic_of(subject)):
                return
        if subjects:
            raise _denied(principal, OPERATIONS[right], f"topic {topic_of(subjects[0])}")

    async def visible(self, asked: Asked, answer: Any) -> Any:
        if not isinstance(answer, list) or _principal(asked) in self._super_users:
            return answer
        found = []
        for each in answer:
            subject = each.get("subject") if isinstance(each, dict) else each
            topic = topic_of(subject) if isinstance(subject, str) and _names_subjects(asked) else None
            if topic is None or await self._may(asked, Operation.DESCRIBE, Resource.TOPIC, topic):
                found.append(each)
        return found

    async def _may(self, asked: Asked, operation: Operation, resource: Resource, name: str) -> bool:
        if self._clock() - self._read_at >= KEPT_SECONDS:
            self._rules = await self._cluster.retrying(lambda: describe_acls(self._cluster, AclFilter()))
            self._read_at = self._clock()
        host = asked.request.client.host if asked.request.client else ""
        return allowed(self._rules, _principal(asked), host, operation, resource, name)


def _principal(asked: Asked) -> str:
    return f"User:{asked.request.scope.get('user') or 'ANONYMOUS'}"


def _names_subjects(asked: Asked) -> bool:
    path = asked.request.url.path.rstrip("/")
    return path.endswith(("/subjects", "/schemas", "/versions")) and "subject" not in asked.params


def _subjects_of(asked: Asked) -> list[str] | None:
    """The subjects that a request is about, any of which will do; None: it is about none in particular."""
    if "subject" in asked.params:
        return [asked.subject]
    state = asked.registry.state
    if "id" in asked.params and "schemas" in asked.request.url.path:
        if not asked.params["id"].isdigit():
            return []
        places = state.places(asked.id_context, int(asked.params["id"]), deleted=True)
        return sorted({each.subject for each in places})
    if "guid" in asked.params:
        places_of_guid = state.by_guid(asked.params["guid"].lower())
        return sorted({each.subject for place in places_of_guid for each in state.places(*place, deleted=True)})
    return None


def _denied(principal: str, operation: Operation, what: str) -> RegistryError:
    return RegistryError(
        Code.FORBIDDEN, f"{principal} is not authorized: it needs {operation.name.capitalize()} on {what}"
    )
