"""What became of each record: acknowledged, read, late, lost, read twice. Pure.

A record is known by its index, and once acknowledged by its offset. A reader that is past that offset and has not seen
it has lost it: this needs no guess. What was not acknowledged may be there or not, and is never missed.
"""

from typing import NamedTuple

PENDING_MAX = 50_000
"""Acknowledged and unread records of one partition; beyond, the oldest are given up: they were late long ago."""
SEEN_KEPT = 10_000


class Outcome(NamedTuple):
    """What a step decided of how many records."""

    read: int = 0
    """In time."""
    delayed: int = 0
    lost: int = 0
    duplicated: int = 0
    delays_ms: tuple[int, ...] = ()

    @property
    def good(self) -> int:
        return self.read

    @property
    def bad(self) -> int:
        return self.delayed + self.lost


class _Sent:
    __slots__ = ("late", "offset", "sent_ms")

    def __init__(self, sent_ms: int) -> None:
        self.sent_ms = sent_ms
        self.offset: int | None = None
        self.late = False


class Ledger:
    """Of one partition. The reader and the acknowledgement may come in either order."""

    def __init__(self, latency_max_ms: int) -> None:
        self._latency_max_ms = latency_max_ms
        self._sent: dict[int, _Sent] = {}
        """By index: under way, or acknowledged and unread."""
        self._read_early: dict[int, int] = {}
        """Index to the time of reading, of those read before they were acknowledged."""
        self._seen: dict[tuple[int, int], None] = {}
        """Index and attempt of those that were read, the last of them."""
        self._position = 0

    @property
    def unread(self) -> int:
        return sum(each.offset is not None for each in self._sent.values())

    def sent(self, index: int, now_ms: int) -> None:
        self._sent[index] = _Sent(now_ms)

    def acknowledged(self, index: int, offset: int) -> Outcome:
        each = self._sent[index]
        each.offset = offset
        if index in self._read_early:
            return self._arrived(index, each, self._read_early.pop(index))
        if offset < self._position:
            del self._sent[index]
            return Outcome(lost=1)
        if len(self._sent) > PENDING_MAX:
            return self._give_up()
        return Outcome()

    def _give_up(self) -> Outcome:
        oldest = next(iter(self._sent))
        return Outcome() if self._sent.pop(oldest).late else Outcome(delayed=1)

    def failed(self, index: int) -> None:
        """Refused, or nobody knows."""
        self._sent.pop(index, None)
        self._read_early.pop(index, None)

    def read(self, index: int, now_ms: int, attempt: int = 0) -> Outcome:
        """A record that was sent again may be there twice, as that of any such producer; one attempt may not."""
        if (index, attempt) in self._seen:
            return Outcome(duplicated=1)
        self._seen[index, attempt] = None
        if len(self._seen) > SEEN_KEPT:
            del self._seen[next(iter(self._seen))]
        each = self._sent.get(index)
        if each is None:
            return Outcome()  # not acknowledged, and yet there
        if each.offset is None:
            self._read_early[index] = now_ms
            return Outcome()
        return self._arrived(index, each, now_ms)

    def _arrived(self, index: int, each: _Sent, now_ms: int) -> Outcome:
        del self._sent[index]
        delay_ms = max(0, now_ms - each.sent_ms)
        if each.late:
            return Outcome(delays_ms=(delay_ms,))  # counted when it became late
        if delay_ms > self._latency_max_ms:
            return Outcome(delayed=1, delays_ms=(delay_ms,))
        return Outcome(read=1, delays_ms=(delay_ms,))

    def passed(self, next_offset: int) -> Outcome:
        """The reader has everything below this offset behind it."""
        self._position = next_offset
        gone = [index for index, each in self._sent.items() if each.offset is not None and each.offset < next_offset]
        for index in gone:
            del self._sent[index]
        return Outcome(lost=len(gone))

    def rewound(self, next_offset: int) -> None:
        """The log has become shorter, and the reader goes on before where it was."""
        self._position = min(self._position, next_offset)

    def tick(self, now_ms: int) -> Outcome:
        """Those that are late from now on."""
        late = 0
        for each in self._sent.values():
            if each.offset is not None and not each.late and now_ms - each.sent_ms > self._latency_max_ms:
                each.late = True
                late += 1
        return Outcome(delayed=late)
