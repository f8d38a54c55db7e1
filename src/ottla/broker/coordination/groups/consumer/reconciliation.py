"""One member's next step towards its target: give up first, then take what is free."""

from collections.abc import Callable
from uuid import UUID

from ottla.broker.coordination.groups.consumer.assignments import NOTHING, Assignment, assignment_of, overlaps, pairs
from ottla.broker.coordination.groups.consumer.members import ConsumerMember, MemberState
from ottla.model.errors import ApiError, ErrorCode

IsFree = Callable[[UUID, int], bool]
"""Whether no member has the partition, or still has to give it up."""


def next_step(
    member: ConsumerMember, target_epoch: int, target: Assignment, is_free: IsFree, owned: Assignment | None
) -> ConsumerMember:
    """`owned` is what the member says it has; None if it did not say."""
    if member.state is MemberState.STABLE:
        return member if member.epoch == target_epoch else _move(member, target_epoch, target, is_free, owned)
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _still_owns(owned, member.revoking):
            return member
        return _move(member, target_epoch, target, is_free, owned, epoch=member.epoch + 1)
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return _move(member, target_epoch, target, is_free, owned)
    if owned is None or owned:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The state of the member is not known here. It must abandon all its partitions and rejoin.",
        )
    return _move(member, target_epoch, target, is_free, owned, epoch=target_epoch)


def _still_owns(owned: Assignment | None, revoking: Assignment) -> bool:
    return owned is None or overlaps(owned, revoking)


def _move(
    member: ConsumerMember,
    target_epoch: int,
    target: Assignment,
    is_free: IsFree,
    owned: Assignment | None,
    epoch: int | None = None,
) -> ConsumerMember:
    wanted, had = set(pairs(target)), set(pairs(member.assigned))
    kept = wanted & had
    revoking = assignment_of(had - kept)
    if revoking and _still_owns(owned, revoking):
        # It stays in its epoch until it has let go.
        return _update(
            member,
            member.epoch if epoch is None else epoch,
            MemberState.UNREVOKED_PARTITIONS,
            assignment_of(kept),
            revoking,
        )
    missing = wanted - kept
    available = {pair for pair in missing if is_free(*pair)}
    state = MemberState.STABLE if available == missing else MemberState.UNRELEASED_PARTITIONS
    return _update(member, target_epoch, state, assignment_of(kept | available), NOTHING)


def _update(
    member: ConsumerMember, epoch: int, state: MemberState, assigned: Assignment, revoking: Assignment
) -> ConsumerMember:
    return member.changed(previous_epoch=member.epoch, epoch=epoch, state=state, assigned=assigned, revoking=revoking)
