"""The settings that consumer groups are decided by."""

from collections.abc import Mapping

import msgspec

from ottla.broker.coordination.groups.consumer.assignors import RANGE, UNIFORM


class GroupTimes(msgspec.Struct, frozen=True):
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000


class ConsumerRules(msgspec.Struct, frozen=True):
    is_enabled: bool = True
    times: GroupTimes = GroupTimes()
    times_of_groups: Mapping[str, GroupTimes] = msgspec.field(default_factory=dict)
    """Groups that have their own."""
    max_size: int = 0x7FFFFFFF
    assignors: tuple[str, ...] = (UNIFORM, RANGE)
    """The first is what members get who ask for none."""
    can_upgrade: bool = True
    can_downgrade: bool = True

    def times_of(self, group_id: str) -> GroupTimes:
        return self.times_of_groups.get(group_id, self.times)
