"""Are the copies of a partition equal? Pure: bytes of record batches in, differences in words out."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.protocol.compression import Buffer
from ottla.protocol.records import iterate_batches


class Batch(NamedTuple):
    """What tells one batch from another: where it begins and ends, and its checksum."""

    first: int
    last: int
    crc: int


class Copies(NamedTuple):
    """What comparing some copies came to."""

    next_offset: int
    """Up to here all copies were looked at."""
    problems: list[str]


def batches_in(records: Buffer) -> list[Batch]:
    """The complete batches among these bytes."""
    return [Batch(header.base_offset, header.last_offset, header.crc) for _, header in iterate_batches(records)]


def compare(offset: int, copies: Mapping[int, list[Batch]]) -> Copies:
    """Compare what the replicas (by broker) have from this offset on, as far as all of them have something."""
    if not copies or not all(copies.values()):
        return Copies(offset, [])
    (reference, expected), *others = sorted(copies.items())
    problems: list[str] = []
    for number, batch in enumerate(expected):
        if any(number >= len(batches) for _, batches in others):
            break
        for broker, batches in others:
            difference = _difference(reference, batch, broker, batches[number])
            if difference is not None:
                problems.append(difference)
        if problems:
            # Behind a difference nothing lines up; reading goes on where every copy has begun anew.
            return Copies(max(batches[number].last for batches in copies.values()) + 1, problems)
        offset = max(offset, batch.last + 1)
    return Copies(offset, problems)


def _difference(one: int, here: Batch, other: int, there: Batch) -> str | None:
    if (here.first, here.last) != (there.first, there.last):
        return (
            f"broker {one} has a batch of offsets {here.first} to {here.last}, broker {other} one of "
            f"{there.first} to {there.last}"
        )
    if here.crc != there.crc:
        return (
            f"offsets {here.first} to {here.last} have checksum {here.crc} on broker {one} and {there.crc} on broker "
            f"{other}"
        )
    return None
