"""Hand-packed fetch responses decode, in every version, to what was put in."""

import os
from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.handlers.common.leader_hints import LeaderHint
from ottla.broker.handlers.context import Raw
from ottla.broker.handlers.fetching.packing import PartitionAnswer, pack
from ottla.broker.storage.disk import SegmentFile
from ottla.broker.storage.log import AbortedTransaction, LogSlice
from ottla.protocol import codec
from ottla.protocol.messages import fetch as messages
from ottla.protocol.messages.fetch import FetchResponse

TOPIC = ("orders", UUID(int=77))


def to_bytes(raw: Raw) -> bytes:
    data = b"".join(chunk.read() if isinstance(chunk, LogSlice) else bytes(chunk) for chunk in raw.chunks)
    assert len(data) == raw.size
    return data


@pytest.fixture
def piece(tmp_path: Path) -> LogSlice:
    path = tmp_path / "segment"
    path.write_bytes(b"..hello..")
    return LogSlice(SegmentFile(os.open(path, os.O_RDONLY)), 2, 5, 0)


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_decodes(version: int, piece: LogSlice) -> None:
    answers = [
        PartitionAnswer(TOPIC, 0, 0, 10, 9, 1, (), piece),
        PartitionAnswer(TOPIC, 1, 3, -1, -1, -1, None, None),
        PartitionAnswer(("other", UUID(int=5)), 2, 0, 4, 4, 0, None, None, (6, 3) if version >= 12 else None),
    ]
    body = to_bytes(pack(version, 0, 123, answers))
    response, end = codec.decode_from(FetchResponse, version, body)
    assert end == len(body)
    assert response.session_id == (123 if version >= 7 else 0)
    first, second = response.responses
    assert first.topic == ("orders" if version < 13 else "")
    assert first.topic_id == (TOPIC[1] if version >= 13 else UUID(int=0))
    data, failed = first.partitions
    assert bytes(data.records or b"") == b"hello"
    assert (data.high_watermark, data.last_stable_offset) == (10, 9)
    assert data.log_start_offset == (1 if version >= 5 else -1)
    assert data.aborted_transactions == []
    assert failed.aborted_transactions is None
    assert (failed.error_code, failed.partition_index) == (3, 1)
    diverging = second.partitions[0].diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == ((6, 3) if version >= 12 else (-1, -1))


@pytest.mark.parametrize("version", range(4, 19))
def test_an_empty_response_is_what_the_codec_writes(version: int) -> None:
    assert to_bytes(pack(version, 0, 0, [])) == bytes(codec.encode(FetchResponse(), version))


@pytest.mark.parametrize("version", range(4, 19))
@pytest.mark.parametrize("count", [0, 1, 3, 200])
def test_aborted_transactions_are_what_the_codec_writes(version: int, count: int) -> None:
    aborted = [AbortedTransaction(1000 + number, 7 * number, 7 * number + 5, 7 * number + 6) for number in range(count)]
    answer = PartitionAnswer(TOPIC, 4, 0, 10, 9, 1, aborted, None)
    expected = FetchResponse(session_id=5 if version >= 7 else 0)
    partition = messages.PartitionData(
        partition_index=4, high_watermark=10, last_stable_offset=9, log_start_offset=1, records=b"",
        aborted_transactions=[
            messages.AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset) for one in aborted
        ],
    )  # fmt: skip
    topic = messages.FetchableTopicResponse(partitions=[partition])
    if version >= 13:
        topic.topic_id = TOPIC[1]
    else:
        topic.topic = TOPIC[0]
    expected.responses.append(topic)
    assert to_bytes(pack(version, 0, 5, [answer])) == bytes(codec.encode(expected, version))


@pytest.mark.parametrize("version", range(4, 19))
def test_leaders_and_preferred_replicas_are_what_the_codec_writes(version: int) -> None:
    there = LeaderHint(7, 12, "host-ö", 9092, "rack")
    elsewhere = LeaderHint(8, 13, "other", 9093)
    unreachable = LeaderHint(9, 14)
    answers = [
        PartitionAnswer(TOPIC, 0, 6, -1, -1, -1, None, None, leader=there),
        PartitionAnswer(TOPIC, 1, 74, -1, -1, -1, None, None, (3, 4) if version >= 12 else None, leader=there),
        PartitionAnswer(TOPIC, 2, 6, -1, -1, -1, None, None, leader=elsewhere),
        PartitionAnswer(TOPIC, 3, 6, -1, -1, -1, None, None, leader=unreachable),
        PartitionAnswer(TOPIC, 4, 0, 9, 8, 1, None, None, preferred_replica=5),
    ]
    hints = version >= 16
    leaders = (there, there, elsewhere, unreachable)
    expected = FetchResponse(session_id=5 if version >= 7 else 0)
    topic = messages.FetchableTopicResponse(topic_id=TOPIC[1]) if version >= 13 else None
    topic = topic or messages.FetchableTopicResponse(topic=TOPIC[0])
    for answer, leader in zip(answers, (*leaders, None), strict=True):
        data = messages.PartitionData(
            partition_index=answer.partition, error_code=answer.error_code, high_watermark=answer.high_watermark,
            last_stable_offset=answer.last_stable_offset, log_start_offset=answer.log_start_offset, records=b"",
            preferred_read_replica=answer.preferred_replica if version >= 11 else -1, aborted_transactions=None,
        )  # fmt: skip
        if answer.diverging is not None:
            data.diverging_epoch = messages.EpochEndOffset(*answer.diverging)
        if hints and leader is not None:
            data.current_leader = messages.LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)
        topic.partitions.append(data)
    expected.responses.append(topic)
    if hints:
        expected.node_endpoints = [
            messages.NodeEndpoint(7, "host-ö", 9092, "rack"),
            messages.NodeEndpoint(8, "other", 9093, None),
        ]
    assert to_bytes(pack(version, 0, 5, answers)) == bytes(codec.encode(expected, version))
