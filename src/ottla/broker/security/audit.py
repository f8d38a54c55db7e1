"""The audit log: a line of JSON for each decision of the authorizer."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from ottla.broker.security.acls.authorizer import Decision
from ottla.model.acls import OPERATION_WORDS, RESOURCE_WORDS
from ottla.protocol.apis import API, ApiKey
from ottla.security.rolled_lines import WAITING_MAX, RolledLines


class _Entry(NamedTuple):
    """A decision as it was: a session goes on meanwhile, perhaps under another name."""

    time_s: float
    principal: str
    host: str
    listener: str
    client_id: str | None
    decision: Decision


class AuditLog:
    def __init__(
        self, path: str, max_bytes: int, backups: int, *, now: Callable[[], float] = time.time, room: int = WAITING_MAX
    ) -> None:
        self._now = now
        self.lines = RolledLines(path, max_bytes, backups, line_of, room=room)

    @property
    def dropped(self) -> int:
        """Decisions that are not in the log: it was behind, or could not be written."""
        return self.lines.dropped

    def note(self, decision: Decision) -> None:
        session = decision.session
        entry = _Entry(self._now(), str(session.principal), session.host, session.listener, session.client_id, decision)
        self.lines.put(entry)

    def close(self) -> None:
        """Returns when what waits is written, or after a while."""
        self.lines.close()


def line_of(entry: _Entry) -> dict[str, str | int | None]:
    """Who, from where, what, on what, and what was decided by which rule."""
    decision = entry.decision
    return {
        "time": datetime.fromtimestamp(entry.time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "principal": entry.principal,
        "host": entry.host,
        "listener": entry.listener,
        "clientId": entry.client_id,
        "request": API[ApiKey(decision.api_key)].name,
        "operation": OPERATION_WORDS[decision.operation],
        "resourceType": RESOURCE_WORDS[decision.resource],
        "resourceName": decision.name,
        "decision": "allowed" if decision.allowed else "denied",
        "rule": str(decision.because),
        "count": decision.references,
    }
