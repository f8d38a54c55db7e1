"""Groups from the log: replay every record of a partition, oldest first."""

import logging
from collections.abc import Iterable

from ottla.broker.coordination.groups.machine import GroupMachine
from ottla.protocol.consumer_group_records import (
    ConsumerKey,
    ConsumerValue,
    decode_consumer_key,
    decode_consumer_value,
)
from ottla.protocol.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    OtherKey,
    decode_group_metadata_value,
    decode_key,
    decode_offset_commit_value,
)
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import BatchHeader, Record, decode_batch, iterate_batches

logger = logging.getLogger(__name__)

COMMIT_MARKER = 1
Parsed = tuple[Key | ConsumerKey, GroupMetadataValue | OffsetCommitValue | ConsumerValue | None]


class LoadedLog:
    """What a partition's log says."""

    def __init__(self) -> None:
        self.machine = GroupMachine()
        self.foreign: dict[bytes, bytes] = {}
        """Records that are not ours to interpret, kept so that a snapshot can carry them on."""
        self.size_bytes = 0
        self._keys: dict[bytes, Key | ConsumerKey] = {}
        """Keys repeat: a commit a second of one partition has the same one each time."""

    def replay(self, chunks: Iterable[bytes | memoryview]) -> None:
        for chunk in chunks:
            for position, header in iterate_batches(chunk):
                self.size_bytes += header.size
                records = decode_batch(chunk, position)
                if header.is_control:
                    marker = records[0].key if records else None
                    committed = marker is not None and int.from_bytes(marker[2:4], "big") == COMMIT_MARKER
                    self.machine.replay_marker(header.producer_id, commit=committed)
                elif header.is_transactional:
                    self._replay_pending(header, records)
                else:
                    for record in records:
                        parsed = self._parse(record)
                        if parsed is not None:
                            self.machine.replay(*parsed)

    def _parse(self, record: Record) -> Parsed | None:
        key_bytes = record.key or b""
        try:
            key = self._keys.get(key_bytes)
            if key is None:
                key = decode_key(key_bytes)
                if isinstance(key, OtherKey):
                    key = decode_consumer_key(key_bytes) or key
                self._keys[key_bytes] = key
            if record.value is None:
                if isinstance(key, OtherKey):
                    self.foreign.pop(key_bytes, None)
                    return None
                return key, None
            if isinstance(key, OffsetCommitKey):
                return key, decode_offset_commit_value(record.value)
            if isinstance(key, GroupMetadataKey):
                return key, decode_group_metadata_value(record.value)
            if not isinstance(key, OtherKey):
                return key, decode_consumer_value(key, record.value)
        except MalformedMessage as error:
            logger.warning("Ignoring the record at offset %d of __consumer_offsets: %s", record.offset, error)
        self.foreign[key_bytes] = record.value or b""
        return None

    def _replay_pending(self, header: BatchHeader, records: list[Record]) -> None:
        self.machine.pending.begin(header.producer_id, header.base_offset, header.producer_epoch)
        for record in records:
            parsed = self._parse(record)
            if parsed is not None and isinstance(parsed[1], OffsetCommitValue):
                assert isinstance(parsed[0], OffsetCommitKey)
                self.machine.replay_pending(header.producer_id, parsed[0], parsed[1])
