"""Who is at the other end of a connection: one object for as long as the connection lasts.

The server makes it when a connection is admitted; handlers get it with every call. It is what access control, quotas
and the request log ask about a client, so it imports nothing of the broker and any part may read it.
"""

from enum import Enum
from typing import NamedTuple

UNKNOWN_SOFTWARE = "unknown"
"""What Kafka calls the software of a client that did not tell (ApiVersions below version 3)."""


class Principal(NamedTuple):
    """A name that rights and quotas are given to."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")


class Authentication(Enum):
    """How far a client has come in saying who it is. A listener without authentication begins at NOT_NEEDED."""

    NOT_NEEDED = "not needed"
    HANDSHAKE = "handshake"  # nothing but ApiVersions and the choice of a mechanism is served
    EXCHANGE = "exchange"  # tokens of the chosen mechanism go back and forth
    DONE = "done"
    FAILED = "failed"


class QuotaEntity(NamedTuple):
    """Whose budget a request is charged to: quotas are set for users, for client ids and for both together."""

    user: str
    client_id: str


KINDS = 8
"""More than there are kinds of resources."""
_OPERATIONS = 16


class Access:
    """What a client was found to be allowed, as long as the rules are those of `version`."""

    __slots__ = ("host", "kept", "known", "principal", "super_user", "version")

    def __init__(self, principal: str, host: str, version: int, *, super_user: bool) -> None:
        self.principal, self.host, self.version, self.super_user = principal, host, version, super_user
        self.forget()

    def forget(self) -> None:
        self.known: list[dict[str, bool] | None] = [None] * (KINDS * _OPERATIONS)
        """By operation * KINDS + kind of resource, then by name."""
        self.kept = 0


class Session:
    """A connection's identity. Only the server and the handlers that authenticate change it."""

    __slots__ = (
        "access",
        "asked_versions",
        "authentication",
        "client_id",
        "entity",
        "expires_at",
        "host",
        "listener",
        "login",
        "port",
        "principal",
        "restricted",
        "software_name",
        "software_version",
    )

    def __init__(
        self,
        listener: str,
        host: str,
        port: int = 0,
        *,
        login: object | None = None,
    ) -> None:
        """With a `login` nothing is served before it has come to its end."""
        self.listener = listener
        """The name of the listener that the client came through."""
        self.host = host
        """The client's address, without a port."""
        self.port = port
        self.login = login
        """What takes the client's tokens, where a listener asks for them."""
        self.authentication = Authentication.NOT_NEEDED if login is None else Authentication.HANDSHAKE
        self.restricted = login is not None
        """Whether every request is looked at before it is served: the client is not known, or not for ever."""
        self.asked_versions = False
        """Whether ApiVersions was answered: before the login it is answered once."""
        self.expires_at: float | None = None
        """When the client must have authenticated again, in the loop's time; None: never."""
        self.principal = ANONYMOUS
        self.access: Access | None = None
        """Kept by the authorizer, for this principal."""
        self.client_id: str | None = None
        """As in the latest request: nothing keeps a client from changing it."""
        self.entity = QuotaEntity(ANONYMOUS.name, "")
        self.software_name = UNKNOWN_SOFTWARE
        self.software_version = UNKNOWN_SOFTWARE

    def called(self, client_id: str | None) -> None:
        """The client goes by this id from now on. Kafka takes no id for an empty one."""
        self.client_id = client_id
        self.entity = QuotaEntity(self.principal.name, client_id or "")

    def authenticated(self, principal: Principal, expires_at: float | None = None) -> None:
        self.authentication = Authentication.DONE
        self.principal = principal
        self.access = None
        self.expires_at = expires_at
        self.restricted = expires_at is not None
        self.entity = QuotaEntity(principal.name, self.client_id or "")

    def exchanges(self) -> None:
        """The client has chosen a mechanism: tokens follow and nothing else."""
        self.authentication = Authentication.EXCHANGE
        self.restricted = True

    def failed(self) -> None:
        self.authentication = Authentication.FAILED
        self.restricted = True

    def runs(self, software_name: str, software_version: str) -> None:
        """The client told which software it is, with ApiVersions."""
        self.software_name = software_name
        self.software_version = software_version
