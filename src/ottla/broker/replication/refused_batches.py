"""Producers whose batch was refused for a reason that passes: what they sent behind it must not overtake it.

A producer has several batches on their way at once. When too few replicas are in sync, the first of them is refused,
and the next may arrive when there are enough again. To append it would be a gap; to call it out of order makes
librdkafka begin a new epoch, in which it sends again all that it has no answer for: what was appended but not yet
acknowledged would then be there twice. So it is refused as well, and everything comes again in order.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.broker.storage.producer_state import ProducerEntry, is_later
from ottla.protocol.compression import Buffer
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import NO_SEQUENCE, BatchHeader, read_header

PATIENCE_SECONDS = 30.0
"""A producer that has not come again by then has given that batch up."""
PRODUCERS_MAX = 1_000


class _Batch(NamedTuple):
    epoch: int
    sequence: int
    refused_s: float


class RefusedBatches:
    """The first batch of each producer that was refused and has not come again."""

    def __init__(self) -> None:
        self._first: dict[int, _Batch] = {}

    def __bool__(self) -> bool:
        return bool(self._first)

    def note(self, records: Buffer, known: Mapping[int, ProducerEntry], now_s: float) -> None:
        """This batch is refused now; `known` is what the log has of producers. A retry of what is there is no gap."""
        header = _of_idempotent_producer(records)
        if header is None:
            return
        entry = known.get(header.producer_id)
        batch = _Batch(header.producer_epoch, header.base_sequence, now_s)
        if _has_come(batch, entry):
            return
        before = self._first.pop(header.producer_id, None)
        if before is not None and _precedes(before, batch) and not _has_come(before, entry):
            batch = before._replace(refused_s=now_s)
        self._first[header.producer_id] = batch
        if len(self._first) > PRODUCERS_MAX:
            del self._first[next(iter(self._first))]

    def overtakes(self, records: Buffer, known: Mapping[int, ProducerEntry], now_s: float) -> bool:
        """Whether this batch was sent behind one that has not come again.

        What is not waited for any more is forgotten: it has come, here or at another leader, or was given up.
        """
        header = _of_idempotent_producer(records)
        first = self._first.get(header.producer_id) if header is not None else None
        if header is None or first is None:
            return False
        given_up = first.epoch != header.producer_epoch or now_s - first.refused_s > PATIENCE_SECONDS
        if given_up or _has_come(first, known.get(header.producer_id)):
            del self._first[header.producer_id]
            return False
        return _precedes(first, _Batch(header.producer_epoch, header.base_sequence, now_s))


def _of_idempotent_producer(records: Buffer) -> BatchHeader | None:
    """The header of the batch, if it has a sequence; what does not parse is told by whoever appends it."""
    try:
        header = read_header(records)
    except MalformedMessage:
        return None
    return header if header.base_sequence != NO_SEQUENCE else None


def _has_come(batch: _Batch, entry: ProducerEntry | None) -> bool:
    return (
        entry is not None
        and entry.epoch == batch.epoch
        and entry.last_sequence != NO_SEQUENCE
        and not is_later(batch.sequence, entry.last_sequence)
    )


def _precedes(first: _Batch, second: _Batch) -> bool:
    return first.epoch == second.epoch and is_later(second.sequence, first.sequence)
