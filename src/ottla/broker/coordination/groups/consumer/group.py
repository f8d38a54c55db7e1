"""One consumer group: its members, their targets, its epochs and offsets.

Hard state is all but what is marked as soft; only replay changes it, by `replay` and the offset methods. Three
epochs keep order: the group's grows with every change of who is in it and what they want; the assignment's follows when
targets are computed for it; each member's follows when the member has caught up with its target.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from uuid import UUID

from ottla.broker.coordination.groups.consumer import assignments
from ottla.broker.coordination.groups.consumer.assignments import NOTHING, Assignment, pairs
from ottla.broker.coordination.groups.consumer.events import Sight
from ottla.broker.coordination.groups.consumer.members import LEAVING_EPOCH, ConsumerMember, MemberState
from ottla.broker.coordination.groups.consumer.topics import KnownTopics
from ottla.broker.coordination.groups.offset_book import OffsetBook
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.sentinels import NO_EPOCH
from ottla.protocol.consumer_group_records import (
    ConsumerKey,
    ConsumerValue,
    CurrentKey,
    CurrentValue,
    GroupEpochKey,
    GroupEpochValue,
    MemberKey,
    MemberValue,
    RegexKey,
    RegexValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)

CONSUMER_PROTOCOL = "consumer"

ConsumerEntry = tuple[ConsumerKey, ConsumerValue | None]


class ConsumerState(Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """Targets have not been computed yet for the newest group epoch."""
    RECONCILING = "Reconciling"
    """Members are on the way to their targets."""
    STABLE = "Stable"


class ConsumerGroup(OffsetBook):
    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = NO_EPOCH
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, Assignment] = {}
        self.regexes: dict[str, RegexValue] = {}
        self.owners: dict[tuple[UUID, int], str] = {}
        """Who has a partition, or has been told to give it up and has not said yet that it did."""
        self._since: dict[tuple[UUID, int], int] = {}
        """In which epoch of its owner a partition became its own (KIP-1251). Read from a log that was compacted it may
        be a later one: then commits are checked more strictly than they need be."""
        # Soft state
        self.awaited_joins: set[str] = set()
        """Classic members that were told to join again and have not yet."""
        self.awaited_syncs: set[str] = set()
        """Classic members that joined and have not asked yet what they have."""
        self.seen_topics: KnownTopics | None = None
        """The topics that subscriptions were last compared with."""
        self.sights: dict[str, Sight | None] = {}
        """Which topics members may know of, as they last came. Of one that was not heard of since this group was read
        from its log nothing is known: what its pattern found stays, and nothing is added."""

    # Questions

    @property
    def state(self) -> ConsumerState:
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerState.STABLE
        return ConsumerState.RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    def is_free(self, topic_id: UUID, partition: int) -> bool:
        return (topic_id, partition) not in self.owners

    def member(self, member_id: str, instance_id: str | None = None) -> ConsumerMember:
        """Raises if there is no such member, or if its instance is somebody else by now."""
        if instance_id is not None:
            owner = self.static_member(instance_id)
            if owner is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
            if owner.member_id != member_id:
                raise ApiError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {instance_id} was fenced by {owner.member_id}.",
                )
            return owner
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of {self.group_id}.")
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members[member_id]

    def names_of(self, member: ConsumerMember, regexes: Mapping[str, RegexValue] | None = None) -> frozenset[str]:
        """All topics that a member wants, existing or not."""
        found = (self.regexes if regexes is None else regexes).get(member.regex) if member.regex else None
        if found is None:
            return frozenset(member.topics)
        sight = self.sights.get(member.member_id)
        seen = found.topics if sight is None else filter(sight.sees, found.topics)
        return frozenset(member.topics) | frozenset(seen)

    def note_sight(self, member: ConsumerMember, sight: Sight | None) -> frozenset[str] | None:
        """Which topics a member may know of from now on. If they may be others than before: what it wanted so far."""
        member_id = member.member_id
        if member_id in self.sights and self.sights[member_id] == sight:
            return None
        wanted = self.names_of(member)
        self.sights = {known: old for known, old in self.sights.items() if known in self.members}
        self.sights[member_id] = sight
        return wanted

    def subscribed_names(self) -> set[str]:
        return {name for member in self.members.values() for name in self.names_of(member)}

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.names_of(member) for member in self.members.values())

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether something it shall have is still with another member."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        had = set(pairs(member.assigned))
        return any(
            pair not in had and not self.is_free(*pair) for pair in pairs(self.targets.get(member.member_id, NOTHING))
        )

    def all_classic_except(self, member_id: str) -> bool:
        return all(member.is_classic or member.member_id == member_id for member in self.members.values())

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Could a classic member that offers these protocols be part of the group?"""
        if protocol_type != CONSUMER_PROTOCOL:
            return False
        offers = [{name for name, _ in m.classic.protocols} for m in self.members.values() if m.classic is not None]
        return any(all(name in offer for offer in offers) for name in protocols)

    def has_owned_since(self, member: ConsumerMember, epoch: int, partitions: Iterable[tuple[UUID, int]]) -> bool:
        """Whether these are the member's and were already in an earlier epoch of it: nobody else can have read them
        since, and it may not have heard yet that its epoch has moved on."""
        return epoch < member.epoch and all(
            self.owners.get(pair) == member.member_id and self._since[pair] <= epoch for pair in partitions
        )

    def check_epoch(self, member: ConsumerMember, epoch: int) -> ErrorCode:
        """For commits and offset fetches of members."""
        if epoch == member.epoch:
            return ErrorCode.NONE
        return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH

    # Records

    def as_records(self) -> list[ConsumerEntry]:
        """All there is to know about the group, in an order in which it can be replayed."""
        name = self.group_id
        entries: list[ConsumerEntry] = [
            (MemberKey(name, m.member_id), m.as_member_record()) for m in self.members.values()
        ]
        entries.append((GroupEpochKey(name), GroupEpochValue(self.epoch, self.metadata_hash)))
        entries += ((RegexKey(name, regex), value) for regex, value in self.regexes.items())
        entries += (
            (TargetKey(name, member_id), TargetValue(assignments.to_record(target)))
            for member_id, target in self.targets.items()
        )
        if self.assignment_epoch != NO_EPOCH:
            entries.append((TargetEpochKey(name), TargetEpochValue(self.assignment_epoch)))
        entries += ((CurrentKey(name, m.member_id), m.as_current_record()) for m in self.members.values())
        return entries

    def record_keys(self) -> list[ConsumerKey]:
        return [key for key, _ in self.as_records()]

    def value_of(self, key: ConsumerKey) -> ConsumerValue | None:
        """What the log says about the key now, if anything."""
        if isinstance(key, GroupEpochKey):
            return GroupEpochValue(self.epoch, self.metadata_hash)
        if isinstance(key, TargetEpochKey):
            return None if self.assignment_epoch == NO_EPOCH else TargetEpochValue(self.assignment_epoch)
        if isinstance(key, RegexKey):
            return self.regexes.get(key.regex)
        if isinstance(key, TargetKey):
            target = self.targets.get(key.member)
            return None if target is None else TargetValue(assignments.to_record(target))
        member = self.members.get(key.member)
        if member is None:
            return None
        return member.as_member_record() if isinstance(key, MemberKey) else member.as_current_record()

    def as_tombstones(self) -> list[ConsumerEntry]:
        name = self.group_id
        entries: list[ConsumerEntry] = [(CurrentKey(name, member_id), None) for member_id in self.members]
        entries += ((TargetKey(name, member_id), None) for member_id in self.targets)
        entries.append((TargetEpochKey(name), None))
        entries += ((MemberKey(name, member_id), None) for member_id in self.members)
        entries += ((RegexKey(name, regex), None) for regex in self.regexes)
        entries.append((GroupEpochKey(name), None))
        return entries

    # Hard state: called by replay alone

    def replay(self, key: ConsumerKey, value: ConsumerValue | None) -> None:
        """A group epoch without a value is for the machine: the group is gone."""
        if isinstance(key, GroupEpochKey):
            assert isinstance(value, GroupEpochValue)
            self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
        elif isinstance(key, MemberKey):
            self._replay_member(key.member, value)
        elif isinstance(key, CurrentKey):
            self._replay_current(key.member, value)
        elif isinstance(key, TargetEpochKey):
            assert value is None or isinstance(value, TargetEpochValue)
            self.assignment_epoch = NO_EPOCH if value is None else value.assignment_epoch
        elif isinstance(key, TargetKey):
            if value is None:
                self.targets.pop(key.member, None)
            else:
                assert isinstance(value, TargetValue)
                self.targets[key.member] = assignments.from_record(value.topic_partitions)
        elif value is None:
            self.regexes.pop(key.regex, None)
        else:
            assert isinstance(value, RegexValue)
            self.regexes[key.regex] = value

    def _replay_member(self, member_id: str, value: ConsumerValue | None) -> None:
        if value is None:
            self._put(member_id, None)
            self.awaited_joins.discard(member_id)
            self.awaited_syncs.discard(member_id)
            return
        assert isinstance(value, MemberValue)
        self._put(member_id, self.members.get(member_id, ConsumerMember(member_id)).with_member_record(value))

    def _replay_current(self, member_id: str, value: ConsumerValue | None) -> None:
        if value is None:
            member = self.members.get(member_id)
            if member is not None:
                self._put(
                    member_id,
                    member.changed(
                        epoch=LEAVING_EPOCH, previous_epoch=LEAVING_EPOCH, assigned=NOTHING, revoking=NOTHING
                    ),
                )
            return
        assert isinstance(value, CurrentValue)
        self._put(member_id, self.members.get(member_id, ConsumerMember(member_id)).with_current_record(value))

    def put(self, member: ConsumerMember) -> None:
        self._put(member.member_id, member)

    def _put(self, member_id: str, member: ConsumerMember | None) -> None:
        """Swap a member in or out, and keep the indexes in step."""
        before = self.members.get(member_id)
        since: dict[tuple[UUID, int], int] = {}
        if before is not None:
            for partitions in (before.assigned, before.revoking):
                for pair in pairs(partitions):
                    if self.owners.get(pair) == member_id:
                        del self.owners[pair]
                        since[pair] = self._since.pop(pair)
            if before.instance_id is not None and self.static_members.get(before.instance_id) == member_id:
                del self.static_members[before.instance_id]
        if member is None:
            self.members.pop(member_id, None)
            return
        self.members[member_id] = member
        for partitions in (member.assigned, member.revoking):
            for pair in pairs(partitions):
                self.owners[pair] = member_id
                self._since[pair] = since.get(pair, member.epoch)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id
