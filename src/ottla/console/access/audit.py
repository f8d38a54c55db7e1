"""The console's audit log: a line of JSON for each change, each refusal of one, each sign-in."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ottla.security.rolled_lines import RolledLines

MAX_BYTES = 50 * 1024 * 1024
BACKUPS = 5
TEXT_CHARACTERS_MAX = 1_000


class AuditEntry(NamedTuple):
    time_s: float
    user: str
    role: str
    way: str
    host: str
    cluster: str
    action: str
    """What was to be done, in words."""
    request: str
    """Method and path."""
    outcome: str
    """`done`, `failed`, `refused`."""
    words: str


class ConsoleAudit:
    def __init__(
        self, path: str, *, max_bytes: int = MAX_BYTES, backups: int = BACKUPS, now: Callable[[], float] = time.time
    ) -> None:
        self._now = now
        self._lines = RolledLines(path, max_bytes, backups, line_of)

    @property
    def dropped(self) -> int:
        return self._lines.dropped

    def note(
        self,
        *,
        user: str,
        host: str,
        action: str,
        request: str,
        outcome: str,
        role: str = "",
        way: str = "",
        cluster: str = "",
        words: str = "",
    ) -> None:
        texts = (user, role, way, host, cluster, action, request, outcome, words)
        self._lines.put(AuditEntry(self._now(), *(text[:TEXT_CHARACTERS_MAX] for text in texts)))

    def close(self) -> None:
        """Returns when what waits is written, or after a while."""
        self._lines.close()


def line_of(entry: AuditEntry) -> dict[str, Any]:
    moment = datetime.fromtimestamp(entry.time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    found = {"time": moment, **entry._asdict()}
    del found["time_s"]
    return {name: _clean(value) for name, value in found.items() if value != ""}


def _clean(value: Any) -> Any:
    """A lone half of a surrogate pair, which a path may carry, cannot be written."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
