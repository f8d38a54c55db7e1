"""One classic group: its state, and the questions and small steps that all its rules are made of.

Hard state is `stored` (the last group record) and `offsets`: only `adopt`, `put_offset` and `drop_offset` write it, and
only replay calls those. Everything else is soft: it runs ahead of the record while a rebalance is under way, and is
lost with the process. Whenever the group is Empty or Stable, soft state says what `stored` says.
"""

from ottla.broker.coordination.effects import Decision, Now, SetTimer
from ottla.broker.coordination.groups.classic import members as member_forms
from ottla.broker.coordination.groups.classic.members import Member
from ottla.broker.coordination.groups.classic.states import TRANSITIONS, State
from ottla.broker.coordination.groups.events import NO_MEMBER, Joined, JoinedMember, Protocols, Synced
from ottla.broker.coordination.groups.offset_book import OffsetBook
from ottla.model.errors import ErrorCode
from ottla.protocol import codec
from ottla.protocol.coordinator_records import GroupMetadataValue
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER_PROTOCOL = "consumer"
SESSION_TIMER = "session"
JOIN_TIMER = "join"
SYNC_TIMER = "sync"


class ClassicGroup(OffsetBook):
    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        # Hard state, beside the offsets
        self.stored: GroupMetadataValue | None = None
        # Soft state
        self.state = State.EMPTY
        self.previous_state = State.DEAD
        self.state_timestamp = -1
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.pending_joins: set[str] = set()
        """Ids handed out with MEMBER_ID_REQUIRED whose owner has not come back yet."""
        self.pending_syncs: set[str] = set()
        """Members of this generation that have not asked for their assignment yet."""
        self.joining = 0
        """How many members have a parked join."""
        self.subscribed_topics: frozenset[str] | None = None
        """None: not known, because the members do not speak the consumer protocol."""
        self.new_member_added = False
        self.initial_delay_ms = 0
        self.initial_remaining_ms = 0
        self._support: dict[str, int] = {}

    # Questions

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def is_simple(self) -> bool:
        """Never had members: somebody commits offsets here without joining."""
        return self.protocol_type is None and self.is_empty and not self.pending_joins

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    def is_leader(self, member_id: str) -> bool:
        return self.leader == member_id

    def has_all_joined(self) -> bool:
        return self.joining == len(self.members) and not self.pending_joins

    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        if instance_id is not None:
            owner = self.static_members.get(instance_id)
            if owner is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Could a member that offers these protocols be part of the group?"""
        if self.state is State.EMPTY:
            return bool(protocol_type) and bool(protocols)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(self._support.get(name, 0) == size for name, _ in protocols)

    def select_protocol(self) -> str:
        """Each member votes for its favourite among those that all support; most votes win."""
        size = len(self.members)
        candidates = {name for name, count in self._support.items() if count == size}
        votes: dict[str, int] = {}
        for member in self.members.values():
            favourite = member.vote(candidates)
            votes[favourite] = votes.get(favourite, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def would_select(self, member: Member, protocols: Protocols) -> str:
        """The protocol that would be chosen if this member offered these instead."""
        before = member.protocols
        self.set_protocols(member, protocols)
        selected = self.select_protocol()
        self.set_protocols(member, before)
        return selected

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def joined(self, member_id: str, *, skip_assignment: bool = False) -> Joined:
        """The answer to a join: what this generation is. The leader is also told who is in it."""
        members: tuple[JoinedMember, ...] = ()
        if self.is_leader(member_id):
            members = tuple(
                JoinedMember(member.member_id, member.instance_id, member.metadata_for(self.protocol))
                for member in self.members.values()
            )
        return Joined(
            member_id=member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or NO_MEMBER,
            skip_assignment=skip_assignment,
            members=members,
        )

    def as_record(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            members=tuple(
                member.as_record(self.protocol, assignments.get(member.member_id, b""))
                for member in self.members.values()
            ),
            state_timestamp=self.state_timestamp,
        )

    def as_empty_record(self, now: Now) -> GroupMetadataValue:
        """The generation without members that follows this one."""
        return GroupMetadataValue(self.protocol_type or "", self.generation + 1, None, None, (), now.wall)

    # Steps

    def become(self, state: State, now_wall: int) -> None:
        assert state in TRANSITIONS[self.state], (self.group_id, self.state, state)
        self.previous_state = self.state
        self.state = state
        self.state_timestamp = now_wall

    def add(self, member: Member) -> None:
        assert member.member_id not in self.members, member.member_id
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members, member.instance_id
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        if member.join_ticket is not None:
            self.joining += 1
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str, out: Decision) -> None:
        """Forget a member or a pending one. What it still waits for is answered: it is not known any more."""
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)
        member = self.members.get(member_id)
        if member is None:
            return
        self.answer_join(member, Joined(NO_MEMBER, ErrorCode.UNKNOWN_MEMBER_ID), out)
        self.answer_sync(member, Synced(ErrorCode.UNKNOWN_MEMBER_ID), out)
        self._detach(member)
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace_static(self, old: Member, new_id: str, out: Decision) -> Member:
        """A static member came back under a new id: the old one is fenced, its place is kept."""
        assert old.instance_id is not None
        self.answer_join(old, Joined(old.member_id, ErrorCode.FENCED_INSTANCE_ID), out)
        self.answer_sync(old, Synced(ErrorCode.FENCED_INSTANCE_ID), out)
        return self._rename(old, new_id)

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def park_join(self, member: Member, ticket: int, out: Decision) -> None:
        if member.join_ticket is None:
            self.joining += 1
        else:  # the client gave up on the earlier request and asks again
            out.reply(member.join_ticket, Joined(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS))
        member.join_ticket = ticket

    def answer_join(self, member: Member, result: Joined, out: Decision) -> None:
        if member.join_ticket is not None:
            out.reply(member.join_ticket, result)
            member.join_ticket = None
            self.joining -= 1

    def park_sync(self, member: Member, ticket: int, out: Decision) -> None:
        if member.sync_ticket is not None:
            out.reply(member.sync_ticket, Synced(ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_ticket = ticket

    def answer_sync(self, member: Member, result: Synced, out: Decision) -> bool:
        if member.sync_ticket is None:
            return False
        out.reply(member.sync_ticket, result)
        member.sync_ticket = None
        return True

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader is a member that has joined. False if none has."""
        if self.leader is not None and self.members[self.leader].join_ticket is not None:
            return True
        joined = next((member for member in self.members.values() if member.join_ticket is not None), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    def extend_session(self, member: Member, now: Now, timeout_ms: int | None = None) -> SetTimer | None:
        """Move the end of the session. A timer is only returned if the one that is set would come too late."""
        member.deadline = deadline = now.steady + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
        if member.timer_at is not None and member.timer_at <= deadline:
            return None
        member.timer_at = deadline
        return SetTimer((SESSION_TIMER, self.group_id, member.member_id), deadline)

    def touch(self, member: Member, now: Now, out: Decision, timeout_ms: int | None = None) -> None:
        timer = self.extend_session(member, now, timeout_ms)
        if timer is not None:
            out.timers.append(timer)

    def refresh_subscriptions(self) -> None:
        self.subscribed_topics = self._subscriptions()

    # Hard state: called by replay alone

    def adopt(self, value: GroupMetadataValue) -> None:
        """Make the group what the record says, keeping what is known beyond it about members that stay."""
        self.stored = value
        before = self.members
        kept: dict[str, Member] = {}
        for record in value.members:
            member = before.get(record.member_id)
            if member is None and record.group_instance_id in self.static_members:
                member = self._rename(before[self.static_members[record.group_instance_id]], record.member_id)
            if member is None:
                member = member_forms.from_record(record, value.protocol)
            if member.metadata_for(value.protocol) != record.subscription:
                member.protocols = member_forms.protocols_of(record, value.protocol)
            member.assignment = record.assignment
            member.session_timeout_ms = record.session_timeout_ms
            member.rebalance_timeout_ms = member_forms.rebalance_timeout_of(record)
            kept[record.member_id] = member
        self.members = kept
        self.static_members = {m.instance_id: m.member_id for m in kept.values() if m.instance_id is not None}
        self._support = {}
        for member in kept.values():
            self._count(member.protocols, 1)
        self.joining = sum(member.join_ticket is not None for member in kept.values())
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol = value.protocol
        self.leader = value.leader
        self.previous_state, self.state = self.state, State.STABLE if kept else State.EMPTY
        self.state_timestamp = value.state_timestamp
        self.refresh_subscriptions()

    # Details

    def _rename(self, member: Member, new_id: str) -> Member:
        assert member.instance_id is not None
        old_id = member.member_id
        # Rebuilt in order, so that who is first (and would lead next) does not depend on who was restarted.
        self.members = {new_id if key == old_id else key: value for key, value in self.members.items()}
        member.member_id = new_id
        member.timer_at = None  # the old timer carries the old id and will find nobody
        self.static_members[member.instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        if old_id in self.pending_syncs:
            self.pending_syncs.remove(old_id)
            self.pending_syncs.add(new_id)
        return member

    def _detach(self, member: Member) -> None:
        del self.members[member.member_id]
        self._count(member.protocols, -1)

    def _count(self, protocols: Protocols, change: int) -> None:
        for name in {name for name, _ in protocols}:
            count = self._support.get(name, 0) + change
            if count:
                self._support[name] = count
            else:
                del self._support[name]

    def _subscriptions(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        topics: set[str] = set()
        for member in self.members.values():
            metadata = member.metadata_for(self.protocol)
            try:
                # Version 0 is the beginning of every version, so newer clients are understood as well. The first
                # two bytes are the version.
                subscription, _ = codec.decode_from(ConsumerProtocolSubscription, 0, metadata, 2)
            except MalformedMessage:
                return None
            topics.update(subscription.topics)
        return frozenset(topics)
