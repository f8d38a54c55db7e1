"""Rules of committed offsets: who may commit, what is kept, and for how long."""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from ottla.broker.coordination.groups.classic.group import ClassicGroup
from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.consumer.group import ConsumerGroup
from ottla.broker.coordination.groups.events import NO_EXPIRY, Commit, GroupRules
from ottla.broker.coordination.groups.offset_book import OffsetBook
from ottla.broker.coordination.groups.pending import PendingOffsets
from ottla.model.errors import ErrorCode
from ottla.model.names import NO_TOPIC_ID
from ottla.protocol.consumer_group_records import ConsumerKey, ConsumerValue
from ottla.protocol.coordinator_records import GroupMetadataValue, Key, OffsetCommitKey, OffsetCommitValue

Value = GroupMetadataValue | OffsetCommitValue | ConsumerValue
Entry = tuple[Key | ConsumerKey, Value | None]
"""A record as the machines see it; no value means that the key is gone."""

AnyGroup = ClassicGroup | ConsumerGroup

TIMESTAMP_MAX = 2**63 - 1


class Committed(NamedTuple):
    records: list[Entry]
    errors: list[ErrorCode]
    """One for each offset of the request, in its order."""


def check_commit(group: ClassicGroup, event: Commit) -> ErrorCode:
    if event.generation < 0 and group.state is State.EMPTY:
        return ErrorCode.NONE  # a consumer that assigns its own partitions, or an administrator
    if event.generation < 0 and not event.member_id and event.instance_id is None:
        # Members are at work here: outsiders may not move their offsets. Old transactional producers cannot say who
        # they are; they are believed.
        return ErrorCode.NONE if event.is_transactional else ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(event.member_id, event.instance_id)
    if error:
        return error
    if event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    # The member knows the new generation but not yet what it owns in it. What it read before belongs to its
    # transaction, though, which it must be able to finish.
    in_between = group.state is State.COMPLETING and not event.is_transactional
    return ErrorCode.REBALANCE_IN_PROGRESS if in_between else ErrorCode.NONE


def commit(event: Commit, now_wall: int, rules: GroupRules) -> Committed:
    group_id = event.group_id
    expire_timestamp = -1 if event.retention_ms == NO_EXPIRY else min(now_wall + event.retention_ms, TIMESTAMP_MAX)
    records: list[Entry] = []
    errors = []
    limit = rules.offset_metadata_max_bytes
    for item in event.offsets:
        metadata = item.metadata or ""
        if len(metadata) > limit:
            errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        value = OffsetCommitValue(
            item.offset, now_wall, item.leader_epoch, metadata, expire_timestamp, item.topic_id
        )  # fmt: skip
        records.append((OffsetCommitKey(group_id, item.topic, item.partition), value))
        errors.append(ErrorCode.NONE)
    return Committed(records, errors)


def check_consumer_commit(group: ConsumerGroup, event: Commit) -> ErrorCode:
    if event.generation < 0 and group.is_empty:
        return ErrorCode.NONE
    member = group.members.get(event.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not (event.is_transactional or member.is_classic or event.knows_member_epochs):
        return ErrorCode.UNSUPPORTED_VERSION
    committed = ((each.topic_id, each.partition) for each in event.offsets)
    if group.has_owned_since(member, event.generation, committed):
        return ErrorCode.NONE
    error = group.check_epoch(member, event.generation)
    if error is ErrorCode.STALE_MEMBER_EPOCH and event.is_transactional:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def find(group: OffsetBook, topic: str, partition: int, topic_id: UUID = NO_TOPIC_ID) -> OffsetCommitValue | None:
    """What was committed, unless it was for an earlier topic of the same name."""
    value = group.offsets.get(topic, _NOTHING).get(partition)
    if value is None or topic_id == NO_TOPIC_ID or value.topic_id in (topic_id, NO_TOPIC_ID):
        return value
    return None


_NOTHING: dict[int, OffsetCommitValue] = {}


def check_delete(group: AnyGroup) -> ErrorCode:
    """Offsets of a group at work may be deleted only where its subscriptions can be known."""
    if isinstance(group, ConsumerGroup):
        return ErrorCode.NONE
    return ErrorCode.NONE if group.is_empty or group.uses_consumer_protocol else ErrorCode.NON_EMPTY_GROUP


def delete(group: AnyGroup, partitions: Iterable[tuple[str, int]]) -> Committed:
    records: list[Entry] = []
    errors = []
    for topic, partition in partitions:
        if group.is_subscribed_to(topic):
            errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        errors.append(ErrorCode.NONE)
        if partition in group.offsets.get(topic, {}):
            records.append((OffsetCommitKey(group.group_id, topic, partition), None))
    return Committed(records, errors)


def delete_all(group: OffsetBook, pending: PendingOffsets) -> list[Entry]:
    keys = {
        OffsetCommitKey(group.group_id, topic, partition): None
        for topic, partitions in group.offsets.items()
        for partition in partitions
    }
    keys.update(dict.fromkeys(pending.of_group(group.group_id)))
    return [(key, None) for key in keys]


def committed_keys(group: OffsetBook, topic: str) -> list[OffsetCommitKey]:
    return [OffsetCommitKey(group.group_id, topic, partition) for partition in group.offsets.get(topic, ())]


def expire(group: AnyGroup, pending: PendingOffsets, now_wall: int, retention_ms: int) -> tuple[list[Entry], bool]:
    """Drop what has been kept long enough. The flag tells whether nothing is left.

    While a group has members its offsets stay, except for topics it no longer reads. Without members they age
    together from the moment the last one left; in groups that never had any, and in those of the consumer protocol,
    each ages from its commit.
    """
    if not group.offsets:
        return [], True
    since_empty = None
    if isinstance(group, ClassicGroup) and group.protocol_type is not None:
        if group.is_empty:
            since_empty = group.state_timestamp if group.state_timestamp != -1 else None
        elif not (group.uses_consumer_protocol and group.subscribed_topics is not None and group.state is State.STABLE):
            return [], False
    expired: list[Entry] = []
    nothing_left = True
    for topic, partitions in group.offsets.items():
        if group.is_subscribed_to(topic):
            nothing_left = False
            continue
        for partition, value in partitions.items():
            key = OffsetCommitKey(group.group_id, topic, partition)
            if _is_expired(value, since_empty, now_wall, retention_ms) and key not in pending:
                expired.append((key, None))
            else:
                nothing_left = False
    return expired, nothing_left


def _is_expired(value: OffsetCommitValue, since_empty: int | None, now_wall: int, retention_ms: int) -> bool:
    if value.expire_timestamp != -1:
        return now_wall >= value.expire_timestamp
    return now_wall - (value.commit_timestamp if since_empty is None else since_empty) >= retention_ms
