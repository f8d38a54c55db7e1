"""Log files that Apache Kafka wrote are read to the last byte, and written back the same."""

import json
from pathlib import Path

import pytest

from ottla.broker.storage import checkpoints, index
from ottla.broker.storage.producer_state import ProducerState, decode_snapshot, encode_snapshot
from ottla.model.names import NO_TOPIC_ID, TopicPartition
from ottla.protocol import coordinator_records
from ottla.protocol.records import Codec, Record, check_crc, decode_batch, iterate_batches

FOLDER = Path(__file__).parent / "segments"
TOPIC = FOLDER / "segments-0"
(OFFSETS,) = FOLDER.glob("__consumer_offsets-*")
SEGMENTS = sorted(path.stem for path in TOPIC.glob("*.log"))


def _records(folder: Path) -> list[Record]:
    records = []
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        for position, header in iterate_batches(data):
            check_crc(data, position, header)
            records += decode_batch(data, position)
    return records


def test_records_are_what_another_client_read() -> None:
    expected = json.loads((FOLDER / "records.json").read_text())

    found = [
        {
            "offset": record.offset, "timestamp": record.timestamp,
            "key": None if record.key is None else record.key.decode(),
            "value": None if record.value is None else record.value.decode(),
            "headers": [[name, None if value is None else value.decode()] for name, value in record.headers],
        }
        for record in _records(TOPIC)
    ]  # fmt: skip

    assert found == expected


def test_every_codec_is_there() -> None:
    headers = [header for name in SEGMENTS for _, header in iterate_batches((TOPIC / f"{name}.log").read_bytes())]

    assert {header.codec for header in headers} == set(Codec)
    assert len(SEGMENTS) == 2


@pytest.mark.parametrize("segment", SEGMENTS)
def test_indexes_point_at_batches(segment: str) -> None:
    log = (TOPIC / f"{segment}.log").read_bytes()
    offsets, times = ((TOPIC / f"{segment}.{suffix}").read_bytes() for suffix in ("index", "timeindex"))

    indexes = index.decode_indexes(offsets, times, len(log))

    assert indexes is not None
    last_offset_at = {position: header.last_offset - int(segment) for position, header in iterate_batches(log)}
    assert len(indexes.offsets) > 2
    for relative, position in zip(indexes.offsets, indexes.positions, strict=True):
        assert last_offset_at[position] == relative
    assert index.encode_offsets(indexes.offsets, indexes.positions) == offsets


@pytest.mark.parametrize("snapshot", sorted(path.name for path in TOPIC.glob("*.snapshot")))
def test_producer_snapshot_is_the_state_that_the_batches_lead_to(snapshot: str) -> None:
    data = (TOPIC / snapshot).read_bytes()
    upto = int(snapshot.split(".", maxsplit=1)[0])
    replayed = ProducerState()
    for name in SEGMENTS:
        for _, header in iterate_batches((TOPIC / f"{name}.log").read_bytes()):
            if header.producer_id >= 0 and header.base_offset < upto:
                replayed.update(header, header.base_offset, header.max_timestamp)

    decoded = decode_snapshot(data)

    assert decoded is not None
    assert encode_snapshot(decoded.entries.values()) == data
    described = [
        {
            producer: (entry.epoch, entry.last_sequence, entry.batches[-1].last_offset)
            for producer, entry in state.entries.items()
        }
        for state in (decoded, replayed)
    ]
    assert described[0] == described[1]


def test_checkpoints_read_and_write_back() -> None:
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint"):
        text = (FOLDER / name).read_text()
        offsets = checkpoints.parse_offsets(text)
        assert offsets is not None
        written = checkpoints.format_offsets(offsets).decode()
        assert sorted(written.splitlines()) == sorted(text.splitlines())
        if not name.startswith("log-start"):
            assert offsets[TopicPartition("segments", 0)] == len(_records(TOPIC))


def test_leader_epochs_and_topic_id_read_and_write_back() -> None:
    epochs = (TOPIC / "leader-epoch-checkpoint").read_text()
    identity = (TOPIC / "partition.metadata").read_text()

    parsed = checkpoints.parse_epochs(epochs)
    topic_id = checkpoints.parse_partition_metadata(identity)

    assert parsed == [(0, 0)]
    assert checkpoints.format_epochs(parsed).decode() == epochs
    assert topic_id != NO_TOPIC_ID
    assert checkpoints.format_partition_metadata(topic_id).decode().strip() == identity.strip()


def test_committed_offsets_and_groups_are_read() -> None:
    offsets, groups = [], []
    for record in _records(OFFSETS):
        assert record.key is not None
        key = coordinator_records.decode_key(record.key)
        if record.value is None:
            continue
        if isinstance(key, coordinator_records.OffsetCommitKey):
            value = coordinator_records.decode_offset_commit_value(record.value)
            assert coordinator_records.encode_offset_commit_key(key.group, key.topic, key.partition) == record.key
            offsets.append((key.group, key.topic, key.partition, value.offset, value.metadata))
        elif isinstance(key, coordinator_records.GroupMetadataKey):
            group = coordinator_records.decode_group_metadata_value(record.value)
            assert coordinator_records.encode_group_metadata_key(key.group) == record.key
            assert coordinator_records.encode_group_metadata_value(group) == record.value
            groups.append((key.group, group.protocol_type, len(group.members)))

    # The zero byte is confluent-kafka's: a broker keeps the metadata as it came.
    assert ("keeper", "segments", 0, 7, "a note\0") in offsets
    assert ("keeper", "consumer", 1) in groups
