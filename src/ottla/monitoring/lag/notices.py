"""Who is told of a group that is in trouble, when, and that it is over. Pure: judgements and `now` in, notices out.

An incident begins when a group is first not OK and ends when it is OK again; both notices carry its id.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.monitoring.lag.book import GroupLag
from ottla.monitoring.lag.rules import Status


class NotifierRule(NamedTuple):
    name: str
    threshold: Status = Status.WARN
    """How bad a group must be for a notice."""
    interval_ms: int = 60_000
    """While it stays bad, a notice is sent again after so long."""
    send_once: bool = False
    """... or only the first time."""
    send_close: bool = False
    allow: str = ""
    deny: str = ""

    def wants(self, group: str) -> bool:
        if self.allow and not re.search(self.allow, group):
            return False
        return not (self.deny and re.search(self.deny, group))


class Notice(NamedTuple):
    notifier: str
    incident: str
    start_ms: int
    is_close: bool
    cluster: str
    group: GroupLag

    @property
    def kind(self) -> str:
        return "close" if self.is_close else "open"


class _Incident:
    __slots__ = ("id", "last_ms", "start_ms")

    def __init__(self, id_: str, start_ms: int) -> None:
        self.id = id_
        self.start_ms = start_ms
        self.last_ms: dict[str, int] = {}
        """When each notifier sent its last notice of it."""


class NoticeBoard:
    def __init__(self, rules: Iterable[NotifierRule], new_id: Callable[[], str]) -> None:
        self._rules = list(rules)
        self._new_id = new_id
        self._incidents: dict[tuple[str, str], _Incident] = {}

    def note(self, cluster: str, group: GroupLag, now_ms: int) -> list[Notice]:
        """What is to be sent now that a group was judged. A close goes to those who were told of the incident."""
        key = (cluster, group.group)
        incident = self._incidents.get(key)
        if group.status <= Status.OK:
            self._incidents.pop(key, None)
            return [] if incident is None else [*self._closes(incident, cluster, group)]
        if incident is None:
            incident = self._incidents[key] = _Incident(self._new_id(), now_ms)
        notices = []
        for rule in self._rules:
            last = incident.last_ms.get(rule.name)
            due = last is None or (not rule.send_once and now_ms - last >= rule.interval_ms)
            if due and group.status >= rule.threshold and rule.wants(group.group):
                incident.last_ms[rule.name] = now_ms
                notices.append(Notice(rule.name, incident.id, incident.start_ms, False, cluster, group))
        return notices

    def keep_only(self, cluster: str, groups: Iterable[str]) -> None:
        """Incidents of groups that are gone end without a word, as Burrow's do."""
        known = set(groups)
        for key in [key for key in self._incidents if key[0] == cluster and key[1] not in known]:
            del self._incidents[key]

    def _closes(self, incident: _Incident, cluster: str, group: GroupLag) -> Iterable[Notice]:
        for rule in self._rules:
            if rule.send_close and rule.name in incident.last_ms:
                yield Notice(rule.name, incident.id, incident.start_ms, True, cluster, group)
