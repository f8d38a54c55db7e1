"""Sessions: a random id in a cookie, kept here by its hash. They end when idle, when old, and when there are too many.

A session is always made here at sign-in: an id that somebody brings along is looked up and never taken over.
Pure: time comes in as an argument.
"""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.console.access.masking import Mask
from ottla.console.access.roles import Role
from ottla.console.asking import Right

ID_BYTES = 32
IDLE_SECONDS = 30 * 60.0
LIFE_SECONDS = 12 * 3600.0
SESSIONS_MAX = 10_000
OF_ONE_USER_MAX = 50


@dataclass(slots=True)
class Session:
    """Who asks: what views and templates get as the caller."""

    name: str
    role: Role
    way: str
    """How they came in: `file`, `sasl`, `oidc`, or `open` where nobody has to sign in."""
    csrf: str
    began: float
    seen: float
    cluster: str | None = None
    """The one cluster that this session may ask, because its password is that cluster's; None: all."""
    login: Mapping[str, str] | None = field(default=None, repr=False)
    """Settings of the user's own connections to brokers: kept here alone, and never written anywhere."""

    @property
    def right(self) -> Right:
        return self.role.right

    @property
    def sees_everything(self) -> bool:
        return self.role.sees_everything

    def sees(self, topic: str) -> bool:
        return self.role.sees(topic)

    def mask(self, topic: str) -> Mask | None:
        return self.role.mask(topic)


class Sessions:
    def __init__(
        self,
        *,
        idle_seconds: float = IDLE_SECONDS,
        life_seconds: float = LIFE_SECONDS,
        at_most: int = SESSIONS_MAX,
        random: Callable[[int], str] = secrets.token_urlsafe,
    ) -> None:
        self._idle, self._life, self._at_most, self._random = idle_seconds, life_seconds, at_most, random
        self._sessions: dict[bytes, Session] = {}
        """In the order in which they were last seen."""

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(
        self,
        name: str,
        role: Role,
        way: str,
        now: float,
        *,
        cluster: str | None = None,
        login: Mapping[str, str] | None = None,
    ) -> tuple[str, Session]:
        """A new id, known to nobody yet, and its session."""
        own = [key for key, each in self._sessions.items() if (each.name, each.way) == (name, way)]
        if way != "open":
            for key in own[: max(0, len(own) - OF_ONE_USER_MAX + 1)]:
                del self._sessions[key]
        while len(self._sessions) >= self._at_most:
            del self._sessions[next(iter(self._sessions))]
        made = self._random(ID_BYTES)
        session = Session(name, role, way, self._random(ID_BYTES), now, now, cluster, login)
        self._sessions[_key(made)] = session
        return made, session

    def find(self, session_id: str, now: float, *, by_itself: bool = False) -> Session | None:
        """The session, seen now; None if there is none, or it is over.

        `by_itself`: the page asks, and not who looks at it. Somebody who has left it open is idle all the same.
        """
        key = _key(session_id)
        session = self._sessions.get(key)
        if session is None:
            return None
        if now - session.seen > self._idle or now - session.began > self._life:
            del self._sessions[key]
            return None
        if not by_itself:
            session.seen = now
            self._sessions[key] = self._sessions.pop(key)
        return session

    def end(self, session_id: str) -> None:
        self._sessions.pop(_key(session_id), None)

    def end_old(self, now: float) -> None:
        """Those that nobody asks for any more: a password is not kept for longer than its session."""
        while self._sessions:
            key, session = next(iter(self._sessions.items()))
            if now - session.seen <= self._idle:
                break
            del self._sessions[key]


def _key(session_id: str) -> bytes:
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).digest()
