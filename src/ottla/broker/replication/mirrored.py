"""Appending what a mirror brings from another cluster: by the leader, but with the offsets that it has there.

Followers of this cluster fetch it like anything else, and it is committed like anything else.
"""

from typing import NamedTuple

from ottla.broker.replication.partition import Partition
from ottla.broker.storage.mirrored import Batches, new_batches, stamp_epochs
from ottla.model.errors import ApiError, ErrorCode


class Piece(NamedTuple):
    """What the source has from an offset on."""

    source: str
    fetch_offset: int
    log_start_offset: int
    records: bytearray | memoryview
    batches: Batches


def append_mirrored(partition: Partition, piece: Piece, now_ms: int) -> int:
    """Append what is new; how many records that are. ApiError, and nothing is changed, if it does not follow on."""
    partition.check_leader()
    partition.check_enough_replicas()
    log = partition.log
    if not piece.source or log.rules.mirrors != piece.source:
        raise _not_its_mirror(partition, piece)
    if log.start_offset == log.end_offset and piece.batches:
        first = piece.batches[0][1]
        if first.base_offset < log.end_offset <= first.last_offset:
            # The source's log begins inside of this batch, and its records before that are dropped below.
            _begin_at(partition, first.base_offset)
    new = new_batches(piece.batches, log.end_offset)
    if piece.fetch_offset > log.end_offset:
        if piece.fetch_offset > piece.log_start_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{partition.tp} ends at {log.end_offset}: nobody says what became of the offsets from there to "
                f"{piece.fetch_offset}",
            )
        _begin_at(partition, piece.fetch_offset)
    count = 0
    if new:
        stable_before = partition.last_stable_offset
        stamped = stamp_epochs(piece.records, new, partition.leader_epoch)
        result = log.append_as_follower(piece.records, now_ms, stamped)
        count = result.record_count
        partition.traffic.count_append(count, result.byte_count)
        partition.tell_appended(result.byte_count, stable_before)
    # Only what every replica has can be dropped: the rest follows with the next piece.
    start = min(piece.log_start_offset, partition.high_watermark)
    if start > log.start_offset:
        partition.delete_records_before(start)
    return count


def _begin_at(partition: Partition, offset: int) -> None:
    """Drop everything: the source begins further on. Followers learn it as they always do, by asking for too little."""
    partition.truncate_fully_and_start_at(offset)
    partition.log.begin_epoch(partition.leader_epoch)
    for watch in (*partition.readers, *partition.followers):
        watch.changed()


def _not_its_mirror(partition: Partition, piece: Piece) -> ApiError:
    is_now = partition.log.rules.mirrors
    what = f"its mirror.source is {is_now}" if is_now else "it has no mirror.source; was it promoted?"
    return ApiError(
        ErrorCode.POLICY_VIOLATION, f"{partition.tp.topic} is not a mirror of {piece.source or 'anything'}: {what}"
    )
