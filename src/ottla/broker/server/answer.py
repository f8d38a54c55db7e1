"""A request on its way through the broker, with the moments at which it passed from one stage to the next."""

from collections import deque
from collections.abc import Callable

import msgspec

from ottla.broker.handlers.context import Call, Parked, Response


class Answer(msgspec.Struct):
    """What was asked, how the response begins, and the response or the promise of one.

    The moments are those of Kafka's request metrics, in nanoseconds of a clock that never goes back. Neighbours share
    a reading where nothing happens between them; a stage that was not reached is 0.
    """

    call: Call
    correlation_id: int
    flexible_header: bool
    outcome: Response | Parked
    bare: bool = False
    """The response is a size and bytes, without a header: a token to a client that logs in the old way."""
    received_ns: int = 0
    """The last bytes of the request came out of the socket."""
    dispatched_ns: int = 0
    """Its turn came: requests that arrive together are worked on one after the other."""
    local_done_ns: int = 0
    """The handler returned, with a response or with something to wait for."""
    replied_ns: int = 0
    """The response was known. It may still wait for those of earlier requests."""
    sending_ns: int = 0
    """Its turn to be sent came. Kept, as what follows, only of what is watched (`AnswerWatch`)."""
    sent_ns: int = 0
    """Its last byte was taken by the socket."""
    last_byte: int = 0
    """Where the response ends in all that the connection ever sends."""
    size: int = 0
    """Of the request, in bytes."""
    weight: int = 1
    """For how many requests it stands: under load not every one is watched."""


def note_sent(unsent: deque[Answer], sent: int, sending_ns: int, now_ns: int, watch: "AnswerWatch | None") -> None:
    """So many bytes of the connection have left: those whose last is among them are answered."""
    while unsent and unsent[0].last_byte <= sent:
        answer = unsent.popleft()
        answer.sending_ns = answer.sending_ns or sending_ns
        answer.sent_ns = now_ns
        for listener in watch.listeners if watch is not None else ():
            listener(answer)
    for answer in unsent:
        answer.sending_ns = answer.sending_ns or sending_ns


SLOW_NS = 10_000_000
"""A request that took this long is watched in any case, unless there are many of them as well."""
SAMPLED_ABOVE = 1_000
SAMPLED_EVERY = 32
_SAMPLED_FROM = SAMPLED_ABOVE // 2
"""In half a second."""


class AnswerWatch:
    """Which answers somebody is told of, when they have left, with their moments.

    All of them while there are few; with more than a thousand a second one in 32 stands for the others, and those
    that took long are told of all the same and stand for themselves. So what is rare is never missed, and what is
    frequent costs little. If more than a thousand a second take long, which is what a client makes of them that sends
    hundreds of requests before it reads an answer, one in 32 of those stands for the others, too. `left` is counted
    down by connections, without a call.
    """

    __slots__ = ("_came", "_slow", "_slow_every", "every", "is_whole", "left", "listeners", "wants_slow")

    def __init__(self) -> None:
        self.listeners: list[Callable[[Answer], None]] = []
        self.is_whole = False
        """Whether somebody wants every single one, whatever it costs."""
        self.wants_slow = False
        """Whether somebody wants every single one that took long."""
        self.every = 1
        self.left = 0
        self._came = 0
        self._slow_every = 1
        self._slow = 0

    def take(self, answer: Answer) -> bool:
        """Its turn to be watched has come, or it took long; whether it is."""
        if self.left < 0:
            self.left = self.every - 1
        if answer.replied_ns - answer.received_ns < SLOW_NS:
            answer.weight = self.every
            self._came += self.every
            if self._came == _SAMPLED_FROM and not self.is_whole:
                self.every = SAMPLED_EVERY  # at once: a burst would be over before the half second is
            return True
        self._slow += 1
        answer.weight = self._slow_every
        if self._slow == _SAMPLED_FROM and not (self.is_whole or self.wants_slow):
            self._slow_every = SAMPLED_EVERY
        return self._slow % answer.weight == 0

    def half_second_is_over(self) -> None:
        if self._came < _SAMPLED_FROM or self.is_whole:
            self.every, self.left = 1, 0
        if self._slow < _SAMPLED_FROM or self.is_whole or self.wants_slow:
            self._slow_every = 1
        self._came = self._slow = 0


class Slot:
    """The place of one response in the order of the connection."""

    __slots__ = ("answer", "response", "size")

    def __init__(self, answer: Answer, size: int, response: Response | None = None) -> None:
        self.answer = answer
        self.size = size
        self.response = response
