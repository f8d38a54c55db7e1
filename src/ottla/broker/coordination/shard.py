"""One partition of the offsets topic with the groups that live on it: writing, replaying, keeping the log short."""

from collections.abc import Awaitable, Iterable, Iterator
from typing import NamedTuple

from ottla.broker.coordination.groups.machine import GroupMachine
from ottla.broker.coordination.groups.offsets import Entry, Value
from ottla.broker.coordination.loading import LoadedLog
from ottla.broker.coordination.machine_shard import MachineShard
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS
from ottla.protocol.consumer_group_records import ConsumerKey, encode_consumer_key, encode_consumer_value
from ottla.protocol.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    OtherKey,
    encode_group_metadata_key,
    encode_group_metadata_value,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import Codec, NewRecord, encode_batch

MARKER_BYTES = 78
NO_OFFSET_KEY = OffsetCommitKey("", "", 0)


def encode_entry(entry: Entry, timestamp: int) -> NewRecord:
    key, value = entry
    if isinstance(key, OffsetCommitKey):
        assert value is None or isinstance(value, OffsetCommitValue)
        return NewRecord(
            encode_offset_commit_key(key.group, key.topic, key.partition),
            None if value is None else encode_offset_commit_value(value),
            timestamp,
        )
    if isinstance(key, GroupMetadataKey):
        assert value is None or isinstance(value, GroupMetadataValue)
        return NewRecord(
            encode_group_metadata_key(key.group),
            None if value is None else encode_group_metadata_value(value),
            timestamp,
        )
    assert not isinstance(key, OtherKey)
    assert value is None or not isinstance(value, GroupMetadataValue | OffsetCommitValue)
    return NewRecord(encode_consumer_key(key), None if value is None else encode_consumer_value(value), timestamp)


class Producer(NamedTuple):
    """Who writes in a transaction."""

    id: int
    epoch: int


class Shard(MachineShard[GroupMachine]):
    TOPIC = CONSUMER_OFFSETS

    def install(self, loaded: LoadedLog) -> None:
        self.machine = loaded.machine
        self.bytes_since_snapshot = loaded.size_bytes
        self._foreign = loaded.foreign

    def encode(self, key: Key | ConsumerKey, value: Value | None, timestamp: int) -> NewRecord:
        return encode_entry((key, value), timestamp)

    def write(
        self, entries: Iterable[Entry], timestamp: int, codec: Codec, producer: Producer | None = None
    ) -> Awaitable[None] | None:
        """Append and replay, as part of a producer's transaction if one is given.

        Raises, with nothing changed, if the append fails.
        """
        entries = list(entries)
        try:
            records = [encode_entry(entry, timestamp) for entry in entries]
        except MalformedMessage as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None
        base_offset = self._log.end_offset(self.partition) if producer is not None else 0
        committed = self._append(records, codec, producer)
        assert self.machine is not None
        if producer is None:
            for key, value in entries:
                self.machine.replay(key, value)
        else:
            self.machine.pending.begin(producer.id, base_offset, producer.epoch)
            for key, value in entries:
                assert isinstance(key, OffsetCommitKey)
                assert isinstance(value, OffsetCommitValue)
                self.machine.replay_pending(producer.id, key, value)
        return committed

    def write_nothing(self, timestamp: int) -> Awaitable[None] | None:
        """A record that changes nothing: once it is committed it is certain that this broker led when it was written.

        It is a tombstone of an offset that cannot exist.
        """
        return self._append([encode_entry((NO_OFFSET_KEY, None), timestamp)], Codec.NONE)

    def end_transaction(
        self, producer: Producer, *, commit: bool, coordinator_epoch: int, transaction_version: int
    ) -> Awaitable[None] | None:
        """Append the marker and replay it."""
        committed = self._log.append_marker(
            self.partition,
            producer.id,
            producer.epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
            epoch=self.epoch,
        )
        self.bytes_since_snapshot += MARKER_BYTES
        assert self.machine is not None
        self.machine.replay_marker(producer.id, commit=commit)
        return committed

    def _append(
        self, records: list[NewRecord], codec: Codec, producer: Producer | None = None
    ) -> Awaitable[None] | None:
        if producer is None:
            batch = encode_batch(records, codec=codec)
        else:
            batch = encode_batch(
                records,
                codec=codec,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                base_sequence=0,
                transactional=True,
            )
        committed = self._log.append(self.partition, batch, self.epoch)
        self.bytes_since_snapshot += len(batch)
        return committed

    # Snapshots and transactions: the log is kept from the first record of every transaction that is open when one
    # begins, because its offsets are nowhere else until its marker comes. And where a key has pending offsets, they
    # are written again behind the key's own record, so that it does not seem to have overtaken them.

    def _snapshot_start(self) -> int:
        assert self.machine is not None
        begin = self._log.end_offset(self.partition)
        return min([begin, *(opened.first_offset for opened in self.machine.pending.open.values())])

    def _append_again(self, entries: list[Entry], timestamp: int, codec: Codec) -> Awaitable[None] | None:
        commits = [super()._append_again(entries, timestamp, codec)]
        commits += self._append_pending([key for key, _ in entries], timestamp, codec)
        return _all_of([commit for commit in commits if commit is not None])

    def _append_pending(
        self, keys: list[Key | ConsumerKey], timestamp: int, codec: Codec
    ) -> Iterator[Awaitable[None] | None]:
        assert self.machine is not None
        pending = self.machine.pending
        for key in keys if pending.open else ():
            for producer_id, value in pending.values(key) if isinstance(key, OffsetCommitKey) else ():
                producer = Producer(producer_id, pending.open[producer_id].epoch)
                yield self._append([encode_entry((key, value), timestamp)], codec, producer)


def _all_of(commits: list[Awaitable[None]]) -> Awaitable[None] | None:
    async def one_after_the_other() -> None:
        for commit in commits:
            await commit

    return one_after_the_other() if commits else None
