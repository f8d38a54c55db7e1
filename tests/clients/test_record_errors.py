"""A batch with single records at fault: what the wire says of them, and what clients make of it.

librdkafka tells records apart where a batch has two or more at fault; of one alone it gives the batch's code to all.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from kafka import KafkaProducer
from kafka.errors import InvalidRecordError
from kafka.errors import KafkaError as PythonKafkaError
from tests.one_batch import send_as_one_batch

from ottla.model.errors import ErrorCode
from ottla.protocol.compression import Codec
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.records import NewRecord, encode_batch
from ottla.testing import RunningBroker
from ottla.testing.requests import create_topic
from ottla.testing.wire import WireConnection

Unique = Callable[[str], str]
SECONDS_MAX = 60.0
LINGER_MS = 60_000  # the records of a test share their batch, however slow the machine is: flush() sends it
WANTS_KEYS = "cleanup.policy=compact, so every record needs a key"
COMPACTED = {"cleanup.policy": "compact"}
AFTER_MAX_MS = 60_000


def _create(broker: RunningBroker, topic: str, configs: dict[str, str]) -> str:
    with WireConnection(broker.host, broker.port) as connection:
        assert create_topic(connection, topic, configs=configs) == ErrorCode.NONE
    return topic


@pytest.fixture
def compacted(ottla_broker: RunningBroker, unique: Unique) -> str:
    return _create(ottla_broker, unique("compacted"), COMPACTED)


def _produce(broker: RunningBroker, topic: str, batch: bytearray, version: int) -> PartitionProduceResponse:
    data = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    with WireConnection(broker.host, broker.port) as connection:
        return connection.call(request, version, ProduceResponse).responses[0].partition_responses[0]


def _batch(keys: list[bytes | None], codec: Codec = Codec.NONE) -> bytearray:
    now_ms = int(time.time() * 1000)
    return encode_batch([NewRecord(key, b"v", now_ms) for key in keys], codec=codec)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("version", [3, 5, 8, 9, 12])
def test_the_wire_names_records_from_version_8_on(
    ottla_broker: RunningBroker, compacted: str, version: int, codec: Codec
) -> None:
    answer = _produce(ottla_broker, compacted, _batch([b"a", None, b"b", None], codec), version)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (ErrorCode.INVALID_RECORD, -1, -1)
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    if version < 8:
        assert (answer.record_errors, answer.error_message) == ([], None)
        return
    assert [error.batch_index for error in answer.record_errors] == [1, 3]
    assert all(WANTS_KEYS in str(error.batch_index_error_message) for error in answer.record_errors)
    assert WANTS_KEYS in str(answer.error_message)
    taken = _produce(ottla_broker, compacted, _batch([b"a", b"b"], codec), version)
    assert (taken.error_code, taken.base_offset, taken.record_errors) == (ErrorCode.NONE, 0, [])


def test_a_batch_that_is_too_large_is_refused_whole(ottla_broker: RunningBroker, unique: Unique) -> None:
    topic = _create(ottla_broker, unique("small"), {**COMPACTED, "max.message.bytes": "100"})
    answer = _produce(ottla_broker, topic, _batch([None] * 20), 9)
    assert (answer.error_code, answer.record_errors) == (ErrorCode.MESSAGE_TOO_LARGE, [])
    assert answer.log_start_offset == -1


def _send(broker: RunningBroker, topic: str, records: list[tuple[bytes | None, int]], **settings: object) -> list[Any]:
    """What librdkafka says of each record: the name of its error, or None."""
    sent = [{"topic": topic, "key": key, "value": b"v", "timestamp": timestamp} for key, timestamp in records]
    outcomes = send_as_one_batch({"bootstrap.servers": broker.bootstrap, **settings}, sent)
    return [None if error is None else error.name() for error in outcomes]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_librdkafka_tells_records_at_fault_from_the_others(
    ottla_broker: RunningBroker, compacted: str, codec: str, idempotent: bool
) -> None:
    settings = {"compression.type": codec, "enable.idempotence": idempotent}
    reports = _send(ottla_broker, compacted, [(None, 0), (b"a", 0), (None, 0), (b"b", 0)], **settings)
    different = "_INVALID_DIFFERENT_RECORD"
    assert reports == ["INVALID_RECORD", different, "INVALID_RECORD", different]
    assert _send(ottla_broker, compacted, [(b"a", 0), (b"b", 0)], **settings) == [None, None]


def test_librdkafka_and_times_out_of_range(ottla_broker: RunningBroker, unique: Unique) -> None:
    topic = _create(ottla_broker, unique("timely"), {"message.timestamp.after.max.ms": str(AFTER_MAX_MS)})
    now_ms = int(time.time() * 1000)
    late_ms = now_ms + 100 * AFTER_MAX_MS
    both = _send(ottla_broker, topic, [(None, late_ms), (None, now_ms), (None, late_ms)])
    assert both == ["INVALID_RECORD", "_INVALID_DIFFERENT_RECORD", "INVALID_RECORD"]
    alone = _send(ottla_broker, topic, [(None, late_ms)])
    assert alone == ["INVALID_TIMESTAMP"]


def test_kafka_python_says_which_record_and_why(ottla_broker: RunningBroker, compacted: str) -> None:
    producer = KafkaProducer(bootstrap_servers=ottla_broker.bootstrap, linger_ms=LINGER_MS, enable_idempotence=False)
    try:
        first, keyless, last = (producer.send(compacted, key=key, value=b"v") for key in (b"a", None, b"b"))
        producer.flush(SECONDS_MAX)
        with pytest.raises(InvalidRecordError, match=WANTS_KEYS):
            keyless.get(SECONDS_MAX)
        for innocent in (first, last):
            with pytest.raises(PythonKafkaError) as caught:
                innocent.get(SECONDS_MAX)
            assert not isinstance(caught.value, InvalidRecordError)
        taken = producer.send(compacted, key=b"a", value=b"v")
        producer.flush(SECONDS_MAX)
        assert taken.get(SECONDS_MAX).offset == 0
    finally:
        producer.close()


def test_aiokafka_goes_on_after_a_refused_batch(ottla_broker: RunningBroker, compacted: str) -> None:
    async def scenario() -> None:
        async with (
            asyncio.timeout(SECONDS_MAX),
            AIOKafkaProducer(bootstrap_servers=ottla_broker.bootstrap) as producer,
        ):
            batch = producer.create_batch()
            for key in (b"a", None):
                batch.append(key=key, value=b"v", timestamp=None)
            batch.close()
            refused = await producer.send_batch(batch, compacted, partition=0)
            with pytest.raises(AioKafkaError):
                await refused
            taken = await producer.send_and_wait(compacted, key=b"a", value=b"v")
            assert taken.offset == 0

    asyncio.run(scenario())
