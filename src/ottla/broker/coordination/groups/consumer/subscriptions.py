"""What follows from a member that joins, asks for other topics or reports its partitions: in this order

1. the member is written if it changed, and its pattern is resolved;
2. the group's epoch grows if subscriptions changed, or the topics behind them did;
3. targets are computed if the epoch grew (now or when a member left);
4. the member takes its next step towards its target.
"""

from collections.abc import Iterable

from ottla.broker.coordination.groups.consumer import assignments
from ottla.broker.coordination.groups.consumer.assignments import NOTHING, Assignment
from ottla.broker.coordination.groups.consumer.assignors import ASSIGNORS, Candidate
from ottla.broker.coordination.groups.consumer.group import ConsumerEntry, ConsumerGroup
from ottla.broker.coordination.groups.consumer.members import ConsumerMember
from ottla.broker.coordination.groups.consumer.reconciliation import next_step
from ottla.broker.coordination.groups.consumer.topics import KnownTopics
from ottla.broker.coordination.groups.events import GroupRules
from ottla.broker.coordination.patterns import compile_pattern
from ottla.protocol.consumer_group_records import (
    CurrentKey,
    GroupEpochKey,
    GroupEpochValue,
    MemberKey,
    RegexKey,
    RegexValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)


class Progress:
    """The records of one request on one group, and the state as it will be when they are replayed."""

    def __init__(self, group: ConsumerGroup, rules: GroupRules, now_wall: int) -> None:
        self.group = group
        self.records: list[ConsumerEntry] = []
        self.members = dict(group.members)
        self.targets = dict(group.targets)
        self.regexes = dict(group.regexes)
        self.epoch = group.epoch
        self.assignment_epoch = group.assignment_epoch
        self._rules = rules
        self._now_wall = now_wall

    # Members come and go

    def remove(self, member_id: str) -> None:
        name = self.group.group_id
        self.records += ((CurrentKey(name, member_id), None), (TargetKey(name, member_id), None))
        self.records.append((MemberKey(name, member_id), None))
        self.targets.pop(member_id, None)
        del self.members[member_id]

    def replace(self, old: ConsumerMember, new: ConsumerMember) -> None:
        """A static member under a new id: target and partitions stay with the instance."""
        name = self.group.group_id
        target = self.targets.get(old.member_id, NOTHING)
        self.remove(old.member_id)
        self.targets[new.member_id] = target
        self.records.append((MemberKey(name, new.member_id), new.as_member_record()))
        self.records.append((TargetKey(name, new.member_id), TargetValue(assignments.to_record(target))))
        self.records.append((CurrentKey(name, new.member_id), new.as_current_record()))
        self.members[new.member_id] = new

    def advance(
        self, member: ConsumerMember, owned: Assignment | None, *, wanted: frozenset[str] | None = None
    ) -> ConsumerMember:
        """The member as it asks to be -> the member as it is now. `wanted` is what it wanted before it may have come
        to know of other topics; None if it has not."""
        name, member_id = self.group.group_id, member.member_id
        before = self.members.get(member_id)
        if before != member:
            self.records.append((MemberKey(name, member_id), member.as_member_record()))
        self.members[member_id] = member
        changed = before is None or (before.topics, before.regex) != (member.topics, member.regex)
        if wanted is not None and member.regex is not None:
            self._resolve_patterns(self._rules.topics)
            changed = changed or self.group.names_of(member, self.regexes) != wanted
        self.refresh(changed=changed)
        if self.epoch > self.assignment_epoch:
            self._assign()
        target = self.targets.get(member_id, NOTHING)
        stepped = next_step(member, self.assignment_epoch, target, self.group.is_free, owned)
        if stepped != member:
            self.records.append((CurrentKey(name, member_id), stepped.as_current_record()))
            self.members[member_id] = stepped
        return stepped

    # Epochs and targets

    def refresh(self, *, changed: bool) -> None:
        """Give the group a new epoch if subscriptions changed, or if the topics are not what they were."""
        topics = self._rules.topics
        if not changed and topics is self.group.seen_topics:
            return
        self._resolve_patterns(topics)
        wanted = {name for member in self.members.values() for name in self.group.names_of(member, self.regexes)}
        fingerprint = topics.fingerprint(wanted)
        if changed or fingerprint != self.group.metadata_hash:
            self.epoch += 1
            self.records.append((GroupEpochKey(self.group.group_id), GroupEpochValue(self.epoch, fingerprint)))
        elif not self.records:
            # Only now: had something been written, it could be lost, and the comparison with it.
            self.group.seen_topics = topics

    def _resolve_patterns(self, topics: KnownTopics) -> None:
        wanted = {member.regex for member in self.members.values() if member.regex}
        for regex in [regex for regex in self.regexes if regex not in wanted]:
            del self.regexes[regex]
            self.records.append((RegexKey(self.group.group_id, regex), None))
        for regex in sorted(wanted):
            known = self.regexes.get(regex)
            found = self._seen_by_some(regex, _matching(regex, topics.candidates()), known)
            if known is None or known.topics != found:
                value = RegexValue(found, 0 if known is None else known.version + 1, self._now_wall)
                self.regexes[regex] = value
                self.records.append((RegexKey(self.group.group_id, regex), value))

    def _seen_by_some(self, regex: str, names: list[str], known: RegexValue | None) -> list[str]:
        """Those of the names that a member with this pattern may know of: another one's rights do not help it."""
        sights = self.group.sights
        members = [member.member_id for member in self.members.values() if member.regex == regex]
        heard_of = {sights[member_id] for member_id in members if member_id in sights}
        if None in heard_of:
            return names
        kept = frozenset(known.topics) if known is not None and len(heard_of) < len(members) else frozenset()
        return [name for name in names if name in kept or any(sight.sees(name) for sight in heard_of if sight)]

    def _assign(self) -> None:
        name, topics = self.group.group_id, self._rules.topics
        candidates = [
            Candidate(
                member.member_id,
                member.instance_id,
                topics.ids_of(self.group.names_of(member, self.regexes)),
                self.targets.get(member.member_id, NOTHING),
            )
            for member in self.members.values()
        ]
        assign = ASSIGNORS[preferred_assignor(self.members.values(), self._rules)]
        for member_id, target in assign(candidates, topics.partitions).items():
            if self.targets.get(member_id) != target:
                self.records.append((TargetKey(name, member_id), TargetValue(assignments.to_record(target))))
                self.targets[member_id] = target
        self.records.append((TargetEpochKey(name), TargetEpochValue(self.epoch)))
        self.assignment_epoch = self.epoch


def _matching(regex: str, names: Iterable[str]) -> list[str]:
    matches = compile_pattern(regex)
    return [name for name in names if matches(name)]


def preferred_assignor(members: Iterable[ConsumerMember], rules: GroupRules) -> str:
    """What most members ask for."""
    votes: dict[str, int] = {}
    for member in members:
        if member.assignor in rules.consumer.assignors:
            votes[member.assignor] = votes.get(member.assignor, 0) + 1
    return max(votes, key=lambda name: votes[name], default=rules.consumer.assignors[0])
