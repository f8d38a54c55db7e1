"""Roles: what somebody may do, which topics they see, which fields stay hidden from them.

Pure: reads no clock and does no I/O.
"""

import fnmatch
import functools
import re
from typing import NamedTuple

from ottla.console.access.masking import Mask, parse_fields
from ottla.console.asking import Right

PATTERN_CHARACTERS_MAX = 300
RIGHTS = {"viewer": Right.VIEWER, "operator": Right.OPERATOR, "admin": Right.ADMIN}


class Role(NamedTuple):
    name: str
    right: Right
    topics: tuple[str, ...] = ("*",)
    """Patterns with * and ?: topics that match none of them are not there for this role."""
    masked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns of topics, and the fields that are hidden in them: see `masking`."""

    def sees(self, topic: str) -> bool:
        return any(matches(pattern, topic) for pattern in self.topics)

    @property
    def sees_everything(self) -> bool:
        return "*" in self.topics

    def mask(self, topic: str) -> Mask | None:
        """What is hidden in the records of a topic; None: nothing."""
        fields = [field for pattern, fields in self.masked if matches(pattern, topic) for field in fields]
        return Mask(parse_fields(tuple(dict.fromkeys(fields)))) if fields else None


BUILT_IN = {name: Role(name, right) for name, right in RIGHTS.items()}


def matches(pattern: str, topic: str) -> bool:
    return _compiled(pattern).fullmatch(topic) is not None


@functools.lru_cache(maxsize=1000)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Two stars in a row mean one: such a pattern would only try more ways to say no.
    return re.compile(fnmatch.translate(re.sub(r"\*+", "*", pattern)))


def highest(roles: list[Role]) -> Role | None:
    """Of several that somebody has: the one with the highest right, the first among equals."""
    return max(roles, key=lambda role: role.right, default=None)
