"""What a coordinator may ask of the world. Machines return these; the runtime performs them.

A decision is carried out in this order, and the order is the contract:
  1. `records` are appended as one batch. If that fails, nothing else of the decision happens but this: every ticket
     in `replies` and `tickets_if_lost` is answered with the error, and `timers_if_lost` are set.
  2. the records are replayed, which is the only way hard state changes;
  3. `timers` are set, and `replies` are sent as soon as the records are committed;
  4. `then`, if there is one, is called for what follows from it.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

TimerKey = tuple[str, ...]


class Now(NamedTuple):
    """One reading of both clocks, in milliseconds. Timers live on the steady one, records carry the wall's."""

    steady: float
    wall: int


class Reply(NamedTuple):
    """Answer the request that waits under this ticket."""

    ticket: int
    result: object


class SetTimer(NamedTuple):
    """Feed the key back to the machine at `at` (steady ms), in place of any timer with the same key."""

    key: TimerKey
    at: float


class Decision(msgspec.Struct):
    """What a machine wants done. It is filled while deciding and not touched afterwards."""

    records: list[object] = msgspec.field(default_factory=list)
    replies: list[Reply] = msgspec.field(default_factory=list)
    timers: list[SetTimer] = msgspec.field(default_factory=list)
    tickets_if_lost: list[int] = msgspec.field(default_factory=list)
    timers_if_lost: list[SetTimer] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    then: Callable[[], "Decision"] | None = None
    rebalances: int = 0
    """How many rebalances this brings to an end, for those who count them."""

    def reply(self, ticket: int, result: object) -> None:
        self.replies.append(Reply(ticket, result))

    def timer(self, key: TimerKey, at: float) -> None:
        self.timers.append(SetTimer(key, at))

    def note(self, text: str) -> None:
        """Something an operator wants to read in the log."""
        self.notes.append(text)
