"""Reading a log that Kafka may have written."""

from ottla.broker.coordination.loading import LoadedLog
from ottla.protocol.coordinator_records import (
    GroupMetadataValue,
    OffsetCommitValue,
    encode_group_metadata_key,
    encode_group_metadata_value,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from ottla.protocol.records import NewRecord, encode_batch

KEY = encode_offset_commit_key("g", "t", 0)


def commit(offset: int) -> NewRecord:
    return NewRecord(KEY, encode_offset_commit_value(OffsetCommitValue(offset, 1)), 1)


def marker(producer_id: int, *, committed: bool) -> bytes:
    key = b"\x00\x00\x00\x01" if committed else b"\x00\x00\x00\x00"
    record = NewRecord(key, b"\x00\x00\x00\x00\x00\x00", 1)
    return bytes(encode_batch([record], producer_id=producer_id, producer_epoch=0, transactional=True, control=True))


def in_transaction(producer_id: int, record: NewRecord) -> bytes:
    return bytes(encode_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True))


def offset_after(*batches: bytes) -> int | None:
    loaded = LoadedLog()
    loaded.replay(batches)
    group = loaded.machine.groups.get("g")
    return None if group is None else group.offsets["t"][0].offset


def test_offsets_of_a_transaction_count_when_it_is_committed() -> None:
    plain = bytes(encode_batch([commit(1)]))
    assert offset_after(plain, in_transaction(7, commit(2))) == 1
    assert offset_after(plain, in_transaction(7, commit(2)), marker(7, committed=False)) == 1
    assert offset_after(plain, in_transaction(7, commit(2)), marker(8, committed=True)) == 1
    assert offset_after(plain, in_transaction(7, commit(2)), marker(7, committed=True)) == 2


def test_several_batches_in_one_chunk_are_all_read() -> None:
    assert offset_after(bytes(encode_batch([commit(1), commit(2)]) + encode_batch([commit(3)]))) == 3


def test_a_group_that_moved_to_another_protocol_keeps_its_offsets() -> None:
    group = NewRecord(
        encode_group_metadata_key("g"),
        encode_group_metadata_value(GroupMetadataValue("consumer", 3, None, None, (), 5)),
        1,
    )
    gone = NewRecord(encode_group_metadata_key("g"), None, 1)
    loaded = LoadedLog()
    loaded.replay([bytes(encode_batch([group, commit(4), gone]))])
    assert loaded.machine.groups["g"].is_simple
    assert loaded.machine.groups["g"].offsets["t"][0].offset == 4
    loaded.replay([bytes(encode_batch([NewRecord(KEY, None, 1), gone]))])
    assert loaded.machine.groups == {}
