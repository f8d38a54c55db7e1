"""A blocking client of a few lines: topics, prepared requests, and the first acknowledged record."""

import contextlib
import itertools
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from ottla.protocol import codec, frames
from ottla.protocol.apis import API, ApiKey, response_header_is_flexible
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.records import Codec, NewRecord, encode_batch
from ottla.protocol.schema import TopLevel

PRODUCE_VERSION = 9
FETCH_VERSION = 12
METADATA_VERSION = 12
CREATE_TOPICS_VERSION = 7
DELETE_TOPICS_VERSION = 6
OFFSET_MARKER = 0x1122334455667788

R = TypeVar("R", bound=TopLevel)


class WireError(Exception):
    """The broker refused something, or did not come up in time."""


def request_frame(key: ApiKey, version: int, request: TopLevel, correlation_id: int = 0) -> bytes:
    flexible = version >= API[key].flexible_from
    return frames.request_frame(
        key, version, correlation_id, "bench", codec.encode(request, version), flexible=flexible
    )


class Connection:
    """One socket, one request at a time."""

    def __init__(self, port: int, timeout_s: float = 60.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_ids = itertools.count()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def call(self, key: ApiKey, version: int, request: TopLevel, response_class: type[R]) -> R:
        answer = self.exchange(request_frame(key, version, request, next(self._correlation_ids)))
        _, start = frames.read_response_header(answer, flexible=response_header_is_flexible(key, version))
        return codec.decode(response_class, version, answer, start)

    def exchange(self, frame: bytes) -> bytes:
        """Send a frame and return the answer without its size."""
        self._socket.sendall(frame)
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)


def create_topics(port: int, names: Sequence[str], partitions: int) -> None:
    """Create topics and return when every partition has a leader and takes records."""
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    request = CreateTopicsRequest(topics=topics, timeout_ms=60_000)
    with Connection(port) as connection:
        answer = connection.call(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, request, CreateTopicsResponse)
        for topic in answer.topics:
            if topic.error_code != 0:
                raise WireError(f"creating {topic.name} gave error {topic.error_code}: {topic.error_message}")


def delete_topic(port: int, name: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=60_000)
    with Connection(port) as connection:
        answer = connection.call(ApiKey.DELETE_TOPICS, DELETE_TOPICS_VERSION, request, DeleteTopicsResponse)
        if answer.responses[0].error_code != 0:
            raise WireError(f"deleting {name} gave error {answer.responses[0].error_code}")


def _produce_one(topic: str, partition: int) -> ProduceRequest:
    batch = encode_batch([NewRecord(None, b"first", int(time.time() * 1000))])
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=bytes(batch))])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])


def wait_for_first_record(port: int, topic: str, *, partitions: Sequence[int] = (0,), wait_s: float = 120.0) -> None:
    """Return as soon as one record in each partition is acknowledged; the topic is created on the way if need be."""
    deadline = time.monotonic() + wait_s
    remaining = list(partitions)
    metadata = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
    while remaining:
        if time.monotonic() > deadline:
            raise WireError(f"no record was acknowledged in {wait_s:.0f} s")
        with contextlib.suppress(OSError), Connection(port) as connection:
            while remaining and time.monotonic() < deadline:
                connection.call(ApiKey.METADATA, METADATA_VERSION, metadata, MetadataResponse)
                request = _produce_one(topic, remaining[0])
                answer = connection.call(ApiKey.PRODUCE, PRODUCE_VERSION, request, ProduceResponse)
                if answer.responses[0].partition_responses[0].error_code == 0:
                    remaining.pop(0)
                else:
                    time.sleep(0.002)
            continue
        time.sleep(0.002)


class PreparedProduce(NamedTuple):
    """A file of Produce requests for the generator's replay mode."""

    path: Path
    error_at: int
    request_bytes: int


def text_payloads(count: int, size: int) -> list[bytes]:
    """Payloads of which about half repeats, as log lines do."""
    line = b'{"level":"info","service":"orders","region":"north","id":"'[:50]
    state = 88172645463325252
    payloads = []
    for _ in range(count):
        parts = []
        for _ in range(size // 100 + 1):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            parts.append(line + b"%050x" % (state * state * state))
        payloads.append(b"".join(parts)[:size])
    return payloads


def prepare_produce(
    path: Path, topic: str, *, partitions: int, records: int, size: int, acks: int, compression: Codec = Codec.NONE
) -> PreparedProduce:
    """Write one Produce request for each partition, each with one batch of `records`."""
    now = int(time.time() * 1000)
    batch = bytes(
        encode_batch([NewRecord(None, value, now) for value in text_payloads(records, size)], codec=compression)
    )
    longest = 0
    with path.open("wb") as out:
        for partition in range(partitions):
            data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
            request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[data])
            frame = request_frame(ApiKey.PRODUCE, PRODUCE_VERSION, request)
            longest = max(longest, len(frame))
            out.write(frame)
    # Size, correlation id, tags, array of topics, name, array of partitions, index: then the error.
    return PreparedProduce(path, 4 + 4 + 1 + 1 + 1 + len(topic) + 1 + 4, longest)


def prepare_fetch(path: Path, topic: str, *, partitions: int) -> dict[str, object]:
    """Write one Fetch request for each partition; the answer tells where in requests and answers things stand."""
    frame = b""
    with path.open("wb") as out:
        for partition in range(partitions):
            wanted = FetchPartition(partition=partition, fetch_offset=OFFSET_MARKER, partition_max_bytes=1 << 20)
            request = FetchRequest(
                max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=[FetchTopic(topic=topic, partitions=[wanted])]
            )
            frame = request_frame(ApiKey.FETCH, FETCH_VERSION, request)
            out.write(frame)
    # Size, correlation id, tags, throttle time, error, session, array of topics, name, array of partitions, index.
    error_at = 4 + 4 + 1 + 4 + 2 + 4 + 1 + 1 + len(topic) + 1 + 4
    return {
        "frames": path,
        "error_at": error_at,
        "watermark_at": error_at + 2,
        "aborted_at": error_at + 2 + 3 * 8,
        "offset_at": frame.index(struct.pack(">q", OFFSET_MARKER)),
    }
