"""Bytes that no client would send cost the connection they came on, and nothing else."""

import os
import random
import struct
from collections.abc import Callable

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.codec import decode
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.records import NewRecord, encode_batch
from ottla.testing import RunningBroker
from ottla.testing.process import open_sockets, resident_bytes
from ottla.testing.requests import FETCH_VERSION, create_topic, fetch_request
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection

HEADER = struct.Struct(">ihhih")


@pytest.fixture
def connect(ottla_broker: RunningBroker) -> Callable[[], WireConnection]:
    return lambda: WireConnection(ottla_broker.host, ottla_broker.port)


def _header(size: int, api_key: int, version: int) -> bytes:
    return HEADER.pack(size, api_key, version, 7, -1)


@pytest.mark.parametrize("api_key", [4, 48, 93, 999, -1, 32767, -32768])
def test_an_api_that_is_not_served(
    api_key: int, connect: Callable[[], WireConnection], bystander: Callable[[], None]
) -> None:
    with connect() as connection:
        connection.send(_header(10, api_key, 0))
        assert connection.closed_by_peer()


@pytest.mark.parametrize(("api_key", "version"), [(0, 2), (0, 14), (1, 3), (3, 14), (3, -1), (11, 10), (22, 6)])
def test_a_version_that_is_not_served(
    api_key: int, version: int, connect: Callable[[], WireConnection], bystander: Callable[[], None]
) -> None:
    with connect() as connection:
        connection.send(_header(10, api_key, version))
        assert connection.closed_by_peer()


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_a_client_that_is_too_new_is_told_what_is_served(
    version: int, connect: Callable[[], WireConnection], bystander: Callable[[], None]
) -> None:
    tags = b"\x00" if version >= 3 else b""  # the header has them from version 3 on
    with connect() as connection:
        connection.send(_header(10 + len(tags), ApiVersionsRequest.API_KEY, version) + tags)
        frame = connection.read_frame()
        assert struct.unpack_from(">i", frame) == (7,)
        told = decode(ApiVersionsResponse, 0, frame, 4)
        assert told.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(key.api_key, key.min_version, key.max_version) for key in told.api_keys] == [(18, 0, 4)]
        asked = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = connection.call(asked, 3, ApiVersionsResponse)
        assert answer.error_code == ErrorCode.NONE, "the connection goes on with a version that is served"


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 1, 7, 104_857_601, 2**31 - 1])
def test_an_absurd_length(size: int, connect: Callable[[], WireConnection], bystander: Callable[[], None]) -> None:
    with connect() as connection:
        connection.send(struct.pack(">i", size) + bytes(64))
        assert connection.closed_by_peer()


def test_garbage(connect: Callable[[], WireConnection], bystander: Callable[[], None]) -> None:
    chance = random.Random(20)
    for _ in range(300):
        with connect() as connection:
            try:
                connection.send(chance.randbytes(chance.randrange(1, 300)))
            except ConnectionError:
                continue  # it had enough before we were done
    bystander()


def test_other_protocols(connect: Callable[[], WireConnection], bystander: Callable[[], None]) -> None:
    for words in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PING\r\n" * 9,
    ):
        with connect() as connection:
            connection.send(words)
            assert connection.closed_by_peer(), words


def test_a_length_that_lies_inside_the_request(
    connect: Callable[[], WireConnection], bystander: Callable[[], None]
) -> None:
    for body in (
        struct.pack(">i", 2**31 - 1),  # an array of two billion topics
        struct.pack(">ih", 1, 32767),  # a name longer than the request
        struct.pack(">ih", 1, -1),  # a name that may not be null
        struct.pack(">ih", 1, 3) + b"\xff\xfe\xfd",  # a name that is no text
    ):
        with connect() as connection:
            connection.send(_header(10 + len(body), MetadataRequest.API_KEY, 1) + body)
            assert connection.closed_by_peer(), body


def test_halves_of_frames(
    ottla_broker: RunningBroker, connect: Callable[[], WireConnection], bystander: Callable[[], None]
) -> None:
    sockets = open_sockets(ottla_broker.pid)
    whole = connect()
    frame = whole.frame(MetadataRequest(topics=[]), 12)
    whole.close()
    for cut in range(1, len(frame)):
        with connect() as connection:
            connection.send(frame[:cut])
    for _ in range(50):
        connection = connect()
        connection.send(struct.pack(">i", 50_000_000) + os.urandom(1000))
        connection.reset()
    wait_until(lambda: open_sockets(ottla_broker.pid) <= sockets, "their descriptors are given back")


@pytest.mark.parametrize("end", ["close", "reset"])
def test_clients_that_go_while_their_request_waits(
    end: str, ottla_broker: RunningBroker, connect: Callable[[], WireConnection], bystander: Callable[[], None],
    unique: Callable[[str], str],
) -> None:  # fmt: skip
    topic = unique("abandoned")
    sockets = open_sockets(ottla_broker.pid)
    with connect() as connection:
        assert create_topic(connection, topic) == ErrorCode.NONE
    for _ in range(30):
        connection = connect()
        waits_for_weeks = fetch_request(topic, 0, 0, max_wait_ms=2**31 - 1)
        connection.send(connection.frame(waits_for_weeks, FETCH_VERSION) * 2)
        bystander()
        connection.reset() if end == "reset" else connection.close()
    wait_until(lambda: open_sockets(ottla_broker.pid) <= sockets, "their descriptors are given back")


def test_an_announcement_costs_no_memory(ottla_broker: RunningBroker, connect: Callable[[], WireConnection]) -> None:
    before = resident_bytes(ottla_broker.pid)
    liars = [connect() for _ in range(100)]
    for liar in liars:
        liar.send(struct.pack(">i", 100_000_000))
    for liar in liars:
        liar.send(bytes(16))  # taken only after the announcement was
    with connect() as connection:
        connection.call(MetadataRequest(topics=[]), 12, MetadataResponse)
    assert resident_bytes(ottla_broker.pid) - before < 32 << 20, "10 GB were announced, 2 kB were sent"
    for liar in liars:
        liar.close()


def test_requests_that_arrive_a_byte_at_a_time(
    connect: Callable[[], WireConnection], bystander: Callable[[], None]
) -> None:
    slow = [connect() for _ in range(40)]
    frames = [connection.frame(MetadataRequest(topics=[]), 12) for connection in slow]
    for position in range(len(frames[0])):
        for connection, frame in zip(slow, frames, strict=True):
            connection.send(frame[position : position + 1])
        bystander()
    for connection in slow:
        _, body = connection.read_answer(MetadataRequest.API_KEY, 12)
        assert decode(MetadataResponse, 12, body).brokers
        connection.close()


def test_records_that_are_not_records(
    connect: Callable[[], WireConnection], bystander: Callable[[], None], unique: Callable[[str], str]
) -> None:
    topic = unique("garbage")
    good = bytes(encode_batch([NewRecord(b"k", b"v" * 100, 1)]))
    broken_crc = good[:-1] + bytes([good[-1] ^ 1])
    old_magic = good[:16] + b"\x01" + good[17:]
    too_long = good[:8] + struct.pack(">i", 10_000) + good[12:]
    with connect() as connection:
        assert create_topic(connection, topic) == ErrorCode.NONE
        for records in (
            None,
            b"",
            b"\x00" * 61,
            good[:60],
            good + b"tail",
            good + good,
            broken_crc,
            old_magic,
            too_long,
        ):
            data = PartitionProduceData(index=0, records=records)
            topics = [TopicProduceData(name=topic, partition_data=[data])]
            request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics)
            answer = connection.call(request, 9, ProduceResponse)
            assert answer.responses[0].partition_responses[0].error_code in {
                ErrorCode.CORRUPT_MESSAGE,
                ErrorCode.INVALID_RECORD,
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            }, records
        data = PartitionProduceData(index=0, records=good)
        topics = [TopicProduceData(name=topic, partition_data=[data])]
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics)
        answer = connection.call(request, 9, ProduceResponse)
        assert answer.responses[0].partition_responses[0].base_offset == 0, "nothing of the above was kept"
