"""Hand-packed fetch responses decode, in every version, to what was put in."""

import os
from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.handlers.context import Raw
from ottla.broker.handlers.fetch_packing import PartitionAnswer, pack
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
