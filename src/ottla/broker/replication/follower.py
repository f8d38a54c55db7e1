"""What a follower decides about one partition: where to ask on, what to cut off, when to ask again. Pure."""

from enum import Enum

from ottla.broker.storage.leader_epochs import LeaderEpochs
from ottla.model.errors import ErrorCode

FIRST_PAUSE_S = 0.02
DOUBLINGS_MAX = 16


class Reaction(Enum):
    """What to do about an error in the leader's answer."""

    TRUNCATE_FULLY = "the leader's log begins further on"
    WAIT = "ask again after a pause"


def reaction_to(code: int, leader_start: int) -> Reaction:
    """Whatever it is, the leader or the metadata will mend it; only what lies outside of the leader's log is lost."""
    if code == ErrorCode.OFFSET_OUT_OF_RANGE and leader_start >= 0:
        return Reaction.TRUNCATE_FULLY
    return Reaction.WAIT


def cut_for(epochs: LeaderEpochs, end_offset: int, leader_epoch: int, leader_end: int) -> int:
    """Where to cut the log when the leader says that its history parted from ours.

    The leader names the largest epoch it knows that is not above our last, and where that ended there. If we know that
    epoch too, we keep what both have of it. If we do not, we keep what we have from before it and ask again: the two
    histories part even earlier.
    """
    own_epoch, own_end = epochs.end_offset(leader_epoch, end_offset)
    if own_end < 0:
        return min(leader_end, end_offset)
    if own_epoch != leader_epoch:
        return min(own_end, end_offset)
    return min(own_end, leader_end, end_offset)


def pause_s(failures: int, max_s: float) -> float:
    """How long to wait after so many failures in a row."""
    return min(max_s, FIRST_PAUSE_S * 2.0 ** min(failures - 1, DOUBLINGS_MAX))
