"""Which records of a fetch belong to transactions that were aborted."""

from collections.abc import Sequence

from ottla.protocol.compression import Buffer
from ottla.protocol.records import BatchHeader, decode_batch

_ABORT_MARKER = b"\x00\x00\x00\x00"  # a control record's key: version 0, then the kind, 0 for abort


class AbortedWalk:
    """Whose records do not count, from batch to batch of one fetch response.

    `aborted` holds (producer id, first offset) of the aborted transactions, as in the response.
    """

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._waiting = sorted(aborted, key=lambda entry: entry[1], reverse=True)
        self._aborting: set[int] = set()

    def covers(self, header: BatchHeader) -> bool:
        self._begin_up_to(header.last_offset)
        return header.producer_id in self._aborting

    def pass_marker(self, records: Buffer, position: int, header: BatchHeader) -> None:
        self._begin_up_to(header.last_offset)
        if header.producer_id in self._aborting:
            key = next((record.key for record in decode_batch(records, position)), None)
            if key == _ABORT_MARKER:
                self._aborting.discard(header.producer_id)

    def _begin_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[-1][1] <= offset:
            self._aborting.add(self._waiting.pop()[0])
