"""Records of the offsets topic: bytes worked out by hand from the field lists, and round trips."""

import contextlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.names import NO_TOPIC_ID
from ottla.protocol import coordinator_records as records
from ottla.protocol.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    OtherKey,
)
from ottla.protocol.errors import MalformedMessage

TOPIC_ID = UUID(bytes=bytes(range(1, 17)))
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=20)

COMMIT = OffsetCommitValue(
    offset=0x0102, commit_timestamp=0x0A0B, leader_epoch=7, metadata="hé", topic_id=TOPIC_ID, expire_timestamp=-1
)
GROUP = GroupMetadataValue(
    protocol_type="consumer",
    generation=3,
    protocol="range",
    leader="m",
    state_timestamp=0x0C,
    members=(
        MemberMetadata(
            member_id="m",
            group_instance_id="i",
            client_id="c",
            client_host="/h",
            rebalance_timeout_ms=0x300,
            session_timeout_ms=0x200,
            subscription=b"SS",
            assignment=b"A",
        ),
    ),
)


def test_keys_byte_by_byte() -> None:
    commit = bytes.fromhex("00010001670003746f7000000005")  # type 1, "g", "top", partition 5
    assert records.encode_offset_commit_key("g", "top", 5) == commit
    assert records.decode_key(commit) == OffsetCommitKey("g", "top", 5)
    assert records.decode_key(b"\x00\x00" + commit[2:]) == OffsetCommitKey("g", "top", 5)  # the oldest type
    group = bytes.fromhex("0002000167")
    assert records.encode_group_metadata_key("g") == group
    assert records.decode_key(group) == GroupMetadataKey("g")
    assert records.decode_key(bytes.fromhex("000500016700016d")) == OtherKey(5)


def test_offset_commit_is_written_in_version_4_with_its_topic_id() -> None:
    assert records.encode_offset_commit_value(COMMIT) == bytes.fromhex(
        "0004"  # version
        "0000000000000102"  # offset
        "00000007"  # leader epoch
        "04 68c3a9"  # metadata: length + 1, then UTF-8
        "0000000000000a0b"  # commit timestamp
        "01 00 10 0102030405060708090a0b0c0d0e0f10"  # one tagged field: tag 0, 16 bytes, the topic id
    )  # fmt: skip


def test_offset_commit_without_topic_id_has_no_tagged_fields() -> None:
    value = OffsetCommitValue(offset=1, commit_timestamp=2)
    assert records.encode_offset_commit_value(value) == bytes.fromhex(
        "00040000000000000001ffffffff01000000000000000200"
    )


def test_offset_commit_with_its_own_retention_is_written_in_version_1() -> None:
    value = OffsetCommitValue(offset=1, commit_timestamp=2, metadata="x", expire_timestamp=3, leader_epoch=9)
    encoded = bytes.fromhex("0001000000000000000100017800000000000000020000000000000003")
    assert records.encode_offset_commit_value(value) == encoded
    assert records.decode_offset_commit_value(encoded) == OffsetCommitValue(1, 2, -1, "x", 3)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("0000 0000000000000009 0001 78 0000000000000002", OffsetCommitValue(9, 2, -1, "x")),
        ("0002 0000000000000009 0001 78 0000000000000002", OffsetCommitValue(9, 2, -1, "x")),
        ("0003 0000000000000009 00000004 0001 78 0000000000000002", OffsetCommitValue(9, 2, 4, "x")),
        # A tagged field of a later version is passed over.
        ("0004 0000000000000009 00000004 02 78 0000000000000002 01 07 02 aabb",
         OffsetCommitValue(9, 2, 4, "x")),
    ],
)  # fmt: skip
def test_older_and_newer_offset_commits_are_read(stored: str, expected: OffsetCommitValue) -> None:
    assert records.decode_offset_commit_value(bytes.fromhex(stored)) == expected


def test_group_is_written_in_version_3() -> None:
    assert records.encode_group_metadata_value(GROUP) == bytes.fromhex(
        "0003"
        "0008 636f6e73756d6572"  # protocol type
        "00000003"  # generation
        "0005 72616e6765"  # protocol
        "0001 6d"  # leader
        "000000000000000c"  # since when the group is in its state
        "00000001"  # one member
        "0001 6d 0001 69 0001 63 0002 2f68"  # member, instance, client, host
        "00000300 00000200"  # rebalance timeout, session timeout
        "00000002 5353 00000001 41"  # subscription, assignment
    )  # fmt: skip


def test_empty_group_has_neither_protocol_nor_leader() -> None:
    value = GroupMetadataValue("", 0, None, None, (), 1)
    assert records.encode_group_metadata_value(value) == bytes.fromhex(
        "0003000000000000ffffffff000000000000000100000000"
    )


def test_group_in_version_4_byte_by_byte() -> None:
    assert records.encode_group_metadata_value(GROUP, 4) == bytes.fromhex(
        "0004 09 636f6e73756d6572 00000003 06 72616e6765 02 6d 000000000000000c"
        "02 02 6d 02 69 02 63 03 2f68 00000300 00000200 03 5353 02 41 00 00"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tags", "topic_id"),
    [
        ("00", NO_TOPIC_ID),
        ("01 00 10 0102030405060708090a0b0c0d0e0f10", TOPIC_ID),
        ("01 01 10 0102030405060708090a0b0c0d0e0f10", NO_TOPIC_ID),  # just as long, but something else
        ("02 00 10 0102030405060708090a0b0c0d0e0f10 07 00", TOPIC_ID),
    ],
)
def test_commits_without_text_are_read_with_any_tagged_fields(tags: str, topic_id: UUID) -> None:
    stored = bytes.fromhex("0004 0000000000000009 00000004 01 0000000000000002" + tags)
    assert records.decode_offset_commit_value(stored) == OffsetCommitValue(9, 2, 4, "", -1, topic_id)


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_is_read(version: int) -> None:
    decoded = records.decode_group_metadata_value(records.encode_group_metadata_value(GROUP, version))
    assert decoded.generation == GROUP.generation
    assert decoded.state_timestamp == (GROUP.state_timestamp if version >= 2 else -1)
    assert decoded.members[0].rebalance_timeout_ms == (0x300 if version >= 1 else -1)
    assert decoded.members[0].group_instance_id == ("i" if version >= 3 else None)
    assert (decoded == GROUP) == (version >= 3)


@given(offset=INT64, stamp=INT64, epoch=INT32, metadata=TEXT, known=st.booleans())
def test_offset_commits_round_trip(offset: int, stamp: int, epoch: int, metadata: str, known: bool) -> None:
    value = OffsetCommitValue(offset, stamp, epoch, metadata, -1, TOPIC_ID if known else NO_TOPIC_ID)
    assert records.decode_offset_commit_value(records.encode_offset_commit_value(value)) == value


MEMBERS = st.builds(
    MemberMetadata,
    member_id=TEXT, client_id=TEXT, client_host=TEXT, session_timeout_ms=INT32, rebalance_timeout_ms=INT32,
    subscription=st.binary(max_size=200), assignment=st.binary(max_size=200), group_instance_id=st.none() | TEXT,
)  # fmt: skip


@given(
    value=st.builds(
        GroupMetadataValue,
        protocol_type=TEXT, generation=INT32, protocol=st.none() | TEXT, leader=st.none() | TEXT,
        members=st.lists(MEMBERS, max_size=3).map(tuple), state_timestamp=INT64,
    ),
    version=st.sampled_from([3, 4]),
)  # fmt: skip
def test_groups_round_trip(value: GroupMetadataValue, version: int) -> None:
    assert records.decode_group_metadata_value(records.encode_group_metadata_value(value, version)) == value


@given(group=TEXT, topic=TEXT, partition=INT32)
def test_keys_round_trip(group: str, topic: str, partition: int) -> None:
    assert records.decode_key(records.encode_offset_commit_key(group, topic, partition)) == (group, topic, partition)
    assert records.decode_key(records.encode_group_metadata_key(group)) == GroupMetadataKey(group)


@given(garbage=st.binary(max_size=60), version=st.integers(0, 5))
def test_garbage_is_refused_and_nothing_else(garbage: bytes, version: int) -> None:
    for decode in (records.decode_key, records.decode_offset_commit_value, records.decode_group_metadata_value):
        for stored in (garbage, version.to_bytes(2, "big") + garbage):
            with contextlib.suppress(MalformedMessage):
                decode(stored)


@pytest.mark.parametrize("encoded", [records.encode_offset_commit_value(COMMIT), b"\x00\x05", b""])
def test_what_is_cut_short_or_unknown_is_refused(encoded: bytes) -> None:
    with pytest.raises(MalformedMessage):
        records.decode_offset_commit_value(encoded[:-1] or b"\x00\x09")


def test_names_that_no_key_can_hold_are_refused() -> None:
    with pytest.raises(MalformedMessage):
        records.encode_offset_commit_key("g" * 40_000, "t", 0)
    with pytest.raises(MalformedMessage):
        records.encode_group_metadata_key("g" * 40_000)
