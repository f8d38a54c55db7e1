"""Hand-packed produce responses are, byte for byte, what the codec writes."""

from uuid import UUID

import pytest

from ottla.broker.handlers.common.leader_hints import LeaderHint
from ottla.broker.handlers.producing.packing import PartitionOutcome, TopicOutcome, failed, pack
from ottla.broker.storage.record_errors import InvalidRecords, RecordError
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol import codec
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_is_what_the_codec_writes(version: int) -> None:
    outcomes = [
        PartitionOutcome(0, 0, 1234567890123, -1, 17),
        PartitionOutcome(1, 87, -1, -1, -1, "records ought to have keys"),
    ]
    topics = [TopicOutcome("orders", UUID(int=5), outcomes), TopicOutcome("ö", UUID(int=6), [])]
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=o.partition, error_code=o.error_code, base_offset=o.base_offset,
                        log_append_time_ms=o.log_append_time_ms, log_start_offset=o.log_start_offset,
                        error_message=o.error_message,
                    )
                    for o in topic.partitions
                ],
            )
            for topic in topics
        ]
    )  # fmt: skip
    raw = pack(version, topics)
    assert b"".join(bytes(chunk) for chunk in raw.chunks) == bytes(codec.encode(response, version))  # type: ignore[arg-type]
    assert raw.size == len(codec.encode(response, version))


@pytest.mark.parametrize("version", range(3, 14))
def test_leaders_are_what_the_codec_writes(version: int) -> None:
    outcomes = [
        PartitionOutcome(0, 6, -1, -1, -1, "not here", LeaderHint(7, 12, "host", 9092, "rack")),
        PartitionOutcome(1, 6, -1, -1, -1, None, LeaderHint(7, 3, "host", 9092, "rack")),
        PartitionOutcome(2, 6, -1, -1, -1, "", LeaderHint(8, 4)),
    ]
    topics = [TopicOutcome("orders", UUID(int=5), outcomes)]
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="orders",
                topic_id=UUID(int=5),
                partition_responses=[
                    PartitionProduceResponse(
                        index=o.partition, error_code=6, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1,
                        error_message=o.error_message,
                        current_leader=LeaderIdAndEpoch(o.leader.leader_id, o.leader.leader_epoch)
                        if version >= 10 and o.leader is not None
                        else LeaderIdAndEpoch(),
                    )
                    for o in outcomes
                ],
            )
        ],
        node_endpoints=[NodeEndpoint(7, "host", 9092, "rack")] if version >= 10 else [],
    )  # fmt: skip
    raw = pack(version, topics)
    assert b"".join(bytes(chunk) for chunk in raw.chunks) == bytes(codec.encode(response, version))  # type: ignore[arg-type]
    assert raw.size == len(codec.encode(response, version))


@pytest.mark.parametrize("version", range(3, 14))
def test_record_errors_are_what_the_codec_writes(version: int) -> None:
    two = [RecordError(1, "ä"), RecordError(7, None)]
    outcomes = [
        failed(0, InvalidRecords(ErrorCode.INVALID_RECORD, "two are wrong", two), 3),
        failed(1, InvalidRecords(ErrorCode.INVALID_TIMESTAMP, "one is", [RecordError(0, "x" * 200)]), 4),
    ]
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="orders",
                topic_id=UUID(int=5),
                partition_responses=[
                    PartitionProduceResponse(
                        index=0, error_code=87, base_offset=-1, log_append_time_ms=-1, log_start_offset=3,
                        record_errors=[BatchIndexAndErrorMessage(1, "ä"), BatchIndexAndErrorMessage(7, None)]
                        if version >= 8 else [],
                        error_message="two are wrong" if version >= 8 else None,
                    ),
                    PartitionProduceResponse(
                        index=1, error_code=32, base_offset=-1, log_append_time_ms=-1, log_start_offset=4,
                        record_errors=[BatchIndexAndErrorMessage(0, "x" * 200)] if version >= 8 else [],
                        error_message="one is" if version >= 8 else None,
                    ),
                ],
            )
        ]
    )  # fmt: skip
    raw = pack(version, [TopicOutcome("orders", UUID(int=5), outcomes)])
    assert b"".join(bytes(chunk) for chunk in raw.chunks) == bytes(codec.encode(response, version))  # type: ignore[arg-type]


def test_where_the_log_begins_is_told_with_the_errors_kafka_tells_it_with() -> None:
    assert failed(0, ApiError(ErrorCode.INVALID_RECORD), 7).log_start_offset == 7
    assert failed(0, ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 7).log_start_offset == 7
    assert failed(0, ApiError(ErrorCode.MESSAGE_TOO_LARGE), 7).log_start_offset == -1
    assert failed(0, ApiError(ErrorCode.CORRUPT_MESSAGE), 7).log_start_offset == -1
