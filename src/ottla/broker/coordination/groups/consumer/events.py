"""What members of consumer groups ask for, and what they are answered."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ottla.broker.coordination.groups.consumer.assignments import Assignment
from ottla.model.errors import ErrorCode


class Sight(NamedTuple):
    """Which topics a member may know of: what its pattern finds is no more than that."""

    of: tuple[str, str, int]
    """Principal, host, and which version of the rules: what is the same sees the same."""
    sees: Callable[[str], bool]
    """Gives the same answer for a name whenever it is asked."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sight) and self.of == other.of

    def __hash__(self) -> int:
        return hash(self.of)


class ConsumerHeartbeat(msgspec.Struct, frozen=True):
    """Joins, keeps, changes or ends a membership. What is None has not changed since the member last said it."""

    ticket: int
    group_id: str
    member_id: str
    member_epoch: int
    unique: str = ""
    """Random text for the id of a member that brings none."""
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Assignment | None = None
    brings_own_id: bool = True
    sight: Sight | None = None
    """None: it may know of every topic."""


class ConsumerAnswer(msgspec.Struct, frozen=True):
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    """None: as before."""
