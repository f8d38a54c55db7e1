"""dump-log's view of .snapshot files (producers) and .txnindex files (aborted transactions)."""

import struct

from crc32c import crc32c

from ottla.cli.common.output import CommandError
from ottla.protocol.records import NO_SEQUENCE

SNAPSHOT_VERSION = 1
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_PRODUCER = struct.Struct(">qhiqiqiq")
CRC_COVERS_FROM = 6
_ABORTED = struct.Struct(">hqqqq")


def dump_producer_snapshot(path: str) -> bool:
    with open(path, "rb") as file:
        content = file.read()
    if len(content) < _SNAPSHOT_HEAD.size:
        raise CommandError(f"corrupt snapshot: {len(content)} bytes are too few")
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(content)
    if version != SNAPSHOT_VERSION:
        raise CommandError(f"snapshot version {version} is unknown; version {SNAPSHOT_VERSION} is read")
    actual = crc32c(content[CRC_COVERS_FROM:])
    if actual != crc:
        raise CommandError(f"corrupt snapshot: its CRC is {actual}, and it says {crc}")
    if _SNAPSHOT_HEAD.size + count * _PRODUCER.size > len(content):
        raise CommandError(f"corrupt snapshot: {len(content)} bytes cannot hold {count} producers")
    for number in range(count):
        fields = _PRODUCER.unpack_from(content, _SNAPSHOT_HEAD.size + number * _PRODUCER.size)
        producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first_offset = (
            fields
        )
        open_since = f"OptionalLong[{first_offset}]" if first_offset >= 0 else "OptionalLong.empty"
        line = (
            f"producerId: {producer_id} producerEpoch: {epoch} coordinatorEpoch: {coordinator_epoch} "
            f"currentTxnFirstOffset: {open_since} lastTimestamp: {timestamp}"
        )
        if last_sequence != NO_SEQUENCE or last_offset >= 0:
            line += (
                f" firstSequence: {_first_sequence(last_sequence, offset_delta)} lastSequence: {last_sequence} "
                f"lastOffset: {last_offset} offsetDelta: {offset_delta} timestamp: {timestamp}"
            )
        print(line)
    return True


def _first_sequence(last: int, delta: int) -> int:
    """Sequence numbers start again at 0 after 2^31 - 1."""
    return last - delta if last >= delta else 2**31 - (delta - last)


def dump_transaction_index(path: str) -> bool:
    with open(path, "rb") as file:
        content = file.read()
    whole = len(content) - len(content) % _ABORTED.size
    for version, producer_id, first, last, stable in _ABORTED.iter_unpack(content[:whole]):
        if version != 0:
            raise CommandError(f"corrupt transaction index: version {version} is unknown")
        print(
            f"version: {version} producerId: {producer_id} firstOffset: {first} lastOffset: {last} "
            f"lastStableOffset: {stable}"
        )
    if whole != len(content):
        raise CommandError(f"corrupt transaction index: {len(content) - whole} bytes are left over at its end")
    return True
