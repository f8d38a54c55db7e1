"""Hand-packed fetch responses decode, in every version, to what was put in."""

import os
from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.handlers.context import Raw
from ottla.broker.handlers.fetch_packing import PartitionAnswer, pack
from ottla.broker.storage.log import LogSlice
from ottla.broker.storage.segment import SegmentFile
from ottla.protocol import codec
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
        PartitionAnswer(TOPIC, 0, 0, 10, 9, 1, True, piece),
        PartitionAnswer(TOPIC, 1, 3, -1, -1, -1, False, None),
        PartitionAnswer(("other", UUID(int=5)), 2, 0, 4, 4, 0, False, None, (6, 3) if version >= 12 else None),
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
