"""A ledger of what producers were promised, and the audit of what the log then holds.

Each producer numbers its records per partition: 0, 1, 2, ... A producer that is idempotent and gives nothing up leaves
no gaps, so in the log the numbers of one producer in one partition must be exactly 0, 1, 2, ...: a missing number is
a lost record, a repeated one a double, a smaller one a record out of order. A record that was acknowledged must stand
at the offset it was acknowledged with, if it was told one: a client that hears of a later record of the same producer
knows by that that the earlier one is there too, but not where.
"""

import struct
from array import array
from collections.abc import Iterable
from typing import NamedTuple

_STAMP = struct.Struct(">HHQ")
PROBLEMS_KEPT_MAX = 20
OFFSET_NOT_TOLD = -1

Promises = dict[tuple[int, int], "array[int]"]
"""Offsets acknowledged, by (producer, partition); a record's place in the array is its number."""


class Stamp(NamedTuple):
    """What the first bytes of a record's value say: who wrote it, where to, and as which one."""

    producer: int
    partition: int
    number: int

    def to_value(self, value_bytes: int) -> bytes:
        return _STAMP.pack(*self).ljust(value_bytes, b".")

    @classmethod
    def of_value(cls, value: bytes) -> "Stamp":
        return cls(*_STAMP.unpack_from(value))


class Ledger:
    """Acknowledgements, in the order in which they came. One thread writes for each producer."""

    def __init__(self) -> None:
        self._offsets: Promises = {}
        self.refusals: list[str] = []
        """Records that were given up, in words: the audit counts on there being none."""

    def acknowledged(self, stamp: Stamp, offset: int) -> None:
        offsets = self._offsets.setdefault((stamp.producer, stamp.partition), array("q"))
        if stamp.number != len(offsets):
            self.refusals.append(f"{stamp} was acknowledged when number {len(offsets)} was due")
        offsets.append(offset)

    def refused(self, stamp: Stamp, reason: str) -> None:
        self.refusals.append(f"{stamp} was given up: {reason}")

    @property
    def total(self) -> int:
        return sum(len(offsets) for offsets in list(self._offsets.values()))

    def promised(self) -> Promises:
        """A copy of what is acknowledged by now: the audit of a log read after this must find all of it."""
        return {key: offsets[:] for key, offsets in list(self._offsets.items())}


class Audit(NamedTuple):
    records_read: int
    acknowledged: int
    lost: int
    doubled: int
    out_of_order: int
    misplaced: int
    problems: tuple[str, ...]
    """The first few, in words."""

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.out_of_order or self.misplaced or self.problems)


def audit(promised: Promises, read: Iterable[tuple[int, int, bytes]]) -> Audit:
    """Compare promises with the log: `read` gives (partition, offset, value), each partition from its beginning."""
    due: dict[tuple[int, int], int] = {}
    next_offset: dict[int, int] = {}
    problems: list[str] = []
    records = lost = doubled = out_of_order = misplaced = 0
    for partition, offset, value in read:
        records += 1
        stamp = Stamp.of_value(value)
        key = (stamp.producer, stamp.partition)
        expected = due.get(key, 0)
        if stamp.number == expected:
            due[key] = expected + 1
        elif stamp.number > expected:
            out_of_order += 1
            problems.append(f"{stamp} at offset {offset}, where number {expected} was due")
            due[key] = stamp.number + 1
        else:
            doubled += 1
            problems.append(f"{stamp} at offset {offset} stood in the log before")
        offsets = promised.get(key, ())
        in_place = stamp.partition == partition and offset == next_offset.setdefault(partition, offset)
        told = offsets[stamp.number] if stamp.number < len(offsets) else OFFSET_NOT_TOLD
        if not in_place or told not in (offset, OFFSET_NOT_TOLD):
            misplaced += 1
            problems.append(f"{stamp} was found in partition {partition} at offset {offset}, not where it belongs")
        next_offset[partition] = offset + 1
        del problems[PROBLEMS_KEPT_MAX:]
    for key, offsets in promised.items():
        missing = max(0, len(offsets) - due.get(key, 0))
        if missing:
            lost += missing
            problems.append(
                f"the last {missing} records acknowledged to producer {key[0]} in partition {key[1]} are gone"
            )
    acknowledged = sum(len(offsets) for offsets in promised.values())
    return Audit(records, acknowledged, lost, doubled, out_of_order, misplaced, tuple(problems[:PROBLEMS_KEPT_MAX]))
