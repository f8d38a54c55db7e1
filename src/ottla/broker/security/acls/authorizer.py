"""Decides what clients may do, and remembers it for as long as the rules stay the same.

A client is a principal at an address. What it was found to be allowed is kept with its session, so that a produce or a
fetch asks a dictionary; whenever a rule changes a number grows, and sessions that know an older number begin anew.
Whoever wants to know what was decided (the authorizer's log, the audit log) is told by an observer, if there is one.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.security.acls.index import AclIndex
from ottla.broker.session import KINDS, Access, Session
from ottla.cluster.image import ClusterImage, ImageChange
from ottla.model.acls import CLUSTER_NAME, AclBinding
from ottla.model.rights import GRANTABLE, Operation, Resource

KNOWN_MAX = 20_000
"""How many answers a session keeps: names come from clients, who may ask for any."""
ANY_NAME = "hardcode"
"""Who may use a resource of this name, which nothing has, may use any: so Kafka finds out who is a super user."""


class Decision(NamedTuple):
    """What was decided about one client's request, and by what."""

    session: Session
    api_key: int
    operation: Operation
    resource: Resource
    name: str
    allowed: bool
    because: "AclBinding | str"
    """A rule, or in Kafka's words what stood in for one: SuperUser, DefaultAllow, DefaultDeny."""
    references: int
    """How often the resource is named in the request."""
    probe: bool
    """Whether nobody asked for it by name: it was looked at for a list, or for a field of what is allowed."""


class Authorizer:
    def __init__(self, super_users: Callable[[], frozenset[str]], allow_everyone: Callable[[], bool]) -> None:
        self._super_users = super_users
        self._allow_everyone = allow_everyone
        self._index = AclIndex()
        self.version = 0
        self.observe_allowed: Callable[[Decision], None] | None = None
        """Told of everything that is allowed; None costs nothing."""
        self.observe_denied: Callable[[Decision], None] | None = None

    # -- the rules

    def load(self, image: ClusterImage) -> None:
        self._index = AclIndex(image.acls)
        self.version += 1

    def apply(self, change: ImageChange) -> None:
        """The rules, or the settings, may have changed."""
        for pattern in change.acls:
            self._index.put(pattern, change.new.acls.get(pattern, ()))
        if change.acls or change.broker_configs:
            self.version += 1

    # -- questions

    def allows(
        self,
        session: Session,
        api_key: int,
        operation: Operation,
        resource: Resource,
        name: str = CLUSTER_NAME,
        *,
        count: int = 1,
        probe: bool = False,
    ) -> bool:
        access = session.access
        if access is None or access.version != self.version:
            access = self._begin(session)
        known = access.known[operation * KINDS + resource]
        allowed = None if known is None else known.get(name)
        if allowed is None:
            allowed = self._decide(access, operation, resource, name)
        if allowed:
            if self.observe_allowed is not None:
                self.observe_allowed(self._explain(session, api_key, operation, resource, name, True, count, probe))
        elif self.observe_denied is not None:
            self.observe_denied(self._explain(session, api_key, operation, resource, name, False, count, probe))
        return allowed

    def allows_any(self, session: Session, api_key: int, operation: Operation, resource: Resource) -> bool:
        """Whether there is a name for which it would be allowed; whether anything has that name is another matter."""
        if self.allows(session, api_key, operation, resource, ANY_NAME, probe=True):
            return True
        return self._index.allows_for_any(str(session.principal), session.host, operation, resource)

    def operations(self, session: Session, api_key: int, resource: Resource, name: str) -> int:
        """All that is allowed on a resource, as the bit field of the protocol."""
        return sum(
            1 << operation
            for operation in GRANTABLE[resource]
            if self.allows(session, api_key, operation, resource, name, probe=True)
        )

    # -- deciding

    def _begin(self, session: Session) -> Access:
        principal = str(session.principal)
        access = Access(principal, session.host, self.version, super_user=principal in self._super_users())
        session.access = access
        return access

    def _decide(self, access: Access, operation: Operation, resource: Resource, name: str) -> bool:
        allowed = access.super_user
        if not allowed:
            said = self._index.decide(access.principal, access.host, operation, resource, name)
            allowed = self._allow_everyone() and not self._index.covers(resource, name) if said is None else said
        if access.kept >= KNOWN_MAX:
            access.forget()
        slot = operation * KINDS + resource
        known = access.known[slot]
        if known is None:
            known = access.known[slot] = {}
        known[name] = allowed
        access.kept += 1
        return allowed

    def _explain(
        self,
        session: Session,
        api_key: int,
        operation: Operation,
        resource: Resource,
        name: str,
        allowed: bool,
        count: int,
        probe: bool,
    ) -> Decision:
        because: AclBinding | str | None = "SuperUser"
        assert session.access is not None
        if not session.access.super_user:
            because = self._index.rule(str(session.principal), session.host, operation, resource, name)
        if because is None:
            because = "DefaultAllow" if allowed else "DefaultDeny"
        return Decision(session, api_key, operation, resource, name, allowed, because, count, probe)
