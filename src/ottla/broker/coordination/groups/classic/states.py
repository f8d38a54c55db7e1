"""The states of a classic group, and which may follow which."""

from enum import Enum


class State(Enum):
    EMPTY = "Empty"
    """No members. Offsets may be kept, and they age from the moment the group became empty."""
    PREPARING = "PreparingRebalance"
    """Members are called to join; their requests are parked until all are here or time is up."""
    COMPLETING = "CompletingRebalance"
    """The new generation is known; everybody waits for the leader's assignment."""
    STABLE = "Stable"
    """The assignment is written and handed out."""
    DEAD = "Dead"
    """This broker no longer answers for the group."""


TRANSITIONS: dict[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.PREPARING, State.DEAD}),
    State.PREPARING: frozenset({State.COMPLETING, State.EMPTY, State.DEAD}),
    State.COMPLETING: frozenset({State.STABLE, State.PREPARING, State.DEAD}),
    State.STABLE: frozenset({State.PREPARING, State.DEAD}),
    State.DEAD: frozenset({State.DEAD}),
}
