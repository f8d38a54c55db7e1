"""From a key's digest to the newest offset of that key, in a fixed amount of memory.

Open addressing with double hashing over rows of 24 bytes: digest (two words) and offset + 1, where 0 marks a free row.
Many keys are put or looked up in one call; each round of probing handles all keys that are not settled yet.
"""

import numpy as np
import numpy.typing as npt

from ottla.broker.storage.compaction.batches import Longs
from ottla.broker.storage.compaction.digests import Words

ROW_BYTES = 24
SLOTS_MIN = 1009
_HALF = np.uint64(32)


class OffsetMap:
    def __init__(self, slots: int) -> None:
        self.slots = largest_prime_up_to(max(slots, SLOTS_MIN))
        self.size = 0
        # Zeroed memory is the kernel's until it is written to, so a map costs what is put into it.
        self._rows: npt.NDArray[np.uint64] = np.zeros((self.slots, 3), np.uint64)

    def put(self, high: Words, low: Words, offsets: Longs) -> None:
        """Remember the offsets, which must rise from call to call and within one. There must be room for all keys."""
        rows = np.empty((len(offsets), 3), np.uint64)
        rows[:, 0], rows[:, 1], rows[:, 2] = high, low, offsets.astype(np.uint64) + np.uint64(1)
        slot, step = self._first_slot(high), self._step(low)
        while len(rows):
            there = self._rows[slot]
            free = there[:, 2] == 0
            same = (there[:, 0] == rows[:, 0]) & (there[:, 1] == rows[:, 1]) & ~free
            # Of several rows for one slot numpy writes the last: for one key that is the newest offset, and of
            # different keys that want the same free slot one wins and the others go on.
            self._rows[slot[same], 2] = rows[same, 2]
            claimed = np.flatnonzero(free)
            if len(claimed):
                self._rows[slot[claimed]] = rows[claimed]
                now = self._rows[slot[claimed]]
                self.size += int(np.count_nonzero(now[:, 2] == rows[claimed, 2]))
                won = (now[:, 0] == rows[claimed, 0]) & (now[:, 1] == rows[claimed, 1])
                same[claimed[won]] = True
            going_on = ~same
            rows, slot, step = rows[going_on], slot[going_on], step[going_on]
            slot = self._next(slot, step)

    def get(self, high: Words, low: Words) -> Longs:
        """The newest offset of each key, -1 for keys that are not in the map."""
        found = np.full(len(high), -1, np.int64)
        number = np.arange(len(high))
        slot, step = self._first_slot(high), self._step(low)
        while len(number):
            there = self._rows[slot]
            same = (there[:, 0] == high) & (there[:, 1] == low)
            used = there[:, 2] != 0
            hit = same & used
            found[number[hit]] = there[hit, 2].astype(np.int64) - 1
            going_on = used & ~same
            number, high, low = number[going_on], high[going_on], low[going_on]
            slot, step = slot[going_on], step[going_on]
            slot = self._next(slot, step)
        return found

    def missing(self, high: Words, low: Words) -> int:
        """How many different keys of these are not in the map."""
        absent = self.get(high, low) < 0
        pairs = np.stack((high[absent], low[absent]), axis=1)
        return len(np.unique(pairs, axis=0))

    def _first_slot(self, high: Words) -> Longs:
        return ((high >> _HALF) * np.uint64(self.slots) >> _HALF).astype(np.int64)

    def _step(self, low: Words) -> Longs:
        # The number of slots is prime, so every step from 1 up visits all of them.
        return ((low >> _HALF) * np.uint64(self.slots - 1) >> _HALF).astype(np.int64) + 1

    def _next(self, slot: Longs, step: Longs) -> Longs:
        slot = slot + step
        return np.where(slot >= self.slots, slot - self.slots, slot)


def largest_prime_up_to(number: int) -> int:
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number -= 1
    return number
